"""The collector's server: where its files lie, who may send, and its limits.

What does not belong here: listening and TLS, which it has in common with the endpoint (`apps.serving.listening`).
"""

from collections.abc import Callable

from health_assets.apps.serving.hosts import AllowedHosts, is_loopback
from health_assets.apps.serving.listening import limited, listening, run_until_stopped
from health_assets.apps.serving.tokens import FEWEST_TOKEN_CHARACTERS
from health_assets.core.errors import HealthAssetsError
from health_assets.core.raw_roots import local_root
from health_assets.core.settings import Settings

try:
    from health_assets.apps.collecting.app import create_app
    from health_assets.apps.collecting.requests import LOGS, TRACES
except ImportError as error:
    raise HealthAssetsError("the collector needs OTLP's messages; install health-assets[collect]") from error
from health_assets.apps.collecting.log_files import FOLDER, GroupCommit, LogFiles

MOST_CONNECTIONS = 1000
SPARE_FILES = 50
"""Open files beside the connections: the log, its folders, the listening socket, the loop's own."""
GRACEFUL_SHUTDOWN_S = 30
"""How long requests are waited for whose bodies are still coming, or whose lines a slow disk still takes."""


def collect(settings: Settings, on_listening: Callable[[str], None], on_fault: Callable[[str], None]) -> None:
    """Take traces and logs until somebody stops it.

    Args:
        settings: the raw root, the address, the token and the certificate.
        on_listening: told the address once connections are accepted.
        on_fault: told in a sentence when lines cannot be written, and when they can again.

    Raises:
        HealthAssetsError: the raw root is no folder, the address cannot be listened on or needs a token, or the
            certificate cannot be used.
    """
    folder = local_root(settings.raw, "collect") / FOLDER
    # apart, since a reader of agents' logs looks for their events at the beginning of a file
    commits = {
        signal: GroupCommit(LogFiles(folder / name), on_fault) for signal, name in ((TRACES, "traces"), (LOGS, "logs"))
    }
    host, token = settings.collect_host, _token(settings)
    with listening(host, settings.collect_port) as listener:
        is_local = is_loopback(listener.getsockname()[0])
        if not is_local and token is None:
            raise HealthAssetsError(
                f"others can reach {host}, so HEALTH_COLLECT_TOKEN must name the token that they send"
            )
        # a stranger's page can make a browser send, but not with the token
        hosts = AllowedHosts(host, settings.allowed_hosts) if token is None else None
        config = limited(
            create_app(commits, token, hosts),
            most_connections=MOST_CONNECTIONS,
            most_per_address=MOST_CONNECTIONS,
            spare_files=SPARE_FILES,
            tls_cert=settings.collect_tls_cert,
            tls_key=settings.collect_tls_key,
            graceful_shutdown_s=GRACEFUL_SHUTDOWN_S,
        )
        run_until_stopped(config, listener, host, on_listening)


def _token(settings: Settings) -> str | None:
    """The token that senders must give; None where there is none.

    Raises:
        HealthAssetsError: it can be guessed, or no header can hold it.
    """
    token = settings.collect_token.get_secret_value() if settings.collect_token else None
    if token is None:
        return None
    if len(token) < FEWEST_TOKEN_CHARACTERS:
        raise HealthAssetsError(
            f"HEALTH_COLLECT_TOKEN has fewer than {FEWEST_TOKEN_CHARACTERS} characters, so it can be guessed"
        )
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise HealthAssetsError("HEALTH_COLLECT_TOKEN must be printable ASCII without spaces")
    return token
