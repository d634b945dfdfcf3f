"""Makes random raw logs: every kind of record, every way to write a time, duplicates, ties and bad lines.

Everything follows from the `random.Random` that is handed in, so that a failing test can be repeated.
"""

import json
import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from random import Random
from typing import Any

START = datetime(2026, 6, 7, tzinfo=UTC)
AGENTS = ("planner", "coder", "Ünïcode 研究", "O'Brien; --", "quiet")
BAD_LINES = (
    "not json at all",
    '{"type": "execution"',
    "[]",
    "17",
    '{"type": "execution", "execution_id": "x"}',
    '{"type": "no such type"}',
    '{"execution_id": "no type"}',
    '{"type": "trigger", "trigger_id": "t", "agent_id": "a", "fired_at": "yesterday", "status": "fired"}',
    '{"type": "signals", "execution_id": "x", "at": "2026-06-07T03:00:00Z"}',
    '{"type": "judgement", "execution_id": "x", "at": "2026-06-07T03:00:00Z", "violations": [{"constraint": "c"}]}',
)

Record = dict[str, Any]


def execution(execution_id: str, agent_id: str, ended_at: datetime, runtime_s: float = 60.0, **fields: Any) -> Record:
    """An execution as a record; it succeeded unless told otherwise."""
    record = {
        "type": "execution",
        "execution_id": execution_id,
        "agent_id": agent_id,
        "started_at": (ended_at - timedelta(seconds=runtime_s)).isoformat(),
        "ended_at": ended_at.isoformat(),
        "status": "success",
    }
    return record | fields


def cancellation(execution_id: str, agent_id: str, ended_at: datetime, **fields: Any) -> Record:
    """A run of a minute that its user cancelled, as a record."""
    times = {"started_at": (ended_at - timedelta(minutes=1)).isoformat(), "ended_at": ended_at.isoformat()}
    return {"type": "cancellation", "execution_id": execution_id, "agent_id": agent_id} | times | fields


def trigger(trigger_id: str, agent_id: str, fired_at: datetime, status: str = "fired", **fields: Any) -> Record:
    record = {"type": "trigger", "trigger_id": trigger_id, "agent_id": agent_id, "fired_at": fired_at.isoformat()}
    return record | {"status": status} | fields


def line(record: Record) -> str:
    return json.dumps(record, ensure_ascii=False)


def random_lines(
    random: Random,
    count: int,
    hours: int,
    agents: Sequence[str] = AGENTS,
    bad_share: float = 0.05,
    evaluation_share: float = 0.0,
    cancelled_share: float = 0.0,
) -> list[str]:
    """Lines whose events lie in the `hours` from `START` on; ids repeat now and then, within an hour and across."""
    lines = [
        random.choice(BAD_LINES) if random.random() < bad_share else line(random_record(random, count, hours, agents))
        for _ in range(count)
    ]
    others, cancelled = Random(count), Random(count + 1)
    lines = [
        line(_evaluation(others, count, hours, agents)) if others.random() < evaluation_share else one for one in lines
    ]
    return [
        line(_cancellation(cancelled, count, hours, agents)) if cancelled.random() < cancelled_share else one
        for one in lines
    ]


def random_record(random: Random, count: int, hours: int, agents: Sequence[str]) -> Record:
    kind = random.choices(
        ["execution", "trigger", "model_call", "tool_call", "signals", "judgement", "agent_update"],
        [60, 20, 8, 8, 4, 4, 4],
    )[0]
    at = START + timedelta(
        seconds=random.randrange(hours * 3600), microseconds=random.choice([0, 0, 999_999, 1, 500_000])
    )
    if random.random() < 0.1:
        at = at.replace(minute=0, second=0, microsecond=0)  # the first moment of an hour belongs to it
    record = {"type": kind, **_MAKERS[kind](random, at, count, random.choice(list(agents)))}
    if random.random() < 0.1:
        record["a field of tomorrow"] = {"nested": [1, None, {"agent_id": "x"}]}
    if random.random() < 0.3:
        keys = list(record)
        random.shuffle(keys)
        record = {key: record[key] for key in keys}
    return record


def random_time(random: Random, moment: datetime) -> str | float:
    """One of the ways in which a log may write a moment; exact to the microsecond."""
    ways = [
        lambda: moment.isoformat(),
        lambda: moment.isoformat().replace("+00:00", "Z"),
        lambda: moment.replace(tzinfo=None).isoformat(),
        lambda: moment.replace(tzinfo=None).isoformat(sep=" "),
        lambda: moment.astimezone(timezone(timedelta(hours=5, minutes=30))).isoformat(),
        lambda: moment.astimezone(timezone(timedelta(hours=-8))).isoformat(),
    ]
    if moment.microsecond == 0:
        ways.append(lambda: int(moment.timestamp()))
        ways.append(lambda: int(moment.timestamp()) * 1000)
    if moment.microsecond == 500_000:
        ways.append(lambda: moment.timestamp())
        ways.append(lambda: moment.timestamp() * 1000)
    return random.choice(ways)()


def _sometimes(random: Random, fields: Record, share: float = 0.25) -> Record:
    """Some of these fields, now and then as an explicit null."""
    return {name: None if random.random() < 0.1 else value for name, value in fields.items() if random.random() < share}


def _execution(random: Random, ended_at: datetime, count: int, agent_id: str) -> Record:
    runtime = timedelta(
        microseconds=random.choice([0, 1, 30_000_000, random.randrange(10**9), random.randrange(10**11)])
    )
    return {
        "execution_id": f"e{random.randrange(count)}",
        "agent_id": agent_id,
        "started_at": random_time(random, ended_at - runtime),
        "ended_at": random_time(random, ended_at),
        "status": random.choices(["success", "failure"], [4, 1])[0],
    } | _sometimes(
        random,
        {
            "session_id": f"s{random.randrange(5)}",
            "task_id": f"task {random.randrange(5)}",
            "condition": random.choice(["baseline", "fault", "structural", "prompt"]),
            "trigger_id": f"t{random.randrange(count)}",
            "model": random.choice(["m1", "m2"]),
            "error": 'a "quoted" \\ error\nover lines\t\u2028',
            "sla_s": random.choice([0, 0.5, 60, 1e6]),
            "sla_breached": random.random() < 0.5,
            "confidence": random.choice([0, 1, random.random()]),
            "api_calls": random.choice([0, 3, 2**63 - 1]),
            "error_count": random.randrange(3),
            "call_latency_s": random.random(),
            "actions": [random.choice(["search", "read", "", "ünï"]) for _ in range(random.randrange(4))],
            "signals": _sometimes(random, _signals(random), 0.7),
            "violations": _violations(random),
            "platform": random.choice(["k8s", ""]),
            "agent_version": random.choice(["1.0", "1.1", ""]),
            **_amounts(random),
        },
    )


def _amounts(random: Random) -> Record:
    """Tokens and cost; now and then as much as a field may hold."""
    return {
        "input_tokens": random.choice([0, random.randrange(10**6), 2**63 - 1]),
        "output_tokens": random.randrange(10**4),
        "cost_usd": random.random() * 10,
    }


def _trigger(random: Random, fired_at: datetime, count: int, agent_id: str) -> Record:
    return {
        "trigger_id": f"t{random.randrange(count)}",
        "agent_id": agent_id,
        "fired_at": random_time(random, fired_at),
        "status": random.choice(["fired", "failed"]),
    } | _sometimes(random, {"reason": "no slot"})


def _model_call(random: Random, ended_at: datetime, count: int, agent_id: str) -> Record:
    return {
        "call_id": f"c{random.randrange(count)}",
        "model": random.choice(["m1", "m2"]),
        "ended_at": random_time(random, ended_at),
        "status": random.choice(["success", "failure"]),
    } | _sometimes(
        random,
        {
            "agent_id": agent_id,
            "execution_id": random.choice(["e1", f"e{random.randrange(count)}"]),
            "latency_ms": random.random() * 1000,
            "error": "timeout",
            **_amounts(random),
        },
        0.5,
    )


def _tool_call(random: Random, ended_at: datetime, count: int, agent_id: str) -> Record:
    return {
        "call_id": f"c{random.randrange(count)}",
        "tool": random.choice(["search", "read", "ünï"]),
        "ended_at": random_time(random, ended_at),
        "status": random.choice(["success", "failure"]),
        "arguments": {"q": ended_at.second % 2},
        "result": f"{ended_at.minute % 2} Found",
    } | _sometimes(
        random,
        {
            "agent_id": agent_id,
            "execution_id": f"e{min(count, ended_at.minute % 20)}",
            "latency_ms": random.random() * 1000,
            "error": "no answer",
        },
        0.6,
    )


def _signals(random: Random) -> Record:
    return {
        "confidence": random.random(),
        "loop_detection": random.choice([0, 1, 0.5]),
        "tool_correctness": random.random(),
        "coherence": random.random(),
    }


def _signals_record(random: Random, at: datetime, count: int, agent_id: str) -> Record:
    return (
        {
            "execution_id": f"e{random.randrange(count)}",
            "at": random_time(random, at),
            "coherence": random.random(),
        }
        | _sometimes(random, {**_signals(random), "agent_id": agent_id, "session_id": "s1"}, 0.5)
        | {"confidence": 0.5}
    )


def _violations(random: Random) -> list[Record]:
    severities = ["low", "medium", "high"]
    return [{"constraint": "no deletes", "severity": random.choice(severities)} for _ in range(random.randrange(3))]


def _judgement(random: Random, at: datetime, count: int, agent_id: str) -> Record:
    return {
        "execution_id": f"e{random.randrange(count)}",
        "at": random_time(random, at),
        "violations": _violations(random),
    } | _sometimes(random, {"agent_id": agent_id}, 0.5)


def _agent_update(random: Random, at: datetime, count: int, agent_id: str) -> Record:
    del count
    return {
        "agent_id": agent_id,
        "at": random_time(random, at),
        "kind": random.choice(["restart", "model_change", "capability_update"]),
    } | _sometimes(random, {"detail": "to m2"}, 0.5)


def _evaluation(random: Random, count: int, hours: int, agents: Sequence[str]) -> Record:
    at = START + timedelta(seconds=random.randrange(hours * 3600))
    return {
        "type": "evaluation",
        "name": random.choice([QUALITY, "helpfulness"]),
        "at": random_time(random, at),
        "execution_id": f"e{random.randrange(count)}",
        "value": random.choice([1, 3.5, 5, 7]),
    } | _sometimes(random, {"agent_id": random.choice(list(agents)), "session_id": "s1", "label": "fine"})


def _cancellation(random: Random, count: int, hours: int, agents: Sequence[str]) -> Record:
    at = START + timedelta(seconds=random.randrange(hours * 3600))
    return cancellation(f"e{random.randrange(count)}", random.choice(list(agents)), at) | _sometimes(
        random,
        {"session_id": f"s{random.randrange(9)}", "model": "m1", "agent_version": "1.0", **_amounts(random)},
        0.6,
    )


QUALITY = "quality"
EVALUATORS = [
    {"match": QUALITY, "signal": "coherence", "scale": [1, 5]},
    {"match": "helpfulness", "outcome": True, "scale": [1, 7]},
]
"""Entries of the targets file for the evaluators of random lines."""

_MAKERS = {
    "execution": _execution,
    "trigger": _trigger,
    "model_call": _model_call,
    "tool_call": _tool_call,
    "signals": _signals_record,
    "judgement": _judgement,
    "agent_update": _agent_update,
}


def random_targets(random: Random, agents: Sequence[str] = AGENTS) -> Record:
    """Targets with defaults, overrides, retired agents and one that never appears in a log."""
    listed = [agent for agent in agents if random.random() < 0.6] + ["only in the targets"]
    return {
        "defaults": _random_overrides(random, 0.3),
        "agents": {agent: _random_overrides(random, 0.5) | _retired(random) for agent in listed},
    }


def _retired(random: Random) -> Record:
    return {"retired": True} if random.random() < 0.2 else {}


def _random_overrides(random: Random, share: float) -> Record:
    healthy_at = random.choice([85, 90.5, 99, 100])
    possible = {
        "expected_success_rate": random.choice([0, 0.5, 0.8, 1, 1.0]),
        "expected_failures_per_hour": random.choice([0, 0.01, 0.1, 2]),
        "expected_runtime_s": random.choice([None, 0.001, 30, 250, 1e5]),
        "deviation_allowed": random.choice([0.05, 0.2, 3]),
        "n_full": random.choice([1, 5, 20]),
        "long_running_factor": random.choice([0.5, 1, 5]),
        "stability_threshold": random.choice([1, 3, 15, 0.5]),
        "sla_breach_threshold": random.choice([1, 5, 2.5]),
        "trigger_failure_threshold": random.choice([1, 5, 2.5]),
        "sla_s": random.choice([None, 0, 60, 1e5]),
        "platform": random.choice([None, "k8s"]),
        "personal": random.random() < 0.5,
    }
    chosen = {name: value for name, value in possible.items() if random.random() < share}
    if random.random() < share:
        chosen |= {"healthy_at": healthy_at, "degraded_at": random.choice([0, 65, healthy_at])}
    return chosen


def cut_into_files(random: Random, lines: Sequence[str]) -> dict[str, list[str]]:
    """Deal the lines out to files at several depths, some gzipped."""
    names = ["a.jsonl", "b.jsonl.gz", "deep/er/c.jsonl", "deep/d.jsonl.gz", "Ünïcode dir/e e.jsonl"]
    files: dict[str, list[str]] = {name: [] for name in random.sample(names, math.ceil(random.random() * len(names)))}
    for one in lines:
        files[random.choice(list(files))].append(one)
    return files
