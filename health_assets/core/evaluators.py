"""Evaluators: what the results of another tool's evaluator state (the `evaluators:` of the targets file).

What belongs here: one entry of that list, and which entry is an evaluator's. What does not: reading the targets file
(`targets`), and applying the entries to results (`scoring.evaluated_results`).

Patterns are those of `agent_names`: RE2 of the DuckDB that works in this process, whatever the warehouse is.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

import duckdb
from pydantic import BaseModel, ConfigDict, Field, model_validator

from health_assets.core.duckdb_errors import fault_of
from health_assets.core.sql_text import quoted
from health_assets.core.terminal import printable

SEVERITIES = ("low", "medium", "high")
"""How bad a violation may be."""
LOWER_IS_BETTER = "lower_is_better"
Limit = Annotated[float, Field(allow_inf_nan=False)]


class Evaluator(BaseModel):
    """A pattern of evaluators' names, what they state, and how their results become 0 (risk) to 1.

    Args:
        match: regular expression (RE2) that must match the whole name.
        signal: the signal that they state.
        violation: the severity of the violation that a result worse than `threshold` states, in place of a signal.
        outcome: whether a result worse than `threshold` states that the execution failed, in place of a signal.
        feedback: whether results are feedback of people, negative where they are worse than `threshold`; likewise.
        scale: the least and the greatest score; 0 and 1 by default.
        direction: whether the greatest score is the best or the worst.
        categories: by label, what it is worth; scores do not count then.
        threshold: the worst score that is no violation or failure, or with `categories` the least worth; by default the
            middle.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    match: Annotated[str, Field(min_length=1)]
    signal: Literal["confidence", "loop_detection", "tool_correctness", "coherence"] | None = None
    violation: Literal["low", "medium", "high"] | None = None
    outcome: Literal[True] | None = None
    feedback: Literal[True] | None = None
    scale: Annotated[list[Limit], Field(min_length=2, max_length=2)] | None = None
    direction: Literal["higher_is_better", "lower_is_better"] | None = None
    categories: Annotated[dict[str, Annotated[float, Field(ge=0, le=1)]], Field(min_length=1)] | None = None
    threshold: Limit | None = None

    @model_validator(mode="after")
    def _can_be_applied(self) -> "Evaluator":
        if [self.signal, self.violation, self.outcome, self.feedback].count(None) != 3:
            raise ValueError("an evaluator states a signal, a violation, an outcome or feedback; give one of them")
        if self.threshold is not None and self.signal is not None:
            raise ValueError(
                "threshold says from where on a result is a violation, a failure or negative, so it has no meaning "
                "beside signal"
            )
        if self.categories is not None and (self.scale is not None or self.direction is not None):
            other = "scale" if self.scale is not None else "direction"
            raise ValueError(f"categories say what each label is worth, so {other} has no meaning beside them")
        least, greatest = self.limits
        if least >= greatest:
            raise ValueError(
                f"scale must be [least, greatest], not [{least:g}, {greatest:g}]; where less is better, "
                f"add direction: {LOWER_IS_BETTER}"
            )
        if not least <= self.worst_allowed <= greatest:
            raise ValueError(f"threshold must be from {least:g} to {greatest:g}, not {self.worst_allowed:g}")
        if (fault := fault_of(f"regexp_full_match('', {quoted(self.match)})")) is not None:
            raise ValueError(f"{printable(self.match, 60)!r} is no pattern: {printable(fault, 80)}")
        return self

    @property
    def limits(self) -> tuple[float, float]:
        """The least and the greatest score."""
        least, greatest = self.scale or (0.0, 1.0)
        return least, greatest

    @property
    def worst_allowed(self) -> float:
        """The worst score, or with categories the least worth, that is no violation or failure."""
        least, greatest = self.limits
        return (least + greatest) / 2 if self.threshold is None else self.threshold

    @property
    def is_inverted(self) -> bool:
        """Whether the greatest score is the worst."""
        return self.direction == LOWER_IS_BETTER


def evaluators_of(names: Iterable[str], evaluators: Sequence[Evaluator]) -> dict[str, Evaluator]:
    """By name that some entry matches, the first that does."""
    if not evaluators:
        return {}
    branches = " ".join(
        f"WHEN regexp_full_match(name, {quoted(one.match)}) THEN {place}" for place, one in enumerate(evaluators)
    )
    with duckdb.connect() as connection:
        rows = connection.execute(
            f"SELECT name, CASE {branches} END AS place FROM (SELECT unnest(?::VARCHAR[]) AS name)", [list(names)]
        ).fetchall()
    return {name: evaluators[place] for name, place in rows if place is not None}
