"""Fields that spans and results of evaluators in OTLP-JSON have in common, as SQL."""

from health_assets.core.hours import END_S, FIRST_S

FIRST_NS, LAST_NS = FIRST_S * 10**9, END_S * 10**9
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
