"""Spans of Langfuse's traces and observations: which are written, what stands above them, what failed.

What belongs here: the spans of one trace, known as a whole or row by row. What does not: what a field says
(`langfuse_records`) and how a file is read (`langfuse`).

A trace has a span of its own, of an agent, above its root observations. It carries the agent's name where somebody gave
the trace a name or a root observation tells one; otherwise the rules for unnamed agent spans hold.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import compress

from health_assets.logs.formats import langfuse_records as records
from health_assets.logs.formats.foreign_lines import (
    Line,
    Record,
    Source,
    UnusableRecordError,
    as_content,
    as_time,
    present,
    rejected,
    unix_nano,
)
from health_assets.logs.formats.langfuse_outcomes import Outcome, Times
from health_assets.logs.formats.otlp_writing import attributes_of, line_of_spans, status_of
from health_assets.logs.json_values import as_name, as_number

OPERATIONS = {"chat": "chat", "tool": "execute_tool", "agent": "invoke_agent", "workflow": "invoke_workflow"}
OPEN = "Langfuse observation without an end, open still: it counts once an export has its end"
OPEN_TRACE = "Langfuse trace with an open root and no output, open still: it counts once an export has its end"
LAST_CALL_FAILED = (
    "Langfuse trace whose last model call failed while nothing says that the run did: counted as a success"
)


@dataclass(frozen=True, kw_only=True)
class Trace:
    """The facts of the trace that an observation belongs to."""

    langfuse_id: str
    name: str | None
    agent: str | None = None
    session: str | None = None
    user: str | None = None
    version: str | None = None
    input: str | None = None


@dataclass(kw_only=True)
class _Run:
    """A trace as rows of its observations tell of it, one after another."""

    outcome: Outcome = field(default_factory=Outcome)
    trace: Trace | None = None
    times: Times | None = None
    open: set[str] = field(default_factory=set)


Runs = dict[str, _Run]
"""Langfuse's ids of the traces that a file told of so far."""


# -- a trace with its observations -----------------------------------------------------------------------------------


def lines_of_trace(source: Source, number: int, record: Record, held: list[Record]) -> Iterator[Line]:
    """The spans of a trace that is known as a whole, and what of it cannot be used.

    Args:
        source: the file.
        number: the trace's place in the file.
        record: the trace.
        held: its observations, as they are written.

    Raises:
        UnusableRecordError: its agent, its times or its outcome are not known.
    """
    trace_key = records.required_name(record, "id")
    observations = [records.normal(item) for item in held]
    known = {str(item.get("id")) for item in observations}
    are_roots = [records.is_root(item, trace_key, known) for item in observations]
    roots = list(compress(observations, are_roots))
    started_at = as_time(record.get("timestamp"), "timestamp")
    trace = _trace(record, roots)
    spans, faults, ends, outcome = [], [], [started_at], Outcome()
    for raw, item, is_root in zip(held, observations, are_roots, strict=True):
        try:
            ends += _add(outcome, item, is_root=is_root)
            span = observation_span(source, item, trace, is_root=is_root)
        except UnusableRecordError as fault:
            if is_root and str(fault) == records.NO_LEVEL:
                raise
            faults.append(rejected(number, raw, str(fault)))
            span = _placeholder(item, trace, is_root=is_root)
        spans += [span] if span else []
    if outcome.error is None and record.get("output") is None and any(_is_open(root, is_root=True) for root in roots):
        source.notes[OPEN_TRACE] += 1
        yield from ([otlp(number, spans)] if spans else [])
        yield from faults
        return
    latency = as_number(record.get("latency"))
    if latency is not None and latency >= 0 and (latency > 0 or not spans):
        ends.append(_end(started_at, latency))
    elif not spans:
        raise UnusableRecordError("the trace has neither a latency nor observations, so its end is not known")
    if outcome.error is None and outcome.last_call is not None and outcome.last_call[1]:
        source.notes[LAST_CALL_FAILED] += 1
    total = as_number(record.get("totalCost")) or None  # 0 is how Langfuse writes that it knows no price
    yield otlp(number, [_span_of_trace(trace, (min(ends), max(ends)), outcome.error, total), *spans])
    yield from faults


def _trace(record: Record, roots: list[Record]) -> Trace:
    name = as_name(record.get("name"))
    trace_key = records.required_name(record, "id")
    uppermost = [
        as_name(root.get("name"))
        for root in roots
        if root.get("type") != records.EVENT and records.is_root(root, trace_key)
    ]
    names_of_roots = [found for found in uppermost if found is not None]
    return Trace(
        langfuse_id=trace_key,
        name=name or next(iter(names_of_roots), None),
        agent=_agent(name, names_of_roots, roots),
        session=as_name(record.get("sessionId")),
        user=as_name(record.get("userId")),
        version=next(filter(None, map(records.version, (record, *roots))), None),
        input=as_content(
            next((told for told in (one.get("input") for one in (record, *roots)) if told is not None), None)
        ),
    )


def _agent(name: str | None, names_of_roots: list[str], roots: list[Record]) -> str | None:
    """The name that somebody gave the trace, which it does not just have from its root; else one that is told."""
    if name is not None and name not in names_of_roots:
        return name
    told = next(filter(None, map(records.agent_name, roots)), None)
    if told is None and name is not None and records.says_operation_only(name):
        return next(filter(None, map(records.service, roots)), name)
    return told


def executions_of_trace(record: Record, held: list[Record]) -> tuple[list[str], set[str]]:
    """The executions that a score of the whole trace is about.

    Args:
        record: the trace.
        held: its observations.

    Returns:
        The ids of the spans that are its executions, and Langfuse's ids of its root observations.
    """
    trace_key = records.required_name(record, "id")
    observations = {str(item.get("id")): item for item in map(records.normal, held)}
    roots = {key for key, item in observations.items() if records.is_root(item, trace_key, observations.keys())}
    if _trace(record, [observations[key] for key in roots]).agent is not None:
        return [records.trace_span_id(trace_key)], roots
    kinds = {key: records.kind(item) for key, item in observations.items() if records.agent_name(item)}
    runs = [kind for kind in ("agent", "workflow") if kind in kinds.values()][:1]  # a workflow runs the agents below it
    named = {key for key, kind in kinds.items() if kind in runs}
    outermost = [key for key in named if not named & set(_above(key, observations))]
    return [records.observation_span_id(key) for key in outermost] or [records.trace_span_id(trace_key)], roots


def _above(key: str, observations: dict[str, Record]) -> dict[str, None]:
    """Ids of what is above an observation."""
    found: dict[str, None] = {}
    parent = as_name(observations[key].get("parentObservationId"))
    while parent in observations and parent not in found:
        found[parent] = None
        parent = as_name(observations[parent].get("parentObservationId"))
    return found


def _add(outcome: Outcome, item: Record, *, is_root: bool) -> list[datetime]:
    """Let an observation count for the outcome; gives the times that it tells."""
    started_at = as_time(item.get("startTime"), "startTime")
    times = (started_at, started_at) if item.get("endTime") is None else records.times(item)
    outcome.add(records.kind(item), records.error(item), times, is_root=is_root)
    return list(times)


def _is_open(record: Record, *, is_root: bool) -> bool:
    """Whether an observation that counts has no end; any other without one only holds the tree together."""
    if record.get("endTime") is not None or record.get("type") == records.EVENT:
        return False
    return is_root or records.kind(record) != "other"


def _end(started_at: datetime, latency_s: float) -> datetime:
    try:
        return started_at + timedelta(seconds=latency_s)
    except OverflowError:
        raise UnusableRecordError("latency reaches beyond the last year of the calendar") from None


# -- an observation by itself ----------------------------------------------------------------------------------------


def lines_of_observation(source: Source, number: int, raw: Record, runs: Runs) -> Iterator[Line]:
    """The span of a row, and that of its trace as far as the rows of the file told of it.

    Args:
        source: the file.
        number: the row's place in the file.
        raw: the row, as it is written.
        runs: runs that earlier rows told of; changed.

    Raises:
        UnusableRecordError: the row lacks its trace, an agent's name or its level.
    """
    record = records.normal(raw)
    trace_key = records.required_name(record, "traceId")
    is_root = records.is_root(record, trace_key)
    own_name, trace_name = as_name(record.get("name")), as_name(record.get("traceName"))
    trace = Trace(
        langfuse_id=trace_key,
        name=trace_name or own_name,
        agent=_agent(trace_name or own_name, [own_name] if own_name else [], [record]),
        session=as_name(record.get("sessionId")),
        user=as_name(record.get("userId")),
        version=records.version(record),
        input=as_content(record.get("input")),
    )
    try:
        span = observation_span(source, record, trace, is_root=is_root)
    except UnusableRecordError as fault:
        yield rejected(number, raw, str(fault))
        span = _placeholder(record, trace, is_root=is_root)
        if span is not None:
            yield otlp(number, [span])
        return
    run = runs.setdefault(trace_key, _Run())
    spans = [span] if span else []
    is_open = _is_open(record, is_root=is_root)
    _count_once(source, run, record, is_open=is_open)
    if is_open:
        yield otlp(number, spans)
        return
    error_before = run.outcome.error
    _add(run.outcome, record, is_root=is_root)
    is_news = run.outcome.error != error_before
    if is_root and span is not None:
        _widen(run, trace, records.times(record))
        is_news = True
    if is_news and run.trace is not None and run.times is not None:
        spans.insert(0, _span_of_trace(run.trace, run.times, run.outcome.error, None))
    if spans:
        yield otlp(number, spans)


def _count_once(source: Source, run: _Run, record: Record, *, is_open: bool) -> None:
    """Count an open observation once, and no longer where a later row has its end."""
    key = as_name(record.get("id")) or ""
    if key in run.open:
        source.notes[OPEN] -= 1
        run.open.remove(key)
    if is_open:
        run.open.add(key)
    if not source.notes[OPEN]:
        del source.notes[OPEN]


def _widen(run: _Run, trace: Trace, times: Times) -> None:
    """Let a root stand for its trace, too; the first of several in time gives the name."""
    if run.trace is None or run.times is None:
        run.trace, run.times = trace, times
        return
    if times < run.times:
        run.trace = trace
    run.times = (min(run.times[0], times[0]), max(run.times[1], times[1]))


def observation_span(source: Source, record: Record, trace: Trace, *, is_root: bool) -> Record | None:
    """The observation's span; None for what has no duration.

    Raises:
        UnusableRecordError: it lacks a time, its id or its level.
    """
    type_ = record.get("type")
    if type_ == records.EVENT:
        source.notes["Langfuse EVENT, which has no duration"] += 1
        return None
    if type_ not in records.TYPES:
        raise UnusableRecordError(f"type must be one of {', '.join(records.TYPES)}, not {type_}")
    kind = records.kind(record)
    if kind == "other":
        source.notes[f"Langfuse {type_}, which is no agent, model call or tool"] += 1
    error = records.error(record)
    started_at = as_time(record.get("startTime"), "startTime")
    if _is_open(record, is_root=is_root):
        source.notes[OPEN] += 1
        return _span(trace, record, (started_at, started_at), None, {}, is_root=is_root)
    is_place_only = record.get("endTime") is None
    times = (started_at, started_at) if is_place_only else records.times(record)
    attributes: Record = {
        "langfuse.observation.type": type_,
        "gen_ai.operation.name": OPERATIONS.get(kind),
        "langfuse.experiment.item.id": records.dataset_item(record),
    }
    if kind == "chat":
        attributes |= _model_call(source, record)
    elif kind == "tool":
        attributes |= {
            "gen_ai.tool.name": records.tool_name(record),
            "gen_ai.tool.call.arguments": as_content(record.get("input")),
            "gen_ai.tool.call.result": as_content(record.get("output")),
        }
    elif kind in ("agent", "workflow"):
        attributes["gen_ai.agent.name"] = records.agent_name(record)
        attributes["gen_ai.agent.version"] = records.version(record) or trace.version
        attributes["langfuse.observation.input"] = as_content(record.get("input"))
    if kind == "other":
        error = None  # said by the trace's span where it is the run's failure
    return _span(trace, record, times, error, attributes, is_root=is_root)


def _model_call(source: Source, record: Record) -> Record:
    model, (input_tokens, output_tokens) = records.model(record), records.tokens(record)
    cache_read, cache_creation, reasoning = records.token_details(record)
    if model is None:
        source.notes["Langfuse GENERATION that names no model: a call of the model `unknown`"] += 1
    if records.has_other_units(record):
        source.notes["Langfuse usage in another unit than tokens"] += 1
    return {
        "gen_ai.request.model": model,
        "gen_ai.response.model": records.response_model(record),
        "gen_ai.usage.input_tokens": input_tokens,
        "gen_ai.usage.output_tokens": output_tokens,
        "gen_ai.usage.cache_read.input_tokens": cache_read,
        "gen_ai.usage.cache_creation.input_tokens": cache_creation,
        "gen_ai.usage.reasoning.output_tokens": reasoning,
        "gen_ai.usage.cost": records.cost(record),
        "langfuse.observation.input": as_content(record.get("input")),
        "gen_ai.output.messages": as_content(record.get("output")),
    }


def _placeholder(record: Record, trace: Trace, *, is_root: bool) -> Record | None:
    """A span that only keeps what is below an observation in its place, where that one has no end; else None."""
    if record.get("endTime") is not None or record.get("type") == records.EVENT:
        return None
    try:
        started_at = as_time(record.get("startTime"), "startTime")
        return _span(trace, record, (started_at, started_at), None, {}, is_root=is_root)
    except UnusableRecordError:
        return None


# -- spans -----------------------------------------------------------------------------------------------------------


def otlp(number: int, spans: list[Record]) -> Line:
    """A line of OTLP-JSON with these spans."""
    return line_of_spans(number, spans, "langfuse")


def _span_of_trace(trace: Trace, times: Times, error: str | None, cost: float | None) -> Record:
    """The span that stands for the whole trace."""
    if trace.name is None:
        raise UnusableRecordError("the trace has no name, so the agent is not known")
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": trace.agent,
        "gen_ai.agent.version": trace.version,
        "gen_ai.usage.cost": cost,
        "langfuse.trace.input": trace.input,
    }
    span_id = records.trace_span_id(trace.langfuse_id)
    return _written(trace, span_id, None, trace.name, times, error, attributes)


def _span(
    trace: Trace, record: Record, times: Times, error: str | None, attributes: Record, *, is_root: bool
) -> Record:
    above = records.trace_span_id(trace.langfuse_id) if is_root else records.observation_span_id(
        str(record["parentObservationId"])
    )  # fmt: skip
    span_id = records.observation_span_id(records.required_name(record, "id"))
    return _written(trace, span_id, above, as_name(record.get("name")) or "", times, error, attributes)


def _written(
    trace: Trace, span_id: str, parent: str | None, name: str, times: Times, error: str | None, attributes: Record
) -> Record:
    shared = {"gen_ai.conversation.id": trace.session, "user.id": trace.user}
    return present(
        {
            "traceId": records.trace_id(trace.langfuse_id),
            "spanId": span_id,
            "parentSpanId": parent,
            "name": name,
            "startTimeUnixNano": unix_nano(times[0]),
            "endTimeUnixNano": unix_nano(times[1]),
            "attributes": attributes_of({**attributes, **shared}),
            "status": status_of(error),
        }
    )
