"""Messages of OTLP in Protobuf's JSON as OTLP has it: ids are hexadecimal, enums are numbers (OTLP 1.10, JSON).

What belongs here: writing any message, whatever fields later versions add. What does not: requests (`requests`).
Attributes are most of a message, and written by a function of their own; Protobuf's own writer takes four times as
long, and writes ids as base64.
"""

import base64
import math
from collections.abc import Callable, Iterable
from json.encoder import encode_basestring
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

HEXADECIMAL = frozenset({"trace_id", "span_id", "parent_span_id"})
_WIDE = frozenset({
    FieldDescriptor.TYPE_INT64, FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_SINT64,
    FieldDescriptor.TYPE_FIXED64, FieldDescriptor.TYPE_SFIXED64,
})  # fmt: skip
"""Integers that JSON's numbers do not hold; they are written as texts."""

_Writer = Callable[[Any], str]
_writers: dict[FieldDescriptor, _Writer] = {}


def json_of(message: Message) -> str:
    """A message as one line of JSON."""
    written = []
    for field, value in message.ListFields():
        write = _writers.get(field)
        if write is None:
            write = _writers[field] = _writer_of(field)
        written.append(write(value))
    return "{" + ",".join(written) + "}"


def _writer_of(field: FieldDescriptor) -> _Writer:
    """What writes a field and its name."""
    name, write = f'"{field.json_name}":', _value_writer(field)
    if field.message_type is not None and field.message_type.name == "KeyValue":
        return lambda values: name + _key_values(values)
    if field.is_repeated:
        return lambda values: f"{name}[{','.join(map(write, values))}]"
    return lambda value: name + write(value)


def _value_writer(field: FieldDescriptor) -> _Writer:
    if field.message_type is not None:
        return _any_value if field.message_type.name == "AnyValue" else json_of
    if field.type == FieldDescriptor.TYPE_STRING:
        return encode_basestring
    if field.type == FieldDescriptor.TYPE_BYTES:
        return _hexadecimal if field.name in HEXADECIMAL else _base64
    if field.type in (FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT):
        return _number
    if field.type == FieldDescriptor.TYPE_BOOL:
        return lambda value: "true" if value else "false"
    return (lambda value: f'"{value}"') if field.type in _WIDE else str


def _key_values(values: Iterable[Any]) -> str:
    written = [f'{{"key":{encode_basestring(one.key)},"value":{_any_value(one.value)}}}' for one in values]
    return "[" + ",".join(written) + "]"


def _any_value(value: Any) -> str:
    if text := value.string_value:  # most values; to ask which one is set takes longer
        return f'{{"stringValue":{encode_basestring(text)}}}'
    if value.WhichOneof("value") == "int_value":
        return f'{{"intValue":"{value.int_value}"}}'
    return json_of(value)


def _hexadecimal(value: bytes) -> str:
    return f'"{value.hex()}"'


def _base64(value: bytes) -> str:
    return f'"{base64.b64encode(value).decode()}"'


def _number(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'
