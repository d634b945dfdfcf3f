"""Fields that spans and results of evaluators in OTLP-JSON have in common, and the rules that both keep, as SQL."""

from collections.abc import Iterable

from health_assets.core.hours import END_S, FIRST_S
from health_assets.core.text_limits import MOST_NAME_BYTES
from health_assets.logs.formats.foreign_lines import READ_CHARACTERS

_FIRST_NS, _LAST_NS = FIRST_S * 10**9, END_S * 10**9
"""The times that are accepted, in nanoseconds since 1970; the last is excluded."""
_ANY_VALUE = '{"stringValue": "VARCHAR", "intValue": "VARCHAR", "doubleValue": "VARCHAR", "boolValue": "VARCHAR"}'
ATTRIBUTES = f'[{{"key": "VARCHAR", "value": {_ANY_VALUE}}}]'
"""The type of a list of attributes, as `json_transform` takes it."""


def hex_id(field: str, digits: int) -> str:
    """The id in lower case; null where it is none, or is all zeros."""
    return f"""CASE WHEN regexp_full_match({field}, '[0-9a-fA-F]{{{digits}}}') AND {field} <> '{"0" * digits}'
        THEN lower({field}) END"""


def nanoseconds(field: str) -> str:
    """The time as a number; null where it is not one of at most 19 digits."""
    return f"CASE WHEN regexp_full_match({field}, '[0-9]{{1,19}}') THEN TRY_CAST({field} AS BIGINT) END"


def time_rule(field: str, stated: str, parsed: str) -> tuple[str, str]:
    """The condition under which a time cannot be used, and the reason then.

    Args:
        field: what the time is called.
        stated: the time as it was written.
        parsed: the same by `nanoseconds`.
    """
    return (
        f"({parsed} >= {_FIRST_NS} AND {parsed} < {_LAST_NS}) IS NOT TRUE",
        f"'{field} must be whole nanoseconds since 1970 in the years 2000 to 2099, not ' || "
        f"{stated}[1:{READ_CHARACTERS}]",
    )


def name_rule(column: str, told: str) -> tuple[str, str]:
    """The condition under which a name is too long, and the reason then; `told` is what the column is called."""
    return (
        f"strlen({column}) > {MOST_NAME_BYTES}",
        f"'{told} must be at most 1 KiB long, not ' || printf('%,d', strlen({column})) || ' bytes'",
    )


def reason_of(rules: Iterable[tuple[str, str]]) -> str:
    """The reason of the first rule whose condition is met; null if none is."""
    return f"CASE {' '.join(f'WHEN {condition} THEN {reason}' for condition, reason in rules)} END"
