"""Choosing a model by what the warehouse knows: the newest hour of `model_health`."""

from collections.abc import Sequence
from datetime import UTC, datetime

from health_assets.core.hours import HOUR
from health_assets.model_tracker import best_of
from health_assets.warehouse.store import Warehouse


def best_model(warehouse: Warehouse, candidates: Sequence[str], now: datetime | None = None) -> str:
    """The candidate with the highest score in the newest hour that was materialized; of equal ones the first.

    Hours that are not over by `now`, by default the present, are left out.

    A model without a call in the look-back has a score of 1, as in `ModelHealthTracker`.

    Raises:
        ValueError: there is no candidate.
        HealthAssetsError: the warehouse cannot be read.
    """
    with warehouse.read() as session:
        scores = session.query(
            """
            SELECT model, health_score FROM model_health
            WHERE hour = (SELECT max(hour) FROM materialized_hours WHERE asset = 'model_health' AND hour <= ?)
            """,
            [(now or datetime.now(UTC)) - HOUR],
        )
    return best_of(dict(scores), candidates)
