"""Two hours or several versions of an agent side by side.

What belongs here: the rows of both tables of comparison, with their differences. What does not: what each of them means
(`agent_causes`, `agent_runs`).
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from health_assets.apps.serving.pages.agent_causes import errors_by_class
from health_assets.apps.serving.pages.agent_runs import runs_by
from health_assets.apps.serving.pages.scoped_history import ScopedHistory
from health_assets.apps.serving.vocabulary import DIMENSIONS
from health_assets.core.hours import HOUR, HourRange
from health_assets.scoring.explanation import COMPONENTS, points_lost

Kind = Literal["points", "count", "share", "milliseconds", "seconds", "rate", "usd", "text"]
Row = Mapping[str, Any]
ERRORS_COMPARED = 12
VERSIONS_COMPARED = 4
LEAST_SHOWN = {"points": 0.05, "share": 0.0005, "rate": 0.05, "milliseconds": 0.5, "seconds": 0.0005, "usd": 1e-6}
"""A smaller difference reads as none, so it is neither better nor worse."""


def compared_hours(look: ScopedHistory, agent_id: str, now: Row, hour: datetime, window_hours: int) -> dict[str, Any]:
    """The agent at another hour beside the one that is looked at; `rows` is empty where it is not known then.

    Args:
        look: the part of the history that the caller sees.
        agent_id: the agent.
        now: its row of the hour that is looked at.
        hour: the other hour.
        window_hours: length of the window behind each.
    """
    found = look.of("agents", agent_id, HourRange.of(hour))
    if not found:
        return {"hour": hour, "rows": [], "errors": []}
    return {
        "hour": hour,
        "rows": list(_measures(found[0], now)),
        "errors": _errors_of_both(look, agent_id, (hour, look.hour), window_hours),
    }


def _measures(then: Row, now: Row) -> Iterator[dict[str, Any]]:
    """Score, dimensions, components, latency, failures and budget of both hours."""
    yield _measure("score", "state", "text", then["state"], now["state"], worse=0)
    yield _measure("score", "score", "points", then["health_score"], now["health_score"], worse=-1)
    stakes = (row["points_at_stake"] for row in (then, now))
    yield _measure("score", "points at stake", "points", *stakes, worse=0)
    for name, (column, points) in DIMENSIONS.items():
        then_lost, now_lost = (_lost(points, row[column]) for row in (then, now))
        yield _measure("points lost by dimension", name, "points", then_lost, now_lost, worse=1)
    for component in COMPONENTS:
        costs = (None if row["health_score"] is None else points_lost(component, row) for row in (then, now))
        yield _measure("points lost by component", component.name, "points", *costs, worse=1)
    for group, name, kind, column, worse in _COLUMNS:
        yield _measure(group, name, kind, then[column], now[column], worse=worse)


def _lost(points: float, score: float | None) -> float | None:
    return None if score is None else points * (1 - score)


_COLUMNS: tuple[tuple[str, str, Kind, str, int], ...] = (
    ("executions", "executions in the window", "count", "n", 0),
    ("executions", "failed", "count", "failures", 1),
    ("executions", "succeeded", "share", "asr", -1),
    ("executions", "long runs", "count", "long_running", 1),
    ("executions", "SLA breaches", "count", "sla_breaches", 1),
    ("executions", "failed triggers", "count", "trigger_failures", 1),
    ("runtime", "mean", "seconds", "ar_s", 1),
    ("runtime", "p50", "milliseconds", "latency_p50_ms", 1),
    ("runtime", "p99", "milliseconds", "latency_p99_ms", 1),
    ("error budget", "spent", "share", "budget_spent", 1),
    ("error budget", "burn rate of 5 min", "rate", "burn_rate_5m", 1),
    ("error budget", "burn rate of 30 min", "rate", "burn_rate_30m", 1),
    ("error budget", "burn rate of 1 h", "rate", "burn_rate_1h", 1),
    ("error budget", "burn rate of 6 h", "rate", "burn_rate_6h", 1),
    ("what ran", "version", "text", "hour_version", 0),
    ("what ran", "model", "text", "last_model", 0),
    ("what ran", "platform", "text", "hour_platform", 0),
)


def _measure(group: str, name: str, kind: Kind, then: Any, now: Any, *, worse: int) -> dict[str, Any]:
    """One line of a comparison.

    Args:
        group: the group of the line.
        name: its name.
        kind: kind of the values.
        then: the value of the other hour.
        now: the value of the hour that is looked at.
        worse: 1 where more is worse, -1 where less is, 0 where neither is.
    """
    difference = None if kind == "text" or then is None or now is None else now - then
    is_worse = difference is not None and difference * worse >= LEAST_SHOWN.get(kind, 1)
    return {
        "group": group,
        "name": name,
        "kind": kind,
        "then": then,
        "now": now,
        "difference": difference,
        "is_worse": is_worse,
    }


def _errors_of_both(
    look: ScopedHistory, agent_id: str, hours: tuple[datetime, datetime], window_hours: int
) -> list[dict]:
    """Failures by class in the windows of both hours, those that grew most first."""
    windows = (HourRange(hour - (window_hours - 1) * HOUR, hour + HOUR) for hour in hours)
    then, now = ({one["error"]: one["failures"] for one in errors_by_class(look, agent_id, own)} for own in windows)
    errors = [
        {"error": error, "then": then.get(error, 0), "now": now.get(error, 0)}
        | {"difference": now.get(error, 0) - then.get(error, 0)}
        for error in {**now, **then}
    ]
    errors.sort(key=lambda one: (-one["difference"], -one["now"], one["error"] or ""))
    return errors[:ERRORS_COMPARED]


def compared_versions(
    look: ScopedHistory, agent_id: str, runs: pa.Table, versions: Sequence[str], hours: HourRange
) -> dict[str, Any]:
    """Versions of an agent over some hours; one that did not run then has no executions.

    Args:
        look: the part of the history that the caller sees.
        agent_id: the agent.
        runs: rows of `runs_of` of these hours.
        versions: the versions; "" is what tells none. More than a few are left out.
        hours: the hours.
    """
    wanted = list(dict.fromkeys(versions))[:VERSIONS_COMPARED]
    by_version = {one["agent_version"] or "": one for one in runs_by(runs, "agent_version")}
    errors = _errors_by_version(look, agent_id, wanted, hours)
    return {
        "versions": [by_version.get(name) or {"agent_version": name or None, "executions": 0} for name in wanted],
        "errors": errors[:ERRORS_COMPARED],
        "left_out": max(0, len(set(versions)) - len(wanted)),
    }


def _errors_by_version(
    look: ScopedHistory, agent_id: str, versions: Sequence[str], hours: HourRange
) -> list[dict[str, Any]]:
    """Failures by class, each with those of every version in their order; the most frequent first."""
    columns = ("hour", "agent_id", "agent_version", "error_class", "failures")
    found = look.of_key("errors", agent_id, hours, columns)
    if not found.num_rows:
        return []
    data = pc.fill_null(found.column("agent_version"), "")
    own = found.set_column(found.column_names.index("agent_version"), "agent_version", data)
    own = own.filter(pc.is_in(data, value_set=pa.array(versions, pa.string())))
    summed = own.group_by(["error_class", "agent_version"], use_threads=False).aggregate([("failures", "sum")])
    counts: defaultdict[str | None, dict[str, int]] = defaultdict(dict)
    for row in summed.to_pylist():
        counts[row["error_class"]][row["agent_version"]] = row["failures_sum"]
    listed = [{"error": error, "failures": [of.get(name, 0) for name in versions]} for error, of in counts.items()]
    return sorted(listed, key=lambda one: (-sum(one["failures"]), one["error"] or ""))
