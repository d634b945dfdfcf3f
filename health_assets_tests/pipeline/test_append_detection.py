"""Of a log that only grew the new lines alone are read, and all tables are those of a clean rebuild."""

import json
from collections.abc import Callable, Sequence
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
from health_assets_tests.support.log_histories import Histories, LogFolder, Outcomes, Steps
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


def triggers(first: int, count: int, hour: int = 0, *, agent_id: str = "a") -> bytes:
    at = START + hour * HOUR
    return b"".join(
        line(trigger(f"t{number}", agent_id, at)).encode() + b"\n" for number in range(first, first + count)
    )


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


# -- logs that grow side by side, each in a folder of its own ----------------------------------------------------------


def _account_of_grown_logs(project: Project) -> list[tuple]:
    """What the ledger says, but for the logs that were read as a whole."""
    return [row for row in account(project) if not any(f"'{name}/" in str(row) for name in READ_AS_A_WHOLE)]


READ_AS_A_WHOLE: list[str] = []
"""Folders of the histories of `Case`."""
HISTORIES = Histories(HOURS, account=_account_of_grown_logs)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    return HISTORIES.run(tmp_path_factory.mktemp("histories"))


def test_after_each_step_all_tables_are_those_of_a_clean_rebuild(outcomes: Outcomes) -> None:
    assert outcomes.differences == []


def grow(log: LogFolder, content: bytes, name: str = "a.jsonl") -> None:
    before = log.path(name).read_bytes() if log.path(name).exists() else b""
    log.write(name, before + content, modified=MODIFIED)


def own_triggers(log: LogFolder, first: int, count: int, hour: int = 0) -> bytes:
    """Lines of an agent of this history, since equal files would be one."""
    return triggers(first, count, hour, agent_id=log.name)


def rejected_hours(log: LogFolder) -> list[datetime]:
    return [row["hour"] for row in log.rows("rejected_records")]


@HISTORIES.test
@pytest.mark.parametrize(
    "lines",
    [b"\n\n", otlp_line(agent(1, 1, START + HOUR)).encode() + b"\n", b"bad\n" + b"\xff\n"],
    ids=["blank lines", "a span", "bad lines"],
)
def test_a_log_may_grow_by_blank_lines_by_bad_ones_and_by_spans(log: LogFolder, lines: bytes) -> Steps:
    grow(log, own_triggers(log, 0, 5, hour=4))
    yield
    grow(log, lines)
    assert log.lines_read((yield)) <= 2


@HISTORIES.test
def test_a_rejected_line_has_the_hour_of_the_line_before_it_that_an_earlier_run_read(log: LogFolder) -> Steps:
    grow(log, own_triggers(log, 0, 1, hour=4) + own_triggers(log, 1, 1, hour=5) + b"\n\n")
    yield
    grow(log, b"bad\n" + own_triggers(log, 2, 1, hour=7))
    assert log.lines_read((yield)) == 2
    assert rejected_hours(log) == [START + 5 * HOUR]
    grow(log, own_triggers(log, 3, 1, hour=2))
    assert log.lines_read((yield)) == 5, "how many rejected lines keep their text follows from all"
    assert rejected_hours(log) == [START + 5 * HOUR]


@HISTORIES.test
def test_of_a_log_of_spans_that_grew_the_new_spans_alone_are_read_and_complete_their_traces(log: LogFolder) -> Steps:
    grow(log, otlp_line(agent(11, 1, START + HOUR / 2), tool(11, 2, START + HOUR / 2, 1)).encode() + b"\n")
    assert log.lines_read((yield)) == 2
    grow(log, otlp_line(tool(11, 3, START + HOUR / 2, 1), agent(12, 1, START + 2 * HOUR)).encode() + b"\n")
    assert log.lines_read((yield)) == 2
    assert [row["action_count"] for row in log.rows("executions") if row["hour"] == START] == [2]


@HISTORIES.test
def test_bad_lines_behind_a_line_that_holds_no_record_have_the_hour_of_the_record_before_it(log: LogFolder) -> Steps:
    grow(log, own_triggers(log, 0, 3, hour=4) + NO_SPANS)
    yield
    grow(log, b"bad\n" + own_triggers(log, 3, 1, hour=7))
    yield
    assert rejected_hours(log) == [START + 4 * HOUR]


@HISTORIES.test
def test_lines_to_mend_behind_what_was_read_are_mended_as_if_all_was_read_at_once(log: LogFolder) -> Steps:
    grow(log, own_triggers(log, 0, 2) + otlp_line(agent(21, 1, START)).encode() + b"\n")
    yield
    wrapped = json.dumps({"log": own_triggers(log, 2, 1).decode(), "stream": "stdout"}).replace(
        '{"log": ', '{ "log" : '
    )
    grow(log, wrapped.encode() + b"\n" + own_triggers(log, 3, 1).strip() + b"\t" + own_triggers(log, 4, 1))
    yield
    assert {row["trigger_id"] for row in log.rows("trigger_events")} >= {"t0", "t1", "t2"}


@HISTORIES.test
def test_new_lines_win_and_lose_against_those_that_were_read_before(log: LogFolder) -> Steps:
    def run(number: int, ended_at: datetime) -> bytes:
        return line(execution(f"e{number}", log.name, ended_at)).encode() + b"\n"

    late, early = START + HOUR / 2, START + HOUR / 4
    grow(log, run(1, early) + run(1, early) + run(2, late), "a.jsonl")
    grow(log, run(1, early) + run(3, early), "b.jsonl")
    yield
    grow(log, run(1, late) + run(2, early) + run(3, early), "a.jsonl")
    assert log.lines_read((yield)) == 3


@dataclass(frozen=True)
class Case:
    """A log as it is first and then, and how many lines have to be read of it then."""

    first: Callable[[LogFolder], bytes]
    then: Callable[[LogFolder], bytes]
    lines: int
    name: str = "a.jsonl"
    packed_name: str | None = None


def three(log: LogFolder) -> bytes:
    return own_triggers(log, 0, 3)


def new(log: LogFolder) -> bytes:
    return own_triggers(log, 9, 1)


def four(log: LogFolder) -> bytes:
    return three(log) + new(log)


def half(_: LogFolder) -> bytes:
    return b'{"type": "trig'


SPANS = otlp_line(agent(31, 1, START)).encode() + b"\n"
NO_SPANS = b'{"resourceSpans": []}\n'
CASES = {
    "a first line that is another": Case(three, lambda log: three(log).replace(b'"t0"', b'"x0"') + new(log), 4),
    "lines that are gone": Case(three, lambda log: own_triggers(log, 0, 2) + new(log) + new(log), 4),
    "half a line at the end": Case(
        lambda log: three(log) + half(log), lambda log: three(log) + half(log) + b"\n" + new(log), 5
    ),
    "a whole line without its end": Case(lambda log: three(log).rstrip(), four, 4),
    "a bad line": Case(lambda log: b"bad\n" + three(log), lambda log: b"bad\n" + four(log), 5),
    "a line without spans at the end": Case(
        lambda log: SPANS + three(log) + NO_SPANS, lambda log: SPANS + three(log) + NO_SPANS + new(log), 5
    ),
    "blank lines and nothing else": Case(lambda _: b"\n\n", lambda log: b"\n\n" + new(log), 1),
    "an object of a document": Case(new, lambda log: new(log) + three(log), 4, "a.json"),
    "UTF-16": Case(*(lambda log, of=of: of(log).decode().encode("utf-16") for of in (three, four)), 4),
    "a log that was packed": Case(three, four, 4, packed_name="a.jsonl.gz"),
}


@HISTORIES.test
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_log_is_read_as_a_whole_where_what_was_read_does_not_settle_it(log: LogFolder, case: Case) -> Steps:
    READ_AS_A_WHOLE.append(log.name)
    log.write(case.name, case.first(log), modified=MODIFIED)
    yield
    if case.packed_name:
        log.path(case.name).unlink()
    log.write(case.packed_name or case.name, case.then(log), modified=MODIFIED)
    assert log.lines_read((yield)) == case.lines


@HISTORIES.test
def test_a_log_that_grew_is_read_as_a_whole_after_an_upgrade_that_reads_logs_again(log: LogFolder) -> Steps:
    grow(log, three(log))
    yield
    log.project.change("UPDATE raw_files SET modified_ns = -1 WHERE source_file = ?", [log.key("a.jsonl")])
    grow(log, new(log))
    assert log.lines_read((yield)) == 4


@HISTORIES.test
def test_a_line_that_had_lost_counts_again_without_its_log_being_read_anew(log: LogFolder) -> Steps:
    READ_AS_A_WHOLE.append(log.name)
    grow(log, three(log), "a.jsonl")
    grow(log, own_triggers(log, 5, 1) + own_triggers(log, 0, 2), "b.jsonl")  # of equal times the greater name wins
    yield
    grow(log, new(log), "a.jsonl")
    log.write("b.jsonl", own_triggers(log, 5, 1) + own_triggers(log, 1, 1), modified=MODIFIED)
    assert log.lines_read((yield)) == 3


# -- one log alone -----------------------------------------------------------------------------------------------------


def test_a_log_of_which_somebody_deleted_rows_is_read_as_a_whole(project: Project) -> None:
    append(project, triggers(0, 3))
    project.ingest(HOURS)
    project.change("DELETE FROM trigger_events WHERE trigger_id = 't1'")
    append(project, triggers(9, 1))
    assert project.ingest(HOURS).lines_read == 4
    assert_as_read_at_once(project)


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
