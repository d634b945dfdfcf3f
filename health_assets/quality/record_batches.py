"""Batches of `raw_logs` and the record tables."""

import ibis
import pandas as pd
from ibis import _, ir

from health_assets.core.hours import HOUR, HourRange
from health_assets.quality.batches import Source, hours, with_fact, with_facts
from health_assets.schema.catalog import ID_OF_TABLE, RECORD_OF_TABLE
from health_assets.scoring.identities import CLAIMANT, NOBODY, claimant_of
from health_assets.scoring.relations import lookup
from health_assets.warehouse.log_coverage import LogCoverage
from health_assets.warehouse.partition_states import PartitionStates
from health_assets.warehouse.superseded_executions import SupersededExecutions

NEARBY_ROWS = 1_000_000


def repeated_ids(source: Source) -> ir.Table:
    """Rows of the hours checked whose id stands in several hours or belongs to several agents.

    Looked at are the hours checked, the hour after them and nearby hours before them. Agents are told apart as the log
    reports them. `hours_with_id` counts the hours in which the row's agent has the id, and `agents_with_id` the agents
    that have it, null of a call that names no agent, since it claims no id.
    """
    key, _ = ID_OF_TABLE[source.asset]
    identity = [key, *_CLAIMANTS]
    nearby = _with_claimants(_nearby(source))
    claimants = nearby[CLAIMANT].nullif(NOBODY)
    ends = nearby.group_by(key).aggregate(
        first=nearby.hour.min(), last=nearby.hour.max(), least=claimants.min(), greatest=claimants.max()
    )
    # mostly none; to tell hours and agents of all ids apart would mean to sort them
    several = ends.filter((ends.first < ends.last) | (ends.least < ends.greatest))
    found = nearby.semi_join(several, key)
    in_hours = found.group_by(identity).aggregate(hours_with_id=found.hour.nunique())
    of_agents = found.group_by(key).aggregate(agents_with_id=found[CLAIMANT].nullif(NOBODY).nunique())
    own = lookup(_with_claimants(source.rows()).inner_join(in_hours, identity), of_agents, key)
    agents_with_id = (own[CLAIMANT] == NOBODY).ifelse(ibis.null("int64"), own.agents_with_id)
    return own.select(*_shown(own, key), "hours_with_id", agents_with_id=agents_with_id)


_CLAIMANTS = (CLAIMANT, "named_execution")


def _with_claimants(rows: ir.Table) -> ir.Table:
    """Add what tells records of one id apart; a call that names no agent is told apart by the execution it names."""
    named = ibis.literal("")
    if "call_id" in rows.columns:
        named = rows.agent_id.isnull().ifelse(rows.execution_id.fill_null(""), "")
    return rows.mutate(claimant=claimant_of(rows), named_execution=named)


def _shown(rows: ir.Table, key: str) -> list[ir.Value]:
    return [rows[name] for name in ("hour", "source_file", "line_number", key, "agent_id")]


def _nearby(source: Source) -> ir.Table:
    return source.session.hours_of(source.asset, _with_nearby_hours(source).extended_forward(1))


def _with_nearby_hours(source: Source) -> HourRange:
    """The hours checked and as much of the look-back before them as has no more than `NEARBY_ROWS` rows.

    Comparing each row with a week of rows would cost more than all else where an hour has millions.
    """
    span = source.hours.extended_back(source.settings.reach_hours)
    rows = PartitionStates(source.session).rows_by_hour(source.asset, span)
    start, total = source.hours.start, 0
    while start > span.start:
        total += rows.get(start - HOUR, 0)
        if total > NEARBY_ROWS:
            break
        start -= HOUR
    return HourRange(start, source.hours.end)


def hours_of_records(source: Source) -> pd.DataFrame:
    """`hours`, with the lines that `raw_logs` counts for the asset and the rows that it has."""
    lines = LogCoverage(source.session).kept_by_hour(RECORD_OF_TABLE[source.asset], source.hours)
    frame = with_fact(hours(source), "lines_kept", lines)
    return with_fact(frame, "rows_kept", source.row_counts)


def hours_of_executions(source: Source) -> pd.DataFrame:
    """`hours_of_records`, with the failed lines that a later line of the same agent and id replaced."""
    replaced = SupersededExecutions(source.session).failures_by_hour(source.hours)
    return with_fact(hours_of_records(source), "replaced_failures", replaced)


def hours_of_rejections(source: Source) -> pd.DataFrame:
    """`hours_of_records` by the lines that rows stand for, with the share of lines that were rejected, 0 to 1."""
    lines = source.facts("rejected_records", _.lines.sum())
    frame = with_facts(hours_of_records(source).drop(columns="rows_kept"), ["rows_kept"], lines)
    return with_fact(frame, "rejected_share", LogCoverage(source.session).rejected_share_by_hour(source.hours))


def files(source: Source) -> ir.Table:
    """One row per file with lines in these hours.

    It has the file's lines, those that `raw_logs` counts over all its hours, and the share of them that was rejected,
    0 to 1.
    """
    parts, read = source.session.table("raw_logs"), source.session.table("raw_files")
    first = source.rows().group_by("source_file").aggregate(hour=lambda part: part.hour.min())
    counted = parts.group_by("source_file").aggregate(lines_counted=lambda part: part.lines.sum().cast("int64"))
    joined = first.inner_join(counted, "source_file").inner_join(
        read.select("source_file", "rejected", lines_read="lines"), "source_file"
    )
    share = joined.rejected.cast("float64") / joined.lines_read.nullif(0)
    return joined.select("hour", "source_file", "lines_read", "lines_counted", rejected_share=share.fill_null(0.0))
