"""The release comparison: differences of a new version or model from the one before it, and what they say.

By measure, with the 95 % confidence sequence of the difference (`scoring.confidence_sequences`):

| measure | of | difference |
|---|---|---|
| success_rate | executions | new - old; exact for any number of executions, each of a session of its own |
| tool_failure_share | executions with a tool call, of which one failed | new - old; exact for any number |
| loop_share | executions whose steps are known, of which one repeats an earlier one | likewise |
| success_rate_same_tasks | executions whose task is known | likewise, of success rates weighted by group of tasks |
| violation_share | judged executions, of which one violated a constraint | likewise |
| runtime | the logarithm of the runtime of successes | new / old - 1, of geometric means |
| latency_p50_ms, latency_p95_ms | quantiles of the runtime of successes | new / old - 1; exact for any number of them |
| tokens | executions that tell them | new / old - 1, of means; the logarithm of a mean by the delta method |
| cost_per_success_usd | executions that have a cost: their cost over the successes among them | new / old - 1 |

The weights of the tasks that the old version ran most (`task_groups`) are their shares of these before the release;
others are left out. There is no row until both versions have run every one of them, or where they are less than half of
what the old version ran. Whether the mixes of both versions differ by more than
chance is told of each pair; of a session all executions count as one there, since they may all be of one task.

Executions of one session may share an outcome. So success rates count them as fewer, by the design effect that pairs
of them show; with sessions of several executions their intervals hold in the limit of many.

The interval of a quantile's ratio is from the new version's lower end by the old one's upper end to the opposite, with
the ends of latency buckets, outwards (`runtime_quantiles`). There is none before both sides have both ends.

Intervals of means and of their ratios hold in the limit of many, so none is given before each side has `FEWEST_RUNS`.
There is none of cost per success either while the success rate or the mean cost of a side is not told apart from 0.
A new version that has had no costly or failed execution yet seems to vary less than it does. So both sides have the
variances of the one that varies more, with one more failure.

The verdict is `worse` where the whole interval is on the bad side of 0, and `better` on the good one; `no_difference`
where it lies within the margin on both sides of 0, whatever side; else `not_enough`. Of an agent whose version
changed nothing, each measure has a wrong verdict ever with a probability of at most 5 %.

What belongs here: the arithmetic on the sums of pairs, in arrays. What does not: pairs (`pairs`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from health_assets.scoring.confidence_sequences import (
    Floats,
    Means,
    Mixes,
    Ratios,
    Shares,
    difference_of_log_ratios,
    difference_of_means,
    difference_of_shares,
    difference_of_weighted_shares,
    fewest_for_quantile,
    log_evidence_of_other_mix,
)
from health_assets.scoring.latency_buckets import GAMMA
from health_assets.systems.release_comparison.names import (
    BETTER,
    COST_PER_SUCCESS,
    LOOPS,
    MEASURES,
    MIX,
    PERCENTS,
    RUNTIME,
    SAME,
    SAME_TASKS,
    SUCCESS_RATE,
    SUCCESS_RATES,
    TOKENS,
    TOOL_FAILURES,
    UNDECIDED,
    VIOLATIONS,
    WORSE,
)
from health_assets.systems.release_comparison.release_components import SESSION_PAIRS
from health_assets.systems.release_comparison.runtime_quantiles import ALPHA_OF_SIDE, ENDS
from health_assets.systems.release_comparison.task_groups import GROUPS

ALPHA = 0.05
FEWEST_RUNS = 100
MOST_PRIOR_RUNS = 20
"""Executions that what is expected of the new version counts as at most: it may well be another."""
LEAST_NAMED_SHARE = 0.5
"""Of fewer of its executions before the release, success rates at the same tasks say little of the old version."""
MOST_RUNS = 10**9
KEYS = ("hour", "agent_id", "dimension", "candidate", "baseline", "released_at")
COLUMN_OF = {"candidate": "to_version", "baseline": "from_version"}
"""By a column of pairs, that of the table; others have the same name."""
_SIDES = ("baseline", "candidate")
LOG_STEP = float(np.log(GAMMA))
BUCKET_MIDDLE = 0.5
BUCKET_VARIANCE = 1 / 12
"""What cutting into buckets adds to the variance of their numbers at most; without it equal runtimes had none."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A measure of all pairs.

    Args:
        n_from: executions that tell of it.
        n_to: likewise.
        estimate_from: its value; nan where nothing tells of it.
        estimate_to: likewise.
        low: lower end of the interval, on the scale of `margin`: of shares, or of logarithms of ratios.
        high: upper end.
        is_ratio: whether it is logarithms of ratios.
        fewest_runs: how many a version needs for an interval.
    """

    n_from: Floats
    n_to: Floats
    estimate_from: Floats
    estimate_to: Floats
    low: Floats
    high: Floats
    is_ratio: bool
    fewest_runs: int = 0


def compared(sums: pa.Table, margin: float, ratio_margin: float) -> pa.Table:
    """One row per row of `sums` and measure that both sides may tell of.

    Args:
        sums: the columns of `pairs.sums_of_pairs`.
        margin: largest difference of shares that does not matter, above 0.
        ratio_margin: the same of the other measures, as a share of the baseline's value.

    Returns:
        `KEYS`, `measure`, and the columns of `release_comparison` from `n_from` to `is_mix_changed`.
    """
    columns = {
        name: sums[name].cast(pa.float64()).to_numpy()  # some engines' sums are decimals, which numpy has as objects
        for name in sums.column_names
        if name.startswith(("baseline_", "candidate_", "prior_"))
    }
    tables = []
    with np.errstate(divide="ignore", invalid="ignore"):
        columns |= _comparable_runs(columns)
        shift, is_changed = mixes(columns)
        for name, values in zip(MIX, (shift, is_changed), strict=True):
            sums = sums.append_column(name, pa.array(values, mask=~np.isfinite(shift)))
        named = sums.select([*KEYS, *MIX])
        for measure in MEASURES:
            runs, measured_by = _MEASURES[measure]
            told = (columns[f"baseline_{runs}"] > 0) & (columns[f"candidate_{runs}"] > 0)
            measured = measured_by(columns if told.all() else {name: values[told] for name, values in columns.items()})
            own = ratio_margin if measured.is_ratio else margin
            tables.append(_rows(named if told.all() else named.filter(pa.array(told)), measure, measured, own))
    return pa.concat_tables(tables)


def success_rates(columns: Mapping[str, Floats]) -> Measured:
    """Success rates of pairs: executions of one session that share an outcome count as fewer."""
    return _shares(columns, "executions", "successes", _design_effects(columns))


def _design_effects(columns: Mapping[str, Floats]) -> dict[str, Floats]:
    """By side, how many times the variance of its success rate is that of independent executions, at least 1.

    The correlation of executions of one session is that of all pairs of both sides, each about its own success rate; 1
    where all of these executions came out alike (Kish, "Survey Sampling", 1965).
    """
    covariance, variance = np.zeros_like(columns["baseline_executions"]), np.zeros_like(columns["baseline_executions"])
    for side in _SIDES:
        pairs, first, both = (columns[f"{side}_{name}"] for name in SESSION_PAIRS)
        share = columns[f"{side}_successes"] / columns[f"{side}_executions"]
        covariance += both - 2 * share * first + share * share * pairs
        variance += pairs * share * (1 - share)
    correlation = np.where(variance > 0, np.clip(covariance / variance, 0.0, 1.0), 1.0)
    return {side: 1 + correlation * columns[f"{side}_session_pairs"] / columns[f"{side}_executions"] for side in _SIDES}


def _by_group(columns: Mapping[str, Floats], part: str, count: str) -> Floats:
    """Counts of executions whose task is known: a row a pair, a column a group; nan of pairs without groups."""
    return np.column_stack([columns[f"{part}_{count}_{group}"] for group in range(GROUPS)])


def _named_tasks(columns: Mapping[str, Floats], part: str, count: str) -> Floats:
    """The same without the last group, whose other tasks need not be the same ones in both versions."""
    groups = _by_group(columns, part, count)
    groups[:, -1] = 0.0
    return groups


def _comparable_runs(columns: Mapping[str, Floats]) -> dict[str, Floats]:
    """By side, the executions of named tasks; 0 before both sides ran all of them, or where they are too few of all."""
    prior, baseline, candidate = (_named_tasks(columns, part, "task_runs") for part in ("prior", *_SIDES))
    is_covered = ((prior == 0) | ((baseline > 0) & (candidate > 0))).all(axis=1)
    all_prior = _by_group(columns, "prior", "task_runs").sum(axis=1)
    is_comparable = is_covered & (prior.sum(axis=1) >= LEAST_NAMED_SHARE * all_prior)
    return {
        f"{side}_comparable_runs": np.where(is_comparable, np.where(prior > 0, runs, 0).sum(axis=1), 0.0)
        for side, runs in zip(_SIDES, (baseline, candidate), strict=True)
    }


def success_rates_same_tasks(columns: Mapping[str, Floats]) -> Measured:
    """Success rates if both versions ran the groups of tasks in the shares that the old one ran them in before."""
    runs, successes = (
        {part: _named_tasks(columns, part, count) for part in ("prior", *_SIDES)}
        for count in ("task_runs", "task_successes")
    )
    weights = runs["prior"] / runs["prior"].sum(axis=1, keepdims=True)
    effects = {side: effect[:, np.newaxis] for side, effect in _design_effects(columns).items()}
    low, high = difference_of_weighted_shares(*_evidence(runs, successes, effects), weights, ALPHA)
    values = [
        np.where(weights > 0, weights * successes[side] / runs[side], 0.0).sum(axis=1) for side in _SIDES
    ]  # fmt: skip
    return Measured(
        n_from=columns["baseline_comparable_runs"],
        n_to=columns["candidate_comparable_runs"],
        estimate_from=values[0],
        estimate_to=values[1],
        low=low,
        high=high,
        is_ratio=False,
    )


def mixes(columns: Mapping[str, Floats]) -> tuple[Floats, NDArray[np.bool_]]:
    """How much the mixes of tasks differ, nan where tasks are not known, and whether by more than chance.

    The difference is the share of executions that would have to be of other groups for the mixes to be the same.
    """
    runs = {part: _by_group(columns, part, "task_runs") for part in ("prior", *_SIDES)}
    shares = [runs[side] / runs[side].sum(axis=1, keepdims=True) for side in _SIDES]
    shift = np.minimum(np.abs(shares[1] - shares[0]).sum(axis=1) / 2, 1.0)  # rounding may lead above
    in_sessions = {side: 1 + columns[f"{side}_session_pairs"] / columns[f"{side}_executions"] for side in _SIDES}
    counted = {side: runs[side] / in_sessions[side][:, np.newaxis] for side in _SIDES}
    prior = runs["prior"] / in_sessions["baseline"][:, np.newaxis]
    weight = np.minimum(1.0, MOST_PRIOR_RUNS / prior.sum(axis=1, keepdims=True))
    evidence = log_evidence_of_other_mix(
        Mixes(counted["baseline"] - prior, 0.5 + prior), Mixes(counted["candidate"], 0.5 + weight * prior)
    )
    return shift, evidence >= -np.log(ALPHA)


def _shares(
    columns: Mapping[str, Floats], counted: str, hits: str, design_effects: Mapping[str, Floats] | None = None
) -> Measured:
    """Shares of executions of pairs, from two counts of both sides and of `prior_`."""
    runs, successes = ({side: columns[f"{side}_{name}"] for side in (*_SIDES, "prior")} for name in (counted, hits))
    effects = design_effects or dict.fromkeys(_SIDES, np.ones_like(runs["baseline"]))
    low, high = difference_of_shares(*_evidence(runs, successes, effects), ALPHA)
    return Measured(
        n_from=runs["baseline"],
        n_to=runs["candidate"],
        estimate_from=successes["baseline"] / runs["baseline"],
        estimate_to=successes["candidate"] / runs["candidate"],
        low=low,
        high=high,
        is_ratio=False,
    )


def _evidence(
    runs: Mapping[str, Floats], successes: Mapping[str, Floats], effects: Mapping[str, Floats]
) -> tuple[Shares, Shares]:
    """Both sides: what is evidence, and what was expected by what ran before.

    Args:
        runs: counts of both sides and of `prior`, which is among the baseline's.
        successes: likewise.
        effects: how many times each side's executions count too often.
    """
    prior, prior_successes = runs["prior"] / effects["baseline"], successes["prior"] / effects["baseline"]
    weight = np.where(prior > 0, np.minimum(prior, MOST_PRIOR_RUNS) / prior, 0.0)
    baseline = Shares(
        runs=(runs["baseline"] - runs["prior"]) / effects["baseline"],
        successes=(successes["baseline"] - successes["prior"]) / effects["baseline"],
        prior_successes=0.5 + prior_successes,
        prior_failures=0.5 + prior - prior_successes,
    )
    candidate = Shares(
        runs=runs["candidate"] / effects["candidate"],
        successes=successes["candidate"] / effects["candidate"],
        prior_successes=0.5 + weight * prior_successes,
        prior_failures=0.5 + weight * (prior - prior_successes),
    )
    return baseline, candidate


def _runtimes(columns: Mapping[str, Floats]) -> Measured:
    """Of logarithms: the interval of the difference of their means is that of the logarithm of the ratio."""
    sides = [_means(columns, side, "timed_runs", "runtime_buckets", "squared_runtime_buckets") for side in _SIDES]
    logs = [Means(side.runs, side.mean * LOG_STEP, (side.variance + BUCKET_VARIANCE) * LOG_STEP**2) for side in sides]
    values = [np.exp((side.mean - BUCKET_MIDDLE) * LOG_STEP) / 1e6 for side in sides]
    return _ratios(logs, values)


def runtime_quantile_ratios(columns: Mapping[str, Floats], measure: str) -> Measured:
    """Of quantiles: each bucket ends where the next one begins, and the first one has no lower end above 0."""
    (old, old_low, old_high), (new, new_low, new_high) = (
        [columns[f"{side}_{measure}{end}"] for end in ENDS] for side in _SIDES
    )
    is_known = np.isfinite(old_high) & np.isfinite(new_high) & (np.minimum(old_low, new_low) > 0)
    return Measured(
        n_from=columns["baseline_timed_runs"],
        n_to=columns["candidate_timed_runs"],
        estimate_from=_milliseconds(old),
        estimate_to=_milliseconds(new),
        low=np.where(is_known, (new_low - 1 - old_high) * LOG_STEP, np.nan),
        high=np.where(is_known, (new_high - (old_low - 1)) * LOG_STEP, np.nan),
        is_ratio=True,
        fewest_runs=fewest_for_quantile(PERCENTS[measure] / 100, ALPHA_OF_SIDE),
    )


def _milliseconds(bucket: Floats) -> Floats:
    """The runtime that a bucket stands for."""
    return np.where(bucket > 0, np.exp((bucket - BUCKET_MIDDLE) * LOG_STEP) / 1e3, 0.0)


def _tokens(columns: Mapping[str, Floats]) -> Measured:
    kilotokens = {f"{side}_kilotokens": columns[f"{side}_tokens"] / 1e3 for side in _SIDES}
    names = ("runs_with_tokens", "kilotokens", "squared_kilotokens")
    sides = [_means({**columns, **kilotokens}, side, *names) for side in _SIDES]
    return _ratios([_of_logarithm(side) for side in sides], [side.mean * 1e3 for side in sides])


def costs_per_success(columns: Mapping[str, Floats]) -> Measured:
    """Cost of executions over successes among them: the ratio of two means of the same executions."""
    runs, costs, successes = (
        [columns[f"{side}_{name}"] for side in _SIDES] for name in ("runs_with_cost", "cost_usd", "successes_with_cost")
    )
    values = [np.where(hits > 0, cost / hits, np.nan) for cost, hits in zip(costs, successes, strict=True)]
    below, above = difference_of_log_ratios(
        *_of_greater_spread(*(_cost_ratios(columns, side) for side in _SIDES)), ALPHA
    )
    difference = np.log(values[1]) - np.log(values[0])
    is_known = (np.minimum(*runs) >= FEWEST_RUNS) & np.isfinite(difference - below) & np.isfinite(difference + above)
    return Measured(
        n_from=runs[0],
        n_to=runs[1],
        estimate_from=values[0],
        estimate_to=values[1],
        low=np.where(is_known, difference - below, np.nan),
        high=np.where(is_known, difference + above, np.nan),
        is_ratio=True,
        fewest_runs=FEWEST_RUNS,
    )


def _cost_ratios(columns: Mapping[str, Floats], side: str) -> Ratios:
    """Variances of costs and successes, of which each is 0 or 1."""
    runs, cost, squares, successes, of_successes = (
        columns[f"{side}_{name}"]
        for name in (
            "runs_with_cost", "cost_usd", "squared_cost_usd2", "successes_with_cost", "cost_of_successes_usd",
        )
    )  # fmt: skip
    unbiased = runs / (runs - 1)
    return Ratios(
        runs=runs,
        numerator_variance=np.maximum(0.0, runs * squares / cost**2 - 1) * unbiased,
        denominator_variance=(runs - successes + 1) / successes,
        covariance=(runs * of_successes / (cost * successes) - 1) * unbiased,
    )


def _of_greater_spread(baseline: Ratios, candidate: Ratios) -> tuple[Ratios, Ratios]:
    is_baseline = baseline.spread >= candidate.spread
    shared = {
        name: np.where(is_baseline, getattr(baseline, name), getattr(candidate, name))
        for name in ("numerator_variance", "denominator_variance", "covariance")
    }
    return replace(baseline, **shared), replace(candidate, **shared)


_MEASURES: dict[str, tuple[str, Callable[[Mapping[str, Floats]], Measured]]] = {
    SUCCESS_RATE: ("executions", success_rates),
    SAME_TASKS: ("comparable_runs", success_rates_same_tasks),
    TOOL_FAILURES: (
        "runs_with_tool_calls", partial(_shares, counted="runs_with_tool_calls", hits="runs_with_tool_failures"),
    ),
    LOOPS: ("runs_with_steps", partial(_shares, counted="runs_with_steps", hits="runs_with_loops")),
    VIOLATIONS: ("judged_runs", partial(_shares, counted="judged_runs", hits="violating_runs")),
    RUNTIME: ("timed_runs", _runtimes),
    **{measure: ("timed_runs", partial(runtime_quantile_ratios, measure=measure)) for measure in PERCENTS},
    TOKENS: ("runs_with_tokens", _tokens),
    COST_PER_SUCCESS: ("runs_with_cost", costs_per_success),
}  # fmt: skip
"""By measure, the count of executions that tell of it, and how it is computed."""


def _means(columns: Mapping[str, Floats], side: str, count: str, total: str, squares: str) -> Means:
    runs = columns[f"{side}_{count}"]
    mean = columns[f"{side}_{total}"] / runs
    variance = np.maximum(0.0, columns[f"{side}_{squares}"] / runs - mean * mean) * runs / (runs - 1)
    return Means(runs, mean, variance)


def _of_logarithm(means: Means) -> Means:
    """The logarithm of a mean, and the variance that a number adds to it."""
    return Means(means.runs, np.log(means.mean), means.variance / means.mean**2)


def _ratios(logs: list[Means], values: list[Floats]) -> Measured:
    baseline, candidate = logs
    low, high = difference_of_means(baseline, candidate, ALPHA)
    is_enough = (np.minimum(baseline.runs, candidate.runs) >= FEWEST_RUNS) & np.isfinite(low) & np.isfinite(high)
    return Measured(
        n_from=baseline.runs,
        n_to=candidate.runs,
        estimate_from=values[0],
        estimate_to=values[1],
        low=np.where(is_enough, low, np.nan),
        high=np.where(is_enough, high, np.nan),
        is_ratio=True,
        fewest_runs=FEWEST_RUNS,
    )


def _rows(sums: pa.Table, measure: str, measured: Measured, margin: float) -> pa.Table:
    """The rows of a measure, a row per pair."""
    width = np.log1p(margin) if measured.is_ratio else margin
    difference = _difference(measured)
    verdicts = _verdicts(measured.low, measured.high, width, more_is_better=measure in SUCCESS_RATES)
    more_runs = _more_runs(measured, np.log1p(difference) if measured.is_ratio else difference, width)
    is_open = verdicts == UNDECIDED
    low, high = ((np.expm1(end) if measured.is_ratio else end) for end in (measured.low, measured.high))
    count = len(sums)
    columns = {
        **{COLUMN_OF.get(name, name): sums[name] for name in KEYS},
        "measure": pa.array([measure] * count, pa.string()),
        "n_from": pa.array(measured.n_from.astype(np.int64)),
        "n_to": pa.array(measured.n_to.astype(np.int64)),
        "estimate_from": _numbers(measured.estimate_from),
        "estimate_to": _numbers(measured.estimate_to),
        "difference": _numbers(difference),
        "low": _numbers(low),
        "high": _numbers(high),
        "margin": pa.array(np.full(count, margin)),
        "verdict": pa.array(verdicts.tolist(), pa.string()),
        "more_runs": pa.array(np.nan_to_num(more_runs).astype(np.int64), mask=~is_open | ~(more_runs > 0)),
        **{name: sums[name] for name in MIX},
    }
    return pa.table(columns)


def _difference(measured: Measured) -> Floats:
    if measured.is_ratio:
        return measured.estimate_to / measured.estimate_from - 1
    return measured.estimate_to - measured.estimate_from


def _numbers(values: Floats) -> pa.Array:
    return pa.array(values, mask=~np.isfinite(values))


def _verdicts(low: Floats, high: Floats, width: float, *, more_is_better: bool) -> NDArray[np.str_]:
    above, below = (BETTER, WORSE) if more_is_better else (WORSE, BETTER)
    is_within = (low >= -width) & (high <= width)
    return np.select([is_within, low > 0, high < 0], [SAME, above, below], UNDECIDED)


def _more_runs(measured: Measured, difference: Floats, width: float) -> Floats:
    """Executions of the new version until a verdict, to two digits, if the difference stays what it seems to be.

    None, a nan, where it is the old version that has too few.

    The ends of the interval have to come so much nearer that it leaves out 0 or lies within the margin, whichever comes
    first; their distances go with the square root of the number of executions.
    """
    below, above = difference - measured.low, measured.high - difference
    leaving_out_0 = np.abs(difference) / np.where(difference > 0, below, above)
    within = np.minimum((width + difference) / below, (width - difference) / above)
    more = measured.n_to * (np.maximum(leaving_out_0, within) ** -2.0 - 1)
    lacking = measured.fewest_runs - measured.n_to
    more = np.where(np.isfinite(more), more, np.where(lacking > 0, lacking, np.nan))  # else the old one has too few
    more = np.clip(more, 1, MOST_RUNS)
    step = 10.0 ** np.maximum(0, np.floor(np.log10(more)) - 1)
    return np.ceil(more / step) * step
