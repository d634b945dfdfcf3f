"""Lines of OTLP-JSON, written of spans that another format tells.

What belongs here: how a span, its ids and its attributes are written. What does not: what attributes say
(`logs.conventions`).
"""

import re

from health_assets.logs.formats.foreign_lines import Line, Record, hex_id, line_of, present

STATUS_ERROR = 2
_TRACE_ID, _SPAN_ID = re.compile("[0-9a-f]{32}"), re.compile("[0-9a-f]{16}")


def trace_id_of(own: str, scope: str) -> str:
    """32 hexadecimal digits: the id itself, a UUID without its dashes, else a digest of the id within its scope."""
    plain = own.lower().replace("-", "")
    return plain if _TRACE_ID.fullmatch(plain) else hex_id(32, scope, own)


def span_id_of(own: str, scope: str) -> str:
    """16 hexadecimal digits: the id itself, else a digest of it within its scope."""
    return own if _SPAN_ID.fullmatch(own) else hex_id(16, scope, own)


def status_of(error: str | None) -> Record | None:
    """The status of a span that failed, with what is known of the error; None of one that did not."""
    return None if error is None else present({"code": STATUS_ERROR, "message": error or None})


def attributes_of(values: Record) -> list[Record]:
    """The attributes that have a value."""
    return [_attribute(key, value) for key, value in present(values).items()]


def line_of_spans(number: int, spans: list[Record], tool: str) -> Line:
    """A line with these spans, which an export of a tool tells."""
    resource = {"attributes": attributes_of({"telemetry.source": f"{tool} export"})}
    scope = {"scope": {"name": tool}, "spans": spans}
    return line_of(number, {"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]})


def _attribute(key: str, value: str | int | float) -> Record:
    if isinstance(value, bool):
        return {"key": key, "value": {"boolValue": value}}
    if isinstance(value, str):
        return {"key": key, "value": {"stringValue": value}}
    if isinstance(value, int):
        return {"key": key, "value": {"intValue": str(value)}}
    return {"key": key, "value": {"doubleValue": value}}
