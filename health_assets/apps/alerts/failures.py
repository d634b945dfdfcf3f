"""Failures in the last hours of an agent: its most frequent errors, and lines of logs that tell of them."""

from collections.abc import Sequence
from typing import Any

import ibis
from ibis import ir

from health_assets.apps.alerts.observed_hour import ObservedHour, ids_table
from health_assets.core.hours import HourRange
from health_assets.core.redaction import Redaction

HOURS_BACK = 5
"""Hours before the one that is judged in which a streak may have failed."""
ERRORS_KEPT = 3
LINES_KEPT = 2
MOST_TEXT = 300
"""Most characters of an error that are kept with an incident."""

Failures = dict[str, Any]


def failures_of(observed: ObservedHour, agents: Sequence[str]) -> dict[str, Failures]:
    """The most frequent errors of the last hour that had any, and the latest lines, by agent.

    Texts are redacted once more, with credentials whatever the targets say, since a message leaves the house.

    Args:
        observed: the hour.
        agents: ids of the agents.
    """
    if not agents:
        return {}
    rows = observed.session.hours_of("executions", HourRange.of(observed.hour).extended_back(HOURS_BACK))
    failed = rows.filter(~rows.succeeded).semi_join(ids_table(agents), "agent_id")
    lines, errors = observed.session.dicts(_lines(failed)), observed.session.dicts(_errors(failed))
    texts = _redacted([row["error"] for row in (*lines, *errors) if row["error"] is not None], observed.targets.redact)
    found: dict[str, Failures] = {}
    for row in lines:
        own = found.setdefault(row["agent_id"], {"errors": [], "log_lines": []})
        line = {name: row[name] for name in ("source_file", "line_number", "execution_id")}
        own["log_lines"].append({**line, "text": texts.get(row["error"])})
    for row in errors:
        own = found[row["agent_id"]]["errors"]
        if len(own) < ERRORS_KEPT:
            counts = {"count": row["count"], "failures": row["failures"], "hour": row["hour"].isoformat()}
            own.append({"text": texts[row["error"]], **counts})
    return found


def _redacted(texts: Sequence[str], own: Redaction) -> dict[str, str]:
    """Each text without its secrets, cut to what is kept."""
    distinct = list(dict.fromkeys(texts))
    redacted, _ = own.model_copy(update={"credentials": True}).of_texts(distinct)
    return {text: kept[:MOST_TEXT] for text, kept in zip(distinct, redacted, strict=True)}


def _lines(failed: ir.Table) -> ir.Table:
    """The latest failures of each agent, the latest first."""
    latest = [failed.ended_at.desc(), failed.source_file.desc(), failed.line_number.desc()]
    placed = failed.mutate(place=ibis.row_number().over(group_by=failed.agent_id, order_by=latest))
    lines = placed.filter(placed.place < LINES_KEPT).order_by("agent_id", "place")
    return lines.select("agent_id", "source_file", "line_number", "execution_id", "error")


def _errors(failed: ir.Table) -> ir.Table:
    """The errors of each agent's last hour with a failure, the most frequent first; those without a text count."""
    newest = failed.mutate(newest=failed.hour.max().over(group_by=failed.agent_id))
    last = newest.filter(newest.hour == newest.newest)
    counted = last.group_by("agent_id", "hour", "error").aggregate(count=last.count())
    counted = counted.mutate(failures=counted["count"].sum().over(group_by=counted.agent_id))
    told = counted.filter(counted.error.notnull())
    return told.order_by("agent_id", told["count"].desc(), "error")
