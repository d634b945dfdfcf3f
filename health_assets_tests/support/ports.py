"""Ports for servers of the tests that have to be told theirs."""

import socket
from random import SystemRandom

FIRST, LAST = 20_000, 31_999
"""Below the range from which the system picks ports for outgoing connections and for port 0."""


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    while True:
        port = SystemRandom().randint(FIRST, LAST)
        with socket.socket() as free:
            try:
                free.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
