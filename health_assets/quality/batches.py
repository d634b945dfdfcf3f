"""Batches: what checks look at. Either rows of a table, as an ibis expression, or facts by hour, as a small frame.

What belongs here: building them. What must be true of them is in `suites`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import ibis
import pandas as pd
from ibis import ir

from health_assets.hours import HOUR, HourRange
from health_assets.scoring.survey_summary import ALL_PLATFORMS
from health_assets.settings import Settings
from health_assets.targets import Targets
from health_assets.warehouse.store import Session
from health_assets.warehouse.tables import ID_OF_TABLE, RECORD_OF_TABLE, describe

NEARBY_ROWS = 1_000_000
_DUCKDB_TYPES = {"DOUBLE PRECISION": "DOUBLE"}


@dataclass(frozen=True)
class Source:
    """What a batch is made from: the asset, a session, the hours that are checked, and the settings that made them."""

    asset: str
    session: Session
    hours: HourRange
    targets: Targets
    settings: Settings

    def rows(self) -> ir.Table:
        """The asset's rows for the hours checked."""
        return self.session.hours_of(self.asset, self.hours)

    def by_hour(
        self, select: str, condition: str = "true", parameters: Sequence[Any] = (), hours: HourRange | None = None
    ) -> dict[datetime, tuple]:
        """Values by hour: the rows of `select` (which starts with the hour) for the hours checked or given."""
        span = hours or self.hours
        sql = f"{select} WHERE hour >= ? AND hour < ? AND {condition} GROUP BY hour"
        return {hour: tuple(values) for hour, *values in self.session.query(sql, [span.start, span.end, *parameters])}


# -- rows ------------------------------------------------------------------------------------------------------------


def rows(source: Source) -> ir.Table:
    """The asset's own rows, with how many and which required values are missing, and the end of their hour."""
    own = source.rows()
    required = [name for name, _, is_nullable, _ in describe(source.asset) if not is_nullable]
    missing = {name: own[name].isnull() for name in required}
    return own.mutate(
        missing_values=sum((is_missing.cast("int64") for is_missing in missing.values()), ibis.literal(0)),
        missing_columns=ibis.literal("").concat(
            *(is_missing.ifelse(f"{name} ", "") for name, is_missing in missing.items())
        ),
        next_hour=own.hour + ibis.interval(hours=1),
    )


def scored_agents(source: Source) -> ir.Table:
    """Rows of `agent_health`, with whether there is a score, whether there should be, and the window's full length."""
    own = rows(source)
    return own.mutate(
        has_score=own.health_score.notnull().cast("int64"),
        is_active=(own.n > 0).cast("int64"),
        window_hours=ibis.literal(source.settings.window_hours),
    )


def ids_in_several_hours(source: Source) -> ir.Table:
    """Rows whose id also stands in another of the hours checked, the hour after them, or nearby hours before them."""
    key, _ = ID_OF_TABLE[source.asset]
    nearby = source.session.hours_of(source.asset, _with_nearby_hours(source).extended_forward(1))
    counted = nearby.group_by(key).aggregate(hours_with_id=lambda row: row.hour.nunique())
    repeated = counted.filter(counted.hours_with_id > 1)
    return source.rows().inner_join(repeated, key).select("hour", "source_file", "line_number", key, "hours_with_id")


def _with_nearby_hours(source: Source) -> HourRange:
    """The hours checked and as much of the look-back before them as has no more than `NEARBY_ROWS` rows.

    Comparing each row with a week of rows would cost more than all else where an hour has millions.
    """
    span = source.hours.extended_back(source.settings.reach_hours)
    rows = source.by_hour(f"SELECT hour, count(*) FROM {source.asset}", hours=span)
    start, total = source.hours.start, 0
    while start > span.start:
        total += rows.get(start - HOUR, (0,))[0]
        if total > NEARBY_ROWS:
            break
        start -= HOUR
    return HourRange(start, source.hours.end)


# -- facts by hour ---------------------------------------------------------------------------------------------------


def hours(source: Source) -> pd.DataFrame:
    """One row per hour, with the number of columns whose type in the warehouse is not the declared one."""
    sql = "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = ?"
    actual = dict(source.session.query(sql, [source.asset]))
    changed = [
        name
        for name, sql_type, _, _ in describe(source.asset)
        if actual.get(name) != _DUCKDB_TYPES.get(sql_type, sql_type)
    ]
    return pd.DataFrame(
        {"hour": list(source.hours), "columns_of_other_type": len(changed), "changed_columns": ", ".join(changed)}
    )


def _with_facts(frame: pd.DataFrame, names: Sequence[str], values: dict[datetime, tuple]) -> pd.DataFrame:
    """Add values by hour as columns; 0 in an hour that has none."""
    none = (0,) * len(names)
    columns = zip(*(values.get(hour, none) for hour in frame["hour"]), strict=True)
    return frame.assign(**dict(zip(names, map(list, columns), strict=True)))


def hours_of_records(source: Source) -> pd.DataFrame:
    """`hours`, with the lines that `raw_logs` counts for the asset and the rows that it has."""
    is_own = "record_type = ?"
    lines = source.by_hour(
        "SELECT hour, sum(lines - superseded)::BIGINT FROM raw_logs", is_own, [RECORD_OF_TABLE[source.asset]]
    )
    frame = _with_facts(hours(source), ["lines_kept"], lines)
    return _with_facts(frame, ["rows_kept"], source.by_hour(f"SELECT hour, count(*) FROM {source.asset}"))


def hours_of_rejections(source: Source) -> pd.DataFrame:
    """`hours_of_records`, with the share of the hour's lines that were rejected, 0 to 1."""
    rejected = "sum(CASE record_type WHEN 'rejected' THEN lines ELSE 0 END)"
    share = source.by_hour(f"SELECT hour, {rejected} / greatest(sum(lines), 1) FROM raw_logs")
    return _with_facts(hours_of_records(source), ["rejected_share"], share)


def files(source: Source) -> ir.Table:
    """One row per file with lines in these hours: its lines, and those that `raw_logs` counts over all its hours."""
    parts, read = source.session.table("raw_logs"), source.session.table("raw_files")
    first = source.rows().group_by("source_file").aggregate(hour=lambda part: part.hour.min())
    counted = parts.group_by("source_file").aggregate(lines_counted=lambda part: part.lines.sum().cast("int64"))
    joined = first.inner_join(counted, "source_file").inner_join(
        read.select("source_file", lines_read="lines"), "source_file"
    )
    return joined.select("hour", "source_file", "lines_read", "lines_counted")


def hours_of_components(source: Source) -> pd.DataFrame:
    """`hours`, with sums over the components and counts of the events that they were made from."""
    sums = source.by_hour("SELECT hour, sum(executions)::BIGINT, sum(triggers)::BIGINT FROM health_components")
    frame = _with_facts(hours(source), ["summed_executions", "summed_triggers"], sums)
    for name, table in (("counted_executions", "executions"), ("counted_triggers", "trigger_events")):
        frame = _with_facts(frame, [name], source.by_hour(f"SELECT hour, count(*) FROM {table}"))
    return frame


def hours_of_windows(source: Source) -> pd.DataFrame:
    """`hours`, with the executions of all agents' windows, and those of the hours that the windows are made of."""
    exceptions = [name for name, own in source.targets.agents.items() if own.retired != source.targets.defaults.retired]
    is_in = "IN" if source.targets.defaults.retired else "NOT IN"
    condition = f"agent_id {is_in} (SELECT unnest(?))"
    span = source.hours.extended_back(source.settings.window_hours - 1)
    by_hour = source.by_hour(
        "SELECT hour, sum(executions)::BIGINT FROM health_components", condition, [exceptions], span
    )
    executions = [by_hour.get(hour, (0,))[0] for hour in span]
    length = source.settings.window_hours
    frame = hours(source).assign(
        executions_of_hours=[sum(executions[place : place + length]) for place in range(len(source.hours))]
    )
    in_windows = source.by_hour("SELECT hour, sum(n)::BIGINT FROM agent_health")
    return _with_facts(frame, ["executions_in_windows"], in_windows)


def hours_of_fleet(source: Source) -> pd.DataFrame:
    """`hours`, with the rows and the agents of `system_health`, the sum over its states, and rows of `agent_health`."""
    states = "sum(healthy + degraded + unhealthy + inactive)::BIGINT"
    own = source.by_hour(f"SELECT hour, count(*), sum(agents)::BIGINT, {states} FROM system_health")
    frame = _with_facts(hours(source), ["fleet_rows", "agents", "agents_in_states"], own)
    return _with_facts(frame, ["agent_rows"], source.by_hour("SELECT hour, count(*) FROM agent_health"))


# -- the survey --------------------------------------------------------------------------------------------------------


def probes(source: Source) -> ir.Table:
    """Rows of `agent_probes`, with whether they have a status and an error, and whether they should."""
    own = rows(source)
    is_valid = own.outcome == "valid"
    return own.mutate(
        has_status=own.status.notnull().cast("int64"),
        is_valid=is_valid.cast("int64"),
        has_error=own.error.notnull().cast("int64"),
        is_not_valid=(~is_valid).cast("int64"),
    )


def hours_of_survey(source: Source) -> pd.DataFrame:
    """`hours`, with the agents and the responsive ones of `all` and of the platforms, and the probes and valid ones."""
    is_all = f"platform = '{ALL_PLATFORMS}'"
    counts = ", ".join(
        f"coalesce(sum({column}::BIGINT) FILTER (WHERE {condition}), 0)::BIGINT"
        for column in ("agents", "responsive")
        for condition in (is_all, f"NOT {is_all}")
    )
    names = ["agents_of_all", "agents_of_platforms", "responsive_of_all", "responsive_of_platforms"]
    frame = _with_facts(hours(source), names, source.by_hour(f"SELECT hour, {counts} FROM survey_summary"))
    probed = source.by_hour("SELECT hour, count(*), count(*) FILTER (WHERE outcome = 'valid') FROM agent_probes")
    return _with_facts(frame, ["probes", "valid_probes"], probed)
