"""Parts of the data that a caller may see. `doors` says who the caller is."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class View:
    """A part of the data.

    Args:
        is_full: whether personal agents are shown in full, and error texts as the logs have them.
        teams: the teams whose agents are seen; None for all agents, also those of no team.
    """

    is_full: bool = False
    teams: frozenset[str] | None = None


EVERYBODYS = View()
"""What is not kept from anybody: all agents, personal ones coarse."""
