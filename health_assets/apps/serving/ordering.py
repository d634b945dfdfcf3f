"""Positions of agents in order, for every list that can be asked for; the reader makes them, the server slices them.

All lists lie behind each other in one file of 32-bit integers; `Slices` says where each begins and how long it is.
"""

from typing import Literal, get_args

import pyarrow as pa

AGENTS_FILE = "agents.arrow"
POSITIONS_FILE = "positions.bin"

Order = Literal["verdict", "-verdict", "score", "-score"]
"""By verdict, in the order of `scoring.verdict`, or by score alone; with a minus the best agents first."""
ORDERS: tuple[Order, ...] = get_args(Order)

Slices = dict[str, tuple[int, int]]
"""Name of a list to (first place in the file, length)."""


def slice_name(state: str | None, *, is_full_view: bool, order: Order = "verdict") -> str:
    """The name of a list."""
    return f"{'full' if is_full_view else 'public'} {state or 'all'} {order}"


def positions_in_order(rows: pa.Table, states: tuple[str, ...]) -> tuple[bytes, Slices]:
    """Positions of the rows in every list, and where each list lies.

    Args:
        rows: `health_score`, `urgency`, `state`, `shown_state` and `is_personal` of the agents as they stand.
        states: the states that lists are made for, beside the one of all.
    """
    import pyarrow.compute as pc  # the server has no use for it, and it is large

    pieces: list[bytes] = []
    slices: Slices = {}
    length = 0
    # a personal agent's place must not tell more than the list says of it
    public_score, public_urgency = (
        pc.if_else(rows["is_personal"], pa.scalar(None, rows[name].type), rows[name])
        for name in ("health_score", "urgency")
    )
    views = (
        (True, rows["health_score"], rows["urgency"], rows["state"]),
        (False, public_score, public_urgency, rows["shown_state"]),
    )
    for is_full_view, scores, urgencies, own_states in views:
        for order in ORDERS:
            everyone = _sorted(scores, urgencies, order)
            states_in_order = own_states.take(everyone)
            for state in (None, *states):
                chosen = everyone if state is None else everyone.filter(pc.equal(states_in_order, state))
                slices[slice_name(state, is_full_view=is_full_view, order=order)] = (length, len(chosen))
                pieces.append(chosen.to_numpy().tobytes())
                length += len(chosen)
    return b"".join(pieces), slices


def _sorted(scores: pa.ChunkedArray, urgencies: pa.ChunkedArray, order: Order) -> pa.ChunkedArray:
    """Positions in an order, equal agents as they stand; those without a score last."""
    import pyarrow.compute as pc

    columns = {
        "is_without_score": pc.is_null(scores),
        "verdict": urgencies,
        "score": scores,
        "position": pa.array(range(len(scores)), pa.int32()),
    }
    direction = "descending" if order.startswith("-") else "ascending"
    by_verdict = [("is_without_score", "ascending"), ("verdict", direction)] if order.endswith("verdict") else []
    keys = [*by_verdict, ("score", direction), ("position", "ascending")]
    return pa.chunked_array([pc.sort_indices(pa.table(columns), sort_keys=keys).cast(pa.int32())])
