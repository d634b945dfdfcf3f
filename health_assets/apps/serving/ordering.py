"""Positions of agents in order, for every list that can be asked for; the reader makes them, the server slices them.

All lists lie behind each other in one file of 32-bit integers; `Slices` says where each begins and how long it is.
"""

from collections.abc import Iterator
from typing import Literal, get_args

import pyarrow as pa

from health_assets.scoring.verdict import NOW, PROVISIONAL
from health_assets.systems.agent_health_model.names import STATES

AGENTS_FILE = "agents.arrow"
POSITIONS_FILE = "positions.bin"

Order = Literal["verdict", "-verdict", "score", "-score"]
"""By verdict, in the order of `scoring.verdict`, or by score alone; with a minus the best agents first."""
ORDERS: tuple[Order, ...] = get_args(Order)

_NOW = "now "


def of_now(verdict: str) -> str:
    """The name of the list of agents with a verdict of now."""
    return _NOW + verdict


def tells_of_now(chosen: str | None) -> bool:
    """Whether a list of `FILTERS` is one of agents with a verdict of now."""
    return chosen is not None and chosen.startswith(_NOW)


FILTERS = (*STATES, PROVISIONAL, *map(of_now, NOW))
"""Names of the lists beside that of all: agents in a state, agents whose good score is provisional, agents by what they
do now. An agent that looks healthy after too few runs is provisional, and not among the healthy ones."""

Slices = dict[str, tuple[int, int]]
"""Name of a list to (first place in the file, length)."""


def slice_name(chosen: str | None, *, is_full_view: bool, order: Order = "verdict") -> str:
    """The name of a list of one of `FILTERS`, or of all."""
    return f"{'full' if is_full_view else 'public'} {chosen or 'all'} {order}"


def positions_in_order(rows: pa.Table) -> tuple[bytes, Slices]:
    """Positions of the rows in every list, and where each list lies.

    Args:
        rows: `health_score`, `points_at_stake`, `urgency`, `state`, `shown_state`, `is_provisional`, `now` and
            `is_personal` of the agents as they stand.
    """
    import pyarrow.compute as pc  # the server has no use for it, and it is large

    pieces: list[bytes] = []
    slices: Slices = {}
    length = 0
    # a personal agent's place must not tell more than the list says of it
    hidden = {
        name: pc.if_else(rows["is_personal"], pa.scalar(None, rows[name].type), rows[name])
        for name in ("health_score", "points_at_stake", "urgency", "is_provisional", "now")
    }
    public = pa.table({**hidden, "state": rows["shown_state"]})
    for is_full_view, seen in ((True, rows), (False, public)):
        members = dict(_members(seen))
        for order in ORDERS:
            everyone = _sorted(seen, order)
            for name in (None, *FILTERS):
                chosen = everyone if name is None else everyone.filter(members[name].take(everyone))
                slices[slice_name(name, is_full_view=is_full_view, order=order)] = (length, len(chosen))
                pieces.append(chosen.to_numpy().tobytes())
                length += len(chosen)
    return b"".join(pieces), slices


def _members(rows: pa.Table) -> Iterator[tuple[str, pa.ChunkedArray]]:
    """For each of `FILTERS`, which rows are in its list."""
    import pyarrow.compute as pc

    is_provisional = pc.and_(pc.fill_null(rows["is_provisional"], False), pc.equal(rows["state"], "healthy"))
    is_provisional = pc.fill_null(is_provisional, False)
    for state in STATES:
        is_in = pc.fill_null(pc.equal(rows["state"], state), False)
        yield state, pc.and_not(is_in, is_provisional)
    yield PROVISIONAL, is_provisional
    for verdict in NOW:
        yield of_now(verdict), pc.fill_null(pc.equal(rows["now"], verdict), False)


def _sorted(rows: pa.Table, order: Order) -> pa.ChunkedArray:
    """Positions in an order, equal agents as they stand; those without a score last.

    By score, of equal ones that comes first of which fewer points could be lost.
    """
    import pyarrow.compute as pc

    columns = {
        "is_without_score": pc.is_null(rows["health_score"]),
        "verdict": rows["urgency"],
        "score": rows["health_score"],
        "at_stake": rows["points_at_stake"],
        "position": pa.array(range(rows.num_rows), pa.int32()),
    }
    direction = "descending" if order.startswith("-") else "ascending"
    by_score = [("score", direction), ("at_stake", direction)]
    by_verdict = [("is_without_score", "ascending"), ("verdict", direction), ("score", direction)]
    keys = [*(by_verdict if order.endswith("verdict") else by_score), ("position", "ascending")]
    return pa.chunked_array([pc.sort_indices(pa.table(columns), sort_keys=keys).cast(pa.int32())])
