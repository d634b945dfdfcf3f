"""The rule about drift: an agent that became worse than its own past."""

from datetime import datetime
from typing import Annotated, ClassVar

from pydantic import BeforeValidator

from health_assets.apps.alerts.drift_facts import DriftFact
from health_assets.apps.alerts.facts import Fact
from health_assets.apps.alerts.rule import Opening, Rule, measures_of
from health_assets.systems.agent_drift.names import MEASURES, TOOL_MIX, VOLUME_RISE
from health_assets.systems.agent_drift.texts import sentence

DEFAULT_MEASURES = tuple(measure for measure in MEASURES if measure not in (TOOL_MIX, VOLUME_RISE))
"""Those in which a change is for the worse."""


class Drifting(Rule):
    """An agent is worse than its own past, by enough evidence among all agents.

    Args:
        measures: the measures that count.
    """

    name: ClassVar[str] = "drifting"
    looks_at: ClassVar[tuple[type[Fact], ...]] = (DriftFact,)

    measures: Annotated[tuple[str, ...], BeforeValidator(measures_of(MEASURES))] = DEFAULT_MEASURES

    def opening(self, fact: DriftFact) -> Opening | None:
        """A measure that drifts."""
        drifts = self._drifts(fact)
        told = "; ".join(map(sentence, drifts))
        return Opening(f"{fact.subject_id} is worse than its own past: {told}") if drifts else None

    def is_good(self, fact: DriftFact, recovers_at: float | None) -> bool | None:
        """Whether nothing drifts; None where the hour was not looked at, or the agent did nothing in it.

        After some days of silence or failure its past is like that, too, which is no recovery.
        """
        del recovers_at
        if self._drifts(fact):
            return False
        return True if fact.is_known and fact.has_run else None

    def recovery(self, fact: DriftFact, opened_in: datetime) -> str:
        """That nothing drifts; what the agent did meanwhile may be part of its past by now."""
        del opened_in
        return f"{fact.subject_id} is no worse than in the days before"

    def _drifts(self, fact: DriftFact) -> list[dict]:
        return [row for row in fact.rows if row["measure"] in self.measures]
