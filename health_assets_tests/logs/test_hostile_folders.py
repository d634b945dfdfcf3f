"""Folders that somebody changes while they are read: no link leads out of the raw root, and no listing fails for one."""

import gzip
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from health_assets.core.errors import HealthAssetsError, UnreadableFilesError
from health_assets.logs.files import line_batches
from health_assets.logs.folders import OUT_OF_ROOT
from health_assets.logs.safe_open import open_file, open_folder
from health_assets.logs.stores import RawFile, list_files


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A raw root, beside a folder of the same shape that is none of its business."""
    for place, text in (("raw/logs/deep", b"own\n"), ("foreign/logs/deep", b"foreign, and longer\n")):
        folder = tmp_path / place
        folder.mkdir(parents=True)
        (folder / "a.jsonl").write_bytes(text)
        (folder / "b.jsonl.gz").write_bytes(gzip.compress(text))
        (folder / "c.json").write_bytes(text)
    return tmp_path / "raw"


def lines_of(files: list[RawFile]) -> list[str]:
    return [text for batch in line_batches(enumerate(files)) for text in batch["line"].to_pylist()]


@pytest.mark.parametrize("component", ["logs", "logs/deep"])
def test_a_folder_that_is_swapped_for_a_link_after_the_listing_leads_nowhere(root: Path, component: str) -> None:
    files = list_files(root)
    assert [file.source_file for file in files] == ["logs/deep/a.jsonl", "logs/deep/b.jsonl.gz", "logs/deep/c.json"]
    (root / component).rename(root / "away")
    (root / component).symlink_to(root.parent / "foreign" / component)
    with pytest.raises(UnreadableFilesError) as told:
        lines_of(files)
    assert list(told.value.faults) == [file.source_file for file in files]
    assert "it, or a folder above it, was replaced by a link" in str(told.value)
    for file in files:
        assert file.stamp_now() is None
        with pytest.raises(HealthAssetsError, match="replaced by a link"):
            file.beginning(5)
        with pytest.raises(HealthAssetsError, match="replaced by a link"), file.opened():
            pass


def test_a_link_within_the_root_is_read_where_it_led_when_it_was_listed(root: Path) -> None:
    (root / "short").symlink_to("logs/deep")
    (root / "one.jsonl").symlink_to("short/a.jsonl")
    files = [file for file in list_files(root) if file.source_file == "one.jsonl"]
    (root / "short").unlink()
    (root / "short").symlink_to(root.parent / "foreign/logs/deep")
    assert lines_of(files) == ["own\n"]
    odd: dict[str, str] = {}
    again = [file.source_file for file in list_files(root, None, odd)]
    assert again == ["logs/deep/a.jsonl", "logs/deep/b.jsonl.gz", "logs/deep/c.json"]
    assert odd == {"one.jsonl": OUT_OF_ROOT, "short/": OUT_OF_ROOT}


@contextmanager
def swapping(folder: Path, other: Path) -> Iterator[None]:
    """Put a link to another folder in the place of one, and the folder back, as fast as it goes."""
    end, away = threading.Event(), folder.with_name("away")

    def swap() -> None:
        while not end.is_set():
            folder.rename(away)
            folder.symlink_to(other)
            folder.unlink()
            away.rename(folder)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()


@pytest.mark.parametrize("component", ["logs", "logs/deep"])
def test_swapping_a_folder_during_listings_shows_nothing_from_outside_and_ends_no_listing(
    root: Path, component: str
) -> None:
    foreign = root.parent / "foreign"
    listed, until = 0, time.monotonic() + 1.0
    with swapping(root / component, foreign / component):
        while time.monotonic() < until or listed < 200:
            faults: dict[str, str] = {}
            for file in list_files(root, faults):
                listed += 1
                assert not Path(file.path).is_relative_to(foreign)
                try:
                    assert file.beginning(100) != b"foreign, and longer\n"
                    with file.opened() as raw:
                        assert b"foreign" not in raw.read()
                except HealthAssetsError:
                    pass  # it was swapped just then
            assert all(why.startswith("cannot ") for why in faults.values())


def test_a_path_never_leads_up(root: Path) -> None:
    for path in ("../foreign/logs/deep/a.jsonl", "logs/../../foreign/logs/deep/a.jsonl"):
        with pytest.raises(OSError, match="leads out"):
            open_file(root, path)
    with pytest.raises(OSError, match="leads out"):
        open_folder(root, "..")


def test_opening_files_leaves_no_descriptor_open(root: Path) -> None:
    (root / "logs/deep/pipe.jsonl").symlink_to("a.jsonl")
    before = len([*Path("/proc/self/fd").iterdir()])
    for _ in range(5):
        for file in list_files(root, {}):
            file.beginning(3)
            file.stamp_now()
        for odd in ("logs/none/a.jsonl", "logs/deep/a.jsonl/b", "logs/deep", "logs/deep/pipe.jsonl"):
            with pytest.raises(OSError, match=r".*"):
                open_file(root, odd)
    assert len([*Path("/proc/self/fd").iterdir()]) == before


def test_a_pipe_a_socket_and_a_device_with_the_name_of_a_log_are_told(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(root / "pipe.jsonl")
    os.mkfifo(root / "pipe")
    (root / "zeros.jsonl").symlink_to("pipe.jsonl")
    monkeypatch.chdir(root)  # the path of a socket is short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket.jsonl")
        odd: dict[str, str] = {}
        files = list_files(root, None, odd)
    assert len(files) == 3
    assert odd == {
        "pipe.jsonl": "it is a pipe and no file, so it is not read",
        "zeros.jsonl": "it is a pipe and no file, so it is not read",
        "socket.jsonl": "it is a socket and no file, so it is not read",
    }


def test_a_loop_of_links_is_the_fault_of_that_name_alone(root: Path) -> None:
    (root / "x.jsonl").symlink_to("y.jsonl")
    (root / "y.jsonl").symlink_to("x.jsonl")
    (root / "logs/again").symlink_to("../logs")
    faults: dict[str, str] = {}
    assert len(list_files(root, faults)) == 3
    assert faults == {
        "x.jsonl": f"cannot read the raw log {root}/x.jsonl: it is a link that leads nowhere, to y.jsonl",
        "y.jsonl": f"cannot read the raw log {root}/y.jsonl: it is a link that leads nowhere, to x.jsonl",
    }
