"""Sums of tokens and cost: of models, of versions, of users, and of days.

What belongs here: adding up, for callers who see every agent and for those who do not. What does not: the page
(`usage_page`).

Sums over all agents lie in the history by hour, so that a month costs nothing. Who may not see some agent must not see
such sums either, since the difference to the agents that are shown tells of the others. For them the agents of each
hour are added up, and days that are over are taken from the windows of 24 hours that end with them.
"""

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from health_assets.apps.serving.pages.lists import total
from health_assets.apps.serving.pages.scoped_history import ScopedHistory
from health_assets.core.hours import HOUR, HourRange
from health_assets.systems.agent_usage.names import COUNTS

AMOUNTS = (
    "input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens", "reasoning_tokens", "cost_usd",
)  # fmt: skip
SUMS = (*COUNTS, *AMOUNTS)
DAY = timedelta(days=1)
DAY_H = 24
MICROSECONDS = 86_400_000_000

Sums = dict[str, Any]


def summed(rows: pa.Table) -> Sums:
    """The sums of rows; an amount is None where nothing tells it."""
    sums: Sums = {name: total(rows, name) or 0 for name in COUNTS} | {name: total(rows, name) for name in AMOUNTS}
    return with_price(sums)


def with_price(sums: Sums) -> Sums:
    """The sums with what a success costs; None without a success or any cost."""
    cost, successes = sums["cost_usd"], sums["successes"]
    price = None if cost is None or not successes else cost / successes
    return {**sums, "cost_per_success_usd": price}


def models_of(look: ScopedHistory, hours: HourRange) -> list[Sums]:
    """The sums of these hours by model, the costliest first; `model` is None where executions name none."""
    rows = _rows(look, hours)
    if not rows.num_rows:
        return []
    found = _grouped(rows, "model")
    return sorted(found, key=lambda one: (-(one["cost_usd"] or 0), -one["executions"], one["model"] or ""))


def versions_of(look: ScopedHistory) -> list[Sums]:
    """The sums of the window by agent and version, the costliest first; `agent_version` is None where none is named."""
    rows = look.at("usage_breakdown")
    if not rows.num_rows:
        return []
    found = _grouped(rows, "agent_id", "agent_version")
    in_order = sorted(
        found, key=lambda one: (-(one["cost_usd"] or 0), -one["executions"], one["agent_id"], one["agent_version"])
    )
    return [{**one, "agent_version": one["agent_version"] or None} for one in in_order]


def users_of(look: ScopedHistory) -> list[Sums]:
    """The sums of the window by user, where any is named, the costliest first; `user_id` is None of the others."""
    rows = look.at("usage_breakdown")
    found = _grouped(rows, "user_id") if rows.num_rows else []
    if not any(one["user_id"] for one in found):
        return []
    in_order = sorted(found, key=lambda one: (-(one["cost_usd"] or 0), -one["executions"], one["user_id"]))
    return [{**one, "user_id": one["user_id"] or None} for one in in_order]


def days_of(look: ScopedHistory, days: int) -> list[Sums] | None:
    """The sums of calendar days (UTC) up to the hour that is looked at, ascending, from the first that is known.

    Each has `hour`, its beginning, `hours`, how many hours of it are known, and `hours_due`, how many are over. A day
    of which nothing is known has None for all sums.

    Returns:
        None where the caller does not see every agent, and windows are none of 24 hours.
    """
    today = look.hour.replace(hour=0)
    starts = [today - (days - 1 - number) * DAY for number in range(days)]
    if look.hides_nothing:
        found = _whole_days(look, HourRange(starts[0], look.hour + HOUR))
    elif look.history.facts.get("window_hours") == DAY_H:
        found = {start: of_day for start in starts if (of_day := _visible_day(look, start)) is not None}
    else:
        return None
    nothing: Sums = {**dict.fromkeys(SUMS), "cost_per_success_usd": None, "hours": 0}
    return [
        {"hour": start, "hours_due": _hours_due(look, start), **found.get(start, nothing)}
        for start in starts
        if found and start >= min(found)
    ]


def _hours_due(look: ScopedHistory, start: datetime) -> int:
    """Hours of a day that are over, from the first log on."""
    first = look.history.facts.get("first_hour")
    begins = start if first is None else max(start, datetime.fromisoformat(first))
    return max(0, (min(start + DAY, look.hour + HOUR) - begins) // HOUR)


def _rows(look: ScopedHistory, hours: HourRange) -> pa.Table:
    """Sums of these hours by model, of the agents that the caller may see."""
    if look.hides_nothing:
        return look.history.between("usage_by_hour", hours)
    of_hours = [
        rows
        for hour in hours
        if (rows := look.remembered_of_face("runs", hour, "by model", partial(_of_hour, look, hour))).num_rows
    ]
    return pa.concat_tables(of_hours, promote_options="permissive") if of_hours else pa.table({})


def _of_hour(look: ScopedHistory, hour: datetime) -> pa.Table:
    """Sums of one hour by model."""
    rows = look.of_all("runs", hour, ("agent_id", "model", *SUMS))
    return _added_up(rows, "model") if rows.num_rows else rows


def of_window(look: ScopedHistory, hour: datetime) -> tuple[Sums, int] | None:
    """The sums of the window that ends with an hour, of the agents that the caller may see; and how many hours it has.

    Returns:
        None where nothing is known of it.
    """

    def made() -> tuple[Sums, int] | None:
        rows = look.of_all("usage", hour, ("agent_id", *SUMS, "hours_covered"))
        return (summed(rows), pc.max(rows.column("hours_covered")).as_py()) if rows.num_rows else None

    return look.remembered_of_face("usage", hour, "sums", made)


def _grouped(rows: pa.Table, *keys: str) -> list[Sums]:
    """The sums by columns, with what a success costs."""
    return [with_price(row) for row in _added_up(rows, *keys).to_pylist()]


def _added_up(rows: pa.Table, *keys: str) -> pa.Table:
    made = rows.group_by(list(keys)).aggregate([(name, "sum") for name in SUMS])
    return made.rename_columns([name.removesuffix("_sum") for name in made.column_names])


def _whole_days(look: ScopedHistory, hours: HourRange) -> dict[datetime, Sums]:
    """Days from the sums over all agents."""
    known: dict[datetime, int] = {}
    for hour in look.history.hours("usage_by_hour"):
        if hour in hours:
            day = hour.replace(hour=0)
            known[day] = known.get(day, 0) + 1
    found = {day: summed(pa.table({})) for day in known}
    rows = look.history.between("usage_by_hour", hours)
    if rows.num_rows:
        # by whole numbers, since dates would need the machine's list of time zones
        days = pc.divide(rows.column("hour").cast(pa.timestamp("us", "UTC")).cast(pa.int64()), MICROSECONDS)
        for row in _grouped(rows.append_column("day", days), "day"):
            found[datetime.fromtimestamp(row.pop("day") * DAY.total_seconds(), UTC)] = row
    return {day: {**sums, "hours": known[day]} for day, sums in found.items()}


def _visible_day(look: ScopedHistory, start: datetime) -> Sums | None:
    """A day from the agents that the caller may see; None where nothing is known of it."""
    end = start + (DAY_H - 1) * HOUR
    if look.hour < end:
        hours = HourRange(start, look.hour + HOUR)
        known = sum(hour in hours for hour in look.history.hours("runs"))
        return {**summed(_rows(look, hours)), "hours": known} if known else None
    if (found := of_window(look, end)) is None:
        return None
    sums, covered = found
    before_the_first_log = DAY_H - _hours_due(look, start)  # which count as covered
    return {**sums, "hours": covered - before_the_first_log}
