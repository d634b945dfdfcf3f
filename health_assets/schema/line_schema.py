"""JSON Schema of a line of the log format, made from the declarations of record types and their fields.

A schema cannot say all: `NOT_SAID` lists what the reader judges besides.
"""

from collections.abc import Callable, Mapping
from typing import Any

from health_assets.core.evaluators import SEVERITIES
from health_assets.core.hours import END_S, FIRST_S
from health_assets.core.text_limits import MOST_NAME_BYTES
from health_assets.schema import log_fields
from health_assets.schema.catalog import describe, description_of
from health_assets.schema.log_fields import SIGNALS, Choice, LogField, Number
from health_assets.schema.records import LINE_TYPES, RecordType

Schema = dict[str, Any]

NOT_SAID = (
    "Besides, the reader of logs rejects a line whose start is after its end, whose names are longer than 1 KiB in "
    "UTF-8, whose lists are longer than 1 MiB, that has a field twice, whose whole numbers are written with a point or "
    "an exponent, or whose times are in the future or on a day that no month has."
)
ISO_8601 = (
    r"^20\d\d-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])[T ]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d([.,]\d+)?)?"
    r"(Z|[+-]([01]\d|2[0-3])(:?[0-5]\d)?)?$"
)


def line_schema() -> Schema:
    """The JSON Schema of a line."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:health-assets:log-line",
        "title": "A line of the log format of Health Assets",
        "description": f"One record, as a JSON object; `type` selects it, and unknown fields are ignored. {NOT_SAID}",
        "type": "object",
        "required": ["type"],
        "properties": {"type": {"enum": [*LINE_TYPES]}},
        "oneOf": [{"$ref": f"#/$defs/{name}"} for name in LINE_TYPES],
        "$defs": {name: _record_schema(record) for name, record in LINE_TYPES.items()},
    }


def _record_schema(record: RecordType) -> Schema:
    table = str(record.table.__tablename__)
    meanings = {column: meaning for column, _, _, meaning in describe(table)}
    described = {own.name: meanings[column] for column, own in record.columns.items()}
    schema: Schema = {
        "description": description_of(table),
        "required": ["type", *(own.name for own in record.fields if own.is_required)],
        "properties": {"type": {"const": record.name}}
        | {own.name: _field_schema(own, described.get(own.name, "")) for own in record.fields},
        "examples": [record.sample],
    }
    if record.any_of:
        schema["anyOf"] = [
            {"required": [name], "properties": {name: {"not": {"type": "null"}}}} for name in record.any_of
        ]
    return schema


def _field_schema(field: LogField, meaning: str) -> Schema:
    """The schema of a field; one that may be missing may be null, too, which is the same."""
    allowed = _KINDS[type(field)](field)
    if field.is_required or not allowed:
        schema = allowed
    elif isinstance(allowed.get("type"), str):
        schema = allowed | {"type": [allowed["type"], "null"]}
    else:
        schema = {"anyOf": [allowed, {"type": "null"}]}
    return ({"description": meaning} if meaning else {}) | schema


def _choice(field: Choice) -> Schema:
    return {"enum": [*field.words]}


def _number(field: Number) -> Schema:
    return {"type": "number", "minimum": 0} | ({} if field.most is None else {"maximum": field.most})


def _time(_: LogField) -> Schema:
    seconds = {"type": "number", "minimum": FIRST_S, "exclusiveMaximum": END_S}
    milliseconds = {"type": "number", "minimum": 1000 * FIRST_S, "exclusiveMaximum": 1000 * END_S}
    return {"anyOf": [{"type": "string", "pattern": ISO_8601}, seconds, milliseconds]}


def _violations(_: LogField) -> Schema:
    item = {
        "type": "object",
        "required": ["constraint", "severity"],
        "properties": {
            "constraint": {"type": "string", "maxLength": MOST_NAME_BYTES},
            "severity": {"enum": [*SEVERITIES]},
        },
    }
    return {"type": "array", "items": item}


def _signals(_: LogField) -> Schema:
    share = {"type": ["number", "null"], "minimum": 0, "maximum": 1}
    return {"type": "object", "properties": dict.fromkeys(SIGNALS, share)}


_NAME: Schema = {"type": "string", "maxLength": MOST_NAME_BYTES}
_KINDS: Mapping[type[LogField], Callable[[Any], Schema]] = {
    log_fields.Name: lambda _: _NAME | {"minLength": 1},
    log_fields.ShortText: lambda _: _NAME,
    log_fields.FreeText: lambda _: {"type": "string"},
    log_fields.Choice: _choice,
    log_fields.Number: _number,
    log_fields.Score: lambda _: {"type": ["number", "boolean", "null"]},
    log_fields.Count: lambda _: {"type": "integer", "minimum": 0, "maximum": 2**63 - 1},
    log_fields.Flag: lambda _: {"type": "boolean"},
    log_fields.Time: _time,
    log_fields.Names: lambda _: {"type": "array", "items": _NAME},
    log_fields.Violations: _violations,
    log_fields.Signals: _signals,
    log_fields.Content: lambda _: {},
    log_fields.TaskInput: lambda _: {},
    log_fields.UserId: lambda _: {"type": ["string", "integer", "null"]},
}
