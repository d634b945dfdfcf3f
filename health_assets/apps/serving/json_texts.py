"""JSON of many rows at once: DuckDB's JSON functions as expressions, and what a value is in JSON.

What belongs here: how JSON is written. What does not: what it says (`documents`, `list_files`).

Whichever engine the rows come from, DuckDB writes their JSON (`warehouse.in_memory`), so it is the same text for all.
It writes 180,000 documents in two seconds; made of Python objects they would take twice as long.
"""

from collections.abc import Mapping
from typing import Any

import ibis
import ibis.expr.datatypes as dt
from ibis import ir

UNKNOWN = ibis.null()

_SECONDS, _MICROSECONDS = "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S.%fZ"


@ibis.udf.scalar.builtin(name="to_json", signature=((None,), dt.json))
def _to_json(value: Any) -> Any:
    """DuckDB's function."""


@ibis.udf.scalar.builtin(name="json_strip_nulls", signature=((dt.json,), dt.json))
def _json_strip_nulls(value: Any) -> Any:
    """DuckDB's function."""


def whole(members: Mapping[str, Any]) -> ir.Value:
    """A JSON object with all of its members, in their order; what is unknown is null."""
    return _to_json(ibis.struct(members))


def known(members: Mapping[str, Any]) -> ir.Value:
    """A JSON object without the members that are unknown, and without those of the objects within it."""
    return _json_strip_nulls(whole(members))


def number(value: ir.Value) -> ir.Value:
    """A number; one that JSON cannot write counts as unknown."""
    return ibis.ifelse(value.isnan() | value.isinf(), UNKNOWN, value) if value.type().is_floating() else value


def moment(at: ir.Value) -> ir.Value:
    """A point in time in ISO 8601, UTC; six digits of a second, or none."""
    return at.strftime(ibis.ifelse(at.microsecond() == 0, _SECONDS, _MICROSECONDS))
