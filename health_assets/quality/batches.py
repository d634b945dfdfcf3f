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
from health_assets.scoring.agent_health_state import FEWEST_SAMPLES
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


def parts_of_states(source: Source) -> ir.Table:
    """Rows of `state_components`, with extremes and order of their buckets, and which model columns are there."""
    own = rows(source)
    buckets = own.latency_buckets
    return own.mutate(
        least_bucket=buckets.mins(),
        greatest_bucket=buckets.maxs(),
        has_buckets=buckets.notnull().cast("int64"),
        has_ascending_buckets=(buckets == buckets.sort()).fill_null(False).cast("int64"),
        has_first_model=own.first_model.notnull().cast("int64"),
        has_last_model=own.last_model.notnull().cast("int64"),
        has_first_model_at=own.first_model_at.notnull().cast("int64"),
        has_model_switch=own.last_model_switch_at.notnull().cast("int64"),
    )


MEASURES = ("response_ratio", "error_ratio", "latency_p50_ms", "latency_p99_ms")


def states(source: Source) -> ir.Table:
    """Rows of `agent_health_state`, with what their samples and statuses say that the other columns must be."""
    own = rows(source)
    has_ratio = own.status.cases(
        ("healthy", own.response_ratio >= 0.95),
        ("degraded", own.response_ratio >= 0.5),
        ("unhealthy", own.response_ratio < 0.5),
        else_=True,
    )
    is_healthy_now = (own.last_healthy_at == own.window_end).fill_null(False)
    return own.mutate(
        sum_of_ratios=own.response_ratio + own.error_ratio,
        measures=sum((own[name].notnull().cast("int64") for name in MEASURES), ibis.literal(0)),
        measures_due=(own.sample_count > 0).ifelse(len(MEASURES), 0),
        is_unknown=(own.status == "unknown").cast("int64"),
        has_few_samples=(own.sample_count < FEWEST_SAMPLES).cast("int64"),
        has_ratio_of_status=has_ratio.fill_null(False).cast("int64"),
        is_healthy=(own.status == "healthy").cast("int64"),
        was_healthy_last_now=is_healthy_now.cast("int64"),
        window_hours=ibis.literal(source.settings.window_hours),
    )


def scored_models(source: Source) -> ir.Table:
    """Rows of `model_health`, with the calls in the window, and whether they are and should be called degraded."""
    own = rows(source)
    return own.mutate(
        calls=own.success_count + own.failure_count,
        called_degraded=own.is_degraded.cast("int64"),
        below_threshold=(own.health_score < own.degraded_threshold).cast("int64"),
    )


def scored_sessions(source: Source) -> ir.Table:
    """Rows of `session_scores`, with whether there is a risk and an instability, and whether there should be."""
    own = rows(source)
    return own.mutate(
        has_risk=own.raw_risk.notnull().cast("int64"),
        is_evaluated=(own.traces_evaluated > 0).cast("int64"),
        has_instability=own.raw_instability.notnull().cast("int64"),
        is_uncertain=(own.consistency_traces_evaluated > 0).cast("int64"),
    )


def scored_tasks(source: Source) -> ir.Table:
    """Rows of `task_consistency`, with whether there are pairs and distances, and the window's full length."""
    own = rows(source)
    return own.mutate(
        has_pairs=(own.pairs > 0).cast("int64"),
        has_c_traj_d=own.c_traj_d.notnull().cast("int64"),
        has_c_traj_s=own.c_traj_s.notnull().cast("int64"),
        window_hours=ibis.literal(source.settings.evaluation_hours),
    )


def scored_reliability(source: Source) -> ir.Table:
    """Rows of `agent_reliability`, with which scores there are and should be, and the window's full length."""
    own = rows(source)
    has_dimensions = own.r_con.notnull() & own.r_pred.notnull() & own.r_rob.notnull()
    return own.mutate(
        has_reliability=own.reliability.notnull().cast("int64"),
        has_dimensions=has_dimensions.cast("int64"),
        has_safety=own.r_saf.notnull().cast("int64"),
        is_judged=(own.judged > 0).cast("int64"),
        window_hours=ibis.literal(source.settings.evaluation_hours),
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
    return _hours_of_windows(source, "n")


def hours_of_parts_of_states(source: Source) -> pd.DataFrame:
    """`hours`, with the latencies that the parts hold and the executions that they were made from."""
    latencies = source.by_hour("SELECT hour, sum(len(latency_buckets))::BIGINT FROM state_components")
    frame = _with_facts(hours(source), ["latencies"], {hour: (count or 0,) for hour, (count,) in latencies.items()})
    return _with_facts(frame, ["counted_executions"], source.by_hour("SELECT hour, count(*) FROM executions"))


def hours_of_states(source: Source) -> pd.DataFrame:
    """As `hours_of_windows`, with the number of agents that the hours' two kinds of components know."""
    frame = _hours_of_windows(source, "sample_count")
    for name, table in (("agents_with_parts", "state_components"), ("agents_with_components", "health_components")):
        frame = _with_facts(frame, [name], source.by_hour(f"SELECT hour, count(*) FROM {table}"))
    return frame


def _hours_of_windows(source: Source, count_column: str) -> pd.DataFrame:
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
    in_windows = source.by_hour(f"SELECT hour, sum({count_column})::BIGINT FROM {source.asset}")
    return _with_facts(frame, ["executions_in_windows"], in_windows)


def hours_of_fleet(source: Source) -> pd.DataFrame:
    """`hours`, with the rows and the agents of `system_health`, the sum over its states, and rows of `agent_health`."""
    states = "sum(healthy + degraded + unhealthy + inactive)::BIGINT"
    own = source.by_hour(f"SELECT hour, count(*), sum(agents)::BIGINT, {states} FROM system_health")
    frame = _with_facts(hours(source), ["fleet_rows", "agents", "agents_in_states"], own)
    return _with_facts(frame, ["agent_rows"], source.by_hour("SELECT hour, count(*) FROM agent_health"))


def hours_of_last_calls(source: Source) -> pd.DataFrame:
    """`hours`, with the calls that `model_components` has, and those that it should have of all calls."""
    most = source.settings.model_window_calls
    by_model = f"(SELECT hour, least(count(*), {int(most)}) AS calls FROM model_calls GROUP BY hour, model)"
    frame = _with_facts(hours(source), ["kept_calls"], source.by_hour("SELECT hour, count(*) FROM model_components"))
    return _with_facts(frame, ["last_calls"], source.by_hour(f"SELECT hour, sum(calls)::BIGINT FROM {by_model}"))


def hours_of_models(source: Source) -> pd.DataFrame:
    """`hours`, with the models called in the hour, and those of them that have a row."""
    called = "SELECT hour, count(DISTINCT model) FROM model_components"
    frame = _with_facts(hours(source), ["called_models"], source.by_hour(called))
    is_scored = "(hour, model) IN (SELECT (hour, model) FROM model_health)"
    return _with_facts(frame, ["scored_models"], source.by_hour(called, is_scored))


def hours_of_traces(source: Source) -> pd.DataFrame:
    """`hours`, with the rows of `trace_risks`, and the executions that must be among them."""
    frame = _with_facts(hours(source), ["traces"], source.by_hour("SELECT hour, count(*) FROM trace_risks"))
    in_session = source.by_hour("SELECT hour, count(*) FROM executions", "session_id IS NOT NULL")
    return _with_facts(frame, ["executions_in_sessions"], in_session)


def hours_of_sessions(source: Source) -> pd.DataFrame:
    """`hours`, with the rows of `session_scores`, and the sessions of the hour's traces."""
    frame = _with_facts(hours(source), ["scored_sessions"], source.by_hour("SELECT hour, count(*) FROM session_scores"))
    touched = source.by_hour("SELECT hour, count(DISTINCT session_id) FROM trace_risks")
    return _with_facts(frame, ["touched_sessions"], touched)


def hours_of_tasks(source: Source) -> pd.DataFrame:
    """`hours`, with the runs of all tasks, and the baseline runs in the windows."""
    frame = hours(source).assign(baseline_runs=_evaluation_runs(source, "condition = 'baseline'"))
    of_tasks = source.by_hour("SELECT hour, sum(runs)::BIGINT FROM task_consistency")
    return _with_facts(frame, ["runs_of_tasks"], of_tasks)


def hours_of_reliability(source: Source) -> pd.DataFrame:
    """`hours`, with the runs and tasks of all agents, the evaluation runs in the windows, and rows of tasks."""
    frame = hours(source).assign(runs_of_hours=_evaluation_runs(source))
    own = source.by_hour("SELECT hour, sum(runs)::BIGINT, sum(tasks)::BIGINT FROM agent_reliability")
    frame = _with_facts(frame, ["runs_in_windows", "tasks_of_agents"], own)
    return _with_facts(frame, ["task_rows"], source.by_hour("SELECT hour, count(*) FROM task_consistency"))


def _evaluation_runs(source: Source, condition: str = "true") -> list[int]:
    """For each hour checked, the evaluation runs in the window that ends with it."""
    length = source.settings.evaluation_hours
    span = source.hours.extended_back(length - 1)
    condition = f"task_id IS NOT NULL AND {condition}"
    by_hour = source.by_hour("SELECT hour, count(*) FROM executions", condition, hours=span)
    counts = [by_hour.get(hour, (0,))[0] for hour in span]
    return [sum(counts[place : place + length]) for place in range(len(source.hours))]


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
