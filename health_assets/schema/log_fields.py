"""Fields of the log format's lines, declared with the columns that hold them: which values each may have.

What belongs here: kinds of fields, as data. What does not: the SQL that reads and judges them (`logs.native_fields`).
"""

from dataclasses import dataclass, field, replace
from typing import Any, Self

SIGNALS = ("confidence", "loop_detection", "tool_correctness", "coherence")
"""The signals of a session score, each from 0 (risk) to 1."""


@dataclass(frozen=True, kw_only=True)
class LogField:
    """A field of a line.

    Args:
        name: its name in the line; where empty, the name of the column that holds it.
        is_required: whether a line without it is rejected.
        sample: a value that it may have, as JSON holds it; of a choice its first word, where none is given.
    """

    name: str = ""
    is_required: bool = False
    sample: Any = None

    @property
    def example(self) -> Any:
        """A value that it may have."""
        return self.sample

    def of_column(self, column: str) -> Self:
        """The field with its name, where a column of this name holds it."""
        return self if self.name else replace(self, name=column)


@dataclass(frozen=True, kw_only=True)
class Name(LogField):
    """An id or a name, at most 1 KiB, not empty."""

    sample: Any = "a-1"


@dataclass(frozen=True, kw_only=True)
class ShortText(LogField):
    """A text as short as a name, which may be empty."""

    sample: Any = "1.2.0"


@dataclass(frozen=True, kw_only=True)
class FreeText(LogField):
    """A text of any length, without its secrets and cut at 64 KiB."""

    sample: Any = "TimeoutError: no answer in 30 s"


@dataclass(frozen=True, kw_only=True)
class Content(LogField):
    """Any JSON value, of which only a salted digest is kept.

    Args:
        masks_ids: whether ids of calls and times in it make no difference.
    """

    masks_ids: bool = True
    sample: Any = field(default_factory=lambda: {"query": "invoice 12"})


@dataclass(frozen=True, kw_only=True)
class TaskInput(LogField):
    """What a run was asked, any JSON value, of which only a salted digest is kept.

    Times, ids, numbers of more than 5 digits, spaces and letters' case in it make no difference.
    """

    sample: Any = "Which invoices are overdue?"


@dataclass(frozen=True, kw_only=True)
class UserId(LogField):
    """The id of a user, a text or a number, of which only a salted digest is kept unless a setting keeps the id."""

    sample: Any = "u-17"


@dataclass(frozen=True, kw_only=True)
class Choice(LogField):
    """One of a few words.

    Args:
        words: the words.
    """

    words: tuple[str, ...]

    @property
    def example(self) -> Any:
        """See `LogField.example`."""
        return self.sample or self.words[0]


@dataclass(frozen=True, kw_only=True)
class Number(LogField):
    """A finite number from 0 on.

    Args:
        most: the greatest value; None where there is no limit.
    """

    sample: Any = 0.5
    most: float | None = None


@dataclass(frozen=True, kw_only=True)
class Score(LogField):
    """A finite number of any scale, or true or false as 1 or 0."""

    sample: Any = 4


@dataclass(frozen=True, kw_only=True)
class Count(LogField):
    """A whole number from 0 to 2^63 - 1."""

    sample: Any = 3


@dataclass(frozen=True, kw_only=True)
class Flag(LogField):
    """True or false."""

    sample: Any = True


@dataclass(frozen=True, kw_only=True)
class Time(LogField):
    """ISO 8601, or epoch seconds or milliseconds, in the years 2000 to 2099."""

    sample: Any = "2026-06-07T13:00:00Z"


@dataclass(frozen=True, kw_only=True)
class Names(LogField):
    """A list of names."""

    sample: Any = ("search", "summarize")


@dataclass(frozen=True, kw_only=True)
class Violations(LogField):
    """A list of constraints that were violated, each with its severity."""

    sample: Any = ({"constraint": "no_pii", "severity": "high"},)


@dataclass(frozen=True, kw_only=True)
class Signals(LogField):
    """An object of `SIGNALS`, any of which may be missing."""

    sample: Any = field(default_factory=lambda: {SIGNALS[0]: 0.9})
