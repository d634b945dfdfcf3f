"""The native log format: one JSON object a line, `type` selects the record (contract, section 2).

What belongs here: which fields each record type has, what values they may hold, and the SQL that types them or says
why not. What does not: where lines come from (`files`) and which hours' tables they go to (`pipeline.ingestion`).

DuckDB is the parser whatever the warehouse is, so this module speaks its SQL. Every field first becomes its JSON token
(`"text"`, `1.5`, `[...]`), which still tells a number from a number written as text. Each rule turns a token into a
typed value, or into null where the token breaks the rule; a line is good when no token that its type knows became null.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from health_assets.logs.formats.foreign_lines import READ_CHARACTERS, READ_TEXT_BYTES, UTF_16
from health_assets.logs.limits import (
    IN_THE_FUTURE,
    MOST_LIST_BYTES,
    MOST_NAME_BYTES,
    NAME,
    NAME_OR_NOTHING,
    Limits,
    is_name,
    is_short,
)
from health_assets.logs.redacting import cut

SIGNALS = ("confidence", "loop_detection", "tool_correctness", "coherence")
LEAST_EPOCH_MILLISECONDS = 1e11  # as seconds that would be the year 5138
ISO_8601 = (
    r'"\d{{4}}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d([.,]\d+)?)?(Z|[+-]([01]\d|2[0-3])(:?[0-5]\d)?)?"'  # braces for str.format
)

BETWEEN_QUOTES = "substring({token}, 2, length({token}) - 2)"
"""What the token of a text holds when nothing in it is escaped; faster than a slice."""

_STRIPPED = r"rtrim(line, E'\r\n')"
HAS_TRAILING_COMMA = r"""
CASE WHEN ends_with(line, E'}\n') AND NOT (
    ends_with(line, E',}\n') OR ends_with(line, E' }\n') OR ends_with(line, E'\t}\n')
    OR ends_with(line, E'\r}\n') OR ends_with(line, E'\f}\n')
) THEN false ELSE regexp_matches(line, ',\s*\}\s*$') END"""
"""DuckDB's parser lets a comma before the closing brace pass; JSON does not. A search costs more than a look."""


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


UNQUOTED = f"CASE WHEN contains({{token}}, '\\') THEN {{token}}::JSON->>'$' ELSE {BETWEEN_QUOTES} END"


def _text(field: str) -> Rule:
    """A text of any length; it is cut when its secrets are replaced (`redacting`)."""
    return Rule(field=field, value=_short(field).value, expects="text")


def _short(field: str) -> Rule:
    """A rule for a text as short as a name, which may be empty."""
    value = f"""CASE WHEN starts_with({{token}}, '"') THEN {UNQUOTED} END"""
    return Rule(field=field, value=value, expects=NAME_OR_NOTHING, bounds=is_short("{value}"))


def _name(field: str) -> Rule:
    return Rule(field=field, value=_short(field).value, expects=NAME, bounds=is_name("{value}"))


def _choice(field: str, *choices: str) -> Rule:
    branches = " ".join(f"""WHEN '"{choice}"' THEN '{choice}'""" for choice in choices)
    return Rule(field=field, value=f"CASE {{token}} {branches} END", expects=" or ".join(choices))


def _number(field: str, low: float = 0, high: float | None = None) -> Rule:
    if high is None:
        return Rule(
            field=field,
            value="TRY_CAST({token} AS DOUBLE)",
            expects=f"a number from {low:g} on",
            bounds=f"{{value}} >= {low} AND isfinite({{value}})",
        )
    return Rule(
        field=field,
        value="TRY_CAST({token} AS DOUBLE)",
        expects=f"a number from {low:g} to {high:g}",
        bounds=f"{{value}} BETWEEN {low} AND {high}",
    )


def _share(field: str) -> Rule:
    return _number(field, 0, 1)


def _count(field: str) -> Rule:
    value = "CASE WHEN regexp_full_match({token}, '[0-9]+') THEN TRY_CAST({token} AS BIGINT) END"
    return Rule(field=field, value=value, expects="a whole number from 0 to 2^63 - 1")


def _flag(field: str) -> Rule:
    return Rule(
        field=field, value="CASE {token} WHEN 'true' THEN true WHEN 'false' THEN false END", expects="true or false"
    )


def _time(field: str) -> Rule:
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
    bounds = "{value} >= TIMESTAMPTZ '2000-01-01 00:00:00+00' AND {value} < TIMESTAMPTZ '2100-01-01 00:00:00+00'"
    return Rule(
        field=field,
        value=value,
        expects="ISO 8601 or epoch seconds or milliseconds, in the years 2000 to 2099",
        bounds=bounds,
    )


def _names(field: str) -> Rule:
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
        field=field,
        value=value,
        expects="a list of names of at most 1 KiB, 1 MiB in all",
        bounds=bounds,
        parts="""json_transform({token}, '["JSON"]')""",
    )


def _violations(field: str) -> Rule:
    """Constraint and severity of each, in their order; what else stands in one, of any length, is not kept."""
    is_named = """starts_with(item."constraint"::VARCHAR, '"')"""
    is_short_name = f"""strlen(item."constraint"->>'$') <= {MOST_NAME_BYTES}"""
    is_graded = """item.severity::VARCHAR IN ('"low"', '"medium"', '"high"')"""
    good = f"list_filter({{parts}}, lambda item: {is_named} AND {is_graded} AND {is_short_name})"
    is_good = f"starts_with({{token}}, '[') AND len({good}) = len({{parts}})"
    return Rule(
        field=field,
        value=f"CASE WHEN {is_good} THEN to_json({{parts}}) END",
        expects="a list of {constraint of at most 1 KiB, severity low, medium or high}, 1 MiB in all",
        bounds=f"{{value}} IS NOT NULL AND strlen({{value}}::VARCHAR) <= {MOST_LIST_BYTES}",
        parts="""json_transform({token}, '[{{"constraint": "JSON", "severity": "JSON"}}]')""",
    )


def _signals(field: str) -> Rule:
    """The four signals as a struct, null where one is absent."""
    values = ", ".join(f"{signal} := TRY_CAST({{parts}}.{signal}::VARCHAR AS DOUBLE)" for signal in SIGNALS)
    are_good = " AND ".join(
        f"coalesce({{value}}.{signal} BETWEEN 0 AND 1, {{parts}}.{signal} IS NULL)" for signal in SIGNALS
    )
    return Rule(
        field=field,
        value=f"CASE WHEN {{token}} IS NULL OR starts_with({{token}}, '{{{{') THEN struct_pack({values}) END",
        expects="an object of signals from 0 to 1",
        bounds=f"{{value}} IS NOT NULL AND {are_good}",
        names=SIGNALS,
    )


RULES: dict[str, Rule] = {
    "execution_id": _name("execution_id"),
    "trigger_id": _name("trigger_id"),
    "call_id": _name("call_id"),
    "agent_id": _name("agent_id"),
    "session_id": _name("session_id"),
    "task_id": _name("task_id"),
    "model": _name("model"),
    "tool": _name("tool"),
    "agent_version": _short("agent_version"),
    "platform": _short("platform"),
    "error": _text("error"),
    "reason": _text("reason"),
    "detail": _text("detail"),
    "judged_by": _short("judged_by"),
    "judge": _short("judge"),
    "started_at": _time("started_at"),
    "ended_at": _time("ended_at"),
    "fired_at": _time("fired_at"),
    "at": _time("at"),
    "status": _choice("status", "success", "failure"),
    "trigger_status": _choice("status", "fired", "failed"),
    "condition": _choice("condition", "baseline", "fault", "structural", "prompt"),
    "kind": _choice("kind", "restart", "model_change", "capability_update"),
    "sla_s": _number("sla_s"),
    "sla_breached": _flag("sla_breached"),
    "is_timed": _flag("is_timed"),
    "cost_usd": _number("cost_usd"),
    "api_calls": _count("api_calls"),
    "error_count": _count("error_count"),
    "input_tokens": _count("input_tokens"),
    "output_tokens": _count("output_tokens"),
    "call_latency_s": _number("call_latency_s"),
    "latency_ms": _number("latency_ms"),
    "actions": _names("actions"),
    "signals": _signals("signals"),
    "violations": _violations("violations"),
    **{signal: _share(signal) for signal in SIGNALS},
}


@dataclass(frozen=True, kw_only=True)
class RecordType:
    """One kind of record.

    Args:
        event_time: column that decides the hour.
        required: columns that must be there.
        optional: columns that may be there.
        condition: (SQL condition with `{column}` for a column's value, the reason when it does not hold) or None.
    """

    event_time: str
    required: tuple[str, ...]
    optional: tuple[str, ...]
    condition: tuple[str, str] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that this type knows; a line's other fields are ignored."""
        return self.required + self.optional


RECORD_TYPES: dict[str, RecordType] = {
    "execution": RecordType(
        event_time="ended_at",
        required=("execution_id", "agent_id", "started_at", "ended_at", "status"),
        optional=(
            "session_id",
            "task_id",
            "condition",
            "trigger_id",
            "model",
            "error",
            "sla_s",
            "sla_breached",
            "confidence",
            "cost_usd",
            "api_calls",
            "error_count",
            "call_latency_s",
            "actions",
            "signals",
            "violations",
            "platform",
            "agent_version",
            "input_tokens",
            "output_tokens",
            "is_timed",
        ),
        condition=("{ended_at} >= {started_at}", "ended_at is before started_at"),
    ),
    "trigger": RecordType(
        event_time="fired_at", required=("trigger_id", "agent_id", "fired_at", "trigger_status"), optional=("reason",)
    ),
    "model_call": RecordType(
        event_time="ended_at",
        required=("call_id", "model", "ended_at", "status"),
        optional=("agent_id", "execution_id", "latency_ms", "error", "input_tokens", "output_tokens", "cost_usd"),
    ),
    "tool_call": RecordType(
        event_time="ended_at",
        required=("call_id", "tool", "ended_at", "status"),
        optional=("agent_id", "execution_id", "latency_ms", "error"),
    ),
    "signals": RecordType(
        event_time="at",
        required=("execution_id", "at"),
        optional=("session_id", "agent_id", *SIGNALS),
        condition=(
            f"coalesce({', '.join(f'{{{name}}}' for name in SIGNALS)}) IS NOT NULL",
            "none of the four signals is there",
        ),
    ),
    "judgement": RecordType(
        event_time="at", required=("execution_id", "at", "violations"), optional=("agent_id", "judged_by", "judge")
    ),
    "agent_update": RecordType(event_time="at", required=("agent_id", "at", "kind"), optional=("detail",)),
}

FIELDS = tuple(dict.fromkeys(["type", *(rule.field for rule in RULES.values())]))
OBJECTS = {rule.field: rule.names for rule in RULES.values() if rule.names}


def parsed_lines(lines: str, limits: Limits) -> str:
    """SQL that reads numbered lines and gives one row for every line that is not blank.

    Args:
        lines: a relation of `files.LINES_SCHEMA`.
        limits: from when on an event is in the future.

    Returns:
        A SELECT with `file_id`, `line_number`, `record_type` (`rejected` for a line that cannot be used), `hour` (null
        when rejected), `fingerprint` of the line and its place, `rejection`, `raw`, `future_at` (the time of an event
        that is rejected for nothing but that), and the columns of `RULES`.
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
    ), parted AS (
        SELECT *, {parts}, {unread} FROM counted
    ), typed AS (
        SELECT file_id, line_number, line, fault, tokens, {", ".join(map(_unread_token, OBJECTS))},
            {_text("type").value.format(token=_token("type"))} AS record_type,
            {_repeats_a_field()} AS repeats_a_field,
            {HAS_TRAILING_COMMA} AS has_trailing_comma,
            {values}
        FROM parted
    ), timed AS (
        SELECT *, {event_time} AS event_time,
            fault IS NULL AND NOT (repeats_a_field OR has_trailing_comma) AND coalesce({_is_good()}, false) AS is_valid
        FROM typed
    ), judged AS (
        SELECT *, is_valid AND event_time <= {limits.until_sql} AS is_good FROM timed
    )
    SELECT
        file_id, line_number, hash(line, line_number) AS fingerprint,
        CASE WHEN is_good THEN record_type ELSE 'rejected' END AS record_type,
        CASE WHEN is_good THEN {_hour("event_time")} END AS hour,
        CASE WHEN is_valid AND NOT is_good THEN event_time END AS future_at,
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
    return _unread_token(field) if field in OBJECTS else f'(tokens."{field}"::VARCHAR)'


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


def _holds_or_is_absent(name: str) -> str:
    rule = RULES[name]
    return _holds(name) if rule.names else f"({_token(rule.field)} IS NULL OR {_holds(name)})"


def _is_good() -> str:
    branches = []
    for type_name, kind in RECORD_TYPES.items():
        conditions = [_holds(name) for name in kind.required]
        conditions += [_holds_or_is_absent(name) for name in kind.optional]
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
        for name in kind.columns:
            rule = RULES[name]
            branches.append(
                (
                    f"record_type = '{type_name}' AND NOT coalesce({_holds_or_is_absent(name)}, false)",
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
