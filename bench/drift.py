"""`python -m bench.drift`: false alarms of drift in a healthy fleet, and how soon a drift is found, by simulation.

The counts of hours are simulated, and found in by the formulas of the asset.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from health_assets.core.hours import HOUR, HourRange
from health_assets.systems.agent_drift.agent_drift import judged
from health_assets.systems.agent_drift.detectors import Search, SharesOfRuns, found_in
from health_assets.systems.agent_drift.names import DAY_HOURS, LOOK_BACK_HOURS, SUCCESS_RATE, WEEK_HOURS
from health_assets.systems.agent_drift.past import Integers

MONDAY = datetime(2026, 6, 1, tzinfo=UTC)
MARGIN = 0.02


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """A fleet whose truth is known.

    Args:
        name: what it is.
        per_hour: the least and the greatest mean of executions an hour; between them agents are spread evenly by
            logarithm.
        success_rates: success rates, each of as many agents.
        profile: how much less runs at night and at weekends, 0 to 1.
        session_runs: executions that share one outcome and one hour.
        drop: by how much the success rate falls of `drifting` agents.
        volume_factor: what becomes of their executions.
        drifting: share of the agents that drift, from a day after the first hour on.
    """

    name: str
    per_hour: tuple[float, float] = (0.2, 100.0)
    success_rates: tuple[float, ...] = (0.8, 0.95, 0.995)
    profile: float = 0.0
    session_runs: int = 1
    drop: float = 0.0
    volume_factor: float = 1.0
    drifting: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Simulated:
    """What is found in a fleet.

    Args:
        alarms_a_week: alarms of agents that do not drift; one alarm is as many hours in a row as it lasts.
        hours: hours from the drift to its alarm, of each agent that drifts; infinite where there is none.
        of_others: share of all alarms that are of agents that do not drift.
    """

    alarms_a_week: float
    hours: np.ndarray = field(repr=False)
    of_others: float


HEALTHY = (
    Fleet(name="steady"),
    Fleet(name="less at night and at weekends", profile=0.8),
    Fleet(name="five executions share one outcome and one hour", session_runs=5),
    Fleet(name="both", profile=0.8, session_runs=5),
)
DRIFTING = tuple(
    Fleet(name=name, per_hour=(rate, rate), success_rates=(0.95,), drifting=0.1, **changes)
    for name, changes in [
        ("10 points less success", {"drop": 0.1}), ("20 points less success", {"drop": 0.2}),
        ("silence", {"volume_factor": 0.0}), ("five times as many", {"volume_factor": 5.0}),
    ]
    for rate in (3.0, 10.0, 100.0)
)  # fmt: skip


def simulated(fleet: Fleet, agents: int, hours: int, seed: int, alarms_a_week: float = 1.0) -> Simulated:
    """What is found in a fleet of so many agents within so many hours, after those of a look-back."""
    span = HourRange(MONDAY, MONDAY + hours * HOUR)
    drifting = np.arange(agents) < agents * fleet.drifting
    search = Search(hours=span, open_hours=0, margin=MARGIN, alarms_a_week=alarms_a_week)
    found = judged(found_in(_slices(np.random.default_rng(seed), fleet, drifting, search), search), alarms_a_week)
    found = found.filter(found["is_drifting"])
    numbers = found["number"].to_numpy()
    places = (found["hour"].cast(pa.timestamp("us")).to_numpy() - np.datetime64(MONDAY.replace(tzinfo=None))) // HOUR
    places = places.astype(int)
    is_new = _begins(numbers, np.array(found["measure"].to_pylist(), str), places)
    own = drifting[numbers]
    first = np.full(agents, np.inf)
    is_caught = own & (places >= DAY_HOURS)
    np.minimum.at(first, numbers[is_caught], places[is_caught] - DAY_HOURS + 1)
    of_others = int((is_new & ~own).sum())
    return Simulated(
        alarms_a_week=of_others * WEEK_HOURS / hours, hours=first[drifting], of_others=of_others / max(1, is_new.sum())
    )


def _begins(numbers: np.ndarray, measures: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Which alarms did not stand in the hour before."""
    there = set(zip(numbers, measures, places, strict=True))
    return np.array([(number, measure, place - 1) not in there for number, measure, place in
                     zip(numbers, measures, places, strict=True)], bool)  # fmt: skip


def _slices(
    random: np.random.Generator, fleet: Fleet, drifting: np.ndarray, search: Search
) -> Iterator[tuple[Integers, SharesOfRuns]]:
    for first in range(0, len(drifting), search.agents_at_once):
        own = drifting[first : first + search.agents_at_once]
        yield np.arange(first, first + len(own)), _shares(random, fleet, own, len(search.hours))


def _shares(random: np.random.Generator, fleet: Fleet, drifting: np.ndarray, hours: int) -> SharesOfRuns:
    places = np.arange(hours + LOOK_BACK_HOURS - 1)[:, None]
    low, high = np.log(fleet.per_hour)
    means = np.exp(random.uniform(low, high, len(drifting))) * _profile(fleet, places)
    rates = random.choice(fleet.success_rates, len(drifting)) * np.ones(places.shape)
    is_drift = drifting & (places >= LOOK_BACK_HOURS - 1 + DAY_HOURS)
    means, rates = np.where(is_drift, means * fleet.volume_factor, means), np.where(is_drift, rates - fleet.drop, rates)
    sessions = random.poisson(means / fleet.session_runs)
    runs = sessions * fleet.session_runs
    return {SUCCESS_RATE: (runs, random.binomial(sessions, 1 - rates) * fleet.session_runs)}


def _profile(fleet: Fleet, places: np.ndarray) -> np.ndarray:
    """What share of its greatest traffic an agent has; the first place is the first hour of a Monday."""
    night = 0.5 - 0.5 * np.cos(2 * np.pi * (places % DAY_HOURS) / DAY_HOURS)
    is_weekend = places // DAY_HOURS % 7 >= 5
    return 1 - fleet.profile * (1 - night * np.where(is_weekend, 0.3, 1.0))


def main() -> None:
    """Read the flags, simulate, and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m bench.drift", description=__doc__)
    parser.add_argument("--agents", type=int, default=25_000, help="agents of each healthy fleet")
    parser.add_argument("--weeks", type=int, default=4, help="weeks of each healthy fleet")
    parser.add_argument("--drifting", type=int, default=200, help="agents that drift, among ten times as many")
    flags = parser.parse_args()
    console = Console(width=120)
    table = Table(title=f"{flags.agents:,} healthy agents for {flags.weeks} weeks, one false alarm a week allowed")
    for heading in ("fleet", "false alarms a week"):
        table.add_column(heading)
    for seed, fleet in enumerate(HEALTHY):
        found = simulated(fleet, flags.agents, flags.weeks * WEEK_HOURS, seed)
        table.add_row(fleet.name, f"{found.alarms_a_week:.2f}")
    console.print(table)
    table = Table(title=f"{flags.drifting:,} agents that drift among {10 * flags.drifting:,}")
    for heading in ("drift, from 95 %", "executions an hour", "found", "hours, median", "hours, 90 %", "false"):
        table.add_column(heading)
    for seed, fleet in enumerate(DRIFTING):
        found = simulated(fleet, 10 * flags.drifting, 4 * DAY_HOURS, seed)
        half, most = (_hours(np.quantile(found.hours, part, method="inverted_cdf")) for part in (0.5, 0.9))
        share = f"{np.isfinite(found.hours).mean():.0%}"
        table.add_row(fleet.name, f"{fleet.per_hour[0]:g}", share, half, most, f"{found.of_others:.1%}")
    console.print(table)


def _hours(hours: float) -> str:
    return f"{hours:.0f}" if np.isfinite(hours) else "–"


if __name__ == "__main__":
    main()
