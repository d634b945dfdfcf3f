"""Listening: a socket, TLS, limits, a start that says where, and an end without noise.

What belongs here: what every application of this program that listens has in common. What does not: the applications
(`app`, `apps.collecting.app`), and who may ask what.
"""

import gc
import logging
import os
import resource
import socket
import ssl
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from health_assets.apps.serving.access_log import AccessLog
from health_assets.apps.serving.protocol import LimitedProtocol
from health_assets.apps.serving.quotas import ConnectionQuota
from health_assets.core.errors import HealthAssetsError

KEEP_ALIVE_S = 15
GRACEFUL_SHUTDOWN_S = 5
SWITCH_S = 0.0005
"""So long at most a thread that makes a page goes on while the loop wants to run; Python's own is ten times as long."""


def run_until_stopped(
    config: uvicorn.Config, listener: socket.socket, host: str, on_listening: Callable[[str], None]
) -> None:
    """Answer until somebody stops it.

    Args:
        config: the application and its limits.
        listener: the socket that listens.
        host: the name or address that was asked for.
        on_listening: told the address once connections are accepted.
    """
    scheme = "https" if config.is_ssl else "http"
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


def limited(
    app: ASGIApp,
    *,
    most_connections: int,
    most_per_address: int,
    spare_files: int,
    tls_cert: Path | None,
    tls_key: Path | None,
    log: AccessLog | None = None,
    graceful_shutdown_s: int = GRACEFUL_SHUTDOWN_S,
) -> uvicorn.Config:
    """An application and its limits, as uvicorn takes them.

    Args:
        app: the application.
        most_connections: connections that may be open at once.
        most_per_address: of them, those of one client address.
        spare_files: open files beside the connections.
        tls_cert: certificate chain in PEM; with it HTTPS is spoken.
        tls_key: its private key, unless that is in the same file.
        log: where requests that are refused before the application are noted.
        graceful_shutdown_s: how long requests that are under way are waited for at the end.

    Raises:
        HealthAssetsError: the certificate cannot be used.
    """
    _allow_open_files(most_connections + spare_files)
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # what a client does wrong is no event
    config = uvicorn.Config(
        app,
        http=partial(LimitedProtocol, quota=ConnectionQuota(most_per_address), log=log),  # type: ignore[arg-type]
        ws="none",
        loop="uvloop",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # who limits by address must not believe what clients say about theirs
        limit_concurrency=most_connections,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=graceful_shutdown_s,
        ssl_certfile=tls_cert,
        ssl_keyfile=tls_key,
    )
    try:
        config.load()
    except (OSError, ssl.SSLError) as error:
        reason = getattr(error, "reason", None) or error.strerror or "it is not in PEM"
        raise HealthAssetsError(f"cannot use the TLS certificate {tls_cert}: {reason}") from error
    return config


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
