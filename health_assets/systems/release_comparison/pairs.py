"""Pairs of versions: which new version is compared with which one before it, and the sums of both at each hour.

A version is new in an hour in which it runs, if it ran in none of the C hours before, the *comparison hours*. It is
compared in the C hours from then on, with the version that ran most in the C hours before. Of the baseline's executions
those since then count, too. So the first execution of either does not depend on when somebody looks, which
confidence sequences need (`scoring.confidence_sequences`).

The baseline's executions in the first half of the C hours before are no evidence. They say what to expect of both, by
which the intervals become tighter: a mixture of shares close to what is true is harder to contradict by chance.

What belongs here: pairs, and sums as integers and doubles. What does not: intervals (`release_comparison`).
"""

from collections.abc import Sequence

import ibis
from ibis import ir

from health_assets.core.hours import HourRange
from health_assets.scoring.exact_sums import as_number, exact_sum
from health_assets.scoring.relations import lookup, spine, time_literal
from health_assets.systems.release_comparison.names import BASELINE, CANDIDATE, DIMENSIONS
from health_assets.systems.release_comparison.release_components import NOT_NAMED, SESSION_PAIRS

PRIOR = (
    "executions", "successes", "runs_with_tool_calls", "runs_with_tool_failures", "runs_with_steps", "runs_with_loops",
)  # fmt: skip
SUMS = (
    *PRIOR, *SESSION_PAIRS, "timed_runs", "runtime_buckets", "squared_runtime_buckets", "runs_with_tokens", "tokens",
    "squared_kilotokens", "runs_with_cost", "cost_usd", "squared_cost_usd2", "successes_with_cost",
    "cost_of_successes_usd",
)  # fmt: skip
PAIR = ("agent_id", "dimension", "candidate", "baseline", "released_at")
_NAMED = ("hour", "agent_id", *DIMENSIONS.values())
_OF_PART = ("agent_id", "dimension", "release", "ran_at", "known_at")


def compared_pairs(components: ir.Table, hours: HourRange, comparison_hours: int) -> ir.Table:
    """`PAIR` of every version that is compared in one of these hours.

    Args:
        components: `release_components` of `hours` and the 2 C - 1 hours before them.
        hours: the hours.
        comparison_hours: C, the comparison hours.
    """
    runs = ibis.union(*(_runs_of_several(components, dimension) for dimension in DIMENSIONS))
    return _with_baseline(runs, _releases(runs, hours, comparison_hours), comparison_hours)


def buckets_of_pairs(components: ir.Table, pairs: ir.Table, comparison_hours: int) -> ir.Table:
    """The latency buckets of both versions of each pair: `PAIR`, `side`, `ran_at` and `latency_buckets`."""
    timed = components.filter(components.latency_buckets.notnull()).select(*_NAMED, "latency_buckets")
    joined = pairs.inner_join(of_releases(timed).rename(ran_at="hour"), ["agent_id", "dimension"])
    is_candidate, is_baseline, _ = sides_of(joined, comparison_hours)
    sided = joined.filter(is_candidate | is_baseline).mutate(side=is_candidate.ifelse(CANDIDATE, BASELINE))
    return sided.select(*PAIR, "side", "ran_at", "latency_buckets")


def of_releases(rows: ir.Table) -> ir.Table:
    """Rows once for each of the columns of `DIMENSIONS` that is named: with `dimension` and `release` instead."""
    releases = []
    for dimension, column in DIMENSIONS.items():
        others = [name for name in DIMENSIONS.values() if name != column]
        named = rows.filter(rows[column] != NOT_NAMED).drop(*others).rename(release=column)
        releases.append(named.mutate(dimension=ibis.literal(dimension)))
    return ibis.union(*(one.select(releases[0].columns) for one in releases))


def _runs_of_several(components: ir.Table, dimension: str) -> ir.Table:
    """Executions by hour, agent and named version or model, of the agents that ran several."""
    named = components.rename(release=DIMENSIONS[dimension])
    named = named.filter(named.release != NOT_NAMED)
    of_agents = named.group_by("agent_id").aggregate(first=named.release.min(), last=named.release.max())
    # few agents ran several; the others have no pair
    named = named.semi_join(of_agents.filter(of_agents["first"] != of_agents["last"]), "agent_id")
    counted = named.group_by(["hour", "agent_id", "release"]).aggregate(executions=named.executions.sum())
    return counted.mutate(dimension=ibis.literal(dimension))


def _releases(runs: ir.Table, hours: HourRange, comparison_hours: int) -> ir.Table:
    """`agent_id`, `dimension`, `candidate` and `released_at` of versions that are new in one of these hours."""
    length = ibis.interval(hours=comparison_hours)
    before = runs.hour.lag().over(group_by=["agent_id", "dimension", "release"], order_by="hour")
    placed = runs.mutate(ran_before=before)
    is_new = placed.ran_before.isnull() | (placed.ran_before + length < placed.hour)
    first = hours.extended_back(comparison_hours - 1).start
    new = placed.filter(is_new, placed.hour >= first, placed.hour < hours.end)
    return new.select("agent_id", "dimension", candidate="release", released_at="hour")


def _with_baseline(runs: ir.Table, releases: ir.Table, comparison_hours: int) -> ir.Table:
    """The releases that have a version before them, with the one that ran most; of several the last by name."""
    length = ibis.interval(hours=comparison_hours)
    others = runs.select("agent_id", "dimension", "executions", baseline="release", ran_at="hour")
    joined = releases.inner_join(others, ["agent_id", "dimension"])
    earlier = joined.filter(
        joined.baseline != joined.candidate,
        joined.ran_at < joined.released_at,
        joined.ran_at + length >= joined.released_at,
    )
    counted = earlier.group_by(["agent_id", "dimension", "candidate", "released_at", "baseline"]).aggregate(
        executions=earlier.executions.sum()
    )
    order = [ibis.desc("executions"), ibis.desc("baseline")]
    of_release = ["agent_id", "dimension", "candidate", "released_at"]
    placed = counted.mutate(place=ibis.row_number().over(group_by=of_release, order_by=order))
    return placed.filter(placed.place == 0).select(*PAIR)


def sums_of_pairs(
    parts: ir.Table,
    pairs: ir.Table,
    hours: HourRange,
    comparison_hours: int,
    names: Sequence[str] = SUMS,
    prior: Sequence[str] = PRIOR,
) -> ir.Table:
    """One row per hour of `hours` and pair that is compared in it.

    Args:
        parts: rows of `of_releases`, of `hours` and the 2 C - 1 hours before them, with `names`; and `known_at`, where
            they count later than in the hour of their executions.
        pairs: `compared_pairs` of these hours.
        hours: the hours to give rows for.
        comparison_hours: C, the comparison hours.
        names: what to add up.
        prior: of them, what to add up of the executions that are no evidence, too.

    Returns:
        `hour`, `PAIR`, the sums of each of `names` as `baseline_…` and `candidate_…`, and of `prior` as `prior_…`.
    """
    if "known_at" not in parts.columns:
        parts = parts.mutate(known_at=parts.hour)
    parts = parts.select("agent_id", "dimension", "release", "known_at", *names, ran_at="hour")
    own = _sums_of_hours(parts, pairs, hours, comparison_hours, prior)
    each = spine(hours)
    is_compared = [
        each.hour >= pairs.released_at,
        each.hour < pairs.released_at + ibis.interval(hours=comparison_hours),
    ]
    grid = pairs.inner_join(each, is_compared).select("hour", *PAIR)
    filled = lookup(grid, own, ["hour", *PAIR])
    added = [name for name in own.columns if name not in grid.columns]
    if len(hours) == 1:  # which has all of those before it
        return filled.select("hour", *PAIR, **{name: as_number(filled[name]) for name in added})
    so_far = ibis.window(preceding=None, following=0, group_by=PAIR, order_by="hour")
    return filled.select("hour", *PAIR, **{name: as_number(exact_sum(filled[name]).over(so_far)) for name in added})


def _sums_of_hours(
    parts: ir.Table, pairs: ir.Table, hours: HourRange, comparison_hours: int, prior: Sequence[str]
) -> ir.Table:
    """What each hour adds to the sums of each pair; the first hour that is asked for has all of those before it."""
    joined = pairs.inner_join(parts, ["agent_id", "dimension"])
    is_candidate, is_baseline, is_prior = sides_of(joined, comparison_hours)
    names = [name for name in parts.columns if name not in _OF_PART]
    counted = joined.filter(is_candidate | is_baseline, joined.known_at < time_literal(hours.end)).mutate(
        hour=ibis.greatest(joined.known_at, joined.released_at, time_literal(hours.start)),
        **_counted(joined, CANDIDATE, names, is_candidate),
        **_counted(joined, BASELINE, names, is_baseline),
        **_counted(joined, "prior", prior, is_prior),
    )
    names = [name for name in counted.columns if name not in joined.columns and name != "hour"]
    return counted.group_by(["hour", *PAIR]).aggregate(**{name: exact_sum(counted[name]) for name in names})


def sides_of(rows: ir.Table, comparison_hours: int) -> tuple[ir.BooleanValue, ir.BooleanValue, ir.BooleanValue]:
    """Whether what ran counts for the new version of its pair, for the baseline, and among that for no evidence."""
    is_candidate = (rows.release == rows.candidate) & (rows.ran_at >= rows.released_at)
    length, half = (ibis.interval(hours=hours) for hours in (comparison_hours, (comparison_hours + 1) // 2))
    is_baseline = (rows.release == rows.baseline) & (rows.ran_at + length >= rows.released_at)
    return is_candidate, is_baseline, is_baseline & (rows.ran_at + half < rows.released_at)


def _counted(rows: ir.Table, prefix: str, names: Sequence[str], where: ir.BooleanValue) -> dict[str, ir.Value]:
    """Columns as they are where a condition holds, and 0 elsewhere."""
    return {f"{prefix}_{name}": where.ifelse(rows[name], 0) for name in names}
