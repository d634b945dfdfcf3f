"""Extensions of the documents that this product serves: the verdict on the agent's last hours."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from health_assets.consumer.document import ReadableDocument

EXTENSION_NOW = "org.health-assets.agent-now"
ALARMING = ("failing", "suspect")


@dataclass(frozen=True, kw_only=True)
class NowWord:
    """The verdict on an agent's last hours, where it is alarming.

    Args:
        verdict: one of `ALARMING`.
        since: when it began; None where that cannot be read.
    """

    verdict: str
    since: datetime | None


def alarm_of(document: ReadableDocument) -> NowWord | None:
    """The alarm that a document carries beside its status; None where it has none, or none that can be read."""
    told: Any = document.extensions.get(EXTENSION_NOW)
    verdict = told.get("verdict") if isinstance(told, dict) else None
    if verdict not in ALARMING:
        return None
    try:
        since = datetime.fromisoformat(told.get("since"))
    except (TypeError, ValueError):
        since = None
    return NowWord(verdict=verdict, since=since if since is not None and since.tzinfo is not None else None)
