"""Logs are matched without a warehouse: trust, copies whose keeper is away, and how much is read for it."""

from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from health_assets.core.judges import TRUSTED, Trust
from health_assets.logs import content_index
from health_assets.logs.decompression import decompressed_blocks
from health_assets.logs.file_matching import match_files
from health_assets.logs.files import Identities, RawFile, line_batches, list_files
from health_assets.logs.formats.foreign_lines import Damage
from health_assets.logs.known_files import KnownFile, MatchedFiles
from health_assets.logs.limits import WITHOUT_LIMIT, Unpacking
from health_assets.logs.read_ahead import Ahead

HEADER = b'{"resource": "' + b"x" * 5000 + b'"}\n'
Known = dict[str, KnownFile]


def write(root: Path, name: str, content: bytes) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_bytes(content)


def found(
    root: Path, known: Known, unreadable: Collection[str] = (), trusted: Trust = TRUSTED
) -> tuple[MatchedFiles, Known]:
    """Recognize the files; also gives what the ledger knows once all that counts was read."""
    files = [file for file in list_files(root) if file.source_file.partition("/")[0] + "/" not in unreadable]
    result = match_files(known, files, unreadable, unpacking=WITHOUT_LIMIT, trusted=trusted)
    identities: Identities = {}
    list(line_batches(enumerate(result.files), identities=identities))
    now = {
        file.source_file: KnownFile(stamp=file.stamp, identity=identities[place])
        for place, file in enumerate(result.files)
    }
    now |= {
        name: KnownFile(stamp=file.stamp, identity=own, copy_of=keeper)
        for name, (file, own, keeper) in result.copies.items()
    }
    away = {name: own for name, own in known.items() if name not in now and name not in result.moved}
    return result, away | now


def names(files: Collection[RawFile]) -> list[str]:
    return [file.source_file for file in files]


# -- trust --


def test_no_copy_of_a_trusted_log_takes_its_place_be_it_equal_or_longer(tmp_path: Path) -> None:
    write(tmp_path, "judgements/x.jsonl", b"verdict\n")
    _, known = found(tmp_path, {})
    write(tmp_path, "old/judgements/x.jsonl", b"verdict\n")
    result, known = found(tmp_path, known)
    assert (result.moved, names(result.files)) == ({}, ["judgements/x.jsonl"])
    assert result.copies["old/judgements/x.jsonl"][2] == "judgements/x.jsonl"
    write(tmp_path, "zz.jsonl", b"verdict\nand more\n")
    result, _ = found(tmp_path, known)
    assert (result.moved, result.contained) == ({}, set())
    assert {"judgements/x.jsonl", "zz.jsonl"} <= set(names(result.files))


def test_a_trusted_log_that_is_gone_does_not_go_on_as_one_that_nobody_trusts(tmp_path: Path) -> None:
    write(tmp_path, "judgements/x.jsonl", b"verdict\n")
    _, known = found(tmp_path, {})
    (tmp_path / "judgements/x.jsonl").rename(tmp_path / "x.jsonl")
    result, _ = found(tmp_path, known)
    assert (result.moved, result.gone, names(result.new)) == ({}, {"judgements/x.jsonl"}, ["x.jsonl"])


def test_whom_to_trust_is_asked_again_where_a_copy_was_settled(tmp_path: Path) -> None:
    write(tmp_path, "a.jsonl", b"verdict\n")
    write(tmp_path, "z.jsonl", b"verdict\n")
    _, known = found(tmp_path, {})
    assert known["a.jsonl"].copy_of == "z.jsonl"
    result, _ = found(tmp_path, known, trusted=Trust(["a.jsonl"]))
    assert (result.moved, names(result.files)) == ({"z.jsonl": "a.jsonl"}, ["a.jsonl"])


# -- copies whose keeper is away --


@pytest.mark.parametrize("more", [b"", b"only there\n"], ids=["equal", "longer"])
def test_a_copy_does_not_count_while_the_log_that_does_cannot_be_read(tmp_path: Path, more: bytes) -> None:
    write(tmp_path, "a/log.jsonl", b"line\n")
    write(tmp_path, "z/log.jsonl", b"line\n" + more)
    _, known = found(tmp_path, {})
    known["z/log.jsonl"] = KnownFile(
        stamp=known["z/log.jsonl"].stamp, identity=known["z/log.jsonl"].identity, is_complete=False
    )
    result, _ = found(tmp_path, known, ["z/"])
    assert (result.new, result.gone, list(result.copies)) == ([], set(), ["a/log.jsonl"])


@pytest.mark.parametrize("is_complete", [True, False])
def test_a_log_that_is_gone_goes_on_as_its_copy_that_counts_again(tmp_path: Path, is_complete: bool) -> None:
    write(tmp_path, "k.jsonl", b"line\nonly there\n")
    write(tmp_path, "v.jsonl", b"line\n")
    _, known = found(tmp_path, {})
    known["k.jsonl"] = KnownFile(
        stamp=known["k.jsonl"].stamp, identity=known["k.jsonl"].identity, is_complete=is_complete
    )
    (tmp_path / "k.jsonl").unlink()
    write(tmp_path, "v.jsonl", b"line\nanother\n")
    result, _ = found(tmp_path, known)
    assert (result.moved, result.resumed) == ({"k.jsonl": "v.jsonl"}, {"v.jsonl": "k.jsonl"})
    assert (names(result.changed), result.new, result.gone) == (["v.jsonl"], [], set())
    write(tmp_path, "v.jsonl", b"something else\n")
    result, _ = found(tmp_path, known)
    assert (result.moved, result.gone, names(result.new)) == ({}, {"k.jsonl"}, ["v.jsonl"])


# -- rotation --


@pytest.mark.parametrize("name", ["app.old.jsonl", "app.jsonl.2"])
def test_what_another_known_log_pushes_out_is_gone_whatever_its_name(tmp_path: Path, name: str) -> None:
    """Also where all logs begin with the same long header."""
    write(tmp_path, "app.jsonl.1", HEADER + b"newer\n")
    write(tmp_path, name, HEADER + b"older\n")
    _, known = found(tmp_path, {})
    (tmp_path / "app.jsonl.1").replace(tmp_path / name)
    result, _ = found(tmp_path, known)
    assert (result.moved, result.displaced) == ({"app.jsonl.1": name}, {name})
    assert (result.contained, result.changed) == (set(), [])


# -- how much is read --


def test_files_that_begin_alike_are_read_a_few_times_however_many_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(60):
        write(tmp_path, f"{number}.jsonl", HEADER + b"%d" % number * (number + 1) + b"\n")
    read: list[int] = []

    def counted(file: RawFile, most: Unpacking, ahead: Ahead) -> Iterator[bytes | Damage]:
        for block in decompressed_blocks(file, most, ahead=ahead):
            read.append(len(block) if isinstance(block, bytes) else 0)
            yield block

    monkeypatch.setattr(content_index, "decompressed_blocks", counted)
    files = list_files(tmp_path)
    assert match_files({}, files, unpacking=WITHOUT_LIMIT).copies == {}
    assert sum(read) <= 2 * sum(file.size_bytes for file in files)
