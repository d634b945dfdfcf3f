"""Files of tools and usage that the reader writes: lists as long as the fleet, or longer.

What belongs here: what an item of a list says, in which orders it can be asked for, and writing it. What does not:
finding pages in it, which is the server's (`listing`), and agents by score (`documents`, `ordering`).

A list is a file of Arrow rows by agent, and a file of 32-bit positions of these rows: for every order, those of all
rows and those of the rows that everybody may see.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from health_assets.apps.serving.aggregates import tools_of_personal
from health_assets.apps.serving.documents import Declaration, json_sql, moment, number, or_null, text
from health_assets.apps.serving.listing import PLACES_FILE, ROWS_FILE, Slices, slice_name
from health_assets.apps.serving.ownership import Ownership
from health_assets.core.settings import Settings
from health_assets.warehouse.session import Session

ROWS_PER_BATCH = 4096
COLUMNS = ("agent_id", "item", "hidden", "is_personal", "team")


@dataclass(frozen=True)
class Served:
    """A table that is served as a list.

    Args:
        table: the table, whose rows have `agent_id`.
        item: what an item says.
        hidden: what it says besides to those who see all; errors stand as the logs have them, and may name anything.
        orders: names of its orders, with the SQL of each; an agent's own items stand in the first of them.
        is_hidden: SQL of which items are for those who see all, beside those of personal agents.
        parameters: of that SQL.
    """

    table: str
    item: Declaration
    hidden: Declaration
    orders: Mapping[str, str]
    is_hidden: str = "false"
    parameters: Callable[[Session, Settings, datetime, Ownership], dict[str, Any]] = lambda *_: {}


def _numbers(*columns: str) -> Declaration:
    return {column: or_null(number(column)) for column in columns}


LISTS = {
    "tools": Served(
        "tool_health",
        {
            "agent_id": text("agent_id"),
            "tool": text("tool"),
            **_numbers("calls", "failures", "failure_share", "failure_share_at_least"),
            **_numbers("p50_latency_ms", "p95_latency_ms"),
            "last_error_at": or_null(moment("last_error_at")),
        },
        {"last_error": or_null(text("last_error"))},
        {"worst": "failure_share_at_least DESC, calls DESC, agent_id, tool"},
        "agent_id = '' AND tool IN (SELECT unnest($tools_of_personal))",
        lambda *asked: {"tools_of_personal": tools_of_personal(*asked)},
    ),
    "usage": Served(
        "agent_usage",
        {
            "agent_id": text("agent_id"),
            **_numbers("executions", "successes", "executions_with_tokens", "executions_with_cost"),
            **_numbers("input_tokens", "output_tokens", "cost_usd", "cost_per_success_usd"),
        },
        {},
        {
            "cost": "cost_usd DESC NULLS LAST, agent_id",
            "tokens": "CASE WHEN executions_with_tokens > 0 "
            "THEN coalesce(input_tokens, 0) + coalesce(output_tokens, 0) END DESC NULLS LAST, agent_id",
            "cost_per_success": "cost_per_success_usd DESC NULLS LAST, agent_id",
        },
    ),
}


def write_list(
    session: Session, name: str, hour: datetime, folder: Path, ownership: Ownership, settings: Settings
) -> dict[str, Any]:
    """Write a list of one hour into a folder.

    Args:
        session: a session.
        name: key of `LISTS`.
        hour: the hour.
        folder: where to write.
        ownership: whose agents are somebody's own, and their teams.
        settings: length of the window.

    Returns:
        What the server must know besides: `hour`, `window_start`, `window_end` (null in an hour without rows) and
        where in the file of positions each order begins, and how long it is (`slices`).
    """
    served = LISTS[name]
    parameters = {**ownership.parameters, **served.parameters(session, settings, hour, ownership)}
    stream = session.stream(_rows_sql(served), {"hour": hour, **parameters}, ROWS_PER_BATCH)
    batches = ownership.with_team(stream)
    schema = pa.schema([batches.schema.field(column) for column in COLUMNS])
    places = []
    with pa.OSFile(str(folder / ROWS_FILE.format(name=name)), "wb") as file, pa.ipc.new_stream(file, schema) as writer:
        for batch in batches:
            writer.write_batch(batch.select(COLUMNS))
            places.append(batch.select(["is_personal", *served.orders]))
    positions, slices = _positions(pa.Table.from_batches(places, schema=places[0].schema) if places else None, served)
    (folder / PLACES_FILE.format(name=name)).write_bytes(positions)
    sql = f"SELECT min(window_start), max(window_end) FROM {served.table} WHERE hour = $hour"
    [(start, end)] = session.query(sql, {"hour": hour})
    return {
        "hour": hour.isoformat(),
        "window_start": start and start.isoformat(),
        "window_end": end and end.isoformat(),
        "slices": slices,
    }


def _rows_sql(served: Served) -> str:
    """One row per item, by agent: its JSON, the end of the JSON for those who see all, and its place in each order."""
    places = ", ".join(f"row_number() OVER (ORDER BY {order}) AS {name}" for name, order in served.orders.items())
    hidden = f"substr({json_sql(served.hidden)}, 2)" if served.hidden else "''"
    return f"""
        SELECT agent_id, {json_sql(served.item)} AS item, {hidden} AS hidden,
            (agent_id IN (SELECT unnest($exceptions))) <> $personal_by_default OR ({served.is_hidden}) AS is_personal,
            {places}
        FROM {served.table} WHERE hour = $hour ORDER BY agent_id, {next(iter(served.orders))}
    """


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
