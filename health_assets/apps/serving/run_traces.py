"""One run with what happened inside it, for its page: its spans, or else its calls; read in the reader's process.

What belongs here: finding the run, what is below it, which of its steps repeat and which of its logs are gone. What
does not: who may see it (`reader_process` and `apps.serving.pages.trace_page`) and the tree
(`apps.serving.pages.span_rows`).
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import ibis
import pyarrow as pa
import pyarrow.compute as pc
from ibis import ir

from health_assets.apps.serving.trace_question import TraceQuestion, trace_id_of
from health_assets.core.agent_names import with_agents
from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HOUR, HourRange, floor_hour
from health_assets.core.settings import Settings
from health_assets.core.targets import Targets
from health_assets.logs.span_kinds import OPEN
from health_assets.logs.stores import find_file
from health_assets.scoring.identities import CLAIMANT, claimant_of, names_of_runs
from health_assets.systems.session_scores.computed_signals import repeated_calls
from health_assets.warehouse.session import HOUR_TYPE, Session

MOST_SPANS = 20_000
"""Most spans, and most calls of a run without spans, that an answer lists; the first ones to start."""
MOST_OF_TRACE = 200_000
"""Most spans of a trace that are looked through for those of one run."""
MOST_FILES = 20
"""Most raw logs of a run that are looked for."""
MOST_OTHERS = 20
ERROR_CHARACTERS = 300
RUN = (
    "execution_id", "agent_id", "agent_version", "started_at", "ended_at", "status", "runtime_s", "session_id",
    "task_id", "model", "platform", "cost_usd", "cost_source", "input_tokens", "output_tokens", "actions",
    "source_file", "line_number", "span_id",
)  # fmt: skip
AMOUNTS = ("input_tokens", "output_tokens", "cache_read_tokens", "reasoning_tokens", "cost_usd")
SPAN = (
    "span_id", "parent_span_id", "kind", "name", "agent_id", "tool_name", "model", "response_model", "started_at",
    "ended_at", "failed", "error", *AMOUNTS, "source_file", "line_number",
)  # fmt: skip
_TRACE_ID = re.compile("[0-9a-fA-F]{32}")
"""OpenTelemetry's id of a trace, as other tools show it."""
MICROSECONDS = pa.timestamp("us", "UTC")


def trace_of(
    session: Session, settings: Settings, targets: Targets, question: TraceQuestion, now: datetime
) -> dict[str, Any] | None:
    """The run with what is below it; None where there is none.

    Returns:
        `run`, a row of `executions` (`RUN`); `spans`, columns of `SPAN` with times in microseconds since 1970, with
        `agent_id` as the targets name it, and with `is_call`, whether a call was made of it; null without any;
        `calls`, likewise, without spans; `repeated`, ids of calls that are repeated steps; `failed_calls`, the error
        of each failed call by the span that it was made of; `not_listed`, how many spans or calls more there are;
        `loose`, spans of its trace below a span that no log has; `others`, further runs of its trace; `files_gone`,
        raw logs that are not there any more; `no_logs`, why none can be looked for, or None.
    """
    hours = HourRange.of(question.until or floor_hour(now)).extended_back(settings.lookback_hours - 1)
    found = _newest_run(session, question, hours)
    if found is None:
        return None
    run, run_hours = _plain(found), _hours_of(found)
    runs = _this_run(session, found)
    tools, models = (session.hours_of(name, run_hours) for name in ("tool_calls", "model_calls"))
    calls = _calls(session, runs, tools, models)
    spans, not_listed, loose, others = _nothing(SPAN), 0, 0, []
    if found["span_id"]:
        spans, not_listed, loose = _spans_below(session, found, run_hours)
        others = _other_runs(session, found, run_hours)
    is_of_spans = bool(spans.num_rows)
    if not is_of_spans:
        not_listed = max(0, calls.num_rows - MOST_SPANS)
    failed = calls.filter(pc.equal(calls.column("status"), "failure"))
    repeated = repeated_calls(runs, tools, models, settings.lookback_hours)
    if is_of_spans or calls.num_rows:
        run["actions"] = None  # the rows say more
    files = [run["source_file"], *(spans if is_of_spans else calls).column("source_file").to_pylist()]
    return {
        "run": run,
        "spans": _columns(_marked(_named(spans, targets), calls, found)) if is_of_spans else None,
        "calls": None if is_of_spans else _columns(calls.slice(0, MOST_SPANS)),
        "repeated": session.arrow(repeated.select("call_id").distinct()).column("call_id").to_pylist(),
        "failed_calls": dict(zip(*(failed.column(name).to_pylist() for name in ("call_id", "error")), strict=True)),
        "not_listed": not_listed,
        "loose": loose,
        "others": others,
        **_gone(settings, files),
    }


def _marked(spans: pa.Table, calls: pa.Table, run: dict[str, Any]) -> pa.Table:
    """Spans with `is_call`: of a call that is wrapped in another one is made a single call."""
    ids = pc.binary_join_element_wise(trace_id_of(run), spans.column("span_id"), ":")
    return spans.append_column("is_call", pc.is_in(ids, calls.column("call_id").combine_chunks()))


def _newest_run(session: Session, question: TraceQuestion, hours: HourRange) -> dict[str, Any] | None:
    """The newest run that is like what is asked for; of several of an id, one of the last hour is looked for first."""
    last = HourRange.of(hours.end - HOUR)
    for some in (last, hours) if question.run_id is not None else (hours,):
        runs = _chosen(session, session.hours_of("executions", some), question, some)
        newest = runs.order_by(runs.ended_at.desc(), runs.source_file, runs.line_number).limit(1)
        columns = newest.select("hour", "agent_id_reported", *RUN, error=newest.error.substr(0, ERROR_CHARACTERS))
        if rows := session.dicts(columns):
            return rows[0]
    return None


def _chosen(session: Session, runs: ir.Table, question: TraceQuestion, hours: HourRange) -> ir.Table:
    """The runs that are like what is asked for; texts of the request stand in tables, not in the text of a query."""
    for column, value in (("execution_id", question.run_id), ("agent_id", question.agent_id)):
        if column == "execution_id" and value is not None and _TRACE_ID.fullmatch(value):
            runs = runs.filter((runs.execution_id == value) | runs.execution_id.startswith(f"{value.lower()}:"))
        elif value is not None:
            runs = runs.semi_join(_one(column, value), column)
    if question.run_id is not None or question.because is None:
        return runs
    runs = runs.filter(~runs.succeeded)
    value = question.value or ""
    if question.because in ("version", "model"):
        column = "agent_version" if question.because == "version" else "model"
        return runs.semi_join(_one(column, value), column)
    table, column = ("tool_calls", "tool") if question.because == "tool" else ("model_calls", "model")
    calls = session.hours_of(table, hours)
    failed = calls.filter(calls.status != "success", calls.execution_id.notnull()).semi_join(
        _one(column, value), column
    )
    runs = runs.mutate(claimant=claimant_of(runs))
    named = names_of_runs(runs, "execution_id", CLAIMANT)
    failed = failed.select(called_in="execution_id", caller=claimant_of(failed)).distinct()
    hit = named.inner_join(failed, [named.execution_id == failed.called_in, named.named == failed.caller])
    return runs.semi_join(hit, ["execution_id", CLAIMANT])


def _one(column: str, value: str) -> ir.Table:
    return ibis.memtable(pa.table({column: pa.array([value], pa.string())}))


def _this_run(session: Session, run: dict[str, Any]) -> ir.Table:
    """The run as a row of `executions`."""
    place = pa.table(
        {
            "source_file": pa.array([run["source_file"]], pa.string()),
            "line_number": pa.array([run["line_number"]], pa.int64()),
            "execution_id": pa.array([run["execution_id"]], pa.string()),
            "ended_at": pa.array([run["ended_at"]], HOUR_TYPE),
        }
    )
    return session.hours_of("executions", HourRange.of(run["hour"])).semi_join(ibis.memtable(place), place.column_names)


def _hours_of(run: dict[str, Any]) -> HourRange:
    """The hours in which calls and spans of a run end: from its start, or its own and the one before, to one later."""
    first = floor_hour(run["started_at"]) if run["started_at"] else run["hour"] - HOUR
    return HourRange(min(first, run["hour"]), run["hour"] + 2 * HOUR)


def _calls(session: Session, runs: ir.Table, tools: ir.Table, models: ir.Table) -> pa.Table:
    """The calls of a run by end, with columns as those of `SPAN`; one that names no agent is of every run of its id."""
    names = names_of_runs(runs.mutate(claimant=claimant_of(runs)), "execution_id")
    nothing = {name: ibis.null("int64") for name in AMOUNTS[:-1]} | {"cost_usd": ibis.null("float64")}

    def of(calls: ir.Table, kind: str, name: str, **more: ir.Value) -> ir.Table:
        inside = calls.mutate(named=claimant_of(calls)).semi_join(names, ["execution_id", "named"])
        return inside.select(
            "call_id", "span_id", "ended_at", "status", "latency_ms", "source_file", "line_number",
            kind=ibis.literal(kind), name=inside[name], error=inside.error.substr(0, ERROR_CHARACTERS),
            **{column: inside[column] if value is None else value for column, value in more.items()},
        )  # fmt: skip

    of_tools = of(tools, "tool", "tool", response_model=ibis.null("string"), **nothing)
    of_models = of(models, "chat", "model", response_model=None, **dict.fromkeys(AMOUNTS))
    both = ibis.union(of_tools, of_models.select(*of_tools.columns))
    return session.arrow(both.order_by("ended_at", "call_id", "source_file", "line_number"))


def _spans_below(session: Session, run: dict[str, Any], hours: HourRange) -> tuple[pa.Table, int, int]:
    """The span of a run and those below it by start; how many more there are; how many of its trace hang loose."""
    spans = session.hours_of("spans", hours).semi_join(_one("trace_id", trace_id_of(run)), "trace_id")
    # of a span that came twice the one with an end, which came last; `logs.span_trees` tells copies the same way
    writer = ibis.coalesce(
        spans.service_name.min().over(group_by=["span_id", "started_at"]),
        spans.service_name.min().over(group_by="span_id"),
        "",
    )
    spans = spans.mutate(writer=writer)
    again = ibis.row_number().over(
        group_by=["span_id", "writer"],
        order_by=[
            (spans.remark == OPEN).fill_null(False), spans.ended_at.desc(), spans.source_file.desc(),
            spans.line_number.desc(), spans.position.desc(),
        ],
    )  # fmt: skip
    spans = spans.mutate(again=again)
    once = spans.filter(spans.again == 0)
    rows = once.order_by("started_at", "ended_at", "span_id").limit(MOST_OF_TRACE)
    is_open = (rows.remark == OPEN).fill_null(False)
    found = session.arrow(
        rows.select(
            *(name for name in SPAN if name != "error"), error=rows.error.substr(0, ERROR_CHARACTERS), is_open=is_open
        )
    )
    below, loose = _below(found, run["span_id"])
    left_out = session.count(once) - found.num_rows if found.num_rows == MOST_OF_TRACE else 0
    kept = found.take(pa.array(below[:MOST_SPANS], pa.int64()))
    return kept, len(below) - kept.num_rows + left_out, loose


def _below(spans: pa.Table, root: str) -> tuple[list[int], int]:
    """The places of a span and of all below it, in order; and how many spans have none above them that is there."""
    ids, parents = (spans.column(name).to_pylist() for name in ("span_id", "parent_span_id"))
    children: defaultdict[str | None, list[int]] = defaultdict(list)
    for place, parent in enumerate(parents):
        children[parent].append(place)
    known = set(ids)
    lost = [place for place, parent in enumerate(parents) if parent is not None and parent not in known]
    roots = [place for place, one in enumerate(ids) if one == root]
    loose = _reached([place for place in lost if ids[place] != root], ids, children)
    return sorted(_reached(roots, ids, children)), len(loose)


def _reached(start: list[int], ids: list[str], children: dict[str | None, list[int]]) -> set[int]:
    """The places of some spans and of all below them; a circle of parents ends where it began."""
    reached: set[int] = set()
    waiting = list(start)
    while waiting:
        place = waiting.pop()
        if place not in reached:
            reached.add(place)
            waiting += children.get(ids[place], ())
    return reached


def _other_runs(session: Session, run: dict[str, Any], hours: HourRange) -> list[dict[str, Any]]:
    """Further runs of the same trace, by start."""
    spans = session.hours_of("spans", hours)
    of_trace = spans.semi_join(_one("trace_id", trace_id_of(run)), "trace_id")
    starts = of_trace.select(execution_id=of_trace.trace_id + ":" + of_trace.span_id).distinct()
    runs = session.hours_of("executions", hours).semi_join(starts, "execution_id")
    rows = runs.order_by("started_at", "execution_id").limit(MOST_OTHERS + 1)
    found = session.dicts(rows.select("execution_id", "agent_id", "ended_at", "status"))
    return [_plain(one) for one in found if one["execution_id"] != run["execution_id"]][:MOST_OTHERS]


def _named(spans: pa.Table, targets: Targets) -> pa.Table:
    """The spans, with agents renamed by the `names` of the targets."""
    stated = pc.unique(spans.column("agent_id").drop_null())
    mapped = with_agents(pa.table({"agent_id": stated}), targets.names)
    names = mapped.column("agent_id").take(pc.index_in(spans.column("agent_id"), value_set=stated))
    return spans.set_column(spans.column_names.index("agent_id"), "agent_id", names)


def _gone(settings: Settings, files: Iterable[str]) -> dict[str, Any]:
    """`files_gone`, and `no_logs`, why none can be looked for: a server need not see the logs."""
    try:
        gone = [file for file in list(dict.fromkeys(files))[:MOST_FILES] if find_file(settings.raw, file) is None]
    except HealthAssetsError as error:
        return {"files_gone": [], "no_logs": str(error)}
    return {"files_gone": gone, "no_logs": None}


def _columns(rows: pa.Table) -> dict[str, list[Any]]:
    """Rows as JSON can write them, a list for each column, with times in microseconds since 1970."""
    return {
        name: (column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_pylist()
        for name, column in zip(rows.column_names, rows.cast(_in_microseconds(rows.schema)).columns, strict=True)
    }


def _in_microseconds(schema: pa.Schema) -> pa.Schema:
    return pa.schema(
        [field.with_type(MICROSECONDS) if pa.types.is_timestamp(field.type) else field for field in schema]
    )


def _nothing(names: Iterable[str]) -> pa.Table:
    return pa.table({name: pa.array([], pa.string()) for name in names})


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in row.items()}
