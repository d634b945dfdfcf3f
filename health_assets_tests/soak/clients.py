"""Clients of the endpoint while it is disturbed: people's pages, programs' documents, and a coding agent over MCP.

What belongs here: asking, and what an answer must be. What does not: disturbing (`live`).
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from urllib.parse import quote

import anyio
import httpx
import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.types import CONNECTION_CLOSED

from health_assets.apps.serving.mcp_server.backend import LOADING, NOTHING_YET
from health_assets.consumer.document import STATUSES

FLEET, AGENT, DOCUMENT, MCP = "page of the fleet", "page of an agent", "document", "MCP"
ASKED = (FLEET, AGENT, DOCUMENT, MCP)
RIGHT, WRONG = "right", "wrong"
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
    _known: set[tuple[str, str]] = field(default_factory=set)
    """What was found once: it is not missing afterwards."""
    _asking: Future[None] | None = None

    def start(self) -> None:
        """Begin to ask."""
        pool = ThreadPoolExecutor(1, "clients")
        self._asking = pool.submit(self._ask_on)
        pool.shutdown(wait=False)

    def stop(self) -> None:
        """Ask no more.

        Raises:
            Exception: what ended the asking before.
        """
        self._is_over.set()
        if self._asking is not None:
            self._asking.result()

    def right(self) -> dict[str, int]:
        """How many right answers there were so far, by what was asked."""
        return {what: self.counts[f"{what}: {RIGHT}"] for what in ASKED}

    def _ask_on(self) -> None:
        number = 0
        with httpx.Client(base_url=self.base, timeout=TIMEOUT_S) as client:
            while not self._is_over.wait(EVERY_S):
                name = self.agent_ids[number % len(self.agent_ids)]
                self._timed(FLEET, lambda: self._answer(client, FLEET, "/", _is_page))
                self._timed(AGENT, lambda name=name: self._answer(client, AGENT, f"/ui/agents/{quote(name)}", _is_page))
                self._timed(DOCUMENT, lambda name=name: self._document(client, name))
                if number % MCP_EVERY == 0:
                    self._timed(MCP, self._over_mcp)
                number += 1

    def _timed(self, what: str, ask: Callable[[], str]) -> None:
        began_s = time.monotonic()
        try:
            answer = ask()
        except httpx.ReadTimeout:
            self.wrong.append(f"{what}: no answer within {TIMEOUT_S:.0f} s")
            answer = WRONG
        except httpx.TransportError:
            answer = "unreachable"
        self.counts[f"{what}: {answer}"] += 1
        if answer == RIGHT:
            self.slowest_s[what] = max(self.slowest_s.get(what, 0.0), time.monotonic() - began_s)

    def _document(self, client: httpx.Client, name: str) -> str:
        path = f"/agents/{quote(name)}/.well-known/agent-health"
        return self._answer(client, DOCUMENT, path, lambda answer: _is_document_of(answer, name))

    def _answer(self, client: httpx.Client, what: str, path: str, is_right: Callable[[httpx.Response], bool]) -> str:
        answer = client.get(path)
        if answer.status_code == STARTING or (answer.status_code == MISSING and (what, path) not in self._known):
            return str(answer.status_code)
        if answer.status_code != 200 or not is_right(answer):
            self.wrong.append(f"{what} {path}: {answer.status_code} {answer.text[:200]}")
            return WRONG
        self._known.add((what, path))
        return RIGHT

    def _over_mcp(self) -> str:
        try:
            answers = anyio.run(self._tools)
        except (Exception, BaseExceptionGroup) as error:
            faults = [fault for fault in _each(error) if not _is_of_a_killed_server(fault)]
            self.wrong += [f"{MCP}: {fault!r}" for fault in faults]
            return WRONG if faults else "no connection"
        errors = {tool: text for tool, (text, is_error) in answers.items() if is_error}
        if not errors:
            return RIGHT
        waiting = {LOADING} if self.right()[DOCUMENT] else {LOADING, NOTHING_YET}
        unexpected = [f"{MCP} {tool}: {text[:200]}" for tool, text in errors.items() if text not in waiting]
        self.wrong += unexpected
        return WRONG if unexpected else "not yet"

    async def _tools(self) -> Mapping[str, tuple[str, bool]]:
        answers: dict[str, tuple[str, bool]] = {}
        with anyio.fail_after(MCP_TIMEOUT_S):
            async with Client(streamable_http_client(f"{self.base}/mcp")) as client:
                for tool in ("fleet", "alerts", "data_quality"):
                    result = await client.call_tool(tool, {})
                    answers[tool] = (getattr(result.content[0], "text", ""), bool(result.is_error))
        return answers


def _each(error: BaseException) -> Iterator[BaseException]:
    """The errors of which a group consists, however deep."""
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from _each(one)
    else:
        yield error


def _is_of_a_killed_server(error: BaseException) -> bool:
    """Whether a server that ended, or that starts, is a reason for an error."""
    if isinstance(error, httpx2.HTTPStatusError):  # the SDK's own, not that of the other clients
        return error.response.status_code == STARTING
    if isinstance(error, MCPError):
        return error.error.code == CONNECTION_CLOSED
    return isinstance(error, (httpx2.TransportError, anyio.ClosedResourceError, anyio.BrokenResourceError))


def _is_page(answer: httpx.Response) -> bool:
    return "</html>" in answer.text


def _is_document_of(answer: httpx.Response, agent_id: str) -> bool:
    document = answer.json()
    return document["agent_id"] == agent_id and document["health"]["status"] in STATUSES
