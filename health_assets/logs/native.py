"""The native log format: one JSON object a line, `type` selects the record (docs/log-format.md).

What belongs here: the SQL that types the fields of a line or says why it is rejected. What does not: what a field may
hold (`native_fields`) and which fields a record has (`native_line_types`), where lines come from (`files`), and which
hours' tables they go to (`pipeline.ingestion`).

DuckDB is the parser whatever the warehouse is, so these modules speak its SQL. A line is good when the rules made null
of no token that its type knows.
"""

from collections.abc import Iterable, Mapping

from health_assets.logs.formats.foreign_lines import READ_CHARACTERS, READ_TEXT_BYTES, UTF_16
from health_assets.logs.limits import IN_THE_FUTURE, Limits
from health_assets.logs.native_fields import FIRST_TIME, LAST_TIME, TEXT, Rule
from health_assets.logs.native_line_types import FIELDS, OBJECTS, RECORD_TYPES, RULES, TIMES
from health_assets.logs.redacting import cut

_STRIPPED = r"rtrim(line, E'\r\n')"
HAS_TRAILING_COMMA = r"""
CASE WHEN ends_with(line, E'}\n') AND NOT (
    ends_with(line, E',}\n') OR ends_with(line, E' }\n') OR ends_with(line, E'\t}\n')
    OR ends_with(line, E'\r}\n') OR ends_with(line, E'\f}\n')
) THEN false ELSE regexp_matches(line, ',\s*\}\s*$') END"""
"""DuckDB's parser lets a comma before the closing brace pass; JSON does not. A search costs more than a look."""


def parsed_lines(lines: str, limits: Limits) -> str:
    """SQL that reads numbered lines and gives one row for every line that is not blank.

    Args:
        lines: a relation of `files.LINES_SCHEMA`.
        limits: from when on an event is in the future.

    Returns:
        A SELECT with `file_id`, `line_number`, `record_type` (`rejected` for a line that cannot be used), `hour` (of a
        rejected line that of its own time, null where none can be read), `fingerprint` of the line and its place,
        `rejection`, `raw`, `future_at` (the time of a line that is later than now), and the columns of `RULES`.
    """
    structure = _structure(FIELDS, OBJECTS)
    unread = ", ".join(f"{_unread(field)} AS {_unread_token(field)}" for field in OBJECTS)
    parts = ", ".join(
        f"{rule.parts.format(token=_token(rule.field))} AS {_parts(name)}" for name, rule in RULES.items() if rule.parts
    )
    values = ",\n".join(
        f"{rule.value.format(token=_token(rule.field), parts=_place(name, rule))} AS {_value(name)}"
        for name, rule in RULES.items()
    )
    event_time = (
        "CASE record_type "
        + " ".join(f"WHEN '{name}' THEN {_value(kind.event_time)}" for name, kind in RECORD_TYPES.items())
        + " END"
    )
    own_time = f"coalesce(event_time, {', '.join(map(_value, TIMES))})"
    tokens = ", ".join(f'tokens."{field}"::VARCHAR AS {_token(field)}' for field in FIELDS if field not in OBJECTS)
    unusable = ", ".join(f"{_breaks_its_rule(name)} AS {_is_unusable(name)}" for name in RULES)
    columns = ",\n".join(f'{_value(name)} AS "{name}"' for name in RULES)
    # OR in place of CASE would trim the good lines too
    is_blank = r"CASE WHEN is_good OR fault IS NOT NULL THEN false ELSE trim(line, E' \t\r\n') = '' END"
    # TRY is dear where it is needed, a line at a time, so no line that is no JSON comes that far
    # fields that we do not know, nulls and repetitions are unread: only a line that has one needs a closer look
    return f"""
    WITH tokens AS (
        SELECT file_id, line_number, line, fault, 
            CASE WHEN json_valid(line) THEN TRY(json_transform(line, '{structure}')) END AS tokens
        FROM {lines}
    ), keyed AS (
        SELECT *, CASE WHEN tokens IS NOT NULL THEN json_keys(line) END AS keys FROM tokens
    ), counted AS (
        SELECT *, coalesce(len(keys) > {_read_fields()}, false) AS has_unread_fields FROM keyed
    ), taken_apart AS (
        SELECT *, {tokens}, {unread} FROM counted
    ), parted AS (
        SELECT *, {parts} FROM taken_apart
    ), typed AS (
        SELECT * EXCLUDE (keys, has_unread_fields),
            {TEXT.format(token=_token("type"))} AS record_type,
            {_repeats_a_field()} AS repeats_a_field,
            {HAS_TRAILING_COMMA} AS has_trailing_comma,
            {values}
        FROM parted
    ), compared AS (
        SELECT *, {unusable} FROM typed
    ), timed AS (
        SELECT *, {event_time} AS event_time,
            fault IS NULL AND NOT (repeats_a_field OR has_trailing_comma) AND coalesce({_is_good()}, false) AS is_valid
        FROM compared
    ), judged AS (
        SELECT *, is_valid AND event_time <= {limits.until_sql} AS is_good,
            CASE WHEN is_valid THEN event_time
                WHEN fault IS NULL AND NOT (repeats_a_field OR has_trailing_comma) THEN {own_time} END AS own_time
        FROM timed
    )
    SELECT
        file_id, line_number, hash(line, line_number) AS fingerprint,
        CASE WHEN is_good THEN record_type ELSE 'rejected' END AS record_type,
        CASE WHEN own_time BETWEEN {FIRST_TIME} AND {limits.until_sql} THEN {_hour("own_time")} END AS hour,
        CASE WHEN own_time > {limits.until_sql} AND own_time < {LAST_TIME} THEN own_time END AS future_at,
        CASE WHEN NOT is_good THEN {_rejection()} END AS rejection,
        CASE WHEN NOT is_good THEN {cut(_STRIPPED, READ_TEXT_BYTES)} END AS raw,
        {columns}
    FROM judged
    WHERE NOT {is_blank}
    """


def _structure(fields: Iterable[str], objects: Mapping[str, Iterable[str]]) -> str:
    """The structure that `json_transform` reads: the token of each field, and of the fields in an object."""
    types = {field: _structure(objects[field], {}) if field in objects else '"JSON"' for field in fields}
    return "{" + ", ".join(f'"{field}": {json_type}' for field, json_type in types.items()) + "}"


def _hour(time: str) -> str:
    """The same as `date_trunc`, which asks the calendar and costs ten times as much."""
    return f"make_timestamptz(epoch_us({time}) // 3_600_000_000 * 3_600_000_000)"


def _token(field: str) -> str:
    return _unread_token(field) if field in OBJECTS else f'"token_{field}"'


def _unread(field: str) -> str:
    """The token of an object in which nothing was found to read; it is looked for only where there is a field left."""
    return f"""
        CASE WHEN has_unread_fields AND NOT {_is_read(field)} AND list_contains(keys, '{field}')
        THEN nullif(json_extract(line, '$.{field}')::VARCHAR, 'null') END
    """


def _unread_token(field: str) -> str:
    return f'"unread_{field}"'


def _is_read(field: str) -> str:
    """Whether the field, or something in it, was found and is not null."""
    places = [f'tokens."{field}"."{name}"' for name in OBJECTS.get(field, ())] or [f'tokens."{field}"']
    return "(" + " OR ".join(f"{place} IS NOT NULL" for place in places) + ")"


def _read_fields() -> str:
    return " + ".join(f"{_is_read(field)}::INTEGER" for field in FIELDS)


def _value(name: str) -> str:
    return f'"value_{name}"'


def _parts(name: str) -> str:
    return f'"parts_{name}"'


def _place(name: str, rule: Rule) -> str:
    return f'tokens."{rule.field}"' if rule.names else _parts(name)


def _holds(name: str) -> str:
    value, rule = _value(name), RULES[name]
    if rule.bounds is None:
        return f"{value} IS NOT NULL"
    return f"({rule.bounds.format(value=value, parts=_place(name, rule), token=_token(rule.field))})"


def _breaks_its_rule(name: str) -> str:
    """Whether a value is there and cannot be used."""
    rule = RULES[name]
    holds = _holds(name) if rule.names else f"{_token(rule.field)} IS NULL OR {_holds(name)}"
    return f"NOT coalesce({holds}, false)"


def _is_unusable(name: str) -> str:
    return f'"unusable_{name}"'


def _is_good() -> str:
    branches = []
    for type_name, kind in RECORD_TYPES.items():
        conditions = [f"{_value(name)} IS NOT NULL" for name in kind.required]
        conditions += [f"NOT {_is_unusable(name)}" for name in kind.values]
        if kind.condition:
            conditions.append(f"({_over_values(kind.condition[0])})")
        branches.append(f"WHEN '{type_name}' THEN {' AND '.join(conditions)}")
    return f"CASE record_type {' '.join(branches)} ELSE false END"


def _over_values(condition: str) -> str:
    return condition.format_map({name: _value(name) for name in RULES})


def _repeats_a_field() -> str:
    """Whether a field that we know stands twice in the object: which of the two is meant nobody can tell.

    Comparing names is dear, so only objects with more fields than were read are looked into.
    """
    fields = ", ".join(f"'{field}'" for field in FIELDS)
    known = f"list_filter(keys, lambda key: key IN ({fields}))"
    return f"CASE WHEN has_unread_fields THEN len(list_distinct({known})) < len({known}) ELSE false END"


def _rejection() -> str:
    types = ", ".join(RECORD_TYPES)
    branches = [
        ("fault IS NOT NULL", "fault"),
        ("""contains(line, chr(0) || '"' || chr(0)) OR line = chr(0)""", f"'{UTF_16}'"),  # as `is_utf_16` tells it
        ("NOT json_valid(line) OR has_trailing_comma", "'not valid JSON'"),
        ("json_type(line) <> 'OBJECT'", "'not a JSON object'"),
        ("repeats_a_field", "'a field stands twice in the object'"),
        (f"{_token('type')} IS NULL", "'type is missing'"),
        (
            f"record_type IS NULL OR record_type NOT IN ({', '.join(repr(name) for name in RECORD_TYPES)})",
            f"'type must be one of {types}, not ' || {_shown('type')}",
        ),
    ]
    for type_name, kind in RECORD_TYPES.items():
        for name in kind.required:
            field = RULES[name].field
            branches.append((f"record_type = '{type_name}' AND {_token(field)} IS NULL", f"'{field} is missing'"))
        for name in kind.values:
            rule = RULES[name]
            branches.append(
                (
                    f"record_type = '{type_name}' AND {_is_unusable(name)}",
                    f"'{rule.field} must be {rule.expects}, not ' || {_shown(rule.field)}",
                )
            )
        if kind.condition:
            branches.append(
                (f"record_type = '{type_name}' AND NOT ({_over_values(kind.condition[0])})", f"'{kind.condition[1]}'")
            )
        field = RULES[kind.event_time].field
        branches.append(
            (f"record_type = '{type_name}' AND is_valid", f"'{field} {IN_THE_FUTURE}, not ' || {_shown(field)}")
        )
    cases = " ".join(f"WHEN {condition} THEN {reason}" for condition, reason in branches)
    return f"CASE {cases} ELSE error('a line was rejected for no reason: ' || line) END"


def _shown(field: str) -> str:
    token = f"json_extract(line, '$.{field}')::VARCHAR" if field in OBJECTS else _token(field)
    return f"({token})[1:{READ_CHARACTERS}]"
