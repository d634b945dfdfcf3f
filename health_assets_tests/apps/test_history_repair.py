"""The history behind the pages mends itself: what is lost or damaged is copied again, and what is foreign stays alone."""

import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from health_assets.apps.serving.history import exporter
from health_assets.apps.serving.history import updater as updater_module
from health_assets.apps.serving.history.datasets import SERIES, WHOLE
from health_assets.apps.serving.history.exporter import fill
from health_assets.apps.serving.history.history_folder import NoHistoryError
from health_assets.apps.serving.history.layout import ACCOUNT, Kept, Part, read_account, write_account
from health_assets.apps.serving.history.reading import OPEN_FILES, History, LostFileError
from health_assets.apps.serving.history.updater import Updater
from health_assets.apps.serving.server import SPARE_FILES
from health_assets.core.hours import HOUR, HourRange
from health_assets.pipeline.retention import prune
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.pages_made import fill_all
from health_assets_tests.support.projects import FLEET, Project
from health_assets_tests.support.serving_made import ReaderInThisProcess, readers_in_this_process

HOURS = HourRange(START + 22 * HOUR, START + 26 * HOUR)
"""Two of one day and two of the next."""
RUNNING = HOURS.end
"""An hour that was written before it was over."""
NOW = RUNNING + timedelta(minutes=20)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    made = Project(tmp_path_factory.mktemp("repair"))
    lines = [
        line(execution(f"{agent}-{hour:%d%H}", agent, hour + timedelta(minutes=5), status="failure"))
        for hour in [*HOURS, RUNNING]
        for agent in ("blue", "red")
    ]
    made.write_log("a.jsonl", ["no line of a log", *lines])
    made.materialize(HourRange(HOURS.start, RUNNING + HOUR), only=FLEET)
    return made


@pytest.fixture(scope="module")
def filled(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("filled") / "history"
    fill_all(project, folder, NOW)
    return folder


@pytest.fixture
def folder(filled: Path, tmp_path: Path) -> Path:
    """A history of its own, which a test may spoil."""
    return shutil.copytree(filled, tmp_path / "history")


def updater_of(project: Project, folder: Path, clock: Callable[[], datetime] = updater_module.now) -> Updater:
    faults: list[str] = []
    settings = project.settings.model_copy(update={"history": folder, "history_days": 400})
    return Updater(settings, faults.append, clock)


def shown(history: History) -> list[object]:
    """Something of each kind of file."""
    face, whole = history.at("agents", HOURS.start), history.whole("materialized")
    assert face is not None and whole is not None
    kept = [history.of("agents", agent, HOURS).to_pylist() for agent in ("blue", "red")]
    return [*kept, face.to_pylist(), whole.to_pylist(), history.between("fleet", HOURS).to_pylist()]


# -- what is not the history's --


def test_a_folder_with_other_files_is_refused_and_nothing_in_it_changes(project: Project, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    files = {tmp_path / "health.duckdb": "a warehouse", tmp_path / "logs" / "a.jsonl": "a log"}
    for path, text in files.items():
        path.write_text(text)
    with pytest.raises(NoHistoryError, match="HEALTH_HISTORY must name a folder of its own"):
        fill(project.settings, tmp_path, project.warehouse, NOW)
    assert {path: path.read_text() for path in tmp_path.rglob("*") if path.is_file()} == files


def test_a_file_that_the_history_has_not_named_stays_in_its_folder(project: Project, folder: Path) -> None:
    (folder / "logs" / "deep").mkdir(parents=True)
    (folder.parent / "elsewhere").mkdir()
    (folder / "linked").symlink_to(folder.parent / "elsewhere")
    foreign = ["notes.txt", "logs/a.jsonl", "logs/deep/x.1.arrow", "agents/mine.arrow", "linked/x.1.arrow"]
    left = folder / "agents" / "2026-06-07.1.arrow"
    for path in (left, *(folder / name for name in foreign)):
        path.write_text("mine")
    fill(project.settings, folder, project.warehouse, NOW)
    assert all((folder / name).read_text() == "mine" for name in foreign)
    assert not left.exists(), "a file as the history names it, which no account has"


# -- what is lost or damaged --


@pytest.mark.parametrize("content", [b"{", b"[]", b"\0" * 99, b'{"format":1}', b"\xff"])
def test_an_account_that_cannot_be_read_is_none_and_all_is_copied_again(
    project: Project, folder: Path, content: bytes
) -> None:
    expected = shown(History(folder))
    (folder / ACCOUNT).write_bytes(content)
    history = History(folder)
    assert (history.version, history.newest("agents")) == (0, None)
    fill_all(project, folder, NOW)
    assert history.look()
    assert shown(history) == expected


def _truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _zeros(path: Path) -> None:
    path.write_bytes(b"\0" * path.stat().st_size)


@pytest.mark.parametrize("spoil", [_truncated, _zeros, Path.unlink], ids=["truncated", "zeros", "gone"])
@pytest.mark.parametrize("place", ["whole/materialized.*", "agents/*.face.*", "fleet/*", "agents/*.arrow.index"])
def test_a_lost_file_is_given_up_told_and_copied_again(
    project: Project, folder: Path, place: str, spoil: Callable[[Path], None]
) -> None:
    history = History(folder)
    expected = shown(History(folder))
    told: list[int] = []
    history.on_lost = lambda: told.append(history.lost)
    for path in folder.glob(place):
        spoil(path)
    with pytest.raises(LostFileError, match="is being copied again"):
        shown(history)
    assert _mended(project, folder, history) == expected
    assert told == list(range(1, history.lost + 1))


def _mended(project: Project, folder: Path, history: History) -> list[object]:
    """The pages once every lost file that somebody looked for has been copied again."""
    for _ in range(8):
        fill_all(project, folder, NOW)
        history.look()
        try:
            return shown(history)
        except LostFileError:
            continue
    raise AssertionError("files are lost for good")


def test_a_damaged_file_does_not_keep_its_day_from_being_put_together(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporter, "MOST_ROWS_AT_ONCE", 1)
    monkeypatch.setattr(exporter, "HOLD_S", 0.0)
    folder = tmp_path / "history"
    while True:  # until the older day has its first hour, of two
        assert fill(project.settings, folder, project.warehouse, NOW)["missing"]
        account = read_account(folder)
        assert account is not None
        if parts := account.series["agents"].days.get(f"{HOURS.start:%Y-%m-%d}"):
            break
    _zeros(folder / parts[0].path)
    fill_all(project, folder, NOW)
    rows = History(folder).of("agents", "blue", HOURS)
    assert rows.column("hour").to_pylist() == list(HOURS)


def test_the_disk_has_every_file_before_the_account_names_it(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    real = os.fsync

    def fsync(opened: int) -> None:
        synced.append(Path(f"/proc/self/fd/{opened}").readlink())
        real(opened)

    monkeypatch.setattr(os, "fsync", fsync)
    folder = tmp_path / "history"
    fill(project.settings, folder, project.warehouse, NOW)
    account = read_account(folder)
    assert account is not None
    assert synced[-1].name.startswith(ACCOUNT)
    assert {folder / path for path in account.paths()} <= set(synced[:-1])


def test_a_folder_that_is_removed_while_the_server_runs_is_made_again(project: Project, folder: Path) -> None:
    with readers_in_this_process():
        updater = updater_of(project, folder)
        updater._work()
        before, expected = updater.history.version, shown(updater.history)
        shutil.rmtree(folder)
        assert updater.history.between("fleet", HOURS).num_rows == 0, "there is nothing, which is no fault"
        updater._work()
    assert shown(updater.history) == expected
    assert updater.history.version > before, "what was remembered by a version is never taken for another"


# -- when there is something new --


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The requests of keepers, whose readers run in this process."""
    requests: list[object] = []

    class Counted(ReaderInThisProcess):
        def ask(self, request: dict, timeout_s: float) -> object:
            requests.append(request)
            return super().ask(request, timeout_s)

    monkeypatch.setattr(updater_module, "ReusedReader", Counted)
    return requests


def test_an_hour_that_ends_is_looked_for_though_no_file_has_changed(
    project: Project, folder: Path, asked: list[object]
) -> None:
    times = [datetime(2026, 6, 9, 13, 5, tzinfo=UTC)]
    fill_all(project, folder, times[-1])
    updater = updater_of(project, folder, lambda: times[-1])
    updater._work()
    updater._work()
    assert len(asked) == 1
    times.append(times[-1] + HOUR)
    updater._work()
    assert len(asked) == 2


def test_the_hour_that_runs_is_copied_and_one_that_has_not_begun_is_not(
    project: Project, folder: Path, tmp_path: Path
) -> None:
    assert History(folder).newest("agents") == RUNNING
    fill_all(project, tmp_path / "before", RUNNING - timedelta(minutes=1))
    assert History(tmp_path / "before").newest("agents") == RUNNING - HOUR


def test_a_filling_that_finds_nothing_new_leaves_the_account_and_all_files(project: Project, folder: Path) -> None:
    def files() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in folder.rglob("*.arrow*")} | {
            folder / ACCOUNT: (folder / ACCOUNT).stat().st_mtime_ns
        }

    before = files()
    fill(project.settings, folder, project.warehouse, NOW + timedelta(minutes=5))
    assert files() == before


def test_a_filling_that_finds_a_new_note_on_a_log_copies_nothing_else(project: Project, folder: Path) -> None:
    account = read_account(folder)
    assert account is not None
    before = account.paths()
    project.change("INSERT INTO raw_file_notes BY NAME SELECT 'a.jsonl' AS source_file, 'spare' AS note, 1 AS records")
    try:
        fill(project.settings, folder, project.warehouse, NOW)
    finally:
        project.change("DELETE FROM raw_file_notes WHERE note = 'spare'")
    after = read_account(folder)
    assert after is not None
    assert {path.split(".")[0] for path in after.paths() ^ before} == {"whole/file_notes"}


def test_a_database_that_has_nothing_new_gives_no_new_version(tmp_path: Path) -> None:
    own, hours = Project(tmp_path, engine="postgres"), HourRange(START, START + 2 * HOUR)
    own.write_log("a.jsonl", [line(execution(f"{hour:%H}", "blue", hour)) for hour in hours])
    own.materialize(hours, only=FLEET)
    folder = tmp_path / "history"
    fill_all(own, folder, hours.end)
    versions = [fill(own.settings, folder, own.warehouse, hours.end)["version"] for _ in range(2)]
    assert versions[0] == versions[1]
    own.materialize(HourRange.of(START), only=FLEET)
    assert fill(own.settings, folder, own.warehouse, hours.end)["version"] > versions[0]


def test_hours_that_are_still_to_be_copied_are_told_by_who_starts_anew(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporter, "HOLD_S", 0.0)
    told = fill(project.settings, tmp_path, project.warehouse, NOW)
    assert updater_of(project, tmp_path).history.missing == told["missing"] > 0


# -- what nobody wants any more --


def test_lines_that_retention_dropped_are_told_no_more_while_scores_stay(project: Project, tmp_path: Path) -> None:
    own = project.copied(tmp_path / "project")
    folder = tmp_path / "history"
    fill_all(own, folder, NOW)
    assert {one["lines"] for one in History(folder).between("rejected", HOURS).to_pylist()} == {1}
    prune(own.warehouse, ["evidence_components", "health_components"], HOURS.start + 2 * HOUR, 24)
    for _ in range(2):  # files that an older account names go one filling later
        fill(own.settings, folder, own.warehouse, NOW)
    history = History(folder)
    for series in ("errors", "events", "rejected"):
        assert not set(history.hours(series)) & {HOURS.start, HOURS.start + HOUR}, series
        assert not list((folder / series).glob(f"{HOURS.start:%Y-%m-%d}*")), series
    assert history.of("agents", "blue", HOURS).num_rows == len(HOURS)
    assert set(history.hours("runs")) >= {HOURS.start}, "a count tells nothing of a line"


def test_what_no_release_declares_any_more_goes_from_the_disk(project: Project, folder: Path) -> None:
    account = read_account(folder)
    assert account is not None
    account.series["gone"] = Kept("agent_id")
    account.series["gone"].add(Part("gone/2026-06-07.1.arrow", {HOURS.start.isoformat(): "x"}))
    account.whole["former"] = "whole/former.1.arrow"
    write_account(folder, account)
    (folder / "gone").mkdir()
    for path in ("gone/2026-06-07.1.arrow", "whole/former.1.arrow"):
        (folder / path).write_text("old")
    fill(project.settings, folder, project.warehouse, NOW - HOUR)  # which has other hours
    assert not list(folder.rglob("*.1.arrow"))
    after = read_account(folder)
    assert after is not None
    assert set(after.series) == {series.name for series in SERIES}
    assert set(after.whole) == set(WHOLE)


def test_every_hour_is_copied_again_where_what_is_copied_is_declared_otherwise(
    project: Project, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = History(folder)
    monkeypatch.setattr(exporter, "COPY", "another")
    fill_all(project, folder, NOW)
    account, old = read_account(folder), before._account
    assert account is not None
    for series in SERIES:
        stamps = account.series[series.name].stamps()
        assert stamps.keys() == old.series[series.name].stamps().keys()
        assert not set(stamps.values()) & set(old.series[series.name].stamps().values())


def test_files_that_are_kept_open_leave_the_connections_theirs() -> None:
    assert SPARE_FILES >= OPEN_FILES + 100
