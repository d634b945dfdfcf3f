"""Positions of agents by score, for every list that can be asked for; the reader makes them, the server slices them.

All lists lie behind each other in one file of 32-bit integers; `Slices` says where each begins and how long it is.
"""

import pyarrow as pa

AGENTS_FILE = "agents.arrow"
POSITIONS_FILE = "positions.bin"

Slices = dict[str, tuple[int, int]]
"""Name of a list to (first place in the file, length)."""


def slice_name(state: str | None, *, is_full_view: bool, descending: bool = False) -> str:
    """The name of a list."""
    return f"{'full' if is_full_view else 'public'} {state or 'all'} {'descending' if descending else 'ascending'}"


def positions_by_score(rows: pa.Table, states: tuple[str, ...]) -> tuple[bytes, Slices]:
    """Positions of the rows in every list, and where each list lies.

    Args:
        rows: `health_score`, `state`, `shown_state` and `is_personal` of the agents as they stand.
        states: the states that lists are made for, beside the one of all.
    """
    import pyarrow.compute as pc  # the server has no use for it, and it is large

    pieces: list[bytes] = []
    slices: Slices = {}
    length = 0
    public_score = pc.if_else(rows["is_personal"], pa.scalar(None, pa.float64()), rows["health_score"])
    views = ((True, rows["health_score"], rows["state"]), (False, public_score, rows["shown_state"]))
    for is_full_view, scores, own_states in views:
        for descending in (False, True):
            everyone = _by_score(scores, descending)
            states_in_order = own_states.take(everyone)
            for state in (None, *states):
                chosen = everyone if state is None else everyone.filter(pc.equal(states_in_order, state))
                slices[slice_name(state, is_full_view=is_full_view, descending=descending)] = (length, len(chosen))
                pieces.append(chosen.to_numpy().tobytes())
                length += len(chosen)
    return b"".join(pieces), slices


def _by_score(scores: pa.ChunkedArray, descending: bool) -> pa.ChunkedArray:
    """Positions by score, equal ones as they stand; without a score last."""
    import pyarrow.compute as pc

    rows = pa.table({"score": scores, "position": pa.array(range(len(scores)), pa.int32())})
    keys = [("score", "descending" if descending else "ascending"), ("position", "ascending")]
    return pa.chunked_array([pc.sort_indices(rows, sort_keys=keys).cast(pa.int32())])
