"""Runs to look at: a trace with nested agents in which a tool fails, a trace of 10,000 spans, and runs without spans."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from health_assets.core.hours import HOUR, HourRange
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.pages_made import World, world_of
from health_assets_tests.support.projects import Project
from health_assets_tests.support.traces_made import Span, agent, chat, otlp_line, span, span_id, tool, trace_id

HOURS = HourRange(START, START + HOUR)
SECRET = "Refused: key of customer 4711"
PROMPT = "please refund order 99"
LONG_SPANS = 10_000
TARGETS: dict[str, Any] = {
    "agents": {
        "planner": {"team": "red"},
        "long": {"team": "red"},
        "diary": {"personal": True, "team": "red"},
        "billing": {"team": "blue"},
        "plain": {"team": "blue"},
        "silent": {"team": "blue"},
    }
}


def at(seconds: float) -> datetime:
    return START + timedelta(minutes=20, seconds=seconds)


def run_id(trace: int, number: int = 1) -> str:
    return f"{trace_id(trace)}:{span_id(number)}"


FAILING = run_id(1)
LONG = run_id(2)
WRAPPED = run_id(3)


def failing_trace() -> list[Span]:
    """A run of 30 s: two model calls, a search that it makes three times, nested agents, and a tool that fails."""
    asked = {"gen_ai__tool__call__arguments": PROMPT, "gen_ai__tool__call__result": "nothing"}
    refused = {"code": 2, "message": SECRET}
    return [
        agent(1, 1, at(30), runtime_s=30.0, gen_ai__input__messages=PROMPT, status={"code": 2, "message": "gave up"}),
        chat(1, 2, at(4), 1, runtime_s=4.0, gen_ai__usage__input_tokens=1200, gen_ai__usage__output_tokens=80),
        *(tool(1, 3 + number, at(5 + number), 1, runtime_s=0.8, **asked) for number in range(3)),
        span(1, 6, at(20), 1, runtime_s=12.0, name="hand over to 4711"),
        agent(1, 7, at(19), 6, runtime_s=10.0, gen_ai__agent__name="helper"),
        tool(1, 8, at(18), 7, runtime_s=6.0, gen_ai__tool__name="refund", status=refused),
        agent(1, 9, at(24), 1, runtime_s=3.0, gen_ai__agent__name="diary"),
        tool(1, 10, at(23), 9, runtime_s=1.0, gen_ai__tool__name="read-diary"),
        agent(1, 11, at(28), 1, runtime_s=3.0, gen_ai__agent__name="billing"),
        tool(1, 12, at(27), 11, runtime_s=1.0, gen_ai__tool__name="read-bills"),
        span(1, 13, at(26), 99, runtime_s=1.0),
    ]


def long_trace(count: int = LONG_SPANS) -> Iterator[Span]:
    """A run of so many spans: steps of 99 calls each, of which every 500th fails."""
    yield agent(2, 1, at(1200), runtime_s=1200.0, gen_ai__agent__name="long")
    each_s = 1190 / count
    step = 1
    for number in range(2, count + 1):
        ended_at = at(5 + number * each_s)
        if number % 100 == 2:
            step = number
            yield span(2, number, at(5 + (number + 100) * each_s), 1, runtime_s=100 * each_s)
        elif number % 3 == 0:
            yield chat(2, number, ended_at, step, runtime_s=0.1, gen_ai__usage__input_tokens=number)
        else:
            status = {"code": 2, "message": f"timeout {number}"} if number % 500 == 1 else None
            yield tool(2, number, ended_at, step, runtime_s=0.1, **({"status": status} if status else {}))


def wrapped_trace() -> list[Span]:
    """A run whose one model call is told by two spans, of the client and of the library above it."""
    return [
        agent(3, 1, at(30), runtime_s=10.0, gen_ai__agent__name="wrapper"),
        chat(3, 2, at(28), 1, runtime_s=4.0),
        chat(3, 3, at(27), 2, runtime_s=3.0),
    ]


def plain_lines() -> Iterator[str]:
    """A run that failed with calls, one without any but with its actions, and one call without a latency."""
    yield line(execution("p-1", "plain", at(60), 60.0, status="failure", error=SECRET, session_id="talk"))
    yield line(execution("s-1", "silent", at(60), 60.0, actions=["look", "act"]))
    calls = [("tool", "fetch", 10, 900.0, "success"), ("model", "small", 20, 4000.0, "success"),
             ("tool", "fetch", 30, 900.0, "failure"), ("tool", "wait", 40, None, "success")]  # fmt: skip
    for number, (kind, name, second, latency_ms, status) in enumerate(calls):
        call = {"type": f"{kind}_call", "call_id": f"c:{number}", kind: name, "ended_at": at(second).isoformat()}
        call |= {"status": status, "latency_ms": latency_ms, "execution_id": "p-1", "agent_id": "plain"}
        yield line({**call, "error": SECRET} if status == "failure" else call)


def made(folder: Path, long_spans: int = LONG_SPANS) -> World:
    """All of these runs in one hour."""
    project = Project(folder, targets=TARGETS)
    project.write_log("traces/failing.jsonl", [otlp_line(*failing_trace())])
    project.write_log("traces/long.jsonl", [otlp_line(*long_trace(long_spans))])
    twice = [otlp_line(*wrapped_trace()), otlp_line(*wrapped_trace()[1:], service=None)]
    project.write_log("traces/wrapped.jsonl", twice)
    project.write_log("plain.jsonl", list(plain_lines()))
    project.materialize(HOURS)
    return world_of(project, HOURS)
