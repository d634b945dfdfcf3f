"""`python -m bench.drift`: false alarms of drift in a healthy fleet, and how soon a drift is found, by simulation.

The counts of hours are simulated, and found in by the formulas of the asset.
"""

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from health_assets.core.hours import HOUR, HourRange
from health_assets.scoring.latency_buckets import GAMMA, LAST_BUCKET
from health_assets.systems.agent_drift.agent_drift import judged
from health_assets.systems.agent_drift.detectors import Search, SharesOfRuns, evidence_of
from health_assets.systems.agent_drift.names import (
    COST,
    DAY_HOURS,
    LATENCY,
    LOOK_BACK_HOURS,
    SUCCESS_RATE,
    TOKENS,
    TOOL_FAILURES,
)
from health_assets.systems.agent_drift.past import Integers
from health_assets.systems.agent_drift.run_counts import threshold_hours
from health_assets.systems.agent_drift.tool_mix import tool_detectors

MONDAY = datetime(2026, 6, 1, tzinfo=UTC)
MARGIN = 0.02
MARGIN_BUCKETS = 5
"""Buckets of a tenth more."""
AGENTS_AT_ONCE = 500
TOOLS = 4


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """A fleet whose truth is known.

    Args:
        name: what it is.
        per_hour: the least and the greatest mean of executions an hour; between them agents are spread evenly by
            logarithm.
        success_rates: success rates, each of as many agents.
        profile: how much less runs at night and at weekends, 0 to 1.
        daily_slowdown: how much longer runs take at the busiest time of the day, as a share.
        session_runs: executions that share one outcome, one runtime and one hour.
        drop: by how much the success rate falls of `drifting` agents.
        volume_factor: what becomes of their executions.
        growth: what becomes of the time, tokens and cost of their executions.
        tool_shift: how much of their calls go to another tool.
        drifting: share of the agents that drift, from a day after the first hour on.
    """

    name: str
    per_hour: tuple[float, float] = (0.2, 100.0)
    success_rates: tuple[float, ...] = (0.8, 0.95, 0.995)
    profile: float = 0.0
    daily_slowdown: float = 0.0
    session_runs: int = 1
    drop: float = 0.0
    volume_factor: float = 1.0
    growth: float = 1.0
    tool_shift: float = 0.0
    drifting: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Simulated:
    """What is found in a fleet.

    Args:
        alarms_a_week: alarms of agents that do not drift; one alarm is as many hours in a row as it lasts.
        hours: hours from the drift to its alarm, of each agent that drifts; infinite where there is none.
        of_others: share of all alarms that are of agents that do not drift.
        measures: what these are of.
    """

    alarms_a_week: float
    hours: np.ndarray = field(repr=False)
    of_others: float
    measures: list[str]


HEALTHY = (
    Fleet(name="steady"),
    Fleet(name="less at night and at weekends, slower by half at noon", profile=0.8, daily_slowdown=0.5),
    Fleet(name="five executions share one outcome, one runtime and one hour", session_runs=5),
    Fleet(name="both", profile=0.8, daily_slowdown=0.5, session_runs=5),
)
DRIFTING = tuple(
    Fleet(name=name, per_hour=(rate, rate), success_rates=(0.95,), drifting=0.1, **changes)
    for name, changes in [
        ("10 points less success", {"drop": 0.1}), ("20 points less success", {"drop": 0.2}),
        ("silence", {"volume_factor": 0.0}), ("five times as many", {"volume_factor": 5.0}),
        ("1.5 times as slow, large and costly", {"growth": 1.5}),
        ("30 points of calls to another tool", {"tool_shift": 0.3}),
    ]
    for rate in (3.0, 10.0, 100.0)
)  # fmt: skip


def simulated(fleet: Fleet, agents: int, days: int, seed: int, alarms_a_week: float = 1.0) -> Simulated:
    """What is found in a fleet of so many agents within so many days, after those of a look-back."""
    random = np.random.default_rng(seed)
    drifting = np.arange(agents) < agents * fleet.drifting
    found = []
    for first in range(0, agents, AGENTS_AT_ONCE):
        numbers = np.arange(first, min(first + AGENTS_AT_ONCE, agents))
        found += _found(_world(random, fleet, drifting[numbers], days), numbers, days, alarms_a_week)
    rows = judged(pa.concat_tables(found), alarms_a_week)
    rows = rows.filter(rows["is_drifting"])
    numbers, measures = rows["number"].to_numpy(), np.array(rows["measure"].to_pylist(), str)
    places = (rows["hour"].cast(pa.int64()).to_numpy() // 10**6 - int(MONDAY.timestamp())) // 3600
    is_new = _begins(numbers, measures, places)
    own = drifting[numbers]
    first_found = np.full(agents, np.inf)
    is_caught = own & (places >= DAY_HOURS)
    np.minimum.at(first_found, numbers[is_caught], places[is_caught] - DAY_HOURS + 1)
    false = is_new & ~own
    return Simulated(
        alarms_a_week=false.sum() * 7 / days, hours=first_found[drifting], of_others=false.sum() / max(1, is_new.sum()),
        measures=sorted(set(measures[false])),
    )  # fmt: skip


def _begins(numbers: np.ndarray, measures: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Which alarms did not stand in the hour before."""
    there = set(zip(numbers, measures, places, strict=True))
    return np.array([(number, measure, place - 1) not in there for number, measure, place in
                     zip(numbers, measures, places, strict=True)], bool)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class World:
    """What some agents did, one row an hour and one column an agent; buckets by hour, agent and run.

    Args:
        runs: executions.
        counts: by measure executions, and those that count against the agent.
        buckets: by measure the buckets of what executions took.
        calls: calls by tool, with the tool in the last dimension.
    """

    runs: Integers
    counts: SharesOfRuns
    buckets: Mapping[str, NDArray[np.int16]]
    calls: Integers


def _world(random: np.random.Generator, fleet: Fleet, drifting: np.ndarray, days: int) -> World:
    places = np.arange(days * DAY_HOURS + LOOK_BACK_HOURS - 1)[:, None] + 1  # the look-back begins at 1 o'clock
    shape = (len(places), len(drifting))
    is_drift = drifting & (places >= LOOK_BACK_HOURS + DAY_HOURS)
    low, high = np.log(fleet.per_hour)
    means = np.exp(random.uniform(low, high, len(drifting))) * _profile(fleet, places)
    means = np.where(is_drift, means * fleet.volume_factor, means)
    rates = random.choice(fleet.success_rates, len(drifting)) - np.where(is_drift, fleet.drop, 0.0)
    sessions = random.poisson(means / fleet.session_runs)
    runs = sessions * fleet.session_runs
    with_calls = random.binomial(sessions, 0.8) * fleet.session_runs
    counts = {
        SUCCESS_RATE: (runs, random.binomial(sessions, 1 - rates) * fleet.session_runs),
        TOOL_FAILURES: (with_calls, random.binomial(with_calls // fleet.session_runs, 0.05) * fleet.session_runs),
    }
    noon = 0.5 - 0.5 * np.cos(2 * np.pi * (places % DAY_HOURS) / DAY_HOURS)
    factors = np.where(is_drift, fleet.growth, 1.0) * (1 + fleet.daily_slowdown * noon)
    spreads = np.broadcast_to(random.choice([0.3, 0.6, 1.0], len(drifting)), shape).ravel()
    logs = np.repeat(np.log(factors).ravel(), sessions.ravel())
    buckets = {}
    for measure in (LATENCY, TOKENS):
        own = logs + random.standard_normal(len(logs)) * np.repeat(spreads, sessions.ravel())
        own += np.where(random.random(len(logs)) < 0.02, np.log(10), 0.0)  # retries and timeouts
        buckets[measure] = np.repeat(800 + own / np.log(GAMMA), fleet.session_runs).astype(np.int16)
    buckets[COST] = buckets[TOKENS]  # the cost follows the tokens
    mixes = random.dirichlet([2.0] * TOOLS, len(drifting)) * np.ones((*shape, 1))
    shifted = mixes * (1 - fleet.tool_shift) + fleet.tool_shift * np.eye(TOOLS)[0]
    calls = random.poisson(with_calls[:, :, None] * 2.0 * np.where(is_drift[:, :, None], shifted, mixes))
    return World(runs=runs, counts=counts, buckets=buckets, calls=calls)


def _found(world: World, numbers: Integers, days: int, alarms_a_week: float) -> Iterator[pa.Table]:
    """Rows of `detectors.EVIDENCE_SCHEMA`, day by day."""
    for day in range(days):
        span = HourRange(MONDAY + day * DAY_HOURS * HOUR, MONDAY + (day + 1) * DAY_HOURS * HOUR)
        search = Search(hours=span, open_hours=0, margin=MARGIN, alarms_a_week=alarms_a_week)
        hours = slice(day * DAY_HOURS, (day + 1) * DAY_HOURS + LOOK_BACK_HOURS - 1)
        shares = {measure: (runs[hours], events[hours]) for measure, (runs, events) in world.counts.items()}
        first, last = world.runs[: hours.start].sum(), world.runs[: hours.stop].sum()
        runs = world.runs[hours]
        for measure, buckets in world.buckets.items():
            shares[measure] = runs, _events(runs, buckets[first:last])
        yield evidence_of([(numbers, shares)], search)
        yield tool_detectors(_table_of_calls(world.calls[hours], numbers), search)


def _events(runs: Integers, buckets: NDArray[np.int16]) -> Integers:
    """The runs of each hour and agent above the agent's threshold, as `run_counts` has them."""
    counts = runs.ravel()
    ends = np.cumsum(counts)
    totals = np.zeros((2, runs.shape[1]))
    for hour in threshold_hours(HourRange.of(MONDAY)):
        place = LOOK_BACK_HOURS - 1 - (MONDAY - hour) // HOUR
        for agent in np.flatnonzero(runs[place]):
            end, count = ends[place * runs.shape[1] + agent], runs[place, agent]
            ordered = np.sort(buckets[end - count : end])
            totals[:, agent] += count, count * ordered[(9 * count + 9) // 10 - 1]
    thresholds = np.where(totals[0] > 0, totals[1] // np.maximum(totals[0], 1) + MARGIN_BUCKETS, LAST_BUCKET)
    is_above = buckets > np.repeat(np.broadcast_to(thresholds, runs.shape).ravel(), counts)
    summed = np.concatenate([[0], np.cumsum(is_above)])
    return (summed[ends] - summed[ends - counts]).reshape(runs.shape)


def _table_of_calls(calls: Integers, numbers: Integers) -> pa.Table:
    places, agents, tools = np.nonzero(calls)
    counts = calls[places, agents, tools].astype(np.int32)
    return pa.table({"number": numbers[agents], "place": places, "part": tools, "calls": counts})


def _profile(fleet: Fleet, places: np.ndarray) -> np.ndarray:
    """What share of its greatest traffic an agent has; the first place is the first hour of a Monday."""
    night = 0.5 - 0.5 * np.cos(2 * np.pi * (places % DAY_HOURS) / DAY_HOURS)
    is_weekend = places // DAY_HOURS % 7 >= 5
    return 1 - fleet.profile * (1 - night * np.where(is_weekend, 0.3, 1.0))


def main() -> None:
    """Read the flags, simulate, and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m bench.drift", description=__doc__)
    parser.add_argument("--agents", type=int, default=20_000, help="agents of each healthy fleet")
    parser.add_argument("--weeks", type=int, default=2, help="weeks of each healthy fleet")
    parser.add_argument("--drifting", type=int, default=200, help="agents that drift, among ten times as many")
    flags = parser.parse_args()
    console = Console(width=140)
    table = Table(title=f"{flags.agents:,} healthy agents for {flags.weeks} weeks, one false alarm a week allowed")
    for heading in ("fleet", "false alarms a week", "of"):
        table.add_column(heading)
    for seed, fleet in enumerate(HEALTHY):
        found = simulated(fleet, flags.agents, 7 * flags.weeks, seed)
        table.add_row(fleet.name, f"{found.alarms_a_week:.2f}", ", ".join(found.measures))
    console.print(table)
    table = Table(title=f"{flags.drifting:,} agents that drift among {10 * flags.drifting:,}")
    for heading in ("drift, from 95 %", "executions an hour", "found", "hours, median", "hours, 90 %", "false"):
        table.add_column(heading)
    for seed, fleet in enumerate(DRIFTING):
        found = simulated(fleet, 10 * flags.drifting, 4, seed)
        half, most = (_hours(np.quantile(found.hours, part, method="inverted_cdf")) for part in (0.5, 0.9))
        share = f"{np.isfinite(found.hours).mean():.0%}"
        table.add_row(fleet.name, f"{fleet.per_hour[0]:g}", share, half, most, f"{found.of_others:.1%}")
    console.print(table)


def _hours(hours: float) -> str:
    return f"{hours:.0f}" if np.isfinite(hours) else "–"


if __name__ == "__main__":
    main()
