"""Usage: what agents' executions took in tokens and dollars, and what a success costs (contract, section 8).

The part of an hour is, for each agent, sums over its executions, and how many of them tell an amount at all. Sums are
null where no execution tells one: nobody knows that an agent was free.

    cost_per_success_usd = cost_usd / successes

The failures' cost is part of what a success costs, since somebody paid for them. Where only some executions tell what
they cost, sums and cost per success are what is known of, so at least that was spent; `executions_with_tokens` and
`executions_with_cost` say how many tell.
"""

from collections.abc import Sequence

import ibis
from ibis import ir

from health_assets.core.hours import HourRange
from health_assets.core.targets import Targets
from health_assets.scoring.outcomes import NEGATIVE, POSITIVE
from health_assets.scoring.prices import COMPUTED, STATED
from health_assets.scoring.target_columns import with_targets_used
from health_assets.scoring.usage import AMOUNTS, summed
from health_assets.scoring.window_merges import merged_windows
from health_assets.systems.agent_usage.names import BY_AGENT, BY_PART, COUNTS

NOT_NAMED = ""
"""The version, model or user of executions that name none."""


def usage_components(executions: ir.Table, keys: Sequence[str] = BY_AGENT) -> ir.Table:
    """One row per hour and keys with an execution: every column of `usage_components`."""
    rows = executions
    tells_tokens = rows.input_tokens.notnull() | rows.output_tokens.notnull()
    return rows.group_by(["hour", *keys]).aggregate(
        executions=rows.count(),
        successes=rows.count(where=rows.succeeded),
        executions_with_tokens=rows.count(where=tells_tokens),
        executions_with_cost=rows.cost_usd.count(),
        executions_with_computed_cost=rows.count(where=rows.cost_source == COMPUTED),
        positive_feedback=rows.count(where=rows.feedback == POSITIVE),
        negative_feedback=rows.count(where=rows.feedback == NEGATIVE),
        **{name: summed(rows, name) for name in AMOUNTS},
    )


def usage_breakdown_components(executions: ir.Table) -> ir.Table:
    """One row per hour, agent, version, model and user with an execution: columns of `usage_breakdown_components`."""
    named = {name: executions[name].fill_null(NOT_NAMED) for name in BY_PART if name not in BY_AGENT}
    return usage_components(executions.mutate(**named), BY_PART)


def agent_usage(
    components: ir.Table, targets: Targets, hours: HourRange, window_hours: int, keys: Sequence[str] = BY_AGENT
) -> ir.Table:
    """One row per hour and keys, of agents that are not retired, with an execution in the window.

    Args:
        components: `usage_components` by these keys, of `hours` and the window before them.
        targets: for which agents are retired.
        hours: the hours to give rows for.
        window_hours: length of the evaluation window.
        keys: columns that rows are told apart by.

    Returns:
        All columns but those of the window.
    """
    rows = merged_windows(components, keys, hours, window_hours, (*COUNTS, *AMOUNTS))
    rows = with_targets_used(rows, targets, [])
    return rows.mutate(
        cost_source=ibis.cases(
            (rows.executions_with_computed_cost > 0, COMPUTED), (rows.executions_with_cost > 0, STATED),
            else_=ibis.null("string"),
        ),
        cost_per_success_usd=rows.cost_usd / rows.successes.nullif(0),
    )  # fmt: skip
