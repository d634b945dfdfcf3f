"""Parts of the data that a caller may see. `auth` says who the caller is."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AccessScope:
    """A part of the data.

    Args:
        is_full: whether personal agents are shown in full.
        teams: the teams whose agents are seen; None for all agents, also those of no team.
        is_local_user: whether the caller runs the server on this machine, and so sees redacted texts of the logs.
    """

    is_full: bool = False
    teams: frozenset[str] | None = None
    is_local_user: bool = False

    @property
    def shows_texts(self) -> bool:
        """Whether texts of the logs are shown: to the full view, and to the local user."""
        return self.is_full or self.is_local_user


EVERYBODYS = AccessScope()
"""What is not kept from anybody: all agents, personal ones coarse."""
