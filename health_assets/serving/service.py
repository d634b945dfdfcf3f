"""What is asked, answered from memory: health documents, lists, scores, models. No HTTP framework, no warehouse."""

import hmac
import math
from dataclasses import dataclass
from typing import Any

from health_assets.model_tracker import SCORE_OF_UNSEEN_MODEL, best_of
from health_assets.serving.answers import Answer, Headers, answer, dumps, problem
from health_assets.serving.client import SENTENCES, ReaderError
from health_assets.serving.ordering import Order
from health_assets.serving.refresher import FIRST_RETRY_S, Refresher
from health_assets.serving.sessions import Sessions
from health_assets.serving.snapshot import Snapshot
from health_assets.settings import Settings

NO_AGENT = "no agent of this name is known"
NO_HOST_AGENT = "no agent is configured as this host's own"
NO_SESSION = "there is no such session in the look-back, or it is not public"
MODEL_COLUMNS = (
    "model", "health_score", "success_count", "failure_count", "p50_latency_ms", "p95_latency_ms", "is_degraded",
    "last_error", "last_call_at", "window_calls", "degraded_threshold",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Page:
    """Which agents of a list are asked for."""

    state: str | None
    offset: int
    limit: int
    order: Order


@dataclass(frozen=True, slots=True)
class ListPage:
    """Which items of which list are asked for.

    Args:
        name: the list, `tools` or `usage`.
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
    """Answers requests; every method but `session` takes microseconds and may be called on the event loop.

    Args:
        settings: the token, the host's agent, how long answers may be kept.
        refresher: holds the data.
        sessions: looks up sessions.
    """

    def __init__(self, settings: Settings, refresher: Refresher, sessions: Sessions) -> None:
        self._refresher = refresher
        self._sessions = sessions
        self._host_agent = settings.host_agent.encode() if settings.host_agent else None
        self._token = settings.token.get_secret_value().encode() if settings.token else None
        seconds = math.ceil(settings.serve_refresh_s)
        self._public_cache = b"max-age=%d" % seconds
        self._private_cache = b"private, max-age=%d" % seconds

    def document(self, agent_id: bytes, request: Headers) -> Answer:
        """An agent's health document (source 3, section 4); 404 for one that is not known."""
        snapshot = self._refresher.snapshot
        if snapshot is None:
            return self._not_ready()
        place = snapshot.find(agent_id)
        if place is None:
            return problem(404, NO_AGENT)
        body = snapshot.document(place, is_full_view=self._is_full_view(request))
        return self._answer(request, body, snapshot)

    def host_document(self, request: Headers) -> Answer:
        """The health document of the agent that is configured as the host's own."""
        return problem(404, NO_HOST_AGENT) if self._host_agent is None else self.document(self._host_agent, request)

    def agents(self, page: Page, request: Headers) -> Answer:
        """A page of agents in the order that is asked for."""
        snapshot = self._refresher.snapshot
        if snapshot is None:
            return self._not_ready()
        is_full_view = self._is_full_view(request)
        head = {
            "hour": snapshot.hour.isoformat(),
            "total": snapshot.count(page.state, is_full_view=is_full_view),
            "offset": page.offset,
            "limit": page.limit,
        }
        items = snapshot.page(page.state, page.offset, page.limit, order=page.order, is_full_view=is_full_view)
        return self._answer(request, dumps(head)[:-1] + b',"agents":[' + items + b"]}", snapshot)

    def agent(self, agent_id: bytes, request: Headers) -> Answer:
        """An agent's score with everything behind it."""
        snapshot = self._refresher.snapshot
        if snapshot is None:
            return self._not_ready()
        place = snapshot.find(agent_id)
        if place is None:
            return problem(404, NO_AGENT)
        return self._answer(request, dumps(snapshot.explain(place, is_full_view=self._is_full_view(request))), snapshot)

    def models(self, request: Headers) -> Answer:
        """Every model's rolling health, by name (source 4)."""
        snapshot = self._refresher.snapshot
        if snapshot is None:
            return self._not_ready()
        hidden = () if self._is_full_view(request) else ("last_error",)
        models = [
            {name: model[name] for name in MODEL_COLUMNS if name not in hidden} for model in snapshot.models.values()
        ]
        return self._answer(request, dumps({"hour": snapshot.model_hour.isoformat(), "models": models}), snapshot)

    def listed(self, page: ListPage, request: Headers) -> Answer:
        """A page of tools or of usage; a personal agent's are for the token's holder alone."""
        snapshot = self._refresher.snapshot
        if snapshot is None:
            return self._not_ready()
        listing = snapshot.lists[page.name]
        agent_id = None if page.agent_id is None else page.agent_id.encode()
        total, items = listing.page(
            page.order, page.offset, page.limit, agent_id, is_full_view=self._is_full_view(request)
        )
        head = {**listing.head, "total": total, "offset": page.offset, "limit": page.limit}
        return self._answer(request, dumps(head)[:-1] + b',"%s":[' % page.name.encode() + items + b"]}", snapshot)

    def best_model(self, names: list[str], request: Headers) -> Answer:
        """The candidate with the highest score (source 4, best_model); of equal ones the first.

        Args:
            names: at least one.
            request: headers of the request.
        """
        snapshot = self._refresher.snapshot
        if snapshot is None:
            return self._not_ready()
        candidates = [_candidate(name, snapshot) for name in dict.fromkeys(names)]
        scores = {candidate["model"]: candidate["health_score"] for candidate in candidates}
        best = best_of(scores, names)
        body = {
            "hour": snapshot.model_hour.isoformat(),
            "model": best,
            "health_score": scores[best],
            "candidates": candidates,
        }
        return self._answer(request, dumps(body), snapshot)

    def session(self, session_id: str, request: Headers) -> Answer:
        """A session's scores; waits for a reader. A personal agent's sessions are nobody's but the token's holder's."""
        try:
            found = self._sessions.find(session_id)
        except ReaderError as error:
            return self._unavailable(SENTENCES[error.kind])
        if found is None or (found.is_personal and not self._is_full_view(request)):
            return problem(404, NO_SESSION)
        return answer(request, found.body, last_modified=found.read_at, cache=self._private_cache)

    def status(self) -> dict[str, Any]:
        """How old the data is."""
        return self._refresher.describe()

    def _is_full_view(self, request: Headers) -> bool:
        """Whether the request carries the token; compared in a time that tells nothing about it."""
        if self._token is None:
            return False
        given = [value.partition(b" ") for name, value in request if name == b"authorization"]
        if len(given) != 1 or given[0][0].lower() != b"bearer":
            return False
        return hmac.compare_digest(given[0][2], self._token)

    def _answer(self, request: Headers, body: bytes, snapshot: Snapshot) -> Answer:
        is_full_view = self._is_full_view(request)
        made = answer(
            request,
            body,
            last_modified=snapshot.loaded_at,
            cache=self._private_cache if is_full_view else self._public_cache,
        )
        if self._token is not None:  # a shared cache must not give one view to those who ask for the other
            made.headers.append((b"vary", b"authorization"))
        return made

    def _not_ready(self) -> Answer:
        fault = self._refresher.fault
        return self._unavailable(SENTENCES[fault] if fault else "the data is being loaded")

    def _unavailable(self, sentence: str) -> Answer:
        return problem(503, sentence, [(b"retry-after", b"%d" % FIRST_RETRY_S)])


def _candidate(name: str, snapshot: Snapshot) -> dict[str, Any]:
    model = snapshot.models.get(name)
    return {
        "model": name,
        "health_score": SCORE_OF_UNSEEN_MODEL if model is None else model["health_score"],
        "is_seen": model is not None,
    }
