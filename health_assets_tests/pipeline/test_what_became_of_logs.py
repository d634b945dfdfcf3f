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
from health_assets_tests.support.commands_here import command_here
from health_assets_tests.support.dagster_world import NOON, World, batching_instance
from health_assets_tests.support.dagster_world import execution as world_execution
from health_assets_tests.support.log_histories import Histories, LogFolder, Outcomes, Steps
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


def rewritten(path: Path, *lines: str) -> None:
    """Another content of the same size, with the modification time of the one before."""
    before, content = path.stat(), bytes_of(*lines)
    assert len(content) == before.st_size
    while path.stat().st_ctime_ns == before.st_ctime_ns:  # the system's clock ticks every few milliseconds
        path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


# -- histories side by side, each in a folder of its own ---------------------------------------------------------------

HISTORIES = Histories(HOURS, hours_from(START + 300 * HOUR, 1), HOURS)
"""The second ingestion is asked for hours that no line is of."""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    return HISTORIES.run(tmp_path_factory.mktemp("histories"))


def test_after_each_step_the_tables_are_those_of_a_clean_rebuild(outcomes: Outcomes) -> None:
    assert outcomes.differences == []


def own(log: LogFolder, name: str, hour: int = 0) -> str:
    """A line of a history, since equal files would be one."""
    return restart(f"{log.name} {name}", hour)


def restarts_of(log: LogFolder) -> list[tuple[str, str, int]]:
    """The same as `restarts`, of a history."""
    return sorted(
        (row["agent_id"].removeprefix(f"{log.name} "), row["source_file"], row["line_number"])
        for row in log.rows("agent_updates")
    )


def agents_of(log: LogFolder) -> list[str]:
    return [agent_id for agent_id, *_ in restarts_of(log)]


def lost_of(log: LogFolder) -> list[tuple[str, int]]:
    return [(log.without_folder(name), count) for name, count in lost(log.project) if name.startswith(log.key(""))]


WAYS: dict[str, Callable[[Path], object]] = {
    "renamed": lambda path: path.rename(path.with_name("other.jsonl")),
    "moved to a folder": lambda path: path.rename(path.parent / "old" / "app.jsonl"),
    "gzipped": gzipped,
    "numbered": lambda path: path.rename(path.with_name("app.jsonl.1")),
}


@HISTORIES.test
@pytest.mark.parametrize("grew", [False, True], ids=["as it was", "grown unseen"])
@pytest.mark.parametrize("way", WAYS)
def test_lines_without_an_id_count_once_whatever_becomes_of_their_file(log: LogFolder, way: str, grew: bool) -> Steps:
    """Also where the hours asked for are others than those of the lines."""
    path = log.write("app.jsonl", bytes_of(own(log, "a"), "bad", own(log, "b", 5)))
    (path.parent / "old").mkdir()
    yield
    if grew:
        with path.open("a", encoding="utf-8") as file:
            file.write(own(log, "c") + "\n")
    WAYS[way](path)
    yield
    assert len(restarts_of(log)) == 2 + grew
    assert len(log.rows("rejected_records")) == 1
    yield
    assert log.files_read((yield)) == []
    assert len(restarts_of(log)) == 2 + grew


@HISTORIES.test
def test_a_log_that_is_merely_renamed_is_not_read_again(log: LogFolder) -> Steps:
    path = log.write("app.jsonl", bytes_of(own(log, "a"), own(log, "b", 5)))
    yield
    yield
    gzipped(path)
    assert log.files_read((yield)) == []
    assert restarts_of(log) == [("a", "app.jsonl.gz", 1), ("b", "app.jsonl.gz", 2)]


@HISTORIES.test
def test_half_a_line_at_the_end_of_a_live_log_is_whole_once_the_log_was_packed(log: LogFolder) -> Steps:
    whole = bytes_of(own(log, "a"), own(log, "b"))
    path = log.write("app.jsonl", whole[:-20])
    yield
    yield
    assert len(log.rows("rejected_records")) == 1
    path.write_bytes(whole)
    gzipped(path)
    yield
    assert log.files_read((yield)) == []
    assert (len(restarts_of(log)), log.rows("rejected_records")) == (2, [])


@HISTORIES.test
def test_while_a_log_is_packed_it_counts_once(log: LogFolder) -> Steps:
    """gzip writes its file piece by piece and deletes the other at the end."""
    lines = [own(log, f"agent {number}") for number in range(2000)]
    path = log.write("app.jsonl", bytes_of(*lines))
    yield
    packed = gzip.compress(path.read_bytes())
    for share in (0.3, 0.7, 1):
        path.with_name("app.jsonl.gz").write_bytes(packed[: int(len(packed) * share)])
        yield
        assert len(restarts_of(log)) == len(lines)
        assert log.rows("rejected_records") == []
    path.unlink()
    yield
    assert log.files_read((yield)) == []
    assert len(restarts_of(log)) == len(lines)


@HISTORIES.test
def test_a_log_that_is_copied_and_cut_to_nothing_counts_once(log: LogFolder) -> Steps:
    path = log.write("app.jsonl", bytes_of(own(log, "a"), own(log, "b", 5)))
    yield
    path.with_name("app.jsonl.1").write_bytes(path.read_bytes())
    yield
    assert len(restarts_of(log)) == 2
    path.write_bytes(b"")
    yield
    assert restarts_of(log) == [("a", "app.jsonl.1", 1), ("b", "app.jsonl.1", 2)]
    path.write_bytes(bytes_of(own(log, "c")))
    yield
    assert log.files_read((yield)) == []
    assert agents_of(log) == ["a", "b", "c"]


@HISTORIES.test
def test_equal_files_are_one_whichever_comes_first_and_another_counts_when_it_goes(log: LogFolder) -> Steps:
    content = bytes_of(own(log, "a"), "bad")
    yield
    yield
    for name in ("b.jsonl", "c.jsonl.gz", "a.jsonl"):
        log.write(name, content, modified=START)
        yield
    assert restarts_of(log) == [("a", "c.jsonl.gz", 1)]
    log.path("c.jsonl.gz").unlink()
    yield
    assert restarts_of(log) == [("a", "b.jsonl", 1)]
    log.write("b.jsonl", bytes_of(own(log, "other")))
    yield
    assert log.files_read((yield)) == []
    assert [row[:2] for row in restarts_of(log)] == [("a", "a.jsonl"), ("other", "b.jsonl")]


@HISTORIES.test
def test_the_winner_of_an_id_is_that_of_a_clean_rebuild_although_only_a_name_changed(log: LogFolder) -> Steps:
    def run(execution_id: str) -> str:
        return line(execution(execution_id, "m", START))

    log.write("b.jsonl", bytes_of(run("twice")), modified=START)
    log.write("m.jsonl", bytes_of(run("m"), run("twice")), modified=START)
    yield
    winners = {row["execution_id"]: row["source_file"] for row in log.rows("executions")}
    assert winners == {"twice": "m.jsonl", "m": "m.jsonl"}
    log.path("b.jsonl").rename(log.path("z.jsonl"))
    yield
    yield
    winners = {row["execution_id"]: row["source_file"] for row in log.rows("executions")}
    assert winners == {"twice": "z.jsonl", "m": "m.jsonl"}


@HISTORIES.test
def test_a_file_that_is_replaced_says_that_its_old_lines_are_no_longer_true(log: LogFolder) -> Steps:
    log.write("app.jsonl", bytes_of(own(log, "a")))
    yield
    yield
    log.write("app.jsonl", bytes_of(own(log, "b")))
    yield
    assert log.files_read((yield)) == []
    assert agents_of(log) == ["b"]


@HISTORIES.test
def test_a_run_says_how_many_lines_fewer_a_log_holds_that_was_cut_or_replaced(log: LogFolder) -> Steps:
    path = log.write("app.jsonl", bytes_of(*(own(log, "a", hour) for hour in range(5))))
    log.write("grows.jsonl", bytes_of(own(log, "grows")))
    yield
    yield
    log.write("app.jsonl", bytes_of(own(log, "b")))
    log.write("grows.jsonl", bytes_of(own(log, "grows"), own(log, "grows", 1)))
    told = log.told((yield))
    assert told.keys() == {"app.jsonl"}
    assert "4 lines that it held no longer count" in told["app.jsonl"]
    path.write_bytes(b"")
    assert "1 line that it held no longer count" in log.told((yield))["app.jsonl"]
    assert log.told((yield)) == {}


@HISTORIES.test
@pytest.mark.parametrize("name", ["app.jsonl", "app.jsonl.1.gz"])
def test_what_a_log_lost_when_it_was_cut_is_lost_until_its_lines_stand_in_a_log_again(
    log: LogFolder, name: str
) -> Steps:
    """Copied by rotation to a name that does not count, its rows are gone; and back once the copy is renamed."""
    lines = [own(log, "a"), own(log, "b"), "bad", own(log, "c", 5)]
    path = log.write("app.jsonl", bytes_of(*lines))
    yield
    path.write_bytes(b"")
    yield
    assert lost_of(log) == [("app.jsonl (cut)", 4)]
    path.write_bytes(bytes_of(own(log, "d")))
    for _ in range(2):
        yield
        assert restarts_of(log) == [("d", "app.jsonl", 1)]
        assert lost_of(log) == [("app.jsonl (cut)", 4)]
    log.write(name, bytes_of(*lines, own(log, "e", 1)))
    yield
    assert log.files_read((yield)) == []
    assert lost_of(log) == []
    assert {"a", "b", "c", "e"} <= {*agents_of(log)}


@HISTORIES.test
def test_a_log_that_rotation_names_by_its_date_counts_on(log: LogFolder) -> Steps:
    path = log.write("app.jsonl", bytes_of(own(log, "a"), own(log, "a", 1)))
    yield
    yield
    dated = path.rename(path.with_name("app.jsonl-20260607"))
    log.write("app.jsonl", bytes_of(own(log, "a", 2)))
    assert log.told((yield)) == {}
    assert len(restarts_of(log)) == 3
    gzipped(dated)
    assert log.told((yield)) == {}
    assert len(restarts_of(log)) == 3


@HISTORIES.test
@pytest.mark.parametrize("name", ["a.jsonl", "judgements/a.jsonl"])
def test_a_file_that_was_rewritten_at_the_same_size_and_time_is_read_again(log: LogFolder, name: str) -> Steps:
    path = log.write(name, bytes_of(own(log, "one")))
    yield
    yield
    rewritten(path, own(log, "two"))
    assert log.key(name) in log.project.not_loaded()
    assert log.files_read((yield)) == [name]
    assert agents_of(log) == ["two"]


@HISTORIES.test
def test_a_copy_that_was_rewritten_at_the_same_size_and_time_counts(log: LogFolder) -> Steps:
    log.write("b.jsonl", bytes_of(own(log, "one")))
    path = log.write("a.jsonl", bytes_of(own(log, "one")))
    yield
    assert [row[1] for row in restarts_of(log)] == ["b.jsonl"]
    yield
    rewritten(path, own(log, "two"))
    assert log.files_read((yield)) == ["a.jsonl"]
    assert [row[:2] for row in restarts_of(log)] == [("one", "b.jsonl"), ("two", "a.jsonl")]


@HISTORIES.test
def test_a_ledger_of_an_older_version_learns_the_change_times(log: LogFolder) -> Steps:
    path = log.write("a.jsonl", bytes_of(own(log, "one")))
    yield
    yield
    key = [log.key("a.jsonl")]
    log.project.change("UPDATE raw_files SET changed_ns = NULL WHERE source_file = ?", key)
    assert log.files_read((yield)) == []
    learned = log.project.query("SELECT changed_ns FROM raw_files WHERE source_file = ?", key)
    assert learned == [(path.stat().st_ctime_ns,)]
    rewritten(path, own(log, "two"))
    assert log.files_read((yield)) == ["a.jsonl"]


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


def test_lines_that_this_program_makes_less_of_than_an_older_one_are_not_lost(project: Project) -> None:
    for name in ("as it was", "grown", "without identity"):
        project.write_log(f"{name}.jsonl", ['{"resourceSpans": []', restart(name, 0)])
    project.ingest(HOURS)
    project.change("UPDATE raw_logs SET lines = 50, digest = 'other' WHERE record_type = 'rejected'")
    project.change("UPDATE raw_logs SET record_type = 'span' WHERE record_type = 'rejected'")
    project.change("UPDATE raw_files SET modified_ns = -1")
    project.change(
        "UPDATE raw_files SET plain_bytes = NULL, content_digest = NULL, head_digests = NULL "
        "WHERE source_file = 'without identity.jsonl'"
    )
    with (project.raw / "grown.jsonl").open("ab") as log:
        log.write(bytes_of(restart("b", 1)))
    assert project.ingest(HOURS).notices == {}
    assert lost(project) == []
    assert_like_a_clean_rebuild(project)


def test_numbered_logs_push_the_oldest_out_and_its_rows_stay(project: Project) -> None:
    """The last name gets the content of the one before, which does not make its old lines untrue."""
    path = project.raw / "app.jsonl"
    for hour in range(4):
        for number in (1, 0):
            older = project.raw / (f"app.jsonl.{number}" if number else "app.jsonl")
            if older.exists():
                older.replace(project.raw / f"app.jsonl.{number + 1}")
        path.write_bytes(bytes_of(restart(f"of {hour}", hour), f"bad {hour}"))
        project.ingest(HOURS)
        assert [row[0] for row in restarts(project)] == [f"of {earlier}" for earlier in range(hour + 1)]
    assert len(project.rows("rejected_records")) == 4
    assert_lines_are_conserved(project)
    assert lost(project) == []


def test_what_a_cut_log_lost_is_counted_by_hour_and_told(project: Project) -> None:
    path = project.write_log("app.jsonl", [restart("a", 0), restart("b", 0), "bad", restart("c", 5)])
    project.ingest(HOURS)
    path.write_bytes(b"")
    project.ingest(HOURS)
    with project.warehouse.read() as session:
        [told] = FileLedger(session).lost()
        assert FileLedger(session).lines_and_lost(FIRST, 0) == {START: (3, 3)}
        assert [log.lines for log in FileLedger(session).lost(FIRST)] == [3], (
            "what is lost of later hours is not theirs"
        )
    assert str(told).startswith("app.jsonl was cut or replaced, and 4 lines of 2026-06-07T00 to 2026-06-07T06 (6 h)")


def test_a_line_that_was_half_written_and_one_of_the_future_are_not_lost_when_they_are_read_anew(
    project: Project,
) -> None:
    whole = bytes_of(restart("a", 0), restart("b", 5), restart("c", 7))
    project.now = START + 6 * HOUR
    path = project.write_bytes("app.jsonl", whole[:-1])
    for content, now in ((whole[:-20], 6), (whole, 6), (whole, 12)):
        path.write_bytes(content)
        project.now = START + now * HOUR
        assert project.ingest(HOURS).notices == {}
    assert project.rows("rejected_records") == []
    assert lost(project) == []


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
    assert command_here(*arguments, folder=project.folder).returncode == 0
    rewritten(path, restart("two", 0))
    project.change("UPDATE raw_files SET changed_ns = ?", [path.stat().st_ctime_ns])
    done = command_here(*arguments, folder=project.folder)
    assert "no run was made" in done.stdout
    assert [row[0] for row in restarts(project)] == ["one"]
    assert command_here(*arguments, "--full-refresh", folder=project.folder).returncode == 0
    assert [row[0] for row in restarts(project)] == ["two"]
