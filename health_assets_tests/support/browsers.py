"""Browsers that sign in to the pages of a server on loopback, and send their forms."""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from health_assets_tests.support.serving_made import PATIENCE_S, Reply, Served

FORM = "application/x-www-form-urlencoded"


@dataclass
class Browser:
    """A browser with its cookies."""

    server: Served
    cookies: dict[str, str] = field(default_factory=dict)

    @property
    def origin(self) -> str:
        return f"https://localhost:{self.server.port}" if self.server.tls else f"http://127.0.0.1:{self.server.port}"

    def get(self, path: str, **headers: str) -> Reply:
        return self.server.ask(path, headers={**self._cookies(), **headers})

    def page(self, path: str) -> str:
        """A page, once the server has something to make it of."""
        deadline = time.monotonic() + PATIENCE_S
        while (reply := self.get(path)).status == 404 and b"Nothing has been materialized" in reply.body:
            assert time.monotonic() < deadline, reply.body
            time.sleep(0.05)
        assert reply.status == 200, reply.body
        return reply.body.decode()

    def post(self, path: str, fields: Mapping[str, Any], **headers: str | None) -> Reply:
        """Send a form as a browser does; a header that is None is left out."""
        given = {"Content-Type": FORM, "Origin": self.origin, **self._cookies(), **headers}
        kept = {name: value for name, value in given.items() if value is not None}
        reply = self.server.ask(path, "POST", kept, body=urlencode(fields, doseq=True).encode())
        if cookie := reply.headers.get("set-cookie"):
            name, _, value = cookie.partition(";")[0].partition("=")
            self.cookies = {name: value} if value else {}
        return reply

    def sign_in(self, token: str, target: str = "/") -> Reply:
        return self.post("/ui/sign-in", {"token": token, "next": target})

    def csrf(self, path: str = "/ui/sign-in") -> str:
        """What forms of this session repeat."""
        found = re.search(r'name="csrf" value="([^"]+)"', self.get(path).body.decode())
        assert found, "no form is of a session"
        return found[1]

    def _cookies(self) -> dict[str, str]:
        return {"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())} if self.cookies else {}
