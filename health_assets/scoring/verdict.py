"""The verdict on an agent in a word: what it does now, its state, how much that rests on, and the order of lists.

What belongs here: how a verdict is written wherever one is shown, and which agents come first. What does not: how a
state comes about (`systems.agent_health_model.agent_health`), how the last hours are judged (`systems.agent_now`), what
a score lost (`explanation`) and why systems differ (`apps.report.differences`). It imports no engine.

A window of 24 hours still looks good after an hour in which everything failed. So the last hours come first: an agent
that is failing now stands above all others, whatever its score.

With few executions a score leans to 100, as its source wants it. So a state that rests on fewer than `n_full` of them
is provisional: it is written with a question mark, and is never counted among those that are known to be healthy.
"""

from collections.abc import Mapping
from typing import Any

from health_assets.core.formatting import counted
from health_assets.scoring.explanation import MOST_POINTS, shown_points

Row = Mapping[str, Any]

FAILING, SUSPECT, RECOVERING, OK, QUIET = "failing", "suspect", "recovering", "ok", "quiet"
NOW = (FAILING, SUSPECT, RECOVERING, OK, QUIET)
"""Verdicts of `agent_now`."""
NOW_FIRST = (FAILING, SUSPECT, RECOVERING)
"""Those that come before every state, in the order in which a person on call wants them."""
GOOD_HOURS = 3
"""Good hours after which an agent is not recovering any more."""

PROVISIONAL = "provisional"
PROVISIONAL_MARK = "?"

ORDER = ("unhealthy", "unhealthy?", "degraded", "degraded?", "healthy?", "healthy", "inactive")
"""Verdicts by the score, in the order in which a person on call wants them; in each the lowest score comes first.

What is known to be bad comes first. What looks good after a few runs comes before what is known to be good: four of
four failed runs still score 94, and must not vanish below a hundred healthy agents.
"""


def verdict(state: str, *, is_provisional: bool | None) -> str:
    """A state as it is written: one of `ORDER`."""
    return f"{state}{PROVISIONAL_MARK}" if is_provisional else state


def runs(row: Row) -> str:
    """The number of executions behind a row of `agent_health`; for a provisional score, also how many it needs."""
    return f"{row['n']:,} (needs {row['n_full']:,})" if row["is_provisional"] else f"{row['n']:,}"


def reservation(row: Row) -> str:
    """The words behind a provisional score of a row of `agent_health`; none behind any other."""
    return f"provisional, {row['n']:,} of {counted(row['n_full'], 'run')}" if row["is_provisional"] else ""


def last_runs(row: Row) -> str:
    """The verdict by the last runs, where the window holds too few: `degraded, 71.2, over its last 20 runs, ...`.

    Args:
        row: with the columns that `systems.agent_health_model.last_runs.with_last_runs` adds; "" where these are null.
    """
    ran = row.get("last_runs")
    if ran is None:
        return ""
    succeeded = ran - row["last_runs_failures"]
    since, stake = row["last_runs_since"], at_stake({"points_at_stake": row["last_runs_points_at_stake"]})
    score = f"{row['last_runs_score']:.1f}{f' ({stake} of 100 tested)' if stake else ''}"
    return (
        f"{row['last_runs_state']}, {score}, over its last {counted(ran, 'run')}, "
        f"since {since:%Y-%m-%d %H:%M} UTC: {succeeded:,} succeeded"
    )


def now_word(row: Row, *, is_present: bool = True) -> str:
    """The verdict of now in a word or two; "" where no row of `agent_now` says.

    Args:
        row: with the columns that `systems.agent_health_model.severity_order.with_now` adds.
        is_present: whether the hour is the newest one and its data is not outdated.
    """
    word, when = row["now"], "now" if is_present else "then"
    if word == RECOVERING:
        return f"recovering, {row['now_good_hours']:,} of {GOOD_HOURS} good hours"
    return f"FAILING {when}" if word == FAILING else f"{word} {when}" if word in (SUSPECT, OK) else word or ""


def now_evidence(row: Row, *, brief: bool = False) -> str:
    """The evidence of the last hours in a few words.

    Args:
        row: as for `now_word`.
        brief: whether hours are written short.
    """
    last_hour, last_6h = ("1 h", "6 h") if brief else ("the last hour", "the last 6 hours")
    ran, failed, in_a_row = row["now_executions"], row["now_failures"], row["now_failed_in_a_row"]
    if row["now"] is None:
        return ""
    if row["now"] == FAILING and in_a_row > failed:
        quiet = f", none in {last_hour}" if not ran else ""
        return f"the last {counted(in_a_row, 'run')} failed{quiet}"
    if row["now"] == SUSPECT and row["now_is_by_6h"]:
        return f"{row['now_failures_6h']:,} of {row['now_executions_6h']:,} failed in {last_6h}"
    if not ran:
        return "nothing ran in the last hour"
    if not failed:
        return f"all {counted(ran, 'run')} of the last hour succeeded" if ran > 1 else "the last hour's run succeeded"
    told = f"{failed:,} of {ran:,} failed in {last_hour}"
    return f"{told}, which may be chance" if row["now"] == OK and not brief else told


def now_sentence(row: Row) -> str:
    """Both in one: `FAILING now: 12 of 12 failed in the last hour`; "" where nothing is known."""
    word = now_word(row)
    return f"{word}: {now_evidence(row)}" if word else ""


def at_stake(row: Row) -> str:
    """The points that could be lost, as they are written; "" where all could be, or there is no score."""
    points = row["points_at_stake"]
    return "" if points is None or points >= MOST_POINTS else shown_points(points)


def stake_reservation(row: Row) -> str:
    """The words behind a score of which not all points could be lost; none behind any other."""
    points = at_stake(row)
    return f"only {points} of 100 points could be lost" if points else ""
