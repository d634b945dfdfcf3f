"""The newest hour in memory: find an agent, list agents by score, all without the warehouse.

A snapshot never changes. It is some 50 batches of Arrow rows, ascending by agent id; an agent is found by bisection in
the batches' own buffers, so 180,000 agents cost no Python object each: neither memory, nor time under the interpreter's
lock in which no request would be answered.
"""

import json
import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from health_assets.apps.serving.access_scope import AccessScope
from health_assets.apps.serving.listing import Listing
from health_assets.apps.serving.ordering import AGENTS_FILE, POSITIONS_FILE, Order, Slices, slice_name
from health_assets.apps.serving.team_lists import TeamLists
from health_assets.apps.serving.texts import Texts
from health_assets.apps.serving.vocabulary import DIMENSIONS, FACTORS, INPUTS, NOW_COUNTS, SHORT_WINDOWS
from health_assets.scoring.explanation import explain, unmeasured
from health_assets.scoring.verdict import now_sentence
from health_assets.systems.agent_health_model.names import TARGETS_USED


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Some agents that follow each other, with the columns that requests look at most as plain bytes."""

    start: int
    rows: pa.RecordBatch
    keys: Texts
    documents: Texts
    items: Texts


@dataclass(frozen=True, slots=True)
class Place:
    """The place of an agent in the snapshot."""

    batch: Batch
    row: int


LISTED = ("tools", "usage", "usage_breakdown")
"""Names of the lists, as `list_files.LISTS` has them, which imports an engine."""


class Snapshot:
    """All agents, models and lists of the newest hour.

    Args:
        batches: rows as `documents.with_texts` makes them, ascending by the bytes of the agent's id.
        positions: positions of agents in order, as `ordering` lays them out.
        facts: facts about the whole, from `reader_process.read_newest`.
        loaded_at: when it was loaded.
        lists: the lists by name, as `list_files.LISTS` has them.
    """

    def __init__(
        self,
        batches: Sequence[pa.RecordBatch],
        positions: bytes,
        facts: dict[str, Any],
        loaded_at: datetime,
        lists: dict[str, Listing],
    ) -> None:
        self.version: str = facts["version"]
        self.hour = datetime.fromisoformat(facts["hour"])
        self.known_until = datetime.fromisoformat(facts["known_until"])
        """The end of the hour, or an earlier time while it runs."""
        self.model_hour = datetime.fromisoformat(facts["model_hour"])
        self._models: dict[str, dict[str, Any]] = {row["model"]: row for row in facts["models"]}
        self._fleet_scores: dict[str, float | None] = facts["fleet_scores"]
        self._public_models = {name: row for name, row in self._models.items() if row["is_public"]}
        self.loaded_at = loaded_at
        self.lists = lists
        self._batches: list[Batch] = []
        self.agents = 0
        for rows in batches:
            if rows.num_rows:
                keys, documents, items = (Texts(rows.column(name)) for name in ("agent_id", "document", "item"))
                batch = Batch(start=self.agents, rows=rows, keys=keys, documents=documents, items=items)
                self._batches.append(batch)
                self.agents += rows.num_rows
        self._of_teams = TeamLists([batch.rows.column("team") for batch in self._batches], facts["teams"])
        self._first_keys = [batch.keys[0] for batch in self._batches]
        self._starts = [batch.start for batch in self._batches]
        self._positions = memoryview(positions).cast("i")
        self._slices: Slices = facts["slices"]

    @classmethod
    def read(cls, folder: Path, facts: dict[str, Any]) -> "Snapshot":
        """Read what a reader wrote into a folder, into memory."""
        with pa.OSFile(str(folder / AGENTS_FILE)) as file, pa.ipc.open_stream(file) as stream:
            batches = list(stream)
        teams = facts["teams"]
        lists = {name: Listing.read(folder, name, facts["lists"].get(name), teams) for name in LISTED}
        return cls(batches, (folder / POSITIONS_FILE).read_bytes(), facts, datetime.now(UTC), lists)

    def models(self, view: AccessScope) -> dict[str, dict[str, Any]]:
        """The models that callers see, by name; those whose view is limited to teams see none, as they are of all."""
        if view.teams is not None:
            return {}
        return self._models if view.is_full else self._public_models

    def find(self, agent_id: bytes, view: AccessScope) -> Place | None:
        """The agent with this id, as UTF-8; None where there is none that the caller may see."""
        number = bisect_right(self._first_keys, agent_id) - 1
        if number < 0:
            return None
        batch = self._batches[number]
        low, high = 0, len(batch.keys)
        while low < high:
            middle = (low + high) // 2
            if batch.keys[middle] < agent_id:
                low = middle + 1
            else:
                high = middle
        if low == len(batch.keys) or batch.keys[low] != agent_id:
            return None
        if view.teams is not None and not self._of_teams.has(batch.start + low, view.teams):
            return None
        return Place(batch, low)

    def document(self, place: Place, *, is_full_view: bool) -> bytes:
        """The agent's health document; of a personal agent the coarse one, unless the view is the full one."""
        full = _full(place, "full_document") if is_full_view else None
        return full or place.batch.documents[place.row]

    def count(self, chosen: str | None, view: AccessScope) -> int:
        """The number of agents of one of `ordering.FILTERS`, or of all, that the caller may see."""
        return len(self._in_order(chosen, "verdict", view))

    def fleet_score(self, view: AccessScope) -> float | None:
        """The mean score of active agents, without the personal ones unless the view is the full one; None for none."""
        return self._fleet_scores["full" if view.is_full else "public"]

    def page(self, chosen: str | None, offset: int, limit: int, view: AccessScope, *, order: Order) -> bytes:
        """Agents of a list in an order, those without a score last, equal ones by id; as JSON, commas between.

        Args:
            chosen: one of `ordering.FILTERS`, or None for all.
            offset: how many to leave out.
            limit: how many to take at most.
            view: personal agents with their state and score, rather than coarse and without one; of which teams.
            order: by verdict or by score.
        """
        places = [self._place(position) for position in self._in_order(chosen, order, view)[offset : offset + limit]]
        return b",".join(
            (_full(place, "full_item") if view.is_full else None) or place.batch.items[place.row] for place in places
        )

    def is_personal(self, place: Place) -> bool:
        """Whether somebody's own agent stands there."""
        return place.batch.rows.column("is_personal")[place.row].as_py()

    def verdict(self, place: Place) -> tuple[str | None, float | None, float | None, str | None]:
        """The state of the agent, its score, the points at stake, and what it does now; None where it has none."""
        columns = ("state", "health_score", "points_at_stake", "now")
        state, score, at_stake, now = (place.batch.rows.column(name)[place.row].as_py() for name in columns)
        return state, _known(score), _known(at_stake), now

    def explain(self, place: Place, *, is_full_view: bool) -> dict[str, Any]:
        """An agent's score: dimensions, the points that each component cost, inputs and targets, and the evidence."""
        if self.is_personal(place) and not is_full_view:
            return {"hour": self.hour.isoformat(), **json.loads(place.batch.items[place.row])}
        row = {name: _known(place.batch.rows.column(name)[place.row].as_py()) for name in place.batch.rows.schema.names}
        return {
            "hour": self.hour.isoformat(),
            "agent_id": row["agent_id"],
            "now": row["now"],
            "now_since": row["now_since"] and row["now_since"].isoformat(),
            "now_sentence": now_sentence(row) or None,
            "last_hours": {name.removeprefix("now_"): row[name] for name in NOW_COUNTS},
            "short_windows": _short_windows(row),
            "state": row["state"],
            "status": row["status"],
            "health_score": row["health_score"],
            "points_at_stake": row["points_at_stake"],
            "is_provisional": None if row["state"] is None else bool(row["is_provisional"]),
            "n": row["n"],
            "n_full": row["n_full"],
            "is_personal": row["is_personal"],
            "window_start": row["window_start"].isoformat(),
            "window_end": row["window_end"].isoformat(),
            "dimensions": {
                name: {
                    "score": row[column],
                    "points": points,
                    "cost": _cost(row[column], points),
                    "is_evaluated": row[column] is not None and name not in unmeasured(row),
                }
                for name, (column, points) in DIMENSIONS.items()
            },
            "factors": {name: row[name] for name in FACTORS},
            "inputs": {name: row[name] for name in INPUTS},
            "targets": {name: row[name] for name in TARGETS_USED},
            "explanation": _explanation(row),
            "formula_version": row["formula_version"],
        }

    @property
    def batches(self) -> list[Batch]:
        """The batches, for an owner who wants to let go of them one by one."""
        return list(self._batches)

    def _in_order(self, chosen: str | None, order: Order, view: AccessScope) -> memoryview:
        name = slice_name(chosen, order=order, is_full_view=view.is_full)
        start, count = self._slices[name]
        everyone = self._positions[start : start + count]
        return everyone if view.teams is None else self._of_teams.among(name, everyone, view.teams)

    def _place(self, position: int) -> Place:
        batch = self._batches[bisect_right(self._starts, position) - 1]
        return Place(batch, position - batch.start)


def _full(place: Place, column: str) -> bytes | None:
    full = place.batch.rows.column(column)[place.row]
    return full.as_py().encode() if full.is_valid else None


def _known(value: Any) -> Any:
    """The value as JSON can write it; a number that JSON cannot write becomes null."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _explanation(row: dict[str, Any]) -> list[dict[str, Any]]:
    """The losses of points of the agent; none if it has no score."""
    if row["health_score"] is None:
        return []
    return [loss.as_dict() for loss in explain(row, _evidence(row))]


def _evidence(row: dict[str, Any]) -> dict[str, list[str]]:
    """Ids of the events that weigh most, by kind."""
    evidence: dict[str, list[str]] = {}
    for kind, event_id in zip(row["evidence_kinds"] or (), row["evidence_ids"] or (), strict=True):
        evidence.setdefault(kind, []).append(event_id)
    return evidence


def _short_windows(row: dict[str, Any]) -> list[dict[str, Any]]:
    """The scores over short windows, the shortest first; those in which nothing ran have none."""
    values = [row[f"short_{name}"] or [] for name in SHORT_WINDOWS]
    return [dict(zip(SHORT_WINDOWS, window, strict=True)) for window in zip(*values, strict=True)]


def _cost(score: float | None, points: int) -> float | None:
    return None if score is None else points * (1 - score)
