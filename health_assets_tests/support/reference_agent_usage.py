"""The independent reference of usage: contract section 8 in plain Python over the records, in exact fractions.

Nothing here imports the product. What is null in the table is None here.
"""

from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

from health_assets_tests.support.reference import ONE_HOUR, Record, deduplicate, targets_for

TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens", "reasoning_tokens")
AMOUNTS = (*TOKENS, "cost_usd")


BY_AGENT = ("agent_id",)
BY_PART = ("agent_id", "agent_version", "model", "user_id")


def agent_usage(
    records: list[Record],
    targets: dict[str, Any],
    hours: list[datetime],
    window_hours: int,
    lookback_hours: int,
    keys: tuple[str, ...] = BY_AGENT,
) -> list[Record]:
    """A row for each hour and keys with an execution or a cancelled run in the window, but of agents that are retired."""
    kept = deduplicate(records)
    calls = [record for record in kept if record["type"] == "model_call"]
    runs = [
        (record, {name: amount(record, calls, name, lookback_hours) for name in AMOUNTS})
        for record in kept
        if record["type"] in ("execution", "cancellation") and not targets_for(record["agent_id"], targets)["retired"]
    ]
    rows = []
    for hour in hours:
        end = hour + ONE_HOUR
        start = end - timedelta(hours=window_hours)
        window = [(record, amounts) for record, amounts in runs if start <= record["_at"] < end]
        for named in sorted({_named(record, keys) for record, _ in window}):
            own = [(record, amounts) for record, amounts in window if _named(record, keys) == named]
            row = {
                "hour": hour,
                **dict(zip(keys, named, strict=True)),
                "window_start": start,
                "window_end": end,
                "as_of": end,
                "is_final": True,
            }
            executions, cancelled = (
                [(record, amounts) for record, amounts in own if record["type"] == kind]
                for kind in ("execution", "cancellation")
            )
            rows.append(row | summary(executions) | summary_of_cancelled([amounts for _, amounts in cancelled]))
    return rows


def _named(record: Record, keys: tuple[str, ...]) -> tuple[str, ...]:
    """What the record names, an empty text for what it does not."""
    return tuple(record.get(key) or "" for key in keys)


def amount(execution: Record, calls: list[Record], name: str, lookback_hours: int) -> Fraction | None:
    """What the execution states, else the sum over its calls that state it, in its hour and the look-back before."""
    if execution.get(name) is not None:
        return Fraction(execution[name])
    first = execution["_hour"] - timedelta(hours=lookback_hours - 1)
    stated = [
        Fraction(call[name])
        for call in calls
        if call.get("execution_id") == execution["execution_id"]
        and call.get("agent_id") in (None, execution["agent_id"])
        and call.get(name) is not None
        and first <= call["_hour"] <= execution["_hour"]
    ]
    return sum(stated, Fraction(0)) if stated else None


def summary_of_cancelled(window: list[dict[str, Fraction | None]]) -> Record:
    """The cancelled runs of an agent in a window, by what each took."""
    row: Record = {"cancelled_runs": len(window)}
    for name, kind in (("input_tokens", int), ("output_tokens", int), ("cost_usd", float)):
        told = [amounts[name] for amounts in window if amounts[name] is not None]
        row[f"cancelled_{name}"] = kind(sum(told, Fraction(0))) if told else None
    return row


def summary(window: list[tuple[Record, dict[str, Fraction | None]]]) -> Record:
    """The executions of an agent in a window."""
    successes = sum(record["status"] == "success" for record, _ in window)
    sums = {}
    for name in AMOUNTS:
        told = [amounts[name] for _, amounts in window if amounts[name] is not None]
        sums[name] = sum(told, Fraction(0)) if told else None
    cost = sums["cost_usd"]
    tokens = [
        amounts for _, amounts in window if amounts["input_tokens"] is not None or amounts["output_tokens"] is not None
    ]
    return {
        "executions": len(window),
        "successes": successes,
        "executions_with_tokens": len(tokens),
        "executions_with_cost": sum(amounts["cost_usd"] is not None for _, amounts in window),
        "executions_with_computed_cost": 0,
        "positive_feedback": 0,
        "negative_feedback": 0,
        "cost_source": None if cost is None else "stated",
        **{name: None if sums[name] is None else int(sums[name]) for name in TOKENS},
        "cost_usd": None if cost is None else float(cost),
        "cost_per_success_usd": None if cost is None or not successes else float(cost / successes),
    }
