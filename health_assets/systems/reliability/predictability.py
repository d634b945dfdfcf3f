"""Predictability (source 2, "Predictability"): how well an agent's confidence tells which of its runs succeed.

An agent's baseline runs with a confidence are judged together, whatever their task, where these are of one source. All
formulas need no more than how many runs of each confidence there are and how many of them succeeded, so runs are
counted first.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from ibis import ir

from health_assets.core.hours import HourRange
from health_assets.systems.reliability.timeline import (
    Integers,
    Numbers,
    Stretches,
    Timeline,
    flat_ranges,
    group_numbers,
    hour_numbers,
    running_sums,
)

BINS = 10
EDGES = np.arange(1, BINS) / BINS
"""Lower limits of the bins but the first; ten times the double below 0.9 would be 9."""
AGENT = ("agent_id", "task_source")
COUNTS_IN_ORDER = (*AGENT, "hour", "confidence")
SCORES = ("p_brier", "p_cal", "p_auroc", "p_rc")


def confidence_counts(runs: ir.Table) -> ir.Table:
    """Baseline runs by agent, source of tasks, hour and confidence: `runs` and, of them, `successes`."""
    runs = runs.filter(runs.condition == "baseline", runs.confidence.notnull())
    return runs.group_by(COUNTS_IN_ORDER).aggregate(runs=runs.count(), successes=runs.count(where=runs.succeeded))


def predictability(counts: pa.Table, hours: HourRange, window_hours: int) -> pa.Table:
    """One row per hour, agent and source with a confidence in the window: the scores, and `runs_with_confidence`.

    Args:
        counts: rows of `confidence_counts`, sorted by `COUNTS_IN_ORDER`, of `hours` and the window before them.
        hours: the hours that windows end with; at least one.
        window_hours: length of the window.
    """
    timeline = Timeline(
        group_numbers(*(counts[name] for name in AGENT)), hour_numbers(counts["hour"]), hours, window_hours
    )
    windows = timeline.stretches()
    total = running_sums(counts["runs"].to_numpy())
    runs = total[windows.end] - total[windows.start]
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, runs.max(initial=0) + 1))])
    parts = [_scores(_by_confidence(counts, part), harmonic) for part in windows.parts()]
    scores = np.concatenate([np.empty((len(SCORES), 0)), *parts], axis=1)
    place, hour = timeline.over_hours(windows)
    columns = {name: pa.array(values[place], from_pandas=True) for name, values in zip(SCORES, scores, strict=True)}
    agents = counts.select(list(AGENT)).take(pa.array(windows.start[place]))
    names = {name: agents[name] for name in AGENT}
    return pa.table({"hour": hour, **names, **columns, "runs_with_confidence": runs[place]})


@dataclass(frozen=True, kw_only=True)
class Levels:
    """The different confidences in each of several windows, ascending, and the runs that have them.

    Args:
        window: number of the window of each level, never falling.
        first: for each window its first level.
        confidence: the confidence.
        runs: runs with it.
        successes: runs among these that succeeded.
    """

    window: Integers
    first: Integers
    confidence: Numbers
    runs: Integers
    successes: Integers

    @property
    def failures(self) -> Integers:
        """The failed runs of each level."""
        return self.runs - self.successes

    def total(self, values: np.ndarray) -> np.ndarray:
        """Sum over the levels of each window."""
        return np.add.reduceat(values, self.first)

    def below(self, values: Integers) -> Integers:
        """For each level, the sum over lower ones of its window."""
        before = running_sums(values)
        return before[:-1] - before[self.first][self.window]

    def above(self, values: Integers) -> Integers:
        """For each level, the sum over higher ones of its window."""
        return self.total(values)[self.window] - self.below(values) - values


def _by_confidence(counts: pa.Table, windows: Stretches) -> Levels:
    window, offset = flat_ranges(windows.sizes)
    member = windows.start[window] + offset
    confidence = counts["confidence"].to_numpy()[member]
    order = np.lexsort([confidence, window])
    window, confidence = window[order], confidence[order]
    is_new = np.append(True, (window[1:] != window[:-1]) | (confidence[1:] != confidence[:-1]))
    level = np.flatnonzero(is_new)
    runs, successes = (np.add.reduceat(counts[name].to_numpy()[member][order], level) for name in ("runs", "successes"))
    window = window[level]
    return Levels(
        window=window,
        first=np.searchsorted(window, np.arange(len(windows))),
        confidence=confidence[level],
        runs=runs,
        successes=successes,
    )


def _scores(levels: Levels, harmonic: Numbers) -> Numbers:
    """The `SCORES` of each window, one row each."""
    return np.stack([_brier(levels), _calibration(levels), _discrimination(levels), _risk_coverage(levels, harmonic)])


def _brier(levels: Levels) -> Numbers:
    """Source 2, "Brier Score": 1 - mean (c - y)^2 over runs with confidence c and outcome y."""
    squares = levels.successes * (1 - levels.confidence) ** 2 + levels.failures * levels.confidence**2
    return np.clip(1 - levels.total(squares) / levels.total(levels.runs), 0, 1)


def _calibration(levels: Levels) -> Numbers:
    """Source 2, "Calibration Score": 1 - sum of |B| / N |accuracy - mean confidence| over bins min(9, floor(10 c))."""
    bin_of = np.searchsorted(EDGES, levels.confidence, side="right")
    is_new = np.append(True, np.diff(levels.window * BINS + bin_of) != 0)
    first = np.flatnonzero(is_new)
    excess = np.add.reduceat(levels.successes - levels.runs * levels.confidence, first)
    error = np.add.reduceat(np.abs(excess), np.searchsorted(levels.window[first], np.arange(len(levels.first))))
    return np.clip(1 - error / levels.total(levels.runs), 0, 1)


def _discrimination(levels: Levels) -> Numbers:
    """Source 2, "Discrimination Score": (concordant + 0.5 tied) / (n+ n-); NaN without successes or failures."""
    halves = levels.successes * (2 * levels.below(levels.failures) + levels.failures)
    pairs = levels.total(levels.successes) * levels.total(levels.failures)
    return np.where(pairs > 0, levels.total(halves) / np.maximum(2 * pairs, 1), np.nan)


def _risk_coverage(levels: Levels, harmonic: Numbers) -> Numbers:
    """Source 2, "Risk-Coverage Score": 1 - E-AURC / E-AURC_max, clipped to 0 to 1; 1 when nothing can be gained.

    AURC is the mean over k = 1 … N of the error rate among the k most confident runs. Runs of equal confidence share
    their group's error rate: with m of them, e failed, after n surer runs of which f failed, the error rate at n + i is
    (f + i e / m) / (n + i), whose sum over i = 1 … m is e + (f - n e / m) (H(n + m) - H(n)) with harmonic numbers H.
    The oracle puts the s successes first: sum over k > s of (k - s) / k = (N - s) - s (H(N) - H(s)). In random order
    the error rate is that of all runs at every k.

    Args:
        levels: the confidences.
        harmonic: the harmonic numbers from H(0) = 0 on.
    """
    surer, surer_failed = levels.above(levels.runs), levels.above(levels.failures)
    rest = surer_failed - surer * (levels.failures / levels.runs)
    observed = levels.total(levels.failures + rest * (harmonic[surer + levels.runs] - harmonic[surer]))
    count, failed = levels.total(levels.runs), levels.total(levels.failures)
    succeeded = count - failed
    optimal = failed - succeeded * (harmonic[count] - harmonic[succeeded])
    can_gain = (failed > 0) & (succeeded > 0)
    excess, most = observed - optimal, np.where(can_gain, failed - optimal, 1)
    return np.where(can_gain, np.clip(1 - excess / most, 0, 1), 1.0)
