"""The tables of the corpus have the expected values."""

import math
from pathlib import Path

import pytest

from health_assets_tests.equality.corpus import Case, cases
from health_assets_tests.equality.digests import differences, digest, digests_of, expected_digests
from health_assets_tests.equality.histories import HISTORIES, build_project
from health_assets_tests.support.logs_made import START

ROWS = [{"hour": START, "agent_id": agent_id, "health_score": score} for agent_id, score in (("a", 0.1), ("b", 0.3))]
CASES = [
    pytest.param(
        case,
        history,
        id=f"{case.name}, {history}",
        marks=[pytest.mark.nightly] if case.is_nightly or history != "clean" else [],
    )
    for case in cases()
    for history in HISTORIES
    if case.name.startswith("random") or history == "clean"
]


@pytest.mark.parametrize(("case", "history"), CASES)
def test_every_column_of_every_table_has_the_expected_values(tmp_path: Path, case: Case, history: str) -> None:
    if not case.is_there:
        pytest.skip("the logs of this case are not part of the project")
    assert (
        differences(digests_of(build_project(case, tmp_path / "project", history)), expected_digests()[case.name]) == []
    )


def test_every_case_has_digests() -> None:
    assert {case.name for case in cases()} == expected_digests().keys()


def test_a_digest_knows_every_bit_and_no_order_of_rows() -> None:
    expected = {"agent_health": digest("agent_health", ROWS)}
    assert differences({"agent_health": digest("agent_health", ROWS[::-1])}, expected) == []
    others = [ROWS[0], ROWS[1] | {"health_score": math.nextafter(0.3, 1)}]
    found = {"agent_health": digest("agent_health", others)}
    assert differences(found, expected) == ["agent_health: other values of health_score"]


def test_a_table_with_fewer_rows_and_one_without_any_are_told() -> None:
    expected = {"agent_health": digest("agent_health", ROWS)}
    assert differences({"agent_health": digest("agent_health", ROWS[1:])}, expected) == ["agent_health: 1 rows, not 2"]
    assert differences({}, expected) == ["agent_health: no rows where there were some"]
    assert differences(expected, {}) == ["agent_health: rows where there were none"]
