"""Other machines: files are dealt out to them, and a file that is not the same there does not count."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from health_assets.logs.files import RawFile, list_files
from health_assets.pipeline import executor_sharding
from health_assets.pipeline.executor_sharding import ShardReport, faults_of, shards


@pytest.fixture
def file(tmp_path: Path) -> RawFile:
    (tmp_path / "a.jsonl").write_text("{}\n")
    [found] = list_files(tmp_path)
    return found


def test_a_file_that_the_cluster_cannot_read_is_told(file: RawFile) -> None:
    there = [ShardReport(faults={"a.jsonl": "no such file"})]
    said = "no such file (on the cluster; this machine can read it: name a raw root that both reach)"
    assert faults_of([file], there) == {"a.jsonl": said}
    Path(file.path).unlink()
    assert faults_of([file], there) == {"a.jsonl": "no such file"}


def test_another_file_of_the_same_name_on_another_machine_does_not_count(file: RawFile) -> None:
    size, modified, changed = file.stamp
    for seen_size, seen_modified in (
        (size + 1, modified), (size - 1, modified), (size, modified - 1), (size, modified + 1)
    ):  # fmt: skip
        seen = (seen_size, seen_modified, changed)
        assert "is another file on the cluster" in faults_of([file], [ShardReport(stamps={"a.jsonl": seen})])["a.jsonl"]


def test_a_file_that_was_rotated_once_it_was_read_counts(file: RawFile) -> None:
    Path(file.path).write_text("")
    assert not faults_of([file], [ShardReport(stamps={"a.jsonl": file.stamp})])


def test_a_file_that_grew_while_it_was_read_is_the_same(file: RawFile) -> None:
    with Path(file.path).open("a") as log:
        log.write("{}\n")
    os.utime(file.path, ns=(file.modified_ns + 10, file.modified_ns + 10))
    now = file.stamp_now()
    assert now is not None
    for seen in (file.stamp, now):
        assert not faults_of([file], [ShardReport(stamps={"a.jsonl": seen})])


def test_files_that_are_read_together_are_not_too_many(file: RawFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor_sharding, "FILES_PER_SHARD", 3)
    files = [replace(file, source_file=f"{number}.jsonl", size_bytes=number) for number in range(8)]
    sizes = [[own.size_bytes for own in group] for group in shards(files)]
    assert sizes == [[7, 6, 5], [4, 3, 2], [1, 0]]
