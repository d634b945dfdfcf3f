"""Files of tools and usage that the reader writes: lists as long as the fleet, or longer.

What belongs here: what an item of a list says, in which orders it can be asked for, and writing it. What does not:
finding pages in it, which is the server's (`listing`), and agents by score (`documents`, `ordering`).

A list is a file of Arrow rows by agent, and a file of 32-bit positions of these rows: for every order, those of all
rows and those of the rows that everybody may see.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
from ibis import ir

from health_assets.apps.serving.aggregates import tools_of_personal
from health_assets.apps.serving.json_texts import moment, number, whole
from health_assets.apps.serving.listing import PLACES_FILE, ROWS_FILE, Slices, slice_name
from health_assets.apps.serving.ownership import Ownership
from health_assets.core.hours import HourRange
from health_assets.core.settings import Settings
from health_assets.scoring.relations import lookup
from health_assets.systems.agent_usage.names import BY_AGENT, BY_PART, CANCELLED
from health_assets.warehouse.in_memory import stream_through
from health_assets.warehouse.session import Session

ROWS_PER_BATCH = 4096
COLUMNS = ("agent_id", "item", "hidden", "is_personal", "team")


@dataclass(frozen=True, kw_only=True)
class Served:
    """A table that is served as a list.

    Args:
        table: the table, whose rows have `agent_id`.
        item: columns that an item says.
        orders: names of its orders, with the keys of each; an agent's own items stand in the first of them.
        hidden: columns that it says besides to those who see all; errors stand as the logs have them, and may name
            anything.
        rows_hidden: adds `is_hidden` to its rows: which of them are for those who see all, beside those of personal
            agents.
    """

    table: str
    item: Sequence[str]
    orders: Mapping[str, Callable[[ir.Table], Sequence[ir.Value]]]
    hidden: Sequence[str] = ()
    rows_hidden: Callable[[ir.Table, Session, Settings, datetime, Ownership], ir.Table] = lambda rows, *_: rows.mutate(
        is_hidden=False
    )


def _hide_tools(rows: ir.Table, session: Session, settings: Settings, hour: datetime, ownership: Ownership) -> ir.Table:
    """Hide calls of no known agent to tools that a personal agent called."""
    tools = tools_of_personal(session, settings, HourRange.of(hour), ownership)
    rows = lookup(rows, tools.mutate(is_of_personal=True), ["hour", "tool"])
    return rows.mutate(is_hidden=(rows.agent_id == "") & rows.is_of_personal.fill_null(False))


def _tokens(rows: ir.Table) -> ir.Value:
    tokens = rows.input_tokens.fill_null(0) + rows.output_tokens.fill_null(0)
    return ibis.ifelse(rows.executions_with_tokens > 0, tokens, ibis.null())


USAGE = (
    "executions", "successes", "positive_feedback", "negative_feedback", "executions_with_tokens",
    "executions_with_cost", "input_tokens", "output_tokens",
    "cache_read_tokens", "cache_creation_tokens", "reasoning_tokens", "cost_usd", "cost_source", "cost_per_success_usd",
    *CANCELLED,
)  # fmt: skip


def _orders_of_usage(keys: Sequence[str]) -> Mapping[str, Callable[[ir.Table], Sequence[ir.Value]]]:
    def named(rows: ir.Table) -> list[ir.Value]:
        return [rows[key] for key in keys]

    return {
        "cost": lambda rows: (rows.cost_usd.desc(), *named(rows)),
        "tokens": lambda rows: (_tokens(rows).desc(), *named(rows)),
        "cost_per_success": lambda rows: (rows.cost_per_success_usd.desc(), *named(rows)),
    }


LISTS = {
    "tools": Served(
        table="tool_health",
        item=(
            "agent_id", "tool", "calls", "failures", "failure_share", "failure_share_at_least", "p50_latency_ms",
            "p95_latency_ms", "last_error_at",
        ),
        orders={
            "worst": lambda rows: (rows.failure_share_at_least.desc(), rows.calls.desc(), rows.agent_id, rows.tool)
        },
        hidden=("last_error",),
        rows_hidden=_hide_tools,
    ),
    "usage": Served(
        table="agent_usage",
        item=(*BY_AGENT, *USAGE),
        orders=_orders_of_usage(BY_AGENT),
    ),
    "usage_breakdown": Served(
        table="usage_breakdown",
        item=(*BY_PART, *USAGE),
        orders=_orders_of_usage(BY_PART),
    ),
}  # fmt: skip


def write_list(
    session: Session, name: str, hour: datetime, folder: Path, ownership: Ownership, settings: Settings
) -> dict[str, Any]:
    """Write a list of one hour into a folder.

    Args:
        session: a session.
        name: key of `LISTS`.
        hour: the hour.
        folder: where to write.
        ownership: owners of the agents, and their teams.
        settings: length of the window.

    Returns:
        What the server must know besides: `hour`, `window_start`, `window_end` (null in an hour without rows) and
        where in the file of positions each order begins, and how long it is (`slices`).
    """
    served = LISTS[name]
    table = session.hours_of(served.table, HourRange.of(hour))
    rows = _in_order(served.rows_hidden(table, session, settings, hour, ownership), served)
    owned = ownership.with_owners(session.stream(rows, ROWS_PER_BATCH))
    batches = stream_through(owned, lambda rows: _with_texts(rows, served), ROWS_PER_BATCH)
    schema = pa.schema([batches.schema.field(column) for column in COLUMNS])
    places = []
    with pa.OSFile(str(folder / ROWS_FILE.format(name=name)), "wb") as file, pa.ipc.new_stream(file, schema) as writer:
        for batch in batches:
            writer.write_batch(batch.select(COLUMNS))
            places.append(batch.select(["is_personal", *served.orders]))
    positions, slices = _positions(pa.Table.from_batches(places, schema=places[0].schema) if places else None, served)
    (folder / PLACES_FILE.format(name=name)).write_bytes(positions)
    [window] = session.dicts(table.aggregate(start=table.window_start.min(), end=table.window_end.max()))
    return {
        "hour": hour.isoformat(),
        "window_start": window["start"] and window["start"].isoformat(),
        "window_end": window["end"] and window["end"].isoformat(),
        "slices": slices,
    }


def _in_order(rows: ir.Table, served: Served) -> ir.Table:
    """One row per item, by agent, with its place in each order."""
    places = {name: ibis.row_number().over(order_by=keys(rows)) for name, keys in served.orders.items()}
    chosen = rows.select(*served.item, *served.hidden, "is_hidden", **places)
    return chosen.order_by("agent_id", next(iter(served.orders)))


def _with_texts(rows: ir.Table, served: Served) -> ir.Table:
    """The JSON of each item, and the end of the JSON for those who see all."""
    hidden = whole(_members(rows, served.hidden)).cast(str).substr(1) if served.hidden else ibis.literal("")
    return rows.select(
        "agent_id",
        "team",
        *served.orders,
        item=whole(_members(rows, served.item)).cast(str),
        hidden=hidden,
        is_personal=rows.is_personal | rows.is_hidden,
    )


def _members(rows: ir.Table, names: Sequence[str]) -> dict[str, ir.Value]:
    return {name: moment(rows[name]) if rows[name].type().is_timestamp() else number(rows[name]) for name in names}


def _positions(rows: pa.Table | None, served: Served) -> tuple[bytes, Slices]:
    """Positions of the rows in each order, of all and of those that everybody may see, and where each list lies."""
    import numpy as np  # the server imports this module's neighbours only

    pieces: list[bytes] = []
    slices: Slices = {}
    length = 0
    for order in served.orders:
        if rows is None:
            full = public = np.zeros(0, np.int32)
        else:
            full = np.argsort(rows[order].to_numpy()).astype(np.int32)
            public = full[~rows["is_personal"].to_numpy()[full]]
        for chosen, is_full_view in ((full, True), (public, False)):
            slices[slice_name(order, is_full_view=is_full_view)] = (length, len(chosen))
            pieces.append(chosen.tobytes())
            length += len(chosen)
    return b"".join(pieces), slices
