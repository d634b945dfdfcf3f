"""Enrichment: columns of records that follow from targets, settings and other records, updated after loading.

What belongs here: SLA breaches, agents' names, whom a judgement counts as, and the tokens and cost of executions,
set-based and for whole hours. What does not: loading lines (`ingestion`), and what they mean for a score (`scoring`).
"""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from datetime import datetime

import ibis
import pyarrow as pa
from ibis import ir

from health_assets.core.agent_names import agents_of
from health_assets.core.hours import HourRange, contiguous
from health_assets.core.judges import Trust
from health_assets.core.targets import Targets
from health_assets.logs.stores import RawFile, is_trusted
from health_assets.schema.catalog import columns_of
from health_assets.scoring.target_columns import resolve_sla
from health_assets.scoring.usage import AMOUNTS, RUN, amounts_of_calls, with_amounts
from health_assets.warehouse.enriched_columns import EnrichedColumns
from health_assets.warehouse.partition_states import PartitionStates
from health_assets.warehouse.session import Session


def resolve_slas(session: Session, hours: HourRange, targets: Targets, among: AbstractSet[datetime]) -> set[datetime]:
    """Apply targets that changed since executions were loaded; gives the hours of which any row differs.

    Args:
        session: a write session.
        hours: the hours that are looked at.
        targets: limits of SLAs.
        among: the hours to which they apply.
    """
    differing = _with_slas(session, hours, targets)
    differing = differing.filter(differing.sla_breached != differing.stored_sla_breached)
    found = session.arrow(differing.select("hour").distinct())["hour"].to_pylist()
    changed = set(found) & among
    for some in contiguous(changed):
        session.rewrite_hours("executions", some, _with_slas(session, some, targets))
    return changed


def _with_slas(session: Session, hours: HourRange, targets: Targets) -> ir.Table:
    """Executions with the SLA breaches that follow from the targets, and the stored ones beside them."""
    stored = session.hours_of("executions", hours)
    return resolve_sla(stored.rename(stored_sla_breached="sla_breached"), targets)


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
    stored = EnrichedColumns(session, hours)
    if not targets.names and not stored.has_folded_names(table):
        return set()
    pairs = stored.names(table)
    agents = agents_of({name for name, _ in pairs}, targets.names)
    differing = [name for name, agent in pairs if agents[name] != agent]
    if not differing:
        return set()
    changed = stored.hours_of_names(table, differing)
    for some in contiguous(changed):
        session.rewrite_hours(table, some, _renamed(session.hours_of(table, some), agents))
    return changed


def resolved(session: Session, table: str, rows: ir.Table, targets: Targets) -> ir.Table:
    """Rows of a record table that has agents, with the names and SLA breaches that follow from the targets.

    Args:
        session: a session.
        table: the table whose columns they have.
        rows: the rows.
        targets: the targets.
    """
    names = session.arrow(rows.select(said=agent_as_named(rows)).distinct())["said"].to_pylist()
    rows = _renamed(rows, agents_of(names, targets.names))
    if table == "executions":
        rows = resolve_sla(rows, targets)
    return rows.select(*columns_of(table))


def agent_as_named(rows: ir.Table) -> ir.Value:
    """The agent of records as their log names it, before the targets map it; null where it names none."""
    return ibis.coalesce(rows.agent_id_reported, rows.agent_id)


def _renamed(rows: ir.Table, agents: dict[str, str]) -> ir.Table:
    columns = {"said": [*agents], "agent": [*agents.values()]}
    named = ibis.memtable(pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()}))
    rows = rows.mutate(said=agent_as_named(rows)).drop("agent_id", "agent_id_reported")
    joined = rows.left_join(named, "said")
    return joined.mutate(agent_id=joined.agent, agent_id_reported=joined.said.nullif(joined.agent))


def resolve_judges(session: Session, hours: HourRange, files: Iterable[RawFile], trusted: Trust) -> set[datetime]:
    """Count judgements of these hours as the trusted logs are now; gives the hours of which any counts otherwise.

    Args:
        session: a write session.
        hours: the hours.
        files: all raw logs that there are now. Judgements of a log that is gone count as before, as long as it has a
            trusted name, since nobody can tell any more who could write it.
        trusted: the logs whose judgements count as whose they say they are.
    """
    stored = EnrichedColumns(session, hours)
    logs, there = stored.logs_of_judgements(), {file.source_file: file for file in files}
    believed = [name for name in logs & there.keys() if is_trusted(there[name], trusted)]
    return stored.trust(believed, [name for name in logs - there.keys() if trusted.names(name)])


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
    has_calls = EnrichedColumns(session, reach).has_amounts_of_calls(AMOUNTS)
    if not (has_calls or EnrichedColumns(session, hours).has_summed_amounts(AMOUNTS)):
        return set()
    executions = session.hours_of("executions", hours)
    executions = executions.filter(executions.span_id.isnull())
    sums = amounts_of_calls(executions, session.hours_of("model_calls", reach), lookback_hours)
    differing = with_amounts(executions, sums)
    return PartitionStates(session).correct_rows("executions", differing, RUN)
