"""Causes of the last hour's failures: the most frequent error, and the version, model or tool behind it.

What belongs here: which of several values is to blame for the failures beyond the expected ones. What does not:
counting them (`systems.explanations.common_values`). It imports no engine.

A value, such as a version, is named where it explains most of the excess:

    excess          = failures - executions * (1 - expected_success_rate)
    share of excess = (failures of its runs - its runs * (1 - expected_success_rate)) / excess

from `LEAST_SHARE` on. A tool that failed once in 257 calls, while all runs failed by something else, has a share near 0
and is not named. Neither is a version or model that all runs of the hour have and that runs succeeded with before the
trouble began. Of several values of a dimension only the greatest can be.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from health_assets.core.formatting import share
from health_assets.scoring.exact_shares import exact_share

Row = Mapping[str, Any]

LEAST_SHARE = Fraction(4, 5)
WORDS = {
    "version": "on version {}",
    "model": "with model {}",
    "tool": "in runs where tool {} failed",
    "called_model": "in runs where a call of model {} failed",
}
"""Dimensions in the order in which they are named, and how."""


@dataclass(frozen=True, kw_only=True)
class Cause:
    """A value that explains most of an hour's excess failures.

    Args:
        dimension: one of `WORDS`.
        value: the version, model or tool.
        executions: runs of the hour that have it.
        failures: how many of these failed.
        share_of_excess: the share of the excess that it explains, 0 to 1.
        is_only: whether every run of the hour has it.
    """

    dimension: str
    value: str
    executions: int
    failures: int
    share_of_excess: float
    is_only: bool

    @property
    def sentence(self) -> str:
        """The cause in words."""
        return f"{self.failures:,} of them {self.words}"

    @property
    def words(self) -> str:
        """The place of the failures: `on version 2.1`."""
        only = ", the only one that ran" if self.is_only and self.dimension in ("version", "model") else ""
        return WORDS[self.dimension].format(self.value) + only


def causes(now: Row, values: Sequence[Row], good_before: Collection[tuple[str, str | None]] = ()) -> list[Cause]:
    """The values that explain most of the excess failures of an hour; none where nothing failed beyond the expected.

    Args:
        now: the hour's `now_executions`, `now_failures` and `expected_success_rate` of the agent.
        values: rows of `systems.explanations.common_values.common_values` of the agent and hour.
        good_before: versions and models, as (dimension, value), of runs that succeeded before the trouble began.
    """
    expected_share = 1 - exact_share(now["expected_success_rate"])
    executions, failures = now["now_executions"] or 0, now["now_failures"] or 0
    excess = failures - executions * expected_share
    if excess <= 0:
        return []

    def explained(row: Row) -> Fraction:
        return (row["failures"] - row["executions"] * expected_share) / excess

    found = _named(values, explained, executions)
    return [cause for cause in found if not (cause.is_only and (cause.dimension, cause.value) in good_before)]


def _named(values: Sequence[Row], explained: Callable[[Row], Fraction], executions: int) -> Iterator[Cause]:
    for dimension in WORDS:
        of_it = [row for row in values if row["dimension"] == dimension]
        if not of_it:
            continue
        most = min(of_it, key=lambda row: (-explained(row), row["value"]))
        if explained(most) >= LEAST_SHARE:
            yield Cause(
                dimension=dimension, value=most["value"], executions=most["executions"], failures=most["failures"],
                share_of_excess=float(min(Fraction(1), explained(most))), is_only=most["executions"] == executions,
            )  # fmt: skip


def error_sentence(failures: int, error: str | None, count: int, *, is_withheld: bool = False) -> str:
    """The most frequent error of the hour's failures in words.

    Args:
        failures: failures of the hour.
        error: the first line of the most frequent error; None where the logs state none.
        count: how many failures have it.
        is_withheld: whether the reader may not see it.
    """
    if is_withheld:
        return "The error is withheld."
    if error is None:
        return "The logs state no error."
    every = "every one" if count == failures else f"{count:,} of {failures:,}, {share(count / failures)},"
    return f"{every[0].upper()}{every[1:]} with: {error}"
