"""Who is to blame for the failures of an hour: a value is named where it explains most of the excess."""

from typing import Any

import pytest

from health_assets.scoring.failure_causes import LEAST_SHARE, causes, error_sentence
from health_assets.scoring.verdict import now_sentence, now_word

NOW = {"now_executions": 20, "now_failures": 13, "expected_success_rate": 0.95}


def value(dimension: str, name: str, executions: int, failures: int) -> dict[str, Any]:
    return {"dimension": dimension, "value": name, "executions": executions, "failures": failures}


def named(*values: dict[str, Any], **changes: Any) -> list[tuple[str, str]]:
    return [(cause.dimension, cause.value) for cause in causes(NOW | changes, values)]


def test_thirteen_failures_of_one_version_name_it_and_no_tool_that_failed_once() -> None:
    values = [value("version", "2", 13, 13), value("version", "1", 7, 0), value("tool", "search", 1, 1)]
    assert named(*values) == [("version", "2")]
    [cause] = causes(NOW, values)
    # excess 13 - 20 x 0.05 = 12; of version 2: 13 - 13 x 0.05 = 12.35, more than all of it
    assert cause.share_of_excess == 1.0 and cause.words == "on version 2"


@pytest.mark.parametrize(("failures", "is_named"), [(10, False), (11, True)])
def test_a_value_is_named_from_the_least_share_of_the_excess_on(failures: int, is_named: bool) -> None:
    # (10 - 0.65) / 12 = 0.779 and (11 - 0.65) / 12 = 0.8625
    assert (named(value("tool", "search", 13, failures)) == [("tool", "search")]) is is_named
    assert 0.779 < LEAST_SHARE < 0.8625


def test_a_version_that_ran_well_before_and_is_the_only_one_says_nothing() -> None:
    values = [value("version", "2", 20, 13), value("model", "m", 20, 13)]
    found = causes(NOW, values, good_before={("version", "2")})
    assert [(cause.dimension, cause.words) for cause in found] == [("model", "with model m, the only one that ran")]


def test_failures_that_were_to_be_expected_have_no_cause() -> None:
    assert named(value("version", "2", 20, 1), now_failures=1) == []
    assert named(value("version", "2", 0, 0), now_executions=0, now_failures=0) == []


@pytest.mark.parametrize("rate", [0.9, 0.8, 0.7, 0.6])
def test_failures_of_exactly_the_expected_share_have_no_cause(rate: float) -> None:
    expected = round(10 * (1 - rate))
    values = [value("version", "A", 5, expected), value("version", "B", 5, 0)]
    assert named(*values, now_executions=10, now_failures=expected, expected_success_rate=rate) == []


def test_a_value_that_explains_exactly_the_least_share_is_named() -> None:
    """8 - 16 x 0.05 = 7.2 is 4 of 5 of 10 - 20 x 0.05 = 9, and a hair less in doubles."""
    assert named(value("version", "2", 16, 8), now_failures=10) == [("version", "2")]
    assert named(value("version", "2", 17, 8), now_failures=10) == []


def test_the_most_frequent_error_is_said_with_its_share() -> None:
    assert error_sentence(13, "401", 13) == "Every one with: 401"
    assert error_sentence(13, "401", 9) == "9 of 13, 69%, with: 401"
    assert error_sentence(13, None, 13) == "The logs state no error."
    assert error_sentence(13, None, 13, is_withheld=True) == "The error is withheld."


ROW = {
    "now": "failing", "now_executions": 12, "now_failures": 12, "now_executions_6h": 72, "now_failures_6h": 12,
    "now_failed_in_a_row": 12, "now_good_hours": None, "now_is_by_6h": False,
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, "FAILING now: 12 of 12 failed in the last hour"),
        ({"now_executions": 0, "now_failures": 0}, "FAILING now: the last 12 runs failed, none in the last hour"),
        ({"now_executions": 1, "now_failures": 1, "now_failed_in_a_row": 6}, "FAILING now: the last 6 runs failed"),
        ({"now": "suspect", "now_failures": 5}, "suspect now: 5 of 12 failed in the last hour"),
        ({"now": "suspect", "now_is_by_6h": True}, "suspect now: 12 of 72 failed in the last 6 hours"),
        (
            {"now": "recovering", "now_good_hours": 1, "now_failures": 0},
            "recovering, 1 of 3 good hours: all 12 runs of the last hour succeeded",
        ),
        ({"now": "quiet", "now_executions": 0, "now_failures": 0}, "quiet: nothing ran in the last hour"),
        ({"now": "ok", "now_executions": 1, "now_failures": 0}, "ok now: the last hour's run succeeded"),
        (
            {"now": "ok", "now_executions": 1, "now_failures": 1},
            "ok now: 1 of 1 failed in the last hour, which may be chance",
        ),
        ({"now": None}, ""),
    ],
)
def test_what_an_agent_does_now_is_one_sentence(changes: dict[str, Any], sentence: str) -> None:
    assert now_sentence(ROW | changes) == sentence
    assert now_word(ROW | changes) == sentence.partition(":")[0]
