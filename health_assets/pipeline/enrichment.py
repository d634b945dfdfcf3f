"""Enrichment: columns of records that follow from targets, settings and other records, updated after loading.

What belongs here: SLA breaches, agents' names, whom a judgement counts as, and the outcome, feedback, tokens and cost
of executions, set-based and for whole hours. What does not: loading lines (`ingestion`), and what they mean for a score
(`scoring`).
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
from health_assets.pipeline.price_list import rates_of
from health_assets.schema.catalog import SUPERSEDED, columns_of
from health_assets.scoring.evaluated_results import evaluated_results, rules_of
from health_assets.scoring.outcomes import as_stated, with_outcomes
from health_assets.scoring.prices import KEYS, STATED, with_costs
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


def resolve_outcomes(session: Session, hours: HourRange, lookback_hours: int, targets: Targets) -> set[datetime]:
    """Give executions the outcome and feedback that evaluators state of them; gives the hours of which any changed.

    Args:
        session: a write session, in which all records are as the logs have them.
        hours: the hours of the executions.
        lookback_hours: how many hours may lie between an execution and its results, before or after it.
        targets: the evaluators that state outcomes and feedback.
    """
    around = hours.extended_back(lookback_hours - 1).extended_forward(lookback_hours - 1)
    own, others = EnrichedColumns(session, hours), EnrichedColumns(session, around)
    aside = SUPERSEDED["executions"]
    if own.has_evaluations(aside):  # of which no result is
        session.update_rows(aside, as_stated(session.hours_of(aside, hours)), RUN)
    names = others.evaluators() if any(one.outcome or one.feedback for one in targets.evaluators) else []
    if not names and not own.has_evaluations("executions"):
        return set()
    evaluations, executions, *calls = (
        session.hours_of(name, around) for name in ("evaluations", "executions", "model_calls", "tool_calls")
    )
    rules = rules_of(names, targets.evaluators)
    results = evaluated_results(evaluations, executions, calls, rules, around, lookback_hours)
    differing = with_outcomes(session.hours_of("executions", hours), results, lookback_hours)
    return PartitionStates(session).correct_rows("executions", differing, RUN)


def resolve_usage(
    session: Session, hours: HourRange, lookback_hours: int, *, with_prices: bool
) -> dict[str, set[datetime]]:
    """Give calls without a cost that of the price list, and executions and cancelled runs what their calls add up to.

    Contract, sections 8 and 9. Executions that were put together from spans have the sums of what their calls state.

    Args:
        session: a write session, in which executions, cancelled runs and model calls are as the logs have them.
        hours: the hours of the runs and calls.
        lookback_hours: how many hours of calls, ending with the execution's own, are looked at.
        with_prices: whether costs are computed.

    Returns:
        By table, the hours of which rows have changed.
    """
    reach = hours.extended_back(lookback_hours - 1)
    of_calls, of_hours = EnrichedColumns(session, reach), EnrichedColumns(session, hours)
    rates = rates_of(of_calls.models_without_cost() if with_prices else [], reach)
    has_costs = rates.num_rows > 0 or of_calls.has_computed_costs("model_calls")
    has_costs = has_costs or of_hours.has_computed_costs("executions")
    has_calls = of_calls.has_amounts_of_calls(AMOUNTS)
    has_cancelled = session.count_hours("cancellations", hours) > 0
    if not (has_costs or has_calls or has_cancelled or of_hours.has_summed_amounts(AMOUNTS)):
        return {}
    states, changed = PartitionStates(session), {}
    calls = session.hours_of("model_calls", reach)
    if has_costs:
        calls = with_costs(calls, ibis.memtable(rates))
        changed["model_calls"] = states.correct_rows("model_calls", _with_other_costs(session, hours, rates), KEYS)
    executions = session.hours_of("executions", hours)
    if not has_costs:
        executions = executions.filter(executions.span_id.isnull())
    differing = with_amounts(executions, amounts_of_calls(executions, calls, lookback_hours))
    changed["executions"] = states.correct_rows("executions", differing, RUN)
    if has_cancelled:
        cancelled = session.hours_of("cancellations", hours).mutate(span_id=ibis.null("string"))
        differing = with_amounts(cancelled, amounts_of_calls(cancelled, calls, lookback_hours))
        changed["cancellations"] = states.correct_rows("cancellations", differing, RUN)
    return changed


def _with_other_costs(session: Session, hours: HourRange, rates: pa.Table) -> ir.Table:
    """Calls of these hours whose cost is another than it should be: `KEYS`, `cost_usd` and `cost_source`."""
    stored = session.hours_of("model_calls", hours)
    before = stored.filter(~stored.cost_source.identical_to(STATED)).mutate(stored_usd=ibis._.cost_usd)
    wanted = with_costs(before, ibis.memtable(rates))
    return wanted.filter(~wanted.cost_usd.identical_to(wanted.stored_usd)).select(*KEYS, "cost_usd", "cost_source")
