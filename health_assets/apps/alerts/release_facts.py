"""The facts of an hour about an agent's releases."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from health_assets.apps.alerts.facts import AgentRowFact

KEPT = (
    "dimension", "to_version", "from_version", "measure", "n_from", "n_to", "estimate_from",
    "estimate_to", "difference", "low", "high", "verdict",
)  # fmt: skip
"""Columns of `release_comparison` that are kept with an incident."""


@dataclass(frozen=True, kw_only=True)
class ReleaseFact(AgentRowFact):
    """An agent's rows of `release_comparison`.

    Args:
        rows: its rows of the hour; none where nothing of it is compared.
    """

    rows: Sequence[dict[str, Any]] = ()

    kind: ClassVar[str] = "release"

    @property
    def evidence(self) -> dict[str, Any]:
        """What was compared, and the errors of the last hours."""
        told = [{name: row[name] for name in KEPT} for row in self.rows]
        return {"hour": self.hour.isoformat(), "comparisons": told, **self.failures}
