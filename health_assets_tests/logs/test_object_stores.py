"""Raw logs in an object store are read like those in a folder; S3's protocol is spoken with a local server."""

import gzip
import os
import signal
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import fsspec
import pytest

from health_assets.apps.judge.judging import judge, unjudged_runs
from health_assets.core.errors import HealthAssetsError, UnreadableFilesError
from health_assets.core.hours import HourRange
from health_assets.core.raw_roots import raw_root
from health_assets.core.settings import Settings, load_settings
from health_assets.core.targets import load_targets
from health_assets.logs import read_ahead
from health_assets.logs.file_matching import match_files
from health_assets.logs.files import Identities, line_batches
from health_assets.logs.known_files import KnownFile
from health_assets.logs.limits import WITHOUT_LIMIT
from health_assets.logs.read_ahead import Ahead
from health_assets.logs.reader import contents
from health_assets.logs.stores import RawFile, list_files
from health_assets.pipeline.ingestion import ingest
from health_assets.warehouse.ledger import Ledger
from health_assets_tests.support import foreign_logs_made as made
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.projects import (
    Project,
    assert_same_tables,
    forked_command,
    materialize_arguments,
    start_forked_command,
)  # fmt: skip
from health_assets_tests.support.slow_proxy import SlowProxy, slow_proxy

BUCKET = "fleet"
HOURS = HourRange(START, START + timedelta(hours=2))
TABLES = ("executions", "rejected_records", "health_components", "agent_health")
MANY = [line(execution(f"e{place}", "planner", START + timedelta(seconds=place))) for place in range(2000)]
LOGS = {
    "a.jsonl": MANY,
    "deep/er/b b.jsonl.gz": [line(execution("e", "coder", START + timedelta(hours=1), error="x" * 5000)), "broken"],
    "tau/tau2.json": [made.dumped(made.TAU2)],
    "notes.txt": ["not a log"],
}


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    yield "http://{}:{}".format(*server.get_host_and_port())
    server.stop()


@pytest.fixture
def s3(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The file system of an S3 server that is empty but for a bucket; settings come by the usual variables."""
    for name, value in {
        "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_ENDPOINT_URL": endpoint,
        "AWS_DEFAULT_REGION": "us-east-1", "AWS_MAX_ATTEMPTS": "2",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    fsspec.filesystem("s3").clear_instance_cache()
    system = fsspec.filesystem("s3")
    system.mkdir(BUCKET)
    yield system
    system.rm(BUCKET, recursive=True)
    _end_session(system)
    system.clear_instance_cache()


def _end_session(system: Any) -> None:
    """End the connections; left alone, the system would give them a tenth of a second for it."""

    async def end() -> None:
        if (creator := getattr(system, "_s3creator", None)) is not None:
            await creator.__aexit__(None, None, None)

    fsspec.asyn.sync(system.loop, end)


def put(store: Any, prefix: str, name: str, lines: list[str]) -> None:
    content = "".join(f"{text}\n" for text in lines).encode()
    store.pipe_file(f"{prefix}/{name}", gzip.compress(content, mtime=0) if name.endswith(".gz") else content)


@pytest.fixture
def folder(tmp_path: Path) -> Project:
    project = Project(tmp_path / "folder", lookback_hours=24)
    for name, lines in LOGS.items():
        project.write_log(name, lines)
    return project


@pytest.fixture
def remote(tmp_path: Path) -> Project:
    return Project(tmp_path / "remote", lookback_hours=24)


def in_store(project: Project, store: Any, url: str) -> Project:
    for name, lines in LOGS.items():
        put(store, url.partition("://")[2], name, lines)
    project.raw = raw_root(url)  # type: ignore[assignment]
    return project


def test_logs_in_s3_give_the_same_tables_as_in_a_folder(folder: Project, remote: Project, s3: Any) -> None:
    in_store(remote, s3, f"s3://{BUCKET}/logs")
    assert [file.source_file for file in list_files(remote.settings.raw)] == [
        "a.jsonl",
        "deep/er/b b.jsonl.gz",
        "tau/tau2.json",
    ]
    for project in (folder, remote):
        project.materialize(HOURS, only=["ingest", "health_components", "agent_health"])
    assert len(remote.rows("executions", HOURS)) == 2001
    assert_same_tables(remote.tables(HOURS, TABLES), folder.tables(HOURS, TABLES))
    others = [{row["source_file"] for row in project.rows("executions")} for project in (folder, remote)]
    assert others[0] == others[1], "records without a time of their own are of the hour of their file"


def test_a_changed_object_is_noticed_and_a_deleted_one_keeps_its_rows(remote: Project, s3: Any) -> None:
    in_store(remote, s3, f"s3://{BUCKET}/logs")
    assert len(remote.materialize(HOURS, only=["ingest"])) > 0
    put(s3, f"{BUCKET}/logs", "a.jsonl", [text.replace("planner", "changer") for text in MANY])  # of the same size
    s3.rm(f"{BUCKET}/logs/deep/er/b b.jsonl.gz")
    metadata = remote.materialize(HOURS, only=["ingest"])["raw_logs"]
    assert metadata["files_read"] == 1
    agents = Counter(row["agent_id"] for row in remote.rows("executions", HOURS))
    assert agents == {"changer": 2000, "coder": 1}
    assert remote.materialize(HOURS, only=["ingest"])["raw_logs"]["files_read"] == 0


def test_an_object_is_read_as_a_stream_and_in_ranges(s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from health_assets.logs import stores

    monkeypatch.setattr(stores, "READ_AHEAD_BYTES", 64 << 10)
    put(s3, f"{BUCKET}/logs", "a.jsonl", MANY)
    [file] = list_files(f"s3://{BUCKET}/logs")
    with file.opened() as raw:
        assert raw.read(10) == MANY[0][:10].encode()
        assert len(raw.cache.cache) <= 128 << 10 < file.size_bytes


def test_the_command_reads_from_s3(remote: Project, s3: Any) -> None:
    in_store(remote, s3, f"s3://{BUCKET}/logs")
    arguments = materialize_arguments(remote, HourRange.of(START), "agent_health_model")
    done = forked_command(*arguments)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "2,013 lines of 3 files" in done.stdout, done.stdout


# -- what goes wrong is one sentence -----------------------------------------------------------------------------------


def sentence_of(url: str) -> str:
    with pytest.raises(HealthAssetsError) as caught:
        list_files(raw_root(url))
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.usefixtures("s3")
def test_a_bucket_or_prefix_that_is_not_there_is_told() -> None:
    assert sentence_of("s3://no-such-bucket/logs").startswith("cannot list the raw logs in s3://no-such-bucket/logs: ")
    assert sentence_of(f"s3://{BUCKET}/nothing") == (
        f"there is nothing at s3://{BUCKET}/nothing; set HEALTH_RAW or --raw to where the logs are"
    )


def test_a_root_that_is_an_object_is_told(s3: Any) -> None:
    put(s3, f"{BUCKET}/logs", "a.jsonl", MANY[:1])
    url = f"s3://{BUCKET}/logs/a.jsonl"
    assert sentence_of(url) == f"the raw root {url} is a file; name the prefix above it"


@pytest.mark.usefixtures("s3")
def test_an_empty_bucket_holds_no_logs() -> None:
    assert list_files(f"s3://{BUCKET}") == []


def test_a_store_that_cannot_be_reached_is_told(s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{taken.getsockname()[1]}")
        s3.clear_instance_cache()
        assert sentence_of("s3://fleet/logs").startswith("cannot list the raw logs in s3://fleet/logs: ")


def test_missing_credentials_are_told(s3: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    s3.clear_instance_cache()
    assert "credentials" in sentence_of("s3://fleet/logs")


@pytest.mark.parametrize(("url", "extra"), [("gs://fleet/logs", "gcs"), ("az://fleet/logs", "azure")])
def test_a_missing_extra_is_named(url: str, extra: str) -> None:
    assert (
        sentence_of(url) == f"the raw root {url} needs a package that is not installed: install health-assets[{extra}]"
    )


def test_a_url_of_no_known_store_is_told() -> None:
    assert sentence_of("carrier-pigeon://loft").startswith(
        "the raw root carrier-pigeon://loft is not a URL that can be read: "
    )


@pytest.mark.parametrize("protocol", ["ftp", "http", "s3", "carrier-pigeon"])
def test_a_password_in_a_url_is_not_told_whatever_is_wrong_with_the_store(protocol: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(HealthAssetsError) as told:
            list_files(f"{protocol}://user:hush@127.0.0.1:{taken.getsockname()[1]}/logs")
    assert "hush" not in str(told.value)
    assert told.value.__cause__ is None, "the error of the library may repeat it"
    assert f"{protocol}://user:…@127.0.0.1:" in str(told.value)


def test_a_warehouse_remembers_its_root_without_the_password(remote: Project) -> None:
    with remote.warehouse.write() as session:
        Ledger(session).require_root("ftp://user:hush@host/logs", [])
    assert remote.query("SELECT root FROM raw_roots") == [("ftp://user:…@host/logs",)]
    with remote.warehouse.write() as session:
        Ledger(session).require_root("ftp://user:another@host/logs", [])
    assert remote.query("SELECT count(*) FROM raw_roots") == [(1,)]


def test_an_object_that_vanishes_before_it_is_read_is_told(remote: Project, s3: Any) -> None:
    remote.raw = f"s3://{BUCKET}"  # type: ignore[assignment]
    put(s3, f"{BUCKET}/logs", "a.jsonl", MANY)
    files = list_files(f"s3://{BUCKET}/logs")
    s3.rm(f"{BUCKET}/logs/a.jsonl")
    with pytest.raises(HealthAssetsError, match=r"^cannot read the raw log s3://fleet/logs/a\.jsonl: [^\n]+$"):
        contents(files)
    with (
        pytest.raises(HealthAssetsError, match=r"^cannot read the raw log s3://fleet/logs/a\.jsonl: [^\n]+$"),
        remote.warehouse.write() as session,
    ):
        ingest(session, files, HOURS, load_targets(None), remote.lookback_hours)
    assert remote.ingest(HOURS).files_seen == 0  # nothing was left behind that stands in the way


# -- the root ----------------------------------------------------------------------------------------------------------


def test_the_root_is_a_folder_or_a_url(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for given, taken in {
        "s3://bucket/logs/": "s3://bucket/logs", "logs": Path("logs"), f"file://{tmp_path}": tmp_path,
        "memory://logs": "memory://logs",
    }.items():  # fmt: skip
        monkeypatch.setenv("HEALTH_RAW", str(given))
        assert load_settings().raw == taken


def test_any_store_of_fsspec_will_do(folder: Project, remote: Project) -> None:
    store = fsspec.filesystem("memory")
    try:
        in_store(remote, store, "memory://logs")
        remote.materialize(HOURS, only=["ingest"])
        folder.materialize(HOURS, only=["ingest"])
        assert_same_tables(remote.tables(names=["executions"]), folder.tables(names=["executions"]))
    finally:
        store.rm("/logs", recursive=True)


def test_whoever_writes_logs_asks_for_a_local_root(remote: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(raw="s3://fleet/logs", judge_url="http://127.0.0.1:1", judge_model="m")
    told = "^the safety judge writes its log below the raw root, which must be a local folder, not s3://fleet/logs$"
    with pytest.raises(HealthAssetsError, match=told):
        judge([], settings, datetime.now(UTC))
    remote.materialize(HourRange.of(START), only=["ingest"])
    with remote.warehouse.read() as session, pytest.raises(HealthAssetsError, match=told):
        unjudged_runs(session, settings, datetime.now(UTC))
    monkeypatch.setenv("HEALTH_TRACKER_LOG", "s3://fleet/calls.jsonl")
    with pytest.raises(
        HealthAssetsError, match=r"^HEALTH_TRACKER_LOG: the model tracker appends to a file of this machine"
    ):
        load_settings()


def test_objects_that_changed_within_a_tick_of_the_stores_clock_have_other_stamps(s3: Any) -> None:
    stamps = set()
    for text in ("{}", "[]", "17"):
        s3.pipe_file(f"{BUCKET}/a.jsonl", text.encode())
        [file] = list_files(f"s3://{BUCKET}")
        stamps.add(file.stamp)
        assert abs(file.modified_ns / 1e9 - time.time()) < 60
    assert len(stamps) == 3


# -- a store that is far away ------------------------------------------------------------------------------------------

LATENCY_S = 0.04
MANY_OBJECTS = 40


@pytest.fixture
def far(s3: Any, endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowProxy]:
    """The same server as if over a network; its bucket has many small logs, each of one execution."""
    for number in range(MANY_OBJECTS):
        put(s3, f"{BUCKET}/logs", f"{number:03}.jsonl", [line(execution(f"e{number}", "planner", START))])
    with slow_proxy(endpoint, LATENCY_S) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.url)
        s3.clear_instance_cache()
        yield proxy
        _end_session(fsspec.filesystem("s3"))
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    s3.clear_instance_cache()


def seconds_of(read: Callable[[], object]) -> float:
    began = time.perf_counter()
    read()
    return time.perf_counter() - began


def listed(far: SlowProxy) -> list[RawFile]:
    files = list_files(f"s3://{BUCKET}/logs")
    far.requests.clear()
    return files


@pytest.mark.parametrize("what", ["lines", "file matching", "identities"])
def test_many_objects_are_asked_for_side_by_side(far: SlowProxy, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    files = listed(far)
    identities: Identities = {}
    list(line_batches(enumerate(files), identities=identities))
    far.requests.clear()
    known = {
        f"gone/{file.source_file}": KnownFile(stamp=file.stamp, identity=identities[place])
        for place, file in enumerate(files)
    }
    read = {
        "lines": lambda: list(line_batches(enumerate(files))),
        "file matching": lambda: match_files({}, files, unpacking=WITHOUT_LIMIT),
        "identities": lambda: match_files(known, files, unpacking=WITHOUT_LIMIT),
    }[what]
    parallel_s = seconds_of(read)
    requests = len(far.requests)
    parallel_s = min(parallel_s, seconds_of(read), seconds_of(read))  # other tests may have kept the machine busy
    far.requests.clear()
    monkeypatch.setattr(read_ahead, "REQUESTS_AT_ONCE", 1)
    serial_s = seconds_of(read)
    assert len(far.requests) == requests == MANY_OBJECTS * (2 if what == "identities" else 1)
    assert far.most_waiting > 4
    assert serial_s > requests * LATENCY_S
    assert serial_s / parallel_s > 2, f"{serial_s:.2f} s one after another, {parallel_s:.2f} s side by side"


def test_no_more_bytes_are_on_their_way_or_wait_than_are_allowed(
    far: SlowProxy, s3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_ahead, "RANGE_BYTES", 64 << 10)
    monkeypatch.setattr(read_ahead, "AHEAD_BYTES", 256 << 10)
    content = b"x" * (4 << 20)
    s3.pipe_file(f"{BUCKET}/large/a.jsonl", content)
    s3.pipe_file(f"{BUCKET}/large/b.jsonl", content)
    files = list_files(f"s3://{BUCKET}/large")
    far.answered_bytes = 0
    with Ahead(files) as ahead, ahead.opened(files[0]) as raw:
        assert raw.read(1000) == content[:1000]
        time.sleep(1)  # whatever was asked for has come
        heads = 20 * 1024
        assert 256 << 10 <= far.answered_bytes <= (64 << 10) + (256 << 10) + heads
        rest = b"".join(iter(lambda: raw.read(100_000) or b"", b""))
    assert len(rest) == len(content) - 1000
    assert far.answered_bytes <= len(content) + (256 << 10) + 100 * 1024


def test_objects_that_cannot_be_read_are_named_and_all_others_are_read(far: SlowProxy, s3: Any) -> None:
    files = listed(far)
    s3.rm([f"{BUCKET}/logs/003.jsonl", f"{BUCKET}/logs/004.jsonl"])
    batches = line_batches(enumerate(files))
    lines = 0
    with pytest.raises(UnreadableFilesError) as told:
        for batch in batches:
            lines += batch.num_rows
    assert lines == MANY_OBJECTS - 2
    assert told.value.faults.keys() == {"003.jsonl", "004.jsonl"}
    assert told.value.faults["003.jsonl"].startswith(f"cannot read the raw log s3://{BUCKET}/logs/003.jsonl: ")


def test_an_object_that_became_shorter_ends_early_and_the_next_ones_are_whole(
    s3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_ahead, "RANGE_BYTES", 100)
    s3.pipe_file(f"{BUCKET}/few/a.jsonl", b"a" * 1000)
    s3.pipe_file(f"{BUCKET}/few/b.jsonl", b"")
    s3.pipe_file(f"{BUCKET}/few/c.jsonl", b"c" * 250)
    files = list_files(f"s3://{BUCKET}/few")
    s3.pipe_file(f"{BUCKET}/few/a.jsonl", b"a" * 150)
    with Ahead(files) as ahead:
        found = []
        for file in files:
            with ahead.opened(file) as raw:
                found.append(b"".join(iter(lambda raw=raw: raw.read(70) or b"", b"")))
        assert found == [b"a" * 150, b"", b"c" * 250]
        with pytest.raises(ValueError, match=r"a\.jsonl is none of the files"), ahead.opened(files[0]):
            pass


def test_a_run_that_waits_for_a_store_ends_at_once_when_it_is_asked_to(
    far: SlowProxy, remote: Project, tmp_path: Path
) -> None:
    far.latency_s = 0.0
    remote.raw = raw_root(f"s3://{BUCKET}/logs")  # type: ignore[assignment]
    outputs = [str(tmp_path / "out"), str(tmp_path / "err")]
    process = start_forked_command(
        materialize_arguments(remote, HourRange.of(START), "tool_health"), {}, remote.folder, outputs
    )
    deadline = time.monotonic() + 300
    while not any(".jsonl" in request for request in far.requests):
        assert process.is_alive() and time.monotonic() < deadline, Path(outputs[1]).read_text(encoding="utf-8")
        time.sleep(0.005)
    far.latency_s = 600.0
    time.sleep(1)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGTERM)
    process.join(30)
    is_alive = process.is_alive()
    process.kill()
    said = Path(outputs[1]).read_text(encoding="utf-8")
    assert not is_alive, said
    assert "Traceback" not in said and "run it again" in " ".join(said.split())
