"""Of a log that only grew the new lines alone are read, and all tables are those of a clean rebuild."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from health_assets.core.hours import HOUR
from health_assets.logs.append_proof import beginning
from health_assets.logs.files import list_files
from health_assets.warehouse.file_ledger import FileLedger
from health_assets_tests.fuzz.mutations import mutated
from health_assets_tests.support.examples import tried_with
from health_assets_tests.support.logs_made import START, execution, line, random_lines, trigger
from health_assets_tests.support.projects import (
    RECORD_TABLES,
    Project,
    assert_lines_are_conserved,
    assert_same_tables,
    hours_from,
)
from health_assets_tests.support.traces_made import agent, otlp_line, tool

HOURS = hours_from(START, 12)
MODIFIED = START + 20 * HOUR
"""The time of every file, which decides the hour of a file without any good line."""


def triggers(first: int, count: int, hour: int = 0) -> bytes:
    at = START + hour * HOUR
    return b"".join(line(trigger(f"t{number}", "a", at)).encode() + b"\n" for number in range(first, first + count))


def append(project: Project, content: bytes, name: str = "a.jsonl") -> None:
    before = (project.raw / name).read_bytes() if (project.raw / name).exists() else b""
    project.write_bytes(name, before + content, modified=MODIFIED)


def account(project: Project) -> list[tuple]:
    """All that the ledger says of files and parts, but for when."""
    parts = "SELECT source_file, record_type, hour, lines, digest, is_loaded FROM raw_logs"
    files = "SELECT source_file, size_bytes, lines, rejected, plain_bytes, content_digest, head_digests FROM raw_files"
    return [*sorted(map(str, project.query(parts))), *sorted(map(str, project.query(files)))]


def assert_as_read_at_once(project: Project, name: str = "clean") -> None:
    clean = project.clean_rebuild(HOURS, name, only=["ingest"])
    assert_same_tables(project.tables(names=RECORD_TABLES), clean.tables(names=RECORD_TABLES))
    assert account(project) == account(clean)
    assert_lines_are_conserved(project)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


def test_of_a_log_that_grew_the_new_lines_alone_are_read(project: Project) -> None:
    append(project, triggers(0, 50))
    assert project.ingest(HOURS).lines_read == 50
    new = b"\n\r\n" + triggers(50, 2, hour=3) + triggers(7, 1)
    append(project, new)
    report = project.ingest(HOURS)
    assert (report.files_read, report.lines_read, report.bytes_read) == (["a.jsonl"], 3, len(new))
    assert report.changed_hours == {START, START + 3 * HOUR}
    assert_as_read_at_once(project)
    assert project.ingest(HOURS).files_read == []


def test_each_line_is_read_once_by_runs_of_every_hour_while_its_log_grows(project: Project) -> None:
    """Ten hours in five steps, each of which has lines of hours before and behind those that were asked for."""
    read = 0
    for step in range(5):
        append(project, b"".join(triggers(20 * step + 2 * hour, 2, hour=hour) for hour in range(10)))
        for hour in (2 * step, 2 * step + 1):
            read += project.ingest(hours_from(START + hour * HOUR, 1)).lines_read
    assert read == 100
    assert project.ingest(HOURS).lines_read == 0
    assert_as_read_at_once(project)


def test_a_log_may_grow_by_blank_lines_by_bad_ones_and_by_spans(project: Project) -> None:
    append(project, triggers(0, 5, hour=4))
    project.ingest(HOURS)
    for number, new in enumerate(
        (b"\n\n", otlp_line(agent(1, 1, START + HOUR)).encode() + b"\n", b"bad\n" + b"\xff\n")
    ):
        append(project, new)
        assert project.ingest(HOURS).lines_read <= 2
        assert_as_read_at_once(project, f"clean {number}")
        if number:
            (project.raw / "a.jsonl").unlink()
            project.ingest(HOURS)
            project = Project(project.folder / f"next {number}")
            append(project, triggers(0, 5, hour=4))
            project.ingest(HOURS)


def test_a_rejected_line_has_the_hour_of_the_line_before_it_that_an_earlier_run_read(project: Project) -> None:
    append(project, triggers(0, 1, hour=4) + triggers(1, 1, hour=5) + b"\n\n")
    project.ingest(HOURS)
    append(project, b"bad\n" + triggers(2, 1, hour=7))
    assert project.ingest(HOURS).lines_read == 2
    assert [row["hour"] for row in project.rows("rejected_records")] == [START + 5 * HOUR]
    append(project, triggers(3, 1, hour=2))
    assert project.ingest(HOURS).lines_read == 5, "how many rejected lines keep their text follows from all"
    assert [row["hour"] for row in project.rows("rejected_records")] == [START + 5 * HOUR]
    assert_as_read_at_once(project)


def test_of_a_log_of_spans_that_grew_the_new_spans_alone_are_read_and_complete_their_traces(project: Project) -> None:
    append(project, otlp_line(agent(1, 1, START + HOUR / 2), tool(1, 2, START + HOUR / 2, 1)).encode() + b"\n")
    assert project.ingest(HOURS).spans_read == 2
    append(project, otlp_line(tool(1, 3, START + HOUR / 2, 1), agent(2, 1, START + 2 * HOUR)).encode() + b"\n")
    report = project.ingest(HOURS)
    assert (report.spans_read, report.lines_read) == (2, 0)
    assert [row["action_count"] for row in project.rows("executions", hours_from(START, 1))] == [2]
    assert_as_read_at_once(project)


def test_bad_lines_behind_a_line_that_holds_no_record_have_the_hour_of_the_record_before_it(project: Project) -> None:
    append(project, triggers(0, 3, hour=4) + NO_SPANS)
    project.ingest(HOURS)
    append(project, b"bad\n" + triggers(3, 1, hour=7))
    project.ingest(HOURS)
    assert [row["hour"] for row in project.rows("rejected_records")] == [START + 4 * HOUR]
    assert_as_read_at_once(project)


def test_lines_to_mend_behind_what_was_read_are_mended_as_if_all_was_read_at_once(project: Project) -> None:
    append(project, triggers(0, 2) + SPANS)
    project.ingest(HOURS)
    wrapped = (
        json.dumps({"log": triggers(2, 1).decode(), "stream": "stdout"}).replace('{"log": ', '{ "log" : ').encode()
    )
    append(project, wrapped + b"\n" + triggers(3, 1).strip() + b"\t" + triggers(4, 1))
    project.ingest(HOURS)
    assert_as_read_at_once(project)


def test_new_lines_win_and_lose_against_those_that_were_read_before(project: Project) -> None:
    def run(number: int, ended_at: datetime) -> bytes:
        return line(execution(f"e{number}", "a", ended_at)).encode() + b"\n"

    late, early = START + HOUR / 2, START + HOUR / 4
    append(project, run(1, early) + run(1, early) + run(2, late), "a.jsonl")
    append(project, run(1, early) + run(3, early), "b.jsonl")
    project.ingest(HOURS)
    append(project, run(1, late) + run(2, early) + run(3, early), "a.jsonl")
    assert project.ingest(HOURS).lines_read == 3
    assert_as_read_at_once(project)


@dataclass(frozen=True)
class Case:
    """A log as it is first and then, and how many lines have to be read of it then."""

    first: bytes
    then: bytes
    lines: int
    name: str = "a.jsonl"
    packed_name: str | None = None


THREE, NEW = triggers(0, 3), triggers(9, 1)
SPANS = otlp_line(agent(1, 1, START)).encode() + b"\n"
NO_SPANS = b'{"resourceSpans": []}\n'
CASES = {
    "a first line that is another": Case(THREE, THREE.replace(b'"t0"', b'"x0"') + NEW, 4),
    "lines that are gone": Case(THREE, triggers(0, 2) + NEW + NEW, 4),
    "half a line at the end": Case(THREE + b'{"type": "trig', THREE + b'{"type": "trig' + b"\n" + NEW, 5),
    "a whole line without its end": Case(THREE.rstrip(), THREE + NEW, 4),
    "a bad line": Case(b"bad\n" + THREE, b"bad\n" + THREE + NEW, 5),
    "a line without spans at the end": Case(SPANS + THREE + NO_SPANS, SPANS + THREE + NO_SPANS + NEW, 4),
    "blank lines and nothing else": Case(b"\n\n", b"\n\n" + NEW, 1),
    "an object of a document": Case(NEW, NEW + THREE, 4, "a.json"),
    "UTF-16": Case(*(text.decode().encode("utf-16") for text in (THREE, THREE + NEW)), 4),
    "a log that was packed": Case(THREE, THREE + NEW, 4, packed_name="a.jsonl.gz"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_log_is_read_as_a_whole_where_what_was_read_does_not_settle_it(project: Project, case: Case) -> None:
    project.write_bytes(case.name, case.first, modified=MODIFIED)
    project.ingest(HOURS)
    if case.packed_name:
        (project.raw / case.name).unlink()
    project.write_bytes(case.packed_name or case.name, case.then, modified=MODIFIED)
    assert project.ingest(HOURS).lines_read == case.lines
    clean = project.clean_rebuild(HOURS, only=["ingest"])
    assert_same_tables(project.tables(names=RECORD_TABLES), clean.tables(names=RECORD_TABLES))
    assert_lines_are_conserved(project)


def test_a_log_that_grew_is_read_as_a_whole_after_an_upgrade_that_reads_logs_again(project: Project) -> None:
    append(project, THREE)
    project.ingest(HOURS)
    project.change("UPDATE raw_files SET modified_ns = -1")
    append(project, NEW)
    assert project.ingest(HOURS).lines_read == 4
    assert_as_read_at_once(project)


def test_a_log_of_which_somebody_deleted_rows_is_read_as_a_whole(project: Project) -> None:
    append(project, THREE)
    project.ingest(HOURS)
    project.change("DELETE FROM trigger_events WHERE trigger_id = 't1'")
    append(project, NEW)
    assert project.ingest(HOURS).lines_read == 4
    assert_as_read_at_once(project)


def test_a_line_that_had_lost_counts_again_without_its_log_being_read_anew(project: Project) -> None:
    append(project, THREE, "a.jsonl")
    append(project, triggers(5, 1) + triggers(0, 2), "b.jsonl")  # of equal times the greater name wins
    project.ingest(HOURS)
    append(project, NEW, "a.jsonl")
    project.write_bytes("b.jsonl", triggers(5, 1) + triggers(1, 1), modified=MODIFIED)
    assert project.ingest(HOURS).lines_read == 3
    tables = project.tables(names=RECORD_TABLES)
    assert_same_tables(tables, project.clean_rebuild(HOURS, only=["ingest"]).tables(names=RECORD_TABLES))


def test_an_hour_that_was_not_asked_for_before_needs_no_line_read_again(project: Project) -> None:
    append(project, triggers(0, 3, hour=1) + triggers(3, 4, hour=9))
    project.ingest(hours_from(START, 4))
    append(project, triggers(7, 1, hour=1))
    assert project.ingest(hours_from(START, 4)).lines_read == 1
    append(project, triggers(8, 1, hour=1))
    assert project.ingest(HOURS).lines_read == 1
    assert_as_read_at_once(project)


def test_a_log_that_changes_before_its_end_has_no_proof_that_it_only_grew(project: Project) -> None:
    append(project, triggers(0, 3))
    project.ingest(HOURS)
    with project.warehouse.read() as session:
        identity = FileLedger(session).known(START)["a.jsonl"].identity
    assert identity is not None

    def proof(content: bytes) -> Any:
        project.write_bytes("a.jsonl", content)
        return beginning(list_files(project.raw)[0], identity)

    old, new = triggers(0, 3), triggers(3, 1)
    assert proof(old) is None
    assert proof(old[:-1] + b" " + new) is None
    for place in (0, 40, len(old) - 2):
        assert proof(old[:place] + bytes([old[place] ^ 1]) + old[place + 1 :] + new) is None
    found = proof(old + new)
    assert (found.lines, found.size_bytes) == (3, len(old))


# -- any lines, cut anywhere -------------------------------------------------------------------------------------------

SAMPLES = [one.encode() for one in random_lines(Random(3), 200, 10, bad_share=0)]
SPAN_SAMPLES = [
    otlp_line(agent(trace, 1, START + at * HOUR), tool(trace, 2, START + at * HOUR, 1)).encode()
    for trace, at in ((1, 1.1), (1, 2.1), (2, 3.5), (3, 1.9), (4, 7.2))
]
SPAN_SAMPLES += [otlp_line(tool(trace, 3, START + at * HOUR, 1)).encode() for trace, at in ((1, 1.2), (2, 3.1), (5, 4))]
SPAN_SAMPLES += [b'{"resourceSpans": []}', b'{"resourceMetrics": []}', b'{"resourceSpans": [{"scopeSpans": []}]}']
ODD_ENDS = (b"\n", b"\n", b"\n", b"\n", b"\r\n", b"\n\n", b" \t\n", b"\n\xef\xbb\xbf", b"")


def pieces(random: Random, damaged_share: float, samples: Sequence[bytes]) -> Sequence[bytes]:
    """Pieces that are appended to a log one by one: odd lines, most of them whole."""
    return [
        b"".join(
            (mutated(random, samples) if random.random() < damaged_share else random.choice(samples))
            + (random.choice(ODD_ENDS) if random.random() < 0.1 else b"\n")
            for _ in range(random.randrange(1, 12))
        )
        for _ in range(random.randrange(2, 5))
    ]


@given(
    seed=st.integers(0, 10**9),
    damaged_share=st.sampled_from([0, 0.01, 0.1]),
    samples=st.sampled_from([SAMPLES, SPAN_SAMPLES[:-3], [*SAMPLES[:8], *SPAN_SAMPLES]]),
)
@tried_with(2, 200)
def test_a_log_of_odd_lines_that_grows_piece_by_piece_is_as_one_that_is_read_at_once(
    tmp_path_factory: pytest.TempPathFactory, seed: int, damaged_share: float, samples: Sequence[bytes]
) -> None:
    random = Random(seed)
    project = Project(tmp_path_factory.mktemp("grown") / "project")
    for piece in pieces(random, damaged_share, samples):
        append(project, piece, random.choice(["a.jsonl", "a.jsonl", "b.jsonl"]))
        project.ingest(HOURS if random.random() < 0.8 else hours_from(START + random.randrange(8) * HOUR, 3))
    project.ingest(HOURS)
    assert_same_tables(
        project.tables(names=RECORD_TABLES), project.clean_rebuild(HOURS, only=["ingest"]).tables(names=RECORD_TABLES)
    )
    assert_lines_are_conserved(project)
