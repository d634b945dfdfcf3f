"""The endpoint's server: its application with the limits of the settings, and what the operator is warned of."""

from collections.abc import Callable, Iterator
from pathlib import Path

import uvicorn

from health_assets.apps.serving.access_log import AccessLog
from health_assets.apps.serving.app import create_app
from health_assets.apps.serving.auth import Auth
from health_assets.apps.serving.history.reading import OPEN_FILES
from health_assets.apps.serving.hosts import is_loopback
from health_assets.apps.serving.listening import limited, listening, run_until_stopped
from health_assets.apps.serving.refresher import tell_operator
from health_assets.apps.serving.tokens import FEWEST_TOKEN_CHARACTERS, plain_tokens
from health_assets.core.settings import Settings

SPARE_FILES = 100 + OPEN_FILES
"""Open files beside the connections: the history's, the warehouse's reader, the listening socket, the loop's own."""


def serve(
    settings: Settings,
    host: str,
    port: int,
    on_listening: Callable[[str], None],
    tls_cert: Path | None = None,
    tls_key: Path | None = None,
) -> None:
    """Serve until somebody stops it.

    Args:
        settings: the warehouse, the targets, and how to serve.
        host: name or address to listen on.
        port: port to listen on; 0 takes any that is free.
        on_listening: told the address once connections are accepted.
        tls_cert: certificate chain in PEM; with it HTTPS is spoken.
        tls_key: its private key, unless that is in the same file.

    Raises:
        HealthAssetsError: the address cannot be listened on, the certificate not used, or the warehouse names no file.
    """
    with listening(host, port) as listener:
        address = listener.getsockname()[0]
        config = configured(settings, tls_cert, tls_key, host=host, is_local=is_loopback(address))
        run_until_stopped(config, listener, host, on_listening)


def configured(
    settings: Settings,
    tls_cert: Path | None = None,
    tls_key: Path | None = None,
    on_fault: Callable[[str], None] = tell_operator,
    *,
    host: str = "localhost",
    is_local: bool = False,
) -> uvicorn.Config:
    """The application and its limits, as uvicorn takes them.

    Args:
        settings: the warehouse, the targets, and how to serve.
        tls_cert: certificate chain in PEM.
        tls_key: its private key, unless that is in the same file.
        on_fault: told in a sentence what the operator must know.
        host: the name or address that is listened on.
        is_local: whether this machine alone can reach it.

    Raises:
        HealthAssetsError: the certificate or the tokens cannot be used, or the warehouse names no file.
    """
    auth = Auth(settings, host, on_fault, is_local=is_local)
    for sentence in _warnings(settings, auth, is_local=is_local):
        on_fault(sentence)
    log = AccessLog(settings.access_log, plain_tokens(settings), on_fault) if settings.access_log else None
    return limited(
        create_app(settings, auth, log, on_fault),
        most_connections=settings.serve_max_connections,
        most_per_address=settings.serve_connections_per_address,
        spare_files=SPARE_FILES,
        tls_cert=tls_cert,
        tls_key=tls_key,
        log=log,
    )


def _warnings(settings: Settings, auth: Auth, *, is_local: bool) -> Iterator[str]:
    """Warnings for the operator about who gets in."""
    if any(len(token) < FEWEST_TOKEN_CHARACTERS for token in plain_tokens(settings)):
        yield (
            f"HEALTH_TOKEN has fewer than {FEWEST_TOKEN_CHARACTERS} characters, so it can be guessed; "
            "`health-assets token new --role operate` makes a token that cannot"
        )
    if not is_local and not auth.has_tokens and auth.anonymous != "read":
        yield (
            "others can reach this address and there is no token, so health documents alone are answered, if those; "
            "`health-assets token new --role read` makes a token, HEALTH_TOKENS_FILE names the file of those that count"
        )
    if auth.is_open_to_the_world:
        yield (
            "HEALTH_ANONYMOUS_ROLE is read: everybody who reaches this address reads all scores, inputs and sessions"
        )
