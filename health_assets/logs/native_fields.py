"""Kinds of fields of the native log format: the SQL that types their values, or says that they cannot be used.

What belongs here: one rule for each kind that `schema.log_fields` declares. What does not: which record type has which
fields (`native_line_types`), and judging a line by its fields (`native`).

Every field first becomes its JSON token (`"text"`, `1.5`, `[...]`), which still tells a number from a number written as
text. A rule turns a token into a typed value, or into null where the token breaks the rule.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from health_assets.core.text_limits import MOST_NAME_BYTES
from health_assets.logs.digests import digest, task_digest, user
from health_assets.logs.limits import MOST_LIST_BYTES, NAME, NAME_OR_NOTHING, is_name, is_short
from health_assets.schema import log_fields
from health_assets.schema.log_fields import SIGNALS, Choice, Content, LogField, Number

FIRST_TIME, LAST_TIME = "TIMESTAMPTZ '2000-01-01 00:00:00+00'", "TIMESTAMPTZ '2100-01-01 00:00:00+00'"
LEAST_EPOCH_MILLISECONDS = 1e11  # as seconds that would be the year 5138
ISO_8601 = (
    r'"\d{{4}}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d([.,]\d+)?)?(Z|[+-]([01]\d|2[0-3])(:?[0-5]\d)?)?"'  # braces for str.format
)

BETWEEN_QUOTES = "substring({token}, 2, length({token}) - 2)"
"""The token of a text holds this when nothing in it is escaped; faster than a slice."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """The rule by which one field becomes one typed column.

    Args:
        field: name of the field in the JSON object.
        value: SQL for the typed value, with `{token}` for the field's token; null where the token breaks the rule.
        expects: what the field must be, for the reason of a rejection.
        bounds: SQL condition on `{value}` that must hold too, or None; it may look at `{token}` and `{parts}`.
        parts: SQL that takes the `{token}` of a list apart, once; `value` refers to it as `{parts}`.
        names: fields of an object whose tokens are read with all others; `value` and `bounds` refer to it as `{parts}`,
            and `{token}` is there only when none of them is.
    """

    field: str
    value: str
    expects: str
    bounds: str | None = None
    parts: str | None = None
    names: tuple[str, ...] = ()


_UNQUOTED = f"CASE WHEN contains({{token}}, '\\') THEN {{token}}::JSON->>'$' ELSE {BETWEEN_QUOTES} END"
TEXT = f"""CASE WHEN starts_with({{token}}, '"') THEN {_UNQUOTED} END"""
"""The text of a token; null where it is that of something else."""


def _text(field: LogField) -> Rule:
    """A text of any length; it is cut when its secrets are replaced (`redacting`)."""
    return Rule(field=field.name, value=TEXT, expects="text")


def _short(field: LogField) -> Rule:
    """A rule for a text as short as a name, which may be empty."""
    return Rule(field=field.name, value=TEXT, expects=NAME_OR_NOTHING, bounds=is_short("{value}"))


def _name(field: LogField) -> Rule:
    return Rule(field=field.name, value=TEXT, expects=NAME, bounds=is_name("{value}"))


def _choice(field: Choice) -> Rule:
    branches = " ".join(f"""WHEN '"{choice}"' THEN '{choice}'""" for choice in field.words)
    return Rule(field=field.name, value=f"CASE {{token}} {branches} END", expects=" or ".join(field.words))


def _number(field: Number) -> Rule:
    value = "TRY_CAST({token} AS DOUBLE)"
    if field.most is None:
        expects, bounds = "a number from 0 on", "{value} >= 0 AND isfinite({value})"
    else:
        expects, bounds = f"a number from 0 to {field.most:g}", f"{{value}} BETWEEN 0 AND {field.most:g}"
    return Rule(field=field.name, value=value, expects=expects, bounds=bounds)


def _score(field: LogField) -> Rule:
    return Rule(
        field=field.name,
        value="CASE {token} WHEN 'true' THEN 1.0 WHEN 'false' THEN 0.0 ELSE TRY_CAST({token} AS DOUBLE) END",
        expects="a number, true or false",
        bounds="isfinite({value})",
    )


def _count(field: LogField) -> Rule:
    value = "CASE WHEN regexp_full_match({token}, '[0-9]+') THEN TRY_CAST({token} AS BIGINT) END"
    return Rule(field=field.name, value=value, expects="a whole number from 0 to 2^63 - 1")


def _flag(field: LogField) -> Rule:
    return Rule(
        field=field.name,
        value="CASE {token} WHEN 'true' THEN true WHEN 'false' THEN false END",
        expects="true or false",
    )


def _time(field: LogField) -> Rule:
    """ISO 8601 as text, or epoch seconds or milliseconds as a number.

    DuckDB's cast takes more than ISO 8601, and matching all of it would cost as much as the cast; so the common form,
    ending in Z, is looked at for its shape only, and any other in full. The cast of text costs less than that of JSON,
    but would take the name of a time zone after a space.
    """
    number = "TRY_CAST({token} AS DOUBLE)"
    microseconds = f"round({number} * CASE WHEN abs({number}) >= {LEAST_EPOCH_MILLISECONDS} THEN 1e3 ELSE 1e6 END)"
    is_common = """
        {token} LIKE '"____-__-__T__:__:__%Z"' AND NOT ends_with({token}, '.Z"') AND NOT contains({token}, ' ')
    """
    common_cast = f"TRY_CAST({BETWEEN_QUOTES} AS TIMESTAMPTZ)"
    cast = "TRY_CAST({token}::JSON AS TIMESTAMPTZ)"
    cast_with_comma = "TRY_CAST(replace({token}, ',', '.')::JSON AS TIMESTAMPTZ)"
    value = (
        f"CASE WHEN {is_common} THEN coalesce({common_cast}, {cast_with_comma}) "
        f"WHEN regexp_full_match({{token}}, '{ISO_8601}') THEN coalesce({cast}, {cast_with_comma}) "
        f"WHEN {microseconds} BETWEEN 0 AND 5e15 THEN make_timestamp({microseconds}::BIGINT)::TIMESTAMPTZ END"
    )
    bounds = f"{{value}} >= {FIRST_TIME} AND {{value}} < {LAST_TIME}"
    return Rule(
        field=field.name,
        value=value,
        expects="ISO 8601 or epoch seconds or milliseconds, in the years 2000 to 2099",
        bounds=bounds,
    )


def _names(field: LogField) -> Rule:
    texts = """list_filter({parts}, lambda item: starts_with(item::VARCHAR, '"'))"""
    is_good = f"starts_with({{token}}, '[') AND len({texts}) = len({{parts}})"
    value = f"""CASE WHEN {is_good} THEN json_transform({{token}}, '["VARCHAR"]') END"""
    # no name is longer than the list; list_filter costs more than that
    too_long = f"list_filter({{value}}, lambda item: strlen(item) > {MOST_NAME_BYTES})"
    bounds = (
        f"{{value}} IS NOT NULL AND (strlen({{token}}) <= {MOST_NAME_BYTES} "
        f"OR strlen({{token}}) <= {MOST_LIST_BYTES} AND len({too_long}) = 0)"
    )
    return Rule(
        field=field.name,
        value=value,
        expects="a list of names of at most 1 KiB, 1 MiB in all",
        bounds=bounds,
        parts="""json_transform({token}, '["JSON"]')""",
    )


def _violations(field: LogField) -> Rule:
    """Constraint and severity of each, in their order; what else stands in one, of any length, is not kept."""
    is_named = """starts_with(item."constraint"::VARCHAR, '"')"""
    is_short_name = f"""strlen(item."constraint"->>'$') <= {MOST_NAME_BYTES}"""
    is_graded = """item.severity::VARCHAR IN ('"low"', '"medium"', '"high"')"""
    good = f"list_filter({{parts}}, lambda item: {is_named} AND {is_graded} AND {is_short_name})"
    is_good = f"starts_with({{token}}, '[') AND len({good}) = len({{parts}})"
    return Rule(
        field=field.name,
        value=f"CASE WHEN {is_good} THEN to_json({{parts}}) END",
        expects="a list of {constraint of at most 1 KiB, severity low, medium or high}, 1 MiB in all",
        bounds=f"{{value}} IS NOT NULL AND strlen({{value}}::VARCHAR) <= {MOST_LIST_BYTES}",
        parts="""json_transform({token}, '[{{"constraint": "JSON", "severity": "JSON"}}]')""",
    )


def _signals(field: LogField) -> Rule:
    """The four signals as a struct, null where one is absent."""
    values = ", ".join(f"{signal} := TRY_CAST({{parts}}.{signal}::VARCHAR AS DOUBLE)" for signal in SIGNALS)
    are_good = " AND ".join(
        f"coalesce({{value}}.{signal} BETWEEN 0 AND 1, {{parts}}.{signal} IS NULL)" for signal in SIGNALS
    )
    return Rule(
        field=field.name,
        value=f"CASE WHEN {{token}} IS NULL OR starts_with({{token}}, '{{{{') THEN struct_pack({values}) END",
        expects="an object of signals from 0 to 1",
        bounds=f"{{value}} IS NOT NULL AND {are_good}",
        names=SIGNALS,
    )


def _content(field: Content) -> Rule:
    """Whatever is there is good; the digest alone is kept, and is null where nobody asks for rows."""
    return _digested(field, digest("$token", masks_ids=field.masks_ids), "{token}")


def _task_input(field: log_fields.TaskInput) -> Rule:
    """Likewise; a text is taken as it is written in no JSON."""
    return _digested(field, task_digest("$token"), f"coalesce({TEXT}, {{token}})")


def _user_id(field: log_fields.UserId) -> Rule:
    """Whatever is neither a text nor a whole number is nobody's id, and is left out."""
    number = "CASE WHEN regexp_full_match({token}, '[0-9]+') THEN {token} END"
    return _digested(field, user("$token"), f"coalesce({TEXT}, {number})")


def _digested(field: LogField, value: str, content: str) -> Rule:
    """The rule for a content, of which the digest is given with `$token` for the SQL of the content."""
    for brace in "{}":  # of the patterns, for str.format
        value = value.replace(brace, 2 * brace)
    return Rule(field=field.name, value=value.replace("$token", content), expects="any value", bounds="true")


_RULES: dict[type[LogField], Callable[[Any], Rule]] = {
    log_fields.Name: _name,
    log_fields.ShortText: _short,
    log_fields.FreeText: _text,
    log_fields.Choice: _choice,
    log_fields.Number: _number,
    log_fields.Score: _score,
    log_fields.Count: _count,
    log_fields.Flag: _flag,
    log_fields.Time: _time,
    log_fields.Names: _names,
    log_fields.Violations: _violations,
    log_fields.Signals: _signals,
    log_fields.Content: _content,
    log_fields.TaskInput: _task_input,
    log_fields.UserId: _user_id,
}


def rule_of(field: LogField) -> Rule:
    """The rule for a declared field, which has its name.

    Raises:
        KeyError: there is no rule for this kind of field; add one to `_RULES`.
    """
    return _RULES[type(field)](field)
