"""Batches: the rows that checks look at, as ibis expressions over the tables of the hours checked.

A batch is a table with `hour`. The plainest is the asset's own rows; others put two tables side by side that must agree.
"""

from dataclasses import dataclass
from datetime import timedelta

import ibis
from ibis import ir

from health_assets.hours import HourRange
from health_assets.logs.reader import ID_OF_TABLE, TABLE_OF_RECORD
from health_assets.scoring.relations import lookup
from health_assets.targets import Targets
from health_assets.warehouse.store import Session
from health_assets.warehouse.tables import describe

RECORD_OF_TABLE = {table: record for record, table in TABLE_OF_RECORD.items()}


@dataclass(frozen=True)
class Source:
    """What a batch is made from: the asset, a session, and the hours that are checked."""

    asset: str
    session: Session
    hours: HourRange
    targets: Targets
    window_hours: int
    lookback_hours: int

    def rows(self, table: str) -> ir.Table:
        """Rows of a table for the hours checked."""
        return self.session.hours_of(table, self.hours)

    def spine(self) -> ir.Table:
        """One row per hour checked."""
        return ibis.memtable({"hour": list(self.hours)}, schema={"hour": "timestamp('UTC')"})


def rows(source: Source) -> ir.Table:
    """The asset's own rows, with `next_hour` to compare times with the end of their hour."""
    own = source.rows(source.asset)
    return own.mutate(next_hour=own.hour + ibis.interval(hours=1))


def column_types(source: Source) -> ir.Table:
    """One row per declared column: its declared type and the one that the warehouse has."""
    actual = dict(source.session.query("SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = ?", [source.asset]))
    names = {"DOUBLE PRECISION": "DOUBLE"}
    declared = [(name, names.get(sql_type, sql_type)) for name, sql_type, _, _ in describe(source.asset)]
    return ibis.memtable(
        {
            "hour": [source.hours.start] * len(declared),
            "column_name": [name for name, _ in declared],
            "declared_type": [sql_type for _, sql_type in declared],
            "actual_type": [actual.get(name, "missing") for name, _ in declared],
        },
        schema={"hour": "timestamp('UTC')", "column_name": "string", "declared_type": "string", "actual_type": "string"},
    )


def lines_and_rows(source: Source) -> ir.Table:
    """Per hour, the lines that `raw_logs` counts for the asset and the rows that it has."""
    parts = source.rows("raw_logs").filter(lambda t: t.record_type == RECORD_OF_TABLE[source.asset])
    lines = parts.group_by("hour").aggregate(lines_kept=(parts.lines - parts.superseded).sum().cast("int64"))
    own = source.rows(source.asset)
    rows = own.group_by("hour").aggregate(rows_kept=own.count())
    joined = lookup(lookup(source.spine(), lines, "hour"), rows, "hour")
    return joined.select("hour", lines_kept=joined.lines_kept.fill_null(0), rows_kept=joined.rows_kept.fill_null(0))


def lines_of_files(source: Source) -> ir.Table:
    """Per file with lines in these hours, its lines and the sum of what `raw_logs` counts for all its hours."""
    files = source.rows("raw_logs").group_by("source_file").aggregate(hour=lambda t: t.hour.min())
    counted = source.session.table("raw_logs").group_by("source_file").aggregate(lines_counted=lambda t: t.lines.sum().cast("int64"))
    known = source.session.table("raw_files").select("source_file", lines_read="lines")
    return files.inner_join(counted, "source_file").inner_join(known, "source_file").select("hour", "source_file", "lines_read", "lines_counted")


def ids_in_several_hours(source: Source) -> ir.Table:
    """Rows whose id also stands in another hour of the look-back before, or of the hours checked."""
    key, _ = ID_OF_TABLE[source.asset]
    span = source.hours.extended_back(source.lookback_hours)
    nearby = source.session.hours_of(source.asset, span)
    own = source.rows(source.asset)
    hours_of_id = nearby.semi_join(own, key).group_by(key).aggregate(hours_with_id=lambda t: t.hour.nunique())
    repeated = hours_of_id.filter(hours_of_id.hours_with_id > 1)
    return own.inner_join(repeated, key).select("hour", "source_file", "line_number", key, "hours_with_id")


def rejected_share(source: Source) -> ir.Table:
    """Per hour, the share of lines that were rejected."""
    parts = source.rows("raw_logs")
    counted = parts.group_by("hour").aggregate(
        lines=parts.lines.sum().cast("int64"),
        rejected=parts.lines.sum(where=parts.record_type == "rejected").fill_null(0).cast("int64"),
    )
    return counted.mutate(rejected_share=counted.rejected / counted.lines.nullif(0))


def components_and_events(source: Source) -> ir.Table:
    """Per hour, sums over the components and counts over the events that they were made from."""
    own, executions, triggers = source.rows("health_components"), source.rows("executions"), source.rows("trigger_events")
    summed = own.group_by("hour").aggregate(
        summed_executions=own.executions.sum().cast("int64"), summed_triggers=own.triggers.sum().cast("int64")
    )
    counted = executions.group_by("hour").aggregate(counted_executions=executions.count())
    fired = triggers.group_by("hour").aggregate(counted_triggers=triggers.count())
    joined = lookup(lookup(lookup(source.spine(), summed, "hour"), counted, "hour"), fired, "hour")
    names = ("summed_executions", "counted_executions", "summed_triggers", "counted_triggers")
    return joined.select("hour", **{name: joined[name].fill_null(0) for name in names})


def windows_and_components(source: Source) -> ir.Table:
    """Per hour, the executions of all agents' windows and of the components of those hours."""
    own = source.rows("agent_health")
    in_windows = own.group_by("hour").aggregate(executions_in_windows=own.n.sum().cast("int64"))
    components = source.session.hours_of("health_components", source.hours.extended_back(source.window_hours - 1))
    retired = [agent_id for agent_id, targets in source.targets.agents.items() if targets.retired]
    if source.targets.defaults.retired:
        kept = [agent_id for agent_id, targets in source.targets.agents.items() if not targets.retired]
        components = components.filter(components.agent_id.isin(kept))
    elif retired:
        components = components.filter(components.agent_id.notin(retired))
    by_hour = components.group_by("hour").aggregate(executions=components.executions.sum().cast("int64"))
    spine = source.spine().mutate(start=lambda t: t.hour - timedelta(hours=source.window_hours - 1))
    by_hour = by_hour.rename(component_hour="hour")
    joined = spine.left_join(by_hour, [by_hour.component_hour >= spine.start, by_hour.component_hour <= spine.hour])
    summed = joined.group_by("hour").aggregate(executions_of_hours=joined.executions.sum().fill_null(0).cast("int64"))
    both = lookup(summed, in_windows, "hour")
    return both.select("hour", "executions_of_hours", executions_in_windows=both.executions_in_windows.fill_null(0))


def activity(source: Source) -> ir.Table:
    """Per agent and hour, whether there is a score, whether there should be, and how much of the window there is."""
    own = source.rows("agent_health")
    return own.select(
        "hour", "agent_id", "state", "n", "hours_covered",
        has_score=own.health_score.notnull().cast("int64"), is_active=(own.n > 0).cast("int64"),
        window_hours=ibis.literal(source.window_hours),
    )  # fmt: skip


def agents_counted(source: Source) -> ir.Table:
    """Per hour, the agents of `system_health` and the rows of `agent_health`."""
    own, agents = source.rows("system_health"), source.rows("agent_health")
    counted = agents.group_by("hour").aggregate(agent_rows=agents.count())
    joined = lookup(own, counted, "hour")
    return joined.select(
        "hour", "agents", agent_rows=joined.agent_rows.fill_null(0),
        agents_in_states=joined.healthy + joined.degraded + joined.unhealthy + joined.inactive,
    )  # fmt: skip
