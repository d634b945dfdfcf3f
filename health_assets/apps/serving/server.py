"""Listening: a socket, TLS, limits, a start that says where, and an end without noise."""

import gc
import logging
import os
import resource
import socket
import ssl
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import uvicorn

from health_assets.apps.serving.access_log import AccessLog
from health_assets.apps.serving.app import create_app
from health_assets.apps.serving.doors import Doors
from health_assets.apps.serving.history.reading import OPEN_FILES
from health_assets.apps.serving.hosts import is_loopback
from health_assets.apps.serving.protocol import LimitedProtocol
from health_assets.apps.serving.quotas import ConnectionQuota
from health_assets.apps.serving.refresher import tell_operator
from health_assets.apps.serving.tokens import plain_tokens
from health_assets.core.errors import HealthAssetsError
from health_assets.core.settings import Settings

KEEP_ALIVE_S = 15
GRACEFUL_SHUTDOWN_S = 5
FEWEST_TOKEN_CHARACTERS = 16
"""A shorter `HEALTH_TOKEN` can be guessed by who tries long enough."""
SWITCH_S = 0.0005
"""So long at most a thread that makes a page goes on while the loop wants to run; Python's own is ten times as long."""
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
        scheme = "https" if tls_cert else "http"
        shown = f"[{host}]" if ":" in host else host
        url = f"{scheme}://{shown}:{listener.getsockname()[1]}"
        try:
            _Server(config, lambda: on_listening(url)).run(sockets=[listener])
        except KeyboardInterrupt:  # uvicorn has ended in good order and raises the signal again
            return
        finally:  # what `startup` froze would count as leaked where the interpreter ends
            gc.unfreeze()


class _Server(uvicorn.Server):
    """Says that it has started once it heeds signals, so that none that is sent then is lost."""

    def __init__(self, config: uvicorn.Config, on_started: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_started = on_started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        # what is imported stays to the end: the collector of garbage need not hold requests up to look at it again
        gc.collect()
        gc.freeze()
        sys.setswitchinterval(SWITCH_S)
        self._on_started()


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
    doors = Doors(settings, host, on_fault, is_local=is_local)
    for sentence in _warnings(settings, doors, is_local=is_local):
        on_fault(sentence)
    log = AccessLog(settings.access_log, plain_tokens(settings), on_fault) if settings.access_log else None
    quota = ConnectionQuota(settings.serve_connections_per_address)
    _allow_open_files(settings.serve_max_connections + SPARE_FILES)
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # what a client does wrong is no event
    config = uvicorn.Config(
        create_app(settings, doors, log, on_fault),
        http=partial(LimitedProtocol, quota=quota, log=log),  # type: ignore[arg-type]
        ws="none",
        loop="uvloop",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # who limits by address must not believe what clients say about theirs
        limit_concurrency=settings.serve_max_connections,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACEFUL_SHUTDOWN_S,
        ssl_certfile=tls_cert,
        ssl_keyfile=tls_key,
    )
    try:
        config.load()
    except (OSError, ssl.SSLError) as error:
        reason = getattr(error, "reason", None) or error.strerror or "it is not in PEM"
        raise HealthAssetsError(f"cannot use the TLS certificate {tls_cert}: {reason}") from error
    return config


def _warnings(settings: Settings, doors: Doors, *, is_local: bool) -> Iterator[str]:
    """Warnings for the operator about who gets in."""
    if any(len(token) < FEWEST_TOKEN_CHARACTERS for token in plain_tokens(settings)):
        yield (
            f"HEALTH_TOKEN has fewer than {FEWEST_TOKEN_CHARACTERS} characters, so it can be guessed; "
            "`health-assets token new --role operate` makes a token that cannot"
        )
    if not is_local and not doors.has_tokens and doors.anonymous != "read":
        yield (
            "others can reach this address and there is no token, so health documents alone are answered, if those; "
            "`health-assets token new --role read` makes a token, HEALTH_TOKENS_FILE names the file of those that count"
        )
    if doors.is_open_to_the_world:
        yield (
            "HEALTH_ANONYMOUS_ROLE is read: everybody who reaches this address reads all scores, inputs and sessions"
        )


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens.

    Raises:
        HealthAssetsError: the address is taken, not ours, or none.
    """
    try:
        family, *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.create_server((host, port), family=family, backlog=1024)
    except (OSError, UnicodeError) as error:
        reason = _reason(error).lower()
        raise HealthAssetsError(f"cannot listen on {host} port {port}: {reason}; try another --port") from error
    listener.setblocking(False)
    return listener


def _reason(error: OSError | UnicodeError) -> str:
    """The fault alone; the sentence around it already has the address."""
    if isinstance(error, UnicodeError | socket.gaierror):
        return "there is no such name"
    return os.strerror(error.errno or 0)


def _allow_open_files(count: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count:
        resource.setrlimit(
            resource.RLIMIT_NOFILE, (count if hard == resource.RLIM_INFINITY else min(count, hard), hard)
        )
