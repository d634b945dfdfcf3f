"""Summaries of a materialization: row counts and one small table per asset."""

from collections.abc import Callable, Mapping, Sequence

import ibis
from ibis import ir

from health_assets.core.hours import HourRange
from health_assets.pipeline.events import ROWS, Link, Markdown, Value
from health_assets.pipeline.span_summary import summarize_spans
from health_assets.warehouse.file_ledger import LostLines
from health_assets.warehouse.session import Session

SUMMARY_ROWS = 10
UNREADABLE = "could not be read"
"""Under this key stands why raw logs could not be read."""
LOST = "lines that are lost"
"""Under this key stands of which logs lines are lost, and how many."""
ODD = "odd files"
"""Under this key stands what is odd about files that were not odd before."""
MANY_REJECTED = "files with many rejected lines"
"""Under this key stand the files of which the run rejected more than a few lines."""
SPARK_SESSION = "Spark session"
"""Under this key stands the name of the session that computed the rows, or the page of its jobs."""
REASONS_KEPT = 20


def summary(
    session: Session,
    asset: str,
    hours: HourRange,
    preview_title: str,
    preview_rows: Callable[[ir.Table], ir.Table],
    empty_without: str,
    preview_join: Callable[[ir.Table, Session, HourRange], ir.Table] = lambda rows, *_: rows,
) -> dict[str, Value]:
    """Rows of these hours and, under its own heading, the asset's preview as Markdown.

    Args:
        session: a session.
        asset: the asset.
        hours: the hours.
        preview_title: heading of the preview.
        preview_rows: its rows, best first, from the rows of the hours.
        empty_without: what hours must hold for the asset to have rows; the reason given where there are none.
        preview_join: adds columns of other tables to these rows.
    """
    row_count = session.count_hours(asset, hours)
    metadata: dict[str, Value] = {
        ROWS: row_count,
        "hours": str(hours),
        **cluster_summary(session),
    }
    if not row_count:
        return {**metadata, "no rows": f"these hours do not hold {empty_without}"}
    rows = preview_join(session.hours_of(asset, hours), session, hours)
    table = session.arrow(preview_rows(rows).limit(SUMMARY_ROWS)).to_pandas()
    return {**metadata, preview_title: Markdown(table.to_markdown(index=False, floatfmt=".3f"))}


def cluster_summary(session: Session) -> dict[str, Value]:
    """The session on a cluster that computed the rows, with a link to its jobs where the address is known."""
    own = session.cluster
    if own is None:
        return {}
    return {SPARK_SESSION: Link(own.page) if own.page else own.session_id}


def record_summary(session: Session, asset: str, hours: HourRange) -> dict[str, Value]:
    """The summary of `raw_logs` or a record table."""
    title, rows = _TABLES.get(asset, (f"{asset.replace('_', ' ')} by agent", _by_agent))
    metadata = summary(session, asset, hours, title, rows, "a line of this kind")
    return metadata | _what_spans_became(session, hours) if asset == "spans" else metadata


def _what_spans_became(session: Session, hours: HourRange) -> dict[str, Value]:
    """Say how many spans became records, and how many did not, by reason."""
    reading = summarize_spans(session, hours)
    if reading is None:
        return {}
    lines = [f"{reading}.", *(f"- **{warning}**" for warning in reading.warnings)]
    if reading.unused:
        lines += ["", "| spans | that became nothing of their own |", "|---:|---|"]
        lines += [f"| {count} | {reason} |" for reason, count in reading.unused.items()]
    return {"what became of the spans": Markdown("\n".join(lines))}


def notes_summary(notes: Mapping[str, int]) -> dict[str, Value]:
    """Say what foreign formats hold besides their lines, in all files together; an empty text if nothing."""
    if not notes:
        return {}
    lines = [
        "| records | noted of all files |",
        "|---:|---|",
        *(f"| {count} | {note} |" for note, count in notes.items()),
    ]
    return {"records of other formats": Markdown("\n".join(lines))}


def unreadable_summary(unreadable: Mapping[str, str]) -> dict[str, Value]:
    """Raw logs that could not be read; nothing where there are none."""
    return {UNREADABLE: [*unreadable.values()][:REASONS_KEPT]} if unreadable else {}


def lost_summary(lost: Sequence[LostLines]) -> dict[str, Value]:
    """Say what is lost of logs that are gone; an empty text if nothing."""
    return {LOST: [str(log) for log in lost][:REASONS_KEPT]} if lost else {}


def many_rejected_summary(files: Sequence[str]) -> dict[str, Value]:
    """Sentences about files with many rejected lines; nothing where there are none."""
    return {MANY_REJECTED: [*files][:REASONS_KEPT]} if files else {}


def odd_summary(odd: Mapping[str, str]) -> dict[str, Value]:
    """Say what is odd about files and was not told before; an empty text if nothing."""
    return {ODD: [f"{name}: {what}" for name, what in odd.items()][:REASONS_KEPT]} if odd else {}


def _most(rows: ir.Table, *keys: str) -> ir.Table:
    return rows.group_by(list(keys)).aggregate(rows=rows.count()).order_by(ibis.desc("rows"), *keys)


def _by_agent(rows: ir.Table) -> ir.Table:
    return _most(rows, "agent_id")


def _files(rows: ir.Table) -> ir.Table:
    counted = rows.group_by(["source_file", "record_type"]).aggregate(lines=rows.lines.sum(), hours=rows.hour.nunique())
    return counted.order_by(ibis.desc("lines"), "source_file", "record_type")


def _failing_agents(rows: ir.Table) -> ir.Table:
    counted = rows.group_by("agent_id").aggregate(executions=rows.count(), failures=rows.count(where=~rows.succeeded))
    return counted.order_by(ibis.desc("failures"), ibis.desc("executions"), "agent_id")


def _reasons(rows: ir.Table) -> ir.Table:
    counted = rows.group_by("reason").aggregate(lines=rows.lines.sum())
    return counted.order_by(ibis.desc("lines"), "reason")


_TABLES: dict[str, tuple[str, Callable[[ir.Table], ir.Table]]] = {
    "raw_logs": ("largest files", _files),
    "executions": ("agents with most failures", _failing_agents),
    "trigger_events": ("triggers by agent and status", lambda rows: _most(rows, "agent_id", "status")),
    "model_calls": ("calls by model and status", lambda rows: _most(rows, "model", "status")),
    "tool_calls": ("calls by tool and status", lambda rows: _most(rows, "tool", "status")),
    "agent_updates": ("updates by kind", lambda rows: _most(rows, "kind")),
    "spans": ("spans by kind", lambda rows: _most(rows, "kind", "convention")),
    "rejected_records": ("reasons of rejection", _reasons),
}
