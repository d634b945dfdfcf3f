"""`python -m bench.model_pairs --data FILE`: models compared trial by trial, beside what all of their trials say.

FILE has native `execution` lines of trials: `agent_id`, `task_id`, `status`. Of each pair of agents, the trials of
tasks that both tried come in random order, and the comparison of releases looks after each of them. A pair is decided
at the first look whose interval leaves out 0; the verdict agrees where the success rates of all these trials say the
same. Beside it, Fisher's exact test at 5 % looks once, at all trials.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.stats import fisher_exact

from health_assets.scoring.confidence_sequences import Floats
from health_assets.systems.release_comparison.release_comparison import ALPHA, success_rates
from health_assets.systems.release_comparison.release_components import SESSION_PAIRS

Outcomes = Mapping[str, Mapping[str, list[bool]]]
"""By agent and task, whether each trial succeeded."""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two agents on the tasks that both tried, in several random orders of their trials.

    Args:
        agents: their names.
        tasks: tasks that both tried.
        trials: trials of each.
        rates: success rates of all of these.
        is_significant: whether one test of all of these trials finds a difference.
        decided_after: by order, trials of both until the verdict; infinite where none came.
        agrees: by order, whether the verdict is what all trials say; false without one.
    """

    agents: tuple[str, str]
    tasks: int
    trials: tuple[int, int]
    rates: tuple[float, float]
    is_significant: bool
    decided_after: Floats
    agrees: NDArray[np.bool_]

    @property
    def decided(self) -> int:
        """In how many orders a verdict came."""
        return int(np.isfinite(self.decided_after).sum())

    @property
    def median_trials(self) -> float | None:
        """The median of the trials until a verdict, of the orders in which one came; None without any."""
        return float(np.median(self.decided_after[np.isfinite(self.decided_after)])) if self.decided else None


def outcomes_of(path: Path) -> Outcomes:
    """The trials of a file."""
    outcomes: dict[str, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for text in path.read_text(encoding="utf-8").splitlines():
        record = json.loads(text)
        if record["type"] == "execution" and "task_id" in record:
            outcomes[record["agent_id"]][record["task_id"]].append(record["status"] == "success")
    return outcomes


def pairs(outcomes: Outcomes, orders: int) -> Iterator[Pair]:
    """Every pair of agents with a task that both tried."""
    for seed, agents in enumerate(combinations(sorted(outcomes), 2)):
        tasks = sorted(set(outcomes[agents[0]]) & set(outcomes[agents[1]]))
        if tasks:
            sides = [np.array([one for task in tasks for one in outcomes[agent][task]]) for agent in agents]
            yield _pair(agents, len(tasks), sides, np.random.default_rng(seed), orders)


def _pair(
    agents: tuple[str, ...], tasks: int, sides: list[NDArray[np.bool_]], random: np.random.Generator, orders: int
) -> Pair:
    trials, rates = [len(side) for side in sides], [float(side.mean()) for side in sides]
    succeeded = np.concatenate(sides)
    is_second = np.repeat([False, True], trials)
    order = random.permuted(np.tile(np.arange(len(succeeded)), (orders, 1)), axis=1)
    low, high = _intervals(succeeded[order], is_second[order])
    leaves_out_0 = (low > 0) | (high < 0)
    first = leaves_out_0.argmax(axis=1)
    is_decided = leaves_out_0.any(axis=1)
    each = np.arange(orders)
    verdict = np.where(low[each, first] > 0, 1, -1)
    return Pair(
        agents=(agents[0], agents[1]),
        tasks=tasks,
        trials=(trials[0], trials[1]),
        rates=(rates[0], rates[1]),
        is_significant=bool(fisher_exact([[side.sum(), (~side).sum()] for side in sides]).pvalue < ALPHA),
        decided_after=np.where(is_decided, first + 1.0, np.inf),
        agrees=is_decided & (verdict == np.sign(rates[1] - rates[0])),
    )


def _intervals(succeeded: NDArray[np.bool_], is_second: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Both ends of the difference of success rates after each trial, an order a row."""
    columns = {f"prior_{name}": np.zeros(succeeded.shape) for name in ("executions", "successes", *SESSION_PAIRS)}
    for side, is_own in (("baseline", ~is_second), ("candidate", is_second)):
        columns |= {f"{side}_{name}": np.zeros(succeeded.shape) for name in SESSION_PAIRS}
        columns[f"{side}_executions"] = np.cumsum(is_own, axis=1).astype(float)
        columns[f"{side}_successes"] = np.cumsum(is_own & succeeded, axis=1).astype(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        measured = success_rates({name: values.ravel() for name, values in columns.items()})
    low, high = (end.reshape(succeeded.shape) for end in (measured.low, measured.high))
    is_compared = (columns["baseline_executions"] > 0) & (columns["candidate_executions"] > 0)
    return np.where(is_compared, low, -1.0), np.where(is_compared, high, 1.0)


def main() -> None:
    """Read the flags, compare, and print a table and its sums."""
    parser = argparse.ArgumentParser(prog="python -m bench.model_pairs", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="file of native lines of trials")
    parser.add_argument("--orders", type=int, default=100, help="random orders of each pair's trials")
    flags = parser.parse_args()
    found = list(pairs(outcomes_of(flags.data), flags.orders))
    table = Table(title=f"{len(found):,} pairs, each in {flags.orders:,} random orders of its trials")
    table.add_column("pair")
    for heading in ("tasks", "trials", "success rates", "one test", "decided", "agree", "median trials"):
        table.add_column(heading, justify="right")
    for pair in sorted(found, key=lambda pair: -abs(pair.rates[1] - pair.rates[0])):
        median = "–" if pair.median_trials is None else f"{pair.median_trials:,.0f}"
        table.add_row(
            " / ".join(pair.agents), f"{pair.tasks:,}", " / ".join(f"{count:,}" for count in pair.trials),
            " / ".join(f"{rate:.1%}" for rate in pair.rates),
            "differs" if pair.is_significant else "", f"{pair.decided / flags.orders:.0%}",
            f"{pair.agrees.sum():,} of {pair.decided:,}", median,
        )  # fmt: skip
    console = Console(width=140)
    console.print(table)
    decided, agree = (
        sum(counts) for counts in ([pair.decided for pair in found], [pair.agrees.sum() for pair in found])
    )
    always, never = (sum(pair.decided == count for pair in found) for count in (flags.orders, 0))
    console.print(
        f"{decided:,} of {len(found) * flags.orders:,} streams came to a verdict, {agree:,} of them as all trials say; "
        f"{always} pairs in every order, {never} in none"
    )


if __name__ == "__main__":
    main()
