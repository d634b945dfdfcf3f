"""The rows of a waterfall: the spans of a run in the order of their tree, or its calls in that of time.

What belongs here: which row is below which, what the caller may see of each, and places on the line of time. What does
not: reading spans and calls (`apps.serving.run_traces`) and choosing the rows of a page (`trace_page`).
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from health_assets.apps.serving.pages.scoped_history import ScopedHistory
from health_assets.apps.serving.trace_question import trace_id_of

WIDTH = 1000.0
LEAST_WIDTH = 2.0
"""Of what lasts no time to speak of, so that it is seen."""
BUCKETS = 250
"""Parts of the line of time that the overview tells apart."""
LANES = {"model": "model", "tool": "tool"}
"""Lanes of the overview by the kind of a row; all other kinds share one."""
OTHER_LANE = "other"
KINDS = {"chat": "model"}
"""Words for kinds of spans; all others are called as in the table `spans`."""
NAMED_FREELY = ("other", "retrieval", "rerank", "guardrail")
"""Kinds whose spans have no name but the one that their program chose, which may say anything."""
AMOUNTS = ("input_tokens", "output_tokens", "cache_read_tokens", "reasoning_tokens", "cost_usd")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Row = dict[str, Any]
Columns = Mapping[str, Sequence[Any]]


def rows_of(trace: Mapping[str, Any], look: ScopedHistory) -> list[Row]:
    """All rows of a run that the caller may see, the run's own first.

    Args:
        trace: what `run_traces.trace_of` says.
        look: the part of the data that the caller sees.
    """
    rows = _of_spans(trace) if trace["spans"] else _of_calls(trace)
    rows = _in_order(rows)
    _mark_below(rows)
    rows = _without_hidden(rows, trace["run"]["agent_id"], look)
    return [_shown(row, look) for row in rows]


def _of_spans(trace: Mapping[str, Any]) -> list[Row]:
    """A row of each span; a failure that only the call made of it knows is its own."""
    spans, repeated, failed = trace["spans"], set(trace["repeated"]), trace["failed_calls"]
    trace_id = trace_id_of(trace["run"])
    rows = []
    for span in _dicts(spans):
        call_id = f"{trace_id}:{span['span_id']}"
        is_failed = span["failed"] or call_id in failed
        rows.append(
            {
                **_row(span),
                "span_id": span["span_id"],
                "parent": span["parent_span_id"],
                "kind": KINDS.get(span["kind"], span["kind"]),
                "name": _name(span),
                "agent_id": span["agent_id"],
                "model": span["model"],
                "started_us": span["started_at"],
                "ended_us": None if span["is_open"] else span["ended_at"],
                "is_call": span["is_call"],
                "is_failed": is_failed,
                "error": span["error"] if span["failed"] else failed.get(call_id),
                "is_repeated": call_id in repeated,
            }
        )
    return rows


def _name(span: Row) -> str | None:
    """The name of what a span is about: of a tool the tool, of a call the model, of an agent the agent."""
    named = {"tool": span["tool_name"], "chat": span["model"], "agent": span["agent_id"], "workflow": span["agent_id"]}
    return named.get(span["kind"]) or span["name"]


def _of_calls(trace: Mapping[str, Any]) -> list[Row]:
    """A row of the run and one of each of its calls, which begins before its end by its latency."""
    run, repeated = trace["run"], set(trace["repeated"])
    ended_us = _microseconds(run["ended_at"])
    started_us = ended_us if run["started_at"] is None else _microseconds(run["started_at"])
    root = {
        **_row(run),
        "span_id": "run",
        "parent": None,
        "kind": "agent",
        "name": run["agent_id"],
        "agent_id": run["agent_id"],
        "model": run["model"],
        "response_model": None,
        "started_us": started_us,
        "ended_us": ended_us,
        "is_call": False,
        "is_failed": run["status"] == "failure",
        "error": run["error"],
        "is_repeated": False,
    }
    rows = [root]
    for place, call in enumerate(_dicts(trace["calls"])):
        latency_us = None if call["latency_ms"] is None else int(min(call["latency_ms"], 1e12) * 1000)
        rows.append(
            {
                **_row(call),
                "span_id": f"call-{place}",
                "parent": "run",
                "kind": KINDS.get(call["kind"], call["kind"]),
                "agent_id": None,
                "model": call["name"] if call["kind"] == "chat" else None,
                "started_us": call["ended_at"] - (latency_us or 0),
                "ended_us": call["ended_at"],
                "is_timed": latency_us is not None,
                "is_call": True,
                "is_failed": call["status"] == "failure",
                "error": call["error"],
                "is_repeated": call["call_id"] in repeated,
            }
        )
    return rows


def _row(found: Row) -> Row:
    """What rows of spans, calls and the run have by the same names."""
    named = ("name", "response_model", *AMOUNTS, "source_file", "line_number")
    return {"is_timed": True, **{name: found.get(name) for name in named}}


def _dicts(columns: Columns) -> Iterator[Row]:
    names = list(columns)
    for values in zip(*columns.values(), strict=True):
        yield dict(zip(names, values, strict=True))


def _microseconds(text: str) -> int:
    return (datetime.fromisoformat(text) - EPOCH) // timedelta(microseconds=1)


def _in_order(rows: list[Row]) -> list[Row]:
    """The rows from the outermost on, each followed by what is below it by start; each with its `depth` and `place`."""
    known = {row["span_id"] for row in rows}
    children: defaultdict[str | None, list[Row]] = defaultdict(list)
    for row in rows:
        children[row["parent"] if row["parent"] in known else None].append(row)
    ordered: list[Row] = []
    seen: set[int] = set()
    # rows in a circle of parents hang below nothing, so each of them may be where one begins
    for start in (*children[None], *rows):
        waiting = [(start, 0, None)]
        while waiting:
            row, depth, above = waiting.pop()
            if id(row) in seen:
                continue
            seen.add(id(row))
            row |= {"depth": depth, "above": above, "place": len(ordered)}
            ordered.append(row)
            below = sorted(children.get(row["span_id"], ()), key=_by_start, reverse=True)
            waiting += [(one, depth + 1, row["place"]) for one in below]
    return ordered


def _by_start(row: Row) -> tuple[int, int, str]:
    return row["started_us"], row["ended_us"] or row["started_us"], row["span_id"]


def _mark_below(rows: list[Row]) -> None:
    """Count what is below each row, and mark a failure below which nothing failed."""
    for row in rows:
        row |= {"below": 0, "failed_below": 0}
    for row in reversed(rows):
        row["is_origin"] = row["is_failed"] and not row["failed_below"]
        if row["above"] is not None:
            above = rows[row["above"]]
            above["below"] += row["below"] + 1
            above["failed_below"] += row["failed_below"] + row["is_failed"]


def _without_hidden(rows: list[Row], agent_id: str, look: ScopedHistory) -> list[Row]:
    """The rows without parts of agents that the caller may not see; in place of such a part one row, with its time."""
    is_seen: dict[str, bool] = {agent_id: True}
    kept: list[Row] = []
    hidden: set[int] = set()
    for row in rows:
        if row["above"] in hidden:
            hidden.add(row["place"])
            continue
        agent = row["agent_id"]
        if agent is not None and agent not in is_seen:
            is_seen[agent] = look.sees_part_of(agent)
        if agent is not None and not is_seen[agent]:
            hidden.add(row["place"])
            row = _closed(row)
        kept.append(row)
    return _numbered(kept) if hidden else kept


def _closed(row: Row) -> Row:
    """A row that says nothing but when something ran."""
    nothing = dict.fromkeys(("name", "agent_id", "model", "response_model", "error", *AMOUNTS))
    return {**row, **nothing, "is_hidden": True, "is_failed": False, "is_repeated": False}


def _numbered(rows: list[Row]) -> list[Row]:
    """Rows of which some were left out, with places and counts anew."""
    places = {row["place"]: place for place, row in enumerate(rows)}
    for place, row in enumerate(rows):
        row |= {"place": place, "above": None if row["above"] is None else places[row["above"]]}
    _mark_below(rows)
    return rows


def _shown(row: Row, look: ScopedHistory) -> Row:
    """The row with times as such and without texts that the caller may not read."""
    started_us, ended_us = row.pop("started_us"), row.pop("ended_us")
    is_timed = row.pop("is_timed") and ended_us is not None
    shows_name = look.view.shows_texts or row["kind"] not in NAMED_FREELY
    return {
        **row,
        "is_hidden": row.get("is_hidden", False),
        "name": row["name"] if shows_name else None,
        "started_at": EPOCH + timedelta(microseconds=started_us),
        "ended_at": None if ended_us is None else EPOCH + timedelta(microseconds=ended_us),
        "duration_s": (ended_us - started_us) / 1e6 if is_timed else None,
        "error": row["error"] if look.view.shows_texts else None,
    }


class Line:
    """A line of time from the first start to the last end of some rows, from 0 to `WIDTH`.

    Args:
        rows: at least one.
    """

    def __init__(self, rows: Sequence[Row]) -> None:
        self.start = min(row["started_at"] for row in rows)
        self.end = max(row["ended_at"] or row["started_at"] for row in rows)
        self._whole_s = (self.end - self.start).total_seconds() or 1.0

    def span(self, row: Row) -> tuple[float, float]:
        """The place and the width of a row; one without an end lasts until the end of the line."""
        x = WIDTH * (row["started_at"] - self.start).total_seconds() / self._whole_s
        end = WIDTH * ((row["ended_at"] or self.end) - self.start).total_seconds() / self._whole_s
        width = max(LEAST_WIDTH, end - x)
        return round(min(x, WIDTH - width), 1), round(width, 1)

    def ticks(self, count: int = 4) -> list[tuple[float, float]]:
        """Places on the line with the seconds since its start."""
        return [(WIDTH * number / count, self._whole_s * number / count) for number in range(count)]

    @property
    def seconds(self) -> float:
        """The length of the line."""
        return (self.end - self.start).total_seconds()


def overview(rows: Iterable[Row], line: Line) -> dict[str, list[tuple[float, float]]]:
    """The times of model calls, of tool calls, of other work and of failures, as places and widths by lane."""
    busy: dict[str, set[int]] = {"model": set(), "tool": set(), OTHER_LANE: set(), "failed": set()}
    for row in rows:
        x, width = line.span(row)
        buckets = range(int(x * BUCKETS / WIDTH), min(BUCKETS, int((x + width) * BUCKETS / WIDTH) + 1))
        if row["is_origin"]:
            busy["failed"].add(min(BUCKETS - 1, buckets.stop - 1))
        if not row["below"]:
            busy[LANES.get(row["kind"], OTHER_LANE)].update(buckets)
    return {lane: list(_stretches(sorted(found))) for lane, found in busy.items()}


def _stretches(buckets: list[int]) -> Iterator[tuple[float, float]]:
    """Neighboring buckets as one place and width each."""
    step = WIDTH / BUCKETS
    start = last = None
    for bucket in [*buckets, None]:
        if last is not None and bucket == last + 1:
            last = bucket
            continue
        if start is not None and last is not None:
            yield round(start * step, 1), round((last + 1 - start) * step, 1)
        start = last = bucket
