"""Clients of the endpoint while it is disturbed: people's pages, programs' documents, and a coding agent over MCP.

What belongs here: asking, and what an answer must be. What does not: disturbing (`live`).
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

import anyio
import httpx
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from health_assets.apps.serving.mcp_server.backend import LOADING, NOTHING_YET
from health_assets.consumer.document import STATUSES

EVERY_S = 1.0
MCP_EVERY = 5
"""An MCP client connects each so many rounds."""
TIMEOUT_S = 30.0
MCP_TIMEOUT_S = 60.0
STARTING = 503
MISSING = 404
"""Of an agent whose first score is not published yet."""


@dataclass
class Clients:
    """Ask an endpoint once a second until they are stopped.

    Args:
        base: address of the endpoint.
        agent_ids: agents to ask about, in turn.
        counts: how often each answer came, by what was asked.
        wrong: answers that must not be.
        slowest_s: the longest wait for a right answer, by what was asked.
    """

    base: str
    agent_ids: tuple[str, ...]
    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    slowest_s: dict[str, float] = field(default_factory=dict)
    _is_over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to ask."""
        self._thread = threading.Thread(target=self._ask_on, name="clients")
        self._thread.start()

    def stop(self) -> None:
        """Ask no more."""
        self._is_over.set()
        if self._thread is not None:
            self._thread.join()

    def _ask_on(self) -> None:
        number = 0
        with httpx.Client(base_url=self.base, timeout=TIMEOUT_S) as client:
            while not self._is_over.wait(EVERY_S):
                name = quote(self.agent_ids[number % len(self.agent_ids)])
                self._timed("page of the fleet", lambda: self._page(client, "/"))
                self._timed("page of an agent", lambda name=name: self._page(client, f"/ui/agents/{name}"))
                self._timed("document", lambda name=name: self._document(client, name))
                if number % MCP_EVERY == 0:
                    self._timed("MCP", self._over_mcp)
                number += 1

    def _timed(self, what: str, ask: Callable[[], str]) -> None:
        began_s = time.monotonic()
        try:
            answer = ask()
        except httpx.TransportError:
            answer = "unreachable"
        self.counts[f"{what}: {answer}"] += 1
        if answer == "right":
            self.slowest_s[what] = max(self.slowest_s.get(what, 0.0), time.monotonic() - began_s)

    def _page(self, client: httpx.Client, path: str) -> str:
        answer = client.get(path)
        if answer.status_code in (STARTING, MISSING):
            return str(answer.status_code)
        if answer.status_code != 200 or "</html>" not in answer.text:
            self.wrong.append(f"{path}: {answer.status_code} {answer.text[:200]}")
        return "right"

    def _document(self, client: httpx.Client, name: str) -> str:
        answer = client.get(f"/agents/{name}/.well-known/agent-health")
        if answer.status_code in (STARTING, MISSING):
            return str(answer.status_code)
        document = answer.json() if answer.status_code == 200 else {}
        if document.get("agent_id") != name or document["health"]["status"] not in STATUSES:
            self.wrong.append(f"document of {name}: {answer.status_code} {answer.text[:200]}")
        return "right"

    def _over_mcp(self) -> str:
        try:
            answers = anyio.run(self._tools)
        except (Exception, BaseExceptionGroup):  # the server was killed meanwhile, or starts; `_page` says which
            return "no connection"
        errors = {tool: text for tool, (text, is_error) in answers.items() if is_error}
        if not errors:
            return "right"
        may_be_empty = not self.counts["document: right"]
        for tool, text in errors.items():
            if text != LOADING and not (may_be_empty and text == NOTHING_YET):
                self.wrong.append(f"MCP {tool}: {text[:200]}")
        return "not yet"

    async def _tools(self) -> Mapping[str, tuple[str, bool]]:
        answers: dict[str, tuple[str, bool]] = {}
        with anyio.fail_after(MCP_TIMEOUT_S):
            async with Client(streamable_http_client(f"{self.base}/mcp")) as client:
                for tool in ("fleet", "alerts", "data_quality"):
                    result = await client.call_tool(tool, {})
                    answers[tool] = (getattr(result.content[0], "text", ""), bool(result.is_error))
        return answers
