"""`python -m bench.releases`: how often verdicts of releases are wrong, and how soon they come, by simulation.

Each comparison is looked at after every hour, as the asset does it. The naive test beside it is a z-test at 5 % at
every hour, which is what people do who look at a dashboard.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import norm

from health_assets.scoring.confidence_sequences import Floats
from health_assets.systems.release_comparison.release_comparison import success_rates
from health_assets.systems.release_comparison.release_components import SESSION_PAIRS

POWER = 0.8
NAIVE_FROM_RUNS = 30
SIGNIFICANT = norm.ppf(0.975)


@dataclass(frozen=True, kw_only=True)
class Release:
    """A release whose truth is known.

    Args:
        name: what it is.
        old: success rate of the old version.
        new: success rate of the new one.
        old_per_hour: executions of the old version an hour, before the release.
        new_per_hour: executions of the new version an hour.
        beside_per_hour: executions of the old version an hour beside the new one.
        session_runs: how many executions in a row share one outcome.
        tells_sessions: the sides that name their sessions.
        is_bursty: whether all of a day's executions come in one hour.
    """

    name: str
    old: float
    new: float
    old_per_hour: float = 10
    new_per_hour: float = 10
    beside_per_hour: float = 0
    session_runs: int = 1
    tells_sessions: tuple[str, ...] = ("baseline", "candidate")
    is_bursty: bool = False

    @property
    def is_same(self) -> bool:
        """Whether the new version changed nothing."""
        return self.old == self.new


@dataclass(frozen=True, kw_only=True)
class Simulated:
    """What comparisons of a release came to.

    Args:
        wrong: share with a verdict for the wrong side at any hour.
        naive_wrong: share of which the naive test says that at any hour.
        found: share with a verdict for the right side at any hour.
        hours: hours until `POWER` of them had it; None where fewer had.
        fixed_hours: hours until a single test at 5 % with that power.
    """

    wrong: float
    naive_wrong: float
    found: float
    hours: int | None
    fixed_hours: float | None


RELEASES = (
    Release(name="nothing changed, 95%", old=0.95, new=0.95),
    Release(name="nothing changed, 80%, one run an hour", old=0.8, new=0.8, old_per_hour=1, new_per_hour=1),
    Release(name="nothing changed, 99.5%, 100 an hour", old=0.995, new=0.995, old_per_hour=100, new_per_hour=100),
    Release(name="nothing changed, 90%, one run in ten hours", old=0.9, new=0.9, old_per_hour=0.1, new_per_hour=0.1),
    Release(name="nothing changed, all runs of a day in one hour", old=0.95, new=0.95, is_bursty=True),
    Release(name="nothing changed, a tenth of the traffic", old=0.95, new=0.95, new_per_hour=1, beside_per_hour=9),
    Release(name="nothing changed, five runs share an outcome", old=0.95, new=0.95, session_runs=5),
    Release(
        name="the same, and only the new one names sessions",
        old=0.95,
        new=0.95,
        session_runs=5,
        tells_sessions=("candidate",),
    ),
    Release(name="the same, and neither names sessions", old=0.95, new=0.95, session_runs=5, tells_sessions=()),
    Release(name="10 points worse, five runs share an outcome", old=0.95, new=0.85, session_runs=5),
    Release(name="10 points worse", old=0.95, new=0.85),
    Release(name="5 points worse", old=0.95, new=0.90),
    Release(name="2 points worse", old=0.95, new=0.93),
    Release(name="10 points worse, a tenth of the traffic", old=0.95, new=0.85, new_per_hour=1, beside_per_hour=9),
    Release(name="5 points better", old=0.90, new=0.95),
)


def simulated(release: Release, count: int, hours: int, seed: int) -> Simulated:
    """What `count` comparisons of a release come to in so many hours, which also lie before it.

    Args:
        release: the release.
        count: how many comparisons.
        hours: hours of each.
        seed: of the random numbers.
    """
    random = np.random.default_rng(seed)
    columns = _before(random, release, count, hours)
    wrong, naive_wrong = np.zeros(count, bool), np.zeros(count, bool)
    found_at = np.full(count, np.inf)
    for hour in range(hours):
        new = _runs(random, release, release.new_per_hour, count, hour)
        _add(columns, "candidate", _sums(random, "candidate", release.new, new, release))
        beside = _runs(random, release, release.beside_per_hour, count, hour)
        _add(columns, "baseline", _sums(random, "baseline", release.old, beside, release))
        sides = _sides(columns)
        is_wrong, is_right = _judged(release, *sides)
        wrong |= is_wrong
        naive_wrong |= _judged(release, *_naive(columns))[0]
        found_at = np.minimum(found_at, np.where(is_right, hour + 1, np.inf))
    last = np.quantile(found_at, POWER, method="inverted_cdf")
    return Simulated(
        wrong=wrong.mean(),
        naive_wrong=naive_wrong.mean(),
        found=np.isfinite(found_at).mean(),
        hours=int(last) if np.isfinite(last) else None,
        fixed_hours=None if release.is_same else _fixed_hours(release, hours),
    )


def _before(random: np.random.Generator, release: Release, count: int, hours: int) -> dict[str, Floats]:
    columns = {f"{side}_{what}": np.zeros(count) for side in ("baseline", "candidate", "prior") for what in _COUNTS}
    half = hours // 2
    for hours_of_part, sides in ((hours - half, ("prior", "baseline")), (half, ("baseline",))):
        runs = random.poisson(release.old_per_hour * hours_of_part, count)
        sums = _sums(random, "baseline", release.old, runs, release)
        for side in sides:
            _add(columns, side, sums)
    return columns


_COUNTS = ("executions", "successes", *SESSION_PAIRS)


def _runs(random: np.random.Generator, release: Release, per_hour: float, count: int, hour: int) -> Floats:
    if release.is_bursty:
        return random.poisson(per_hour * 24, count) if hour % 24 == 9 else np.zeros(count, int)
    return random.poisson(per_hour, count)


def _sums(random: np.random.Generator, side: str, rate: float, runs: Floats, release: Release) -> tuple[Floats, ...]:
    """The sums of `_COUNTS` of runs, of which each session shares one outcome; the last session may be shorter."""
    size = release.session_runs
    sessions, rest = np.divmod(runs.astype(int), size)
    succeeded, rest_succeeded = random.binomial(sessions, rate), random.random(len(runs)) < rate
    successes = succeeded * size + rest * rest_succeeded
    if side not in release.tells_sessions:
        return runs, successes, *[np.zeros(len(runs))] * len(SESSION_PAIRS)
    pairs = sessions * size * (size - 1) + rest * (rest - 1)
    pairs_succeeded = succeeded * size * (size - 1) + rest * (rest - 1) * rest_succeeded
    return runs, successes, pairs, pairs_succeeded, pairs_succeeded


def _add(columns: dict[str, Floats], side: str, sums: tuple[Floats, ...]) -> None:
    for name, values in zip(_COUNTS, sums, strict=True):
        columns[f"{side}_{name}"] += values


def _sides(columns: dict[str, Floats]) -> tuple[np.ndarray, np.ndarray]:
    """Whether the new version is better, and whether it is worse."""
    with np.errstate(divide="ignore", invalid="ignore"):
        measured = success_rates(columns)
    return measured.low > 0, measured.high < 0


def _naive(columns: dict[str, Floats]) -> tuple[np.ndarray, np.ndarray]:
    """The same by a z-test, once there are a few runs."""
    runs = [columns[f"{side}_executions"] for side in ("baseline", "candidate")]
    successes = [columns[f"{side}_successes"] for side in ("baseline", "candidate")]
    with np.errstate(divide="ignore", invalid="ignore"):
        pooled = sum(successes) / sum(runs)
        z = (successes[1] / runs[1] - successes[0] / runs[0]) / np.sqrt(
            pooled * (1 - pooled) * sum(1 / n for n in runs)
        )
    is_enough = np.minimum(*runs) >= NAIVE_FROM_RUNS
    return is_enough & (z > SIGNIFICANT), is_enough & (z < -SIGNIFICANT)


def _judged(release: Release, is_better: np.ndarray, is_worse: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which verdicts are wrong, and which are right."""
    if release.is_same:
        return is_better | is_worse, np.zeros(len(is_better), bool)
    return (is_worse, is_better) if release.new > release.old else (is_better, is_worse)


def _fixed_hours(release: Release, hours: int) -> float:
    """Hours of a single two-sided test at 5 % with the power, of as many runs of the old version as there are."""
    spread = [rate * (1 - rate) for rate in (release.old, release.new)]
    per_run = ((SIGNIFICANT + norm.ppf(POWER)) / (release.new - release.old)) ** 2
    low, high = 0.01, 1e6
    for _ in range(100):
        middle = (low + high) / 2
        old = release.old_per_hour * hours + release.beside_per_hour * middle
        is_enough = per_run * (spread[0] / old + spread[1] / (release.new_per_hour * middle)) <= 1
        low, high = (low, middle) if is_enough else (middle, high)
    return high


def rows(count: int, hours: int) -> Iterator[tuple[Release, Simulated]]:
    """Every release, with what its comparisons come to."""
    for place, release in enumerate(RELEASES):
        yield release, simulated(release, count, hours, seed=place)


def main() -> None:
    """Read the flags, simulate, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.releases", description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="comparisons of each release")
    parser.add_argument("--hours", type=int, default=720, help="hours of each comparison")
    flags = parser.parse_args()
    table = Table(title=f"{flags.count:,} comparisons of each, looked at after each of {flags.hours:,} hours")
    table.add_column("release")
    for heading in ("wrong", "wrong, naive", "found", f"hours to {POWER:.0%}", "hours of one test"):
        table.add_column(heading, justify="right")
    for release, found in rows(flags.count, flags.hours):
        fixed = "–" if found.fixed_hours is None else f"{found.fixed_hours:,.0f}"
        shown = "–" if release.is_same else f"{found.found:.1%}"
        hours = "–" if found.hours is None else f"{found.hours:,}"
        table.add_row(release.name, f"{found.wrong:.2%}", f"{found.naive_wrong:.1%}", shown, hours, fixed)
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
