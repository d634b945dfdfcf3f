"""Published tables: they equal the warehouse's, only what changed is written, and readers never see anything half done."""

import fcntl
import json
import random
import re
import shutil
import signal
import stat
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

import dagster as dg
import duckdb
import pandas as pd
import pytest

from health_assets.apps.alerts.alert_rows import append_rows
from health_assets.apps.serving.startup_publishing import StartupPublishing
from health_assets.apps.serving.writer_process import write
from health_assets.core.errors import HealthAssetsError, NoWarehouseError
from health_assets.core.hours import HOUR, HourGroups, HourRange
from health_assets.core.settings import Settings
from health_assets.defs.build import build_definitions
from health_assets.pipeline.log_ingestion import load_new_logs
from health_assets.pipeline.publishing import LOCK, has_unpublished, publish, publish_if_configured
from health_assets.schema.catalog import ALL_TABLES, columns_of
from health_assets.warehouse.engines.published.manifest import KEPT_S, PRIVATE, PUBLISHED, read_manifest
from health_assets.warehouse.engines.published.views import VIEWS
from health_assets.warehouse.location import MANIFEST, account_file, as_published, published_folder, warehouse_name
from health_assets.warehouse.partition_states import PartitionStates
from health_assets.warehouse.store import Warehouse
from health_assets_tests.support.logs_made import START, cut_into_files, execution, line, random_lines
from health_assets_tests.support.projects import (
    FLEET,
    Project,
    Row,
    assert_same_tables,
    forked_command,
    hours_from,
    in_a_process,
)
from health_assets_tests.support.serving_made import readers_in_this_process, served
from health_assets_tests.support.traces_made import in_lines, random_spans

HOURS = hours_from(START, 52)
"""Two days and four hours: the first day is old enough to be one file."""
NEWEST = HourRange(HOURS.end - 6 * HOUR, HOURS.end)
NOW = datetime(2026, 6, 9, 5, tzinfo=UTC)


def made(folder: Path, engine: str) -> Project:
    """Logs of three days, with an hour of the first and the last ones materialized."""
    project = Project(folder / "project", {"agents": {"listed": {}}}, 6, 24, engine=engine)
    chance = random.Random(5)
    for name, lines in cut_into_files(chance, random_lines(chance, 600, len(HOURS))).items():
        project.write_log(name, lines)
    project.write_log("traces.jsonl", in_lines(chance, random_spans(chance, 12, len(HOURS))))
    project.materialize(HourGroups.of([START + 5 * HOUR, *NEWEST]))
    return project


@pytest.fixture(scope="module", params=["duckdb", "postgres"])
def made_once(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Project:
    return made(tmp_path_factory.mktemp("made"), request.param)


@pytest.fixture(scope="module")
def in_duckdb(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Another on DuckDB, with the steps of one system and published once."""
    project = Project(tmp_path_factory.mktemp("published") / "project", {"agents": {}}, 2, 24)
    for hour in HOURS:
        runs = [execution(f"{agent} {hour:%dT%H}", agent, hour + HOUR / 2, session_id="s") for agent in "ab"]
        project.write_log(f"{hour:%dT%H}.jsonl", map(line, runs))
    project.materialize(HOURS, only=FLEET)
    published_by(project)
    return project


@pytest.fixture
def project(in_duckdb: Project, tmp_path: Path) -> Project:
    """A copy of it, which a test may change."""
    return in_duckdb.copied(tmp_path / "project")


def published_by(project: Project, now: datetime = NOW) -> Project:
    """Publish a project's tables beside them; gives a project whose warehouse they are."""
    folder = project.folder / "published"
    publish(project.settings, folder, clock=lambda: now)
    return replace(project, engine="published", url=str(folder))


def publish_once(settings: Settings, folder: Path) -> None:
    publish(settings, folder)


def tables_of(project: Project) -> dict[str, list[Row]]:
    return {name: [*map(in_utc, rows)] for name, rows in project.tables(names=PUBLISHED).items()}


def in_utc(row: Row) -> Row:
    """A row whose times are written the same whichever driver read them."""
    return {name: value.astimezone(UTC) if isinstance(value, datetime) else value for name, value in row.items()}


def files_of(project: Project, table: str) -> dict[str, str]:
    manifest = read_manifest(project.folder / "published")
    assert manifest is not None
    return {period: file.path for period, file in manifest.tables[table].files.items()}


def ids_of(project: Project) -> set[str]:
    return {row["execution_id"] for row in project.rows("executions")}


def log_hour(project: Project, hour: datetime, name: str) -> None:
    project.write_log(f"{name}.jsonl", [line(execution(name, "a", hour + HOUR / 3))])


def test_every_table_has_the_rows_of_the_warehouse(made_once: Project) -> None:
    found, expected = tables_of(published_by(made_once)), tables_of(made_once)
    assert_same_tables(found, expected)
    with_rows = {name for name, rows in expected.items() if rows}
    assert {"spans", "executions", "agent_health", "session_scores", "release_comparison", "raw_files"} <= with_rows


def test_the_salt_is_published_nowhere(project: Project) -> None:
    project.change("INSERT INTO digest_salt VALUES ('abc')")
    assert published_by(project).query("SELECT salt FROM digest_salt") == []
    assert not any((project.folder / "published" / name).exists() for name in PRIVATE)


def test_a_day_is_one_file_and_the_newest_two_are_one_an_hour(in_duckdb: Project) -> None:
    files = files_of(in_duckdb, "agent_health")
    by_hour = [f"{day}T{hour:02}" for day, count in (("2026-06-08", 24), ("2026-06-09", 4)) for hour in range(count)]
    assert sorted(files) == ["2026-06-07", *by_hour]
    assert all(path.startswith(f"agent_health/day={period[:10]}/") for period, path in files.items())


def test_what_has_not_changed_is_not_written_again(project: Project) -> None:
    again = publish(project.settings, project.folder / "published")
    assert again.files > 0  # it was copied, and is another warehouse
    manifest = (project.folder / "published" / MANIFEST).read_bytes()
    assert publish(project.settings, project.folder / "published").files == 0
    assert (project.folder / "published" / MANIFEST).read_bytes() == manifest


def test_a_late_line_writes_its_day_again_and_no_hour_of_another(project: Project) -> None:
    published_by(project)
    before = files_of(project, "executions")
    log_hour(project, START + 3 * HOUR, "late")
    project.materialize(HourRange.of(START + 3 * HOUR), only=FLEET)
    found = published_by(project)
    after = files_of(project, "executions")
    assert {period for period in after if after[period] != before[period]} == {"2026-06-07"}
    assert_same_tables(tables_of(found), tables_of(project))


def test_when_a_new_day_begins_the_hours_of_the_day_before_yesterday_become_one_file(project: Project) -> None:
    published_by(project)
    begins = datetime(2026, 6, 10, tzinfo=UTC)
    log_hour(project, begins, "new")
    project.materialize(HourRange.of(begins), only=FLEET)
    found = published_by(project)
    assert "2026-06-08" in files_of(project, "executions")
    assert not any(period.startswith("2026-06-08T") for period in files_of(project, "executions"))
    assert_same_tables(tables_of(found), tables_of(project))


def test_hours_that_are_loaded_and_not_materialized_are_not_published(project: Project) -> None:
    """A day's file would else hold rows that nobody notices to change."""
    log_hour(project, START - 2 * HOUR, "before")
    log_hour(project, START - 20 * HOUR, "long before")
    project.materialize(HourRange.of(START - 20 * HOUR), only=FLEET)
    found = published_by(project)
    assert {"before", "long before"} <= ids_of(project)
    assert START - 2 * HOUR not in project.built_hours("executions")
    assert ids_of(project) - ids_of(found) == {"before"}


def test_a_reader_keeps_what_it_began_with_and_replaced_files_go_a_quarter_of_an_hour_later(project: Project) -> None:
    found = published_by(project)
    old = set(files_of(project, "agent_health").values())
    with found.warehouse.read() as session:
        before = session.query("SELECT count(*) FROM executions")
        log_hour(project, HOURS.end, "next")
        project.materialize(HourRange.of(HOURS.end), only=FLEET)
        published_by(project, NOW + timedelta(seconds=1))
        assert session.query("SELECT count(*) FROM executions") == before
    assert found.query("SELECT count(*) FROM executions") == [(before[0][0] + 1,)]
    log_hour(project, START, "late")
    project.materialize(HourRange.of(START), only=FLEET)
    published_by(project, NOW + timedelta(seconds=2))
    folder = project.folder / "published"
    replaced = old - set(files_of(project, "agent_health").values())
    assert replaced
    assert all((folder / path).exists() for path in replaced)
    log_hour(project, START, "later")
    project.materialize(HourRange.of(START), only=FLEET)
    published_by(project, NOW + timedelta(seconds=KEPT_S + 3))
    published_by(project, NOW + timedelta(seconds=KEPT_S + 4))
    assert not any((folder / path).exists() for path in replaced)


def test_a_publication_that_is_killed_leaves_the_one_before_and_the_next_one_mends_it(project: Project) -> None:
    found = published_by(project)
    before = tables_of(found)
    folder = project.folder / "published"
    log_hour(project, START, "late")
    log_hour(project, HOURS.end, "next")
    project.materialize(HourGroups.of([START, HOURS.end]), only=FLEET)
    expected = tables_of(project)
    chance, killed = random.Random(3), 0
    for _ in range(8):
        process = in_a_process(publish_once, project.settings, folder)
        time.sleep(chance.uniform(0.05, 1.2))
        process.kill()
        process.join()
        killed += process.exitcode == -signal.SIGKILL
        seen = tables_of(found)
        assert_same_tables(seen, before if seen["executions"] == before["executions"] else expected)
    assert killed
    assert_same_tables(tables_of(published_by(project)), expected)
    named = read_manifest(folder)
    assert named is not None
    there = {str(path.relative_to(folder)) for path in folder.rglob("*.parquet")}
    assert there == named.paths() | named.replaced.keys()


def test_readers_beside_publications_see_one_or_the_other(project: Project) -> None:
    found = published_by(project)
    counts = set()

    def look() -> tuple[int, int]:
        with found.warehouse.read() as session:
            [(executions,)] = session.query("SELECT count(*) FROM executions")
            [(health,)] = session.query("SELECT count(*) FROM agent_health")
        return executions, health

    with ThreadPoolExecutor(2) as pool:
        for place in range(4):
            counts.add(look())
            hour = HOURS.end + place * HOUR
            log_hour(project, hour, f"next {place}")
            project.materialize(HourRange.of(hour), only=FLEET)
            expected = (counts_of(project, "executions"), counts_of(project, "agent_health"))
            looks = [pool.submit(look) for _ in range(6)]
            published_by(project)
            assert {one.result() for one in looks} <= counts | {expected}
            assert look() == expected


def counts_of(project: Project, table: str) -> int:
    return project.query(f"SELECT count(*) FROM {table}")[0][0]


def test_two_that_publish_at_once_both_leave_it_whole(project: Project) -> None:
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda _: publish(project.settings, project.folder / "published"), range(2)))
    assert sorted(one.files > 0 for one in done) == [False, True]
    assert_same_tables(tables_of(published_by(project)), tables_of(project))


def test_a_damaged_file_costs_its_table_and_is_written_again_once_it_is_removed(project: Project) -> None:
    found = published_by(project)
    [path, *_] = files_of(project, "agent_health").values()
    damaged = project.folder / "published" / path
    damaged.write_bytes(bytes(damaged.stat().st_size))
    assert found.rows("executions") == project.rows("executions")
    with pytest.raises(HealthAssetsError, match=rf"cannot be read: /.*{path} is gone or damaged; remove it, and run"):
        found.rows("agent_health")
    damaged.unlink()
    with pytest.raises(HealthAssetsError, match="is gone or damaged"):
        found.rows("agent_health")
    assert_same_tables(tables_of(published_by(project)), tables_of(project))


def test_a_reader_whose_file_is_gone_because_it_was_replaced_is_told_so(project: Project) -> None:
    found = published_by(project)
    [path, *_] = files_of(project, "executions").values()

    def read_late() -> None:
        with found.warehouse.read() as session:
            log_hour(project, START, "late")
            project.materialize(HourRange.of(START), only=FLEET)
            published_by(project)
            (project.folder / "published" / path).unlink()
            session.query("SELECT * FROM executions")

    with pytest.raises(HealthAssetsError, match="were published anew while they were read; try again"):
        read_late()


def test_a_folder_that_is_named_from_here_is_named_whole_where_a_file_is_missing(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    published_by(project)
    [path, *_] = files_of(project, "executions").values()
    (project.folder / "published" / path).unlink()
    monkeypatch.chdir(project.folder)
    with pytest.raises(HealthAssetsError, match=re.escape(f"{project.folder}/published/{path} is gone")):
        replace(project, engine="published", url="published").rows("executions")


def test_before_the_first_publication_there_is_no_warehouse_yet(in_duckdb: Project, tmp_path: Path) -> None:
    (tmp_path / LOCK).touch()
    with pytest.raises(NoWarehouseError, match=r"there are no published tables in .* yet"):
        replace(in_duckdb, engine="published", url=str(tmp_path)).rows("executions")


def test_who_waits_for_another_publication_does_not_wait_for_ever(project: Project) -> None:
    folder = project.folder / "published"
    with (folder / LOCK).open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(HealthAssetsError, match="another process publishes in"):
            publish(project.settings, folder, 0.1)


def test_the_manifest_tells_nothing_of_a_database_but_a_digest_of_its_name() -> None:
    urls = ("postgresql://ada:secret@db.example/health", "postgresql+psycopg://bob@10.0.0.7:5433/health")
    assert {warehouse_name(url) for url in urls} == {"health"}


def test_a_damaged_manifest_is_one_sentence(project: Project) -> None:
    found = published_by(project)
    (project.folder / "published" / MANIFEST).write_text("{")
    with pytest.raises(HealthAssetsError, match=r"manifest.json is damaged; remove it, and publish the tables again"):
        found.rows("executions")


def test_tables_of_another_version_are_refused(project: Project) -> None:
    found = published_by(project)
    path = project.folder / "published" / MANIFEST
    path.write_text(json.dumps(json.loads(path.read_text()) | {"schema_version": 1}))
    with pytest.raises(HealthAssetsError, match="published by another version of health-assets"):
        found.rows("executions")
    assert_same_tables(tables_of(published_by(project)), tables_of(project))  # as every run after an upgrade does


def test_published_tables_are_not_written_to(in_duckdb: Project) -> None:
    with pytest.raises(HealthAssetsError, match="holds published tables, which are only read"):
        published_by(in_duckdb).change("DELETE FROM executions")


def test_published_files_are_their_owners_alone(in_duckdb: Project) -> None:
    folder = in_duckdb.folder / "published"
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*") if path.is_file()} == {0o600}
    assert {stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.rglob("day=*"))} == {0o700}


def test_a_folder_of_other_files_is_left_alone(in_duckdb: Project, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(HealthAssetsError, match="HEALTH_PUBLISHED must name a folder of its own"):
        publish(in_duckdb.settings, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_folder_that_cannot_be_written_is_one_sentence(in_duckdb: Project, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HealthAssetsError, match=r"cannot publish the tables in .*file"):
        publish(in_duckdb.settings, tmp_path / "file")


def test_a_folder_whose_name_is_a_pattern_is_read(in_duckdb: Project, tmp_path: Path) -> None:
    folder = tmp_path / "h[1]*?"
    publish(in_duckdb.settings, folder)
    found = replace(in_duckdb, engine="published", url=str(folder))
    assert found.rows("agent_health") == in_duckdb.rows("agent_health")


def test_pandas_reads_the_files_that_the_manifest_names(in_duckdb: Project) -> None:
    """As `docs/published-tables.md` says."""
    folder = in_duckdb.folder / "published"
    manifest = json.loads((folder / MANIFEST).read_text())
    files = manifest["tables"]["agent_health"]["files"]
    health = pd.concat(pd.read_parquet(folder / file["path"]) for file in files)
    expected = in_duckdb.rows("agent_health")
    assert len(health) == sum(file["rows"] for file in files) == len(expected)
    assert health.health_score.sum() == pytest.approx(sum(row["health_score"] or 0 for row in expected))


def test_duckdb_reads_the_views(in_duckdb: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = in_duckdb.folder / "published"
    monkeypatch.chdir(folder)
    with duckdb.connect() as connection:
        connection.execute((folder / VIEWS).read_text())
        found = connection.execute("SELECT count(*), min(hour) FROM agent_health").fetchone()
        columns = [name for name, *_ in connection.execute("DESCRIBE agent_health").fetchall()]
    assert found == in_duckdb.query("SELECT count(*), min(hour) FROM agent_health")[0]
    assert columns == columns_of("agent_health")


def test_the_file_that_tells_of_a_change_is_the_manifest(in_duckdb: Project) -> None:
    folder = in_duckdb.folder / "published"
    assert account_file(Settings(warehouse=str(folder))) == folder / MANIFEST


def test_a_run_of_the_command_line_publishes_and_a_report_reads_it(project: Project) -> None:
    shutil.rmtree(project.folder / "published")
    settings = {
        "HEALTH_RAW": str(project.raw),
        "HEALTH_TARGETS": str(project.targets_path),
        "HEALTH_PUBLISHED": str(project.folder / "published"),
    }
    log_hour(project, HOURS.end, "next")
    hours = ("--from", f"{HOURS.end:%Y-%m-%dT%H}", "--to", f"{HOURS.end + HOUR:%Y-%m-%dT%H}")
    run = forked_command(
        "materialize", *hours, "--warehouse", str(project.warehouse_path), "--system", "agent_health_model",
        environment=settings,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    reports = [
        forked_command("report", "--warehouse", str(warehouse)).stdout
        for warehouse in (project.warehouse_path, project.folder / "published")
    ]
    assert reports[0] == reports[1]
    assert "Fleet at 2026-06-09 04:00 UTC" in reports[0]


def test_a_command_that_finds_all_hours_up_to_date_publishes_what_is_not(project: Project) -> None:
    shutil.rmtree(project.folder / "published")
    arguments = (
        "materialize", "--from", "2026-06-07T03", "--to", "2026-06-07T04", "--system", "agent_health_model",
        "--warehouse", str(project.warehouse_path), "--raw", str(project.raw),
    )  # fmt: skip
    assert forked_command(*arguments).returncode == 0
    again = forked_command(*arguments, environment={"HEALTH_PUBLISHED": str(project.folder / "published")})
    assert "up to date" in again.stdout
    assert (project.folder / "published" / MANIFEST).exists()


def test_a_run_that_cannot_publish_fails_and_its_rows_are_kept(project: Project) -> None:
    log_hour(project, HOURS.end, "next")
    hours = ("--from", f"{HOURS.end:%Y-%m-%dT%H}", "--to", f"{HOURS.end + HOUR:%Y-%m-%dT%H}")
    run = forked_command(
        "materialize", *hours, "--warehouse", str(project.warehouse_path), "--system", "agent_health_model",
        environment={"HEALTH_RAW": str(project.raw), "HEALTH_PUBLISHED": str(project.raw)},
    )  # fmt: skip
    assert run.returncode == 1
    assert "HEALTH_PUBLISHED must name a folder of its own" in run.stderr
    assert HOURS.end in project.built_hours("system_health")


def test_publishing_is_a_command_of_its_own(project: Project) -> None:
    arguments = ("publish", "--warehouse", str(project.warehouse_path), "--folder", str(project.folder / "elsewhere"))
    first, second = (forked_command(*arguments) for _ in range(2))
    assert (first.returncode, second.returncode) == (0, 0), first.stderr
    assert first.stdout.startswith("published ")
    assert "are up to date" in second.stdout
    told = forked_command("publish", "--warehouse", str(project.warehouse_path))
    assert told.returncode == 1
    assert "nothing says where to publish; use --folder or HEALTH_PUBLISHED" in told.stderr


def test_where_it_is_off_nothing_is_published(project: Project) -> None:
    settings = project.settings.model_copy(update={"published": "off"})
    assert publish_if_configured(settings) is None
    assert as_published(settings) is settings


@pytest.mark.parametrize(
    ("warehouse", "folder"),
    [
        ("data/health.duckdb", Path("data/health.duckdb.published")),
        ("duckdb:////srv/fleet.db", Path("/srv/fleet.db.published")),
        ("postgresql://health@db/health", None),
        ("sc://spark:15002", None),
    ],
)
def test_the_tables_are_published_beside_a_duckdb_file(warehouse: str, folder: Path | None) -> None:
    assert published_folder(Settings(warehouse=warehouse, published=None)) == folder


def test_a_run_publishes_beside_its_warehouse_and_a_server_reads_that(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_hour(project, HOURS.end, "next")
    hours = ("--from", f"{HOURS.end:%Y-%m-%dT%H}", "--to", f"{HOURS.end + HOUR:%Y-%m-%dT%H}")
    run = forked_command(
        "materialize", *hours, "--warehouse", str(project.warehouse_path),
        environment={"HEALTH_RAW": str(project.raw), "HEALTH_PUBLISHED": ""},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    folder = project.warehouse_path.with_name(f"{project.warehouse_path.name}.published")
    assert_same_tables(tables_of(replace(project, engine="published", url=str(folder))), tables_of(project))
    monkeypatch.setenv("HEALTH_PUBLISHED", "")
    with (
        project.warehouse.write(),  # which nobody waits for
        readers_in_this_process(),
        served(str(project.warehouse_path), targets=project.targets_path) as running,
    ):
        assert running.status["data_hour"] == HOURS.end.isoformat()


def test_hours_that_are_not_published_are_told_until_they_are(project: Project) -> None:
    folder = project.folder / "published"

    def has_some() -> bool:
        with project.warehouse.read() as session:
            return has_unpublished(session, folder)

    assert not has_some()
    log_hour(project, HOURS.end, "next")
    load_new_logs(project.pipeline)
    assert not has_some(), "lines of an hour that is not materialized are not waited for"
    project.materialize(HourRange.of(HOURS.end), only=FLEET)
    assert has_some()
    published_by(project)
    assert not has_some()
    shutil.rmtree(folder)
    assert has_some()


@pytest.mark.parametrize("spelled", ["off", "OFF", "false", "no", "0"])
def test_publishing_is_off_however_that_is_spelled(spelled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEALTH_PUBLISHED", spelled)
    assert published_folder(Settings()) is None


def when_a_server_starts(settings: Settings) -> list[str]:
    """Publish as a server does that starts; gives what its operator is told."""
    faults: list[str] = []
    publishing = StartupPublishing(settings, faults.append)
    publishing.start()
    publishing._thread.join()
    publishing.stop()
    return faults


def test_a_server_that_starts_publishes_what_no_run_did(project: Project) -> None:
    folder = project.folder / "published"
    log_hour(project, HOURS.end, "next")
    project.materialize(HourRange.of(HOURS.end), only=FLEET)  # by a run that was stopped
    assert when_a_server_starts(project.settings.model_copy(update={"published": folder})) == []
    assert_same_tables(tables_of(replace(project, engine="published", url=str(folder))), tables_of(project))


def test_a_server_that_starts_says_why_nothing_can_be_published(project: Project, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    [told] = when_a_server_starts(project.settings.model_copy(update={"published": tmp_path}))
    assert "HEALTH_PUBLISHED must name a folder of its own" in told
    assert "HEALTH_PUBLISHED=off serves the warehouse itself" in told


def test_a_server_that_starts_before_any_run_says_nothing(tmp_path: Path) -> None:
    assert when_a_server_starts(Settings(warehouse=str(tmp_path / "none.duckdb"), published=None)) == []
    elsewhere = Settings(warehouse=str(tmp_path / "health.duckdb.published"), published=None)
    assert as_published(elsewhere) is elsewhere, "the folder, which may come later"


def test_in_dagster_the_tables_are_published_by_the_last_asset_of_a_run(
    project: Project, instance: dg.DagsterInstance
) -> None:
    shutil.rmtree(project.folder / "published")
    log_hour(project, HOURS.end, "next")
    settings = project.settings.model_copy(update={"published": project.folder / "published"})
    definitions = build_definitions(settings, HourRange.of(HOURS.end), ["agent_health_model"])
    result = definitions.resolve_job_def("materialize_hours").execute_in_process(
        instance=instance, partition_key=f"{HOURS.end:%Y-%m-%d-%H:%M}"
    )
    [made] = result.asset_materializations_for_node("published_tables")
    assert made.metadata["files"].value != 0
    assert_same_tables(
        tables_of(replace(project, engine="published", url=str(project.folder / "published"))), tables_of(project)
    )


def test_a_run_of_dagster_that_fails_publishes_what_it_made(project: Project) -> None:
    log_hour(project, HOURS.end - HOUR, "next")
    project.change("UPDATE executions SET confidence = 7 WHERE execution_id = 'a 09T03'")  # which fails a check
    hours = ("--from", f"{HOURS.end - HOUR:%Y-%m-%dT%H}", "--to", f"{HOURS.end:%Y-%m-%dT%H}")
    run = forked_command(
        "materialize", *hours, "--warehouse", str(project.warehouse_path), "--system", "agent_health_model",
        environment={
            "HEALTH_RAW": str(project.raw),
            "HEALTH_PUBLISHED": str(project.folder / "published"),
            "DAGSTER_HOME": str(project.folder),
        },
    )  # fmt: skip
    assert run.returncode != 0
    assert ids_of(replace(project, engine="published", url=str(project.folder / "published"))) == ids_of(project)
    assert "next" in ids_of(project)


def test_where_it_is_off_dagster_has_no_such_asset(project: Project) -> None:
    definitions = build_definitions(project.settings, HourRange.of(HOURS.start))
    assert dg.AssetKey("published_tables") not in definitions.resolve_all_asset_keys()


@pytest.fixture(scope="module")
def of_documents(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """One with the tables that are served."""
    return made(tmp_path_factory.mktemp("documents"), "duckdb")


@pytest.fixture(scope="module")
def answers(of_documents: Project) -> Iterator[dict[str, dict[str, bytes]]]:
    """What a server says from the warehouse, and what it says from the published tables."""
    published = published_by(of_documents)
    [agent, *_] = sorted(row["agent_id"] for row in of_documents.rows("agent_health"))
    [session, *_] = sorted(row["session_id"] for row in of_documents.rows("session_scores"))
    paths = [f"/agents/{quote(agent)}/.well-known/agent-health", f"/sessions/{quote(session)}", "/agents", "/models"]
    said = {}
    with readers_in_this_process():
        for name, warehouse in (("warehouse", of_documents.warehouse_url), ("published", published.url)):
            with served(warehouse, targets=of_documents.targets_path) as running:
                said[name] = {path: running.ask(path).body for path in paths}
    yield said


def test_a_server_of_published_tables_answers_as_one_of_the_warehouse(answers: dict[str, dict[str, bytes]]) -> None:
    assert answers["published"] == answers["warehouse"]
    assert all(answers["warehouse"].values())


def test_a_server_of_published_tables_needs_no_warehouse_and_takes_what_is_published_next(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("health_assets.apps.serving.refresher.LOOK_S", 0.1)
    project.materialize(NEWEST)
    found = published_by(project)
    with readers_in_this_process(), served(found.url, serve_refresh_s=0.1) as running:
        first = running.status["data_hour"]
        with project.warehouse.write():  # nobody waits for it
            assert running.ask("/agents").status == 200
        log_hour(project, HOURS.end, "next")
        project.materialize(HourRange.of(HOURS.end))
        published_by(project)
        running.wait_for(lambda status: status["data_hour"] > first)
        assert running.faults == []


def test_pages_from_published_tables_keep_their_history_beside_them(of_documents: Project) -> None:
    found = published_by(of_documents)
    with readers_in_this_process(), served(found.url, pages=True, targets=of_documents.targets_path) as running:
        running.wait_for_pages()
        assert running.ask("/ui/sessions").status == 200
    assert (of_documents.folder / "published.history").is_dir()


def test_a_server_where_tables_are_published_reads_them_and_changes_the_warehouse(project: Project) -> None:
    found = published_by(project)
    settings = project.settings.model_copy(update={"published": project.folder / "published"})
    assert as_published(settings).warehouse == found.url
    wanted = {"agents": ["a"], "rules": [], "start": None, "until": "3h", "reason": "rest", "by": "me"}
    silence_id = write(settings, {"silence": wanted, "patience_s": 5.0})
    assert [row["silence_id"] for row in found.rows("alert_silences")] == [silence_id]
    assert write(settings, {"end": silence_id, "patience_s": 5.0}) == silence_id
    assert found.rows("alert_silences") == project.rows("alert_silences")


def test_a_server_waits_for_a_folder_that_is_not_there_yet(tmp_path: Path) -> None:
    settings = Settings(warehouse=str(tmp_path / "data" / "health.duckdb"), published=None)
    read = as_published(settings)
    assert account_file(read) == tmp_path / "data" / "health.duckdb.published" / MANIFEST
    named = settings.model_copy(update={"warehouse": str(tmp_path / "elsewhere.published")})
    for waiting in (read, named):
        with pytest.raises(NoWarehouseError, match="there are no published tables"), Warehouse.of(waiting).read():
            pass


def test_a_folder_that_cannot_be_made_is_one_sentence_with_a_way_out(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    settings = Settings(warehouse="health.duckdb", published=tmp_path / "file" / "published")
    with pytest.raises(HealthAssetsError, match="HEALTH_PUBLISHED names another folder, or off"):
        as_published(settings)


def test_published_tables_are_not_published_again(project: Project, tmp_path: Path) -> None:
    found = published_by(project)
    with pytest.raises(HealthAssetsError, match="holds published tables; name the warehouse itself"):
        publish(Settings(warehouse=found.url), tmp_path / "again")


def test_a_silence_is_refused_in_a_sentence(in_duckdb: Project) -> None:
    found = published_by(in_duckdb)
    told = forked_command(
        "alerts", "silence", "--agent", "a", "--until", "3h", "--reason", "rest", "--warehouse", found.url
    )
    assert told.returncode == 1
    assert "holds published tables, which are only read; name the warehouse itself" in told.stderr


def test_every_table_is_published_or_private() -> None:
    assert set(PUBLISHED) | PRIVATE == set(ALL_TABLES)


def test_incidents_of_the_running_hour_are_published_though_no_hour_of_theirs_is_made(project: Project) -> None:
    judged, running = START + HOUR, START + 2 * HOUR
    published, folder = published_by(project), project.folder / "published"
    with project.warehouse.write() as session:
        PartitionStates(session).note("alerts", HourRange.of(judged), [])
    publish(project.settings, folder)
    with project.warehouse.write() as session:
        incident = {
            "hour": running, "incident_id": "i", "rule": "failing_now", "subject_kind": "agent", "subject_id": "a",
            "severity": "critical", "opened_at": running, "reason": "r", "good_hours": 0, "is_personal": False,
            "evidence": "{}",
        }  # fmt: skip
        append_rows(session, "alerts", [incident])
    with project.warehouse.read() as session:
        assert has_unpublished(session, folder)
    publish(project.settings, folder)
    assert published.query("SELECT hour, incident_id FROM alerts") == [(running, "i")]
    with project.warehouse.read() as session:
        assert not has_unpublished(session, folder)
