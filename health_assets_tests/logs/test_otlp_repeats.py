"""A key that stands twice in an object of OTLP-JSON: the line or the span is rejected, and every span is accounted for."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from health_assets.core.hours import HOUR, HourRange
from health_assets_tests.support.logs_made import START
from health_assets_tests.support.projects import Project, assert_lines_are_conserved
from health_assets_tests.support.traces_made import agent, any_value, chat, otlp_line

AT = START + HOUR / 2
KNOWN = {
    "resourceSpans", "resource", "scopeSpans", "spans", "traceId", "spanId", "parentSpanId", "name", "attributes",
    "startTimeUnixNano", "endTimeUnixNano", "status", "code", "message", "key", "value", "stringValue", "intValue",
    "doubleValue", "boolValue",
}  # fmt: skip
TWICE = "a key stands twice in the object"


class Twice(dict):
    """An object that is written with one of its keys twice."""

    def __init__(self, members: dict[str, Any], key: str, other: Any, place: int) -> None:
        super().__init__(members)
        self.pairs = [*members.items()]
        self.pairs.insert(place, (key, other))


def written(value: Any, *, comma: str = ",", colon: str = ":", is_escaped: bool = False) -> str:
    def key_of(name: str) -> str:
        return f'"\\u{ord(name[0]):04x}{name[1:]}"' if is_escaped else json.dumps(name)

    if isinstance(value, dict):
        pairs = value.pairs if isinstance(value, Twice) else value.items()
        inside = (key_of(name) + colon + written(one, comma=comma, colon=colon, is_escaped=is_escaped)
                  for name, one in pairs)  # fmt: skip
        return "{" + comma.join(inside) + "}"
    if isinstance(value, list):
        return "[" + comma.join(written(one, comma=comma, colon=colon, is_escaped=is_escaped) for one in value) + "]"
    return json.dumps(value)


def repeated(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """(path of the object, the whole with one known key of it twice), for every object and key, before and behind."""
    if isinstance(value, dict):
        for key, own in value.items():
            if key in KNOWN:
                for place, other in ((0, own), (0, [] if isinstance(own, list) else {}), (len(value), own)):
                    yield path, Twice(value, key, other, place)
            for where, inner in repeated(own, (*path, key)) if key != "scope" else ():  # of which nothing is read
                yield where, {**value, key: inner}
    elif isinstance(value, list):
        for number, own in enumerate(value):
            for where, inner in repeated(own, (*path, number)):
                yield where, [*value[:number], inner, *value[number + 1 :]]


LINE = json.loads(otlp_line(
    agent(1, 1, AT, session__id="s", status={"code": 2, "message": "{timed out}, in \"a\": b"}),
    chat(1, 2, AT, 1, gen_ai__usage__input_tokens=5),
))  # fmt: skip
FORMS: dict[str, dict[str, Any]] = {
    "compact": {},
    "with spaces": {"comma": ", ", "colon": ": "},
    "with a tab before each comma": {"comma": "\t,", "colon": ":"},
    "escaped": {"is_escaped": True},
}


@pytest.mark.parametrize("form", FORMS)
def test_a_key_that_stands_twice_costs_its_span_or_its_line_and_nothing_is_lost(project: Project, form: str) -> None:
    cases = list(repeated(LINE))
    assert len(cases) > 100
    lines = [written(case, **FORMS[form]) for _, case in cases]
    if form == "escaped":  # the line's own beginning tells that it is OTLP-JSON
        lines = [text.replace('"\\u0072esourceSpans"', '"resourceSpans"', 1) for text in lines]
    project.write_log("a.jsonl", [*lines, written(LINE, **FORMS["compact"])])
    project.ingest(HourRange.of(START))
    kept = dict(project.query("SELECT line_number, count(*) FROM spans GROUP BY 1"))
    rejected: dict[int, list[str]] = {}
    for number, reason in project.query("SELECT line_number, reason FROM rejected_records"):
        rejected.setdefault(number, []).append(reason)
    for number, (path, _) in enumerate(cases, 1):
        place = list(path)
        in_span = "spans" in place
        told = [f"{TWICE}, in span 0.0.{place[place.index('spans') + 1]}"] if in_span else [TWICE]
        assert rejected.pop(number, None) == told, f"{place}: {lines[number - 1]}"
        assert kept.pop(number, 0) == (1 if in_span else 0), place
    assert (kept, rejected) == ({len(cases) + 1: 2}, {})
    assert_lines_are_conserved(project)


def test_in_a_document_too(project: Project) -> None:
    for number, (_, case) in enumerate(cases := [*repeated(LINE["resourceSpans"][0])][::7]):
        text = written({"resourceSpans": [case, LINE["resourceSpans"][0]]}, comma=",\n  ", colon=": ")
        project.write_bytes(f"{number}.json", text.encode())
    project.ingest(HourRange.of(START))
    found = project.query("SELECT source_file, line_number FROM rejected_records WHERE starts_with(reason, ?)", [TWICE])
    assert sorted(found) == sorted((f"{number}.json", 1) for number in range(len(cases)))
    kept = "SELECT count(*) FROM spans WHERE line_number = 2"
    assert project.query(kept) == [(2 * len(cases),)]


def test_a_key_that_nobody_reads_may_stand_twice(project: Project) -> None:
    first, second = LINE["resourceSpans"][0]["scopeSpans"][0]["spans"]
    line = json.loads(json.dumps(LINE))
    line["resourceSpans"][0]["scopeSpans"][0]["spans"] = [Twice({**first, "flags": 1}, "flags", 2, 0), second]
    project.write_log("a.jsonl", [written(line)])
    report = project.ingest(HourRange.of(START))
    assert (report.spans_read, report.rejected) == (2, 0)


def with_more(place: str, *pairs: tuple[str, Any]) -> str:
    """`LINE` with further attributes of its resource or its first span."""
    line = json.loads(json.dumps(LINE))
    [resource] = line["resourceSpans"]
    owner = resource["resource"] if place == "resource" else resource["scopeSpans"][0]["spans"][0]
    owner["attributes"] += [{"key": key, "value": any_value(value)} for key, value in pairs]
    return written(line)


def test_an_attribute_that_stands_twice_with_different_values_costs_its_span_or_those_of_its_resource(
    project: Project,
) -> None:
    """OpenTelemetry forbids it, and nobody can tell which of the two is meant."""
    project.write_log("name.jsonl", [with_more("span", ("gen_ai.agent.name", "other"))])
    project.write_log("type.jsonl", [with_more("span", ("session.id", 7))])
    project.write_log("service.jsonl", [with_more("resource", ("service.name", "other"))], modified=START)
    report = project.ingest(HourRange.of(START))
    twice = "stands twice, with different values"
    assert sorted(project.query("SELECT source_file, reason FROM rejected_records")) == [
        ("name.jsonl", f"the attribute gen_ai.agent.name {twice}, in span 0.0.0"),
        ("service.jsonl", f"the attribute service.name of the resource {twice}, in span 0.0.0"),
        ("service.jsonl", f"the attribute service.name of the resource {twice}, in span 0.0.1"),
        ("type.jsonl", f"the attribute session.id {twice}, in span 0.0.0"),
    ]
    assert (report.spans_read, report.rejected) == (2, 4)
    assert_lines_are_conserved(project)


def test_an_attribute_that_says_the_same_twice_or_that_nobody_reads_costs_nothing(project: Project) -> None:
    """Some SDKs write an attribute as often as it was set."""
    project.write_log("a.jsonl", [with_more("span", ("gen_ai.agent.name", "planner"), ("own", 1), ("own", 2))])
    project.write_log("b.jsonl", [with_more("resource", ("service.name", "shop"), ("own", 1), ("own", 2))])
    report = project.ingest(HourRange.of(START))
    assert (report.spans_read, report.rejected) == (4, 0)
    assert {row["agent_id"] for row in project.rows("spans")} == {"planner", None}


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ("1", "a span must be an object, not 1, in span 0.0.1"),
        ("null", "a span must be an object, not null, in span 0.0.1"),
        ('"x"', 'a span must be an object, not "x", in span 0.0.1'),
        ("{}", "traceId is missing, in span 0.0.1"),
        ('{"attributes": 7}', "attributes must be a list, not 7, in span 0.0.1"),
    ],
)
def test_a_bad_span_is_counted_once(project: Project, broken: str, reason: str) -> None:
    spans = LINE["resourceSpans"][0]["scopeSpans"][0]["spans"]
    text = json.dumps(LINE).replace(json.dumps(spans), f"[{json.dumps(spans[0])}, {broken}, {json.dumps(spans[1])}]")
    project.write_log("a.jsonl", [text])
    report = project.ingest(HourRange.of(START))
    [(told, raw)] = project.query("SELECT reason, raw FROM rejected_records")
    assert (told, json.loads(raw)) == (reason, json.loads(broken))
    assert (report.spans_read, report.rejected, report.lines_read) == (2, 1, 1)
    assert_lines_are_conserved(project)
