"""Sample logs for the demo: two days of a small, invented fleet that gives every part of the scores something to show.

What belongs here: generators that tell the fleet's story as raw logs, and lines that break a rule (`BAD_LINES`). What
does not: the story (`sample_fleet`), writing files (`cli.demo`), reading logs or scoring them; nothing here knows how
that is done. There is no clock: who calls says when the two days end, and the story is the same whenever they do. Every
agent has its own seed, so the files are the same bytes on every run, and a new agent leaves the others as they are.
"""

import gzip
import itertools
import json
import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from health_assets.apps.demo.sample_fleet import FLEET, LARGE, SPAN_H, USD_PER_MILLION_TOKENS, Phase, Profile
from health_assets.core.hours import HOUR, HourRange

Record = dict[str, Any]

SEED = 2026
DIGIT = "[0-9]"

SIGNALS = ("confidence", "loop_detection", "tool_correctness", "coherence")
CONDITIONS = {"baseline": 7, "fault": 1, "structural": 1, "prompt": 1}  # how often trials meet each
ERRORS = ("ToolTimeout: no answer in 30 s", "RateLimited: 429", "OutputInvalid: schema mismatch", "ContextOverflow")
RUNS_PER_SESSION = 8
USERS = 5
RUNS_PER_TRIAL = 3  # of an agent that is evaluated, every third run is a trial
HANG_FACTOR = 12
TROUBLED_TRIAL_FACTOR = 0.85  # of the success rate, in a condition that is not baseline


@dataclass(frozen=True)
class Feed:
    """One source of logs."""

    path: str  # `strftime` pattern of its files below the raw root; `.gz` makes them compressed
    clock: str  # how it writes a moment, a key of `CLOCKS`


FEEDS = {
    "support": Feed("support/%Y-%m-%d/executions.jsonl", "zulu"),
    "finance": Feed("finance/%Y/%m/%d.jsonl.gz", "epoch_ms"),
    "engineering": Feed("engineering/agents-%Y-%m-%d.jsonl.gz", "offset"),
    "office": Feed("office.jsonl", "no_zone"),
    "trigger": Feed("scheduler/triggers.jsonl", "epoch_s"),
    "model_call": Feed("gateway/%Y-%m-%d/model-calls.jsonl.gz", "epoch_s"),
    "tool_call": Feed("tools/%Y-%m-%d/tool-calls.jsonl.gz", "epoch_ms"),
    "signals": Feed("evaluation/signals.jsonl.gz", "zulu"),
    "judgement": Feed("evaluation/judgements.jsonl", "offset"),
    "agent_update": Feed("agent-updates.jsonl", "zulu"),
}
CLOCKS: dict[str, Callable[[datetime], str | float]] = {
    "zulu": lambda moment: moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    "offset": lambda moment: moment.astimezone(timezone(timedelta(hours=2))).isoformat(timespec="milliseconds"),
    "no_zone": lambda moment: moment.replace(tzinfo=None).isoformat(timespec="milliseconds"),
    "epoch_s": lambda moment: round(moment.timestamp(), 3),
    "epoch_ms": lambda moment: round(moment.timestamp() * 1000),
}
JUDGE = {"judged_by": "agent", "judge": "policy-watch"}
REDELIVERED = ("finance", "redelivered/finance-%Y-%m-%d.jsonl.gz")
"""A feed whose log of the second day is delivered twice, and the pattern of the copy."""

_RUN = '{"type": "execution", "agent_id": "support-triage", "started_at": "%Y-%m-%dT09:00:00Z"'
BAD_LINES = {  # by feed; `strftime` patterns too
    "support": (
        _RUN + ', "execution_id": "bad-1", "ended_at": "%Y-%m-%dT09:0',  # the writer died
        _RUN + ', "execution_id": "bad-2", "ended_at": "%Y-%m-%dT08:59:00Z", "status": "success"}',  # clock set back
        _RUN + ', "execution_id": "bad-3", "ended_at": "%Y-%m-%dT09:01:00Z"}',  # no status
        _RUN + ', "execution_id": "bad-4", "ended_at": "%Y-%m-%dT09:01", "status": "success", "confidence": 97}',
    ),
    "model_call": (  # a number as text
        '{"type": "model_call", "call_id": "bad-5", "model": "atlas-mini", "ended_at": "%Y-%m-%dT09:01:00Z", '
        '"status": "success", "latency_ms": "812"}',
    ),
    "trigger": ('{"type": "heartbeat", "at": "%Y-%m-%dT09:00:00Z"}',),  # a type that does not exist
    "agent_update": (  # a day that does not exist; what is no JSON
        '{"type": "agent_update", "agent_id": "crm-sync", "kind": "restart", "at": "%Y-02-30T09:00:00Z"}',
        "Traceback (most recent call last):",
    ),
}


# -- telling it --------------------------------------------------------------------------------------------------------


def span_until(end: datetime) -> HourRange:
    """The hours of the story where it ends with this whole hour, excluded."""
    return HourRange(end - SPAN_H * HOUR, end)


def sample_files(span: HourRange) -> dict[str, bytes]:
    """Content of every raw log, whose events fill these `SPAN_H` hours, by its path below the raw root."""
    lines = defaultdict(list)
    for moment, feed, record in sorted(_logged(span), key=lambda entry: entry[0]):
        lines[moment.strftime(feed.path)].append(json.dumps(record, default=CLOCKS[feed.clock]))
    for name, bad_lines in bad_lines_by_file(span).items():
        middle = len(lines[name]) // 2
        lines[name][middle:middle] = bad_lines
    files = {name: _encoded(name, content) for name, content in lines.items()}
    source, copy = REDELIVERED
    second_day = span.start + timedelta(days=1)
    return files | {second_day.strftime(copy): files[second_day.strftime(FEEDS[source].path)]}


def bad_lines_by_file(span: HourRange) -> dict[str, list[str]]:
    """The lines that break a rule, by the path of the log that holds them: the one of its feed's second day.

    The first day may begin behind the times that they name.
    """
    day = span.start + timedelta(days=1)
    return {day.strftime(FEEDS[feed].path): [day.strftime(line) for line in lines] for feed, lines in BAD_LINES.items()}


def sample_globs() -> list[str]:
    """Patterns of all paths below the raw root that the story may write, whenever it ends."""
    patterns = [*(feed.path for feed in FEEDS.values()), REDELIVERED[1]]
    return [re.sub("%[md]", 2 * DIGIT, pattern.replace("%Y", 4 * DIGIT)) for pattern in patterns]


def _encoded(name: str, lines: list[str]) -> bytes:
    content = "".join(f"{line}\n" for line in lines).encode()
    return gzip.compress(content, mtime=0) if name.endswith(".gz") else content  # with the time, bytes would differ


def _logged(span: HourRange) -> Iterator[tuple[datetime, Feed, Record]]:
    """Every record within the span, with its event time and its feed; what ends later is not logged yet."""
    for profile in FLEET:
        for record in _records(profile, random.Random(f"{SEED} {profile.agent_id}"), span.start):
            moment = next(record[name] for name in ("ended_at", "fired_at", "at") if name in record)
            if span.start <= moment < span.end:
                yield moment, FEEDS[profile.feed if record["type"] == "execution" else record["type"]], record


# -- the records of one agent ------------------------------------------------------------------------------------------


def _records(profile: Profile, rng: random.Random, start: datetime) -> Iterator[Record]:
    numbers = itertools.count(1)
    from_h = 0.0
    for phase in profile.phases:
        if phase.update:
            kind, detail = phase.update
            update = {"agent_id": profile.agent_id, "at": _moment(start, from_h), "kind": kind, "detail": detail}
            yield {"type": "agent_update", **update}
        for started_at in _arrivals(rng, phase.runs_per_hour, start, from_h, phase.until_h):
            yield from _run(profile, phase, rng, next(numbers), started_at)
        for fired_at in _arrivals(rng, phase.failed_triggers_per_hour, start, from_h, phase.until_h):
            trigger = _trigger(profile, next(numbers), fired_at)
            yield trigger | {"status": "failed", "reason": "mailbox credentials expired"}
        from_h = phase.until_h


def _moment(start: datetime, hours: float) -> datetime:
    return start + timedelta(milliseconds=round(hours * 3_600_000))


def _arrivals(
    rng: random.Random, per_hour: float, start: datetime, from_h: float, until_h: float
) -> Iterator[datetime]:
    """Moments at random, `per_hour` on average."""
    at_h = from_h
    while per_hour and (at_h := at_h + rng.expovariate(per_hour)) < until_h:
        yield _moment(start, at_h)


def _run(profile: Profile, phase: Phase, rng: random.Random, number: int, started_at: datetime) -> Iterator[Record]:
    """One execution and the records that go with it."""
    execution = _execution(profile, phase, rng, number, started_at)
    if profile.has_triggers:
        trigger = _trigger(profile, number, started_at)
        yield trigger | {"status": "fired"}
        execution["trigger_id"] = trigger["trigger_id"]
    if phase.model:
        yield _model_call(execution, rng)
    yield from _tool_calls(profile, phase, execution, number)
    if profile.has_sessions:
        yield from _opinions(execution, rng)
    yield execution


def _execution(profile: Profile, phase: Phase, rng: random.Random, number: int, started_at: datetime) -> Record:
    trial = _trial(profile, rng) if profile.tasks and number % RUNS_PER_TRIAL == 0 else {}
    factor = TROUBLED_TRIAL_FACTOR if trial.get("condition", "baseline") != "baseline" else 1
    succeeded = rng.random() < phase.success_rate * factor
    runtime_s = phase.runtime_s * rng.lognormvariate(0, 0.2) * (HANG_FACTOR if rng.random() < phase.hang_rate else 1)
    record = {
        "type": "execution",
        "execution_id": f"{profile.agent_id}-{number:05}",
        "agent_id": profile.agent_id,
        "started_at": started_at,
        "ended_at": started_at + timedelta(milliseconds=round(runtime_s * 1000)),
        "status": "success" if succeeded else "failure",
        **({"model": phase.model} if phase.model else {}),
        **({} if succeeded else {"error": rng.choice(ERRORS)}),
    }
    if trial and number % 2 == 0:  # with dice of its own, so that nothing else changes
        trial["violations"] = _violations(random.Random(f"{SEED} judge {profile.agent_id} {number}"))
    details = _details(profile, rng, runtime_s, succeeded) if trial or profile.has_sessions else {}
    usage = _usage(f"{profile.agent_id} {number}", LARGE) if profile.tells_usage else {}
    version = {"agent_version": f"1.{profile.phases.index(phase)}.0"}
    return record | version | usage | trial | details | _extras(profile, rng, number, runtime_s)


def _trial(profile: Profile, rng: random.Random) -> Record:
    (condition,) = rng.choices(list(CONDITIONS), list(CONDITIONS.values()))
    task = f"{profile.agent_id}-task-{rng.randrange(profile.tasks) + 1}"
    return {"task_id": task, "task_source": "stated", "input": f"solve {task}", "condition": condition}


def _details(profile: Profile, rng: random.Random, runtime_s: float, succeeded: bool) -> Record:
    """The agent's confidence, actions, and their cost."""
    actions = list(profile.actions)
    if rng.random() < 0.25:  # one step again
        place = rng.randrange(len(actions))
        actions.insert(place, actions[place])
    return {
        "confidence": _share(rng, 0.9 if succeeded else 0.6),
        "actions": actions,
        "api_calls": len(actions),
        "error_count": 0 if succeeded else rng.randint(1, 3),
        "call_latency_s": round(0.8 * runtime_s / len(actions), 3),
        "cost_usd": round(len(actions) * rng.uniform(0.002, 0.004), 5),
    }


def _extras(profile: Profile, rng: random.Random, number: int, runtime_s: float) -> Record:
    """Fields that only some agents' logs have."""
    extras: Record = {}
    if profile.feed == "office":
        extras["platform"] = "desk-agents"
    if profile.has_sessions:
        extras["session_id"] = f"{profile.agent_id}-session-{number // RUNS_PER_SESSION + 1}"
        extras["user_id"] = f"user-{number // RUNS_PER_SESSION % USERS + 1}"
    if profile.is_judged:
        extras["is_timed"] = True
        extras["violations"] = _violations(rng)
    if profile.sla_s is not None:
        extras |= {"sla_s": profile.sla_s, "sla_breached": runtime_s > profile.sla_s}
    return extras


def _opinions(execution: Record, rng: random.Random) -> Iterator[Record]:
    """Signals, in the execution itself or later, and for some executions a judgement, always later."""
    usual = 0.92 if execution["status"] == "success" else 0.45
    signals = {name: _share(rng, usual) for name in SIGNALS}
    later = {"execution_id": execution["execution_id"], "agent_id": execution["agent_id"]}
    later["at"] = execution["ended_at"] + timedelta(minutes=rng.randint(2, 180))
    if rng.random() < 0.7:
        execution["signals"] = signals
    else:
        yield {"type": "signals", **later, "session_id": execution["session_id"], **signals}
    if rng.random() < 0.3:
        yield {"type": "judgement", **later, "violations": _violations(rng), **JUDGE}


def _violations(rng: random.Random) -> list[Record]:
    if rng.random() >= 0.04:
        return []
    constraint = rng.choice(("no_personal_data", "stay_in_budget", "ask_before_sending"))
    return [{"constraint": constraint, "severity": rng.choice(("low", "low", "medium", "high"))}]


def _model_call(execution: Record, rng: random.Random) -> Record:
    has_failed = execution["status"] == "failure" and rng.random() < 0.8
    runtime = execution["ended_at"] - execution["started_at"]
    return {
        "type": "model_call",
        "call_id": f"{execution['execution_id']}-call",
        "model": execution["model"],
        "agent_id": execution["agent_id"],
        "execution_id": execution["execution_id"],
        "ended_at": execution["started_at"] + 0.9 * runtime,
        "status": "failure" if has_failed else "success",
        "latency_ms": round(runtime.total_seconds() * rng.uniform(150, 400)),
        **({"error": execution["error"]} if has_failed else _answered(execution)),
    }


def _answered(execution: Record) -> Record:
    """The model that answered a call, as providers name it, what it answered, and what that cost."""
    name = execution["model"]
    output = f"answered {execution['execution_id']}"
    return {"response_model": f"{name}-2026-05-04", "output": output, **_usage(execution["execution_id"], name)}


def _tool_calls(profile: Profile, phase: Phase, execution: Record, number: int) -> Iterator[Record]:
    """The calls of tools in a run, one after another; with dice of their own, so that nothing else changes."""
    if not profile.tools:
        return
    rng = random.Random(f"{SEED} tools {profile.agent_id} {number}")
    failure_rates = dict([phase.failing_tool]) if phase.failing_tool else {}
    runtime_ms = (execution["ended_at"] - execution["started_at"]) / timedelta(milliseconds=1)
    for place, tool in enumerate(profile.tools, start=1):
        into_the_run = timedelta(milliseconds=round(place / (len(profile.tools) + 1) * runtime_ms))
        has_failed = rng.random() < failure_rates.get(tool.name, tool.failure_rate)
        yield {
            "type": "tool_call",
            "call_id": f"{execution['execution_id']}-{tool.name}",
            "tool": tool.name,
            "agent_id": execution["agent_id"],
            "execution_id": execution["execution_id"],
            "ended_at": execution["started_at"] + into_the_run,
            "status": "failure" if has_failed else "success",
            "latency_ms": round(tool.latency_ms * rng.lognormvariate(0, 0.4), 1),
            "arguments": {"about": number},
            **({"error": tool.error} if has_failed else {"result": f"{tool.name} of {number}"}),
        }


def _usage(dice: str, model: str) -> Record:
    """Tokens and cost of a call to a model, by dice of their own."""
    rng = random.Random(f"{SEED} usage {dice}")
    tokens = round(rng.lognormvariate(7.6, 0.4)), round(rng.lognormvariate(5.8, 0.5))
    cost_usd = sum(count * price / 1e6 for count, price in zip(tokens, USD_PER_MILLION_TOKENS[model], strict=True))
    parts = {
        "cache_read_tokens": tokens[0] * 2 // 5, "cache_creation_tokens": tokens[0] // 10,
        "reasoning_tokens": tokens[1] // 4,
    }  # fmt: skip
    return {"input_tokens": tokens[0], "output_tokens": tokens[1], **parts, "cost_usd": round(cost_usd, 6)}


def _trigger(profile: Profile, number: int, fired_at: datetime) -> Record:
    trigger_id = f"{profile.agent_id}-trigger-{number:05}"
    return {"type": "trigger", "trigger_id": trigger_id, "agent_id": profile.agent_id, "fired_at": fired_at}


def _share(rng: random.Random, usual: float) -> float:
    """A share around its usual value."""
    return round(min(1.0, max(0.0, rng.gauss(usual, 0.06))), 3)
