"""Record types of the native log format (docs/log-format.md), as the SQL that reads them sees them.

What belongs here: names for the values of fields, and the conditions between them, of what `schema.records` declares.
What does not: the values that a field may hold (`native_fields`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from health_assets.logs.native_fields import Rule, rule_of
from health_assets.schema.log_fields import FreeText, LogField, Time
from health_assets.schema.records import LINE_TYPES, RecordType


@dataclass(frozen=True, kw_only=True)
class LineType:
    """How lines of a record type are judged. Values are keys of `RULES`.

    Args:
        event_time: value that decides the hour.
        values: all values that this type knows, required ones first; a line's other fields are ignored.
        required: the required ones.
        columns: the value of each column of its table that holds one.
        condition: (SQL condition with `{value}` for a value, the reason when it does not hold) or None.
    """

    event_time: str
    values: Sequence[str]
    required: Sequence[str]
    columns: dict[str, str]
    condition: tuple[str, str] | None


RULES: dict[str, Rule] = {}
"""By value, its rule: fields of one name and rule are one value, whatever type of line has them."""


def _value(record: RecordType, field: LogField) -> str:
    rule = rule_of(field)
    value = field.name if RULES.get(field.name, rule) == rule else f"{record.name}_{field.name}"
    RULES[value] = rule
    return value


def _line_type(record: RecordType) -> LineType:
    columns = record.columns
    return LineType(
        event_time=_value(record, columns[record.time]),
        values=[_value(record, field) for field in record.fields],
        required=[_value(record, field) for field in record.fields if field.is_required],
        columns={column: _value(record, field) for column, field in columns.items()},
        condition=_condition(record),
    )


def _condition(record: RecordType) -> tuple[str, str] | None:
    if record.in_order:
        first, second = (_value(record, record.columns[column]) for column in record.in_order)
        return f"{{{second}}} >= {{{first}}}", f"{RULES[second].field} is before {RULES[first].field}"
    if record.any_of:
        is_there = " OR ".join(f"{{{name}}} IS NOT NULL" for name in record.any_of)
        return is_there, f"none of {', '.join(record.any_of)} is there"
    return None


def _values_of(kind: type[LogField]) -> list[str]:
    fields = [(record, field) for record in LINE_TYPES.values() for field in record.fields if isinstance(field, kind)]
    return [_value(record, field) for record, field in fields]


RECORD_TYPES = {name: _line_type(record) for name, record in LINE_TYPES.items()}

FIELDS = tuple(dict.fromkeys(["type", *(rule.field for rule in RULES.values())]))
OBJECTS = {rule.field: rule.names for rule in RULES.values() if rule.names}
TIMES = tuple(dict.fromkeys([*(kind.event_time for kind in RECORD_TYPES.values()), *_values_of(Time)]))
"""Values that are times, starting with the event times that decide the hour."""
FREE_TEXTS = tuple(dict.fromkeys(_values_of(FreeText)))
"""The values that agents say at any length; of them the beginning is kept, with the length behind."""
