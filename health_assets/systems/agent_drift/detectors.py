"""Evidence of drift by agent, measure and hour, of hourly counts; which of it is enough: `agent_drift`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from health_assets.core.hours import HOUR, HourRange
from health_assets.systems.agent_drift.evidence import (
    SHARE_HOURS,
    Bets,
    Booleans,
    Floats,
    log_evidence,
    share_bets,
    volume_bets,
)
from health_assets.systems.agent_drift.names import (
    BY_TIME_OF_DAY,
    LOOK_BACK_HOURS,
    SHARES,
    SUCCESS_RATE,
    VOLUME_DROP,
    VOLUME_RISE,
    WEEK_HOURS,
)
from health_assets.systems.agent_drift.past import Integers, Past

LEAST_EVIDENCE = 20.0
"""Less has no row, unless fewer than `WEEK_HOURS` / alarms may be enough."""
MOST_CELLS, MOST_CELLS_OF_PAST = 60_000, 700_000
"""Agents x hours that are computed at once; the same with the hours of the look-back."""
OF_NO_TOOL = -1
OF_NO_AGENT = -1
"""The number in rows that tell how many detectors an hour has."""
REPORTED = ("runs", "value", "baseline_runs", "baseline", "limit_value")
EVIDENCE_SCHEMA = pa.schema({
    "hour": pa.timestamp("us", "UTC"), "number": pa.int64(), "measure": pa.string(),
    "since": pa.timestamp("us", "UTC"), "runs": pa.int64(), "value": pa.float64(), "baseline_runs": pa.int64(),
    "baseline": pa.float64(), "limit_value": pa.float64(), "evidence": pa.float64(), "detectors": pa.int64(),
    "part": pa.int64(),
})  # fmt: skip
"""Schema of rows with some evidence; each hour has one row `OF_NO_AGENT` more, with its number of detectors.

`part` is the number of the tool that a row of the tool mix is about.
"""

SharesOfRuns = Mapping[str, tuple[Integers, Integers]]
"""By measure the runs, and those of them that count against the agent: one row an hour, one column an agent."""


@dataclass(frozen=True, kw_only=True)
class Search:
    """Hours to look for drift in, and how sure to be.

    Args:
        hours: the hours to find it in.
        open_hours: how many of them, at the end, are not over; their silence says nothing yet.
        margin: largest difference of shares that does not matter.
        alarms_a_week: false alarms of the fleet that are allowed.
    """

    hours: HourRange
    open_hours: int
    margin: float
    alarms_a_week: float

    @property
    def least(self) -> float:
        """Logarithm of the least evidence that has a row."""
        return float(np.log(min(LEAST_EVIDENCE, WEEK_HOURS / self.alarms_a_week)))

    @property
    def agents_at_once(self) -> int:
        """Of how many agents drift is computed at once."""
        places = len(self.hours) + LOOK_BACK_HOURS - 1
        return max(1, min(MOST_CELLS // len(self.hours), MOST_CELLS_OF_PAST // places))


class HourlyGrid:
    """Adds counts up in arrays of one row an hour and one column an agent, or a tool.

    Args:
        numbers: numbers of agents or tools, one a count.
        places: the number of the hour of each count.
        hours: the hours to find drift in.
    """

    def __init__(self, numbers: Integers, places: Integers, hours: HourRange) -> None:
        is_there = np.zeros(numbers.max(initial=-1) + 1, bool)
        is_there[numbers] = True
        self.numbers = np.flatnonzero(is_there)
        self._shape = (len(hours) + LOOK_BACK_HOURS - 1, len(self.numbers))
        columns = (np.cumsum(is_there) - 1)[numbers]
        self._flat = places.astype(np.int64) * len(self.numbers) + columns

    def summed(self, counts: Integers) -> Integers:
        """Sums by hour and number."""
        summed = np.zeros(self._shape, counts.dtype)
        np.add.at(summed.reshape(-1), self._flat, counts)
        return summed


def run_detectors(counts: pa.Table, search: Search) -> pa.Table:
    """Rows of `EVIDENCE_SCHEMA` about runs.

    Args:
        counts: `with_lists_counted` of whole agents, in any order.
        search: what drift is found in.
    """
    grid = HourlyGrid(counts["number"].to_numpy(), counts["place"].to_numpy(), search.hours)
    return pa.concat_tables(_of_measure(counts, grid, measure, search) for measure in SHARES)


def _of_measure(counts: pa.Table, grid: HourlyGrid, measure: str, search: Search) -> pa.Table:
    runs, events = (counts[name].to_numpy() for name in SHARES[measure])
    shares = {measure: (grid.summed(runs), grid.summed(events))} if runs.any() else {}
    return evidence_of(_slices(grid.numbers, shares, search.agents_at_once), search)


def _slices(numbers: Integers, shares: SharesOfRuns, step: int) -> Iterator[tuple[Integers, SharesOfRuns]]:
    for first in range(0, len(numbers), step):
        own = slice(first, first + step)
        yield numbers[own], {measure: (runs[:, own], events[:, own]) for measure, (runs, events) in shares.items()}


def evidence_of(slices: Iterable[tuple[Integers, SharesOfRuns]], search: Search) -> pa.Table:
    """Rows of `EVIDENCE_SCHEMA` of agents' numbers and shares, some agents at a time."""
    detectors = np.zeros(len(search.hours), np.int64)
    tables = []
    for numbers, shares in slices:
        for measure, (runs, events) in shares.items():
            past = Past.of(runs, events, len(search.hours))
            with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
                for name, bets in _bets_of(measure, past, search.margin).items():
                    has_past = _has_past(name, bets, search)
                    detectors += has_past.sum(axis=1)
                    tables.append(_rows_with_evidence(numbers, name, bets, has_past, search))
    return pa.concat_tables([*tables, counts_of_detectors(search.hours, detectors)])


def _rows_with_evidence(
    numbers: Integers, measure: str, bets: Sequence[Bets], has_past: Booleans, search: Search
) -> pa.Table:
    evidence = np.where(has_past, log_evidence(bets), -np.inf)
    places, columns = np.nonzero(evidence >= search.least)
    return rows_of(measure, bets, places, columns, evidence[places, columns], numbers[columns], search)


def _bets_of(measure: str, past: Past, margin: float) -> dict[str, list[Bets]]:
    by_time = measure in BY_TIME_OF_DAY
    shares = [share_bets(past, hours, margin, is_by_time_of_day=by_time) for hours in SHARE_HOURS]
    if measure != SUCCESS_RATE:
        return {measure: shares}
    drops, rises = zip(*volume_bets(past), strict=True)
    successes = [bets.complement for bets in shares]
    return {SUCCESS_RATE: successes, VOLUME_DROP: list(drops), VOLUME_RISE: list(rises)}


def _has_past(measure: str, bets: Sequence[Bets], search: Search) -> Booleans:
    has_past = np.any([own.has_past for own in bets], axis=0)
    if measure == VOLUME_DROP and search.open_hours:
        has_past[-search.open_hours :] = False
    return has_past


def rows_of(
    measure: str,
    bets: Sequence[Bets],
    places: Integers,
    columns: Integers,
    evidence: Floats,
    numbers: Integers,
    search: Search,
    parts: Integers | None = None,
) -> pa.Table:
    """Rows of a measure.

    Args:
        measure: the measure.
        bets: its bets, by their start.
        places: the numbers of the hours of the rows, from 0 on.
        columns: the columns of the bets that rows are of.
        evidence: logarithms of the evidence.
        numbers: the agents' numbers.
        search: what drift is found in.
        parts: numbers of tools.
    """
    logs = np.stack([np.where(own.has_past, own.log_ratio, -np.inf)[places, columns] for own in bets])
    best = logs.argmax(axis=0)
    reported = {
        name: np.stack([getattr(own, name)[places, columns] for own in bets])[best, np.arange(len(best))]
        for name in REPORTED
    }
    starts = _starts(search.hours)[places]
    back = np.array([own.hours - 1 for own in bets])[best] * np.timedelta64(HOUR)
    return _evidence_table({
        "hour": starts, "number": numbers, "measure": np.full(len(best), measure, object), "since": starts - back,
        **reported, "evidence": evidence, "detectors": np.zeros(len(best), np.int64),
        "part": np.full(len(best), OF_NO_TOOL) if parts is None else parts,
    })  # fmt: skip


def counts_of_detectors(hours: HourRange, detectors: Integers) -> pa.Table:
    """The rows that tell how many detectors each hour has."""
    made = {field.name: np.zeros(len(hours)) for field in EVIDENCE_SCHEMA}
    starts = _starts(hours)
    return _evidence_table({
        **made, "hour": starts, "since": starts, "number": np.full(len(hours), OF_NO_AGENT),
        "measure": np.full(len(hours), "", object), "detectors": detectors,
    })  # fmt: skip


def _evidence_table(columns: Mapping[str, np.ndarray]) -> pa.Table:
    """A table of `EVIDENCE_SCHEMA`."""
    arrays = []
    for field in EVIDENCE_SCHEMA:
        values = columns[field.name]
        if pa.types.is_timestamp(field.type):
            arrays.append(pa.array(values, pa.timestamp("us")).cast(pa.int64()).cast(field.type))
        else:
            arrays.append(pa.array(values.astype(np.int64) if pa.types.is_integer(field.type) else values, field.type))
    return pa.table(arrays, EVIDENCE_SCHEMA)


def _starts(hours: HourRange) -> np.ndarray:
    return np.array([hour.replace(tzinfo=None) for hour in hours], "datetime64[us]")
