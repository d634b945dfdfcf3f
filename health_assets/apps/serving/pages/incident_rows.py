"""Incidents that a caller may see, as of a time, with what was told of them; for every page that shows some.

What belongs here: leaving out what is not the caller's to see, and what one incident says. What does not: pages.

An incident of an agent is seen by who sees the agent. What is measured over all agents (checks, hours, models) is for
callers without a limit to teams; a model that only personal agents may have called, for operators alone.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from health_assets.apps.alerts.rules import SEVERITIES
from health_assets.apps.alerts.silences import AGENT
from health_assets.apps.serving.pages.scoped_history import ScopedHistory
from health_assets.core.hours import HOUR

URGENCY = [("place", "ascending"), ("opened_at", "descending"), ("incident_id", "ascending")]
"""The order of open incidents: the worst and latest first."""


def as_of(look: ScopedHistory) -> datetime:
    """The time of which incidents are shown: now, or the end of the hour that is looked back to."""
    return look.now if look.is_newest else look.hour + HOUR


def judged_to(look: ScopedHistory) -> datetime | None:
    """The end of the newest hour that was judged; None where none was, as without rules."""
    hours = look.history.whole("materialized")
    if hours is None or not hours.num_rows:
        return None
    newest = pc.max(hours.filter(pc.equal(hours.column("asset"), "alerts")).column("hour")).as_py()
    return None if newest is None else newest + HOUR


def seen_incidents(look: ScopedHistory, agent_id: str | None = None) -> pa.Table:
    """The incidents that had opened by then, with `is_open` and the `place` of the severity; maybe no column at all.

    Args:
        look: the part of the history that the caller sees.
        agent_id: the agent whose incidents are asked for; None for all.
    """
    rows = look.history.whole("incidents")
    if rows is None or not rows.num_rows:
        return pa.table({})
    if agent_id is not None:
        is_agent = pc.equal(rows.column("subject_kind"), AGENT)
        rows = rows.filter(pc.and_(is_agent, pc.equal(rows.column("subject_id"), agent_id)))
    rows = _visible(look, _by_then(look, rows, "opened_at"))
    closed = rows.column("closed_at")
    is_open = pc.is_null(closed)
    if not look.is_newest:
        is_open = pc.or_kleene(is_open, pc.greater(closed, pa.scalar(as_of(look), closed.type)))
    place = pc.index_in(rows.column("severity"), value_set=pa.array(SEVERITIES))
    return rows.append_column("is_open", is_open).append_column("place", place)


def open_incidents(look: ScopedHistory, *, agents_first: bool = False) -> pa.Table:
    """The incidents that are open, the worst and latest first.

    Args:
        look: the part of the history that the caller sees.
        agents_first: whether those of agents come before those of the pipeline and the rest.
    """
    rows = seen_incidents(look)
    if not rows.num_rows:
        return rows
    found = rows.filter(rows.column("is_open")).sort_by(URGENCY)
    if not agents_first:
        return found
    is_agent = pc.equal(found.column("subject_kind"), AGENT)
    return pa.concat_tables([found.filter(is_agent), found.filter(pc.invert(is_agent))])


def _by_then(look: ScopedHistory, rows: pa.Table, column: str) -> pa.Table:
    """The rows of which something had happened at the time that is looked back to."""
    if look.is_newest:  # whatever clock wrote them
        return rows
    moments = rows.column(column)
    return rows.filter(pc.less_equal(moments, pa.scalar(as_of(look), moments.type)))


def _visible(look: ScopedHistory, rows: pa.Table) -> pa.Table:
    kinds = rows.column("subject_kind")
    is_agent = pc.equal(kinds, AGENT)
    agents = rows.filter(is_agent)
    if not look.view.is_full:  # also what was somebody's own when it opened
        agents = agents.filter(pc.invert(agents.column("is_personal")))
    ids = agents.column("subject_id")
    seen = look.visible(pa.table({"agent_id": pc.unique(ids)})).column("agent_id")
    agents = agents.filter(pc.is_in(ids, value_set=seen.combine_chunks()))
    if not look.sees_all:
        return agents
    others = rows.filter(pc.invert(is_agent))
    if not look.view.is_full and look.ownership.has_personal:
        others = others.filter(pc.not_equal(others.column("subject_kind"), "model"))
    return pa.concat_tables([agents, others])


def silenced_among(incidents: pa.Table) -> pa.Array:
    """Ids of the incidents of which nobody is told while a silence lasts."""
    is_silenced = pc.and_(pc.is_valid(incidents.column("silenced_by")), pc.is_null(incidents.column("unsilenced_at")))
    return incidents.filter(is_silenced).column("incident_id").combine_chunks()


def deliveries_of(look: ScopedHistory, incident_ids: Collection[str]) -> dict[str, list[dict[str, Any]]]:
    """Messages about these incidents, sent or to be sent, by incident, in the order in which they were written."""
    rows, incidents = look.history.whole("deliveries"), look.history.whole("incidents")
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    if rows is None or incidents is None or not rows.num_rows or not incident_ids:
        return found
    silenced = set(silenced_among(incidents).to_pylist())
    wanted = pc.is_in(rows.column("incident_id"), value_set=pa.array(list(incident_ids), pa.string()))
    rows = _by_then(look, rows.filter(wanted), "written_at")
    for row in rows.sort_by(
        [("written_at", "ascending"), ("event", "descending"), ("channel", "ascending")]
    ).to_pylist():
        found[row["incident_id"]].append(_delivery(row, is_silenced=row["incident_id"] in silenced))
    return found


def _delivery(row: Mapping[str, Any], *, is_silenced: bool) -> dict[str, Any]:
    """A notice to one channel, and how it stands."""
    if row["delivered_at"] is not None:
        state = "delivered"
    elif is_silenced or row["hushed_by"] is not None:
        state = "silenced"
    else:
        state = "failed" if row["last_error"] else "waiting"
    names = ("event", "channel", "written_at", "attempts", "next_attempt_at", "delivered_at", "last_error")
    return {**{name: row[name] for name in names}, "state": state}


def told_of(row: Mapping[str, Any], deliveries: list[dict[str, Any]]) -> dict[str, Any]:
    """An incident as pages tell it.

    Args:
        row: of `seen_incidents`.
        deliveries: messages that told of it.

    Returns:
        Its columns, as of the time that is looked at; `losses`, the points by component; `facts`, the numbers behind
        it; `failed_runs`, the latest ones with their lines; `deliveries`.
    """
    evidence = json.loads(row["evidence"])
    names = (
        "incident_id", "rule", "severity", "subject_kind", "subject_id", "hour", "opened_at", "closed_at", "reason",
        "recovery", "recovers_at", "good_hours", "is_open", "silenced_by", "unsilenced_at",
    )  # fmt: skip
    data = {name: row[name] for name in names}
    if data["is_open"]:  # it may have closed after the time that is looked at
        data |= {"closed_at": None, "recovery": None}
    losses = [
        {name: loss.get(name) for name in ("component", "dimension", "lost", "sentence", "evidence", "evidence_kind")}
        for loss in evidence.get("explanation", ())
    ]
    is_plain = (int, float, str, bool)
    facts = {name: value for name, value in evidence.items() if name != "hour" and isinstance(value, is_plain)}
    return {
        **data,
        "is_recovered": data["closed_at"] is not None and data["good_hours"] > 0,
        "losses": losses,
        "latest_failures": evidence.get("latest_failures", []),
        "failed_runs": [
            {name: line[name] for name in ("execution_id", "source_file", "line_number")}
            for line in evidence.get("log_lines", ())
        ],
        "facts": facts,
        "deliveries": deliveries,
    }
