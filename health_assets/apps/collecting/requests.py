"""Requests of OTLP/HTTP: a body in, lines of OTLP-JSON and the answer's body out.

What belongs here: both encodings, gzip, and what is refused. What does not: HTTP (`app`), and what is wrong with a
single span, which the reader of the lines finds and tells (`logs`).
"""

import json
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

from health_assets.apps.collecting.protobuf_json import json_of
from health_assets.core.text_limits import MAX_LINE_BYTES

MOST_BODY_BYTES = 20 << 20
"""Most bytes of a request, packed and unpacked; the Collector's own receiver takes as many."""
_GZIP = zlib.MAX_WBITS | 16
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")


class Encoding(StrEnum):
    """The encoding of a request and its answer, by its content type."""

    PROTOBUF = "application/x-protobuf"
    JSON = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """A kind of telemetry.

    Args:
        resources: JSON's name for the list of resources of a request.
        scopes: its name for the list of scopes of a resource.
        records: its name for the list of spans or log records of a scope.
        rejected: its name for the number of records that were not taken.
        request: Protobuf's message of a request.
        response: that of its answer.
    """

    resources: str
    scopes: str
    records: str
    rejected: str
    request: type[Message]
    response: type[Message]


TRACES = Signal(
    resources="resourceSpans",
    scopes="scopeSpans",
    records="spans",
    rejected="rejectedSpans",
    request=trace_service_pb2.ExportTraceServiceRequest,
    response=trace_service_pb2.ExportTraceServiceResponse,
)
LOGS = Signal(
    resources="resourceLogs",
    scopes="scopeLogs",
    records="logRecords",
    rejected="rejectedLogRecords",
    request=logs_service_pb2.ExportLogsServiceRequest,
    response=logs_service_pb2.ExportLogsServiceResponse,
)


class MalformedRequestError(Exception):
    """A body that is no request of OTLP; the message says why."""


class LargeRequestError(Exception):
    """A body that unpacks to more than is taken."""


class ConvertedRequest(NamedTuple):
    """A request as lines of a log.

    Args:
        content: whole lines, a resource each.
        rejected: number of records that are in none, since their line would be too long for the reader.
    """

    content: bytes
    rejected: int


def unpacked(body: bytes, most_bytes: int = MOST_BODY_BYTES) -> bytes:
    """The content of a body that is gzip.

    Raises:
        LargeRequestError: it is larger than is taken.
        MalformedRequestError: it is no gzip, or not all of it.
    """
    unzip = zlib.decompressobj(_GZIP)
    try:
        content = unzip.decompress(body, most_bytes + 1)
    except zlib.error as error:
        raise MalformedRequestError("the body is not valid gzip") from error
    if len(content) > most_bytes:
        raise LargeRequestError
    if not unzip.eof or unzip.unused_data:
        raise MalformedRequestError("the body is not one whole gzip stream")
    return content


def converted(
    body: bytes, encoding: Encoding, signal: Signal, most_line_bytes: int = MAX_LINE_BYTES
) -> ConvertedRequest:
    """The lines of a request, one for each resource that has records.

    Raises:
        MalformedRequestError: it is no request of this signal.
    """
    of_encoding = _json_resources if encoding is Encoding.JSON else _protobuf_resources
    lines, rejected = [], 0
    for text, records in of_encoding(body, signal):
        line = _bytes(f'{{"{signal.resources}":[{text}]}}')
        if len(line) > most_line_bytes:
            rejected += records
        elif records:
            lines += [line, b"\n"]
    return ConvertedRequest(b"".join(lines), rejected)


def answer_of(rejected: int, encoding: Encoding, signal: Signal) -> bytes:
    """The body of the answer to a request that was taken, but for some records."""
    if not rejected:
        return b"{}" if encoding is Encoding.JSON else b""
    reason = f"a resource with its {signal.records} makes a line that is longer than the reader takes"
    if encoding is Encoding.JSON:
        partial = {signal.rejected: str(rejected), "errorMessage": reason}
        return json.dumps({"partialSuccess": partial}).encode()
    answer: Any = signal.response()
    descriptor = answer.partial_success.DESCRIPTOR
    [count] = [field.name for field in descriptor.fields if field.json_name == signal.rejected]
    setattr(answer.partial_success, count, rejected)
    answer.partial_success.error_message = reason
    return bytes(answer.SerializeToString())


def _protobuf_resources(body: bytes, signal: Signal) -> Iterator[tuple[str, int]]:
    """The JSON of each resource, and the number of its records."""
    try:
        request = signal.request.FromString(body)
    except DecodeError as error:
        raise MalformedRequestError(f"the body is no {signal.request.DESCRIPTOR.name} of Protobuf") from error
    for resource in _list(request, signal.resources):
        scopes = _list(resource, signal.scopes)
        yield json_of(resource), sum(len(_list(scope, signal.records)) for scope in scopes)


def _list(message: Any, json_name: str) -> Any:
    """The list of a message by its name in JSON."""
    return getattr(message, _snake(json_name))


def _json_resources(body: bytes, signal: Signal) -> Iterable[tuple[str, int]]:
    try:
        request = json.loads(body, object_pairs_hook=_without_twins, parse_constant=_refuse_constant)
        resources = list(_objects(request, signal.resources, "the body"))
        return [(_text(one), _records(one, signal)) for one in resources]
    except (ValueError, RecursionError) as error:
        raise MalformedRequestError("the body is not valid JSON") from error


def _records(resource: dict[str, Any], signal: Signal) -> int:
    """The number of spans or log records of a resource."""
    scopes = _objects(resource, signal.scopes, signal.resources)
    return sum(len(_objects(scope, signal.records, signal.scopes)) for scope in scopes)


def _objects(owner: Any, name: str, place: str) -> list[dict[str, Any]]:
    """A list of objects, by either spelling of its name; nothing of an object without any member.

    Raises:
        MalformedRequestError: there is none.
    """
    if not isinstance(owner, dict):
        raise MalformedRequestError(f"{place} must be an object")
    found = owner.get(name, owner.get(_snake(name), None if owner else []))
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise MalformedRequestError(f"{place} must have {name}, a list of objects")
    return found


def _without_twins(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, in which no key may stand twice."""
    found = dict(members)
    if len(found) < len(members):
        raise MalformedRequestError("a key stands twice in an object of the JSON")
    return found


def _refuse_constant(constant: str) -> None:
    raise ValueError(constant)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _bytes(line: str) -> bytes:
    try:
        return line.encode()
    except UnicodeEncodeError:  # half a character, which JSON can only write as an escape
        return _HALF_CHARACTER.sub(lambda half: f"\\u{ord(half[0]):04x}", line).encode()


def _snake(name: str) -> str:
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in name)
