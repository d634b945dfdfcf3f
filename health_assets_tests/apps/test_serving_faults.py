"""The endpoint among faults: a warehouse that is busy, missing, broken or new; clients that are slow, large or rude."""

import asyncio
import os
import re
import signal
import socket
import subprocess
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from email.utils import format_datetime, parsedate_to_datetime
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ibis
import pytest
from typer.testing import CliRunner

from health_assets.apps.serving import client, protocol, refresher
from health_assets.apps.serving.client import Reader, ReaderError, ReusedReader
from health_assets.apps.serving.rate_limit import MOST_CLIENTS, RateLimit
from health_assets.apps.serving.reader_process import ROWS_PER_BATCH
from health_assets.apps.serving.server import listening
from health_assets.cli.commands import app
from health_assets.core.errors import HealthAssetsError
from health_assets.core.settings import Settings
from health_assets.core.temporary import remove_what_the_dead_left
from health_assets.warehouse.partition_states import PartitionStates
from health_assets.warehouse.store import Warehouse
from health_assets_tests.support.projects import command_environment, command_line
from health_assets_tests.support.serving_made import (
    HOUR,
    Served,
    fill,
    fill_agents,
    readers_in_this_process,
    score,
    served,
    state,
    write_targets,
)

PATH = "/agents/fine/.well-known/agent-health"
SOON = {"serve_refresh_s": 0.2}
GET = f"GET {PATH} HTTP/1.1\r\nHost: localhost\r\n".encode()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("faults")
    fill_agents(folder / "health.duckdb", (state("fine"), score("fine")))
    with served(folder / "health.duckdb", serve_max_connections=60) as running:
        yield running


# -- the warehouse --


def test_the_server_goes_from_no_warehouse_to_new_hours_and_through_every_fault(tmp_path: Path) -> None:
    """One server sees it all, since each start costs a second: missing, empty, loaded, busy, broken, gone, new."""
    path = tmp_path / "health.duckdb"
    targets = write_targets(tmp_path / "targets.yaml", {})
    with served(path, targets=targets, is_ready=False, **SOON) as server:
        status = server.wait_for(lambda status: status["last_error"])
        assert (status["is_ready"], status["last_error"]) == (False, "there is no warehouse yet")
        for asked in (PATH, "/agents", "/agents/fine", "/models", "/models/best?candidates=a"):
            reply = server.ask(asked)
            assert (reply.status, reply.headers["retry-after"]) == (503, "5"), asked
            assert reply.headers["content-type"] == "application/problem+json"
        assert server.ask("/.well-known/agent-health").status == 404

        fill(path, raw_logs=[])
        server.wait_for(lambda status: status["last_error"] == "nothing has been materialized yet")

        fill_agents(path, (state("fine"), score("fine")))
        status = server.wait_for(lambda status: status["is_ready"])
        assert (status["is_current"], status["last_error"], status["agents"]) == (True, None, 1)
        assert status["data_hour"] == HOUR.isoformat()
        first = server.ask(PATH)

        with Warehouse(str(path)).write():  # which changes the file, and holds it
            time.sleep(1.5)
            assert server.ask(PATH).body == first.body
        server.wait_for(lambda status: status["is_current"])
        assert server.ask(PATH).headers["last-modified"] == first.headers["last-modified"]

        later = HOUR + timedelta(hours=1)
        fill_agents(path, (state("fine", "degraded"), score("fine")), (state("new"), score("new")), hour=later)
        server.wait_for(lambda status: status["data_hour"] == later.isoformat())
        second = server.ask(PATH)
        assert second.json["health"]["status"] == "degraded"
        assert second.headers["etag"] != first.headers["etag"]
        assert server.ask("/agents/new").status == 200

        targets.write_text("agents: {fine: {personal: true}}")
        server.wait_for(lambda _: set(server.ask(PATH).json) == {"schema_version", "agent_id", "timestamp", "health"})
        coarse = server.ask(PATH)
        targets.write_text("agents: 17")
        server.wait_for(lambda status: status["last_error"] == "the targets file cannot be used")
        targets.write_text("agents: {fine: {personal: true}}")
        server.wait_for(lambda status: status["is_current"])

        path.write_bytes(b"no database at all" * 1000)
        status = server.wait_for(lambda status: status["last_error"])
        assert (status["last_error"], status["is_ready"], status["is_current"]) == (
            "the warehouse cannot be read", True, False,
        )  # fmt: skip
        path.unlink()
        server.wait_for(lambda status: status["last_error"] == "there is no warehouse yet")
        assert server.ask(PATH).body == coarse.body
        assert server.ask("/sessions/x").json["detail"] == "there is no warehouse yet"
        assert str(tmp_path) not in server.ask("/status").body.decode()
        assert any(str(path) in fault for fault in server.faults)  # the operator is told which
        assert all(before != after for before, after in pairwise(server.faults)), "each is told once while it lasts"


def test_a_correction_of_the_newest_hour_is_served_soon_however_long_answers_may_be_kept(tmp_path: Path) -> None:
    """Late data of an older hour sets last_healthy_at of the newest one, which is not materialized anew by that."""
    path = tmp_path / "health.duckdb"
    fill_agents(path, (state("fine", last_healthy_at=HOUR - timedelta(hours=2)), score("fine")))
    with served(path, serve_refresh_s=3600.0) as server:
        rows = ibis.table({"hour": "timestamp('UTC')", "agent_id": "string"}, name="agent_health_state")
        corrections = rows.mutate(last_healthy_at=rows.hour - ibis.interval(hours=1))
        with Warehouse(str(path)).write() as session:
            PartitionStates(session).correct_rows("agent_health_state", corrections, ["hour", "agent_id"])
        expected = (HOUR - timedelta(hours=1)).isoformat().replace("+00:00", "Z")
        server.wait_for(lambda _: server.ask(PATH).json["health"]["last_healthy_at"] == expected)


def test_what_a_killed_server_left_is_removed_by_the_next_whose_own_data_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    left = temporary / "health-assets-serve-x"
    left.mkdir(parents=True)
    (left / ".held").touch()
    (left / "snapshot").write_text("all agents' data")
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    path = tmp_path / "health.duckdb"
    fill_agents(path, (state("fine"), score("fine")))
    real = refresher.Snapshot.read
    held: list[bool] = []

    def read(folder: Path, facts: Any) -> Any:
        remove_what_the_dead_left()
        held.append((folder / ".held").exists())
        return real(folder, facts)

    monkeypatch.setattr(refresher.Snapshot, "read", read)
    with served(path):
        assert held == [True]
    assert list(temporary.iterdir()) == []


def test_an_old_snapshot_is_freed_batch_by_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "health.duckdb"
    agents = [f"agent {number}" for number in range(2 * ROWS_PER_BATCH + 1)]
    fill(path, agent_health_state=[state(agent_id) for agent_id in agents])
    with readers_in_this_process():
        refreshing = refresher.Refresher(Settings(warehouse=str(path)), pytest.fail)
    refreshing.refresh()
    assert refreshing.snapshot is not None
    kept = [weakref.ref(batch.rows) for batch in refreshing.snapshot.batches]
    alive: list[int] = []

    def note_alive(_: float) -> None:
        alive.append(sum(batch() is not None for batch in kept))

    pause = SimpleNamespace(monotonic=time.monotonic, sleep=note_alive)
    monkeypatch.setattr(refresher, "time", pause)
    fill(path, agent_health_state=[state("fine")])
    refreshing.refresh()
    assert refreshing.snapshot.agents == 1
    assert alive == [2, 1, 0]


def test_an_hour_that_was_written_before_it_was_over_is_served_when_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "health.duckdb"
    fill(path, agent_health_state=[state("fine")])
    refreshing = refresher.Refresher(Settings(warehouse=str(path)), pytest.fail)
    asked: list[object] = []
    monkeypatch.setattr(refreshing, "_read", lambda: asked.append(1))
    for hour, expected in ((1, 1), (1, 1), (2, 2)):
        monkeypatch.setattr(refresher, "floor_hour", lambda _, hour=hour: hour)
        refreshing.refresh()
        assert len(asked) == expected, "no file has changed, so that only an hour that has ended is news"


def test_a_busy_warehouse_holds_up_a_session_for_seconds_and_no_document(tmp_path: Path) -> None:
    path = tmp_path / "health.duckdb"
    fill(path, agent_health_state=[state("fine")], agent_health=[score("fine")], session_scores=[{"session_id": "s"}])
    with served(path) as server:
        with Warehouse(str(path)).write():
            replies, documents = [], 0
            asking = threading.Thread(target=lambda: replies.append(server.ask("/sessions/s")))
            asking.start()
            while asking.is_alive():
                assert server.ask(PATH).status == 200
                documents += 1
                time.sleep(0.05)
        assert documents > 5, "a document waited for the session"
        assert (replies[0].status, replies[0].json["detail"]) == (503, "the warehouse is busy")
        assert server.ask("/sessions/s").status == 200


def test_a_reader_that_hangs_or_dies_is_replaced_and_none_outlives_its_server(tmp_path: Path) -> None:
    reader = Reader(Settings(warehouse=str(tmp_path / "none.duckdb")))

    def ask(timeout_s: float) -> str:
        with pytest.raises(ReaderError) as caught:
            reader.ask({"session": "s"}, timeout_s)
        return caught.value.kind

    assert ask(120) == "missing"
    hanging = reader._process
    assert hanging is not None
    hanging.send_signal(signal.SIGSTOP)
    assert ask(0.2) == "unreadable"
    assert hanging.returncode == -signal.SIGKILL
    assert ask(120) == "missing"
    assert reader._process is not None
    reader._process.kill()
    reader._process.wait()
    assert ask(120) == "missing"
    left_alone = reader._process
    assert left_alone.stdin is not None
    left_alone.stdin.close()  # which is what a reader sees of a server that was killed
    assert left_alone.wait(timeout=60) == 0
    assert left_alone.stdout is not None
    left_alone.stdout.close()


def test_a_reader_is_used_again_until_nobody_asks_for_a_while_or_an_answer_takes_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = ReusedReader(Settings(warehouse=str(tmp_path / "none.duckdb")))

    def process_after_an_answer() -> subprocess.Popen[bytes] | None:
        with pytest.raises(ReaderError, match="there is no warehouse"):
            reader.ask({"session": "s"}, 120)
        reader.end_if_idle()
        return reader._process

    first = process_after_an_answer()
    assert first is not None
    assert process_after_an_answer() is first
    monkeypatch.setattr(client, "IDLE_S", 0.0)
    assert process_after_an_answer() is None
    assert first.returncode == -signal.SIGKILL
    monkeypatch.undo()
    second = process_after_an_answer()
    assert second not in (None, first)
    monkeypatch.setattr(client, "LONG_S", 0.0)
    assert process_after_an_answer() is None


# -- conditional requests --


def test_who_has_the_answer_is_told_so(server: Served) -> None:
    for path in (PATH, "/agents", "/agents/fine", "/models"):
        whole = server.ask(path)
        etag = whole.headers["etag"]
        assert re.fullmatch(r'"[0-9a-f]+"', etag)
        for tags in (etag, f"W/{etag}", "*", f'"other", {etag}', f'{etag},"other"', f'"a" , W/{etag} '):
            reply = server.ask(path, headers={"If-None-Match": tags})
            assert (reply.status, reply.body) == (304, b""), tags
            assert reply.headers["etag"] == etag
            assert "content-type" not in reply.headers
        for tags in ('"other"', etag.strip('"'), "", '"', etag[:-2] + '"'):
            assert server.ask(path, headers={"If-None-Match": tags}).status == 200, tags


@pytest.mark.parametrize("path", ["/status", "/livez", "/readyz", "/metrics"])
def test_what_is_of_the_moment_is_not_to_be_kept(server: Served, path: str) -> None:
    reply = server.ask(path, headers={"If-None-Match": "*"})
    assert (reply.status, reply.headers["cache-control"], "etag" in reply.headers) == (200, "no-store", False)


def test_without_a_tag_the_time_decides(server: Served) -> None:
    loaded = parsedate_to_datetime(server.ask(PATH).headers["last-modified"])
    for seconds, status in ((0, 304), (60, 304), (-1, 200)):
        since = format_datetime(loaded + timedelta(seconds=seconds), usegmt=True)
        assert server.ask(PATH, headers={"If-Modified-Since": since}).status == status
    assert server.ask(PATH, headers={"If-Modified-Since": "yesterday"}).status == 200
    both = {"If-Modified-Since": format_datetime(loaded, usegmt=True), "If-None-Match": '"other"'}
    assert server.ask(PATH, headers=both).status == 200


@pytest.mark.parametrize(
    "path", [PATH, "/agents", "/agents/nobody", "/status", "/docs", "/openapi.json", "/agents?limit=x"]
)
def test_head_has_the_headers_of_get_and_no_body(server: Served, path: str) -> None:
    whole, head = server.ask(path), server.ask(path, "HEAD")
    assert head.body == b""
    assert (head.status, head.headers["content-length"]) == (whole.status, str(len(whole.body)))
    assert {**head.headers, "date": ""} == {**whole.headers, "date": ""}


# -- rude clients --


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(server: Served, method: str) -> None:
    for path in (PATH, "/agents", "/nothing"):
        reply = server.ask(path, method)
        assert (reply.status, reply.headers["allow"]) == (405, "GET, HEAD")
        assert reply.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"Content-Length: 5\r\n\r\nhello", 413),
        (b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", 413),
        (b"Content-Length: 0\r\nConnection: close\r\n\r\n", 200),
        (b"Content-Length: 99999999999999\r\n\r\n", 413),
        (b"Content-Length: -1\r\n\r\n", 400),
        (b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", 400),
        (b"Expect: 100-continue\r\nContent-Length: 5\r\n\r\n", 413),
        (b"X: " + b"a" * 20_000 + b"\r\n\r\n", 431),
        (b"".join(b"X-%d: a\r\n" % number for number in range(3000)) + b"\r\n", 431),
        (b"no colon\r\n\r\n", 400),
        (b"Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n", 200),
        (b"If-Modified-Since: Mon, 01 Jan 2026 00:00:00 +99999999999999999999\r\n\r\n", 200),
        (b"If-Modified-Since: Mon, 99999999999999999999 Jan 2026 00:00:00 GMT\r\n\r\n", 200),
    ],
)  # fmt: skip
def test_a_head_that_is_odd_is_answered_or_refused(server: Served, head: bytes, status: int) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall(GET + head)
        received = connection.recv(65536)
    assert received.startswith(b"HTTP/1.1 %d " % status), received[:200]
    if status != 200:
        assert b"application/problem+json" in received


@pytest.mark.parametrize(
    "line",
    [
        b"GET /agents/../../etc/passwd HTTP/1.1", b"GET //agents HTTP/1.1", b"GET /agents/%00 HTTP/1.1",
        b"GET /agents/\xff HTTP/1.1", b"GET * HTTP/1.1", b"GET agents HTTP/1.1", b"GET http:// HTTP/1.1",
        b"CONNECT x:1 HTTP/1.1", b"GET /agents/%zz HTTP/1.1", b"GET /agents/a;b=c/.well-known/agent-health HTTP/1.1",
        b"GET " + b"/" + b"a" * 20_000 + b" HTTP/1.1", b"GET / HTTP/9.9", b"\x16\x03\x01\x02\x00", b"GET /\r\n",
        b"GET /agents/%2e%2e/.well-known/agent-health HTTP/1.1", b"GET /.well-known/agent-health/ HTTP/1.1",
        b"GET /agents//.well-known/agent-health HTTP/1.1", b"GET /agents/.well-known/agent-health HTTP/1.1",
    ],
)  # fmt: skip
def test_tricks_with_the_path_get_a_clear_4xx(server: Served, line: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall(line + b"\r\nHost: localhost\r\n\r\n")
        received = connection.recv(65536)
    assert re.match(rb"HTTP/1\.1 4\d\d ", received), received[:200]
    assert b"application/problem+json" in received


def test_a_request_that_trickles_in_is_cut_off(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "HEAD_TIMEOUT_S", 1.0)
    assert server.send(GET, *[b"X: y\r\n"] * 30, pause_s=0.1).startswith(b"HTTP/1.1 408 ")
    assert server.send().startswith(b"HTTP/1.1 408 ")  # not a byte in time
    once = GET + b"\r\n"
    again = server.send(once, b"G", pause_s=0.1)
    assert again.startswith(b"HTTP/1.1 200 ")
    assert b"HTTP/1.1 408 " in again  # the second request of a connection


@pytest.mark.parametrize("ending", ["full buffers", "a close", "a refusal", "silence"])
def test_who_does_not_read_the_answers_is_cut_off(server: Served, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    """Also where the buffers never fill, so that the server is done with the answers but the transport is not."""
    made: list[protocol.LimitedProtocol] = []
    connection_made = protocol.LimitedProtocol.connection_made

    def observed(self: protocol.LimitedProtocol, transport: asyncio.Transport) -> None:
        made.append(self)
        connection_made(self, transport)
        if ending != "full buffers":
            transport.set_write_buffer_limits(high=2**30)
        if ending == "silence":
            self.timeout_keep_alive = 0.5  # type: ignore[assignment]

    monkeypatch.setattr(protocol.LimitedProtocol, "connection_made", observed)
    monkeypatch.setattr(protocol, "SEND_TIMEOUT_S", 0.5)
    if ending == "a refusal":  # of a head that never ends
        monkeypatch.setattr(protocol, "HEAD_TIMEOUT_S", 0.5)
    last = {"a close": GET + b"Connection: close\r\n\r\n", "a refusal": b"G"}.get(ending, b"")
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(60)
        client.connect(("127.0.0.1", server.port))
        with suppress(ConnectionResetError, BrokenPipeError):
            client.sendall((GET + b"\r\n") * 20_000 + last)
        deadline = time.monotonic() + 60
        while not made or made[0] in made[0].connections:
            assert time.monotonic() < deadline
            time.sleep(0.02)


def test_who_reads_slowly_but_steadily_gets_all_answers(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "SEND_TIMEOUT_S", 3.0)
    requests = (GET + b"\r\n") * 20_000 + GET + b"Connection: close\r\n\r\n"
    start, received = time.monotonic(), bytearray()
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as client:
        sending = threading.Thread(target=client.sendall, args=(requests,))
        sending.start()
        while piece := client.recv(65536):
            received += piece
            time.sleep(0.025)
        sending.join()
    assert received.count(b"HTTP/1.1 200 ") == 20_001
    assert time.monotonic() - start > 3.5


def test_more_connections_than_allowed_are_told_to_come_back(server: Served) -> None:
    idle = [socket.create_connection(("127.0.0.1", server.port), timeout=60) for _ in range(60)]
    try:  # the server takes connections in the order in which they are made
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as one_more:
            received = one_more.recv(65536)
        assert received.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after: 1" in received
    finally:
        for connection in idle:
            connection.close()
    deadline = time.monotonic() + 60
    while server.ask(PATH).status != 200:  # it has not seen yet that they are closed
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_requests_that_follow_each_other_without_waiting_are_all_answered(server: Served) -> None:
    last = GET + b"Connection: close\r\n\r\n"
    assert server.send((GET + b"\r\n") * 2000 + last).count(b"HTTP/1.1 200 ") == 2001


def test_a_head_of_less_than_the_limit_may_come_in_pieces(server: Served) -> None:
    lines = [b"X-%d: %s\r\n" % (number, b"a" * 1000) for number in range(15)]
    assert server.send(GET, *lines, b"Connection: close\r\n\r\n", pause_s=0.01).startswith(b"HTTP/1.1 200 ")
    assert server.send(GET, *lines, *lines, pause_s=0.01).startswith(b"HTTP/1.1 431 ")
    assert server.send(GET, b"X: ", *[b"a" * 10_000] * 3, pause_s=0.01).startswith(b"HTTP/1.1 431 ")


# -- the rate limit --


def test_a_bucket_holds_a_second_of_requests_and_refills_steadily() -> None:
    limit = RateLimit(4)
    assert [limit.wait_s("a", 0.0) for _ in range(6)] == [0, 0, 0, 0, 1, 1]
    assert limit.wait_s("b", 0.0) == 0
    assert [limit.wait_s("a", 0.26) for _ in range(2)] == [0, 1]
    assert [limit.wait_s("a", 100.0) for _ in range(5)] == [0, 0, 0, 0, 1]


def test_less_than_one_request_a_second_still_lets_one_through() -> None:
    limit = RateLimit(0.1)
    assert [limit.wait_s("a", 0.0), limit.wait_s("a", 1.0), limit.wait_s("a", 10.0)] == [0, 9, 0]


def test_an_ipv6_client_has_one_bucket_for_its_network() -> None:
    limit = RateLimit(1)
    assert limit.wait_s("2001:db8::1", 0.0) == 0
    assert limit.wait_s("2001:db8::ffff", 0.0) == 1
    assert limit.wait_s("2001:db8:0:1::1", 0.0) == 0
    assert limit.wait_s("fe80::1%eth0", 0.0) == 0


def test_buckets_are_forgotten_when_there_are_too_many() -> None:
    limit = RateLimit(1)
    for number in range(2 * MOST_CLIENTS):
        limit.wait_s(str(number), 0.0)
    assert len(limit._full_at) == MOST_CLIENTS


# -- the command --


def _heeding_signals() -> None:
    """Whatever started the tests may ignore signals: a shell SIGINT of its background, processes of tests SIGTERM."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


def test_the_command_says_where_it_listens_and_ends_quietly(tmp_path: Path) -> None:
    fill_agents(tmp_path / "health.duckdb", (state("fine"), score("fine")))
    arguments = command_line("serve", "--port", "0", "--warehouse", str(tmp_path / "health.duckdb"))
    for ending in (signal.SIGINT, signal.SIGTERM):
        with subprocess.Popen(
            [*arguments, "--host-agent", "fine"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=command_environment() | {"PYTHONUNBUFFERED": "1"},
            preexec_fn=_heeding_signals,
        ) as process:  # fmt: skip
            try:
                assert process.stdout is not None and process.stderr is not None
                said = process.stdout.readline()
                found = re.fullmatch(r"serving health documents on http://127\.0\.0\.1:(\d+), .*\n", said)
                assert found, said
                running = Served(int(found[1]), [])
                if ending is signal.SIGINT:
                    running.wait_for(lambda status: status["is_ready"])
                    assert running.ask("/.well-known/agent-health").json["agent_id"] == "fine"
                os.kill(process.pid, ending)
                process.wait(timeout=120)
                assert (process.stdout.read(), process.stderr.read()) == ("", "")
                assert process.returncode == (0 if ending is signal.SIGINT else -signal.SIGTERM)
            finally:  # else a failure would wait for ever
                process.kill()


def test_a_port_that_is_taken_is_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = CliRunner().invoke(app, ["serve", "--port", str(port)])
    sentence = f"health-assets: cannot listen on 127.0.0.1 port {port}: address already in use; try another --port\n"
    assert (done.exit_code, done.stderr) == (1, sentence)


@pytest.mark.parametrize("host", ["no such host", "203.0.113.7", "", "::ffff", "a" * 100])
def test_a_host_that_is_not_ours_is_one_sentence(host: str) -> None:
    with pytest.raises(HealthAssetsError, match="cannot listen on"):
        listening(host, 0)


@pytest.mark.parametrize(
    ("arguments", "environment", "sentence"),
    [
        (["--tls-key", "x"], {}, "--tls-key needs --tls-cert"),
        (["--tls-cert", "/nowhere"], {}, "cannot use the TLS certificate /nowhere"),
        (["--warehouse", "mysql://x"], {}, "not supported"),
        ([], {"HEALTH_SERVE_REFRESH_S": "5"}, "HEALTH_SERVE_REFRESH_S"),
        ([], {"HEALTH_SERVE_RATE_LIMIT": "0"}, "HEALTH_SERVE_RATE_LIMIT"),
    ],
)
def test_settings_that_cannot_be_are_one_sentence(
    arguments: list[str], environment: dict[str, str], sentence: str
) -> None:
    done = CliRunner().invoke(app, ["serve", "--port", "0", *arguments], env=environment)
    assert done.exit_code == 1
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("requests", [2, 5, 50])
def test_clients_that_ask_many_things_at_once_and_hang_up_leave_no_word_in_the_log(
    server: Served, caplog: pytest.LogCaptureFixture, requests: int
) -> None:
    """Only the newest of several requests was told that its client is gone, and the one that was answered raised."""
    asked = GET.replace(PATH.encode(), b"/sessions/x") + b"\r\n"
    for ending in (b"", b"GET / HT", b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc"):
        for pause_s in (0, 0.01):
            with socket.create_connection(("127.0.0.1", server.port), timeout=30) as client:
                client.sendall(asked * requests + ending)
                time.sleep(pause_s)
                client.shutdown(socket.SHUT_WR)
                with suppress(ConnectionError):
                    while client.recv(65536):
                        pass
    assert server.ask(PATH).status == 200
    time.sleep(0.2)  # for answers to whom is gone
    assert [record.getMessage() for record in caplog.records if record.name.startswith("uvicorn")] == []
