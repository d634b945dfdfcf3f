"""Verdicts on every hour of some agents, as arrays: a row an agent, a column an hour of the look-back.

What belongs here: all that follows from an agent's hours in order. What does not: which agents and hours there are
(`agent_now`), and probabilities (`chance`).

In SQL the same takes six passes over sorted windows, which cost ten times as much. A few agents at a time are laid out,
so that memory does not grow with their number.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from health_assets.core.hours import HOUR, HourRange
from health_assets.systems.agent_now.chance import KEYS, with_chances
from health_assets.systems.agent_now.names import (
    FAILING,
    LONG_HOURS,
    OK,
    QUIET,
    RECOVERING,
    RECOVERY_HOURS,
    SUSPECT,
    VERDICTS,
)

Counts = NDArray[np.int64]
Flags = NDArray[np.bool_]
Shares = NDArray[np.float64]

CELLS = 1_000_000
"""Agents times hours that are laid out at once."""
MAX_SLOTS_PER_NUMBER = 4
"""Most slots of a look-up table for each number; with more, sorting the numbers is cheaper."""
HOUR_US = HOUR // timedelta(microseconds=1)
TIME = pa.timestamp("us", "UTC")
NONE = -1
"""Stands for no hour in arrays of counts, which are never negative."""

COUNTS = ("executions_1h", "failures_1h", "executions_6h", "failures_6h", "failed_in_a_row")
MADE = pa.schema(
    [
        ("hour", TIME), ("agent_id", pa.string()), ("expected_success_rate", pa.float64()),
        *((name, pa.int64()) for name in COUNTS), ("verdict", pa.string()), ("since", TIME), ("good_hours", pa.int64()),
        ("p_chance", pa.float64()), ("p_chance_6h", pa.float64()),
    ]
)  # fmt: skip
"""The columns of `verdicts`."""


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


def verdicts(rows: pa.Table, *, hours: HourRange, lookback_hours: int, threshold: float) -> pa.Table:
    """The columns of `MADE` of every row that is asked for.

    Args:
        rows: `hour`, `agent_id`, `expected_success_rate`, `executions`, `failures`, `failed_at_end` and `is_asked`, by
            agent. Hours of the look-back in which something ran, and beside them the ones asked for, with counts of 0.
            Where the last hour runs, also the columns of `COUNTS`: those of the running hour, and null of all others.
        hours: the hours asked for.
        lookback_hours: length of the look-back.
        threshold: failures of a smaller probability are no chance.
    """
    reach, span = Reach(lookback_hours), hours.extended_back(lookback_hours - 1)
    made = [_of_agents(part, span, hours, reach, threshold) for part in _parts(rows, len(span))]
    return pa.concat_tables(made) if made else MADE.empty_table()


def _parts(rows: pa.Table, hours: int) -> Iterator[pa.Table]:
    """The rows of a few agents at a time."""
    if not rows.num_rows:
        return
    names = rows["agent_id"].combine_chunks()
    is_first = pc.not_equal(names[1:], names[:-1]).to_numpy(zero_copy_only=False)
    starts = np.concatenate([[0], np.flatnonzero(is_first) + 1])[:: max(1, CELLS // hours)]
    for start, end in zip(starts, [*starts[1:], rows.num_rows], strict=True):
        yield rows.slice(start, end - start)


def _of_agents(rows: pa.Table, span: HourRange, hours: HourRange, reach: Reach, threshold: float) -> pa.Table:
    encoded = rows["agent_id"].combine_chunks().dictionary_encode()
    agent = encoded.indices.to_numpy()
    start_us = pa.scalar(span.start, TIME).cast(pa.int64()).as_py()
    hour = (rows["hour"].cast(TIME).cast(pa.int64()).to_numpy() - start_us) // HOUR_US
    is_asked = rows["is_asked"].to_numpy()
    rates = np.zeros(len(encoded.dictionary))
    rates[agent] = rows["expected_success_rate"].to_numpy()

    def laid_out(name: str) -> Counts:
        grid = np.zeros((len(rates), len(span)), np.int64)
        grid[agent[~is_asked], hour[~is_asked]] = rows[name].to_numpy()[~is_asked]
        return grid

    counts = _counts(laid_out("executions"), laid_out("failures"), laid_out("failed_at_end"), reach)
    if COUNTS[0] in rows.column_names:
        is_running = rows[COUNTS[0]].is_valid().to_numpy()
        for name, values in counts.items():
            values[agent[is_running], -1] = rows[name].drop_null().to_numpy()
    grid = counts | _verdicts(counts, rates, reach, threshold)
    grid["since"] = _since(grid["verdict"], len(span) - len(hours) - reach.since_hours, reach)
    place = agent[is_asked], hour[is_asked]
    found = {name: values[place] for name, values in grid.items()}
    is_known = {
        "good_hours": found["verdict"] == VERDICTS.index(RECOVERING),
        "p_chance": (found["executions_1h"] > 0) | (found["failed_in_a_row"] > 0),
        "p_chance_6h": found["executions_6h"] > 0,
    }
    columns: dict[str, Any] = {name: pa.array(values, mask=_not(is_known.get(name))) for name, values in found.items()}
    columns["verdict"] = pa.array(VERDICTS).take(columns["verdict"])
    columns["since"] = pa.array(start_us + found["since"] * HOUR_US).cast(TIME)
    columns["hour"] = pa.array(start_us + place[1] * HOUR_US).cast(TIME)
    columns["agent_id"] = encoded.dictionary.take(pa.array(place[0]))
    columns["expected_success_rate"] = pa.array(rates[place[0]])
    return pa.table([columns[name] for name in MADE.names], schema=MADE)


def _not(flags: Flags | None) -> Flags | None:
    return None if flags is None else ~flags


def _counts(executions: Counts, failures: Counts, failed_at_end: Counts, reach: Reach) -> dict[str, Counts]:
    """The `COUNTS` of every agent and hour."""
    so_far, failures_6h = failures.cumsum(axis=1), _sums(failures, reach.long_hours)
    before_streak = np.where(failed_at_end < executions, so_far - failed_at_end, NONE)
    latest = _greatest(before_streak, range(reach.long_hours))
    return {
        "executions_1h": executions,
        "failures_1h": failures,
        "executions_6h": _sums(executions, reach.long_hours),
        "failures_6h": failures_6h,
        "failed_in_a_row": so_far - np.where(latest == NONE, so_far - failures_6h, latest),
    }


def _verdicts(counts: Mapping[str, Counts], rates: Shares, reach: Reach, threshold: float) -> dict[str, NDArray[Any]]:
    """The columns of every agent and hour that follow from its counts, but `since`; verdicts by their place."""
    executions, failures, streak = counts["executions_1h"], counts["failures_1h"], counts["failed_in_a_row"]
    chance_1h, is_improbable_1h = chances_of_cells(failures, executions, rates, threshold)
    chance_6h, is_improbable_6h = chances_of_cells(counts["failures_6h"], counts["executions_6h"], rates, threshold)
    chance_streak, is_improbable_streak = chances_of_cells(streak, streak, rates, threshold)

    is_failing = (is_improbable_1h & (failures * 2 >= executions)) | ((streak >= 2) & is_improbable_streak)
    hours_ran = (executions > 0).cumsum(axis=1)
    ran_when_failing = np.where(is_failing, hours_ran, NONE)
    ran_by_failing = _greatest(ran_when_failing, range(1, min(RECOVERY_HOURS, reach.failing_before) + 1))
    was_failing = _greatest(ran_when_failing, range(1, reach.failing_before + 1)) != NONE
    words = [VERDICTS.index(word) for word in (FAILING, QUIET, SUSPECT, RECOVERING, SUSPECT)]
    cases = [
        is_failing, executions == 0, is_improbable_1h, ran_by_failing != NONE, is_improbable_6h & ~was_failing,
    ]  # fmt: skip
    return {
        "verdict": np.select(cases, words, VERDICTS.index(OK)),
        "good_hours": hours_ran - ran_by_failing,
        "p_chance": np.minimum(chance_1h, chance_streak),
        "p_chance_6h": chance_6h,
    }


def _sums(counts: Counts, hours: int) -> Counts:
    """Sums over the last hours."""
    so_far = counts.cumsum(axis=1)
    sums = so_far.copy()
    sums[:, hours:] -= so_far[:, :-hours]
    return sums


def _greatest(values: Counts, hours_back: range) -> Counts:
    """The greatest value of those so many hours back; `NONE` where there is none."""
    greatest = np.full_like(values, NONE)
    for back in hours_back:
        own = greatest[:, back:]
        np.maximum(own, values[:, : values.shape[1] - back], out=own)
    return greatest


def chances_of_cells(failures: Counts, executions: Counts, rates: Shares, threshold: float) -> tuple[Shares, Flags]:
    """The probability of at least so many failures, 1 where there are none, and whether it is below the threshold."""
    chances, is_improbable = np.ones(failures.shape), np.zeros(failures.shape, np.bool_)
    cell = np.flatnonzero(failures)
    if not len(cell):
        return chances, is_improbable
    agent = cell // failures.shape[1]
    values = (failures.ravel()[cell], executions.ravel()[cell], rates[agent])
    distinct_rates, rate_of_agent = np.unique(rates, return_inverse=True)
    numbers = (*values[:2], rate_of_agent[agent])
    counts = (int(values[0].max()) + 1, int(values[1].max()) + 1, len(distinct_rates))
    case, cases_so_far = np.zeros(len(cell), np.int64), 1
    for number, count in zip(numbers, counts, strict=True):  # agents share few cases, which are computed once each
        place, distinct = _dense_ranks(number, count)
        case, cases_so_far = _dense_ranks(case * distinct + place, cases_so_far * distinct)
    first = np.zeros(cases_so_far, np.int64)
    first[case] = np.arange(len(case))
    cases = pa.table([value[first] for value in values], schema=pa.schema(KEYS))
    found = with_chances(cases, threshold)
    chances.ravel()[cell] = found["chance"].to_numpy()[case]
    is_improbable.ravel()[cell] = found["is_improbable"].to_numpy()[case]
    return chances, is_improbable


def _dense_ranks(numbers: Counts, end: int) -> tuple[Counts, int]:
    """The place of each number among the distinct ones, in order, and how many these are.

    Args:
        numbers: at least one, from 0 on.
        end: a number above all of them.
    """
    if end > MAX_SLOTS_PER_NUMBER * len(numbers):
        distinct, place = np.unique(numbers, return_inverse=True)
        return place, len(distinct)
    is_there = np.zeros(end, np.bool_)  # a look-up table instead of a sort
    is_there[numbers] = True
    place = is_there.cumsum() - 1
    return place[numbers], int(place[-1]) + 1


def _since(verdict: NDArray[np.int64], first: int, reach: Reach) -> Counts:
    """The first hour of each verdict, as far back as it may lie.

    Args:
        verdict: by agent and hour.
        first: the first hour whose verdict is known.
        reach: hours that each part of a verdict looks back.
    """
    hours = np.arange(verdict.shape[1])
    is_changed = np.zeros(verdict.shape, np.bool_)
    is_changed[:, 1:] = verdict[:, 1:] != verdict[:, :-1]
    changed_in = np.where(is_changed & (hours > first), hours, first)
    return np.maximum(np.maximum.accumulate(changed_in, axis=1), hours - reach.since_hours)
