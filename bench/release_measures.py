"""`python -m bench.release_measures`: how often verdicts on other measures of releases are wrong, by simulation.

As in `bench.releases`, each comparison is looked at after every hour.
"""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from health_assets.core.hours import HOUR, HourRange
from health_assets.scoring.confidence_sequences import Floats
from health_assets.scoring.latency_buckets import GAMMA
from health_assets.systems.release_comparison.names import BASELINE, CANDIDATE, PERCENTS
from health_assets.systems.release_comparison.release_comparison import (
    costs_per_success,
    mixes,
    runtime_quantile_ratios,
    success_rates_same_tasks,
)
from health_assets.systems.release_comparison.release_components import SESSION_PAIRS
from health_assets.systems.release_comparison.runtime_quantiles import COLUMNS, runtime_quantiles
from health_assets.systems.release_comparison.task_groups import GROUPS

START = datetime(2026, 1, 1, tzinfo=UTC)
AT_ONCE = 100
"""Comparisons whose runtimes are in memory at once."""
POWER = 0.8


@dataclass(frozen=True, kw_only=True)
class Found:
    """What comparisons came to.

    Args:
        worse: share with a verdict of worse at any hour.
        better: share with a verdict of better at any hour.
        hours: hours until `POWER` of them were found worse; None where fewer were.
    """

    worse: float
    better: float
    hours: int | None


def found_of(is_worse: np.ndarray, is_better: np.ndarray) -> Found:
    """What came of verdicts, a row a comparison and a column an hour."""
    first = np.where(is_worse.any(axis=1), is_worse.argmax(axis=1) + 1, np.inf)
    last = np.quantile(first, POWER, method="inverted_cdf")
    return Found(
        worse=is_worse.any(axis=1).mean(),
        better=is_better.any(axis=1).mean(),
        hours=int(last) if np.isfinite(last) else None,
    )


# -- quantiles of runtimes ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Runtimes:
    """A release of which runtimes are known.

    Args:
        name: what it is.
        slower: the factor by which the new version is slower.
        spread: standard deviation of the logarithms of runtimes; with 0 half of them are one number, half another.
        per_hour: executions of each version an hour.
    """

    name: str
    slower: float = 1.0
    spread: float = 1.0
    per_hour: float = 10


RUNTIMES = (
    Runtimes(name="nothing changed"),
    Runtimes(name="nothing changed, one run an hour", per_hour=1),
    Runtimes(name="nothing changed, two runtimes alone", spread=0.0),
    Runtimes(name="1.5 times as slow", slower=1.5),
    Runtimes(name="twice as slow", slower=2.0),
)


def simulated_runtimes(release: Runtimes, count: int, hours: int, seed: int) -> Mapping[str, Found]:
    """By measure, what `count` comparisons come to in so many hours, which also lie before the release."""
    random = np.random.default_rng(seed)
    verdicts = [_of_runtimes(random, release, min(AT_ONCE, count - done), hours) for done in range(0, count, AT_ONCE)]
    return {
        measure: found_of(*(np.concatenate([one[measure][side] for one in verdicts]) for side in range(2)))
        for measure in PERCENTS
    }


def _of_runtimes(
    random: np.random.Generator, release: Runtimes, count: int, hours: int
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Whether each comparison says worse, and better, at each hour."""
    parts = pa.concat_tables(
        _parts(random, release, count, hours, side) for side in (BASELINE, CANDIDATE)
    ).sort_by([(name, "ascending") for name in ("agent_id", "side", "ran_at")])  # fmt: skip
    rows = runtime_quantiles(parts, HourRange(START, START + hours * HOUR), hours).to_pandas()
    index = pd.MultiIndex.from_product([np.arange(count), pd.date_range(START, periods=hours, freq="h")])
    columns = {f"{side}_timed_runs": np.ones(len(index)) for side in (BASELINE, CANDIDATE)}
    for side, own in rows.groupby("side"):
        told = own.set_index([own["agent_id"].astype(int), "hour"])[list(COLUMNS)].reindex(index)
        columns |= {f"{side}_{name}": told[name].to_numpy(np.float64) for name in COLUMNS}
    found = {}
    for measure in PERCENTS:
        with np.errstate(divide="ignore", invalid="ignore"):
            measured = runtime_quantile_ratios(columns, measure)
        found[measure] = ((measured.low > 0).reshape(count, hours), (measured.high < 0).reshape(count, hours))
    return found


def _parts(random: np.random.Generator, release: Runtimes, count: int, hours: int, side: str) -> pa.Table:
    """Hourly lists of buckets of one side of each comparison."""
    runs = np.maximum(1, random.poisson(release.per_hour, (count, hours))).ravel()
    noise = random.normal(0, release.spread, runs.sum()) if release.spread else random.integers(0, 2, runs.sum())
    seconds = 30 * np.exp(noise) * (release.slower if side == CANDIDATE else 1.0)
    buckets = np.floor(np.log(seconds * 1e6) / np.log(GAMMA)).astype(np.int16) + 1
    first = START if side == CANDIDATE else START - hours * HOUR
    ran_at = [first + timedelta(hours=hour) for hour in range(hours)]
    rows = len(runs)
    return pa.table(
        {
            "agent_id": [f"{one:05d}" for one in range(count) for _ in range(hours)],
            "dimension": ["version"] * rows,
            "candidate": ["2"] * rows,
            "baseline": ["1"] * rows,
            "released_at": pa.array([START] * rows, pa.timestamp("us", "UTC")),
            "side": [side] * rows,
            "ran_at": pa.array(ran_at * count, pa.timestamp("us", "UTC")),
            "latency_buckets": pa.ListArray.from_arrays(np.concatenate([[0], runs.cumsum()]), buckets),
        }
    )


# -- tasks -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Tasks:
    """A release of which tasks are known.

    Args:
        name: what it is.
        old_mix: shares of the tasks in what the old version runs.
        new_mix: the same of the new one.
        old_rates: success rates of the old version by task.
        new_rates: the same of the new one.
        per_hour: executions of each version an hour.
    """

    name: str
    old_mix: tuple[float, ...] = (0.7, 0.2, 0.1)
    new_mix: tuple[float, ...] = (0.7, 0.2, 0.1)
    old_rates: tuple[float, ...] = (0.98, 0.8, 0.5)
    new_rates: tuple[float, ...] = (0.98, 0.8, 0.5)
    per_hour: float = 10


EIGHT = (1 / 8,) * 8
TASKS = (
    Tasks(name="nothing changed"),
    Tasks(name="eight tasks", old_mix=EIGHT, new_mix=EIGHT, old_rates=(0.9,) * 8, new_rates=(0.9,) * 8),
    Tasks(name="harder tasks, the version did not change", new_mix=(0.4, 0.3, 0.3)),
    Tasks(name="10 points worse at each task", new_rates=(0.88, 0.7, 0.4)),
    Tasks(name="10 points worse at each task, and easier ones", new_mix=(0.9, 0.05, 0.05), new_rates=(0.88, 0.7, 0.4)),
)  # fmt: skip


def simulated_tasks(release: Tasks, count: int, hours: int, seed: int) -> tuple[Found, float]:
    """What comparisons of success rates at the same tasks come to, and the share that ever tells of another mix."""
    random = np.random.default_rng(seed)
    names = ("executions", "successes", *SESSION_PAIRS)
    columns = {f"{side}_{name}": np.zeros(count) for side in (BASELINE, CANDIDATE) for name in names}
    for part in ("prior", BASELINE, CANDIDATE):
        for group in range(GROUPS):
            columns |= {f"{part}_{name}_{group}": np.zeros(count) for name in ("task_runs", "task_successes")}
    for parts in (("prior", BASELINE), (BASELINE,)):
        _add(random, columns, release.old_mix, release.old_rates, release.per_hour * hours / 2, parts)
    is_worse, is_better = np.zeros((count, hours), bool), np.zeros((count, hours), bool)
    is_other_mix = np.zeros(count, bool)
    for hour in range(hours):
        _add(random, columns, release.new_mix, release.new_rates, release.per_hour, (CANDIDATE,))
        for side in (BASELINE, CANDIDATE):
            columns[f"{side}_comparable_runs"] = columns[f"{side}_executions"]
        with np.errstate(divide="ignore", invalid="ignore"):
            measured = success_rates_same_tasks(columns)
            is_other_mix |= mixes(columns)[1]
        is_worse[:, hour], is_better[:, hour] = measured.high < 0, measured.low > 0
    return found_of(is_worse, is_better), is_other_mix.mean()


def _add(
    random: np.random.Generator,
    columns: dict[str, Floats],
    mix: tuple[float, ...],
    rates: tuple[float, ...],
    runs: float,
    parts: tuple[str, ...],
) -> None:
    """Add executions of each task to some parts of the columns."""
    for group, (share, rate) in enumerate(zip(mix, rates, strict=True)):
        counts = random.poisson(runs * share, len(columns["baseline_executions"]))
        successes = random.binomial(counts, rate)
        for part in parts:
            columns[f"{part}_task_runs_{group}"] += counts
            columns[f"{part}_task_successes_{group}"] += successes
            if part != "prior":
                columns[f"{part}_executions"] += counts
                columns[f"{part}_successes"] += successes


# -- cost per success --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Costs:
    """A release of which costs are known.

    Args:
        name: what it is.
        old_rate: success rate of the old version.
        new_rate: the same of the new one.
        cost_factor: cost of a run of the new version over that of the old one.
        failed: cost of a failed run over that of a successful one.
        spread: standard deviation of the logarithms of costs.
        per_hour: executions of each version an hour.
    """

    name: str
    old_rate: float = 0.9
    new_rate: float = 0.9
    cost_factor: float = 1.0
    failed: float = 2.0
    spread: float = 1.0
    per_hour: float = 10


COSTS = (
    Costs(name="nothing changed, 90%, failures cost twice as much"),
    Costs(name="nothing changed, 90%, one run an hour", per_hour=1),
    Costs(name="nothing changed, 30%", old_rate=0.3, new_rate=0.3),
    Costs(name="nothing changed, 99.5%, each run costs the same", old_rate=0.995, new_rate=0.995, failed=1, spread=0),
    Costs(name="nothing changed, a hundredth of the runs has half of the cost", spread=2.0),
    Costs(name="a run costs 1.5 times as much", cost_factor=1.5),
    Costs(name="as many runs for 2 successes as for 3", new_rate=0.6),
)
_OF_COSTS = ("runs_with_cost", "cost_usd", "squared_cost_usd2", "successes_with_cost", "cost_of_successes_usd")


def simulated_costs(release: Costs, count: int, hours: int, seed: int) -> Found:
    """What comparisons of cost per success come to in so many hours, which also lie before the release."""
    random = np.random.default_rng(seed)
    columns = {f"{side}_{name}": np.zeros(count) for side in (BASELINE, CANDIDATE) for name in _OF_COSTS}
    is_worse, is_better = np.zeros((count, hours), bool), np.zeros((count, hours), bool)
    for _ in range(hours):
        _add_costs(random, columns, BASELINE, release.old_rate, 1.0, release)
    for hour in range(hours):
        _add_costs(random, columns, CANDIDATE, release.new_rate, release.cost_factor, release)
        with np.errstate(divide="ignore", invalid="ignore"):
            measured = costs_per_success(columns)
        is_worse[:, hour], is_better[:, hour] = measured.low > 0, measured.high < 0
    return found_of(is_worse, is_better)


def _add_costs(
    random: np.random.Generator, columns: dict[str, Floats], side: str, rate: float, cost_factor: float, release: Costs
) -> None:
    """Add the executions of an hour to one side of each comparison."""
    count = len(columns[f"{side}_cost_usd"])
    runs = random.poisson(release.per_hour, count)
    owner = np.repeat(np.arange(count), runs)
    succeeded = random.random(len(owner)) < rate
    usd = cost_factor * np.exp(random.normal(0, release.spread, len(owner))) * np.where(succeeded, 1.0, release.failed)
    for name, values in zip(_OF_COSTS[1:], (usd, usd * usd, succeeded, usd * succeeded), strict=True):
        columns[f"{side}_{name}"] += np.bincount(owner, values, minlength=count)
    columns[f"{side}_runs_with_cost"] += runs


# -- the command -------------------------------------------------------------------------------------------------------


def main() -> None:
    """Read the flags, simulate, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.release_measures", description=__doc__)
    parser.add_argument("--count", type=int, default=2000, help="comparisons of each release")
    parser.add_argument("--hours", type=int, default=720, help="hours of each comparison")
    flags = parser.parse_args()
    table = Table(title=f"{flags.count:,} comparisons of each, looked at after each of {flags.hours:,} hours")
    for heading in ("release", "measure", "worse", "better", f"hours to {POWER:.0%}", "another mix"):
        table.add_column(heading)
    for place, runtimes in enumerate(RUNTIMES):
        for measure, found in simulated_runtimes(runtimes, flags.count, flags.hours, seed=place).items():
            table.add_row(runtimes.name, measure, *_texts(found), "–")
    for place, tasks in enumerate(TASKS):
        found, other_mix = simulated_tasks(tasks, flags.count, flags.hours, seed=place)
        table.add_row(tasks.name, "success_rate_same_tasks", *_texts(found), f"{other_mix:.1%}")
    for place, costs in enumerate(COSTS):
        found = simulated_costs(costs, flags.count, flags.hours, seed=place)
        table.add_row(costs.name, "cost_per_success_usd", *_texts(found), "–")
    Console(width=140).print(table)


def _texts(found: Found) -> tuple[str, str, str]:
    return f"{found.worse:.2%}", f"{found.better:.2%}", "–" if found.hours is None else f"{found.hours:,}"


if __name__ == "__main__":
    main()
