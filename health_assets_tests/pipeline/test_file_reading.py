"""Passes over raw logs: several of them find out together what one does, and what is sent arrives as it was."""

import os
import pickle
from collections import Counter
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from pydantic import TypeAdapter

from health_assets.core.errors import UnreadableFilesError
from health_assets.core.judges import Trust
from health_assets.core.targets import Targets
from health_assets.core.temporary import temporary_folder
from health_assets.logs.files import RawFile, list_files
from health_assets.logs.limits import current_limits
from health_assets.logs.reader import parser_connection
from health_assets.logs.routing import main_rejection
from health_assets.pipeline import executor_sharding
from health_assets.pipeline.append_detection import NOTHING
from health_assets.pipeline.file_reading import ReadResult, ReadTask, RowFilter, read_files
from health_assets.pipeline.ingestion_scope import IngestScope
from health_assets.warehouse.session import InsertArrow
from health_assets.warehouse.store import Warehouse
from health_assets_tests.support.logs_made import START, cut_into_files, random_lines
from health_assets_tests.support.projects import hours_from

HOURS = hours_from(START, 6)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    random = Random(5)
    for name, lines in cut_into_files(random, random_lines(random, 300, 9)).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("\n".join(lines))
    return tmp_path


def of_all(files: list[RawFile]) -> ReadTask:
    names = {file.source_file for file in files}
    with temporary_folder() as folder, Warehouse(str(folder / "warehouse.duckdb")).write() as session:
        scope = IngestScope(session, HOURS, names, 3, 3)
    return ReadTask(
        files=files,
        wanted=RowFilter(scope=scope, fresh=names),
        targets=Targets(),
        trusted_judgements=Trust(["*"]),
        limits=current_limits(),
        appended=NOTHING,
        salt="pepper",
    )


def into(rows: Counter[str]) -> InsertArrow:
    """A function that counts the rows of each table."""

    def insert(table: str, given: pa.Table | pa.RecordBatchReader) -> None:
        rows[table] += sum(batch.num_rows for batch in (given.to_batches() if isinstance(given, pa.Table) else given))

    return insert


def test_several_passes_find_out_together_what_one_does(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = of_all(list_files(root))
    expected_rows: Counter[str] = Counter()
    expected = read_files(whole, into(expected_rows))
    monkeypatch.setattr(executor_sharding, "BYTES_PER_SHARD", 5_000)
    passes = [*whole.shards()]
    assert len(passes) > 2
    assert Counter(file for one in passes for file in one.files) == Counter(whole.files)

    rows: Counter[str] = Counter()
    accounts = [read_files(pickle.loads(pickle.dumps(one)), into(rows)) for one in passes]
    assert rows == expected_rows and rows["executions"]
    for name in ("found", "future", "notes", "identities"):
        told = [dict(getattr(account, name)) for account in accounts]
        assert {key: value for own in told for key, value in own.items()} == dict(getattr(expected, name))
    assert sum(account.secrets for account in accounts) == expected.secrets


def test_an_account_arrives_as_it_was(root: Path) -> None:
    [one] = of_all(list_files(root)).shards()
    account = read_files(one, into(Counter()))
    assert account.found and account.stamps and account.identities
    sent = TypeAdapter(ReadResult).dump_json(account)
    assert TypeAdapter(ReadResult).validate_json(sent) == account


def test_where_all_lines_are_rejected_the_passes_agree_on_the_main_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, lines in {"a": ["[1]", "[2]", "x"], "b": ["x", "y"], "c": ["[3]", "[4]"], "d": [" "]}.items():
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines))
    whole = of_all(list_files(tmp_path))
    expected = main_rejection(read_files(whole, into(Counter())).rejections or [])
    assert expected is not None and (expected.lines, expected.place) == (4, ("a.jsonl", 1))
    monkeypatch.setattr(executor_sharding, "BYTES_PER_SHARD", 1)
    accounts = [read_files(one, into(Counter())) for one in whole.shards()]
    assert len(accounts) == 4 and all(account.rejections is not None for account in accounts)
    assert main_rejection(one for account in accounts for one in account.rejections or []) == expected


# -- other machines ------------------------------------------------------------------------------------------------------


def test_a_shard_finds_files_from_any_folder_and_tells_what_it_cannot_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "a.jsonl").write_text("{}\n")
    monkeypatch.chdir(tmp_path)
    whole = of_all(list_files(Path("raw")))
    [shard] = whole.shards()
    monkeypatch.chdir("/")
    assert read_files(shard, into(Counter())).found
    (tmp_path / "raw" / "a.jsonl").unlink()
    assert "a.jsonl" in read_files(shard, into(Counter())).faults
    with pytest.raises(UnreadableFilesError):
        read_files(whole, into(Counter()))


def test_what_works_beside_others_takes_one_core_and_little_memory() -> None:
    for single_threaded, threads in ((True, 1), (False, os.cpu_count())):
        with parser_connection(single_threaded=single_threaded) as connection:
            [(found, memory)] = connection.execute(
                "SELECT current_setting('threads'), current_setting('memory_limit')"
            ).fetchall()
            assert found == threads and (memory == "953.6 MiB") == single_threaded
