"""Near misses of a known format: read and told where that is safe, else refused by what the file looks like."""

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HOUR
from health_assets.core.settings import Settings
from health_assets.core.targets import load_targets
from health_assets.logs.files import line_batches, list_files
from health_assets.logs.formats.foreign_lines import MAX_LINE_BYTES
from health_assets.logs.limits import Limits
from health_assets.logs.mending import BARE, HEADER, MOST_DOCUMENTS, NULS, PREFIXED, SEVERAL, WRAPPED, shows_signs
from health_assets.logs.unknown_formats import hint_of
from health_assets.pipeline.files_without_events import sentences_about
from health_assets.pipeline.partition_selection import select_hours
from health_assets_tests.support.logs_made import START, execution, line, trigger
from health_assets_tests.support.projects import Project, assert_lines_are_conserved, hours_from
from health_assets_tests.support.traces_made import agent, otlp_line

RUN, FIRED = line(execution("e", "a", START)), line(trigger("t", "a", START))
NOW = START + 100 * HOUR


def bare(record: str) -> str:
    [resource] = json.loads(record)["resourceSpans"]
    return json.dumps(resource)


def otlp(trace: int = 1) -> str:
    return otlp_line(agent(trace, 1, START))


def ingested(project: Project, content: bytes, name: str = "a.jsonl") -> tuple[Counter[str], str]:
    """Rows by table, and what is told of the file."""
    project.write_bytes(name, content, modified=START)
    report = project.ingest(hours_from(START, 2))
    assert_lines_are_conserved(project)
    tables = ("executions", "trigger_events", "spans", "rejected_records")
    rows = Counter({table: project.query(f"SELECT count(*) FROM {table}")[0][0] for table in tables})
    return +rows, report.notices.get(name, "")


CONTAINERS = [
    json.dumps({"log": RUN + "\n", "stream": "stdout", "time": "2026-06-07T00:00:00Z"}),
    json.dumps({"MESSAGE": RUN, "__REALTIME_TIMESTAMP": "1780801200000000", "PRIORITY": "6"}),
]
PREFIXES = [
    "2026-06-07T00:00:00.123456789Z stdout F ",
    "2026-06-07 00:00:00,123 INFO  [main] agents.log - ",
    "Jun  7 00:00:00 host agent[123]: ",
    "INFO: ",
    "[WARNING] ",
]


@pytest.mark.parametrize("wrapped", CONTAINERS)
def test_a_record_within_the_log_record_of_a_container_is_read_and_told(project: Project, wrapped: str) -> None:
    assert ingested(project, f"{wrapped}\n".encode()) == (Counter(executions=1), f"1 × {WRAPPED}")


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("record", [RUN, otlp(), bare(otlp())], ids=["native", "OTLP", "bare OTLP"])
def test_a_record_behind_a_log_prefix_is_read_and_told(project: Project, prefix: str, record: str) -> None:
    rows, told = ingested(project, f"{prefix}{record}\n".encode())
    assert rows["executions"] == 1
    assert not rows["rejected_records"]
    assert f"1 × {PREFIXED}" in told


@pytest.mark.parametrize("prefix", ["// ", "x", "var a = ", "a" * 400 + " 10:00:00 "])
def test_text_before_a_record_that_is_no_log_prefix_is_rejected(project: Project, prefix: str) -> None:
    assert ingested(project, f"{prefix}{RUN}\n".encode()) == (Counter(rejected_records=1), "")


def test_bare_resources_of_javas_logging_exporter_are_spans(project: Project) -> None:
    header = "Jun 07, 2026 12:00:02 AM io.opentelemetry.exporter.logging.otlp.OtlpJsonLoggingSpanExporter export"
    rows, told = ingested(project, f"{bare(otlp(1))}\n{header}\nINFO: {bare(otlp(2))}\n".encode())
    assert (rows["spans"], rows["executions"], rows["rejected_records"]) == (2, 2, 0)
    assert told == f"2 × {BARE}; 1 × {HEADER}; 1 × {PREFIXED}"


def test_bare_resources_on_one_line_are_read_each(project: Project) -> None:
    rows, told = ingested(project, f"{bare(otlp(1))}{bare(otlp(2))} {otlp(3)}\n".encode())
    assert rows == Counter(spans=3, executions=3)
    assert told == f"2 × {BARE}; 1 × {SEVERAL}"


def test_a_bare_resource_is_wrapped_by_its_own_keys(project: Project) -> None:
    resource = json.loads(bare(otlp()))
    named = {"resource": {"attributes": [{"key": "scopeLogs", "value": {"stringValue": '"scopeLogs":'}}]}}
    assert ingested(project, json.dumps(named | {"scopeSpans": resource["scopeSpans"]}).encode())[0]["spans"] == 1


def test_a_cut_bare_resource_is_not_told_as_mended(project: Project) -> None:
    assert ingested(project, f"{bare(otlp())[:-1]}\n".encode()) == (Counter(rejected_records=1), "")


def test_bare_resources_of_logs_are_refused_as_such(project: Project) -> None:
    ingested(project, b'{"resource": {"attributes": []}, "scopeLogs": [{"logRecords": []}]}\n')
    [(reason,)] = project.query("SELECT reason FROM rejected_records")
    assert reason.startswith("OTLP logs are not used, only traces")


@pytest.mark.parametrize("between", ["", " "])
def test_documents_on_one_line_are_read_each(project: Project, between: str) -> None:
    content = f"{RUN}{between}{FIRED}\n{line(trigger('u', 'a', START))}\n".encode()
    assert ingested(project, content) == (Counter(executions=1, trigger_events=2), f"1 × {SEVERAL}")
    assert project.query("SELECT line_number FROM trigger_events ORDER BY ALL") == [(1,), (2,)]


def many_objects() -> bytes:
    return b"{}" * 1_000_000


def many_records() -> bytes:
    return b'{"type":"execution"}' * (MOST_DOCUMENTS + 1)


def nested_wrappers() -> bytes:
    text = '{"x":1}'
    for _ in range(400):
        text = json.dumps({"log": "TEXT", "stream": "s"}).replace("TEXT", spelled(text))
    return text.encode()


def spelled(text: str) -> str:
    """A text within a JSON string, spelled so that its length does not double."""
    return text.replace("\\", "\\u005c").replace('"', "\\u0022")


@pytest.mark.parametrize("content", [many_objects, many_records, nested_wrappers])
def test_a_line_of_hostile_json_is_left_as_it_is_within_seconds(tmp_path: Path, content: Callable[[], bytes]) -> None:
    (tmp_path / "a.jsonl").write_bytes(content())
    begin = time.process_time()
    assert [fault for _, fault in lines_in(tmp_path)] == [None]
    assert time.process_time() - begin < 5


def lines_in(folder: Path) -> list[tuple[int, str | None]]:
    """Number and fault of each line of the files of a folder."""
    rows = [row for batch in line_batches(enumerate(list_files(folder))) for row in batch.to_pylist()]
    return [(row["line_number"], row["fault"]) for row in rows]


def test_a_byte_that_is_not_utf_8_rejects_its_own_line_and_mends_the_others(project: Project) -> None:
    lines = [
        f"INFO: {RUN}".encode(),
        b'INFO: {"type":"execution","x":"\xff"}',
        f"{FIRED}{otlp()}".encode(),
        b"\xff{}{}",
    ]
    rows, told = ingested(project, b"\n".join(lines) + b"\n")
    assert rows == Counter(executions=2, trigger_events=1, spans=1, rejected_records=2)
    assert told == f"1 × {PREFIXED}; 1 × {SEVERAL}"
    assert project.query("SELECT line_number, reason FROM rejected_records ORDER BY ALL") == [
        (2, "not valid UTF-8: byte 32 of the line"),
        (4, "not valid UTF-8: byte 1 of the line"),
    ]


HEADER_LINE = "Jun 07, 2026 12:00:02 AM io.opentelemetry.exporter.logging.otlp.OtlpJsonLoggingSpanExporter export"


@pytest.mark.parametrize(
    ("header", "note"),
    [(json.dumps({"log": f"{HEADER_LINE}\n", "stream": "stderr"}), WRAPPED), (f"\0\0{HEADER_LINE}", NULS)],
)
def test_a_header_of_java_is_left_out_also_where_its_line_is_mended(project: Project, header: str, note: str) -> None:
    rows, told = ingested(project, f"{header}\n{RUN}\n".encode())
    assert rows == Counter(executions=1)
    assert f"1 × {note}" in told
    assert f"1 × {HEADER}" in told


def test_half_a_surrogate_pair_within_a_container_record_rejects_its_line_alone(project: Project) -> None:
    wrapped = json.dumps({"log": '{"type":"execution","x":"\ud800"}\n', "stream": "stdout"})
    assert ingested(project, f"{wrapped}\n{RUN}\n".encode()) == (Counter(executions=1, rejected_records=1), "")


@pytest.mark.parametrize("nuls", [2, 3000, MAX_LINE_BYTES + 5], ids=["few", "many", "more than a line may have"])
def test_nuls_that_copytruncate_left_are_skipped_and_every_line_behind_them_counts(project: Project, nuls: int) -> None:
    content = b"\0" * nuls + f"{RUN}\n{FIRED}\n".encode()
    assert ingested(project, content) == (Counter(executions=1, trigger_events=1), f"1 × {NULS}")


def test_a_file_with_mended_lines_that_grows_is_that_of_a_clean_rebuild(project: Project) -> None:
    first = f"{RUN}{FIRED}\n".encode()
    ingested(project, first)
    rows, told = ingested(project, first + b"bad\n" + f"INFO: {line(trigger('u', 'a', START))}\n".encode())
    assert rows == Counter(executions=1, trigger_events=2, rejected_records=1)
    assert told == f"1 × {SEVERAL}; 1 × {PREFIXED}"


@pytest.mark.parametrize(
    "content",
    [
        json.dumps([json.loads(RUN), json.loads(FIRED)]),
        json.dumps([json.loads(RUN), json.loads(FIRED)], indent=2),
        json.dumps(json.loads(RUN), indent=2) + "\n" + json.dumps(json.loads(FIRED), indent=2) + "\n",
    ],
    ids=["an array", "a pretty array", "pretty objects"],
)
def test_documents_in_a_file_named_as_one_of_lines_are_read(project: Project, content: str) -> None:
    assert ingested(project, content.encode())[0] == Counter(executions=1, trigger_events=1)


def test_a_pretty_document_of_otlp_in_a_file_named_as_one_of_lines_is_read(project: Project) -> None:
    assert ingested(project, json.dumps(json.loads(otlp()), indent=1).encode())[0] == Counter(executions=1, spans=1)


def test_a_damaged_first_line_makes_no_document_of_lines(project: Project) -> None:
    assert ingested(project, f"{{\n{RUN}\n".encode())[0] == Counter(executions=1, rejected_records=1)


def test_usual_lines_show_no_sign() -> None:
    assert not shows_signs(f"{RUN}\n\r\n {FIRED}\n{otlp()}\n".encode().replace(b'"scope', b'"s'))
    assert shows_signs(b"\nx\n")


@pytest.mark.parametrize(
    "odd",
    [
        f"{RUN}{RUN}",
        f"{RUN} {RUN}",
        f"{RUN}\t{RUN}",
        f"INFO {RUN}",
        f"\0{RUN}",
        '{"log": "", "stream": ""}',
        '{ "log": "", "stream": ""}',
        ' {"log": "", "stream": ""}',
        '{"__CURSOR": 1, "MESSAGE": ""}',
        '{"scopeSpans": []}',
        '{"resource": {}, "scopeSpans": []}',
        '{"schemaUrl": "", "scopeLogs": []}',
    ],
)
def test_one_odd_line_among_usual_ones_shows_a_sign(odd: str) -> None:
    for lines in ([odd], [odd, RUN], [RUN, odd], [RUN, odd, RUN]):
        assert shows_signs("\n".join(lines).encode()), lines


LOOKS = [
    (b"PK\x03\x04rest", "a ZIP archive"),
    (b"SQLite format 3\0rest", "an SQLite database"),
    (b"PAR1rest", "a Parquet file"),
    (b"<!DOCTYPE html><html>", "an HTML page"),
    (b"a,b,c\n1,2,3\n", "CSV"),
    (b"a\tb\n1\t2\n", "tab-separated values"),
    (b"agent: x\nruns: 3\n", "YAML"),
    (b"hello there\nsecond\n", "plain text"),
    (b"\0\0\0\n", "NUL bytes and blanks alone"),
    (b"", "an empty file"),
    (b"\xc2\xa0\n", "blanks alone"),
    (b"\x1c\n", "blanks alone"),
    (b"\xef\xbb\xbf\xef\xbb\xbf", "blanks alone"),
    (b"\xef\xbb\xbf\r\n", "blanks alone"),
    (b"\xef\xbb\xbf\xc2\xa0\xef\xbb\xbf", "blanks alone"),
    (b'\xc2\xa0{"type":["string","null"]}', "JSON objects with the fields type"),
    (b'{"sessionId":"s","type":{}}', "JSON objects with the fields sessionId, type"),
    (b'{"\\ud800":1}', "JSON objects with the fields ?"),
    (bytes(range(128, 256)), "binary data"),
    (b'[{"traceId":"t","id":"i","localEndpoint":{}}]', "spans of Zipkin"),
    (b'{"data":[{"traceID":"t","spans":[]}]}', "traces of Jaeger"),
    (b'{"name":"x","context":{"trace_id":"0x1"}}', "spans as OpenTelemetry's console exporter"),
    (b'{"run_type":"chain","trace_id":"t"}', "runs of LangSmith"),
    (b'{"level":"info","msg":"x"}\n', "lines of a program's log"),
    (b'{"level":', "JSON that is not valid"),
    (b'{"level":"' + (1 << 20) * b"x", "the beginning of a JSON value of more than 1 MiB"),
    (b'\xef\xbb\xbf{"runs":[' + (1 << 17) * b'{"a": 1},', "the beginning of a JSON value of more than 1 MiB"),
    (b"{'level': 1}\n" + (1 << 20) * b"x", "JSON that is not valid"),
]


@pytest.mark.parametrize(("head", "name"), LOOKS, ids=[name for _, name in LOOKS])
def test_a_file_that_no_reader_knows_is_told_by_what_it_looks_like(head: bytes, name: str) -> None:
    assert hint_of(head).name.startswith(name)


@pytest.mark.parametrize("head", [head for head, _ in LOOKS])
def test_a_file_that_no_reader_knows_does_not_stop_the_others(project: Project, head: bytes) -> None:
    project.write_bytes("notes.json", head, modified=START)
    assert ingested(project, f"{RUN}\n".encode())[0]["executions"] == 1


def test_looks_can_be_the_first_module_that_is_imported() -> None:
    subprocess.run([sys.executable, "-c", "import health_assets.logs.unknown_formats"], check=True)


def test_logs_without_any_event_are_told_by_name_look_and_reason_at_once(project: Project) -> None:
    project.write_bytes("runs.jsonl", b'{"run_type":"chain","type":"chain","trace_id":"t"}\n' * 3, modified=START)
    project.write_bytes("t.json", b"a,b\n1,2\n", modified=START)
    project.write_bytes("z.jsonl.gz", b'{"type":"execution","execution_id":"e"}\n', modified=START)
    with pytest.raises(HealthAssetsError) as told:
        select_hours(replace(project.pipeline, clock=lambda: NOW), None, None)
    text = str(told.value)
    assert "runs.jsonl looks like runs of LangSmith" in text
    assert "line 1: type must be one of execution, cancellation, trigger" in text
    assert "t.json looks like CSV" in text
    assert "z.jsonl.gz looks like JSON objects with the fields type, execution_id" in text
    assert "line 1: agent_id is missing" in text


def test_no_secret_of_a_file_without_events_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"type": "password=hunter2hunter2"}\n')
    [sentence] = sentences_about(list_files(tmp_path), load_targets(None), Limits.of(Settings(), NOW))
    assert "hunter2" not in sentence
