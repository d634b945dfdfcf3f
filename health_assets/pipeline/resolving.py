"""Resolving: columns of records that follow from targets, settings and other records, brought up to date after loading.

What belongs here: SLA breaches, agents' names, whom a judgement counts as, and the tokens and cost of executions,
set-based and for whole hours.
What does not: loading lines (`ingestion`), and what any of them means for a score (`scoring`).
"""

from collections.abc import Collection
from datetime import datetime

import ibis
import pyarrow as pa
from ibis import ir

from health_assets.core.agent_names import agents_of
from health_assets.core.hours import HourRange, contiguous
from health_assets.core.judges import is_trusted, judged_by
from health_assets.core.targets import Targets
from health_assets.schema.catalog import columns_of
from health_assets.scoring.targets import resolve_sla
from health_assets.scoring.usage import AMOUNTS, amounts_of_calls, with_amounts
from health_assets.warehouse.materialized import MaterializedHours
from health_assets.warehouse.session import Session


def resolve_slas(session: Session, hours: HourRange, targets: Targets) -> bool:
    """Apply targets that changed since executions of these hours were loaded; gives whether any row differs."""
    stored = session.hours_of("executions", hours)
    resolved = resolve_sla(stored.rename(stored_sla_breached="sla_breached"), targets)
    differing = resolved.filter(resolved.sla_breached != resolved.stored_sla_breached).count()
    if not session.arrow(differing.as_table())[0][0].as_py():
        return False
    session.rewrite_hours("executions", hours, resolved)
    return True


def resolve_names(session: Session, table: str, hours: HourRange, targets: Targets) -> set[datetime]:
    """Apply patterns of names that changed since rows of these hours were loaded; gives the hours of which any differs.

    Args:
        session: a write session.
        table: a record table that has agents.
        hours: the hours.
        targets: the patterns.
    """
    if "agent_id_reported" not in columns_of(table):
        return set()
    span = {"start": hours.start, "end": hours.end}
    inside = f"FROM {table} WHERE agent_id IS NOT NULL AND hour >= $start AND hour < $end"
    if not targets.names and not session.query(f"SELECT 1 {inside} AND agent_id_reported IS NOT NULL LIMIT 1", span):
        return set()
    said = "coalesce(agent_id_reported, agent_id)"
    pairs = session.query(f"SELECT DISTINCT {said}, agent_id {inside}", span)
    agents = agents_of({name for name, _ in pairs}, targets.names)
    differing = [name for name, agent in pairs if agents[name] != agent]
    if not differing:
        return set()
    found = session.query(
        f"SELECT DISTINCT hour {inside} AND {said} IN (SELECT unnest($names))", span | {"names": differing}
    )
    changed = {hour for (hour,) in found}
    for some in contiguous(changed):
        session.rewrite_hours(table, some, _renamed(session.hours_of(table, some), agents))
    return changed


def _renamed(rows: ir.Table, agents: dict[str, str]) -> ir.Table:
    named = ibis.memtable(pa.table({"said": list(agents), "agent": list(agents.values())}))
    rows = rows.mutate(said=ibis.coalesce(rows.agent_id_reported, rows.agent_id)).drop("agent_id", "agent_id_reported")
    joined = rows.left_join(named, "said")
    return joined.mutate(agent_id=joined.agent, agent_id_reported=joined.said.nullif(joined.agent))


def resolve_judges(session: Session, hours: HourRange, trusted: Collection[str]) -> set[datetime]:
    """Count judgements of these hours as the trusted logs are now; gives the hours of which any counts otherwise.

    Args:
        session: a write session.
        hours: the hours.
        trusted: patterns of logs whose judgements count as whose they say they are.
    """
    span = {"start": hours.start, "end": hours.end}
    inside = "hour >= $start AND hour < $end"
    files = session.query(f"SELECT DISTINCT source_file FROM judgements WHERE {inside}", span)
    believed = [name for (name,) in files if is_trusted(name, trusted)]
    is_believed = "source_file IN (SELECT unnest($believed))" if believed else "false"
    counts_as = judged_by(is_believed, "judged_by_reported")
    differs = f"{inside} AND judged_by IS DISTINCT FROM {counts_as}"
    parameters = span | ({"believed": believed} if believed else {})
    changed = {hour for (hour,) in session.query(f"SELECT DISTINCT hour FROM judgements WHERE {differs}", parameters)}
    if changed:
        session.query(f"UPDATE judgements SET judged_by = {counts_as} WHERE {differs}", parameters)
    return changed


def resolve_usage(session: Session, hours: HourRange, lookback_hours: int) -> set[datetime]:
    """Give executions that state no tokens or no cost the sums over their model calls (contract, section 8).

    Executions that were put together from spans have theirs already.

    Args:
        session: a write session, in which executions and model calls are as the logs have them.
        hours: the hours of the executions.
        lookback_hours: how many hours of calls, ending with the execution's own, are looked at.

    Returns:
        The hours of which rows have changed.
    """
    reach = hours.extended_back(lookback_hours - 1)
    told = " OR ".join(f"{name} IS NOT NULL" for name in AMOUNTS)
    summed = " OR ".join(f"{name} IS NOT NULL AND {name}_reported IS NULL" for name in AMOUNTS)
    has_calls = session.query(
        f"SELECT 1 FROM model_calls WHERE execution_id IS NOT NULL AND ({told}) AND hour >= ? AND hour < ? LIMIT 1",
        [reach.start, reach.end],
    )
    has_sums = session.query(
        f"SELECT 1 FROM executions WHERE span_id IS NULL AND ({summed}) AND hour >= ? AND hour < ? LIMIT 1",
        [hours.start, hours.end],
    )
    if not (has_calls or has_sums):
        return set()
    executions = session.hours_of("executions", hours)
    executions = executions.filter(executions.span_id.isnull())
    sums = amounts_of_calls(executions, session.hours_of("model_calls", reach), lookback_hours)
    differing, count = session.kept(with_amounts(executions, sums))
    if not count:
        return set()
    changed = {hour for (hour,) in session.query(f"SELECT DISTINCT hour FROM ({session.sql(differing)}) AS differing")}
    MaterializedHours(session).correct_rows("executions", differing, ["hour", "execution_id"])
    return changed
