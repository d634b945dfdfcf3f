"""Frames that are validated together are judged as each of their columns by itself would be, row by row."""

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pandas as pd
import pytest

from health_assets.quality import validation
from health_assets.quality.expectations import (
    Expectation,
    at_least,
    between,
    equal,
    greater,
    not_null,
    one_of,
    unique,
)
from health_assets.quality.validation import Batch, unexpected_rows

LARGE = 2**53 + 1
VALUES: dict[str, Callable[[Random], Any]] = {
    "count": lambda random: random.choice([0, 1, 2, LARGE, LARGE + 1]),
    "other_count": lambda random: random.choice([0, 1, 2, LARGE]),
    "share": lambda random: random.choice([0.0, 0.5, 1.0, 1.5, -0.1, float("nan")]),
    "other_share": lambda random: random.choice([0.0, 0.5, 1.0]),
    "word": lambda random: random.choice(["good", "bad", None, "odd"]),
    "id": lambda random: random.choice(["a", "b", "c", "d", "e", None]),
    "at": lambda random: pd.Timestamp("2026-06-07", tz="UTC") + pd.Timedelta(hours=random.randrange(3)),
    "other_at": lambda random: pd.Timestamp("2026-06-07", tz="UTC") + pd.Timedelta(hours=random.randrange(3)),
    "nothing": lambda _: None,
}
EXPECTED = [
    *between(0, 1, "share", "other_share"), *between(0, None, "count", "other_count", "share", "nothing"),
    *between(None, LARGE, "count", "other_count"), *not_null("word", "share", "count", "nothing", "at"),
    *one_of("word", "good", "bad"), *one_of("id", "a", "b", "c", "d"), *at_least("at", "other_at"),
    *greater("count", "other_count"), *greater("share", "other_share"), *equal("count", "other_count"),
    *equal("at", "other_at"), *unique("id", "word"), *unique("count"), *unique("share"),
]  # fmt: skip


def breaks(expectation: Expectation, row: Sequence[Any], repeated: Counter) -> bool:
    """Whether a row breaks it; of uniqueness, whether its values stand in several rows."""
    told, missing = expectation.arguments, [pd.isna(value) for value in row]
    match expectation.type:
        case "ExpectColumnValuesToNotBeNull":
            return missing[0]
        case "ExpectColumnValuesToBeUnique" | "ExpectCompoundColumnsToBeUnique":
            return not all(missing) and repeated[tuple(None if pd.isna(value) else value for value in row)] > 1
    if any(missing):
        return False
    match expectation.type:
        case "ExpectColumnValuesToBeBetween":
            low, high = told["min_value"], told["max_value"]
            return not ((low is None or row[0] >= low) and (high is None or row[0] <= high))
        case "ExpectColumnValuesToBeInSet":
            return row[0] not in told["value_set"]
        case "ExpectColumnPairValuesAToBeGreaterThanB":
            return not (row[0] >= row[1] if told["or_equal"] else row[0] > row[1])
        case "ExpectColumnPairValuesToBeEqual":
            return bool(row[0] != row[1])
    raise AssertionError(expectation.type)


def reference(batch: Batch) -> list[set[int]]:
    found = []
    for expectation in batch.expectations:
        rows = [*zip(*(batch.frame[name].tolist() for name in expectation.columns), strict=True)]
        repeated = Counter(tuple(None if pd.isna(value) else value for value in row) for row in rows)
        found.append({place for place, row in enumerate(rows) if breaks(expectation, row, repeated)})
    return found


def batch_of(random: Random, rows: int) -> Batch:
    frame = pd.DataFrame({name: [value(random) for _ in range(rows)] for name, value in VALUES.items()})
    return Batch(frame, random.sample(EXPECTED, random.randrange(1, len(EXPECTED))))


@pytest.mark.parametrize("seed", range(12))
def test_batches_of_any_size_are_judged_together_as_a_reference_judges_each_row(seed: int) -> None:
    random = Random(seed)
    batches = [batch_of(random, random.choice([0, 1, 2, 5, 30])) for _ in range(random.randrange(1, 4))]
    assert unexpected_rows(batches) == [reference(batch) for batch in batches]


def test_what_is_expected_alike_is_asked_once_while_it_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    validated = validation._validated

    def counted(frame: pd.DataFrame, expectations: Sequence[Expectation], result_format: str) -> list[Any]:
        asked.append(len(expectations))
        return validated(frame, expectations, result_format)

    monkeypatch.setattr(validation, "_validated", counted)
    one = Batch(pd.DataFrame({"a": [0.1, 0.2], "b": [0.3, 0.4]}), between(0, 1, "a", "b"))
    other = Batch(pd.DataFrame({"c": [0.5]}), between(0, 1, "c"))
    assert unexpected_rows([one, other]) == [[set(), set()], [set()]]
    assert [count for count in asked if count] == [1]
    asked.clear()
    assert unexpected_rows([one, Batch(pd.DataFrame({"c": [2.0]}), between(0, 1, "c"))]) == [[set(), set()], [{0}]]
    assert [count for count in asked if count] == [1, 2, 1]
