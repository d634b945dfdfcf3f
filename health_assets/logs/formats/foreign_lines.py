"""Results of a reader of a foreign format: numbered lines of a format that we parse, faults, and counts.

What belongs here: what all readers share, and how values of foreign files are read. What does not: any one format.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NamedTuple

from health_assets.core.text_limits import MAX_LINE_BYTES
from health_assets.logs.digests import MOST_CHARACTERS
from health_assets.logs.stores import RawFile

RAW_TEXT_BYTES = 64 << 10
READ_TEXT_BYTES = RAW_TEXT_BYTES + (4 << 10)
"""Of a text that goes into a table: what is cut off is cut off once secrets in it were replaced (`logs.redacting`)."""
READ_CHARACTERS = 4 << 10
"""Of a value that the reason of a rejection shows, for the same reason."""
OVERLONG = f"the line is longer than {MAX_LINE_BYTES >> 20} MiB"
UTF_16 = "UTF-16 without a byte order mark; write UTF-8"
_AS_IT_IS, _SORTED = json.JSONEncoder(), json.JSONEncoder(sort_keys=True)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Record = dict[str, Any]


@dataclass(frozen=True)
class Damage:
    """The place from which on a file cannot be read, in the stream of its bytes."""

    reason: str


Blocks = Iterator[bytes | Damage]


class Line(NamedTuple):
    """A line of the native format or of OTLP-JSON, or a piece of the file that cannot be used.

    Args:
        number: of the record or line that it was made from, counted from 1.
        text: the line, or the raw piece.
        fault: why the piece is rejected; None for a line.
    """

    number: int
    text: str
    fault: str | None = None


@dataclass
class Source:
    """A file that is being read.

    Args:
        file: the file.
        blocks: its plain bytes.
        notes: what is worth telling besides the lines, with a count: above all how many of its records are known but
            say nothing that any table holds, by reason. Complete when all lines have been read.
    """

    file: RawFile
    blocks: Blocks
    notes: Counter[str] = field(default_factory=Counter)

    @property
    def by_project(self) -> bool:
        """Whether the agent of a coding agent's session is called by its project, too."""
        settings = self.file.format_settings
        return settings is not None and settings.by_project


class UnusableRecordError(Exception):
    """A foreign record lacks what an execution must have; says what."""


def is_utf_16(line: bytes) -> bool:
    """Whether a line, cut where UTF-8 would end, is one of JSON in UTF-16.

    Such a line has a quote between zero bytes of its neighbours, which no JSON has otherwise. Of the last line's end
    there may be a zero byte left.
    """
    return b'\0"\0' in line or line == b"\0"


def not_utf_8(line: bytes, error: UnicodeDecodeError) -> str:
    """The reason why a line that is not UTF-8 cannot be used."""
    return UTF_16 if is_utf_16(line) else f"not valid UTF-8: byte {error.start + 1} of the line"


def dumped(value: Any, *, is_sorted: bool = False) -> str:
    """The value as JSON; with the names in order where equal values are to be equal texts.

    Raises:
        UnusableRecordError: it is nested as deeply as the parser just takes, which is too deep for writing it.
    """
    try:
        return (_SORTED if is_sorted else _AS_IT_IS).encode(value)
    except RecursionError:
        raise UnusableRecordError("JSON that is nested too deeply") from None


def as_content(value: Any) -> str | None:
    """What a tool was given or answered, as text of no more than counts for its digest; None where it is not told."""
    if value is None or isinstance(value, str):
        return value and value[:MOST_CHARACTERS]
    return dumped(value, is_sorted=True)[:MOST_CHARACTERS]


def line_of(number: int, record: Record) -> Line:
    """A line of a record that parses.

    Raises:
        UnusableRecordError: it is nested too deeply.
    """
    return Line(number, dumped(record))


def rejected(number: int, piece: Any, reason: str) -> Line:
    """A piece of a file that cannot be used; without its text where that is nested too deeply.

    Half a surrogate pair, which JSON may spell and UTF-8 cannot, becomes a question mark.
    """
    try:
        text = piece if isinstance(piece, str) else json.dumps(piece)
    except RecursionError:
        text = ""
    text = text.encode(errors="replace")[:READ_TEXT_BYTES].decode(errors="ignore")
    return Line(number, text, reason.encode(errors="replace").decode())


def present(record: Record) -> Record:
    """The record without the fields that have no value."""
    return {name: value for name, value in record.items() if value is not None}


def as_time(value: Any, name: str) -> datetime:
    """ISO 8601 as text, where no zone means UTC.

    Raises:
        UnusableRecordError: it is not there or something else.
    """
    if value is None:
        raise UnusableRecordError(f"{name} is missing")
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise UnusableRecordError(f"{name} must be ISO 8601, not {dumped(value)[:READ_CHARACTERS]}") from None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def as_epoch(value: Any, name: str, unit: Literal["seconds", "milliseconds"]) -> datetime:
    """A whole number of seconds or milliseconds since 1970.

    Raises:
        UnusableRecordError: it is not there, something else, or beyond the calendar.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise UnusableRecordError(f"{name} must be {unit} since 1970")
    try:
        return EPOCH + timedelta(**{unit: value})
    except OverflowError:
        raise UnusableRecordError(f"{name} is beyond the calendar") from None


def unix_nano(moment: datetime) -> str:
    """Nanoseconds since 1970 as OTLP-JSON writes them."""
    return str((moment - EPOCH) // timedelta(microseconds=1) * 1000)


def hex_id(digits: int, *parts: object) -> str:
    """Always the same hexadecimal id for the same parts."""
    return hashlib.sha256("\0".join(map(str, parts)).encode(errors="replace")).hexdigest()[:digits]
