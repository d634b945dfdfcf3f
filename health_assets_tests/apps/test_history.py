"""The history behind the pages holds what the warehouse holds, whatever changes there and in whatever steps."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from health_assets.apps.serving.history import exporter, history_folder
from health_assets.apps.serving.history.datasets import SERIES, WHOLE
from health_assets.apps.serving.history.exporter import fill
from health_assets.apps.serving.history.history_folder import HistoryInUseError
from health_assets.apps.serving.history.layout import ACCOUNT, read_account
from health_assets.apps.serving.history.reading import History
from health_assets.core.hours import HOUR, HourRange
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.pages_made import World, fill_all, world_of
from health_assets_tests.support.projects import FLEET, Project

HOURS = HourRange(START, START + 30 * HOUR)
"""More than a day, so that one day is put together and the next is not."""


def _lines(hours: HourRange, agents: int = 3) -> Iterator[str]:
    for hour in hours:
        for number in range(agents):
            yield line(execution(f"{hour:%d%H}-{number}", f"agent-{number}", hour + timedelta(minutes=number + 1)))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> World:
    project = Project(tmp_path_factory.mktemp("history"))
    project.write_log("a.jsonl", _lines(HOURS))
    project.materialize(HOURS)
    return world_of(project, HOURS)


def _copy(world: World, folder: Path) -> World:
    """The same hours and history in a folder of their own, which a test may change."""
    return world_of(world.project.copied(folder), world.hours)


def _scores(world: World, agent_id: str) -> list[tuple]:
    rows = world.history.of("agents", agent_id, world.hours).to_pylist()
    return [(row["hour"], row["health_score"], row["n"], row["failures"]) for row in rows]


def _expected(world: World, agent_id: str) -> list[tuple]:
    sql = "SELECT hour, health_score, n, failures FROM agent_health WHERE agent_id = ? ORDER BY hour"
    return world.project.query(sql, [agent_id])


def test_an_agent_s_hours_are_those_of_the_warehouse_across_days(written: World) -> None:
    for number in range(3):
        assert _scores(written, f"agent-{number}") == _expected(written, f"agent-{number}")
    assert len(_expected(written, "agent-0")) == len(HOURS)


def test_an_agent_that_nobody_knows_has_no_rows(written: World) -> None:
    assert written.history.of("agents", "agent-", HOURS).num_rows == 0
    assert written.history.of("agents", "zzz", HOURS).num_rows == 0


def test_the_face_of_an_hour_names_every_agent_once_in_order(written: World) -> None:
    for hour in (HOURS.start, HOURS.start + 5 * HOUR, HOURS.end - HOUR):
        rows = written.history.at("agents", hour)
        assert rows is not None
        assert rows.column("agent_id").to_pylist() == ["agent-0", "agent-1", "agent-2"]
        assert set(rows.column("hour").to_pylist()) == {hour}


def test_each_series_and_small_table_is_there(written: World) -> None:
    account = read_account(written.project.folder / "history")
    assert account is not None
    assert set(account.series) == {series.name for series in SERIES}
    assert set(account.whole) == set(WHOLE)


def test_a_day_that_is_over_is_one_file_and_the_newest_has_its_own(written: World) -> None:
    account = read_account(written.project.folder / "history")
    assert account is not None
    first, *_ = sorted(account.series["agents"].days)
    assert len(account.series["agents"].days[first]) == 1


def test_a_late_line_changes_the_hours_that_it_changes_in_the_warehouse(written: World, tmp_path: Path) -> None:
    world = _copy(written, tmp_path / "copy")
    project = world.project
    project.write_log(
        "late.jsonl", [line(execution("late", "agent-1", START + 3 * HOUR + timedelta(minutes=30), status="failure"))]
    )
    project.materialize(HOURS, only_stale=True, only=[*FLEET, "evidence_components", "score_evidence"])
    before = _scores(world, "agent-1")
    world.copy()
    assert _scores(world, "agent-1") == _expected(world, "agent-1") != before
    [error] = world.history.of("errors", "agent-1", HOURS).to_pylist()
    assert (error["failures"], error["error_class"]) == (1, None)


def test_a_filling_in_many_steps_ends_where_one_step_does(written: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporter, "HOLD_S", 0.0)
    folder = written.project.folder / "stepwise"
    steps = 1
    while fill(written.project.settings, folder, written.project.warehouse, HOURS.end)["missing"]:
        steps += 1
    history = History(folder)
    assert steps > 2
    for series in SERIES:
        assert history.hours(series.name) == written.history.hours(series.name), series.name
    for number in range(3):
        key = f"agent-{number}"
        assert history.of("agents", key, HOURS).to_pylist() == written.history.of("agents", key, HOURS).to_pylist()


def test_hours_are_copied_also_while_the_newest_one_changes_all_the_time(
    written: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporter, "HOLD_S", 0.0)
    monkeypatch.setattr(exporter, "SERIES", SERIES[:4])
    project, folder, newest = _copy(written, tmp_path / "copy").project, tmp_path / "anew", HOURS.end - HOUR
    later = "UPDATE partition_states SET materialized_at = materialized_at + INTERVAL 1 SECOND WHERE hour = ?"
    for _ in range(2 * 4):
        with project.warehouse.write() as session:
            session.query(later, [newest])
        fill(project.settings, folder, project.warehouse, HOURS.end)
    history = History(folder)
    for series in SERIES[:4]:
        assert {*written.history.hours(series.name)} - {newest} <= {*history.hours(series.name)}, series.name


def test_hours_beyond_the_days_kept_are_forgotten_and_their_files_removed(written: World, tmp_path: Path) -> None:
    world = _copy(written, tmp_path / "copy")
    project = world.project
    settings = project.settings.model_copy(update={"history_days": 1})
    folder = project.folder / "history"
    for _ in range(2):  # files that an older account names go one filling later
        fill_all(project, folder, HOURS.end, settings)
    world.history.look()
    assert world.history.hours("agents") == list(HOURS)[-24:]
    account = read_account(folder)
    assert account is not None
    left = {str(path.relative_to(folder)) for path in folder.rglob("*.arrow")}
    assert left >= account.paths()
    assert _scores(world, "agent-2") == _expected(world, "agent-2")[-24:]


def test_a_warehouse_without_new_hours_for_half_a_year_has_its_last_days(written: World, tmp_path: Path) -> None:
    world = _copy(written, tmp_path / "copy")
    fill_all(world.project, world.project.folder / "history", HOURS.end + 24 * 180 * HOUR)
    world.history.look()
    assert world.history.hours("agents") == list(HOURS)
    assert _scores(world, "agent-2") == _expected(world, "agent-2")


def test_the_history_of_another_warehouse_is_not_taken_for_this_one_s(written: World, tmp_path: Path) -> None:
    other = Project(tmp_path)
    other.write_log("a.jsonl", _lines(HourRange.of(START), agents=1))
    other.materialize(HourRange.of(START), only=FLEET)
    folder = tmp_path / "history"
    fill_all(written.project, folder, HOURS.end)
    fill_all(other, folder, HOURS.end)
    history = History(folder)
    assert history.hours("agents") == [START]


def test_two_processes_do_not_fill_one_folder_at_once(written: World, tmp_path: Path) -> None:
    with history_folder.held(tmp_path), pytest.raises(HistoryInUseError, match="another process fills"):
        fill(written.project.settings, tmp_path, written.project.warehouse, HOURS.end)
    assert not (tmp_path / ACCOUNT).exists()


def test_who_reads_by_an_older_account_looks_again_when_its_files_are_gone(written: World, tmp_path: Path) -> None:
    world = _copy(written, tmp_path / "copy")
    project = world.project
    reader = History(project.folder / "history")
    project.materialize(HOURS, only=FLEET)
    project.change("UPDATE partition_states SET materialized_at = materialized_at + INTERVAL '1 second'")
    for _ in range(3):
        world.copy()
    assert reader.of("agents", "agent-0", HOURS).num_rows == len(HOURS)
