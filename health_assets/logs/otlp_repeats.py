"""Keys that stand twice in OTLP-JSON, in an object or a list of attributes: nobody can tell which of the two is meant.

What belongs here: SQL that finds them. What does not: what becomes of a line or span that has one (`otlp`).

All objects that may hold spans, and the spans themselves, are looked at in every line. To look at every attribute would
cost as much as to parse them all, so a line is searched for what it must hold if a key of an attribute stands twice;
only where that is found each attribute is looked at.
"""

from collections.abc import Iterable

RESOURCES = "$.resourceSpans[*]"
SCOPES = f"{RESOURCES}.scopeSpans[*]"
SPANS = f"{SCOPES}.spans[*]"
RESOURCE_ATTRIBUTES = f"{RESOURCES}.resource.attributes[*]"

SPAN_KEYS = (
    "traceId", "spanId", "parentSpanId", "name", "startTimeUnixNano", "endTimeUnixNano", "attributes", "status",
)  # fmt: skip
ATTRIBUTE_KEYS = ("key", "value")
VALUE_KEYS = ("stringValue", "intValue", "doubleValue", "boolValue")
STATUS_KEYS = ("code", "message")

_SIGNS = (
    r',[ \t\r\n]+"',  # written with spaces, so that the other signs may look otherwise
    r"\\u00[4-7]",  # a letter that is escaped, as one of a key may be
    f',"({"|".join(["key", *VALUE_KEYS])})"',  # not the first of its object
    *(f'{before},"value"' for before in (r"\}", " ", r"\t", r"\r")),  # not the second, behind its key
    r'"value"([^:]|:[^{])',
)
"""One of these is in every line in which a key of an attribute stands twice, and in few others.

An attribute that has more keys than `key` and `value`, which none has, may hide a second `value` behind them: the first
counts then.
"""


def may_repeat_in_attributes(line: str) -> str:
    """SQL for whether a line shows a sign that a key of an attribute stands twice."""
    return "(" + " OR ".join(f"regexp_matches({line}, '{sign}')" for sign in _SIGNS) + ")"


def repeats_above_spans(line: str, tokens: str, shows_sign: str) -> str:
    """SQL for whether a key stands twice in an object that holds spans, or the resource, of a valid line.

    Args:
        line: the line.
        tokens: the line as it was read.
        shows_sign: what `may_repeat_in_attributes` says of it.
    """
    names = ["resourceSpans", "resource", "scopeSpans", "attributes", "spans"]
    only = [path.replace("[*]", "[0]") for path in ("$", RESOURCES, f"{RESOURCES}.resource", SCOPES)]
    has_one = f"len({tokens}.resourceSpans) = 1 AND len({tokens}.resourceSpans[1].scopeSpans) = 1"
    of_one = _in_any(f"json_keys({line}, {only})", names)  # all of them at once, as far as there is one of each
    of_all = " OR ".join(
        [
            _in_any(f"[json_keys({line})]", names),
            *(_in_any(f"json_keys({line}, '{path}')", names) for path in (RESOURCES, f"{RESOURCES}.resource", SCOPES)),
        ]
    )
    in_attributes = f"{shows_sign} AND ({_in_attributes(line, RESOURCE_ATTRIBUTES)})"
    return f"CASE WHEN {has_one} THEN {of_one} ELSE {of_all} END OR ({in_attributes})"


def repeats_in_spans(line: str) -> str:
    """SQL for whether a key of any span of a valid line stands twice; keys of its attributes are not looked at."""
    return _in_any(f"json_keys({line}, '{SPANS}')", SPAN_KEYS)


def repeats_in_span(span: str) -> str:
    """SQL for whether a key stands twice within a span, given as JSON."""
    return f"{_in_any(f'[json_keys({span})]', SPAN_KEYS)} OR {_in_attributes(span, '$.attributes[*]')}"


def repeats_in_status(status: str) -> str:
    """SQL for whether a key stands twice in a span's status, given as JSON; most are empty."""
    return f"{status}::VARCHAR <> '{{}}' AND {_in_any(f'[json_keys({status})]', STATUS_KEYS)}"


def any_repeats(lists: str) -> str:
    """SQL for whether one of these lists, most of which are the same, has an element twice."""
    return f"len(list_filter(list_distinct({lists}), lambda one: list_unique(one) < len(one))) > 0"


def ambiguous_attribute(attributes: str, names: Iterable[str]) -> str:
    """SQL for the first of these attributes that a list has twice with different values; null where it has none.

    OpenTelemetry forbids it, but some SDKs write an attribute each time that it is set, so equal values may stand.

    Args:
        attributes: a list of structs with `key` and `value`.
        names: the keys that are of interest.
    """
    quoted = ", ".join(f"'{name}'" for name in names)
    values = f"list_transform(list_filter({attributes}, lambda one: one.key = name), lambda one: to_json(one.value))"
    return f"list_filter([{quoted}], lambda name: len(list_distinct({values})) > 1)[1]"


def told_ambiguous(attribute: str, whose: str = "") -> str:
    """SQL for the reason of a rejection for what `ambiguous_attribute` gave."""
    return f"'the attribute ' || {attribute} || '{whose} stands twice, with different values'"


def _in_attributes(text: str, path: str) -> str:
    in_pairs = _in_any(f"json_keys({text}, '{path}')", ATTRIBUTE_KEYS)
    in_values = _in_any(f"json_keys({text}, '{path}.value')", VALUE_KEYS)
    return f"{in_pairs} OR {in_values}"


def _in_any(lists: str, names: Iterable[str]) -> str:
    """Whether one of these names stands twice in one of the lists of keys, most of which are the same."""
    quoted = ", ".join(f"'{name}'" for name in names)
    known = f"list_filter(keys, lambda name: name IN ({quoted}))"
    return f"len(list_filter(list_distinct({lists}), lambda keys: len({known}) > len(list_distinct({known})))) > 0"
