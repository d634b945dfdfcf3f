"""One raw log is found by its name, as a listing would find it."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

from health_assets.core.errors import HealthAssetsError, NoRawRootError
from health_assets.logs import stores
from health_assets.logs.stores import RawFile, find_file, list_files

NAMES = ("a.jsonl", "deep/er/b b.jsonl.gz")


def as_found(file: RawFile | None) -> tuple[Any, ...] | None:
    return None if file is None else (file.source_file, str(file.path), file.stamp, file.root, file.store)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in NAMES:
        path = tmp_path / "raw" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
    (tmp_path / "outside.jsonl").write_text("secret")
    return tmp_path / "raw"


@pytest.fixture
def memory() -> Iterator[Any]:
    store = fsspec.filesystem("memory")
    for name in NAMES:
        store.pipe_file(f"/finding/{name}", name.encode())
    yield store
    store.rm("/finding", recursive=True)


def _refuse(*_: object) -> None:
    raise AssertionError("everything is listed")


def test_a_file_is_found_as_it_is_listed_and_nothing_is_listed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = [as_found(file) for file in list_files(root)]
    monkeypatch.setattr(stores, "Walk", _refuse)
    assert [as_found(find_file(root, name)) for name in NAMES] == listed
    for name in ("gone.jsonl", "gone/a.jsonl", "deep"):
        assert find_file(root, name) is None


def test_an_object_is_found_as_it_is_listed_and_nothing_is_listed(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    url = "memory://finding"
    listed = [as_found(file) for file in list_files(url)]
    with monkeypatch.context() as patched:
        patched.setattr(type(memory), "find", _refuse)
        assert [as_found(find_file(url, name)) for name in NAMES] == listed
        for name in ("gone.jsonl", "deep"):
            assert find_file(url, name) is None


def test_a_name_that_leads_through_links_is_found_and_none_that_leads_out(root: Path) -> None:
    (root / "link.jsonl").symlink_to("a.jsonl")
    (root / "z").symlink_to("deep")
    (root / "out.jsonl").symlink_to(root.parent / "outside.jsonl")
    (root / "up").symlink_to("..")
    (root / "cut.jsonl").symlink_to("nowhere.jsonl")
    for name in ("link.jsonl", "z/er/b b.jsonl.gz"):
        listed = [file for file in list_files(root, {}) if file.source_file == name]
        assert as_found(find_file(root, name)) == (as_found(listed[0]) if listed else None)
    assert find_file(root, "link.jsonl") is not None
    for name in ("out.jsonl", "up/outside.jsonl"):
        assert find_file(root, name) is None
    with pytest.raises(HealthAssetsError, match="leads nowhere"):
        find_file(root, "cut.jsonl")


def test_a_name_that_is_no_text_is_found_by_its_escapes(root: Path) -> None:
    try:
        Path(os.fsdecode(os.fsencode(root) + b"/\xff.jsonl")).write_text("odd")
    except OSError:
        pytest.skip("this file system takes no such name")
    found = find_file(root, r"\xff.jsonl")
    assert found is not None and found.size_bytes == 3


def test_a_pipe_is_no_log_and_a_root_that_is_gone_is_told(root: Path) -> None:
    os.mkfifo(root / "pipe.jsonl")
    assert find_file(root, "pipe.jsonl") is None
    with pytest.raises(NoRawRootError):
        find_file(root / "gone", "a.jsonl")
