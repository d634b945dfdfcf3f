"""A lake is swept: what nobody published goes after a while, and nothing that anybody may need."""

import os
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

pytest.importorskip("pysail", reason="the extra `spark` is not installed")

from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HOUR, HourRange
from health_assets.warehouse.engines.spark.lake import GRACE, SCRATCH, SWEPT_FILE
from health_assets.warehouse.engines.spark.lake_files import write_rows
from health_assets.warehouse.engines.spark.lake_place import LakePlace
from health_assets.warehouse.engines.spark.tables import LAKE_TABLES
from health_assets.warehouse.store import Warehouse
from health_assets_tests.support.lakes_made import rows_of_hours
from health_assets_tests.support.logs_made import START
from health_assets_tests.support.spark_servers import sail

TABLE = "system_health"
FIRST = HourRange.of(START)
TWO = HourRange(START, START + 2 * HOUR)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with sail() as made:
        yield made


class Swept:
    """A warehouse with two hours of a table, and its lake."""

    def __init__(self, url: str, folder: Path) -> None:
        self.warehouse = Warehouse(url, lake=str(folder / "lake"), ledger=str(folder / "ledger.duckdb"))
        self.place = LakePlace(str(folder / "lake"))
        self.lake = folder / "lake"
        with self.warehouse.write() as session:
            session.insert_arrow(TABLE, rows_of_hours(list(TWO)))
        self.published = self.folders()

    def folders(self) -> set[Path]:
        return {path for above in (TABLE, SCRATCH) for path in (self.lake / above).glob("*")}

    def left_by_a_run_that_was_killed(self) -> set[Path]:
        """A folder of rows, one without any, and one that a session kept."""
        before = self.folders()
        write_rows(self.place, TABLE, rows_of_hours(list(TWO)))
        (self.lake / TABLE / ("0" * 32)).mkdir()
        (self.lake / SCRATCH / "ibis_kept_x").mkdir(parents=True)
        return self.folders() - before

    def make_old(self) -> None:
        """Let everything be older than any folder may be that somebody needs."""
        long_ago = (datetime.now(UTC) - 2 * GRACE).timestamp()
        for path in [*self.lake.rglob("*")]:
            os.utime(path, (long_ago, long_ago))

    def write(self) -> None:
        with self.warehouse.write():
            pass

    def count(self) -> int:
        with self.warehouse.read() as session:
            return session.count_hours(TABLE, TWO)


@pytest.fixture
def swept(url: str, tmp_path: Path) -> Swept:
    return Swept(url, tmp_path)


def test_what_a_killed_run_left_goes_once_it_is_old_and_what_is_published_stays(swept: Swept) -> None:
    left = swept.left_by_a_run_that_was_killed()
    assert len(left) == 3
    swept.write()
    assert swept.folders() == swept.published | left, "a cluster may still be at work there"
    swept.make_old()
    swept.write()
    assert swept.folders() == swept.published and swept.count() == 2


def test_folders_that_are_none_of_ours_stay(swept: Swept) -> None:
    """As those of raw logs, where somebody named their folder for a lake."""
    logs = swept.lake / "executions" / "2026-11-19"
    logs.mkdir(parents=True)
    (logs / "a.jsonl").touch()
    swept.make_old()
    swept.write()
    assert (logs / "a.jsonl").exists()


def test_a_folder_goes_a_while_after_the_commit_that_replaced_it_however_long_that_took(swept: Swept) -> None:
    """A reader that begins before the commit sees it."""
    with swept.warehouse.write() as session:
        session.delete_hours(TABLE, TWO)
        assert session.query("SELECT DISTINCT withdrawn_at FROM lake_withdrawn") == [(None,)]
    swept.make_old()
    for _ in range(2):
        swept.write()
        assert swept.folders() == swept.published
    with swept.warehouse.write() as session:
        [(withdrawn_at,)] = session.query("SELECT DISTINCT withdrawn_at FROM lake_withdrawn")
        assert withdrawn_at is not None and session.now() - withdrawn_at < HOUR


def test_a_folder_of_which_an_hour_was_withdrawn_stays_for_the_others(swept: Swept) -> None:
    with swept.warehouse.write() as session:
        session.delete_hours(TABLE, FIRST)
    swept.make_old()
    swept.write()
    assert swept.folders() == swept.published and swept.count() == 1
    with swept.warehouse.write() as session:
        session.delete_hours(TABLE, TWO)
    swept.make_old()
    swept.write()
    assert swept.folders() == swept.published, "readers that began before may still need it"
    with swept.warehouse.write() as session:
        session.query("UPDATE lake_withdrawn SET withdrawn_at = ?", [session.now() - 2 * GRACE])
    swept.make_old()
    swept.write()
    swept.make_old()  # its last hour has just gone
    swept.write()
    assert swept.folders() == set()


def test_where_folders_have_no_time_the_newest_file_tells_how_old_they_are(
    swept: Swept, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a bucket, where a folder without a file is none."""
    folders_in = LakePlace.folders_in
    monkeypatch.setattr(LakePlace, "folders_in", lambda *named: dict.fromkeys(folders_in(*named)))
    swept.make_old()
    old, young = (write_rows(swept.place, TABLE, rows_of_hours(list(TWO))).folder for _ in range(2))
    swept.make_old()
    [file] = (swept.lake / young).glob(f"*={START:%Y%m%d%H}/*")
    file.touch()
    swept.write()
    assert (swept.lake / young).exists() and not (swept.lake / old).exists()


def test_each_folder_of_a_table_is_listed_once_an_hour_and_no_more(
    swept: Swept, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed: Counter[str] = Counter()
    folders_in = LakePlace.folders_in

    def counted(place: LakePlace, folder: str) -> dict[str, datetime | None]:
        listed[folder] += 1
        return folders_in(place, folder)

    monkeypatch.setattr(LakePlace, "folders_in", counted)
    swept.write()
    assert not listed
    swept.make_old()
    for _ in range(3):
        swept.write()
    assert listed == Counter({*LAKE_TABLES, SCRATCH})
    assert (swept.lake / SWEPT_FILE).exists()


def test_what_cannot_be_removed_is_told_in_a_sentence(swept: Swept, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the cluster writes as another user."""

    def refuse(_: LakePlace, folder: str) -> None:
        raise PermissionError(f"cannot delete {folder}")

    swept.left_by_a_run_that_was_killed()
    swept.make_old()
    monkeypatch.setattr(LakePlace, "remove", refuse)
    with (
        pytest.raises(HealthAssetsError, match=r"cannot remove what nobody needs .* cannot delete"),
        swept.warehouse.write(),
    ):
        pass
    monkeypatch.undo()
    swept.make_old()
    swept.write()
    assert swept.folders() == swept.published
