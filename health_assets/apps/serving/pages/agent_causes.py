"""Causes of an agent's score: the points lost, the executions that cost them, its errors and its error budget.

What belongs here: one row of an agent taken apart, and the events and errors of the window behind it. What does not:
how these were at other times (`agent_curves`, `agent_comparison`) and the formulas (`scoring.explanation`).
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from health_assets.apps.serving.pages.scoped_history import ScopedHistory
from health_assets.apps.serving.vocabulary import DIMENSIONS
from health_assets.core.formatting import counted, few_digits
from health_assets.core.hours import HourRange
from health_assets.scoring.explanation import Loss, costliest, explain, unmeasured
from health_assets.systems.explanations.names import LONGEST_FIRST, MOST, SCORE_OF_KIND

Row = Mapping[str, Any]

ERRORS_SHOWN = 20
LENGTHS = {"5m": "5 minutes", "30m": "30 minutes", "1h": "hour", "6h": "6 h"}
"""The windows of burn rates in words."""


@dataclass(frozen=True, kw_only=True)
class Losses:
    """The points that an agent lost.

    Args:
        rows: by component, as they are told.
        costliest: the loss to name where there is room for one; None without any.
        of_dimension: points lost and points there are, by dimension.
    """

    rows: list[dict[str, Any]]
    costliest: Loss | None
    of_dimension: dict[str, tuple[float, float]]


def losses_of(row: Row) -> Losses:
    """The points lost of a row of `agents`, the costliest first; none where there is no score."""
    losses = [] if row["health_score"] is None else explain(row)
    not_evaluated = unmeasured(row) if row["health_score"] is not None else frozenset()
    rows: list[dict[str, Any]] = []
    for loss in losses:
        data = loss.as_dict()
        del data["evidence"]
        rows.append(data)
    of_dimension: dict[str, tuple[float, float]] = {
        name: (sum(loss.lost for loss in losses if loss.component.dimension == name), points)
        for name, (_, points) in DIMENSIONS.items()
        if name not in not_evaluated
    }
    return Losses(rows=rows, costliest=costliest(losses), of_dimension=of_dimension)


def evidence_of(
    look: ScopedHistory, agent_id: str, window: HourRange, row: Row, losses: Losses
) -> list[dict[str, Any]]:
    """The events of the window that weigh most in what the score lost, kinds by their cost, in each the heaviest first.

    Each hour keeps its first few of each kind, so the first few of the window are among them.

    Args:
        look: the part of the history that the caller sees.
        agent_id: the agent.
        window: the hours of its score.
        row: its row of the hour.
        losses: the points that it lost.
    """
    costs: defaultdict[str, float] = defaultdict(float)
    for loss in losses.rows:
        costs[loss["evidence_kind"]] += loss["lost"]
    by_kind: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for event in look.of("events", agent_id, window):
        score = row[SCORE_OF_KIND[event["kind"]]]
        if score is not None and score < 1:
            by_kind[event["kind"]].append(event)
    found = []
    for kind in sorted(by_kind, key=lambda kind: (-costs[kind], kind)):
        events = sorted(by_kind[kind], key=lambda event: _weight(kind, event))[:MOST]
        found += [{**event, "rank": place} for place, event in enumerate(events, 1)]
    return found if look.hides_nothing else _without_hidden_sessions(look, found, window)


def _without_hidden_sessions(
    look: ScopedHistory, events: list[dict[str, Any]], window: HourRange
) -> list[dict[str, Any]]:
    """The events, in which a session is null that has no page for the caller."""
    named = {event["session_id"] for event in events} - {None}
    seen = set(look.seen_sessions(named, window).to_pylist())
    return [{**event, "session_id": event["session_id"] if event["session_id"] in seen else None} for event in events]


def _weight(kind: str, event: Row) -> tuple[float, float, str]:
    length = event["runtime_s"] if kind in LONGEST_FIRST else 0.0
    return -length, -_microseconds(event["happened_at"]), event["event_id"]


def _microseconds(at: datetime) -> int:
    return int(at.timestamp()) * 1_000_000 + at.microsecond


def errors_of(look: ScopedHistory, agent_id: str, window: HourRange) -> dict[str, Any]:
    """Failed executions of the window by the first line of their error, the most frequent first."""
    found = errors_by_class(look, agent_id, window)
    return {
        "failures": sum(error["failures"] for error in found),
        "classes": len(found),
        "listed": found[:ERRORS_SHOWN],
    }


def errors_by_class(look: ScopedHistory, agent_id: str, hours: HourRange) -> list[dict[str, Any]]:
    """Errors of some hours, each with its failures and its latest run; the most frequent first.

    Where texts are withheld all errors are one. `last_run` is null where an earlier release copied the hour.
    """
    counts: defaultdict[str | None, int] = defaultdict(int)
    last: dict[str | None, Mapping[str, Any]] = {}
    for row in look.of(
        "errors", agent_id, hours, ("hour", "agent_id", "error_class", "failures", "last_at", "last_run")
    ):
        error = row["error_class"]
        counts[error] += row["failures"]
        if error not in last or row["last_at"] >= last[error]["last_at"]:
            last[error] = row
    order = sorted(counts, key=lambda error: (-counts[error], error is None, error or ""))
    return [
        {
            "error": error,
            "failures": counts[error],
            "last_at": last[error]["last_at"],
            "last_run": last[error].get("last_run"),
        }
        for error in order
    ]


def worst_tool(row: Row, tools: Sequence[Row]) -> dict[str, Any] | None:
    """The tool whose calls failed most often, of an agent of which executions failed; None where no call failed.

    Args:
        row: the agent's row of the hour.
        tools: its rows of `tools` of that hour.
    """
    failed = [tool for tool in tools if tool["failures"]] if row["failures"] else []
    if not failed:
        return None
    worst = min(failed, key=lambda tool: (-tool["failures"], tool["calls"], tool["tool"]))
    return {name: worst[name] for name in ("tool", "calls", "failures", "failure_share")}


def budget(row: Row, window_hours: int) -> dict[str, Any]:
    """The error budget of the window: what is spent of it, and what the speed of the last hours means."""
    names = (
        "n", "failures", "allowed_failures", "budget_spent", "n_5m", "failures_5m", "burn_rate_5m", "n_30m",
        "failures_30m", "burn_rate_30m", "n_1h", "failures_1h", "burn_rate_1h", "n_6h", "failures_6h", "burn_rate_6h",
        "expected_success_rate",
    )  # fmt: skip
    return {
        **{name: row[name] for name in names},
        "sentence": _spent(row, window_hours),
        "speeds": [_speed(row, length, window_hours) for length in LENGTHS],
    }


def _spent(row: Row, window_hours: int) -> str:
    if row["failures"] is None or row["allowed_failures"] is None:
        return "Its error budget is not known at this hour."
    if not row["n"]:
        return "Nothing ran, so nothing of a budget is spent."
    failed = f"{row['failures']:,} of {counted(row['n'], 'execution')} in {window_hours:,} h failed"
    if row["budget_spent"] is None:
        return f"{failed}. None may fail, so there is no budget of which this could be a share."
    spent = f"{100 * row['budget_spent']:,.0f}% of the budget is spent"
    return f"{failed}; {few_digits(row['allowed_failures'])} are allowed, so {spent}."


def _speed(row: Row, length: str, window_hours: int) -> str:
    """The burn rate of one of `LENGTHS`, in plain words."""
    ran, failed, rate = row[f"n_{length}"], row[f"failures_{length}"], row[f"burn_rate_{length}"]
    when = f"In the last {LENGTHS[length]}"
    if ran is None:
        return f"{when}: not known."
    if not ran:
        return f"{when} nothing ran."
    sentence = f"{when} {failed:,} of {ran:,} failed"
    if rate is None:
        return f"{sentence}; there is no budget to burn."
    if not failed:
        return f"{when} nothing of {ran:,} failed."
    lasts_s = window_hours * 3600 / rate
    lasts = f"{lasts_s / 3600:,.1f} h" if lasts_s >= 2 * 3600 else f"{lasts_s / 60:,.0f} min"
    if rate <= 1:
        return f"{sentence}, {rate:.2g} times what is allowed: at this speed the budget lasts."
    speed = f"{rate:,.1f} times what is allowed"
    return f"{sentence}, {speed}: at this speed a budget of {window_hours:,} h is gone in {lasts}."
