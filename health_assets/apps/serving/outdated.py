"""Answers from data that is too old to say how an agent is now."""

import json
import math
import re
from datetime import datetime, timedelta

from health_assets.apps.serving.answers import dumps
from health_assets.apps.serving.vocabulary import DATA_EXTENSION, EXTENSION_NOW

_STATUS = re.compile(rb'"status":"(?:healthy|degraded|unhealthy)"')
"""Matches a member of compact JSON only: within a string its quotes would be escaped."""
_NOW = re.compile(rb'"(now|now_since|now_sentence)":"(?:[^"\\]|\\.)*"')
"""Members that say what an agent does now."""


class DataAge:
    """The age up to which the newest hour counts as the present.

    Args:
        most_s: seconds from when the data ends; infinite for data that never counts as old.
    """

    def __init__(self, most_s: float) -> None:
        self.most_s = most_s

    def left_s(self, end: datetime, now: datetime) -> float:
        """Seconds until data that ends at a time is outdated; negative once it is."""
        return self.most_s - (now - end).total_seconds()

    def outdated_at(self, end: datetime, now: datetime) -> datetime | None:
        """The time at which data that ends at a time became outdated; None while it is not."""
        return None if self.left_s(end, now) >= 0 else end + timedelta(seconds=self.most_s)

    def cache_s(self, end: datetime, now: datetime, longest_s: int) -> int:
        """Seconds that an answer may be kept: no longer than until its data, which ends at a time, is outdated."""
        left_s = self.left_s(end, now)
        return longest_s if left_s < 0 else math.floor(min(longest_s, left_s))


def outdated_document(body: bytes) -> bytes:
    """A health document whose status is unknown, with the status of then in an extension, where it has extensions.

    What the agent does now is left out.
    """
    document = json.loads(body)
    health = document["health"]
    if "extensions" in document:
        told = {"is_outdated": True, "as_of": document["timestamp"], "status_then": health["status"]}
        document["extensions"][DATA_EXTENSION] = told
        document["extensions"].pop(EXTENSION_NOW, None)
    health["status"] = "unknown"
    return dumps(document)


def outdated_items(body: bytes) -> bytes:
    """The same of JSON that states the `status` of agents, and what they do now."""
    return _NOW.sub(rb'"\1":null', _STATUS.sub(b'"status":"unknown"', body))
