"""What is worth reading after a materialisation: row counts and one small table per asset, as Dagster metadata."""

from collections.abc import Callable

import dagster as dg
import ibis
from ibis import ir

from health_assets.hours import HourRange
from health_assets.warehouse.store import Session

SUMMARY_ROWS = 10


def summary(session: Session, asset: str, hours: HourRange) -> dict[str, dg.MetadataValue]:
    """Rows of these hours and, under its own heading, the asset's small table as Markdown."""
    rows = session.hours_of(asset, hours)
    heading, top = _TABLES[asset]
    table = session.arrow(top(rows).limit(SUMMARY_ROWS)).to_pandas()
    (row_count,) = session.query(
        f"SELECT count(*) FROM {asset} WHERE hour >= ? AND hour < ?", [hours.start, hours.end]
    )[0]
    return {
        "dagster/row_count": dg.MetadataValue.int(row_count),
        "hours": dg.MetadataValue.text(str(hours)),
        heading: dg.MetadataValue.md(table.to_markdown(index=False, floatfmt=".3f") if len(table) else "none"),
    }


def _most(rows: ir.Table, *keys: str) -> ir.Table:
    return rows.group_by(list(keys)).aggregate(rows=rows.count()).order_by(ibis.desc("rows"), *keys)


def _files(rows: ir.Table) -> ir.Table:
    counted = rows.group_by(["source_file", "record_type"]).aggregate(lines=rows.lines.sum(), hours=rows.hour.nunique())
    return counted.order_by(ibis.desc("lines"), "source_file", "record_type")


def _failing_agents(rows: ir.Table) -> ir.Table:
    counted = rows.group_by("agent_id").aggregate(executions=rows.count(), failures=rows.count(where=~rows.succeeded))
    return counted.order_by(ibis.desc("failures"), ibis.desc("executions"), "agent_id")


def _busiest_agents(rows: ir.Table) -> ir.Table:
    summed = rows.group_by("agent_id").aggregate(
        executions=rows.executions.sum(), failures=rows.failures.sum(), long_running=rows.long_running.sum(),
        sla_breaches=rows.sla_breaches.sum(), trigger_failures=rows.trigger_failures.sum(),
    )  # fmt: skip
    return summed.order_by(ibis.desc("executions"), "agent_id")


def _worst_agents(rows: ir.Table) -> ir.Table:
    latest = rows.filter(rows.hour == rows.hour.max(), rows.state != "inactive")
    return latest.order_by("health_score", "agent_id").select(
        "hour", "agent_id", "state", "health_score", "n", "asr", "long_running", "sla_breaches", "trigger_failures"
    )


def _latest_hours(rows: ir.Table) -> ir.Table:
    return rows.order_by(ibis.desc("hour")).select(
        "hour", "health_score", "agents", "healthy", "degraded", "unhealthy", "inactive", "hours_covered"
    )


_TABLES: dict[str, tuple[str, Callable[[ir.Table], ir.Table]]] = {
    "raw_logs": ("largest files", _files),
    "executions": ("agents with most failures", _failing_agents),
    "trigger_events": ("triggers by agent and status", lambda rows: _most(rows, "agent_id", "status")),
    "model_calls": ("calls by model and status", lambda rows: _most(rows, "model", "status")),
    "signals": ("signals by agent", lambda rows: _most(rows, "agent_id")),
    "judgements": ("judgements by agent", lambda rows: _most(rows, "agent_id")),
    "agent_updates": ("updates by kind", lambda rows: _most(rows, "kind")),
    "rejected_records": ("reasons of rejection", lambda rows: _most(rows, "reason")),
    "health_components": ("busiest agents", _busiest_agents),
    "agent_health": ("worst agents", _worst_agents),
    "system_health": ("latest hours", _latest_hours),
}
