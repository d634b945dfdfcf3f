"""Spans with the same trace and id: which of them are one span, and who is told of those that do not count."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from health_assets.core.hours import HOUR, HourRange
from health_assets.pipeline.span_summary import SpanSummary, summarize_spans
from health_assets_tests.support.logs_made import START
from health_assets_tests.support.projects import Project, assert_lines_are_conserved
from health_assets_tests.support.traces_made import Span, agent, chat, in_snake_case, otlp_line, span, tool

AT = START + HOUR / 2
LATER = AT + HOUR / 3600
FIRST = HourRange.of(START)
COPIED = {"span that came more than once": 1}
SHARED = "1 span id that several services use in one trace: the span of each service counts"


def read(project: Project, files: dict[str, list[str]]) -> SpanSummary:
    for name, lines in files.items():
        project.write_log(name, lines, modified=AT)
    project.ingest(FIRST)
    assert_lines_are_conserved(project)
    with project.warehouse.read() as session:
        reading = summarize_spans(session, FIRST)
    assert reading is not None
    return reading


def runs(project: Project) -> list[tuple[str, str, Any]]:
    return sorted((row["agent_id"], row["status"], row["actions"]) for row in project.rows("executions"))


# -- two spans -----------------------------------------------------------------------------------------------------------


def test_two_services_that_number_their_traces_and_spans_from_1_both_count(project: Project) -> None:
    """Each has the calls below it that its own service wrote."""
    reading = read(
        project,
        {
            "a.jsonl": [
                otlp_line(
                    agent(1, 1, AT, gen_ai__agent__name="a", error__type="ValueError"),
                    tool(1, 2, AT, 1, gen_ai__tool__name="look"),
                    service="one",
                )
            ],
            "b.jsonl": [
                otlp_line(
                    agent(1, 1, LATER, gen_ai__agent__name="b"),
                    tool(1, 2, LATER, 1, gen_ai__tool__name="find"),
                    chat(1, 3, LATER, 1),
                    service="two",
                )
            ],
        },
    )
    assert runs(project) == [("a", "failure", ["look"]), ("b", "success", ["find"])]
    assert [row["agent_id"] for row in project.rows("model_calls")] == ["b"]
    assert reading.unused == {}
    assert reading.warnings == ["2 span ids that several services use in one trace: the span of each service counts"]


def test_a_call_of_a_third_service_belongs_to_the_one_that_started_last_before_it(project: Project) -> None:
    read(
        project,
        {
            "a.jsonl": [otlp_line(agent(1, 1, AT, gen_ai__agent__name="a"), service="one")],
            "b.jsonl": [otlp_line(agent(1, 1, LATER, gen_ai__agent__name="b"), service="two")],
            "c.jsonl": [otlp_line(chat(1, 5, LATER, 1), service="three")],
        },
    )
    assert [row["agent_id"] for row in project.rows("model_calls")] == ["b"]


def test_the_outcome_of_a_tool_is_told_by_a_span_of_its_own_service(project: Project) -> None:
    def of_claude(at: datetime, number: int, name: str, parent: int | None = None, **values: Any) -> Span:
        return span(1, number, at, parent, name=f"claude_code.{name}", span__type=name, **values)

    for service, at, success in (("one", AT, False), ("two", LATER, True)):
        spans = (
            of_claude(at, 1, "interaction"),
            of_claude(at, 2, "tool", 1, tool_name="Bash"),
            of_claude(at, 3, "tool.execution", 2, success=success),
        )
        project.write_log(f"{service}.jsonl", [otlp_line(*spans, service=service)], modified=AT)
    project.ingest(FIRST)
    assert sorted((row["agent_id"], row["status"]) for row in project.rows("tool_calls")) == [
        ("one", "failure"),
        ("two", "success"),
    ]


# -- one span ------------------------------------------------------------------------------------------------------------

ONE = agent(1, 1, AT)
SAME: dict[str, list[str]] = {
    "a collector that tried again": [otlp_line(ONE), otlp_line(ONE)],
    "two exporters with different attributes": [otlp_line(ONE), otlp_line(agent(1, 1, AT, session__id="s"))],
    "both spellings": [otlp_line(ONE), in_snake_case(otlp_line(ONE))],
    "an export that loses the resource": [otlp_line(ONE), otlp_line(ONE, service=None)],
    "an export that rounds times and loses the resource": [
        otlp_line(ONE),
        otlp_line(agent(1, 1, AT + timedelta(microseconds=1)), service=None),
    ],
    "a collector that names the service anew": [otlp_line(ONE), otlp_line(ONE, service="shop-eu")],
}


@pytest.mark.parametrize("how", SAME)
@pytest.mark.parametrize("is_first", [True, False])
def test_a_span_that_is_exported_twice_counts_once(project: Project, how: str, is_first: bool) -> None:
    first, second = SAME[how] if is_first else SAME[how][::-1]
    calls = otlp_line(chat(1, 2, AT, 1))
    reading = read(project, {"a.jsonl": [calls, first], "b.jsonl": [second]})
    assert runs(project) == [("planner", "success", None)]
    assert [row["agent_id"] for row in project.rows("model_calls")] == ["planner"]
    assert (reading.unused, reading.warnings) == (COPIED, [])


def test_a_span_of_one_service_that_takes_the_place_of_another_is_told(project: Project) -> None:
    """As processes write them that were forked with one state of their random numbers."""
    other = agent(1, 1, LATER, error__type="ValueError")
    reading = read(project, {"a.jsonl": [otlp_line(ONE)], "b.jsonl": [otlp_line(other)]})
    assert runs(project) == [("planner", "failure", None)]
    assert reading.unused == COPIED
    assert reading.warnings == [
        "1 span with the trace and id of another span of the same service, which started at another time: "
        "only the one that ended last counts"
    ]


def test_three_spans_of_two_services_are_two_and_a_copy(project: Project) -> None:
    mine, theirs = agent(1, 1, AT, gen_ai__agent__name="a"), agent(1, 1, LATER, gen_ai__agent__name="b")
    lines = [otlp_line(mine), otlp_line(theirs, service="desk"), otlp_line(mine)]
    reading = read(project, {"a.jsonl": lines})
    assert [agent_id for agent_id, *_ in runs(project)] == ["a", "b"]
    assert (reading.unused, reading.warnings) == (COPIED, [SHARED])
