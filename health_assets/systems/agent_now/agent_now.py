"""Agents now: a verdict on the last hours, from how improbable their failures are at the expected success rate.

The evaluation window dilutes an outage: after an hour in which everything failed, 24 hours still look good. So the
last hour and the last 6 are judged by themselves, by counts instead of shares, which are known of few executions too.

    failing     improbable, and at least half of the last hour's executions failed, or the streak at the end alone is
                improbable; a streak is two or more, and stands for up to 6 hours in which nothing runs
    quiet       else, nothing ran in the last hour
    suspect     else, the last hour's failures are improbable, yet fewer than half
    recovering  else, failing within the last 3 hours
    suspect     else, the last 6 hours' failures are improbable, and none of these hours was failing
    ok          else

Verdicts of earlier hours, which `recovering` and `since` need, are computed from the components anew, as far back as
the look-back tells of every hour. So a row is a function of the logs, wherever the range of a run starts.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import ibis
import pyarrow as pa
from ibis import ir

from health_assets.core.hours import HourRange
from health_assets.core.targets import Targets
from health_assets.scoring.relations import lookup, spine
from health_assets.scoring.target_columns import listed_agents, with_targets_used
from health_assets.scoring.wilson import interval
from health_assets.scoring.windows import WindowSum, sums_over_windows
from health_assets.systems.agent_now.chance import KEYS, with_chances
from health_assets.systems.agent_now.names import FAILING, LONG_HOURS, OK, QUIET, RECOVERING, RECOVERY_HOURS, SUSPECT

Keep = Callable[[ir.Table], ir.Table]
"""Evaluates an expression once, to be used several times."""
Fetch = Callable[[ir.Table], pa.Table]
"""Evaluates an expression into this process."""
BY_AGENT = {"group_by": "agent_id", "order_by": "hour"}


@dataclass(frozen=True)
class Reach:
    """Hours that each part of a verdict looks back; all of them together stay within the look-back.

    Args:
        lookback_hours: length of the look-back.
    """

    lookback_hours: int

    @property
    def long_hours(self) -> int:
        """Hours of the longer window."""
        return min(LONG_HOURS, self.lookback_hours)

    @property
    def failing_before(self) -> int:
        """Earlier hours that are asked whether they were failing."""
        return min(self.long_hours - 1, self.lookback_hours - self.long_hours)

    @property
    def since_hours(self) -> int:
        """Hours that `since` lies back at most."""
        return self.lookback_hours - self.long_hours - self.failing_before


def agent_now(
    components: ir.Table,
    endings: ir.Table,
    targets: Targets,
    hours: HourRange,
    lookback_hours: int,
    threshold: float,
    keep: Keep,
    fetch: Fetch,
) -> ir.Table:
    """One row per known, not retired agent and hour: every column of `agent_now`.

    Args:
        components: rows of `health_components`, at least of `hours` and the look-back before them.
        endings: rows of `now_components` of the same hours.
        targets: for the success rate that is expected of each agent.
        hours: the hours to give rows for.
        lookback_hours: how long an agent stays known after its last event.
        threshold: failures of a smaller probability are no chance.
        keep: evaluates an expression once.
        fetch: evaluates an expression into this process.
    """
    reach = Reach(lookback_hours)
    one_hour = {"executions": WindowSum("executions", 1)}
    known = sums_over_windows(components, listed_agents(targets), hours, one_hour, lookback_hours)
    known = keep(known.select("hour", "agent_id"))
    agents = with_targets_used(known.select("agent_id").distinct(), targets, ["expected_success_rate"])
    span = hours.extended_back(lookback_hours - 1)
    counted = keep(_counts(agents.cross_join(spine(span)), components, endings, reach))
    judged = _verdicts(_with_chances(counted, threshold, fetch), reach)
    first = hours.start - timedelta(hours=reach.since_hours)
    dated = _since(judged.filter(judged.hour >= first), reach)
    rows = dated.filter(dated.hour >= hours.start).semi_join(known, ["hour", "agent_id"])
    return rows.mutate(
        failing_threshold=ibis.literal(float(threshold)),
        **_shares(rows, "1h"),
        **_shares(rows, "6h"),
    )


def _counts(grid: ir.Table, components: ir.Table, endings: ir.Table, reach: Reach) -> ir.Table:
    """Add what happened in the last 1 and 6 hours, and the streak at the end, to every agent and hour."""
    ran = components.filter(components.executions > 0).select("hour", "agent_id", "executions", "failures")
    joined = lookup(lookup(grid, ran, ["hour", "agent_id"]), endings, ["hour", "agent_id"])
    counts = {name: joined[name].fill_null(0).cast("int64") for name in ("executions", "failures", "failed_at_end")}
    rows = joined.select("hour", "agent_id", "expected_success_rate", **counts)
    long = ibis.window(preceding=reach.long_hours - 1, following=0, **BY_AGENT)
    so_far = ibis.window(preceding=None, following=0, **BY_AGENT)
    rows = rows.mutate(
        executions_6h=rows.executions.sum().over(long).cast("int64"),
        failures_6h=rows.failures.sum().over(long).cast("int64"),
        failures_so_far=rows.failures.sum().over(so_far).cast("int64"),
    )
    before_streak = (rows.failed_at_end < rows.executions).ifelse(
        rows.failures_so_far - rows.failed_at_end, ibis.null("int64")
    )
    rows = rows.mutate(before_streak=before_streak)
    before = ibis.coalesce(rows.before_streak.max().over(long), rows.failures_so_far - rows.failures_6h)
    return rows.select(
        "hour", "agent_id", "expected_success_rate", "executions_6h", "failures_6h",
        executions_1h=rows.executions, failures_1h=rows.failures, failed_in_a_row=rows.failures_so_far - before,
    )  # fmt: skip


def _with_chances(counted: ir.Table, threshold: float, fetch: Fetch) -> ir.Table:
    """Add the chance of each window and of the streak, and whether it is improbable; null where nothing failed."""
    pairs = {
        "1h": ("failures_1h", "executions_1h"),
        "6h": ("failures_6h", "executions_6h"),
        "streak": ("failed_in_a_row", "failed_in_a_row"),
    }

    def cases(failures: str, executions: str) -> ir.Table:
        own = counted.select(
            failures=counted[failures], executions=counted[executions],
            expected_success_rate=counted.expected_success_rate,
        )  # fmt: skip
        return own.filter(own.failures > 0).distinct()

    distinct = ibis.union(*(cases(*pair) for pair in pairs.values()), distinct=True)
    chances = ibis.memtable(with_chances(fetch(distinct).cast(pa.schema(KEYS)), threshold))
    rows = counted
    for name, (failures, executions) in pairs.items():
        own = chances.select(
            **{failures: "failures", f"of_{name}": "executions", f"at_{name}": "expected_success_rate"},
            **{f"chance_{name}": "chance", f"is_improbable_{name}": "is_improbable"},
        )
        same = [
            rows[failures] == own[failures], rows[executions] == own[f"of_{name}"],
            rows.expected_success_rate == own[f"at_{name}"],
        ]  # fmt: skip
        added = [f"chance_{name}", f"is_improbable_{name}"]
        joined = rows.left_join(own, same)
        rows = joined.select(*rows.columns, *added)
        rows = rows.mutate(**{added[1]: rows[added[1]].fill_null(False)})
    return rows


def _verdicts(rows: ir.Table, reach: Reach) -> ir.Table:
    """Add `verdict`, `good_hours` and the chances as they are stored."""
    is_half = rows.failures_1h * 2 >= rows.executions_1h
    is_streak = (rows.failed_in_a_row >= 2) & rows.is_improbable_streak
    so_far = ibis.window(preceding=None, following=0, **BY_AGENT)
    rows = rows.mutate(
        is_failing=(rows.is_improbable_1h & is_half) | is_streak,
        hours_ran=(rows.executions_1h > 0).cast("int64").sum().over(so_far).cast("int64"),
    )
    ran_when_failing = rows.is_failing.ifelse(rows.hours_ran, ibis.null("int64"))
    rows = rows.mutate(ran_when_failing=ran_when_failing)
    rows = rows.mutate(
        ran_by_failing=_latest_before(rows, min(RECOVERY_HOURS, reach.failing_before)),
        failing_within_6h=_latest_before(rows, reach.failing_before).notnull(),
    )
    verdict = ibis.cases(
        (rows.is_failing, FAILING),
        (rows.executions_1h == 0, QUIET),
        (rows.is_improbable_1h, SUSPECT),
        (rows.ran_by_failing.notnull(), RECOVERING),
        (rows.is_improbable_6h & ~rows.failing_within_6h, SUSPECT),
        else_=OK,
    )
    return rows.mutate(
        verdict=verdict,
        good_hours=(verdict == RECOVERING).ifelse(rows.hours_ran - rows.ran_by_failing, ibis.null("int64")),
        p_chance=_stored_chance(rows),
        p_chance_6h=_where(rows.executions_6h > 0, rows.chance_6h.fill_null(1.0)),
    )


def _latest_before(rows: ir.Table, hours: int) -> ir.Value:
    """The hours that an agent had run in by the last failing one of some hours before each; null where none was."""
    if not hours:
        return ibis.null("int64")
    return rows.ran_when_failing.max().over(ibis.window(preceding=(hours, 1), **BY_AGENT))


def _stored_chance(rows: ir.Table) -> ir.Value:
    smaller = ibis.least(rows.chance_1h.fill_null(1.0), rows.chance_streak.fill_null(1.0))
    return _where((rows.executions_1h > 0) | (rows.failed_in_a_row > 0), smaller)


def _where(condition: ir.BooleanValue, value: ir.Value) -> ir.Value:
    return condition.ifelse(value, ibis.null(value.type()))


def _since(rows: ir.Table, reach: Reach) -> ir.Table:
    """Add `since`, from rows as far back as it may lie."""
    before = rows.verdict.lag(1).over(ibis.window(**BY_AGENT))
    rows = rows.mutate(is_changed=before.isnull() | (before != rows.verdict))
    changed_in = _where(rows.is_changed, rows.hour)
    rows = rows.mutate(changed_in=changed_in)
    so_far = ibis.window(preceding=None, following=0, **BY_AGENT)
    first = rows.hour - ibis.interval(hours=reach.since_hours)
    return rows.mutate(since=ibis.greatest(rows.changed_in.max().over(so_far), first))


def _shares(rows: ir.Table, name: str) -> dict[str, ir.Value]:
    """The share of executions that succeeded, and the ends of its interval."""
    executions, failures = rows[f"executions_{name}"], rows[f"failures_{name}"]
    n = executions.nullif(0)
    low, high = interval(executions - failures, n, lambda value: value.sqrt())
    return {
        f"success_share_{name}": (executions - failures) / n,
        f"success_low_{name}": (failures == executions).ifelse(_where(executions > 0, low * 0), low),
        f"success_high_{name}": (failures == 0).ifelse(_where(executions > 0, high * 0 + 1), high),
    }
