"""The base of every alert rule: its settings, and the questions it answers about an hour."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from health_assets.apps.alerts.facts import Fact

UNKNOWN_FOR = timedelta(hours=24)
"""An incident that is older ends with an hour that says nothing about it, for lack of traffic."""

Severity = Literal["info", "warning", "critical"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)[::-1]
"""The worst first."""
Points = Annotated[float, Field(ge=0, le=100)]


def listed(value: Any) -> Any:
    """A list; a text alone is a list of one."""
    return [value] if isinstance(value, str) else value


def measures_of(known: Sequence[str]) -> Callable[[Any], Any]:
    """A validator of measures: a list, or one alone, of those that are known."""

    def validated(value: Any) -> Any:
        names = listed(value)
        if isinstance(names, list | tuple) and (unknown := [name for name in names if name not in known]):
            raise ValueError(f"{unknown[0]!r} is no measure; those are {', '.join(known)}")
        return names

    return validated


Names = Annotated[tuple[str, ...], BeforeValidator(listed)]


@dataclass(frozen=True)
class Opening:
    """An incident that opens.

    Args:
        reason: the event, in one sentence.
        recovers_at: score, or burn rate, from which on an hour is good again.
    """

    reason: str
    recovers_at: float | None = None


class Rule(BaseModel):
    """The settings that every rule has.

    Args:
        severity: how much it matters.
        channels: names of the channels that tell of it; all where none is named.
        only: patterns, like `payment-*`, of the subjects that it looks at.
        good_hours: consecutive good hours that close an incident.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    severity: Severity = "warning"
    channels: Names = ()
    only: Names = ("*",)
    good_hours: Annotated[int, Field(ge=1, le=168)] = 3

    name: ClassVar[str]
    looks_at: ClassVar[tuple[type[Fact], ...]]
    implied_by: ClassVar[tuple[str, ...]] = ()
    """Rules whose open incident of the same subject says as much already, so that none of this one opens."""

    def covers(self, fact: Fact) -> bool:
        """Whether it looks at the fact."""
        return type(fact) in self.looks_at and self.includes(fact.subject_id)

    def includes(self, subject_id: str) -> bool:
        """Whether it looks at this subject, as far as `only` goes."""
        return any(fnmatchcase(subject_id, pattern) for pattern in self.only)

    def opening(self, fact: Any) -> Opening | None:
        """The incident that opens with the fact, if any."""
        raise NotImplementedError

    def is_good(self, fact: Any, recovers_at: float | None) -> bool | None:
        """Whether an hour counts as good for an open incident; None where nothing is known."""
        raise NotImplementedError

    def recovery(self, fact: Any, opened_in: datetime) -> str:
        """Say in one sentence what is true now that an incident ended which that hour opened."""
        raise NotImplementedError

    def gives_up(self, fact: Any, opened_in: datetime) -> str | None:
        """Say why an incident ends without good hours, where an hour says nothing about it; None where it stays open.

        Args:
            fact: a fact of the hour.
            opened_in: the hour that opened the incident.
        """
        del fact, opened_in
        return None
