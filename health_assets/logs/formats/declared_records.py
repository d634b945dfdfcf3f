"""What a record of a declared format becomes: records of the native format, and spans.

What belongs here: values of fields, and what a record leaves unsaid. What does not: the declaration (`declaration`) and
the files that records are in (`declared`).
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any

from health_assets.logs.formats.coding_turns import fingerprint, kind_of
from health_assets.logs.formats.declaration import (
    CALLS,
    CANCELLATION,
    CANCELLED,
    EXECUTION,
    FIELDS,
    SPAN,
    Declaration,
    Made,
    Value,
    as_text,
)
from health_assets.logs.formats.foreign_lines import (
    EPOCH,
    READ_CHARACTERS,
    Line,
    Record,
    UnusableRecordError,
    as_content,
    as_time,
    dumped,
    hex_id,
    line_of,
    present,
    rejected,
    unix_nano,
)
from health_assets.logs.formats.otlp_writing import attributes_of, line_of_spans, span_id_of, status_of, trace_id_of
from health_assets.logs.json_values import as_count, as_list, as_name, as_number
from health_assets.logs.stores import RawFile
from health_assets.schema import log_fields
from health_assets.schema.log_fields import LogField

SUCCESS, FAILURE = "success", "failure"
EPOCH_S_UNTIL = 1e11
"""As seconds since 1970 that would be the year 5138, so a greater number is milliseconds, as in the native format."""
NOTHING_MADE = "record that no table has a place for"
UNTIMED = "record without an end: its time is the modification time of its file, its duration is not known"


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a record is, as expressions may look at it.

    Args:
        number: its line, or its place in the document, from 1.
        key: its key where it is a member of an object.
        file: the file.
        document: members of the document besides its records.
    """

    number: int
    key: str | None
    file: RawFile
    document: Record

    def context(self, record: Any) -> Record:
        """What expressions see around a record."""
        return {
            "_record": record,
            "_document": self.document,
            "_file": _names_of(self.file.source_file),
            "_key": self.key,
        }


@lru_cache(maxsize=1)
def _names_of(source_file: str) -> Record:
    path = PurePosixPath(source_file)
    return {"name": path.name, "folder": path.parent.name, "path": str(path)}


class DeclaredRecords:
    """Makes records by a declaration.

    Args:
        declaration: the declaration.
        notes: where what becomes nothing is counted.
    """

    def __init__(self, declaration: Declaration, notes: Counter[str]) -> None:
        self._declaration = declaration
        self._notes = notes
        self._as_content = fingerprint if declaration.private else as_content
        self._looks_at_digest = declaration.looks_at_digest
        self._made_of = [(made, made.looks_around) for made in declaration.make]

    def lines(self, record: Any, place: Place) -> Iterator[Line]:
        """The lines of what a record becomes, and what of it cannot be used."""
        try:
            around = place.context(record)
            if self._looks_at_digest:
                around["_digest"] = hex_id(32, self._declaration.name, dumped(record, is_sorted=True))
            skipped = self._skipped(record, around)
            if skipped is not None:
                self._note(skipped)
                return
            found = list(self._made(record, place, around))
        except UnusableRecordError as error:
            yield self._rejected(place.number, record, error)
            return
        if not found:
            self._note(NOTHING_MADE)
        yield from found

    def _skipped(self, record: Any, around: Record) -> str | None:
        """What a record is called that becomes nothing; None of any other."""
        if not self._declaration.skip:
            return None
        seen = _members(record) | around
        return next((one.note for one in self._declaration.skip if _is_found(one.is_met(seen))), None)

    def _made(self, record: Any, place: Place, around: Record) -> Iterator[Line]:
        """Lines of all kinds; what is made of an element is rejected by itself."""
        run: Record = {}
        for made, looks_around in self._made_of:
            elements = [record] if made.elements is None else as_list(made.elements(around | _members(record)))
            for position, element in enumerate(elements):
                seen = _members(element)
                if looks_around:
                    seen = seen | around | {"_item": element, "_place": position}
                if made.is_met is not None and not _is_found(made.is_met(seen)):
                    continue
                try:
                    if made.type == SPAN:
                        yield self._span(made, seen, place.number)
                        continue
                    values = self._values(made, seen)
                    if made.type == EXECUTION:
                        values = self._execution(values, record, place, position)
                        run = values if made.elements is None else run
                    elif made.type in CALLS:
                        values = self._call(made.type, values, run, position)
                    _require(made.type, values)
                    yield line_of(place.number, _record(made.type, values))
                except UnusableRecordError as error:
                    if made.elements is None:
                        raise
                    yield self._rejected(place.number, element, error)

    def _values(self, made: Made, seen: Record) -> Record:
        fields = FIELDS[made.type]
        return present({name: self._field(fields[name], value, seen) for name, value in made.fields.items()})

    def _field(self, field: LogField, value: Value, seen: Record) -> Any:
        found = self._found(field.name, value, seen)
        if found is None or isinstance(field, log_fields.Content | log_fields.TaskInput):
            return self._as_content(found)
        if isinstance(field, log_fields.FreeText):
            if self._declaration.private:
                return kind_of(found) or "not told"
            return found if isinstance(found, str) else dumped(found)
        if self._declaration.private and not isinstance(field, tuple(_AS)):  # what is rejected later would be shown
            return _private_value(field, found)
        converted = _AS.get(type(field), _itself)(found)
        if converted is None and _is_found(found):
            self._note(f"{field.name} of a type that the field does not have, left out")
        return converted

    def _found(self, name: str, value: Value, seen: Record) -> Any:
        return _value_of(name, value, seen, is_private=self._declaration.private)

    def _execution(self, values: Record, record: Any, place: Place, position: int) -> Record:
        """An execution with what it does not tell: its id, its start, and with `file_time` its end."""
        if "ended_at" not in values and self._declaration.file_time:
            self._note(UNTIMED)
            modified = EPOCH + timedelta(milliseconds=place.file.modified_ns // 1_000_000)
            values = values | {"started_at": modified.isoformat(), "ended_at": modified.isoformat(), "is_timed": False}
        elif "started_at" not in values and "ended_at" in values:
            values = values | {"started_at": values["ended_at"], "is_timed": False}
        if "execution_id" not in values:
            parts = [dumped(record, is_sorted=True), *([position] if position else [])]
            values = values | {"execution_id": hex_id(32, self._declaration.name, *parts)}
        return values

    @staticmethod
    def _call(kind: str, values: Record, run: Record, position: int) -> Record:
        """A call with what its execution tells in its place."""
        if not run:
            return values
        return {
            "call_id": f"{run['execution_id']}:{kind}:{position}",
            **{name: run[name] for name in ("agent_id", "execution_id", "ended_at")},
            **values,
        }

    def _span(self, made: Made, seen: Record, number: int) -> Line:
        values, scope = self._values(made, seen), self._declaration.name
        _require(SPAN, values)
        attributes = {name: self._attribute(name, value, seen) for name, value in made.attributes.items()}
        has_failed = values.get("status") == FAILURE or ("status" not in values and "error" in values)
        parent, ended_at = values.get("parent_span_id"), values.get("ended_at")
        span = {
            "traceId": trace_id_of(values["trace_id"], scope),
            "spanId": span_id_of(values["span_id"], scope),
            "parentSpanId": None if parent is None else span_id_of(parent, scope),
            "name": values.get("name", ""),
            "startTimeUnixNano": unix_nano(_moment(values["started_at"])),
            "endTimeUnixNano": None if ended_at is None else unix_nano(_moment(ended_at)),
            "attributes": attributes_of(attributes),
            "status": status_of(values.get("error", "")) if has_failed else None,
        }
        return line_of_spans(number, [present(span)], scope)

    def _attribute(self, name: str, value: Value, seen: Record) -> Any:
        found = self._found(name, value, seen)
        return found if found is None or isinstance(found, str | int | float) else self._as_content(found)

    def _note(self, note: str) -> None:
        self._notes[f"{self._declaration.name} {note}"] += 1

    def _rejected(self, number: int, piece: Any, error: UnusableRecordError) -> Line:
        return rejected(number, "" if self._declaration.private else piece, str(error))


def _record(kind: str, values: Record) -> Record:
    """A record of the native format; an execution that was cancelled is a cancellation, with the fields of one."""
    if kind != EXECUTION or values["status"] != CANCELLED:
        return {"type": kind, **values}
    return {"type": CANCELLATION} | {name: value for name, value in values.items() if name in FIELDS[CANCELLATION]}


def _members(value: Any) -> Record:
    return value if isinstance(value, dict) else {"_item": value}


def _is_found(value: Any) -> bool:
    """Whether an expression finds something: as in JMESPath, 0 is something, and what is empty or false is nothing."""
    return value is not None and value is not False and value not in ("", [], {})


def _value_of(name: str, value: Value, seen: Record, *, is_private: bool) -> Any:
    """The value before it gets the type of its field.

    Raises:
        UnusableRecordError: the declaration does not list it.
    """
    found = _told_value(name, value, seen, is_private=is_private)
    if found is not None or value.otherwise is None:
        return found
    return _value_of(name, value.otherwise, seen, is_private=is_private)


def _told_value(name: str, value: Value, seen: Record, *, is_private: bool) -> Any:
    found = value.constant if value.evaluate_path is None else value.evaluate_path(seen)
    if value.pattern is not None:
        found = _matched(value.pattern, found)
    if value.prefix is not None and isinstance(found, str) and found:
        found = value.prefix + found
    if value.values is not None and (found is not None or "null" in value.values):
        text = as_text(found)
        if text not in value.values:
            known = ", ".join(value.values)
            got = "" if is_private else f", not {dumped(found)[:READ_CHARACTERS]}"
            raise UnusableRecordError(f"{value.path} must be one of {known}{got}")
        found = value.values[text]
    if value.at_least is not None and found is not None:
        found = _at_least(name, value, found)
    if value.evaluate_unless is not None and _is_found(value.evaluate_unless(seen)):
        return FAILURE
    if value.evaluate_plus is not None:
        later = as_number(value.evaluate_plus(seen))
        return None if found is None or later is None else _later(found, later * (value.factor or 1), name)
    if value.factor is not None and found is not None:
        number = as_number(found)
        return None if number is None else number * value.factor
    return found


def _matched(pattern: re.Pattern[str], found: Any) -> Any:
    """What the group of a pattern finds in a text, or in each text of a list that has it."""
    if isinstance(found, list):
        return [one for one in (_matched(pattern, text) for text in found) if one is not None]
    match = pattern.search(found) if isinstance(found, str) else None
    return match and match[1]


def _at_least(name: str, value: Value, found: Any) -> str:
    number = float(found) if isinstance(found, bool) else as_number(found)
    if number is None:
        raise UnusableRecordError(f"{value.path} must be a number, so that {name} is known")
    return SUCCESS if number >= (value.at_least or 0) else FAILURE


def _later(start: Any, seconds: float, name: str) -> str:
    try:
        return (_moment(start) + timedelta(seconds=seconds)).isoformat()
    except OverflowError:
        raise UnusableRecordError(f"{name} lies beyond the last year of the calendar") from None


def _moment(value: Any) -> datetime:
    """A time, as text or as seconds or milliseconds since 1970; an error does not repeat it."""
    try:
        if isinstance(value, str):
            return as_time(value, "a time")
        return EPOCH + timedelta(milliseconds=value if abs(value) >= EPOCH_S_UNTIL else value * 1000)
    except (OverflowError, TypeError, ValueError, UnusableRecordError):
        raise UnusableRecordError("a time must be ISO 8601, or seconds or milliseconds since 1970") from None


def _require(kind: str, values: Record) -> None:
    missing = next((name for name, field in FIELDS[kind].items() if field.is_required and name not in values), None)
    if missing is not None:
        raise UnusableRecordError(f"{missing} of the {kind} is missing")


def _private_value(field: LogField, found: Any) -> Any:
    """A value that can be no text of a session.

    Raises:
        UnusableRecordError: it may be one.
    """
    if isinstance(field, log_fields.Time):
        return _moment(found).isoformat()
    if isinstance(field, log_fields.Choice) and found in field.words:
        return found
    if isinstance(field, log_fields.Flag | log_fields.Score) and isinstance(found, bool | int | float):
        return found
    raise UnusableRecordError(f"{field.name} is none of the values that it may have")


def _as_names(value: Any) -> list[str] | None:
    if not isinstance(value, list):
        return None  # no list, so nobody knows
    return [name for one in value if (name := as_name(one)) is not None]


def _itself(value: Any) -> Any:
    return value


_AS: dict[type[LogField], Callable[[Any], Any]] = {
    log_fields.Name: as_name,
    log_fields.ShortText: as_name,
    log_fields.Number: as_number,
    log_fields.Count: as_count,
    log_fields.Names: _as_names,
}
"""How a value that is found becomes one of its field; any other is judged as it is, as in the native format."""
