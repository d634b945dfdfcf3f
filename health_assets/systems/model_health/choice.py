"""Choosing a model by what the warehouse knows: the newest hour of `model_health`."""

from collections.abc import Sequence
from datetime import UTC, datetime

from health_assets.core.hours import HOUR, HourRange
from health_assets.model_tracker import best_of
from health_assets.warehouse.partition_states import PartitionStates
from health_assets.warehouse.store import Warehouse


def best_model(warehouse: Warehouse, candidates: Sequence[str], now: datetime | None = None) -> str:
    """The candidate with the highest score in the newest hour that was materialized; of equal ones the first.

    Hours that have not begun by `now`, by default the present, are left out.

    A model without a call in the look-back has a score of 1, as in `ModelHealthTracker`.

    Raises:
        ValueError: there is no candidate.
        HealthAssetsError: the warehouse cannot be read.
    """
    with warehouse.read() as session:
        newest = PartitionStates(session).newest("model_health", (now or datetime.now(UTC)) + HOUR)
        if newest is None:
            return best_of({}, candidates)
        scored = session.hours_of("model_health", HourRange.of(newest)).select("model", "health_score")
        scores = session.arrow(scored).to_pylist()
    return best_of({row["model"]: row["health_score"] for row in scores}, candidates)
