"""The lines of a foreign file that has a record a line, as JSON objects or as text."""

import json
from collections.abc import Iterator
from typing import Any

import msgspec
from pydantic_core import from_json

from health_assets.logs.formats.foreign_lines import (
    MAX_LINE_BYTES,
    OVERLONG,
    READ_TEXT_BYTES,
    UTF_16,
    Blocks,
    Damage,
    Line,
    Record,
    is_utf_16,
    not_utf_8,
    rejected,
)


class Fields:
    """The fields that a reader looks at: values of others are skipped.

    Args:
        shape: a `TypedDict` of them.
    """

    def __init__(self, shape: Any) -> None:
        self._read = msgspec.json.Decoder(shape).decode

    def of(self, line: bytes) -> Record | None:
        """The object of a line; None where its types are unusual or it is no JSON: then another parser must read it."""
        try:
            if not line.isascii():
                line.decode()  # the parser does not check texts that it skips
            found: Record = self._read(line)
        except (UnicodeDecodeError, msgspec.DecodeError, RecursionError):
            return None
        return found


def objects(blocks: Blocks) -> Iterator[tuple[int, Record] | Line]:
    """(line number, object) of every line that is not blank; what cannot be read is a rejected line."""
    for number, line in _lines(blocks):
        if isinstance(line, Damage):
            yield rejected(number, "", line.reason)
        elif line and not line.isspace():
            yield _object(number, line)


def private_objects(blocks: Blocks, fields: Fields | None = None) -> Iterator[tuple[int, Record] | Line]:
    """The same of files whose text must not be stored: a rejected line has its reason alone.

    Args:
        blocks: bytes of the file.
        fields: what of an object is wanted; all, if not given.
    """
    for number, line in _lines(blocks):
        if isinstance(line, Damage):
            yield rejected(number, "", line.reason)
        elif line and not line.isspace():
            record = fields.of(line) if fields else None
            item = _object(number, line) if record is None else (number, record)
            yield Line(item.number, "", item.fault) if isinstance(item, Line) else item


def texts(blocks: Blocks) -> Iterator[tuple[int, str] | Line]:
    """(line number, text) of every line that is not blank; what cannot be read is a rejected line."""
    for number, line in _lines(blocks):
        if isinstance(line, Damage):
            yield rejected(number, "", line.reason)
        elif line.strip():
            try:
                yield number, line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
            except UnicodeDecodeError as error:
                yield rejected(number, _shown(line), not_utf_8(line, error))


def _object(number: int, line: bytes) -> tuple[int, Record] | Line:
    try:
        value = _parsed(line, number)
    except UnicodeDecodeError as error:
        reason = not_utf_8(line, error)
    except (ValueError, RecursionError):
        reason = UTF_16 if is_utf_16(line) else "not valid JSON"
    else:
        if isinstance(value, dict):
            return number, value
        reason = "not a JSON object"
    return rejected(number, _shown(line), reason)


def _parsed(line: bytes, number: int) -> Any:
    """The value of a line, by pydantic's parser where that takes it: it is twice as fast, and takes nothing more."""
    try:
        return from_json(line)
    except ValueError:
        return json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))


def _shown(line: bytes) -> str:
    return line[: READ_TEXT_BYTES + 1].decode(errors="replace").rstrip("\r\n")


def _lines(blocks: Blocks) -> Iterator[tuple[int, bytes | Damage]]:
    number, size = 1, 0
    pieces: list[bytes] = []
    for block in blocks:
        if isinstance(block, Damage):
            if size:
                yield number, b"".join(pieces)
                number += 1
            yield number, block
            return
        *ended, last = block.split(b"\n")
        if ended:
            ended[0] = b"".join([*pieces, ended[0]])
            pieces, size = [], 0
        for line in ended:
            yield number, _whole(line)
            number += 1
        pieces.append(last)
        size += len(last)
        if size > MAX_LINE_BYTES:
            pieces = [b"".join(pieces)[: MAX_LINE_BYTES + 1]]
    if size:
        yield number, _whole(b"".join(pieces))


def _whole(line: bytes) -> bytes | Damage:
    return line if len(line) <= MAX_LINE_BYTES else Damage(OVERLONG)
