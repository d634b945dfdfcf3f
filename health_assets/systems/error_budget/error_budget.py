"""Error budgets: how much of the failures that its target allows an agent has had, and how fast it goes on.

Source: the idea of error budgets and burn rates in Google's *The Site Reliability Workbook*, "Alerting on SLOs", in our
own words. Who expects a share s of executions to succeed allows the share 1 - s to fail. Of n executions in the window,

    allowed_failures = (1 - s) n
    budget_spent     = failures / allowed_failures

1 is all of the budget, 2 twice of it. A burn rate is the speed of spending: the share that failed in the last hours,
over the share that may.

    burn_rate = (failures_h / n_h) / (1 - s)

At 1 the budget lasts exactly as long as the window; at 4, steadily, a quarter of it. Over the whole window the burn
rate is `budget_spent` itself, so it has no column of its own. A long window says that it matters and a short one that
it goes on, so an alarm asks for both: 1 hour with 5 minutes, 6 hours with 30.

Where nothing ran there is no rate, and where nothing may fail (s = 1) there is no budget of which a failure could be a
share: both are null, and neither is 0. The counts are there all the same.
"""

from ibis import ir

from health_assets.core.hours import HourRange
from health_assets.core.targets import Targets
from health_assets.scoring.health_components import LAST_MINUTES
from health_assets.scoring.relations import lookup
from health_assets.scoring.target_columns import listed_agents, with_targets_used
from health_assets.scoring.trailing_counts import Trailing
from health_assets.scoring.windows import WindowSum, sums_over_windows

SHORT_WINDOWS_HOURS = (1, 6)
SHORT_WINDOWS = (*(f"{minutes}m" for minutes in LAST_MINUTES), *(f"{hours}h" for hours in SHORT_WINDOWS_HOURS))
"""Windows within the last hours, as columns are called by them, the shortest first."""

BILLION = 10**9


def error_budget(
    components: ir.Table,
    targets: Targets,
    hours: HourRange,
    window_hours: int,
    lookback_hours: int,
    trailing: Trailing | None = None,
) -> ir.Table:
    """One row per known, not retired agent and hour: every column of `error_budget` but those of the window.

    Args:
        components: hourly components, at least of `hours` and the look-back before them.
        targets: for the success rate that is expected of each agent.
        hours: the hours to give rows for.
        window_hours: length of the evaluation window.
        lookback_hours: how long an agent stays known after its last event. No short window reaches further back, since
            earlier hours may not be there.
        trailing: executions of the last hours, where the last of `hours` runs.
    """
    sums = {"n": WindowSum("executions", window_hours), "failures": WindowSum("failures", window_hours)}
    for minutes in LAST_MINUTES:
        sums |= {
            f"n_{minutes}m": WindowSum(f"executions_{minutes}m", 1),
            f"failures_{minutes}m": WindowSum(f"failures_{minutes}m", 1),
        }
    for length in SHORT_WINDOWS_HOURS:
        reach = min(length, lookback_hours)
        sums |= {f"n_{length}h": WindowSum("executions", reach), f"failures_{length}h": WindowSum("failures", reach)}
    summed = sums_over_windows(components, listed_agents(targets), hours, sums, lookback_hours)
    if trailing is not None:
        summed = _with_trailing(summed, trailing)
    rows = with_targets_used(summed, targets, ["expected_success_rate"])
    return rows.mutate(
        allowed_failures=_allowed(rows, rows.n),
        budget_spent=_spent(rows, rows.failures, rows.n),
        **{
            f"burn_rate_{length}": _spent(rows, rows[f"failures_{length}"], rows[f"n_{length}"])
            for length in SHORT_WINDOWS
        },
    )


def _with_trailing(summed: ir.Table, trailing: Trailing) -> ir.Table:
    """The sums, of which the short windows of the running hour end when it is known instead of with the hour."""
    own = [f"{name}_{length}" for length in SHORT_WINDOWS for name in ("n", "failures")]
    counts = trailing.counts(SHORT_WINDOWS).rename({f"trailing_{name}": _counted(name) for name in own})
    joined = lookup(summed, counts, ["hour", "agent_id"])
    is_running = joined.hour == trailing.hour
    values = {name: is_running.ifelse(joined[f"trailing_{name}"].fill_null(0), joined[name]) for name in own}
    return joined.mutate(**values).select(summed.columns)


def _counted(name: str) -> str:
    """What `Trailing` calls a count."""
    return name.replace("n_", "executions_") if name.startswith("n_") else name


def is_spent(budgets: ir.Table) -> ir.BooleanValue:
    """Whether all of a budget is spent; null where there is no budget or nothing ran."""
    return budgets.budget_spent >= 1


def burns_too_fast(budgets: ir.Table) -> ir.BooleanValue:
    """Whether a budget is spent faster than it may: it matters, as 6 hours say, and goes on, as the last one says."""
    return (budgets.burn_rate_1h > 1) & (budgets.burn_rate_6h > 1)


def _allowed(rows: ir.Table, executions: ir.NumericValue) -> ir.NumericValue:
    """Failures allowed of so many executions.

    In whole billionths, for 1 - 0.95 is not 0.05 in binary, and one failure of twenty should be all of the budget.
    """
    return _allowed_billionths(rows, executions) / BILLION


def _allowed_billionths(rows: ir.Table, executions: ir.NumericValue) -> ir.NumericValue:
    billionths = BILLION - (rows.expected_success_rate * BILLION).round().cast("int64")
    return billionths.cast("float64") * executions


def _spent(rows: ir.Table, failures: ir.NumericValue, executions: ir.NumericValue) -> ir.NumericValue:
    """Failures as a share of those allowed of so many executions: over any window, also its burn rate.

    One division of whole numbers: 21 failures of 28 at 95 % burn at exactly 15, and 21 / 1.4 would be more.
    """
    return failures.cast("float64") * BILLION / _allowed_billionths(rows, executions).nullif(0)
