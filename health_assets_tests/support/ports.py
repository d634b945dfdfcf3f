"""Ports for servers of the tests that have to be told theirs."""

import socket
from random import SystemRandom

FIRST, LAST = 20_000, 31_999
"""Below those that the system gives to connections and to whoever binds port 0; such a one is soon somebody else's."""


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
