"""A list of the newest hour, mapped into memory: pages of it in an order, or an agent's own items.

What belongs here: finding items. What does not: what they say (`list_files`) and HTTP.

Rows stand by the bytes of their agent's id, so that an agent is found by bisection. The file is mapped rather than
read: the fleet's calls of tools may be many times as many as its agents, and few of them are ever asked for.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from health_assets.apps.serving.access_scope import AccessScope
from health_assets.apps.serving.team_lists import TeamLists
from health_assets.apps.serving.texts import Texts

ROWS_FILE = "{name}.arrow"
PLACES_FILE = "{name}.positions"

Slices = dict[str, tuple[int, int]]
"""Name of an order, as `slice_name` gives it, to (first place among the positions, length)."""


def slice_name(order: str, *, is_full_view: bool) -> str:
    """The name of an order, for those who see all or for everybody."""
    return f"{'full' if is_full_view else 'public'} {order}"


class Listing:
    """The items of a list.

    Args:
        batches: rows as `list_files.write_list` writes them.
        positions: positions of rows, 32 bits each, as it writes them.
        facts: facts about the list.
        teams: names of the teams, whose places the rows hold.
    """

    def __init__(
        self, batches: Sequence[pa.RecordBatch], positions: memoryview, facts: dict[str, Any], teams: Sequence[str]
    ) -> None:
        self._times = {name: facts[name] for name in ("hour", "window_start", "window_end")}
        filled = [batch for batch in batches if batch.num_rows]
        self._agents, self._items, self._hidden = (
            _Rows([Texts(batch.column(name)) for batch in filled]) for name in ("agent_id", "item", "hidden")
        )
        self._is_personal = [batch.column("is_personal") for batch in filled]
        self._positions = positions.cast("i")
        self._slices: Slices = facts["slices"]
        self._of_teams = TeamLists([batch.column("team") for batch in filled], teams)

    @classmethod
    def read(cls, folder: Path, name: str, facts: dict[str, Any] | None, teams: Sequence[str]) -> "Listing":
        """Map what a reader wrote into a folder, which may be deleted afterwards; without facts, an empty list."""
        if facts is None:
            nothing: dict[str, Any] = {"hour": None, "window_start": None, "window_end": None, "slices": {}}
            return cls([], memoryview(b""), nothing, teams)
        rows = pa.memory_map(str(folder / ROWS_FILE.format(name=name)))
        with pa.ipc.open_stream(rows) as stream:
            batches = list(stream)
        return cls(batches, memoryview((folder / PLACES_FILE.format(name=name)).read_bytes()), facts, teams)

    def head(self, view: AccessScope) -> dict[str, Any]:
        """The hour of the list; nulls if the warehouse has none, or none that the caller may see."""
        first_order = next(iter(self._slices), "").partition(" ")[2]
        is_empty = not len(self._in_order(first_order, view))
        return {name: None if is_empty and name != "hour" else time for name, time in self._times.items()}

    def page(self, order: str, offset: int, limit: int, agent_id: bytes | None, view: AccessScope) -> tuple[int, bytes]:
        """The number of items, and some of them as JSON with commas between.

        Args:
            order: in which order; an agent's items stand in the list's first one.
            offset: how many to leave out.
            limit: how many to take at most.
            agent_id: only this agent's; None for all.
            view: with personal agents and texts of errors, or without; of which teams.
        """
        chosen = self._in_order(order, view) if agent_id is None else self._rows_of(agent_id, view)
        items = (self._item(row, shows_texts=view.shows_texts) for row in chosen[offset : offset + limit])
        return len(chosen), b",".join(items)

    def _in_order(self, order: str, view: AccessScope) -> Sequence[int]:
        name = slice_name(order, is_full_view=view.is_full)
        start, count = self._slices.get(name, (0, 0))
        everyone = self._positions[start : start + count]
        return everyone if view.teams is None else self._of_teams.among(name, everyone, view.teams)

    def _rows_of(self, agent_id: bytes, view: AccessScope) -> Sequence[int]:
        first, last = bisect_left(self._agents, agent_id), bisect_right(self._agents, agent_id)
        if first == last or (view.teams is not None and not self._of_teams.has(first, view.teams)):
            return range(0)
        rows = range(first, last)
        return rows if view.is_full else [row for row in rows if not self._is_hidden(row)]

    def _is_hidden(self, row: int) -> bool:
        batch, place = self._agents.place(row)
        return self._is_personal[batch][place].as_py()

    def _item(self, row: int, *, shows_texts: bool) -> bytes:
        item, hidden = self._items[row], self._hidden[row] if shows_texts else b""
        return item[:-1] + b"," + hidden if hidden else item


class _Rows(Sequence[bytes]):
    """The texts of several batches, one after another."""

    def __init__(self, batches: list[Texts]) -> None:
        self._batches = batches
        self._starts: list[int] = []
        self._length = 0
        for texts in batches:
            self._starts.append(self._length)
            self._length += len(texts)

    def place(self, row: int) -> tuple[int, int]:
        """The batch that a row is in, and its place there."""
        batch = bisect_right(self._starts, row) - 1
        return batch, row - self._starts[batch]

    def __getitem__(self, row: Any) -> Any:
        batch, place = self.place(row)
        return self._batches[batch][place]

    def __len__(self) -> int:
        return self._length
