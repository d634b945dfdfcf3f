"""The points at stake: those that something in the window tests. Expected values are by hand, from docs/scores.md."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from health_assets.core.hours import HOUR, HourRange
from health_assets.scoring.explanation import shown_points, untested
from health_assets.scoring.verdict import at_stake, stake_reservation
from health_assets_tests.support.examples import tried_with
from health_assets_tests.support.logs_made import START, Record, execution, line, trigger
from health_assets_tests.support.projects import ENGINES, Project, Row, hours_from
from health_assets_tests.systems.test_scores_equal_reference import FLEET, sums_and_targets, window_rows

ALL = {"expected_runtime_s": 60.0, "sla_s": 90.0}
TARGETS: dict[str, Any] = {
    "agents": {
        "all targets": ALL, "all targets, few runs": ALL, "all targets, no runtime": ALL, "all targets, no trigger": ALL,
        "eager": {"n_full": 3}, "limit alone": {"sla_s": 90.0}, "never ran": ALL,
    }
}  # fmt: skip


def runs(agent_id: str, count: int, **fields: Any) -> list[Record]:
    return [execution(f"{agent_id} {place}", agent_id, START + HOUR / 2, **fields) for place in range(count)]


RECORDS = [
    *runs("all targets", 20), trigger("t1", "all targets", START),
    *runs("all targets, few runs", 5, status="failure"), trigger("t2", "all targets, few runs", START, "failed"),
    *runs("all targets, no runtime", 20, is_timed=False), trigger("t3", "all targets, no runtime", START),
    *runs("all targets, no trigger", 20),
    *runs("eager", 2),
    *runs("limit alone", 20),
    *runs("no targets", 20, status="failure"),
    *runs("no targets, a flag", 20), *runs("no targets, a flag", 1, sla_breached=False),
    *runs("no targets, no runtime, a flag", 20, is_timed=False, sla_breached=True),
    *runs("no targets, own limit", 20, sla_s=70.0),
    trigger("t4", "never ran", START),
]  # fmt: skip
BY_HAND = {
    "all targets": 100,
    "all targets, few runs": 10 + 20 + 20 + 12 + 8,  # 5 of 20 runs, of 40 points
    "all targets, no runtime": 40 + 8,
    "all targets, no trigger": 92,
    "eager": 40 * 2 / 3,
    "limit alone": 40 + 12,
    "never ran": None,
    "no targets": 40,
    "no targets, a flag": 40 + 12,
    "no targets, no runtime, a flag": 40 + 12,
    "no targets, own limit": 40 + 12,
}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_part_is_at_stake_where_the_window_has_what_it_is_judged_by(tmp_path: Path, engine: str) -> None:
    project = replace(Project(tmp_path / "project", TARGETS), engine=engine)
    project.write_log("a.jsonl", map(line, RECORDS))
    project.materialize(HourRange.of(START), only=[*FLEET, "agent_health_short"])
    rows = {row["agent_id"]: row for row in project.rows("agent_health")}
    assert {name: row["points_at_stake"] for name, row in rows.items()} == pytest.approx(BY_HAND, abs=1e-9)
    short = {row["agent_id"]: row["points_at_stake"] for row in project.rows("agent_health_short")}
    assert short == pytest.approx({name: points for name, points in BY_HAND.items() if points is not None}, abs=1e-9)
    assert rows["all targets, few runs"]["sla_checked"] == 5 and rows["all targets, few runs"]["triggers"] == 1
    assert rows["no targets"]["health_score"] >= 60, "what is not at stake is not lost"


def test_what_left_the_window_is_not_at_stake(tmp_path: Path) -> None:
    project = Project(tmp_path / "project", TARGETS, 2, 9)
    project.write_log("a.jsonl", map(line, [*RECORDS, execution("late", "all targets", START + 2.5 * HOUR)]))
    project.materialize(hours_from(START, 3), only=FLEET)
    rows = {row["hour"]: row for row in project.rows("agent_health") if row["agent_id"] == "all targets"}
    assert [row["points_at_stake"] for _, row in sorted(rows.items())] == [100.0, 100.0, 2.0 + 40 + 12]


@tried_with(5, 60)
@given(st.lists(sums_and_targets(), min_size=1, max_size=40), st.sampled_from([1, 24]))
def test_points_that_are_not_at_stake_are_never_lost_and_are_named(
    cases: list[tuple[Row, Row]], window_hours: int
) -> None:
    targets = {f"{place:03}": own for place, (_, own) in enumerate(cases)}
    for row in window_rows([counts for counts, _ in cases], targets, window_hours):
        points = row["points_at_stake"]
        if not row["n"]:
            assert points is None and at_stake(row) == stake_reservation(row) == ""
            continue
        assert 0 <= points <= 100
        assert row["health_score"] >= 100 - points - 2e-9, row
        named = sum(float(part.split()[0].replace(",", "")) for part in untested(row))
        assert named == pytest.approx(100 - points, abs=0.3), "each of up to four numbers is rounded"
        assert (points == 100) is (untested(row) == []) is (at_stake(row) == "")


@pytest.mark.parametrize(
    ("points", "told"), [(40.0, "40"), (8.0, "8"), (26.6666, "26.7"), (99.99, "99.9"), (100.0, "100"), (0.04, "0.040")]
)
def test_points_are_written_without_needless_decimals_and_never_as_all_that_are_not(points: float, told: str) -> None:
    assert shown_points(points) == told
