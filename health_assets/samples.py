"""Sample logs for the demo: two days of a small, invented fleet that gives every part of the scores something to show.

What belongs here: the fleet's story (`FLEET`, `TARGETS_YAML`, `BAD_LINES`) and the generators that tell it as raw logs.
What does not: writing files (`demo`), reading logs or scoring them; nothing here knows how that is done.
There is no clock: who calls says when the two days end, and the story is the same whenever they do. Every agent has its
own seed, so the files are the same bytes on every run, and a new agent leaves the others as they are.
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

from health_assets.hours import HOUR, HourRange

Record = dict[str, Any]

SEED = 2026
SPAN_H = 48
DIGIT = "[0-9]"

SIGNALS = ("confidence", "loop_detection", "tool_correctness", "coherence")
CONDITIONS = {"baseline": 7, "fault": 1, "structural": 1, "prompt": 1}  # how often trials meet each
ERRORS = ("ToolTimeout: no answer in 30 s", "RateLimited: 429", "OutputInvalid: schema mismatch", "ContextOverflow")
RUNS_PER_SESSION = 8
RUNS_PER_TRIAL = 3  # of an agent that is evaluated, every third run is a trial
HANG_FACTOR = 12
TROUBLED_TRIAL_FACTOR = 0.85  # of the success rate, in a condition that is not baseline


@dataclass(frozen=True)
class Phase:
    """How an agent behaves until some hour of the span."""

    until_h: float = SPAN_H  # hours from the start of the span
    success_rate: float = 0.99
    runtime_s: float = 10.0  # of a typical run
    runs_per_hour: float = 25.0
    hang_rate: float = 0.0  # share of runs that take `HANG_FACTOR` times as long
    failed_triggers_per_hour: float = 0.0
    model: str | None = None  # None: calls no model through the gateway
    update: tuple[str, str] | None = None  # kind and detail of the update that it starts with
    failing_tool: tuple[str, float] | None = None  # a tool that fails more often than it does otherwise, and how often


@dataclass(frozen=True)
class Tool:
    """A tool that an agent calls once in every run; that it fails does not fail the run."""

    name: str
    latency_ms: float  # of a typical call
    failure_rate: float = 0.005
    error: str = "ToolTimeout: no answer in 10 s"


@dataclass(frozen=True)
class Profile:
    """An agent: where its logs go, how it behaves phase by phase, and what its logs tell."""

    agent_id: str
    feed: str  # key of `FEEDS` that its executions go to
    phases: tuple[Phase, ...]  # in order of time; it is silent after the last
    actions: tuple[str, ...] = ("plan", "search", "answer")
    tools: tuple[Tool, ...] = ()
    tasks: int = 0  # evaluation tasks that its trials attempt
    has_sessions: bool = False  # its runs get signals, some of them later, and judgements, all of them later
    has_triggers: bool = False
    is_judged: bool = False  # its own log tells violations
    tells_usage: bool = False  # its own log tells tokens and cost, rather than the gateway's log of its model calls
    sla_s: float | None = None  # time limit that its own log tells


# -- the story ---------------------------------------------------------------------------------------------------------

LARGE, NEWER, MINI = "atlas-large-1", "atlas-large-2", "atlas-mini"
USD_PER_MILLION_TOKENS = {LARGE: (3, 15), NEWER: (4, 20), MINI: (0.25, 1.25), "borealis-1": (1, 4)}  # in, out
INVOICE_STEPS = ("fetch", "read_text", "extract_fields", "validate", "post")
REVIEW_STEPS = ("read_diff", "run_linter", "search_code", "comment")

FLEET = (
    # healthy
    Profile("invoice-reader", "finance", (Phase(runtime_s=12, model=MINI),), INVOICE_STEPS, (Tool("post", 240),), 6),
    Profile("support-triage", "support", (
        Phase(until_h=20, runtime_s=8, model=LARGE),
        Phase(runtime_s=8, model=LARGE, update=("capability_update", "can refund up to 50 EUR")),
    ), has_sessions=True),
    Profile("order-tracker", "support", (Phase(runtime_s=4, runs_per_hour=30),), has_sessions=True),
    Profile(
        "meeting-assistant", "office", (Phase(runtime_s=25, runs_per_hour=10, model=MINI),),
        tools=(Tool("read_calendar", 180, failure_rate=0.02),), has_sessions=True,
    ),
    Profile("log-summarizer", "engineering", (Phase(runs_per_hour=40),)),
    # reliability: most runs fail since the model changed eight hours ago, which calls the linter with wrong arguments
    Profile("code-reviewer", "engineering", (
        Phase(until_h=40, success_rate=0.97, runtime_s=45, model=LARGE),
        Phase(
            success_rate=0.2, runtime_s=40, model=NEWER, update=("model_change", f"{LARGE} to {NEWER}"),
            failing_tool=("run_linter", 0.8),
        ),
    ), REVIEW_STEPS, (
        Tool("search_code", 90), Tool("run_linter", 1400, error="BadArguments: no such option --fix-all"),
    ), tasks=5),
    # reliability, but hardly: half of the runs fail, yet there are too few of them to be sure
    Profile("nightly-reporter", "finance", (Phase(success_rate=0.5, runtime_s=90, runs_per_hour=0.2),)),
    # performance: within its expected 20 s until 14 hours ago, far above since
    Profile("contract-summarizer", "office", (Phase(until_h=34, runtime_s=16), Phase(runtime_s=34)), tells_usage=True),
    # stability: fast on the whole, but a few runs hang; the restart did not help. It copes with a search that may fail
    Profile("web-researcher", "engineering", (
        Phase(until_h=30, runtime_s=18, hang_rate=0.02),
        Phase(runtime_s=18, hang_rate=0.02, update=("restart", "to get rid of runs that hang")),
    ), tools=(Tool("web_search", 650, failure_rate=0.15, error="RateLimited: 429"),), tells_usage=True),
    # operational: runs over the SLA; triggers that fail
    Profile("payment-reconciler", "finance", (Phase(until_h=36, runtime_s=30), Phase(runtime_s=52)), is_judged=True),
    Profile("inbox-watcher", "office", (
        Phase(until_h=38, runtime_s=5, runs_per_hour=12),
        Phase(runtime_s=5, runs_per_hour=12, failed_triggers_per_hour=1.5),
    ), has_triggers=True),
    # several at once
    Profile("crm-sync", "support", (
        Phase(until_h=28, success_rate=0.97, runtime_s=12, model="borealis-1"),
        Phase(success_rate=0.35, runtime_s=30, model="borealis-1", failing_tool=("update_contact", 0.6)),
    ), tools=(Tool("update_contact", 420, error="HTTP 503: try again later"),), sla_s=40),
    # silent for more than a day; retired (fraud-screener, in the targets alone, was never seen)
    Profile("newsletter-writer", "office", (Phase(until_h=18, runs_per_hour=5),)),
    Profile("faq-bot-v1", "support", (Phase(until_h=30, runs_per_hour=15),)),
)  # fmt: skip

TARGETS_HEADER = "# Targets of the demo's sample fleet; `health-assets demo` writes this file anew whenever it runs.\n"
TARGETS_YAML = (
    TARGETS_HEADER
    + """
# `defaults` are what is expected of the whole fleet, `agents` override them one by one. What is left out has the
# built-in default. A key that does not exist is an error, so a typing mistake cannot pass for a target.

defaults:
  expected_success_rate: 0.95     # share of runs that succeed
  expected_failures_per_hour: 1.0 # over the window
  n_full: 20                      # with fewer runs in the window, failures weigh less

agents:
  invoice-reader:
    expected_runtime_s: 15        # mean runtime; without it nothing is slow and nothing long-running
    platform: docuflow
  support-triage: {expected_runtime_s: 10}
  code-reviewer: {expected_runtime_s: 60}
  crm-sync: {expected_runtime_s: 15}
  nightly-reporter:
    expected_success_rate: 0.99   # it fails often, but runs rarely: n_full keeps that from looking like a disaster
  contract-summarizer:
    expected_runtime_s: 20
    deviation_allowed: 0.2        # 20% slower than expected and all performance points are gone
  web-researcher:
    expected_runtime_s: 30
    long_running_factor: 5        # a run of more than 5 x 30 s counts as long-running
    stability_threshold: 15       # that many in the window and all stability points are gone
  payment-reconciler:
    expected_runtime_s: 60
    sla_s: 60                     # a run of more than 60 s breaches the SLA, unless the log itself says otherwise
    sla_breach_threshold: 5       # that many in the window and all points for the SLA are gone
    healthy_at: 90                # money is at stake: 85 points are not enough here
  inbox-watcher: {trigger_failure_threshold: 5}
  meeting-assistant:
    personal: true                # someone's own agent: the health endpoint tells no more than its status
  newsletter-writer: {}           # listed, so it stays known however long it is silent
  fraud-screener: {}              # listed before its first run: it shows up as inactive
  faq-bot-v1:
    retired: true                 # its logs stay, but it is scored no more
"""
)


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
    """The lines that break a rule, by the path of the log that holds them: the one of its feed's first day."""
    day = span.start
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
    return {"task_id": f"{profile.agent_id}-task-{rng.randrange(profile.tasks) + 1}", "condition": condition}


def _details(profile: Profile, rng: random.Random, runtime_s: float, succeeded: bool) -> Record:
    """How sure the agent was, what it did and what that took."""
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
    """What only some agents' logs tell."""
    extras: Record = {}
    if profile.feed == "office":
        extras["platform"] = "desk-agents"
    if profile.has_sessions:
        extras["session_id"] = f"{profile.agent_id}-session-{number // RUNS_PER_SESSION + 1}"
    if profile.is_judged:
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
        yield {"type": "judgement", **later, "violations": _violations(rng)}


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
        **({"error": execution["error"]} if has_failed else _usage(execution["execution_id"], execution["model"])),
    }


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
            **({"error": tool.error} if has_failed else {}),
        }


def _usage(dice: str, model: str) -> Record:
    """Tokens and cost of a call to a model, by dice of their own."""
    rng = random.Random(f"{SEED} usage {dice}")
    tokens = round(rng.lognormvariate(7.6, 0.4)), round(rng.lognormvariate(5.8, 0.5))
    cost_usd = sum(count * price / 1e6 for count, price in zip(tokens, USD_PER_MILLION_TOKENS[model], strict=True))
    return {"input_tokens": tokens[0], "output_tokens": tokens[1], "cost_usd": round(cost_usd, 6)}


def _trigger(profile: Profile, number: int, fired_at: datetime) -> Record:
    trigger_id = f"{profile.agent_id}-trigger-{number:05}"
    return {"type": "trigger", "trigger_id": trigger_id, "agent_id": profile.agent_id, "fired_at": fired_at}


def _share(rng: random.Random, usual: float) -> float:
    """A share around its usual value."""
    return round(min(1.0, max(0.0, rng.gauss(usual, 0.06))), 3)
