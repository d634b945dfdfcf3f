"""Tasks of runs: stated by the log, an item of an evaluation, or observed where an agent was asked the same again.

What belongs here: which task a run is of, in which windows it counts, and which runs of an agent are looked at there.
What does not: what is made of them (`consistency`, `predictability`, `robustness`, `safety`).

Runs of tasks of different sources are never mixed: of an agent in a window the best source counts alone.
"""

from collections.abc import Sequence

import ibis
from ibis import _, ir

from health_assets.systems.reliability.names import OBSERVED

SOURCES = ("stated", "evaluation", OBSERVED)
"""Where a task may be from, the best first."""
LEAST_RUNS = 2
"""Runs of a task in a window from which on it is repeated."""
OBSERVED_PREFIX = "input:"
"""What the id of an observed task begins with; the digest of the input follows."""
PLACE = "place_in_hour"
"""The place of an observed run among those of its task and hour; 0 for other runs."""
COUNTED = ("counted_from", "counted_until")
"""The first of the hours whose windows count a run, and the one after the last."""


def asked(executions: ir.Table) -> ir.Table:
    """Executions without a task, of which it is known what they were asked."""
    return executions.filter(executions.task_id.isnull(), executions.input_digest.notnull())


def runs_of_tasks(executions: ir.Table, columns: Sequence[str], *, with_observed: bool) -> ir.Table:
    """Runs that may be of a repeated task: those that have a task, and those that were asked what others were.

    Args:
        executions: cleaned executions.
        columns: columns of theirs to keep, with `task_id` and `task_source`.
        with_observed: whether any of them is `asked`; the expression is half as long where none is.

    Returns:
        These columns, and `PLACE`. Of observed runs all that have another one of their task anywhere among the
        executions; in which windows that is, `with_counted_hours` tells.
    """
    of_tasks = executions.filter(executions.task_id.notnull())
    stated = of_tasks.select(*columns, ibis.literal(0, "int64").name(PLACE))
    if not with_observed:
        return stated
    candidates = asked(executions)
    groups = candidates.group_by(["agent_id", "input_digest"])
    repeated = groups.having(_.count() >= LEAST_RUNS).aggregate(runs=_.count())
    observed = candidates.semi_join(repeated, ["agent_id", "input_digest"])
    place = ibis.row_number().over(
        group_by=["agent_id", "input_digest", "hour"], order_by=["execution_id", "source_file", "line_number"]
    )
    observed = observed.mutate(
        task_id=ibis.literal(OBSERVED_PREFIX) + observed.input_digest, task_source=ibis.literal(OBSERVED)
    )
    return ibis.union(stated, observed.select(*columns, place.cast("int64").name(PLACE)))


def with_counted_hours(runs: ir.Table, window_hours: int, *, with_observed: bool) -> ir.Table:
    """Runs with the hours whose windows count them: a row for each stretch of such hours.

    A run counts in all windows that hold it; an observed one only in those that hold another of its task, too: the one
    before it, the one after it, or both.

    Args:
        runs: rows of `runs_of_tasks`, with `hour`, `agent_id` and what tells the runs of an hour apart.
        window_hours: length of a window.
        with_observed: whether any may be observed.
    """
    length = ibis.interval(hours=window_hours)
    first, end = COUNTED
    others = runs.filter(runs.task_source != OBSERVED)
    others = others.mutate(**{first: others.hour, end: others.hour + length})
    if not with_observed:
        return others
    observed = runs.filter(runs.task_source == OBSERVED)
    in_order = {"group_by": ["agent_id", "task_id"], "order_by": ["hour", "execution_id", "source_file", "line_number"]}
    observed = observed.mutate(before=observed.hour.lag().over(**in_order), after=observed.hour.lead().over(**in_order))
    until, before_leaves = observed.hour + length, observed.before + length
    has_before = (before_leaves > observed.hour).fill_null(False)
    has_after = (observed.after < until).fill_null(False)
    are_apart = has_before & has_after & (before_leaves < observed.after)
    is_until_last = has_after & ~are_apart
    whole = observed.filter(has_before | has_after).mutate(
        **{
            first: has_before.ifelse(observed.hour, observed.after),
            end: is_until_last.ifelse(until, before_leaves),
        }
    )
    second = observed.filter(are_apart).mutate(**{first: observed.after, end: until})
    return ibis.union(others, *(rows.select(*others.columns) for rows in (whole, second)))


def held_in(rows: ir.Table, windows: ir.Table) -> ir.Table:
    """Each window's `hour` with each row that it counts.

    Args:
        rows: rows with `COUNTED`, and without `hour`.
        windows: `hour` of every hour asked for.
    """
    first, end = COUNTED
    hours = windows.select("hour")
    return rows.inner_join(hours, [rows[first] <= hours.hour, rows[end] > hours.hour])


def of_best_source(rows: ir.Table) -> ir.Table:
    """Of each agent and hour the rows of the best source.

    Args:
        rows: rows with `hour`, `agent_id` and `task_source`.
    """
    rank = _rank(rows.task_source)
    best = rank.min().over(group_by=["hour", "agent_id"])
    return rows.mutate(rank=rank, best=best).filter(_.rank == _.best).drop("rank", "best")


def without_worse_sources(tasks: ir.Table, executions: ir.Table, windows: ir.Table, window_hours: int) -> ir.Table:
    """The tasks of agents that have no run of a task of a better source in the window.

    Args:
        tasks: rows with `hour`, `agent_id` and `task_source`.
        executions: cleaned executions, at least of the windows.
        windows: `hour` of every hour asked for.
        window_hours: length of a window.
    """
    runs = executions.filter(executions.task_id.notnull()).select("hour", "agent_id", "task_source").distinct()
    runs = runs.mutate(counted_from=runs.hour, counted_until=runs.hour + ibis.interval(hours=window_hours)).drop("hour")
    held = held_in(runs, windows)
    best = held.group_by(["hour", "agent_id"]).aggregate(best=_rank(held.task_source).min())
    ranked = tasks.mutate(rank=_rank(tasks.task_source))
    joined = ranked.left_join(best, ["hour", "agent_id"])
    return joined.filter(joined.best.isnull() | (joined["rank"] <= joined.best)).select(*tasks.columns)


def _rank(task_source: ir.StringValue) -> ir.IntegerValue:
    """The place of a source among `SOURCES`."""
    return ibis.cases(*((task_source == source, rank) for rank, source in enumerate(SOURCES)), else_=0).cast("int64")
