"""Owners of agents, as the targets say: a person or a team. The reader's queries and its batches use them."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from health_assets.apps.serving.team_lists import NO_TEAM
from health_assets.core.targets import Targets

if TYPE_CHECKING:
    from ibis import ir


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
        import pyarrow.compute as pc  # the server has no use for it, and it is large

        places = {team: place for place, team in enumerate(self.teams)} | {None: NO_TEAM}
        # the default stands last, and is what an agent that is not among the exceptions has
        of_agents = pa.array(
            [*(places[team] for team in self._exceptions.values()), places[self._default_team]], pa.int32()
        )
        agents = pa.array(self._exceptions, pa.string())
        for batch in batches:
            found = pc.index_in(batch.column("agent_id"), value_set=agents)
            teams = of_agents.take(pc.fill_null(found, len(agents)))
            is_other = pc.is_in(batch.column("agent_id"), value_set=self._others)
            is_personal = pc.invert(is_other) if self._is_personal else is_other
            yield pa.RecordBatch.from_arrays([*batch.columns, is_personal, teams], schema=schema)
