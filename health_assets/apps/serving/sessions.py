"""Scores and runs of one session, traces, lines of logs, suggested targets: asked of a reader, and kept for a while.

These are the answers that need the warehouse or the logs. They are kept away from the others: their own reader process,
few questions at a time, a limit on each, and answers of bounded size that are kept for as long as the snapshot's are.
"""

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from health_assets.apps.serving.access_scope import AccessScope
from health_assets.apps.serving.answers import dumps
from health_assets.apps.serving.client import SENTENCES, Reader, ReaderError
from health_assets.apps.serving.trace_question import TraceQuestion
from health_assets.core.settings import Settings

TIMEOUT_S = 20.0
MOST_WAITING = 32
MOST_PATIENCE_S = 20.0
"""How long a question waits for its turn."""
MOST_KEPT = 64


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a session.

    Args:
        session_id: the session.
        with_runs: for its runs, in place of the metadata of its scores.
        until: the hour by whose end; None for the newest.
    """

    session_id: str
    with_runs: bool = False
    until: datetime | None = None

    def request(self) -> dict[str, Any]:
        """The question as the reader understands it."""
        if not self.with_runs:
            return {"session": self.session_id}
        return {"session_runs": self.session_id, "until": self.until and self.until.isoformat()}


@dataclass(frozen=True, slots=True)
class LineQuestion:
    """A question about a line of a raw log.

    Args:
        source_file: the raw log, relative to the raw root.
        number: number of the line, from 1.
    """

    source_file: str
    number: int

    def request(self) -> dict[str, Any]:
        """The question as the reader understands it."""
        return {"line": self.source_file, "number": self.number}


@dataclass(frozen=True, slots=True)
class SuggestionQuestion:
    """A question about suggested targets.

    Args:
        agent_id: only this agent's; None for all.
        days: UTC days to look at.
    """

    agent_id: str | None
    days: int

    def request(self) -> dict[str, Any]:
        """The question as the reader understands it."""
        return {"suggest": self.agent_id, "days": self.days}


AnyQuestion = Question | LineQuestion | SuggestionQuestion | TraceQuestion


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionAnswer:
    """The JSON of a session or a line, whose its agents are, and when it was read.

    Args:
        body: the JSON, an object.
        texts: its members with texts of the logs, as JSON; empty without any.
        is_personal: whether one of its agents is somebody's own.
        teams: of its agents; None among them where one is of no team.
        read_at: when it was read.
    """

    body: bytes
    texts: bytes = b""
    is_personal: bool
    teams: frozenset[str | None]
    read_at: datetime

    def body_for(self, view: AccessScope) -> bytes:
        """The JSON that a caller may see."""
        return self.body[:-1] + b"," + self.texts[1:] if self.texts and view.shows_texts else self.body

    def is_visible(self, view: AccessScope) -> bool:
        """Whether a caller may see it: all agents are of the caller's teams, and personal ones want the full view."""
        return (view.is_full or not self.is_personal) and (view.teams is None or self.teams <= view.teams)


class Sessions:
    """Looks sessions and lines up, one at a time, in the order in which they are asked for.

    Args:
        settings: the warehouse, and how long an answer is kept.
        timeout_s: how long an answer may take; by default `TIMEOUT_S`.
    """

    def __init__(self, settings: Settings, timeout_s: float | None = None) -> None:
        self._reader = Reader(settings)
        self._timeout_s = timeout_s
        self._keep_s = settings.serve_refresh_s
        self._kept: OrderedDict[AnyQuestion, tuple[float, SessionAnswer | None]] = OrderedDict()
        self._waiting = 0
        self._turn = asyncio.Lock()  # whoever waits gets it in turn, which a lock of threads does not promise

    def costs_nothing(self, question: AnyQuestion, view: AccessScope) -> bool:
        """Whether an answer is kept that the caller may see; of others the caller must not even learn that they are."""
        kept = self._kept[question][1] if self._has(question) else None
        return kept is not None and kept.is_visible(view)

    async def find(self, question: AnyQuestion) -> SessionAnswer | None:
        """The answer to a question; None where the session had nothing in the look-back.

        Raises:
            ReaderError: the warehouse cannot be asked now.
        """
        if self._has(question):
            return self._kept[question][1]
        if self._waiting >= MOST_WAITING:
            raise ReaderError("crowded", SENTENCES["crowded"])
        self._waiting += 1
        try:
            await asyncio.wait_for(self._turn.acquire(), MOST_PATIENCE_S)
        except TimeoutError as error:
            raise ReaderError("crowded", SENTENCES["crowded"]) from error
        finally:
            self._waiting -= 1
        try:
            if self._has(question):  # another asked for the same meanwhile
                return self._kept[question][1]
            found = await asyncio.to_thread(self._reader.ask, question.request(), self._timeout_s or TIMEOUT_S)
        finally:
            self._turn.release()
        fresh = found and SessionAnswer(
            body=dumps(found["answer"]),
            texts=dumps(found["texts"]) if "texts" in found else b"",
            is_personal=found["is_personal"],
            teams=frozenset(found["teams"]),
            read_at=datetime.now(UTC),
        )
        self._keep(question, fresh)
        return fresh

    def close(self) -> None:
        """End the reader."""
        self._reader.interrupt()
        self._reader.close()

    def _has(self, question: AnyQuestion) -> bool:
        return time.monotonic() < self._kept.get(question, (0.0, None))[0]

    def _keep(self, question: AnyQuestion, fresh: Any) -> None:
        self._kept.pop(question, None)
        self._kept[question] = (time.monotonic() + self._keep_s, fresh)
        if len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
