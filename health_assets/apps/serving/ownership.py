"""Owners of agents, as the targets say: a person or a team. The reader's queries and its batches use them."""

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from health_assets.apps.serving.team_lists import NO_TEAM
from health_assets.core.targets import Targets

if TYPE_CHECKING:
    from ibis import ir

FEW = 1_024
"""Rows that are looked up one by one: to go through all agents that targets name takes longer."""


class Ownership:
    """The personal agents, and the team of each agent.

    Calls of no known agent are somebody's own where agents are by default, and of no team whatever the default is:
    they may be anybody's.

    Args:
        targets: the targets.
    """

    def __init__(self, targets: Targets) -> None:
        self._targets = targets
        self._is_personal = targets.defaults.personal
        """Whether agents are personal where the targets do not say."""
        exceptions = [agent_id for agent_id, own in targets.agents.items() if own.personal != self._is_personal]
        self._others = pa.array(sorted(exceptions), pa.string())
        """The agents of which the opposite is true."""
        self._other_ids = frozenset(exceptions)
        by_agent = {agent_id: own.team for agent_id, own in targets.agents.items()} | {"": None}
        self._default_team = targets.defaults.team
        self._exceptions = {agent_id: team for agent_id, team in by_agent.items() if team != self._default_team}
        self.teams = sorted({self._default_team, *by_agent.values()} - {None}, key=str)
        """Names of the teams."""

    @property
    def has_personal(self) -> bool:
        """Whether any agent may be somebody's own."""
        return self._is_personal or len(self._others) > 0

    @property
    def fingerprint(self) -> list[Any]:
        """All that it says, as JSON can write it."""
        return [
            self._is_personal,
            self._others.to_pylist(),
            self._default_team,
            sorted(self._exceptions.items(), key=str),
        ]

    def is_personal(self, agent_id: str | None) -> bool:
        """Whether an agent is somebody's own; of one that nobody named, what is so by default."""
        return (self._targets.defaults if agent_id is None else self._targets.of(agent_id)).personal

    def team(self, agent_id: str | None) -> str | None:
        """The team of an agent; None for one of no team, and for one that nobody named."""
        return None if agent_id is None else self._exceptions.get(agent_id, self._default_team)

    def is_named(self, agent_id: str) -> bool:
        """Whether the targets name an agent, so that its team is its own and not that of all others."""
        return agent_id in self._targets.agents

    def personal(self, agent_ids: "ir.Value") -> "ir.BooleanValue":
        """Whether each agent of a column is somebody's own, as an expression."""
        import ibis  # the server imports this module's neighbours only

        others = ibis.memtable(pa.table({"agent_id": self._others}))
        return agent_ids.isin(others.agent_id).fill_null(False) != self._is_personal

    def with_owners(self, batches: pa.RecordBatchReader) -> pa.RecordBatchReader:
        """Add `is_personal` and `team`, a place in `teams` or `NO_TEAM`, to rows that have `agent_id`."""
        schema = batches.schema.append(pa.field("is_personal", pa.bool_())).append(pa.field("team", pa.int32()))
        return pa.RecordBatchReader.from_batches(schema, self._with_owners(batches, schema))

    def _with_owners(self, batches: pa.RecordBatchReader, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            owners = self._of_few if batch.num_rows <= FEW else self._of_many
            yield pa.RecordBatch.from_arrays([*batch.columns, *owners(batch.column("agent_id"))], schema=schema)

    def _of_few(self, agents: pa.Array) -> tuple[pa.Array, pa.Array]:
        """Whether each agent is personal, and the place of its team."""
        places = self._places
        ids = agents.to_pylist()
        is_personal = [(one in self._other_ids) != self._is_personal for one in ids]
        teams = [places[self._exceptions.get(one, self._default_team)] for one in ids]
        return pa.array(is_personal, pa.bool_()), pa.array(teams, pa.int32())

    def _of_many(self, agents: pa.Array) -> tuple[pa.Array, pa.Array]:
        """The same."""
        import pyarrow.compute as pc  # the server has no use for it, and it is large

        known, places = self._columns
        teams = places.take(pc.fill_null(pc.index_in(agents, value_set=known), len(known)))
        is_other = pc.is_in(agents, value_set=self._others)
        return pc.invert(is_other) if self._is_personal else is_other, teams

    @cached_property
    def _places(self) -> dict[str | None, int]:
        """The place of each team in `teams`."""
        return {team: place for place, team in enumerate(self.teams)} | {None: NO_TEAM}

    @cached_property
    def _columns(self) -> tuple[pa.Array, pa.Array]:
        """The agents of another team than the default, and the places of their teams; that of the default is last."""
        places = [self._places[team] for team in (*self._exceptions.values(), self._default_team)]
        return pa.array(self._exceptions, pa.string()), pa.array(places, pa.int32())
