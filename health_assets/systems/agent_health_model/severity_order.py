"""Order in which a person looks at agents: that of verdicts (`health_assets.scoring.verdict`), as an expression."""

import ibis
from ibis import ir

from health_assets.core.hours import HourRange
from health_assets.scoring.relations import lookup
from health_assets.scoring.verdict import NOW_FIRST, ORDER, PROVISIONAL_MARK, SUSPECT
from health_assets.warehouse.session import Session

NOW_COLUMNS = {
    "now": "verdict",
    "now_since": "since",
    "now_executions": "executions_1h",
    "now_failures": "failures_1h",
    "now_executions_6h": "executions_6h",
    "now_failures_6h": "failures_6h",
    "now_failed_in_a_row": "failed_in_a_row",
    "now_good_hours": "good_hours",
}
"""Columns that `with_now` adds, by those of `agent_now`; besides there is `now_is_by_6h`."""


def with_now(agents: ir.Table, session: Session, hours: HourRange) -> ir.Table:
    """Add what `agent_now` says of each agent to rows of `agent_health`; null where it says nothing.

    Args:
        agents: rows with `hour` and `agent_id`.
        session: a session.
        hours: the hours of these rows.
    """
    now = session.hours_of("agent_now", hours)
    is_by_6h = (now.verdict == SUSPECT) & ~(now.p_chance < now.failing_threshold).fill_null(False)
    told = now.select("hour", "agent_id", now_is_by_6h=is_by_6h, **NOW_COLUMNS)
    return lookup(agents, told, ["hour", "agent_id"])


def with_verdict(agents: ir.Table) -> ir.Table:
    """Add `verdict`, one of `ORDER`, and `urgency`, the place in a list, to rows of `agent_health`.

    Where the rows say what each agent does now (`with_now`), that comes first.
    """
    mark = agents.is_provisional.fill_null(False).ifelse(PROVISIONAL_MARK, "")
    rows = agents.mutate(verdict=agents.state + mark)
    first = len(NOW_FIRST)
    urgency = rows.verdict.cases(*((one, first + place) for place, one in enumerate(ORDER)))
    if "now" in rows.columns:
        places = rows.now.cases(*((one, place) for place, one in enumerate(NOW_FIRST)), else_=ibis.null("int64"))
        urgency = ibis.coalesce(places, urgency)
    return rows.mutate(urgency=urgency)
