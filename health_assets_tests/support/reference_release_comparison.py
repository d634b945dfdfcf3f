"""The independent reference of the release comparison: loops over executions, and intervals by root finding.

Nothing here imports the product. Where the product searches for a multiplier, this maximizes over the baseline's share.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar

from health_assets_tests.support.reference import ONE_HOUR, Record, deduplicate
from health_assets_tests.support.reference_computed_signals import signals_of
from health_assets_tests.support.reference_reliability import verdict_on

Floats = NDArray[np.float64]
ALPHA = 0.05
FEWEST = 100
PRIOR_RUNS = 20
GROUPS = 8
FEWEST_OF_GROUP = 5
QUANTILES = {"latency_p50_ms": 50, "latency_p95_ms": 95}
COLUMNS = {"version": "agent_version", "model": "model"}


def release_comparison(
    records: list[Record], hours: list[datetime], length: int, margin: float, ratio_margin: float
) -> list[Record]:
    """A row for each hour, agent, dimension, new version or model, and measure; the look-back is twice the length."""
    kept = deduplicate(records)
    runs = [record for record in kept if record["type"] == "execution"]
    of_runs: dict[str, list[Record]] = {}
    for record in kept:
        of_runs.setdefault(record.get("execution_id") or "", []).append(record)
    for run in runs:
        run["_task"] = run.get("task_id") or run.get("input")
        run["_signals"] = signals_of(run, of_runs[run["execution_id"]], 2 * length) or {}
    for run in runs:
        run["_judgements"] = [record for record in of_runs[run["execution_id"]] if record["type"] == "judgement"]
    rows = []
    for agent_id in sorted({run["agent_id"] for run in runs}):
        own = [run for run in runs if run["agent_id"] == agent_id]
        for dimension, column in COLUMNS.items():
            for hour in hours:
                for pair in pairs(own, column, hour, length):
                    found = {"hour": hour, "agent_id": agent_id, "dimension": dimension, **pair}
                    rows += measured(own, column, found, length, margin, ratio_margin)
    return rows


def pairs(runs: list[Record], column: str, hour: datetime, length: int) -> list[Record]:
    """The versions that are compared in an hour, each with its baseline."""
    ran: dict[str, set[datetime]] = {}
    for run in runs:
        if run.get(column) and run["_hour"] <= hour:
            ran.setdefault(run[column], set()).add(run["_hour"])
    found = []
    for name, own in ran.items():
        starts = [
            at for at in own if not any(at - length * ONE_HOUR <= before < at for before in own)
            and hour - length * ONE_HOUR < at
        ]  # fmt: skip
        for start in starts:
            counts: dict[str, int] = {}
            for run in runs:
                other = run.get(column)
                if other and other != name and start - length * ONE_HOUR <= run["_hour"] < start:
                    counts[other] = counts.get(other, 0) + 1
            if counts:
                baseline = max(counts, key=lambda other: (counts[other], other))
                found.append({"to_version": name, "from_version": baseline, "released_at": start})
    return found


def measured(
    runs: list[Record],
    column: str,
    pair: Record,
    length: int,
    margin: float,
    ratio_margin: float,
) -> list[Record]:
    start, hour = pair["released_at"], pair["hour"]
    since = start - length * ONE_HOUR
    old = [run for run in runs if run.get(column) == pair["from_version"] and since <= run["_hour"] <= hour]
    new = [run for run in runs if run.get(column) == pair["to_version"] and start <= run["_hour"] <= hour]
    until_prior = start - math.ceil(length / 2) * ONE_HOUR
    prior = [run for run in old if run["_hour"] < until_prior]
    groups = groups_of(prior)
    common = {"baseline_starts_at": since, "as_of": hour + ONE_HOUR, "is_final": True, **mix(groups, prior, old, new)}
    rows = []
    verdicts = {
        id(run): verdict_on(run, [said for said in run["_judgements"] if said["_hour"] <= hour], 0)
        for run in (*old, *new)
    }
    judged = [[run for run in side if verdicts[id(run)] is not None] for side in (old, new)]
    if all(judged):
        violates: IsHit = lambda run: bool(verdicts[id(run)])  # noqa: E731
        rows.append({**pair, **common, **shares("violation_share", violates, [], *judged, margin, (1.0, 1.0))})
    same_tasks = shares_of_groups(groups, prior, old, new, margin)
    rows += [{**pair, **common, **same_tasks}] if same_tasks else []
    for measure, is_hit in HITS.items():
        told = [[run for run in side if is_hit(run) is not None] for side in (prior, old, new)]
        if told[1] and told[2]:
            effects = design_effects(old, new) if measure == "success_rate" else (1.0, 1.0)
            rows.append({**pair, **common, **shares(measure, is_hit, *told, margin, effects)})
    for measure, value in (("runtime", runtime_bucket), ("tokens", tokens)):
        numbers = [[told for run in side if (told := value(run)) is not None] for side in (old, new)]
        if all(numbers):
            rows.append({**pair, **common, **ratios(measure, *numbers, ratio_margin)})
    with_cost = [[run for run in side if run.get("cost_usd") is not None] for side in (old, new)]
    if all(with_cost):
        rows.append({**pair, **common, **costs_per_success(*with_cost, ratio_margin)})
    buckets = [sorted(told for run in side if (told := runtime_bucket(run)) is not None) for side in (old, new)]
    if all(buckets):
        rows += [{**pair, **common, **quantiles(measure, *buckets, ratio_margin)} for measure in QUANTILES]
    return rows


# -- shares ------------------------------------------------------------------------------------------------------------


def succeeded(run: Record) -> bool | None:
    return run["status"] == "success"


def has_tool_failure(run: Record) -> bool | None:
    return run["_signals"]["tool_failures"] > 0 if run["_signals"].get("tool_calls") else None


def repeats_itself(run: Record) -> bool | None:
    return run["_signals"]["repeated_steps"] > 0 if run["_signals"].get("steps") else None


IsHit = Callable[[Record], bool | None]
HITS: dict[str, IsHit] = {
    "success_rate": succeeded,
    "tool_failure_share": has_tool_failure,
    "loop_share": repeats_itself,
}


def design_effects(old: list[Record], new: list[Record]) -> tuple[float, float]:
    """How often each side's runs count too often, by the residuals of all pairs of runs of one session."""
    products, expected, shares_of_pairs = 0.0, 0.0, []
    for runs in (old, new):
        share = sum(map(succeeded, runs)) / len(runs)  # type: ignore[arg-type]
        sessions: dict[Any, list[float]] = {}
        for run in runs:
            if run.get("session_id") is not None:
                names = (run["_hour"], run.get("agent_version"), run.get("model"), run["session_id"])
                sessions.setdefault(names, []).append(bool(succeeded(run)) - share)
        pairs = [pair for rests in sessions.values() for pair in itertools.permutations(rests, 2)]
        products += sum(one * other for one, other in pairs)
        expected += len(pairs) * share * (1 - share)
        shares_of_pairs.append(len(pairs) / len(runs))
    correlation = min(1.0, max(0.0, products / expected)) if expected > 0 else 1.0
    return 1 + correlation * shares_of_pairs[0], 1 + correlation * shares_of_pairs[1]


def shares(
    measure: str,
    is_hit: IsHit,
    prior: list[Record],
    old: list[Record],
    new: list[Record],
    margin: float,
    effects: tuple[float, float],
) -> Record:
    def counted(runs: list[Record], effect: float) -> tuple[float, float]:
        return len(runs) / effect, sum(bool(is_hit(run)) for run in runs) / effect

    before = counted(prior, effects[0])
    weight = min(before[0], PRIOR_RUNS) / before[0] if before[0] else 0.0
    all_old, own_new = counted(old, effects[0]), counted(new, effects[1])
    own_old = (all_old[0] - before[0], all_old[1] - before[1])
    a_old = (0.5 + before[1], 0.5 + before[0] - before[1])
    a_new = (0.5 + weight * before[1], 0.5 + weight * (before[0] - before[1]))
    high = greatest(evidence(*own_old, *a_old), evidence(*own_new, *a_new))
    low = -greatest(evidence(*own_new, *a_new), evidence(*own_old, *a_old))
    values = all_old[1] / all_old[0], own_new[1] / own_new[0]
    difference = values[1] - values[0]
    above, below = ("better", "worse") if measure == "success_rate" else ("worse", "better")
    verdict = word(low, high, margin, above=above, below=below)
    return {
        "measure": measure, "n_from": len(old), "n_to": len(new),
        "estimate_from": values[0], "estimate_to": values[1], "difference": difference,
        "low": low, "high": high, "margin": margin, "verdict": verdict,
        "more_runs": more(len(new), low, high, difference, margin) if verdict == "not_enough" else None,
    }  # fmt: skip


Evidence = tuple[Callable[[float], float], float]


def evidence(runs: float, successes: float, a: float, b: float) -> Evidence:
    """ln M as a function of the share, and the share at which it is least."""

    def log_m(share: float) -> float:
        failures = runs - successes
        if (share <= 0 and successes) or (share >= 1 and failures):
            return math.inf
        mixture = log_beta(a + successes, b + failures) - log_beta(a, b)
        said = (successes * math.log(share) if successes else 0.0) + (
            failures * math.log1p(-share) if failures else 0.0
        )
        return mixture - said

    return log_m, successes / runs if runs else 0.5


def log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def greatest(lower: Evidence, higher: Evidence) -> float:
    """The greatest difference of the second share from the first, of pairs whose ln M add up to at most ln(1 / alpha)."""
    (of_lower, best_lower), (of_higher, best_higher) = lower, higher
    bound = math.log(1 / ALPHA)

    def end_of(log_m: Callable[[float], float], best: float, extreme: float, most: float) -> float:
        """The share farthest from the best one, towards an extreme, at which ln M is at most so much."""
        if log_m(extreme) <= most:
            return extreme
        if log_m(best) >= most:
            return best
        return brentq(lambda share: min(log_m(share), 1e6) - most, best, extreme, xtol=1e-15, rtol=1e-14)

    least = end_of(of_lower, best_lower, 0.0, bound - of_higher(best_higher))

    def difference(share: float) -> float:
        return end_of(of_higher, best_higher, 1.0, bound - of_lower(share)) - share

    # no end of an interval beyond the best share is a maximum, as both may move apart; nearly flat at the top
    found = minimize_scalar(
        lambda share: -difference(share), bounds=(least, best_lower), method="bounded", options={"xatol": 1e-13}
    )
    return max(-found.fun, difference(least), difference(best_lower))


# -- tasks -------------------------------------------------------------------------------------------------------------


def groups_of(prior: list[Record]) -> list[str]:
    counts: dict[str, int] = {}
    for run in prior:
        if run["_task"]:
            counts[run["_task"]] = counts.get(run["_task"], 0) + 1
    common = [task for task, count in counts.items() if count >= FEWEST_OF_GROUP]
    return sorted(common, key=lambda task: (-counts[task], task))[: GROUPS - 1]


def by_group(groups: list[str], runs: list[Record]) -> list[list[Record]]:
    """The runs of each group, and those of all other tasks."""
    told = [run for run in runs if run["_task"]]
    return [
        *([run for run in told if run["_task"] == task] for task in groups),
        [run for run in told if run["_task"] not in groups],
    ]


def mix(groups: list[str], prior: list[Record], old: list[Record], new: list[Record]) -> Record:
    of_sides = [by_group(groups, side) for side in (old, new)]
    totals = [sum(map(len, side)) for side in of_sides]
    if not groups or not all(totals):
        return {"mix_shift": None, "is_mix_changed": None}
    shift = sum(abs(len(one) / totals[0] - len(other) / totals[1]) for one, other in zip(*of_sides, strict=True)) / 2
    effects = [1 + session_pairs(side) / len(side) for side in (old, new)]
    before = [len(runs) / effects[0] for runs in by_group(groups, prior)]
    weight = min(1.0, PRIOR_RUNS / sum(before))
    counts = (
        [len(runs) / effects[0] - own for runs, own in zip(of_sides[0], before, strict=True)],
        [len(runs) / effects[1] for runs in of_sides[1]],
    )
    evidence_of_both = 0.0
    for own, parameters in zip(counts, ([0.5 + b for b in before], [0.5 + weight * b for b in before]), strict=True):
        evidence_of_both += math.lgamma(sum(parameters)) - math.lgamma(sum(parameters) + sum(own))
        evidence_of_both += sum(math.lgamma(p + n) - math.lgamma(p) for p, n in zip(parameters, own, strict=True))
    pooled = [sum(both) for both in zip(*counts, strict=True)]
    likelihood = sum(n * math.log(n / sum(pooled)) for n in pooled if n > 0)
    return {"mix_shift": shift, "is_mix_changed": evidence_of_both - likelihood >= math.log(1 / ALPHA)}


def session_pairs(runs: list[Record]) -> int:
    sizes: dict[Any, int] = {}
    for run in runs:
        if run.get("session_id") is not None:
            names = (run["_hour"], run.get("agent_version"), run.get("model"), run["session_id"])
            sizes[names] = sizes.get(names, 0) + 1
    return sum(size * (size - 1) for size in sizes.values())


def shares_of_groups(
    groups: list[str], prior: list[Record], old: list[Record], new: list[Record], margin: float
) -> Record | None:
    before, of_old, of_new = (by_group(groups, side) for side in (prior, old, new))
    kept = [place for place, runs in enumerate(before[:-1]) if runs]
    total = sum(len(before[place]) for place in kept)
    if not kept or not all(of_old[place] and of_new[place] for place in kept) or 2 * total < sum(map(len, before)):
        return None
    weights = [len(before[place]) / total for place in kept]
    effects = design_effects(old, new)
    sides: tuple[list[Group], list[Group]] = ([], [])
    values = [0.0, 0.0]
    for place, group_weight in zip(kept, weights, strict=True):
        b, b_hits = len(before[place]) / effects[0], sum(map(bool, map(succeeded, before[place]))) / effects[0]
        weight = min(b, PRIOR_RUNS) / b if b else 0.0
        for side, runs in enumerate((of_old[place], of_new[place])):
            n, hits = len(runs) / effects[side], sum(map(bool, map(succeeded, runs))) / effects[side]
            values[side] += group_weight * hits / n
            if side == 0:
                sides[0].append((n - b, hits - b_hits, 0.5 + b_hits, 0.5 + b - b_hits))
            else:
                sides[1].append((n, hits, 0.5 + weight * b_hits, 0.5 + weight * (b - b_hits)))
    high, low = greatest_weighted(*sides, weights), -greatest_weighted(*reversed(sides), weights)
    difference = values[1] - values[0]
    verdict = word(low, high, margin, above="better", below="worse")
    runs_of = [sum(len(side[place]) for place in kept) for side in (of_old, of_new)]
    return {
        "measure": "success_rate_same_tasks", "n_from": runs_of[0], "n_to": runs_of[1],
        "estimate_from": values[0], "estimate_to": values[1], "difference": difference,
        "low": low, "high": high, "margin": margin, "verdict": verdict,
        "more_runs": more(runs_of[1], low, high, difference, margin) if verdict == "not_enough" else None,
    }  # fmt: skip


Group = tuple[float, float, float, float]
"""Runs, successes, and both parameters of what was expected."""


def greatest_weighted(lower: list[Group], higher: list[Group], weights: list[float]) -> float:
    """The greatest weighted difference, by the roots of derivatives for a multiplier, and the root for that."""
    bound = math.log(1 / ALPHA)
    for runs, hits, a, b in (*lower, *higher):
        bound -= log_beta(a + hits, b + runs - hits) - log_beta(a, b)

    def ends(log_multiplier: float) -> list[tuple[float, float]]:
        slopes = [math.exp(log_multiplier) * weight for weight in weights]
        return [
            (share_of_slope(low[0], low[1], slope), share_of_slope(high[0], high[0] - high[1], slope))
            for low, high, slope in zip(lower, higher, slopes, strict=True)
        ]

    def beyond(log_multiplier: float) -> float:
        cost = 0.0
        for low, high, (share, failures) in zip(lower, higher, ends(log_multiplier), strict=True):
            cost -= log_likelihood(low[0], low[1], share) + log_likelihood(high[0], high[0] - high[1], failures)
        return cost - bound

    found = brentq(beyond, -40, 40, xtol=1e-13, rtol=1e-14) if beyond(40) > 0 else 40.0
    return sum(weight * (1 - one - other) for weight, (one, other) in zip(weights, ends(found), strict=True))


def share_of_slope(runs: float, hits: float, slope: float) -> float:
    """The share below hits / runs at which the derivative of the logarithm of the likelihood is the slope."""
    if hits < 1e-9:
        return 0.0
    if runs - hits < 1e-9:
        return min(1.0, runs / slope)

    def above(share: float) -> float:
        return hits / share - (runs - hits) / (1 - share) - slope

    best = hits / runs
    return best if above(best) >= 0 else brentq(above, 1e-60, best, xtol=1e-300, rtol=1e-14)


def log_likelihood(runs: float, hits: float, share: float) -> float:
    misses = runs - hits
    return (hits * math.log(share) if hits > 1e-9 else 0.0) + (misses * math.log1p(-share) if misses > 1e-9 else 0.0)


# -- ratios ------------------------------------------------------------------------------------------------------------


def runtime_bucket(run: Record) -> float | None:
    """The number of steps of 2 % above a microsecond, of a success."""
    if run["status"] != "success" or run.get("_runtime_s") is None:
        return None
    microseconds = round(run["_runtime_s"] * 1e6)
    return min(math.floor(math.log(microseconds) / math.log(1.02)) + 1, 2047) if microseconds >= 1 else 0


def tokens(run: Record) -> float | None:
    told = [run[name] for name in ("input_tokens", "output_tokens") if run.get(name) is not None]
    return min(sum(told), 1e8) if told else None


def ratios(measure: str, old: Sequence[float], new: Sequence[float], margin: float) -> Record:
    sides = [log_mean(measure, side) for side in (old, new)]
    values = [side[0] for side in sides]
    difference = values[1] / values[0] - 1 if values[0] else None
    low = high = None
    if min(len(old), len(new)) >= FEWEST and all(values):
        r = (2 * math.log(20) + math.log(1 + 2 * math.log(20))) / 500
        bound = math.log(20) + sum(math.log(1 + len(side) * r) for side in (old, new)) / 2
        spreads = [
            2 * variance * (1 + len(side) * r) / (len(side) ** 2 * r)
            for side, (_, variance) in zip((old, new), sides, strict=True)
        ]
        half = math.sqrt(bound * sum(spreads))
        middle = math.log(values[1]) - math.log(values[0])
        low, high = middle - half, middle + half
    width = math.log(1 + margin)
    verdict = "not_enough" if low is None else word(low, high, width, above="worse", below="better")
    further = None
    if verdict == "not_enough":
        known = low is not None and difference is not None
        further = more(len(new), low, high, math.log1p(difference), width) if known else lacking(FEWEST, new)
        further = rounded(further) if further else None
    return {
        "measure": measure, "n_from": len(old), "n_to": len(new), "estimate_from": values[0],
        "estimate_to": values[1], "difference": difference,
        "low": None if low is None else math.expm1(low),
        "high": None if high is None else math.expm1(high),
        "margin": margin, "verdict": verdict, "more_runs": further,
    }  # fmt: skip


def log_mean(measure: str, numbers: Sequence[float]) -> tuple[float, float]:
    """The value of a side, and the variance that a number adds to its logarithm."""
    mean = sum(numbers) / len(numbers)
    variance = sum((number - mean) ** 2 for number in numbers) / (len(numbers) - 1) if len(numbers) > 1 else math.nan
    if measure == "runtime":
        step = math.log(1.02)
        return math.exp((mean - 0.5) * step) / 1e6, (variance + 1 / 12) * step**2
    return mean, variance / mean**2 if mean else math.nan


def lacking(fewest: int, new: Sequence[Any]) -> int | None:
    """How many runs the new version lacks; None where it is the old one that has too few."""
    return fewest - len(new) if len(new) < fewest else None


# -- cost per success --------------------------------------------------------------------------------------------------


def costs_per_success(old: list[Record], new: list[Record], margin: float) -> Record:
    """The set of both true ratios by the roots of quadratic equations, and its ends by trying divisions of the bound."""
    counts = len(old), len(new)
    pairs = [[(min(run["cost_usd"], 1e4), float(run["status"] == "success")) for run in side] for side in (old, new)]
    totals = [np.sum(side, axis=0) for side in pairs]
    values = [usd / hits if hits else None for usd, hits in totals]
    difference = values[1] / values[0] - 1 if None not in values and values[0] else None
    low = high = None
    if all(values) and min(counts) >= FEWEST:
        moments = max((relative_moments(side) for side in pairs), key=lambda own: own[0, 0] + own[1, 1] - 2 * own[0, 1])
        r = (2 * math.log(20) + math.log(1 + 2 * math.log(20))) / 500
        bound = math.log(20) + sum(math.log(1 + count * r) for count in counts) / 2
        of_old, of_new = (partial(ratio_set, moments, count, r) for count in counts)
        if of_old(bound) and of_new(bound):
            middle = math.log(values[1] / values[0])
            high = middle + farthest(lambda part: math.log(of_new(part)[1] / of_old(bound - part)[0]), bound)
            low = middle - farthest(lambda part: math.log(of_old(bound - part)[1] / of_new(part)[0]), bound)
    width = math.log(1 + margin)
    verdict = "not_enough" if low is None else word(low, high, width, above="worse", below="better")
    further = None
    if verdict == "not_enough":
        further = lacking(FEWEST, new) if low is None else more(counts[1], low, high, math.log1p(difference), width)
        further = rounded(further) if further else None
    return {
        "measure": "cost_per_success_usd", "n_from": counts[0], "n_to": counts[1], "estimate_from": values[0],
        "estimate_to": values[1], "difference": difference,
        "low": None if low is None else math.expm1(low),
        "high": None if high is None else math.expm1(high),
        "margin": margin, "verdict": verdict, "more_runs": further,
    }  # fmt: skip


def relative_moments(side: list[tuple[float, float]]) -> Floats:
    """Covariances of costs and successes by the products of their means; of successes as if one more failed."""
    numbers = np.array(side)
    moments = np.cov(numbers / numbers.mean(axis=0), rowvar=False)
    moments[1, 1] = (sum(hit == 0 for _, hit in side) + 1) / sum(hit for _, hit in side)
    return moments


def ratio_set(moments: Floats, count: int, r: float, bound: float) -> tuple[float, float] | None:
    """The least and greatest ratio x, by the estimate, of which ln M of cost - x success grows to at most the bound.

    None where 0 or any number is one.
    """
    q = 2 * bound * (1 + count * r) / (count**2 * r)
    square, single, constant = 1 - q * moments[1, 1], -2 * (1 - q * moments[0, 1]), 1 - q * moments[0, 0]
    if square <= 0 or constant <= 0:
        return None
    half = math.sqrt(max(0.0, single**2 - 4 * square * constant))
    return (-single - half) / (2 * square), (-single + half) / (2 * square)


def farthest(reach: Callable[[float], float], bound: float) -> float:
    """The greatest value over all divisions of the bound."""
    at_angle = lambda angle: reach(bound * math.sin(angle) ** 2)  # noqa: E731
    angles = np.linspace(0, math.pi / 2, 101)
    tried = [at_angle(angle) for angle in angles]
    best = int(np.argmax(tried))
    ends = angles[max(best - 1, 0)], angles[min(best + 1, 100)]
    found = minimize_scalar(lambda angle: -at_angle(angle), bounds=ends, method="bounded", options={"xatol": 1e-9})
    return max(-found.fun, tried[best])


# -- quantiles ---------------------------------------------------------------------------------------------------------


def quantiles(measure: str, old: list[float], new: list[float], margin: float) -> Record:
    percent = QUANTILES[measure]
    step = math.log(1.02)
    of_sides = [(nearest(side, percent), *ends_of_quantile(side, percent / 100)) for side in (old, new)]
    values = [math.exp((bucket - 0.5) * step) / 1e3 if bucket else 0.0 for bucket, _, _ in of_sides]
    (_, old_low, old_high), (_, new_low, new_high) = of_sides
    low = high = None
    if old_low and new_low and old_high is not None and new_high is not None:
        low, high = (new_low - 1 - old_high) * step, (new_high - old_low + 1) * step
    difference = values[1] / values[0] - 1 if values[0] else None
    width = math.log(1 + margin)
    verdict = "not_enough" if low is None else word(low, high, width, above="worse", below="better")
    further = None
    if verdict == "not_enough":
        known = low is not None and difference is not None
        fewest = next(n for n in range(1, 1000) if None not in ends_of_quantile([1] * n, percent / 100))
        further = more(len(new), low, high, math.log1p(difference), width) if known else lacking(fewest, new)
        further = rounded(further) if further else None
    return {
        "measure": measure, "n_from": len(old), "n_to": len(new), "estimate_from": values[0],
        "estimate_to": values[1], "difference": difference,
        "low": None if low is None else math.expm1(low),
        "high": None if high is None else math.expm1(high),
        "margin": margin, "verdict": verdict, "more_runs": further,
    }  # fmt: skip


def nearest(numbers: list[float], percent: int) -> float:
    return numbers[math.ceil(len(numbers) * percent / 100) - 1]


def ends_of_quantile(numbers: list[float], share: float) -> tuple[float | None, float | None]:
    """The numbers at the least likely counts below the quantile that are no contradiction; half of alpha a side."""
    alpha = ALPHA / 2
    r = (2 * math.log(1 / alpha) + math.log(1 + 2 * math.log(1 / alpha))) / 500
    weight, count = 1 / r - 1, len(numbers)

    def log_m(below: int) -> float:
        a, b = weight * share, weight * (1 - share)
        mixture = log_beta(a + below, b + count - below) - log_beta(a, b)
        return mixture - below * math.log(share) - (count - below) * math.log(1 - share)

    possible = [below for below in range(count + 1) if log_m(below) < math.log(1 / alpha)]
    low, high = possible[0], possible[-1] + 1
    return numbers[low - 1] if low else None, numbers[high - 1] if high <= count else None


# -- verdicts ----------------------------------------------------------------------------------------------------------


def word(low: float, high: float, margin: float, *, above: str, below: str) -> str:
    if low >= -margin and high <= margin:
        return "no_difference"
    return above if low > 0 else below if high < 0 else "not_enough"


def more(runs: int, low: float, high: float, difference: float, margin: float) -> float:
    """Runs until the ends have come near enough to the difference, which they do with the square root of the runs."""
    to_leave_out_0 = abs(difference) / (difference - low if difference > 0 else high - difference)
    to_lie_within = min((margin - difference) / (high - difference), (margin + difference) / (difference - low))
    return rounded(runs * (1 / max(to_leave_out_0, to_lie_within) ** 2 - 1))


def rounded(runs: float) -> int:
    """Up, to two digits."""
    runs = min(max(runs, 1), 10**9)
    step = 10 ** max(0, math.floor(math.log10(runs)) - 1)
    return math.ceil(runs / step) * step


def at_hours(start: datetime, count: int) -> list[datetime]:
    return [start + timedelta(hours=hour) for hour in range(count)]
