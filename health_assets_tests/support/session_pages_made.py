"""A small fleet with sessions, tools and models, some of them of a personal agent or of a team, and its history."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

from health_assets.apps.serving.access_scope import AccessScope
from health_assets.apps.serving.history.copying_rules import Rules
from health_assets.apps.serving.pages.page import Page
from health_assets.apps.serving.pages.scoped_history import ScopedHistory
from health_assets.core.hours import HOUR, HourRange
from health_assets_tests.support.logs_made import START, Record, execution, line
from health_assets_tests.support.pages_made import FULL, World, world_of
from health_assets_tests.support.projects import Project

HOURS = HourRange(START, START + 3 * HOUR)
HOSTILE = "bad/one <script>\u202e\x1b " + "x" * 900
GOOD = {"confidence": 0.95, "loop_detection": 1.0, "tool_correctness": 0.9, "coherence": 0.9}
BAD = {"confidence": 0.3, "loop_detection": 0.4, "tool_correctness": 0.1, "coherence": 0.8}
SECRET = "Refused: key of customer 4711"
TARGETS: dict[str, Any] = {
    "agents": {
        "alpha": {"team": "red"},
        "beta": {"team": "blue"},
        "gamma": {"team": "red"},
        "mine": {"personal": True, "team": "red"},
    }
}


def _run(number: int, session: str, agent: str = "alpha", hour: int = 0, **fields: Any) -> Record:
    ended_at = START + hour * HOUR + timedelta(minutes=5 + 4 * number)
    name = f"{session[:8]}-{hour}-{number}"
    return execution(name, agent, ended_at, 30.0, session_id=session, **fields)


def _call(kind: str, number: int, name: str, at: Any, **fields: Any) -> Record:
    known = {"call_id": f"{kind}-{number}", "ended_at": at.isoformat(), "status": "success", "latency_ms": 700.0}
    return {"type": f"{kind}_call", ("tool" if kind == "tool" else "model"): name} | known | fields


def _sessions() -> Iterator[Record]:
    yield from (_run(number, "calm", signals=GOOD) for number in range(3))
    # signals of an execution that no log has
    at = (START + timedelta(minutes=50)).isoformat()
    yield {"type": "signals", "execution_id": "unseen", "session_id": "calm", "at": at, "confidence": 0.5}
    for number in range(9):
        yield _run(number, HOSTILE, hour=number // 5, signals=GOOD)
    yield _run(9, HOSTILE, hour=1, signals=BAD, status="failure", error=SECRET)
    yield from (_run(number, "silent", "beta", hour=2) for number in range(2))
    yield _run(0, "of mine", "mine", signals=BAD)
    yield _run(0, "mixed", "mine", signals=GOOD)
    yield _run(0, "mixed", "alpha", hour=1, signals=GOOD, status="failure")
    yield _run(0, "of two teams", "beta", signals=GOOD)
    yield _run(0, "of two teams", "alpha", hour=1, signals=GOOD)


def _calls() -> Iterator[Record]:
    """Calls of tools and models; those inside the run that failed are a tool's that failed and a model's."""
    failed = START + HOUR + timedelta(minutes=5 + 4 * 9)
    inside = {"execution_id": f"{HOSTILE[:8]}-1-9", "agent_id": "alpha"}
    number = iter(range(1000))
    yield _call("tool", next(number), "search", failed - timedelta(seconds=9), status="failure", error=SECRET, **inside)
    yield _call("model", next(number), "open", failed - timedelta(seconds=2), **inside)
    yield _call("tool", next(number), "search", failed, execution_id=inside["execution_id"], agent_id="mine")
    for agent, calls, failures in (("alpha", 10, 1), ("beta", 40, 10), ("mine", 5, 5)):
        for place in range(calls):
            at = START + timedelta(minutes=30, seconds=place)
            status = "failure" if place < failures else "success"
            error = {"error": f"{agent} {place}"} if place < failures else {}
            yield _call("tool", next(number), "fetch", at, agent_id=agent, status=status, latency_ms=100.0, **error)
    yield _call("tool", next(number), "once", START, agent_id="beta", status="failure")
    yield _call("tool", next(number), "diary", START + timedelta(minutes=6), execution_id="of mine-0-0")
    yield _call("tool", next(number), "common", START + timedelta(minutes=6), execution_id="calm-0-0")
    for hour in range(3):
        at = START + hour * HOUR + timedelta(minutes=10)
        for agent in ("alpha", "beta", "gamma"):
            failed_call = {"status": "failure", "error": SECRET} if hour else {}
            yield _call("model", next(number), "shaky", at, agent_id=agent, **failed_call)
        yield _call("model", next(number), "open", at, agent_id="alpha", response_model=f"open-{1 + hour // 2}")
        yield _call("model", next(number), "rare", at, agent_id="mine")
        yield _call("model", next(number), "rare", at, agent_id="alpha")


def made(folder: Path) -> World:
    """The fleet over `HOURS`, of which the last calls of `rare` are a personal agent's and one other's."""
    project = Project(folder, targets=TARGETS)
    project.write_log("fleet.jsonl", [line(record) for record in (*_sessions(), *_calls())])
    project.materialize(HOURS)
    return world_of(project, HOURS)


def look_at(world: World, view: AccessScope = FULL, **changes: Any) -> ScopedHistory:
    """What a caller sees, by the rules as they are."""
    look = world.look(view, **changes)
    return world.look(view, rules=Rules(look.ownership, world.project.settings).fingerprint, **changes)


def html_of(page: Page, look: ScopedHistory) -> str:
    """A page as the local user sees it."""
    around = {"signed_in": None, "missing": 0, "page_name": page.name, "target": "/", "is_led_here": False}
    around |= {"csrf": None, "has_tokens": False, "has_alerts": False}
    return page.written("html", {**look.frame(), **around})[0].decode()
