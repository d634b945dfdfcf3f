"""A raw log is what it holds: renamed, packed, rotated or copied it counts once, and one that is gone stops nothing.

Random histories of such files are in `test_ingestion_properties`.
"""

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from health_assets.core.hours import HOUR, HourRange
from health_assets.logs.known_files import MatchedFiles
from health_assets.logs.stores import RawFile
from health_assets.pipeline import ingestion
from health_assets.warehouse.file_ledger import FileLedger
from health_assets.warehouse.fingerprints import EVERY_LINE_IS_STILL_THERE
from health_assets_tests.defs.test_dagster_runs import sensor_tick
from health_assets_tests.support.dagster_world import NOON, World, batching_instance
from health_assets_tests.support.dagster_world import execution as world_execution
from health_assets_tests.support.logs_made import START, Record, cancellation, execution, line, trigger
from health_assets_tests.support.projects import (
    FLEET,
    RECORD_TABLES,
    Project,
    Row,
    assert_lines_are_conserved,
    assert_same_tables,
    forked_command,
    hours_from,
    materialize_arguments,
)
from health_assets_tests.support.traces_made import otlp_line, span

HOURS = hours_from(START, 6)
FIRST = HourRange.of(START)


def restart(agent: str, hour: int) -> str:
    """A line without an id, which would count twice where it is read twice."""
    at = (START + hour * HOUR).isoformat()
    return line({"type": "agent_update", "agent_id": agent, "at": at, "kind": "restart"})


def bytes_of(*lines: str) -> bytes:
    return "".join(f"{text}\n" for text in lines).encode()


def gzipped(path: Path) -> Path:
    """What gzip makes of a file, which it deletes."""
    packed = path.with_name(f"{path.name}.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    return packed


def restarts(project: Project) -> list[tuple]:
    return project.query("SELECT agent_id, source_file, line_number FROM agent_updates ORDER BY ALL")


def lost(project: Project) -> list[tuple[str, int]]:
    with project.warehouse.read() as session:
        return [(log.source_file, log.lines) for log in FileLedger(session).lost()]


def assert_like_a_clean_rebuild(project: Project) -> None:
    project.ingest(HOURS)
    clean = project.clean_rebuild(HOURS, only=["ingest"])
    assert_same_tables(project.tables(names=RECORD_TABLES), clean.tables(names=RECORD_TABLES))
    assert_lines_are_conserved(project)
    assert project.ingest(HOURS).files_read == []


# -- the same log elsewhere --------------------------------------------------------------------------------------------


def test_a_live_log_that_is_gzipped_before_an_hour_of_it_was_asked_for_stops_no_run_of_that_hour(
    project: Project,
) -> None:
    path = project.write_log("0420.jsonl", [restart("a", 0), line(execution("e", "a", START + 4 * HOUR))])
    project.ingest(FIRST)
    gzipped(path)
    read = project.materialize(HOURS, only=FLEET)["raw_logs"]
    assert "could not be read" not in read
    assert project.built_hours("agent_health") == {*HOURS}
    assert project.query("SELECT execution_id, source_file FROM executions") == [("e", "0420.jsonl.gz")]
    assert restarts(project) == [("a", "0420.jsonl.gz", 1)]
    assert lost(project) == []
    assert_like_a_clean_rebuild(project)


WAYS: dict[str, Callable[[Path], object]] = {
    "renamed": lambda path: path.rename(path.with_name("other.jsonl")),
    "moved to a folder": lambda path: path.rename(path.parent / "old" / "app.jsonl"),
    "gzipped": gzipped,
    "numbered": lambda path: path.rename(path.with_name("app.jsonl.1")),
}


@pytest.mark.parametrize(
    ("way", "grew"),
    [
        pytest.param(
            way, grew, id=f"{way}, {'grown unseen' if grew else 'as it was'}",
            marks=() if grew == (way in ("gzipped", "numbered")) else pytest.mark.nightly,
        )
        for way in WAYS for grew in (False, True)
    ],
)  # fmt: skip
def test_lines_without_an_id_count_once_whatever_becomes_of_their_file(project: Project, way: str, grew: bool) -> None:
    """Also where the hours asked for are others than those of the lines."""
    path = project.write_log("app.jsonl", [restart("a", 0), "bad", restart("b", 5)])
    (project.raw / "old").mkdir()
    project.ingest(HOURS)
    if grew:
        with path.open("a", encoding="utf-8") as log:
            log.write(restart("c", 0) + "\n")
    WAYS[way](path)
    project.ingest(hours_from(START + 300 * HOUR, 1))
    assert len(project.rows("agent_updates")) == 2 + grew
    assert len(project.rows("rejected_records")) == 1
    assert_like_a_clean_rebuild(project)
    assert len(restarts(project)) == 2 + grew


ONE_OF_EVERY_KIND: list[Record] = [
    execution("e", "a", START, task_id="t"),
    cancellation("x", "a", START),
    trigger("t", "a", START),
    {"type": "model_call", "call_id": "m", "agent_id": "a", "model": "m", "ended_at": START.isoformat(), "latency_ms": 5, "status": "success"},
    {"type": "tool_call", "call_id": "c", "agent_id": "a", "tool": "x", "ended_at": START.isoformat(), "status": "success"},
    {"type": "signals", "execution_id": "e", "agent_id": "a", "at": START.isoformat(), "coherence": 0.5},
    {"type": "evaluation", "name": "quality", "at": START.isoformat(), "execution_id": "e", "value": 1},
    {"type": "judgement", "execution_id": "e", "at": START.isoformat(), "violations": []},
    {"type": "agent_update", "agent_id": "a", "at": START.isoformat(), "kind": "restart"},
    {"type": "nonsense"},
]  # fmt: skip
"""A line for every table of records but that of spans."""


def rows_of_every_kind(project: Project) -> dict[str, list[Row]]:
    """The rows of every table of records, but for the name of their log."""
    tables = project.tables(names=RECORD_TABLES)
    return {name: [{**row, "source_file": ""} for row in rows] for name, rows in tables.items()}


@pytest.mark.parametrize("is_matched", [True, False], ids=["matched", "not matched"])
def test_a_loaded_log_that_is_gzipped_leaves_every_table_as_it_was_since_it_is_matched(
    project: Project, monkeypatch: pytest.MonkeyPatch, is_matched: bool
) -> None:
    """Without being matched, lines without an id would count twice."""
    path = project.write_log("app.jsonl", [*map(line, ONE_OF_EVERY_KIND), otlp_line(span(1, 1, START))])
    project.ingest(FIRST)
    before = rows_of_every_kind(project)
    assert {len(rows) for rows in before.values()} == {1}
    gzipped(path)
    if not is_matched:
        monkeypatch.setattr(ingestion, "match_files", lambda _, files, *__, **___: MatchedFiles(files=files, new=files))
    project.ingest(FIRST)
    after = rows_of_every_kind(project)
    doubled = {name for name in RECORD_TABLES if len(after[name]) != 1}
    if is_matched:
        assert_same_tables(after, before)
        assert_like_a_clean_rebuild(project)
    else:
        assert doubled == {"spans", "rejected_records", "signals", "evaluations", "judgements", "agent_updates"}


def test_a_log_that_is_merely_renamed_is_not_read_again(project: Project) -> None:
    path = project.write_log("app.jsonl", [restart("a", 0), restart("b", 5)])
    project.ingest(HOURS)
    gzipped(path)
    assert project.ingest(HOURS).files_read == []
    assert restarts(project) == [("a", "app.jsonl.gz", 1), ("b", "app.jsonl.gz", 2)]


def test_half_a_line_at_the_end_of_a_live_log_is_whole_once_the_log_was_packed(project: Project) -> None:
    whole = bytes_of(restart("a", 0), restart("b", 0))
    path = project.write_bytes("app.jsonl", whole[:-20])
    project.ingest(HOURS)
    assert len(project.rows("rejected_records")) == 1
    path.write_bytes(whole)
    gzipped(path)
    assert_like_a_clean_rebuild(project)
    assert (len(restarts(project)), project.rows("rejected_records")) == (2, [])


def test_while_a_log_is_packed_it_counts_once(project: Project) -> None:
    """gzip writes its file piece by piece and deletes the other at the end."""
    lines = [restart(f"agent {number}", 0) for number in range(2000)]
    path = project.write_log("app.jsonl", lines)
    project.ingest(HOURS)
    packed = gzip.compress(path.read_bytes())
    for share in (0.3, 0.7, 1):
        (project.raw / "app.jsonl.gz").write_bytes(packed[: int(len(packed) * share)])
        project.ingest(HOURS)
        assert len(project.rows("agent_updates")) == len(lines)
        assert project.rows("rejected_records") == []
        assert_like_a_clean_rebuild(project)
    path.unlink()
    assert_like_a_clean_rebuild(project)
    assert len(restarts(project)) == len(lines)


def test_a_log_that_is_copied_and_cut_to_nothing_counts_once(project: Project) -> None:
    path = project.write_log("app.jsonl", [restart("a", 0), restart("b", 5)])
    project.ingest(FIRST)
    (project.raw / "app.jsonl.1").write_bytes(path.read_bytes())
    project.ingest(FIRST)
    assert len(restarts(project)) == 2
    path.write_bytes(b"")
    project.ingest(FIRST)
    assert restarts(project) == [("a", "app.jsonl.1", 1), ("b", "app.jsonl.1", 2)]
    path.write_bytes(bytes_of(restart("c", 0)))
    assert_like_a_clean_rebuild(project)
    assert [row[0] for row in restarts(project)] == ["a", "b", "c"]


def test_equal_files_are_one_whichever_comes_first_and_another_counts_when_it_goes(project: Project) -> None:
    content = [restart("a", 0), "bad"]
    for name in ("b.jsonl", "c.jsonl.gz", "a.jsonl"):
        project.write_log(name, content, modified=START)
        assert_like_a_clean_rebuild(project)
    assert restarts(project) == [("a", "c.jsonl.gz", 1)]
    (project.raw / "c.jsonl.gz").unlink()
    assert_like_a_clean_rebuild(project)
    assert restarts(project) == [("a", "b.jsonl", 1)]
    project.write_log("b.jsonl", [restart("other", 0)])
    assert_like_a_clean_rebuild(project)
    assert [row[:2] for row in restarts(project)] == [("a", "a.jsonl"), ("other", "b.jsonl")]


def test_the_winner_of_an_id_is_that_of_a_clean_rebuild_although_only_a_name_changed(project: Project) -> None:
    project.write_log("b.jsonl", [line(execution("twice", "b", START))])
    project.write_log("m.jsonl", [line(execution("twice", "m", START)), line(execution("m", "m", START))])
    project.ingest(HOURS)
    (project.raw / "b.jsonl").rename(project.raw / "z.jsonl")
    project.ingest(hours_from(START + 300 * HOUR, 1))
    assert_like_a_clean_rebuild(project)
    assert ("twice", "z.jsonl") in project.query("SELECT execution_id, source_file FROM executions")


def test_what_retention_dropped_is_not_late_under_another_name(project: Project) -> None:
    from health_assets.pipeline.retention import prune

    path = project.write_log("app.jsonl", [restart("a", 0)])
    project.ingest(FIRST)
    prune(project.warehouse, [], START + HOUR, 0)
    gzipped(path)
    project.ingest(hours_from(START + 300 * HOUR, 1))
    assert prune(project.warehouse, [], START + HOUR, 0).late == []
    project.ingest(FIRST)
    assert restarts(project) == [("a", "app.jsonl.gz", 1)]


def test_numbered_logs_push_the_oldest_out_and_its_rows_stay(project: Project) -> None:
    """The last name gets the content of the one before, which does not make its old lines untrue."""
    path = project.raw / "app.jsonl"
    for hour in range(6):
        for number in (1, 0):
            older = project.raw / (f"app.jsonl.{number}" if number else "app.jsonl")
            if older.exists():
                older.replace(project.raw / f"app.jsonl.{number + 1}")
        path.write_bytes(bytes_of(restart(f"of {hour}", hour), f"bad {hour}"))
        project.ingest(HOURS)
        assert [row[0] for row in restarts(project)] == [f"of {earlier}" for earlier in range(hour + 1)]
    assert len(project.rows("rejected_records")) == 6
    assert_lines_are_conserved(project)
    assert lost(project) == []


def test_a_file_that_is_replaced_says_that_its_old_lines_are_no_longer_true(project: Project) -> None:
    project.write_log("app.jsonl", [restart("a", 0)])
    project.ingest(HOURS)
    project.write_log("app.jsonl", [restart("b", 0)])
    assert_like_a_clean_rebuild(project)
    assert [row[0] for row in restarts(project)] == ["b"]


def test_a_run_says_how_many_lines_fewer_a_log_holds_that_was_cut_or_replaced(project: Project) -> None:
    path = project.write_log("app.jsonl", [restart("a", minute) for minute in range(5)])
    project.write_log("grows.jsonl", [restart("grows", 0)])
    project.ingest(HOURS)
    project.write_log("app.jsonl", [restart("b", 0)])
    project.write_log("grows.jsonl", [restart("grows", 0), restart("grows", 1)])
    report = project.ingest(HOURS)
    assert report.told.keys() == {"app.jsonl"}
    assert "4 lines that it held no longer count" in report.told["app.jsonl"]
    path.write_bytes(b"")
    assert "1 line that it held no longer count" in project.ingest(HOURS).told["app.jsonl"]
    assert project.ingest(HOURS).told == {}


@pytest.mark.parametrize("back_as", ["app.jsonl", "app.jsonl.1.gz"])
def test_what_a_log_lost_when_it_was_cut_is_lost_until_its_lines_stand_in_a_log_again(
    project: Project, back_as: str
) -> None:
    """Copied by rotation to a name that does not count, its rows are gone; and back once the copy is renamed."""
    lines = [restart("a", 0), restart("b", 0), "bad", restart("c", 5)]
    path = project.write_log("app.jsonl", lines)
    project.ingest(HOURS)
    path.write_bytes(b"")
    project.ingest(HOURS)
    assert lost(project) == [("app.jsonl (cut)", 4)]
    with project.warehouse.read() as session:
        [told] = FileLedger(session).lost()
        assert FileLedger(session).lines_and_lost(FIRST, 0) == {START: (3, 3)}
        assert [log.lines for log in FileLedger(session).lost(FIRST)] == [3], (
            "what is lost of later hours is not theirs"
        )
    assert str(told).startswith("app.jsonl was cut or replaced, and 4 lines of 2026-06-07T00 to 2026-06-07T06 (6 h)")
    path.write_bytes(bytes_of(restart("d", 0)))
    for _ in range(2):
        project.ingest(HOURS)
        assert restarts(project) == [("d", "app.jsonl", 1)]
        assert lost(project) == [("app.jsonl (cut)", 4)]
    project.write_log(back_as, [*lines, restart("e", 1)])
    assert_like_a_clean_rebuild(project)
    assert lost(project) == []
    assert {"a", "b", "c", "e"} <= {row[0] for row in restarts(project)}


def test_a_line_that_was_half_written_and_one_of_the_future_are_not_lost_when_they_are_read_anew(
    project: Project,
) -> None:
    whole = bytes_of(restart("a", 0), restart("b", 5), restart("c", 7))
    project.now = START + 6 * HOUR
    path = project.write_bytes("app.jsonl", whole[:-1])
    for content, now in ((whole[:-20], 6), (whole, 6), (whole, 12)):
        path.write_bytes(content)
        project.now = START + now * HOUR
        assert project.ingest(HOURS).told == {}
    assert project.rows("rejected_records") == []
    assert lost(project) == []


@pytest.mark.parametrize("way", ["as it was", "grown", "read before logs had identities"])
def test_lines_that_this_program_makes_less_of_than_an_older_one_are_not_lost(project: Project, way: str) -> None:
    path = project.write_log("app.jsonl", ['{"resourceSpans": []', restart("a", 0)])
    project.ingest(HOURS)
    project.change("UPDATE raw_logs SET lines = 50, digest = 'other' WHERE record_type = 'rejected'")
    project.change("UPDATE raw_logs SET record_type = 'span' WHERE record_type = 'rejected'")
    project.change("UPDATE raw_files SET modified_ns = -1")
    if way == "grown":
        path.write_bytes(path.read_bytes() + bytes_of(restart("b", 1)))
    elif way != "as it was":
        project.change("UPDATE raw_files SET plain_bytes = NULL, content_digest = NULL, head_digests = NULL")
    assert project.ingest(HOURS).told == {}
    assert lost(project) == []
    assert_like_a_clean_rebuild(project)


def test_a_log_that_rotation_names_by_its_date_counts_on(project: Project) -> None:
    path = project.write_log("app.jsonl", [restart("a", 0), restart("a", 1)])
    project.ingest(HOURS)
    path.rename(path.with_name("app.jsonl-20260607"))
    project.write_log("app.jsonl", [restart("a", 2)])
    assert project.ingest(HOURS).told == {}
    assert len(restarts(project)) == 3
    packed = path.with_name("app.jsonl-20260607.gz")
    packed.write_bytes(gzip.compress(path.with_name("app.jsonl-20260607").read_bytes(), mtime=0))
    path.with_name("app.jsonl-20260607").unlink()
    assert project.ingest(HOURS).told == {}
    assert len(restarts(project)) == 3


# -- a log that is gone ------------------------------------------------------------------------------------------------


def test_a_log_that_is_gone_blocks_nothing_and_keeps_also_what_nobody_had_asked_for(project: Project) -> None:
    path = project.write_log("gone.jsonl", [restart("a", 0), restart("b", 4), restart("c", 4), restart("d", 5)])
    project.write_log("kept.jsonl", [restart("k", 0), restart("l", 4)])
    project.ingest(FIRST)
    path.unlink()
    done = forked_command(*materialize_arguments(project, HOURS, "tool_health"), folder=project.folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert [row[0] for row in restarts(project)] == ["a", "b", "c", "d", "k", "l"]
    assert lost(project) == []
    project.write_log("late.jsonl", [restart("e", 0)])
    project.ingest(HOURS)
    rows = [row[0] for row in restarts(project)]
    assert rows == ["a", "b", "c", "d", "e", "k", "l"], "also where its hour is built anew"
    project.write_log("back.jsonl.gz", [restart("a", 0), restart("b", 4), restart("c", 4), restart("d", 5)])
    assert_like_a_clean_rebuild(project)
    assert lost(project) == []


def test_rows_of_a_log_that_is_gone_are_lost_when_somebody_deletes_them_and_no_others(project: Project) -> None:
    path = project.write_log("gone.jsonl", [restart("a", 0), restart("b", 0)])
    project.ingest(HOURS)
    path.unlink()
    project.change("DELETE FROM agent_updates WHERE agent_id = 'a'")
    project.ingest(HOURS)
    assert [row[0] for row in restarts(project)] == ["b"]
    assert lost(project) == [("gone.jsonl", 1)]


def test_in_dagster_a_check_and_the_sensor_say_which_log_was_cut_and_how_many_lines_are_lost(tmp_path: Path) -> None:
    world = World.at(tmp_path / "world", window_hours=3, lookback_hours=6)
    world.write("kept.jsonl", [world_execution(NOON, "kept")])
    world.write("cut.jsonl", [world_execution(NOON, "cut"), world_execution(NOON + HOUR, "cut too")])
    world.materialize(HourRange.of(NOON), only=FLEET)
    world.write("cut.jsonl", [])
    (tmp_path / "dagster").mkdir()
    with batching_instance(tmp_path / "dagster") as instance:
        (request,) = sensor_tick(world, instance).run_requests
        world.materialize(tags=request.tags, only=FLEET)
        tick = sensor_tick(world, instance)
        assert not tick.run_requests
        assert "cut.jsonl was cut" not in tick.skip_message, "long ago by the clock"
        result = world.run(instance, HourRange.of(NOON + HOUR), assets=["raw_logs", "executions"])
    (found,) = [one for one in result.get_asset_check_evaluations() if one.check_name == EVERY_LINE_IS_STILL_THERE]
    assert (found.passed, found.severity.value) == (False, "WARN")
    assert "cut.jsonl was cut or replaced, and 2 lines of 2026-06-07T12 to 2026-06-07T14" in str(found.metadata)
    history = (
        "SELECT hour, success, element_count, unexpected_count, severity FROM expectation_results "
        f"WHERE expectation = '{EVERY_LINE_IS_STILL_THERE}' AND hour > TIMESTAMPTZ '{NOON}'"
    )
    assert world.query(history) == [(NOON + HOUR, False, 3, 2, "warn")]
    assert world.query("SELECT execution_id FROM executions ORDER BY ALL") == [("kept",)]


# -- odd names, times and places ---------------------------------------------------------------------------------------


def test_a_name_that_is_not_utf_8_is_escaped_and_told_once(project: Project) -> None:
    path = project.raw / os.fsdecode(b"b\xff\xfe/caf\xe9.jsonl")
    path.parent.mkdir()
    path.write_bytes(bytes_of(restart("a", 0), "bad"))
    told = project.materialize(HOURS, only=["ingest"])["raw_logs"]["odd files"]
    name = r"b\xff\xfe/caf\xe9.jsonl"
    assert restarts(project) == [("a", name, 1)]
    assert [sentence for sentence in told if f"{name}: its name is not UTF-8" in sentence]
    assert "odd files" not in project.materialize(FIRST, only=["ingest"])["raw_logs"]
    assert project.ingest(HOURS).files_read == []


@pytest.mark.parametrize(("year", "counts_as"), [(2300, 2099), (1960, 2000)])
def test_a_modification_time_outside_of_the_calendar_is_the_nearest_within_and_told_once(
    project: Project, year: int, counts_as: int
) -> None:
    path = project.write_log("a.jsonl", ["bad"])
    for second in (0, 1):
        seconds = (year - 1970) * 31_556_952 + second
        os.utime(path, (seconds, seconds))
        if path.stat().st_mtime != seconds:
            pytest.skip("this file system does not keep such times")
        told = project.materialize(FIRST, only=["ingest"])["raw_logs"]
        assert ("odd files" in told) == (second == 0)
        assert project.query("SELECT hour FROM raw_logs")[0][0].year == counts_as
    assert project.query("SELECT count(*) FROM raw_logs") == [(1,)]


def test_links_that_lead_out_of_the_raw_root_are_not_followed_and_told_once(project: Project, tmp_path: Path) -> None:
    secret = tmp_path / "secret.jsonl"
    secret.write_bytes(bytes_of(restart("outside", 0)))
    project.write_log("deep/a.jsonl", [restart("a", 0)])
    (project.raw / "file.jsonl").symlink_to(secret)
    (project.raw / "folder").symlink_to(tmp_path)
    (project.raw / "within.jsonl").symlink_to("deep/a.jsonl")
    told = project.materialize(FIRST, only=["ingest"])["raw_logs"]["odd files"]
    assert sorted(told) == [
        "file.jsonl: a link that leads out of the raw root is not followed",
        "folder/: a link that leads out of the raw root is not followed",
    ]
    assert [row[0] for row in restarts(project)] == ["a"]
    assert "odd files" not in project.materialize(FIRST, only=["ingest"])["raw_logs"]


# -- the same size and modification time, and other bytes --


def rewritten(path: Path, *lines: str) -> None:
    """Another content of the same size, with the modification time of the one before."""
    before, content = path.stat(), bytes_of(*lines)
    assert len(content) == before.st_size
    while path.stat().st_ctime_ns == before.st_ctime_ns:  # the system's clock ticks every few milliseconds
        path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("name", ["a.jsonl", "judgements/a.jsonl"])
def test_a_file_that_was_rewritten_at_the_same_size_and_time_is_read_again(project: Project, name: str) -> None:
    path = project.write_log(name, [restart("one", 0)])
    project.ingest(HOURS)
    rewritten(path, restart("two", 0))
    assert project.not_loaded() == {name}
    assert project.ingest(HOURS).files_read == [name]
    assert [row[0] for row in restarts(project)] == ["two"]
    assert_like_a_clean_rebuild(project)


def test_a_copy_that_was_rewritten_at_the_same_size_and_time_counts(project: Project) -> None:
    project.write_log("b.jsonl", [restart("one", 0)])
    path = project.write_log("a.jsonl", [restart("one", 0)])
    project.ingest(HOURS)
    assert [row[1] for row in restarts(project)] == ["b.jsonl"]
    rewritten(path, restart("two", 0))
    assert project.ingest(HOURS).files_read == ["a.jsonl"]
    assert [row[:2] for row in restarts(project)] == [("one", "b.jsonl"), ("two", "a.jsonl")]


def test_a_file_of_which_only_the_mode_changed_is_compared_once_and_not_loaded_again(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = project.write_log("a.jsonl", [restart("one", 0)])
    project.ingest(HOURS)
    before = project.query("SELECT changed_ns FROM raw_files")
    path.chmod(0o600)
    assert project.not_loaded() == set()
    assert project.ingest(HOURS).files_read == []
    assert project.query("SELECT changed_ns FROM raw_files") == [(path.stat().st_ctime_ns,)] != before
    monkeypatch.setattr(RawFile, "opened", None)
    assert project.ingest(HOURS).files_read == []


def test_a_run_that_reads_anew_finds_what_no_time_tells(project: Project) -> None:
    """As where a clock was set back, or a file system keeps no change times."""
    path = project.write_log("a.jsonl", [restart("one", 0)])
    project.write_log("b.jsonl", [restart("other", 0)])
    project.ingest(HOURS)
    rewritten(path, restart("two", 0))
    project.change("UPDATE raw_files SET changed_ns = ? WHERE source_file = 'a.jsonl'", [path.stat().st_ctime_ns])
    assert project.ingest(HOURS).files_read == []
    assert project.ingest(HOURS, full_refresh=True).files_read == ["a.jsonl"]
    assert [row[0] for row in restarts(project)] == ["other", "two"]


def test_the_flag_anew_reads(project: Project) -> None:
    path = project.write_log("a.jsonl", [restart("one", 0)])
    arguments = materialize_arguments(project, FIRST, "session_scores")
    assert forked_command(*arguments, folder=project.folder).returncode == 0
    rewritten(path, restart("two", 0))
    project.change("UPDATE raw_files SET changed_ns = ?", [path.stat().st_ctime_ns])
    done = forked_command(*arguments, folder=project.folder)
    assert "no run was made" in done.stdout
    assert [row[0] for row in restarts(project)] == ["one"]
    assert forked_command(*arguments, "--full-refresh", folder=project.folder).returncode == 0
    assert [row[0] for row in restarts(project)] == ["two"]


def test_a_ledger_of_an_older_version_learns_the_change_times(project: Project) -> None:
    path = project.write_log("a.jsonl", [restart("one", 0)])
    project.ingest(HOURS)
    project.change("UPDATE raw_files SET changed_ns = NULL")
    assert project.ingest(HOURS).files_read == []
    assert project.query("SELECT changed_ns FROM raw_files") == [(path.stat().st_ctime_ns,)]
    rewritten(path, restart("two", 0))
    assert project.ingest(HOURS).files_read == ["a.jsonl"]
