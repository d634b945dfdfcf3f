"""Answers from memory: health documents, lists, scores, models. No HTTP framework, no warehouse."""

import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from health_assets.apps.serving.access_scope import AccessScope
from health_assets.apps.serving.answers import Answer, Headers, answer, dumps, momentary, problem, short
from health_assets.apps.serving.auth import NO_AGGREGATES, NO_METRICS, Auth, Caller
from health_assets.apps.serving.client import SENTENCES, ReaderError
from health_assets.apps.serving.cors import Cors
from health_assets.apps.serving.metrics import Metrics
from health_assets.apps.serving.ordering import Order, tells_of_now
from health_assets.apps.serving.outdated import DataAge, outdated_document, outdated_items
from health_assets.apps.serving.quotas import WorkQuota
from health_assets.apps.serving.rate_limit import client_of
from health_assets.apps.serving.refresher import FIRST_RETRY_S, Refresher
from health_assets.apps.serving.sessions import (
    AnyQuestion,
    LineQuestion,
    Question,
    SessionAnswer,
    Sessions,
    SuggestionQuestion,
)
from health_assets.apps.serving.snapshot import Snapshot
from health_assets.apps.serving.tokens import Role
from health_assets.apps.serving.trace_question import TraceQuestion
from health_assets.core.errors import HealthAssetsError
from health_assets.core.settings import Settings
from health_assets.model_tracker import SCORE_OF_UNSEEN_MODEL, best_of

NO_AGENT = "no agent of this name is known"
NO_HOST_AGENT = "no agent is configured as this host's own"
TOO_MANY_SESSIONS = "too many sessions are asked for by this client"
NO_SESSION = "there is no such session in the look-back, or it is not public"
MODEL_COLUMNS = (
    "model", "health_score", "success_count", "failure_count", "p50_latency_ms", "p95_latency_ms", "is_degraded",
    "last_error", "last_call_at", "window_calls", "degraded_threshold", "last_response_model",
    "previous_response_model", "response_model_changed_at",
)  # fmt: skip


class CrowdedError(HealthAssetsError):
    """A client asks for too many sessions.

    Args:
        wait_s: whole seconds after which to try again.
    """

    def __init__(self, wait_s: int) -> None:
        super().__init__(TOO_MANY_SESSIONS)
        self.wait_s = wait_s


@dataclass(frozen=True, slots=True)
class LookupResult:
    """The runs of a session, a trace, the text of a line or suggested targets, or why not.

    Args:
        data: `score` and what `session_runs.runs_of` says, or what `run_traces.trace_of`, `log_lines.line_of` or
            `reader_process.read_suggestions` says; None where there is none that the caller may see.
        why_not: a sentence; None where the warehouse was asked.
    """

    data: dict[str, Any] | None = None
    why_not: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestContext:
    """Who sends a request, and from where.

    Args:
        headers: its headers.
        caller: the sender.
        address: from where.
        target: of a page, its path and query as they were sent.
    """

    headers: Headers
    caller: Caller
    address: str = ""
    target: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentListQuery:
    """A request for agents of a list; `chosen` is one of `ordering.FILTERS`, None for all."""

    chosen: str | None
    offset: int
    limit: int
    order: Order


@dataclass(frozen=True, slots=True, kw_only=True)
class ListQuery:
    """A request for items of a list.

    Args:
        name: the list, one of `snapshot.LISTED`.
        order: one of its orders.
        offset: how many to leave out.
        limit: how many to take at most.
        agent_id: only this agent's; None for all.
    """

    name: str
    order: str
    offset: int
    limit: int
    agent_id: str | None


class Service:
    """Answers requests on the event loop; every method but `session` and `runs` takes microseconds.

    Each method first asks whether the caller may have its answer, however the request came to it.

    Args:
        settings: the host's agent, how long answers may be kept, how many sessions one client may have looked up.
        auth: knows whether there are tokens, on which caching of answers depends.
        refresher: holds the data.
        sessions: looks up sessions.
        metrics: makes the page of metrics.
    """

    def __init__(
        self, settings: Settings, auth: Auth, refresher: Refresher, sessions: Sessions, metrics: Metrics
    ) -> None:
        self._auth = auth
        self._work = WorkQuota(settings.serve_sessions_per_s)
        self._refresher = refresher
        self._cors = Cors(settings.serve_cors_origins)
        self._age = DataAge(settings.serve_max_data_age_s)
        self._sessions = sessions
        self._metrics = metrics
        self._host_agent = settings.host_agent.encode() if settings.host_agent else None
        self._cache_s = math.ceil(settings.serve_refresh_s)

    def document(self, agent_id: bytes, asked: RequestContext) -> Answer:
        """An agent's health document (source 3, section 4); 404 for one that is not known."""
        return self._shared(asked, self._document(agent_id, asked, NO_AGENT))

    def host_document(self, asked: RequestContext) -> Answer:
        """The health document of the agent that is configured as the host's own."""
        if self._host_agent is not None:
            return self._shared(asked, self._document(self._host_agent, asked, NO_HOST_AGENT))
        return self._shared(asked, asked.caller.refusal("documents") or problem(404, NO_HOST_AGENT))

    def preflight(self, asked: RequestContext) -> Answer | None:
        """The answer to OPTIONS for a health document; None where no other origin may read any."""
        return self._cors.preflight(asked.headers) if self._cors.is_on else None

    def _shared(self, asked: RequestContext, made: Answer) -> Answer:
        """The answer, with what browsers on other origins need to read it."""
        made.headers.extend(self._cors.headers(asked.headers))
        return made

    def agents(self, page: AgentListQuery, asked: RequestContext) -> Answer:
        """A page of agents in the order that is asked for."""
        snapshot, view = self._open(asked, "read"), asked.caller.view
        if isinstance(snapshot, Answer):
            return snapshot
        # outdated data tells of no agent what it does now, so no agent is in such a list
        is_empty = tells_of_now(page.chosen) and self._age.left_s(snapshot.known_until, datetime.now(UTC)) < 0
        head = {
            "hour": snapshot.hour.isoformat(),
            "total": 0 if is_empty else snapshot.count(page.chosen, view),
            "offset": page.offset,
            "limit": page.limit,
        }
        limit = 0 if is_empty else page.limit
        items = snapshot.page(page.chosen, page.offset, limit, view, order=page.order)
        body = dumps(head)[:-1] + b',"agents":[' + items + b"]}"
        return self._answer(asked, body, snapshot, outdated_items)

    def agent(self, agent_id: bytes, asked: RequestContext) -> Answer:
        """An agent's score with everything behind it."""
        snapshot, view = self._open(asked, "read"), asked.caller.view
        if isinstance(snapshot, Answer):
            return snapshot
        place = snapshot.find(agent_id, view)
        if place is None:
            return problem(404, NO_AGENT)
        score = dumps(snapshot.explain(place, is_full_view=view.is_full))
        return self._answer(asked, score, snapshot, outdated_items)

    def models(self, asked: RequestContext) -> Answer:
        """Every model's rolling health, by name (source 4)."""
        snapshot = self._open_aggregates(asked)
        if isinstance(snapshot, Answer):
            return snapshot
        view = asked.caller.view
        hidden = () if view.shows_texts else ("last_error",)
        models = [
            {name: model[name] for name in MODEL_COLUMNS if name not in hidden}
            for model in snapshot.models(view).values()
        ]
        return self._answer(asked, dumps({"hour": snapshot.model_hour.isoformat(), "models": models}), snapshot)

    def listed(self, page: ListQuery, asked: RequestContext) -> Answer:
        """A page of tools or of usage; a personal agent's are for who sees all alone."""
        snapshot, view = self._open(asked, "read"), asked.caller.view
        if isinstance(snapshot, Answer):
            return snapshot
        listing = snapshot.lists[page.name]
        agent_id = None if page.agent_id is None else page.agent_id.encode()
        total, items = listing.page(page.order, page.offset, page.limit, agent_id, view)
        head = {**listing.head(view), "total": total, "offset": page.offset, "limit": page.limit}
        return self._answer(asked, dumps(head)[:-1] + b',"%s":[' % page.name.encode() + items + b"]}", snapshot)

    def best_model(self, names: list[str], asked: RequestContext) -> Answer:
        """The candidate with the highest score (source 4, best_model); of equal ones the first.

        Args:
            names: at least one.
            asked: the request.
        """
        snapshot = self._open_aggregates(asked)
        if isinstance(snapshot, Answer):
            return snapshot
        candidates = [_candidate(name, snapshot, asked.caller.view) for name in dict.fromkeys(names)]
        scores = {candidate["model"]: candidate["health_score"] for candidate in candidates}
        best = best_of(scores, names)
        body = {
            "hour": snapshot.model_hour.isoformat(),
            "model": best,
            "health_score": scores[best],
            "candidates": candidates,
        }
        return self._answer(asked, dumps(body), snapshot)

    async def session(self, session_id: str, asked: RequestContext) -> Answer:
        """A session's scores; waits for a reader. One that the caller may not see looks like one that is not there."""
        if (refusal := asked.caller.refusal("read")) is not None:
            return refusal
        try:
            found = await self._look_up(Question(session_id), asked)
        except CrowdedError as error:
            return problem(429, str(error), [(b"retry-after", b"%d" % error.wait_s)])
        except ReaderError as error:
            return self._unavailable(SENTENCES[error.kind])
        if found is None:
            return problem(404, NO_SESSION)
        body, cache = found.body_for(asked.caller.view), b"private, max-age=%d" % self._cache_s
        return self._varied(answer(asked.headers, body, last_modified=found.read_at, cache=cache))

    async def runs(self, session_id: str, until: datetime | None, asked: RequestContext) -> LookupResult:
        """The runs of a session by the end of an hour, for its page; waits for a reader.

        Args:
            session_id: the session.
            until: the hour; None for the newest.
            asked: the request.
        """
        if asked.caller.refusal("read") is not None:
            return LookupResult()
        return await self._reply(Question(session_id, True, until), asked)

    async def line(self, source_file: str, number: int, asked: RequestContext) -> LookupResult:
        """The text of a line of a raw log, for its page; waits for a reader."""
        if asked.caller.refusal("read") is not None or not asked.caller.view.shows_texts:
            return LookupResult()
        return await self._reply(LineQuestion(source_file, number), asked)

    async def trace(self, question: TraceQuestion, asked: RequestContext) -> LookupResult:
        """A run with what happened inside it, for its page; waits for a reader."""
        return LookupResult() if asked.caller.refusal("read") is not None else await self._reply(question, asked)

    async def suggestions(self, agent_id: str | None, days: int, asked: RequestContext) -> LookupResult:
        """The suggested targets of all agents, of which the caller may not see each; waits for a reader.

        Args:
            agent_id: only this agent's; None for all.
            days: UTC days to look at.
            asked: the request.
        """
        if asked.caller.refusal("read") is not None:
            return LookupResult()
        return await self._reply(SuggestionQuestion(agent_id, days), asked)

    async def _reply(self, question: AnyQuestion, asked: RequestContext) -> LookupResult:
        """The answer to a question, or why there is none now."""
        try:
            found = await self._look_up(question, asked)
        except CrowdedError as error:
            return LookupResult(why_not=str(error))
        except ReaderError as error:
            return LookupResult(why_not=SENTENCES[error.kind])
        return LookupResult(None if found is None else json.loads(found.body))

    async def _look_up(self, question: AnyQuestion, asked: RequestContext) -> SessionAnswer | None:
        """The answer to a question; None where there is none that the caller may see.

        Raises:
            CrowdedError: the caller has asked for too many.
            ReaderError: the warehouse cannot be asked now.
        """
        client = f"token {asked.caller.name}" if asked.caller.name else client_of(asked.address)
        is_work = not self._sessions.costs_nothing(question, asked.caller.view)
        if is_work and (wait_s := self._work.take(client, time.monotonic())):
            raise CrowdedError(wait_s)
        try:
            found = await self._sessions.find(question)
        finally:
            if is_work:
                self._work.give_back(client)
        return found if found is not None and found.is_visible(asked.caller.view) else None

    def status(self, asked: RequestContext) -> dict[str, Any]:
        """The age of the data, for everybody; its amount, for those who may read it."""
        snapshot, caller = self._refresher.snapshot, asked.caller
        may_count = caller.refusal("read") is None
        return {
            **self._refresher.describe(),
            "is_outdated": snapshot is not None and self._age.left_s(snapshot.known_until, datetime.now(UTC)) < 0,
            "agents": (snapshot.count(None, caller.view) if snapshot else 0) if may_count else None,
            "models": (
                (len(snapshot.models(caller.view)) if snapshot else 0)
                if may_count and caller.view.teams is None
                else None
            ),
        }

    def metrics(self, asked: RequestContext) -> Answer:
        """The page for Prometheus, also while there is no data yet."""
        if (refusal := self._aggregates_refusal(asked, NO_METRICS)) is not None:
            return refusal
        accept = b",".join(value for name, value in asked.headers if name == b"accept")
        body, content_type = self._metrics.page(accept.decode("latin-1"), asked.caller.view)
        return momentary(body, content_type.encode())

    def liveness(self) -> Answer:
        """Say that requests are answered at all."""
        return short({"status": "alive"})

    def readiness(self) -> Answer:
        """Say whether there is data to answer from that is not outdated."""
        snapshot = self._refresher.snapshot
        if snapshot is None:
            return self._not_ready()
        most_s, left_s = self._age.most_s, self._age.left_s(snapshot.known_until, datetime.now(UTC))
        if left_s < 0:
            sentence = f"the data is {most_s - left_s:,.0f} s old, more than the {most_s:,.0f} s that are allowed"
            return problem(503, sentence)
        return short({"status": "ready"})

    def _document(self, agent_id: bytes, asked: RequestContext, where_none: str) -> Answer:
        snapshot, view = self._open(asked, "documents"), asked.caller.view
        if isinstance(snapshot, Answer):
            return snapshot
        place = snapshot.find(agent_id, view)
        if place is None:
            return problem(404, where_none)
        return self._answer(asked, snapshot.document(place, is_full_view=view.is_full), snapshot, outdated_document)

    def _open(self, asked: RequestContext, role: Role) -> Snapshot | Answer:
        """The data, or why the caller does not get it."""
        if (refusal := asked.caller.refusal(role)) is not None:
            return refusal
        return self._refresher.snapshot or self._not_ready()

    def _open_aggregates(self, asked: RequestContext) -> Snapshot | Answer:
        """The same for what is measured over the agents of all teams."""
        return self._aggregates_refusal(asked, NO_AGGREGATES) or self._open(asked, "read")

    def _aggregates_refusal(self, asked: RequestContext, why_not_for_teams: str) -> Answer | None:
        """The reason why the caller may not see what is of all teams; None if it may."""
        if (refusal := asked.caller.refusal("read")) is not None:
            return refusal
        return None if asked.caller.view.teams is None else problem(403, why_not_for_teams)

    def _answer(
        self,
        asked: RequestContext,
        body: bytes,
        snapshot: Snapshot,
        when_outdated: Callable[[bytes], bytes] | None = None,
    ) -> Answer:
        """An answer from memory.

        Args:
            asked: the request.
            body: the answer while the data is current.
            snapshot: the data.
            when_outdated: makes the answer once it is not; None where the answer says nothing of the present.
        """
        last_modified, now = snapshot.loaded_at, datetime.now(UTC)
        if when_outdated is not None and (outdated_at := self._age.outdated_at(snapshot.known_until, now)) is not None:
            # a second on: dates have no fractions, and what was loaded in that same second has changed since
            body, last_modified = when_outdated(body), max(last_modified, outdated_at + timedelta(seconds=1))
        seconds = self._age.cache_s(snapshot.known_until, now, self._cache_s)
        cache = (b"max-age=%d" if asked.caller.name is None else b"private, max-age=%d") % seconds
        return self._varied(answer(asked.headers, body, last_modified=last_modified, cache=cache))

    def _varied(self, made: Answer) -> Answer:
        if self._auth.has_tokens:  # a shared cache must not give one view to those who ask for the other
            made.headers.append((b"vary", b"authorization"))
        return made

    def _not_ready(self) -> Answer:
        fault = self._refresher.fault
        return self._unavailable(SENTENCES[fault] if fault else "the data is being loaded")

    def _unavailable(self, sentence: str) -> Answer:
        return problem(503, sentence, [(b"retry-after", b"%d" % FIRST_RETRY_S)])


def _candidate(name: str, snapshot: Snapshot, view: AccessScope) -> dict[str, Any]:
    model = snapshot.models(view).get(name)
    return {
        "model": name,
        "health_score": SCORE_OF_UNSEEN_MODEL if model is None else model["health_score"],
        "is_seen": model is not None,
    }
