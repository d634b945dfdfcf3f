"""Parts of the collector by themselves: limits that are too large for a whole process, rotation, disks that fail."""

import errno
import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from starlette.testclient import TestClient

from health_assets.apps.collecting.app import create_app
from health_assets.apps.collecting.log_files import GroupCommit, LogFiles
from health_assets.apps.collecting.requests import LOGS, TRACES, Encoding, answer_of, converted
from health_assets_tests.support.collectors import request_of
from health_assets_tests.support.logs_made import START
from health_assets_tests.support.traces_made import agent

JSON = {"content-type": "application/json"}


def files_in(folder: Path) -> list[bytes]:
    """The content of each file, in the order of their names."""
    return [path.read_bytes() for path in sorted(folder.rglob("*.jsonl"))]


# -- limits --


def test_a_resource_that_makes_too_long_a_line_is_told_in_the_answer() -> None:
    short, long = (json.loads(request_of(*spans))["resourceSpans"][0] for spans in (
        [agent(1, 1, START)], [agent(1, number, START) for number in (2, 3, 4)],
    ))  # fmt: skip
    body = json.dumps({"resourceSpans": [short, long, short]}).encode()
    lines = converted(body, Encoding.JSON, TRACES, most_line_bytes=1000)
    assert (lines.rejected, lines.content.count(b"\n")) == (3, 2)
    reason = "a resource with its spans makes a line that is longer than the reader takes"
    assert json.loads(answer_of(3, Encoding.JSON, TRACES)) == {
        "partialSuccess": {"rejectedSpans": "3", "errorMessage": reason}
    }
    told = ExportTraceServiceResponse.FromString(answer_of(3, Encoding.PROTOBUF, TRACES)).partial_success
    assert (told.rejected_spans, told.error_message) == (3, reason)


def test_log_records_of_protobuf_likewise() -> None:
    request = ExportLogsServiceRequest()
    record = request.resource_logs.add().scope_logs.add().log_records.add(event_name="e", trace_id=b"\1" * 16)
    record.body.string_value = "text"
    written = b'{"timeUnixNano":"5","body":{"stringValue":"text"},"traceId":"%b","eventName":"e"}' % (b"01" * 16)
    record.time_unix_nano = 5
    body = request.SerializeToString()
    line = b'{"resourceLogs":[{"scopeLogs":[{"logRecords":[%b]}]}]}\n' % written
    assert converted(body, Encoding.PROTOBUF, LOGS) == (line, 0)
    assert converted(body, Encoding.PROTOBUF, LOGS, most_line_bytes=20) == (b"", 1)
    told = ExportLogsServiceResponse.FromString(answer_of(1, Encoding.PROTOBUF, LOGS)).partial_success
    assert told.rejected_log_records == 1


def test_half_a_character_stays_an_escape() -> None:
    body = request_of(agent(1, 1, START, name="half"))
    lines = converted(body.replace(b'"half"', b'"\\ud800 \xc3\xa9"'), Encoding.JSON, TRACES)
    assert b'"\\ud800 \xc3\xa9"' in lines.content


def test_when_too_much_waits_senders_are_told_to_come_again(tmp_path: Path) -> None:
    body = request_of(agent(1, 1, START))
    app = create_app({TRACES: GroupCommit(LogFiles(tmp_path), pytest.fail)}, None, None, most_waiting_bytes=len(body))
    with TestClient(app) as client:
        for _ in range(3):  # what was answered waits no longer
            assert client.post("/v1/traces", content=body, headers=JSON).status_code == 200
        refused = client.post("/v1/traces", content=body + b" ", headers=JSON)
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
    assert refused.json() == {"code": 8, "message": "too much waits to be written"}
    assert b"".join(files_in(tmp_path)).count(b"\n") == 3


# -- files --


def test_another_file_begins_with_the_hour_and_when_one_is_large(tmp_path: Path) -> None:
    now = datetime(2026, 6, 7, 23, 59, 59, 999_999, tzinfo=UTC)
    times = [now, now, now, now + timedelta(microseconds=1), now + timedelta(microseconds=1)]
    files = LogFiles(tmp_path, most_bytes=4, clock=iter([*times, *(now + timedelta(seconds=1) for _ in "a")]).__next__)
    for line in (b"1\n", b"2\n"):
        files.append(line)
    assert files_in(tmp_path) == [b"1\n2\n"]
    with pytest.raises(FileExistsError):  # of the same microsecond; nothing is appended to what is there
        files.append(b"3\n")
    for line in (b"3\n", b"4\n", b"5\n"):
        files.append(line)
    files.close()
    assert files_in(tmp_path) == [b"1\n2\n", b"3\n4\n", b"5\n"]
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["2026-06-07", "2026-06-08"]


@pytest.fixture
def syncs(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Descriptors that are synced."""
    synced: list[int] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        synced.append(descriptor)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    yield synced


def test_all_that_wait_are_written_with_one_sync_and_nobody_is_answered_before_it(
    tmp_path: Path, syncs: list[int]
) -> None:
    commit = GroupCommit(LogFiles(tmp_path), pytest.fail)
    files = commit._files
    files.append(b"first\n")
    before = len(syncs)
    futures = [commit.append(b"%d\n" % number) for number in range(100)]
    futures[7].cancel()  # whose client has gone
    synced_before = [
        future.add_done_callback(lambda _: seen.append(len(syncs))) for future in futures if not future.done()
    ]
    seen: list[int] = []
    assert len(synced_before) == 99
    commit.start()
    commit.stop()
    assert len(syncs) == before + 1
    assert seen == [before + 1] * 99
    lines = [b"first\n", *(b"%d\n" % number for number in range(100) if number != 7)]
    assert files_in(tmp_path) == [b"".join(lines)]


def test_after_a_sync_that_fails_nothing_is_acknowledged_and_another_file_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = LogFiles(tmp_path)
    files.append(b"1\n")

    def fails(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fails)
        with pytest.raises(OSError, match="Input/output error"):
            files.append(b"2\n")
        with pytest.raises(OSError, match="Input/output error"):  # the folder's name of a new file
            files.append(b"2\n")
    assert files_in(tmp_path) == [b"1\n"]
    files.append(b"3\n")
    files.close()
    assert files_in(tmp_path) == [b"1\n", b"3\n"]


def test_what_waits_at_the_end_is_written_and_a_fault_is_told_once_while_it_lasts(tmp_path: Path) -> None:
    told: list[str] = []
    commit = GroupCommit(LogFiles(tmp_path / "otlp"), told.append)
    (tmp_path / "otlp").write_text("no folder")
    commit.start()
    for _ in range(2):
        with pytest.raises(NotADirectoryError):
            commit.append(b"1\n").result(60)
    (tmp_path / "otlp").unlink()
    commit.append(b"2\n").result(60)
    last = commit.append(b"3\n")
    commit.stop()
    assert last.result(0) is None
    assert files_in(tmp_path) == [b"2\n3\n"]
    assert told == [
        "cannot write what is sent: Not a directory; requests get 503 until it can be written",
        "what is sent is written again",
    ]
