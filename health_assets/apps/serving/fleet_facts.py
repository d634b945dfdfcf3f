"""Numbers of the whole fleet, and of the work that fills the warehouse, as the reader gathers them for `/metrics`.

What belongs here: what no row of a single agent says. What does not: how the numbers are shown (`metrics`), and those
that change by the clock alone, such as ages and late hours, which the server works out when it is asked.
"""

from datetime import datetime
from typing import Any

import pyarrow as pa

from health_assets.apps.serving.ownership import Ownership
from health_assets.core.hours import HourRange
from health_assets.core.settings import Settings
from health_assets.warehouse.partition_states import SCORED_ASSET, PartitionStates
from health_assets.warehouse.rejected_rows import Rejections
from health_assets.warehouse.session import Session

MOST_REASONS = 20
OTHER_REASONS = "other"


def fleet_scores(agents: pa.Table) -> dict[str, float | None]:
    """The mean score of active agents, of all (`full`) and of those that are nobody's own (`public`); None without any.

    Everybody may read the score of each agent that is nobody's own, so a mean that holds a personal agent would tell
    its score to who subtracts the others.

    Args:
        agents: rows with `health_score` and `is_personal`.
    """
    import pyarrow.compute as pc  # the server has no use for it, and it is large

    public = pc.if_else(agents["is_personal"], pa.scalar(None, pa.float64()), agents["health_score"])
    return {"full": _mean(agents["health_score"]), "public": _mean(public)}


def _mean(scores: pa.ChunkedArray) -> float | None:
    """The mean as `system_health` has it: whole billionths, which add up to the same in any order."""
    import pyarrow.compute as pc

    billionths = pc.sum(pc.round(pc.multiply(scores, 1e9)).cast(pa.int64())).as_py()
    return None if billionths is None else billionths / 1e9 / pc.count(scores).as_py()


def pipeline_facts(session: Session, settings: Settings, ownership: Ownership, now: datetime) -> dict[str, Any]:
    """Facts about hours, rejected lines and incidents, as JSON can write them.

    Returns:
        `newest_hour` and `missing_hours` of the look-back that ends with it; `rejected_lines` of the window that ends
        with it, by reason; `open_incidents`, by severity, of all (`full`) and of those that everybody may hear of
        (`public`).
    """
    hours = PartitionStates(session)
    newest = hours.newest_final(SCORED_ASSET, now)
    facts: dict[str, Any] = {"newest_hour": newest and newest.isoformat()}
    if newest is not None:
        look_back = HourRange.of(newest).extended_back(settings.lookback_hours - 1)
        window = HourRange.of(newest).extended_back(settings.window_hours - 1)
        first, there = hours.first(SCORED_ASSET), hours.of(SCORED_ASSET, look_back)
        facts["missing_hours"] = sum(hour > (first or newest) and hour not in there for hour in look_back)
        facts["rejected_lines"] = _by_reason(Rejections(session, window))
    facts["open_incidents"] = _open_incidents(session, ownership)
    return facts


def _by_reason(rejections: Rejections) -> dict[str, int]:
    """Lines of the most frequent reasons, and of all others together."""
    reasons = rejections.reasons()
    told = {reason.text: reason.lines for reason in reasons[:MOST_REASONS]}
    rest = sum(reason.lines for reason in reasons[MOST_REASONS:])
    return told | {OTHER_REASONS: rest} if rest else told


def _open_incidents(session: Session, ownership: Ownership) -> dict[str, dict[str, int]]:
    """The number of open incidents by severity.

    Those of personal agents are not for everybody, nor, where there may be any, those of models, whose health may rest
    on a personal agent's calls.
    """
    rows = session.table("alerts")
    rows = rows.filter(rows.closed_at.isnull())
    is_hidden = rows.is_personal | ((rows.subject_kind == "agent") & ownership.personal(rows.subject_id))
    if ownership.has_personal:
        is_hidden |= rows.subject_kind == "model"
    counted = rows.group_by("severity").aggregate(full=rows.count(), hidden=is_hidden.cast("int64").sum())
    found = session.dicts(counted)
    return {
        "full": {row["severity"]: row["full"] for row in found},
        "public": {row["severity"]: row["full"] - int(row["hidden"]) for row in found},
    }
