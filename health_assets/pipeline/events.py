"""Events of a run, as the engine yields them: for Dagster, for the command line, for a test.

What belongs here: what happened, in plain values. What does not: making it happen (`engine`) and showing it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from health_assets.core.hours import HourGroups

if TYPE_CHECKING:
    import pandas as pd

    from health_assets.quality.expectations import Severity

ROWS = "rows"
"""Under this key stands a number of rows, of a run or of an hour."""
HourlyNumbers = Mapping[datetime, Mapping[str, int | float]]
"""Numbers by name, by hour; a number that an hour does not have is left out."""


@dataclass(frozen=True)
class Markdown:
    """A text with tables and lists."""

    text: str


@dataclass(frozen=True)
class Link:
    """An address to follow."""

    url: str


Value = int | str | Markdown | Link | list[Any]
"""A value of metadata; a list holds what JSON can."""
Metadata = Mapping[str, Value]


@dataclass(frozen=True)
class StepStarted:
    """A step begins."""

    step: str


@dataclass(frozen=True)
class StepFinished:
    """A step has ended, whatever its checks say."""

    step: str


@dataclass(frozen=True)
class StepFailed:
    """A step has ended with an error."""

    step: str


@dataclass(frozen=True)
class StepSkipped:
    """A step is left out, since one that it follows from failed, or has a failing check."""

    step: str


@dataclass(frozen=True, kw_only=True)
class Materialized:
    """Hours of an asset were made.

    Args:
        asset: the asset.
        hours: the hours asked for.
        metadata: a summary of them.
        numbers: numbers of each of the plan's `metadata_hours`.
        earlier_hours: hours of the look-back that were made besides those asked for.
    """

    asset: str
    hours: HourGroups
    metadata: Metadata
    numbers: HourlyNumbers = field(default_factory=dict)
    earlier_hours: Sequence[datetime] = ()


@dataclass(frozen=True, kw_only=True)
class Checked:
    """A check of an asset has judged hours.

    Args:
        asset: the asset.
        check: name of the check, which says what is true when it passes.
        severity: whether a failure stops what follows.
        passed: whether every hour passes.
        hours_text: the hours that were judged, in words; None of a check that is about no hours.
        element_count: rows that were looked at; None where the check counts none.
        unexpected_count: rows that fail it.
        failed_hours: the hours that fail it.
        samples: some of the rows that fail it; None where no rows were looked at.
        metadata: details.
    """

    asset: str
    check: str
    severity: "Severity"
    passed: bool
    hours_text: str | None = None
    element_count: int | None = None
    unexpected_count: int
    failed_hours: Sequence[datetime] = ()
    samples: "pd.DataFrame | None" = None
    metadata: Metadata = field(default_factory=dict)

    @property
    def blocks(self) -> bool:
        """Whether it stops what follows."""
        return not self.passed and self.severity == "error"


Event = StepStarted | StepFinished | StepFailed | StepSkipped | Materialized | Checked
