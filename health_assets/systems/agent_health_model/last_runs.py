"""Last runs: the score of an agent that runs too rarely for its window, over its last runs of more than a window.

What belongs here: how far back so many runs reach, and their score by the same formula. What does not: the score of the
window and its state, which stay what the source says; and words (`scoring.verdict`).

Hours are the smallest part: the hour in which the last of the runs lies counts as a whole, so that there may be a few
more than `n_full`. Failures an hour are those of all hours since then.
"""

import ibis
from ibis import ir

from health_assets.core.hours import HourRange
from health_assets.scoring.health_components import SUMS
from health_assets.scoring.relations import lookup
from health_assets.systems.agent_health_model.agent_health import scored
from health_assets.systems.agent_health_model.names import TARGETS_USED
from health_assets.warehouse.session import Session

REACH_HOURS = 7 * 24
"""How far back runs are looked for."""
KEY = ["hour", "agent_id"]
LAST_RUNS = (
    "last_runs", "last_runs_failures", "last_runs_since", "last_runs_score", "last_runs_points_at_stake",
    "last_runs_state",
)  # fmt: skip
"""Columns that `with_last_runs` adds, null where the score is not provisional or the look-back holds too few runs."""


def with_last_runs(scores: ir.Table, session: Session, hours: HourRange) -> ir.Table:
    """Add `LAST_RUNS` to rows of `agent_health`.

    Args:
        scores: rows with every column of `agent_health`.
        session: a session.
        hours: the hours of these rows.
    """
    components = session.hours_of("health_components", hours.extended_back(REACH_HOURS - 1))
    return lookup(scores, last_runs(scores, components), KEY)


def last_runs(scores: ir.Table, components: ir.Table) -> ir.Table:
    """One row per provisional score whose agent has `n_full` runs within `REACH_HOURS`: `KEY` and `LAST_RUNS`.

    Args:
        scores: rows of `agent_health`.
        components: `health_components` of their hours and of `REACH_HOURS` - 1 before them.
    """
    few = scores.filter(scores.is_provisional.fill_null(False)).select(*KEY, *TARGETS_USED)
    since = _since(few, components)
    sums = components.select(*SUMS, agent="agent_id", ran_in="hour")
    inside = since.inner_join(
        sums, [since.agent_id == sums.agent, sums.ran_in >= since.last_runs_since, sums.ran_in <= since.hour]
    )
    summed = inside.group_by([*KEY, "last_runs_since"]).aggregate(
        **{name: inside[name].fill_null(0).sum().cast("int64") for name in SUMS}
    )
    rows = summed.inner_join(few, KEY)
    seconds = rows.hour.epoch_seconds() - rows.last_runs_since.epoch_seconds()
    found = scored(rows.mutate(span_h=seconds / 3600.0 + 1.0), "span_h")
    return found.select(
        *KEY, "last_runs_since", last_runs="n", last_runs_failures="failures", last_runs_score="health_score",
        last_runs_points_at_stake="points_at_stake", last_runs_state="state",
    ).select(*KEY, *LAST_RUNS)  # fmt: skip


def _since(few: ir.Table, components: ir.Table) -> ir.Table:
    """The hours from which on agents have `n_full` runs: `KEY` and `last_runs_since`; those with fewer are left out."""
    ran = components.filter(components.executions > 0).select("executions", agent="agent_id", ran_in="hour")
    wanted = few.select(*KEY, "n_full")
    inside = wanted.inner_join(
        ran,
        [wanted.agent_id == ran.agent, ran.ran_in <= wanted.hour,
         ran.ran_in > wanted.hour - ibis.interval(hours=REACH_HOURS)],
    )  # fmt: skip
    latest_first = ibis.window(preceding=None, following=0, group_by=KEY, order_by=ibis.desc("ran_in"))
    placed = inside.mutate(so_far=inside.executions.sum().over(latest_first))
    needed = placed.filter(placed.so_far - placed.executions < placed.n_full)
    reached = needed.group_by([*KEY, "n_full"]).aggregate(
        last_runs_since=needed.ran_in.min(), executions=needed.executions.sum()
    )
    return reached.filter(reached.executions >= reached.n_full).select(*KEY, "last_runs_since")
