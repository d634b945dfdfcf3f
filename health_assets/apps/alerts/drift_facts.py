"""The facts of an hour about an agent beside its own past."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from health_assets.apps.alerts.facts import AgentRowFact

KEPT = (
    "measure", "runs", "value", "baseline_runs", "baseline", "limit_value", "threshold", "evidence", "detectors",
    "cause_dimension", "cause", "cause_share", "hint",
)  # fmt: skip
"""Columns of `drift` that are kept with an incident."""


@dataclass(frozen=True, kw_only=True)
class DriftFact(AgentRowFact):
    """An agent's rows of `drift`.

    Args:
        rows: its rows of the hour that drift.
        is_known: whether the hour was looked at.
        has_run: whether the agent executed anything in the hour.
    """

    rows: Sequence[dict[str, Any]] = ()
    is_known: bool = True
    has_run: bool = True

    kind: ClassVar[str] = "drift"

    @property
    def evidence(self) -> dict[str, Any]:
        """What drifts, and the errors of the last hours."""
        told = [{"since": row["since"].isoformat(), **{name: row[name] for name in KEPT}} for row in self.rows]
        return {"hour": self.hour.isoformat(), "drifts": told, **self.failures}
