"""Queries for the newest comparison of every new version and model."""

from collections.abc import Sequence

import ibis
import pyarrow as pa
from ibis import ir

from health_assets.core.hours import HourRange
from health_assets.systems.release_comparison.comparison_rows import PAIR, Comparison, key_of
from health_assets.systems.release_comparison.names import BETTER, MEASURES, SUCCESS_RATE, VERDICTS, WORSE
from health_assets.warehouse.session import Session


def newest_comparisons(
    session: Session, hours: HourRange, agent_ids: Sequence[str] | None = None, dimension: str | None = None
) -> list[Comparison]:
    """The rows of the last hour of these in which each new version or model was compared.

    Args:
        session: a session.
        hours: the hours.
        agent_ids: of these agents alone.
        dimension: of versions or models alone.

    Returns:
        The rows by agent, with the worst verdict of a success rate first, then by release, the newest first.
    """
    rows = session.hours_of("release_comparison", hours)
    if agent_ids is not None:
        agents = pa.table({"agent_id": pa.array(list(agent_ids), pa.string())})
        rows = rows.semi_join(ibis.memtable(agents), "agent_id")
    if dimension is not None:
        rows = rows.filter(rows.dimension == dimension)
    rows_of_last_hours = session.dicts(_last_of_each(rows))
    urgency: dict[str, int] = {}
    for row in rows_of_last_hours:
        if row["measure"] == SUCCESS_RATE:
            place = VERDICTS.index(row["verdict"])
            urgency[row["agent_id"]] = min(place, urgency.get(row["agent_id"], place))
    return sorted(
        rows_of_last_hours,
        key=lambda row: (
            urgency[row["agent_id"]], row["agent_id"], -row["released_at"].timestamp(), key_of(row),
            MEASURES.index(row["measure"]),
        ),
    )  # fmt: skip


def compared_and_worse(session: Session, hours: HourRange) -> tuple[int, int]:
    """How many new versions and models are compared in these hours, and how many of them are worse in something."""
    newest = _last_of_each(session.hours_of("release_comparison", hours))
    pairs = newest.group_by(list(PAIR)).aggregate(is_worse=(newest.verdict == WORSE).any())
    [counts] = session.dicts(pairs.aggregate(compared=pairs.count(), worse=pairs.count(where=pairs.is_worse)))
    return counts["compared"], counts["worse"]


def decided(session: Session, hours: HourRange) -> ir.Table:
    """The rows of `newest_comparisons` whose verdict is worse or better: worse ones first, then the newest releases."""
    newest = _last_of_each(session.hours_of("release_comparison", hours))
    rows = newest.filter(newest.verdict.isin([WORSE, BETTER]))
    measure = rows.measure.cases(*((name, place) for place, name in enumerate(MEASURES)))
    return rows.order_by(rows.verdict != WORSE, ibis.desc("released_at"), *PAIR, measure)


def worst_agents(session: Session, hours: HourRange, most: int, dimension: str | None = None) -> list[str]:
    """The first agents in the order of `newest_comparisons`, of versions or models alone where one is named."""
    rows = session.hours_of("release_comparison", hours)
    if dimension is not None:
        rows = rows.filter(rows.dimension == dimension)
    newest = _last_of_each(rows)
    rates = newest.filter(newest.measure == SUCCESS_RATE)
    place = rates.verdict.cases(*((verdict, place) for place, verdict in enumerate(VERDICTS)))
    agents = rates.group_by("agent_id").aggregate(place=place.min()).order_by("place", "agent_id").limit(most)
    return [row["agent_id"] for row in session.dicts(agents)]


def _last_of_each(rows: ir.Table) -> ir.Table:
    last = rows.hour.max().over(group_by=list(PAIR))
    newest = rows.mutate(last_hour=last)
    return newest.filter(newest.hour == newest.last_hour).drop("last_hour")
