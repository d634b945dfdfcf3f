"""The vocabulary of the suites: checks made of Great Expectations, and what breaks one, as an ibis condition.

What belongs here: declaring expectations without importing Great Expectations (which takes seconds) and translating
the few kinds that the suites use into conditions that the warehouse evaluates. What does not: which expectations a
table has (`systems.suites`) and running them (`evaluation`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import pandas as pd
from ibis import ir

from health_assets.quality import batches

Severity = Literal["error", "warn"]
ONE_COLUMN, COLUMNS = ("column", "column_A", "column_B"), "column_list"
"""The arguments of expectations that name one column, and several."""


@dataclass(frozen=True)
class Expectation:
    """One Great Expectations expectation.

    Args:
        type: class name in `great_expectations.expectations`.
        arguments: its keyword arguments.
    """

    type: str
    arguments: dict[str, Any]

    @property
    def columns(self) -> list[str]:
        """The columns that it looks at."""
        named = [self.arguments[key] for key in ONE_COLUMN if key in self.arguments]
        return named + list(self.arguments.get(COLUMNS, ()))

    def renamed(self, columns: Sequence[str]) -> "Expectation":
        """The same of other columns, in the order of `columns`."""
        if COLUMNS in self.arguments:
            return replace(self, arguments={**self.arguments, COLUMNS: [*columns]})
        keys = [key for key in ONE_COLUMN if key in self.arguments]
        return replace(self, arguments={**self.arguments, **dict(zip(keys, columns, strict=True))})

    def unexpected(self, rows: ir.Table) -> ir.BooleanValue:
        """Whether a row breaks the expectation, as Great Expectations defines it; never null.

        Raises:
            KeyError: the kind has no translation; add one to `_CONDITIONS`.
        """
        return _CONDITIONS[self.type](rows, self.arguments).fill_null(False)

    @property
    def is_known(self) -> bool:
        """Whether there is a translation of the kind, and words."""
        return self.type in _WORDS and (self.type in _CONDITIONS or self.is_uniqueness)

    @property
    def meaning(self) -> str:
        """The claim in words, with the names of columns: `asr is from 0 to 1`.

        Raises:
            KeyError: the kind has no words; add some to `_WORDS`.
        """
        return _WORDS[self.type](self.arguments)

    @property
    def is_uniqueness(self) -> bool:
        """Whether a row breaks it because of other rows, so that it cannot be judged row by row."""
        return self.type in ("ExpectCompoundColumnsToBeUnique", "ExpectColumnValuesToBeUnique")


def not_null(*columns: str) -> list[Expectation]:
    """Each column has a value in every row."""
    return [Expectation("ExpectColumnValuesToNotBeNull", {"column": column}) for column in columns]


def between(low: float | None, high: float | None, *columns: str) -> list[Expectation]:
    """Each column lies in [low, high] where it has a value; None leaves a side open."""
    return [
        Expectation("ExpectColumnValuesToBeBetween", {"column": column, "min_value": low, "max_value": high})
        for column in columns
    ]


def one_of(column: str, *values: Any) -> list[Expectation]:
    """The column has one of these values where it has one."""
    return [Expectation("ExpectColumnValuesToBeInSet", {"column": column, "value_set": list(values)})]


def unique(*columns: str) -> list[Expectation]:
    """No two rows agree in all of these columns."""
    if len(columns) == 1:
        return [Expectation("ExpectColumnValuesToBeUnique", {"column": columns[0]})]
    return [Expectation("ExpectCompoundColumnsToBeUnique", {"column_list": list(columns)})]


def at_least(column: str, other: str) -> list[Expectation]:
    """`column` >= `other` where both have values."""
    arguments = {"column_A": column, "column_B": other, "or_equal": True, "ignore_row_if": "either_value_is_missing"}
    return [Expectation("ExpectColumnPairValuesAToBeGreaterThanB", arguments)]


def greater(column: str, other: str) -> list[Expectation]:
    """`column` > `other` where both have values."""
    arguments = {"column_A": column, "column_B": other, "or_equal": False, "ignore_row_if": "either_value_is_missing"}
    return [Expectation("ExpectColumnPairValuesAToBeGreaterThanB", arguments)]


def equal(column: str, other: str) -> list[Expectation]:
    """`column` = `other` where both have values."""
    arguments = {"column_A": column, "column_B": other, "ignore_row_if": "either_value_is_missing"}
    return [Expectation("ExpectColumnPairValuesToBeEqual", arguments)]


def _breaks_between(rows: ir.Table, arguments: dict[str, Any]) -> ir.BooleanValue:
    column = rows[arguments["column"]]
    is_inside = column.notnull()
    if arguments["min_value"] is not None:
        is_inside &= column >= arguments["min_value"]
    if arguments["max_value"] is not None:
        is_inside &= column <= arguments["max_value"]
    return column.notnull() & ~is_inside


def _breaks_greater(rows: ir.Table, arguments: dict[str, Any]) -> ir.BooleanValue:
    left, right = rows[arguments["column_A"]], rows[arguments["column_B"]]
    return left < right if arguments["or_equal"] else left <= right


_CONDITIONS: dict[str, Callable[[ir.Table, dict[str, Any]], ir.BooleanValue]] = {
    "ExpectColumnValuesToNotBeNull": lambda rows, arguments: rows[arguments["column"]].isnull(),
    "ExpectColumnValuesToBeBetween": _breaks_between,
    "ExpectColumnValuesToBeInSet": lambda rows, arguments: rows[arguments["column"]].notin(arguments["value_set"]),
    "ExpectColumnPairValuesAToBeGreaterThanB": _breaks_greater,
    "ExpectColumnPairValuesToBeEqual": lambda rows, arguments: (
        rows[arguments["column_A"]] != rows[arguments["column_B"]]
    ),
}


def _listed(words: Sequence[Any], last: str) -> str:
    """Some words with commas, and another word before the last one."""
    told = [str(word) for word in words]
    return f"{', '.join(told[:-1])} {last} {told[-1]}" if len(told) > 1 else told[0]


def _lies_between(arguments: dict[str, Any]) -> str:
    column, low, high = (arguments[name] for name in ("column", "min_value", "max_value"))
    if low is None or high is None:
        return f"{column} is at least {low}" if high is None else f"{column} is at most {high}"
    return f"{column} is {low}" if low == high else f"{column} is from {low} to {high}"


_WORDS: dict[str, Callable[[dict[str, Any]], str]] = {
    "ExpectColumnValuesToNotBeNull": lambda arguments: f"{arguments['column']} has a value",
    "ExpectColumnValuesToBeBetween": _lies_between,
    "ExpectColumnValuesToBeInSet": lambda arguments: (
        f"{arguments['column']} is {_listed(arguments['value_set'], 'or')}"
    ),
    "ExpectColumnValuesToBeUnique": lambda arguments: f"no two rows have the same {arguments['column']}",
    "ExpectCompoundColumnsToBeUnique": lambda arguments: (
        f"no two rows have the same {_listed(arguments['column_list'], 'and')}"
    ),
    "ExpectColumnPairValuesAToBeGreaterThanB": lambda arguments: (
        f"{arguments['column_A']} is {'at least' if arguments['or_equal'] else 'more than'} {arguments['column_B']}"
    ),
    "ExpectColumnPairValuesToBeEqual": lambda arguments: f"{arguments['column_A']} equals {arguments['column_B']}",
}


@dataclass(frozen=True, kw_only=True)
class Check:
    """An expectation of an asset: one asset check, one line of history per hour.

    Args:
        name: says what is true when it passes.
        expectations: all must hold.
        severity: `error` where a failure would poison what follows (the check then blocks), `warn` where a person
            should look.
        batch: the batch of the suite that it looks at: `hours`, or a name in its `rows`.
    """

    name: str
    expectations: Sequence[Expectation]
    severity: Severity = "error"
    batch: str = "rows"

    @property
    def meaning(self) -> str:
        """The claims of all expectations, in words."""
        return "; ".join(dict.fromkeys(expectation.meaning for expectation in self.expectations))

    @property
    def is_uniqueness(self) -> bool:
        """Whether it is about repeated rows; such a check has one expectation."""
        return self.expectations[0].is_uniqueness


RowsMaker = Callable[[Any], ir.Table]
"""Makes rows, an expression with `hour`, from a `quality.batches.Source`."""

HoursMaker = Callable[[Any], pd.DataFrame]
"""Makes facts by hour, a small frame with `hour`, from a `quality.batches.Source`."""


@dataclass(frozen=True, kw_only=True)
class Suite:
    """The checks of one asset and what they look at.

    Args:
        asset: name of the asset and its table.
        checks: its checks.
        rows: makers of rows by name; the asset's own rows by default.
        hours: maker of the facts by hour; whether columns have their declared types by default.
        prefiltered: which of `rows` are only those of the asset's rows among which something may be wrong; a check of
            them has looked at all of the asset's.
    """

    asset: str
    checks: Sequence[Check]
    rows: Mapping[str, RowsMaker] = field(default_factory=lambda: {"rows": batches.rows})
    hours: HoursMaker = batches.hours
    prefiltered: frozenset[str] = frozenset()
