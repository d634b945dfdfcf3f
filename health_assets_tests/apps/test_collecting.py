"""The collector, as exporters of OpenTelemetry see it: what was acknowledged becomes executions, whatever happens."""

import gzip
import json
import os
import resource
import shutil
import signal
import socket
import ssl
import stat
import threading
import time
from datetime import timedelta
from pathlib import Path
from random import Random

import httpx
import pytest
from google.protobuf.json_format import MessageToDict
from google.rpc.status_pb2 import Status
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import StatusCode
from typer.testing import CliRunner

from health_assets.cli.commands import app
from health_assets.core.hours import HOUR, HourRange
from health_assets_tests.apps.test_serving_tls import certificate
from health_assets_tests.support.collectors import (
    Collector,
    collecting,
    ids_in,
    kill_under_load,
    lines_in,
    post,
    request_of,
)
from health_assets_tests.support.logs_made import START
from health_assets_tests.support.ports import free_port
from health_assets_tests.support.projects import Project
from health_assets_tests.support.traces_made import agent, attributes, chat, nanoseconds, span_id, trace_id

TOKEN = "a-token-of-the-tests"
PROTOBUF = "application/x-protobuf"
THE_HOUR = HourRange.of(START)
IN_THE_HOUR = START + HOUR / 2
EXECUTIONS = "SELECT agent_id, status, input_tokens FROM executions ORDER BY ALL"


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Collector:
    with collecting(tmp_path_factory.mktemp("collector")) as collector:
        yield collector


def raw_of(collector: Collector) -> Path:
    return collector.stderr.parent / "raw"


def project_of(folder: Path) -> Project:
    """A project whose raw root is that of a collector."""
    return Project(folder)


# -- what is sent --


def export(url: str, **options: object) -> None:
    """Two runs of an agent by the SDK, of which one fails, as it would be set up in a program."""
    exporter = OTLPSpanExporter(f"{url}/v1/traces", **options)  # type: ignore[arg-type]
    provider = TracerProvider(resource=Resource({"service.name": "shop"}))
    provider.add_span_processor(BatchSpanProcessor(exporter))
    tracer = provider.get_tracer("tests")
    start = nanoseconds(IN_THE_HOUR)
    for code in (StatusCode.OK, StatusCode.ERROR):
        run = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "planner"}
        call = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "m1",
            "gen_ai.usage.input_tokens": 5_000_000_000,
        }
        with tracer.start_as_current_span(
            "invoke_agent planner", attributes=run, start_time=start, end_on_exit=False
        ) as span:
            tracer.start_span("chat m1", attributes=call, start_time=start + 1).end(start + 10**9)
            span.set_status(code, "timed out" if code is StatusCode.ERROR else None)
            span.end(start + 2 * 10**9)
    provider.shutdown()


@pytest.mark.parametrize("compression", [Compression.NoCompression, Compression.Gzip])
def test_what_an_exporter_of_the_sdk_sends_becomes_executions(tmp_path: Path, compression: Compression) -> None:
    with collecting(tmp_path) as collector:
        export(collector.url, compression=compression)
    project = project_of(tmp_path)
    report = project.ingest(THE_HOUR)
    assert (report.spans_read, report.rejected) == (4, 0)
    assert project.query(EXECUTIONS) == [("planner", "failure", 5_000_000_000), ("planner", "success", 5_000_000_000)]
    assert project.query("SELECT error, started_at, ended_at FROM executions WHERE status = 'failure'") == [
        ("timed out", IN_THE_HOUR, IN_THE_HOUR + timedelta(seconds=2))
    ]


def test_json_becomes_the_same_executions_whichever_spelling_and_however_often_it_is_sent(tmp_path: Path) -> None:
    body = request_of(agent(1, 1, IN_THE_HOUR), chat(1, 2, IN_THE_HOUR, 1, gen_ai__usage__input_tokens=5))
    snake = body.replace(b"resourceSpans", b"resource_spans").replace(b"traceId", b"trace_id")
    with collecting(tmp_path) as collector:
        for sent in (body, json.dumps(json.loads(body), indent=2).encode(), snake, gzip.compress(body)):
            packed = {"content_encoding": "gzip"} if sent.startswith(b"\x1f") else {}
            answer = post(collector.url, sent, **packed)
            assert (answer.status_code, answer.content, answer.headers["content-type"]) == (
                200, b"{}", "application/json",
            )  # fmt: skip
    assert len(lines_in(tmp_path / "raw")) == 4
    project = project_of(tmp_path)
    assert project.ingest(THE_HOUR).rejected == 0
    assert project.query(EXECUTIONS) == [("planner", "success", 5)]


def test_a_request_is_a_line_for_each_resource_that_has_spans(collector: Collector) -> None:
    before = len(lines_in(raw_of(collector)))
    one = json.loads(request_of(agent(2, 1, START)))["resourceSpans"][0]
    empty = {**one, "scopeSpans": [{"spans": []}]}
    assert post(collector.url, json.dumps({"resourceSpans": [one, empty, one]}).encode()).status_code == 200
    assert post(collector.url, b"{}").status_code == 200
    assert len(lines_in(raw_of(collector))) == before + 2


def test_log_records_are_lines_of_their_own(collector: Collector) -> None:
    result = attributes(gen_ai__evaluation__name="relevance", gen_ai__evaluation__score__value=0.5)
    record = {
        "timeUnixNano": str(nanoseconds(IN_THE_HOUR)), "eventName": "gen_ai.evaluation.result",
        "traceId": trace_id(1), "spanId": span_id(1), "attributes": result,
    }  # fmt: skip
    body = json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}).encode()
    answer = httpx.post(f"{collector.url}/v1/logs", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 200
    [line] = lines_in(raw_of(collector) / "otlp" / "logs")
    assert json.loads(line)["resourceLogs"][0]["scopeLogs"][0]["logRecords"] == [record]


def test_files_and_folders_are_their_owners_alone(collector: Collector) -> None:
    post(collector.url, request_of(agent(3, 1, START)))
    folder = raw_of(collector) / "otlp" / "traces"
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.rglob("*"))}
    assert {mode for name, mode in modes.items() if name.endswith(".jsonl")} == {0o600}
    assert {mode for name, mode in modes.items() if not name.endswith(".jsonl")} == {0o700}


# -- what is refused --

NESTED = b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}]}]}]}"
REFUSED: list[tuple[bytes, dict[str, str], int, str]] = [
    (b"\xff\xff", {"content_type": PROTOBUF}, 400, "the body is no ExportTraceServiceRequest of Protobuf"),
    (b"{", {}, 400, "the body is not valid JSON"),
    (NESTED, {}, 400, "the body is not valid JSON"),
    (b'{"resourceSpans":[{"a":NaN}]}', {}, 400, "the body is not valid JSON"),
    (b'{"resourceSpans":[],"resourceSpans":[]}', {}, 400, "a key stands twice in an object of the JSON"),
    (b"[]", {}, 400, "the body must be an object"),
    (b'{"resourceLogs":[]}', {}, 400, "the body must have resourceSpans, a list of objects"),
    (b'{"resourceSpans":[{"a":1}]}', {}, 400, "resourceSpans must have scopeSpans, a list of objects"),
    (b"no gzip", {"content_encoding": "gzip"}, 400, "the body is not valid gzip"),
    (gzip.compress(b"{}")[:-1], {"content_encoding": "gzip"}, 400, "the body is not one whole gzip stream"),
    (b" " * (20 << 20) + b"{}", {}, 413, "a request may have 20 MiB, unpacked; make batches smaller"),
    (gzip.compress(b"\0" * (21 << 20)), {"content_encoding": "gzip", "content_type": PROTOBUF}, 413,
     "a request may have 20 MiB, unpacked; make batches smaller"),
    (b"{}", {"content_encoding": "zstd"}, 415, "the content encoding must be gzip, or none"),
    (b"{}", {"content_type": "text/plain"}, 415,
     "the content type must be application/x-protobuf or application/json"),
    (b"{}", {"host": "rebound.example"}, 421,
     "this host name is not answered here; the operator lists names in HEALTH_ALLOWED_HOSTS"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "headers", "status", "message"),
    REFUSED,
    # bodies are long, and gzip writes the time into them
    ids=[f"{number} {message}" for number, (*_, message) in enumerate(REFUSED)],
)
def test_what_is_no_request_gets_a_status_in_its_own_encoding_and_leaves_no_line(
    collector: Collector, body: bytes, headers: dict[str, str], status: int, message: str
) -> None:
    before = lines_in(raw_of(collector))
    answer = post(collector.url, body, **headers)
    assert answer.status_code == status
    if headers.get("content_type") == PROTOBUF:
        assert answer.headers["content-type"] == PROTOBUF
        told = Status.FromString(answer.content)
        assert (told.message, told.code) == (message, 3)
    else:
        assert answer.headers["content-type"] == "application/json"
        assert answer.json() == {"code": 3, "message": message}
    assert lines_in(raw_of(collector)) == before
    # it goes on, and an empty message is a request
    assert post(collector.url, b"", content_type=PROTOBUF).content == b""


def test_metrics_have_no_path_and_nothing_can_be_read(collector: Collector) -> None:
    assert httpx.post(f"{collector.url}/v1/metrics", content=b"").status_code == 404
    assert httpx.get(f"{collector.url}/v1/traces").status_code == 405


def test_a_probe_needs_no_token(tmp_path: Path) -> None:
    with collecting(tmp_path, HEALTH_COLLECT_TOKEN=TOKEN) as collector:
        assert httpx.get(f"{collector.url}/livez").text == "ok\n"


def test_with_a_token_nobody_sends_without_it(tmp_path: Path) -> None:
    body = request_of(agent(1, 1, START))
    with collecting(tmp_path, HEALTH_COLLECT_TOKEN=TOKEN) as collector:
        for given in ({}, {"authorization": "Bearer another"}, {"authorization": f"Basic {TOKEN}"}):
            answer = post(collector.url, body, **given)
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
            assert answer.json()["code"] == 16
        assert lines_in(tmp_path / "raw") == []
        export(collector.url, headers={"Authorization": f"Bearer {TOKEN}"})
        assert post(collector.url, body, authorization=f"bearer {TOKEN}", host="any.example").status_code == 200
    assert len(ids_in(tmp_path / "raw")) == 5


def test_with_a_certificate_https_is_spoken(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    with collecting(tmp_path, HEALTH_COLLECT_TLS_CERT=str(cert), HEALTH_COLLECT_TLS_KEY=str(key)) as collector:
        assert collector.url.startswith("https://")
        known = ssl.create_default_context(cafile=cert)
        body, headers = request_of(agent(1, 1, START)), {"Content-Type": "application/json"}
        assert httpx.post(f"{collector.url}/v1/traces", content=body, headers=headers, verify=known).status_code == 200
        with pytest.raises(httpx.TransportError):
            post(collector.url.replace("https", "http"), b"{}")
    assert len(ids_in(tmp_path / "raw")) == 1


@pytest.mark.parametrize(
    ("arguments", "environment", "sentence"),
    [
        (["--raw", "s3://bucket/logs"], {},
         "collect writes its log below the raw root, which must be a local folder, not s3://bucket/logs"),
        (["--host", "0.0.0.0", "--port", "0"], {},
         "others can reach 0.0.0.0, so HEALTH_COLLECT_TOKEN must name the token that they send"),
        ([], {"HEALTH_COLLECT_TOKEN": "short"},
         "HEALTH_COLLECT_TOKEN has fewer than 16 characters, so it can be guessed"),
        ([], {"HEALTH_COLLECT_TOKEN": "a token with spaces"},
         "HEALTH_COLLECT_TOKEN must be printable ASCII without spaces"),
        (["--tls-key", "key.pem"], {}, "--tls-key needs --tls-cert, the certificate that it belongs to"),
    ],
)  # fmt: skip
def test_a_collector_that_cannot_be_is_one_sentence(
    arguments: list[str], environment: dict[str, str], sentence: str
) -> None:
    done = CliRunner().invoke(app, ["collect", *arguments], env=environment)
    assert (done.exit_code, done.stderr) == (1, f"health-assets: {sentence}\n")


# -- what breaks --


def test_kills_under_load_lose_no_acknowledged_span_and_retries_count_once(tmp_path: Path) -> None:
    killed = kill_under_load(tmp_path, 5, Random(1))
    assert killed.retries > 0
    project = project_of(tmp_path)
    project.ingest(HourRange.of(START - HOUR).extended_forward(1))
    assert project.query("SELECT count(*), count(DISTINCT execution_id) FROM executions") == [
        (len(killed.taken), len(killed.taken))
    ]


def test_a_torn_line_is_never_appended_to_and_costs_nothing_else(tmp_path: Path) -> None:
    with collecting(tmp_path) as collector:
        post(collector.url, request_of(agent(1, 1, IN_THE_HOUR)))
        post(collector.url, request_of(agent(2, 1, IN_THE_HOUR)))
    [torn] = (tmp_path / "raw").rglob("*.jsonl")
    os.truncate(torn, torn.stat().st_size - 30)  # as a kill within a write leaves it
    content = torn.read_bytes()
    with collecting(tmp_path) as collector:
        post(collector.url, request_of(agent(2, 1, IN_THE_HOUR)))
    assert torn.read_bytes() == content
    assert len([*(tmp_path / "raw").rglob("*.jsonl")]) == 2
    project = project_of(tmp_path)
    assert project.ingest(THE_HOUR).rejected == 1
    assert project.query(EXECUTIONS) == [("planner", "success", None)] * 2


def limit_file_size(collector: Collector, size_bytes: int) -> None:
    """Let no file of the process grow beyond this: a write is cut short there and then fails, as on a full disk."""
    assert collector.process.pid is not None
    resource.prlimit(collector.process.pid, resource.RLIMIT_FSIZE, (size_bytes, resource.RLIM_INFINITY))


def test_while_it_cannot_write_requests_are_told_to_come_again_and_then_it_goes_on(tmp_path: Path) -> None:
    small, large = request_of(agent(1, 1, START)), request_of(*(agent(2, number, START) for number in range(1, 100)))
    with collecting(tmp_path) as collector:
        assert post(collector.url, small).status_code == 200
        [file] = (tmp_path / "raw").rglob("*.jsonl")
        acknowledged = file.read_bytes()
        limit_file_size(collector, len(acknowledged) + 1000)
        for _ in range(2):
            answer = post(collector.url, large)
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
            assert answer.json() == {"code": 14, "message": "what was sent cannot be written now"}
        assert file.read_bytes() == acknowledged  # the beginning that went into it is cut off
        assert [*(tmp_path / "raw").rglob("*.jsonl")] == [file]
        limit_file_size(collector, resource.RLIM_INFINITY)
        assert post(collector.url, large).status_code == 200
        assert collector.stderr.read_text() == (
            "health-assets: cannot write what is sent: File too large; requests get 503 until it can be written\n"
            "health-assets: what is sent is written again\n"
        )
    assert len(ids_in(tmp_path / "raw")) == 100


def test_a_file_that_is_moved_away_is_followed_by_another(tmp_path: Path) -> None:
    with collecting(tmp_path) as collector:
        assert post(collector.url, request_of(agent(1, 1, START))).status_code == 200
        [file] = (tmp_path / "raw").rglob("*.jsonl")
        file.unlink()
        assert post(collector.url, request_of(agent(2, 1, START))).status_code == 200
        shutil.rmtree(tmp_path / "raw")
        assert post(collector.url, request_of(agent(3, 1, START))).status_code == 200
        assert ids_in(tmp_path / "raw") == {(trace_id(3), span_id(1))}


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_who_waits_when_it_is_stopped_is_written_and_answered(tmp_path: Path, ending: signal.Signals) -> None:
    statuses = []
    with collecting(tmp_path) as collector:
        body = request_of(agent(1, 1, START))
        url = httpx.URL(collector.url)
        head = f"POST /v1/traces HTTP/1.1\r\nHost: {url.host}\r\nContent-Type: application/json\r\n"
        with socket.create_connection((url.host, url.port), timeout=60) as slow:
            slow.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body[:10])
            many = request_of(*(agent(2, number, START) for number in range(1, 2000)))
            threads = [
                threading.Thread(target=lambda: statuses.append(post(collector.url, many).status_code))
                for _ in range(4)
            ]
            for thread in threads:
                thread.start()
            time.sleep(0.3)
            ended = threading.Thread(target=collector.end, args=(ending,))
            ended.start()
            time.sleep(0.3)
            slow.sendall(body[10:])
            assert slow.recv(65536).startswith(b"HTTP/1.1 200 OK\r\n")
            for thread in (*threads, ended):
                thread.join()
    assert statuses == [200] * 4
    assert collector.process.exitcode == (0 if ending is signal.SIGINT else -signal.SIGTERM)
    assert collector.stderr.read_text() == ""
    assert len(ids_in(tmp_path / "raw")) == 2000


def test_two_requests_of_one_connection_and_an_unread_body_stay_apart(collector: Collector) -> None:
    with httpx.Client() as client:
        refused = client.post(f"{collector.url}/v1/traces", content=b"x" * 1000, headers={"Content-Type": "text/plain"})
        taken = client.post(f"{collector.url}/v1/traces", content=b"{}", headers={"Content-Type": "application/json"})
    assert (refused.status_code, taken.status_code) == (415, 200)


def test_a_request_of_protobuf_and_one_of_json_that_say_the_same_leave_the_same_line(collector: Collector) -> None:
    request = ExportTraceServiceRequest()
    span = (
        request.resource_spans.add()
        .scope_spans.add()
        .spans.add(
            trace_id=bytes(range(16)),
            span_id=bytes(range(8)),
            name="zwölf\n\u2028\0",
            kind=3,
            start_time_unix_nano=2**63,
        )
    )
    for value in ({"double_value": 0.1}, {"bool_value": False}, {"bytes_value": b"\xff"}, {"int_value": -(2**63)}, {}):
        span.attributes.add(key="k", value=value)
    span.attributes.add(key="list").value.array_value.values.add(string_value="")
    span.events.add(name="e").attributes.add(key="map").value.kvlist_value.values.add(key="in", value={"int_value": 0})
    span.links.add(trace_id=bytes(16), span_id=bytes(8))
    assert post(collector.url, request.SerializeToString(), content_type=PROTOBUF).status_code == 200
    written = json.loads(lines_in(raw_of(collector))[-1])
    expected = MessageToDict(request, use_integers_for_enums=True)
    own = expected["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    for ids in (own, own["links"][0]):
        ids["traceId"], ids["spanId"] = (
            (bytes(range(16)).hex(), bytes(range(8)).hex()) if ids is own else ("0" * 32, "0" * 16)
        )
    assert written == expected
    assert post(collector.url, json.dumps(written).encode()).status_code == 200
    assert json.loads(lines_in(raw_of(collector))[-1]) == expected


def test_a_port_that_is_free_again_is_taken_at_once(tmp_path: Path) -> None:
    port = free_port()
    for _ in range(2):
        collector = Collector(tmp_path / "raw", tmp_path / "said", port)
        assert post(collector.url, b"{}").status_code == 200
        collector.end()
