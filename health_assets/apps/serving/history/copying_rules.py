"""The rules by which rows are marked: whose agents are whose, and how many others are enough.

What belongs here: what reader and server must both know of them, without an engine. What does not: marking
(`row_visibility`).
"""

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property

from health_assets.apps.serving.ownership import Ownership
from health_assets.core.settings import Settings


@dataclass(frozen=True)
class Rules:
    """Rules that decide whether an aggregate is shown to everybody.

    Args:
        ownership: whose the agents are.
        settings: windows, and how many other agents are enough.
    """

    ownership: Ownership
    settings: Settings

    @cached_property
    def fingerprint(self) -> str:
        """Changes with the rules."""
        told = [self.ownership.fingerprint, self.settings.min_agents_per_aggregate]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:12]

    @cached_property
    def has_owners(self) -> bool:
        """Whether any agent is somebody's own or a team's."""
        return self.ownership.has_personal or bool(self.ownership.teams)
