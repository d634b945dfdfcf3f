"""The rule about releases: a new version or model that is worse than the one before it."""

from datetime import datetime
from typing import Annotated, ClassVar

from pydantic import BeforeValidator

from health_assets.apps.alerts.facts import Fact
from health_assets.apps.alerts.release_facts import ReleaseFact
from health_assets.apps.alerts.rule import UNKNOWN_FOR, Opening, Rule, measures_of
from health_assets.systems.release_comparison.names import MEASURES, SUCCESS_RATE, WORSE
from health_assets.systems.release_comparison.texts import sentence


class ReleaseWorse(Rule):
    """A new version or model of an agent is worse than the one before it.

    Args:
        measures: the measures that count.
    """

    name: ClassVar[str] = "release_worse"
    looks_at: ClassVar[tuple[type[Fact], ...]] = (ReleaseFact,)

    measures: Annotated[tuple[str, ...], BeforeValidator(measures_of(MEASURES))] = (SUCCESS_RATE,)

    def opening(self, fact: ReleaseFact) -> Opening | None:
        """A measure with the verdict `worse`."""
        worse = self._worse(fact)
        if not worse:
            return None
        row = worse[0]
        of = f"{row['dimension']} {row['to_version']} of {fact.subject_id} is worse than {row['from_version']}"
        return Opening(f"{of}: {'; '.join(sentence(own).removesuffix(': worse') for own in worse)}")

    def is_good(self, fact: ReleaseFact, recovers_at: float | None) -> bool | None:
        """Whether nothing is worse; None where nothing is compared in the hour."""
        del recovers_at
        return not self._worse(fact) if fact.rows else None

    def recovery(self, fact: ReleaseFact, opened_in: datetime) -> str:
        """What is compared now."""
        del opened_in
        releases = dict.fromkeys(f"{row['dimension']} {row['to_version']}" for row in fact.rows)
        return f"{' and '.join(releases)} of {fact.subject_id}: none is worse than the one before it"

    def gives_up(self, fact: ReleaseFact, opened_in: datetime) -> str | None:
        """End an incident of a day ago once the agent's releases are compared no more."""
        is_old = fact.hour - opened_in >= UNKNOWN_FOR
        return f"no release of {fact.subject_id} is compared any more" if is_old else None

    def _worse(self, fact: ReleaseFact) -> list[dict]:
        return [row for row in fact.rows if row["verdict"] == WORSE and row["measure"] in self.measures]
