"""Usage: what agents' executions took in tokens and dollars, and what a success costs (docs/tools-and-usage.md).

The part of an hour is, for each agent, version, model and user, sums over its executions, and how many of them tell an
amount at all. Sums are null where no execution tells one: nobody knows that an agent was free.

    cost_per_success_usd = cost_usd / successes

The failures' cost is part of what a success costs, since somebody paid for them. Where only some executions tell what
they cost, sums and cost per success are what is known of, so at least that was spent; `executions_with_tokens` and
`executions_with_cost` say how many tell.

Runs that their users cancelled are no executions. What they took stands beside, under `cancelled_…`.
"""

from collections.abc import Sequence

import ibis
from ibis import ir

from health_assets.core.hours import HourRange
from health_assets.core.targets import Targets
from health_assets.scoring.exact_sums import exact_sum
from health_assets.scoring.outcomes import NEGATIVE, POSITIVE
from health_assets.scoring.prices import COMPUTED, STATED
from health_assets.scoring.relations import lookup
from health_assets.scoring.target_columns import with_targets_used
from health_assets.scoring.usage import AMOUNTS, summed
from health_assets.scoring.window_merges import merged_windows
from health_assets.systems.agent_usage.names import BY_AGENT, BY_PART, CANCELLED, CANCELLED_AMOUNTS, COUNTS

SUMS = (*COUNTS, *AMOUNTS, *CANCELLED)
NOT_NAMED = ""
"""The version, model or user of executions that name none."""


def usage_components(executions: ir.Table, cancellations: ir.Table | None = None) -> ir.Table:
    """One row per hour, agent, version, model and user with an execution or a cancelled run.

    It has every column of `usage_components`.

    Args:
        executions: cleaned executions of the hours.
        cancellations: cleaned cancellations of the same hours; None where there are none.
    """
    sums = _sums_of_executions(_with_parts_named(executions))
    if cancellations is None:
        nothing = {f"cancelled_{name}": ibis.null(sums[name].type()) for name in CANCELLED_AMOUNTS}
        return sums.mutate(cancelled_runs=ibis.literal(0, "int64"), **nothing)
    return _with_cancelled_runs(sums, _with_parts_named(cancellations), ["hour", *BY_PART])


def _with_parts_named(rows: ir.Table) -> ir.Table:
    return rows.mutate(**{name: rows[name].fill_null(NOT_NAMED) for name in BY_PART if name not in BY_AGENT})


def _with_cancelled_runs(sums: ir.Table, cancellations: ir.Table, keys: Sequence[str]) -> ir.Table:
    """The sums with those of cancelled runs, also where nothing else ran."""
    cancelled = cancellations.group_by(keys).aggregate(
        cancelled_runs=cancellations.count(),
        **{f"cancelled_{name}": summed(cancellations, name) for name in CANCELLED_AMOUNTS},
    )
    both = lookup(sums, cancelled, keys)
    both = both.mutate(cancelled_runs=both.cancelled_runs.fill_null(0))
    alone = cancelled.anti_join(sums, keys)
    counts = {name: ibis.literal(0, "int64") for name in COUNTS}
    columns = {name: alone[name] if name in alone.columns else ibis.null(kind) for name, kind in both.schema().items()}
    return ibis.union(both, alone.select(**(columns | counts)))


def _sums_of_executions(rows: ir.Table) -> ir.Table:
    tells_tokens = rows.input_tokens.notnull() | rows.output_tokens.notnull()
    return rows.group_by(["hour", *BY_PART]).aggregate(
        executions=rows.count(),
        successes=rows.count(where=rows.succeeded),
        executions_with_tokens=rows.count(where=tells_tokens),
        executions_with_cost=rows.cost_usd.count(),
        executions_with_computed_cost=rows.count(where=rows.cost_source == COMPUTED),
        positive_feedback=rows.count(where=rows.feedback == POSITIVE),
        negative_feedback=rows.count(where=rows.feedback == NEGATIVE),
        **{name: summed(rows, name) for name in AMOUNTS},
    )


def added_up(components: ir.Table, keys: Sequence[str]) -> ir.Table:
    """Components with one row per hour and keys; their sums stay exact (`exact_sums`)."""
    sums = {name: exact_sum(components[name]) for name in SUMS}
    return components.group_by(["hour", *keys]).aggregate(**sums)


def agent_usage(
    components: ir.Table, targets: Targets, hours: HourRange, window_hours: int, keys: Sequence[str] = BY_AGENT
) -> ir.Table:
    """One row per hour and keys, of agents that are not retired, with an execution or a cancelled run in the window.

    Args:
        components: `usage_components` of `hours` and the window before them.
        targets: for which agents are retired.
        hours: the hours to give rows for.
        window_hours: length of the evaluation window.
        keys: columns that rows are told apart by, some or all of `BY_PART`.

    Returns:
        All columns but those of the window.
    """
    parts = components if len(hours) == 1 or set(keys) == set(BY_PART) else added_up(components, keys)
    rows = merged_windows(parts, keys, hours, window_hours, SUMS)
    rows = with_targets_used(rows, targets, [])
    return rows.mutate(
        cost_source=ibis.cases(
            (rows.executions_with_computed_cost > 0, COMPUTED), (rows.executions_with_cost > 0, STATED),
            else_=ibis.null("string"),
        ),
        cost_per_success_usd=rows.cost_usd / rows.successes.nullif(0),
    )  # fmt: skip
