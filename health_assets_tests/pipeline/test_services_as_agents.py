"""Services that the targets name: their outermost spans are executions where no span tells of an agent."""

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from health_assets.apps.serving.pages.data_page import WantedData, data_page
from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HOUR, HourRange
from health_assets.core.targets import load_targets
from health_assets.pipeline.fingerprints import RunFingerprint
from health_assets.pipeline.span_summary import summarize_spans
from health_assets.schema.catalog import FROM_SPANS
from health_assets_tests.logs.test_opentelemetry import AT, FIRST, SECOND, id_of
from health_assets_tests.support.logs_made import START
from health_assets_tests.support.pages_made import world_of
from health_assets_tests.support.projects import FLEET, Project, assert_same_tables, hours_from
from health_assets_tests.support.session_pages_made import html_of, look_at
from health_assets_tests.support.traces_made import Span, agent, chat, otlp_line, span, tool

SHOP = {"services": [{"match": "shop"}]}
TOKENS: dict[str, Any] = {"gen_ai__usage__input_tokens": 100, "gen_ai__usage__output_tokens": 10}
FAILED: dict[str, Any] = {"status": {"code": 2, "message": "no answer"}}


@pytest.fixture
def shop(tmp_path: Path) -> Project:
    return Project(tmp_path, targets=SHOP)


def request(trace: int, at: datetime = AT, **values: Any) -> list[Span]:
    """A web request with two model calls and a tool call below it, which no agent's span tells of."""
    return [
        span(trace, 1, at + 3 * SECOND, runtime_s=10.0, name="POST /ask", **values),
        span(trace, 2, at + 2 * SECOND, 1, name="handler"),
        chat(trace, 3, at, 2, **TOKENS),
        chat(trace, 4, at + SECOND, 2, **TOKENS),
        tool(trace, 5, at + SECOND, 1),
    ]


def executions(project: Project) -> list[tuple]:
    return project.query("SELECT execution_id, agent_id, status FROM executions ORDER BY execution_id")


def of_calls(project: Project) -> list[tuple]:
    return project.query(
        "SELECT call_id, execution_id, agent_id FROM model_calls UNION ALL "
        "SELECT call_id, execution_id, agent_id FROM tool_calls ORDER BY call_id"
    )


def test_the_root_of_a_service_is_an_execution_with_the_calls_below_it(shop: Project) -> None:
    shop.write_log("a.jsonl", [otlp_line(*request(1, session__id="s1")), otlp_line(*request(2, **FAILED))])
    shop.ingest(FIRST)
    assert executions(shop) == [(id_of(1, 1), "shop", "success"), (id_of(2, 1), "shop", "failure")]
    assert {(execution, agent_id) for _, execution, agent_id in of_calls(shop)} == {
        (id_of(1, 1), "shop"),
        (id_of(2, 1), "shop"),
    }
    columns = "runtime_s, session_id, agent_version, model, input_tokens, output_tokens, actions, error"
    assert shop.query(f"SELECT {columns} FROM executions ORDER BY execution_id") == [
        (10.0, "s1", "shop-1", "m1", 200, 20, ["search"], None),
        (10.0, None, "shop-1", "m1", 200, 20, ["search"], "no answer"),
    ]
    with shop.warehouse.read() as session:
        reading = summarize_spans(session, FIRST)
    assert reading is not None and reading.warnings == []
    assert str(reading) == "10 spans became 2 executions, 4 model calls and 2 tool calls"
    assert sum(reading.unused.values()) == 2  # the handlers


def test_without_the_pattern_the_calls_are_nobodys(tmp_path: Path) -> None:
    project = Project(tmp_path, targets={"services": [{"match": "shop-.+"}]})
    project.write_log("a.jsonl", [otlp_line(*request(1))])
    project.ingest(FIRST)
    assert executions(project) == []
    assert {execution for _, execution, _ in of_calls(project)} == {None}


def test_a_trace_with_an_agents_span_stays_as_it_is(shop: Project, tmp_path: Path) -> None:
    spans = [*request(1), agent(1, 6, AT, 2), chat(1, 7, AT, 6)]
    plain = Project(tmp_path / "plain")
    for project in (shop, plain):
        project.write_log("a.jsonl", [otlp_line(*spans)])
        project.ingest(FIRST)
    assert executions(shop) == [(id_of(1, 6), "planner", "success")]
    assert_same_tables(shop.tables(names=FROM_SPANS), plain.tables(names=FROM_SPANS))


def test_a_request_without_any_call_is_no_execution(shop: Project) -> None:
    shop.write_log("a.jsonl", [otlp_line(span(1, 1, AT), span(1, 2, AT, 1))])
    shop.ingest(FIRST)
    assert executions(shop) == []


def test_a_model_call_that_is_its_own_root_is_an_execution_of_one_call(shop: Project) -> None:
    shop.write_log("a.jsonl", [otlp_line(chat(1, 1, AT, **TOKENS))])
    shop.ingest(FIRST)
    assert executions(shop) == [(id_of(1, 1), "shop", "success")]
    assert of_calls(shop) == [(id_of(1, 1), id_of(1, 1), "shop")]
    assert shop.query("SELECT input_tokens FROM executions") == [(100,)]


def test_below_another_service_the_outermost_span_of_the_service_counts(shop: Project) -> None:
    shop.write_log("a.jsonl", [
        otlp_line(span(1, 10, AT + 5 * SECOND), service="gateway"),
        otlp_line(span(1, 1, AT + SECOND, 10), span(1, 2, AT, 1), chat(1, 3, AT, 2)),
        otlp_line(span(1, 20, AT, 10), service="billing"),
    ])  # fmt: skip
    shop.ingest(FIRST)
    assert executions(shop) == [(id_of(1, 1), "shop", "success")]


def test_a_root_that_no_log_has_makes_no_execution(shop: Project) -> None:
    shop.write_log("a.jsonl", [otlp_line(*request(1)[1:])])
    shop.ingest(FIRST)
    assert executions(shop) == []
    assert len(of_calls(shop)) == 3


def test_a_root_that_comes_late_in_another_file_and_hour_takes_its_calls_over(shop: Project) -> None:
    hours = hours_from(START, 2)
    root, *below = request(1, START + HOUR - SECOND)
    shop.write_log("a.jsonl", [otlp_line(*below[1:])])
    shop.write_log("b.jsonl", [otlp_line(below[0])])
    shop.ingest(hours)
    assert executions(shop) == []
    shop.write_log("c.jsonl", [otlp_line(root)])
    shop.ingest(HourRange.of(START + HOUR))
    assert executions(shop) == [(id_of(1, 1), "shop", "success")]
    assert {execution for _, execution, _ in of_calls(shop)} == {id_of(1, 1)}


def test_other_patterns_apply_without_reading_the_logs_again(tmp_path: Path) -> None:
    """To a root beside its calls, to one hours after them, and to none that an agent's span tells of."""
    project, hours = Project(tmp_path / "one"), hours_from(START, 4)
    late_root, *below = request(4)
    late_root = span(4, 1, AT + 3 * HOUR, runtime_s=10.0, name="POST /ask")
    spans = [*request(1), *request(2, AT + 2 * HOUR), late_root, *below]
    project.write_log("a.jsonl", [otlp_line(*spans), otlp_line(agent(3, 1, AT), chat(3, 2, AT, 1))])
    project.materialize(hours, only=["ingest"])
    before = project.tables(names=FROM_SPANS)
    none = RunFingerprint.of(project.settings, load_targets(None), hours)
    project.write_targets(SHOP)
    assert RunFingerprint.of(project.settings, load_targets(project.targets_path), hours).digest != none.digest
    report = project.ingest(hours)
    assert report.files_read == []
    assert [agent_id for _, agent_id, _ in executions(project)] == ["shop", "shop", "planner", "shop"]
    rebuilt = project.clean_rebuild(hours, "rebuilt", only=["ingest"])
    assert_same_tables(project.tables(names=FROM_SPANS), rebuilt.tables(names=FROM_SPANS))
    assert not project.ingest(hours).touched_hours
    project.write_targets({})
    project.ingest(hours)
    assert project.tables(names=FROM_SPANS) == before


def test_a_trace_longer_than_the_look_back_has_its_root_in_an_hour_without_calls(tmp_path: Path) -> None:
    project = Project(tmp_path, targets=SHOP, lookback_hours=3, window_hours=2)
    root = span(1, 1, AT + 5 * HOUR, runtime_s=6 * 3600.0)
    project.write_log("a.jsonl", [otlp_line(root, chat(1, 2, AT, 1), chat(1, 3, AT + 4 * HOUR, 1))])
    project.ingest(hours_from(START, 6))
    assert executions(project) == [(id_of(1, 1), "shop", "success")]
    assert project.query("SELECT call_id, execution_id FROM model_calls ORDER BY call_id") == [
        (id_of(1, 2), None),
        (id_of(1, 3), id_of(1, 1)),
    ]


def test_the_page_of_the_data_repeats_what_the_terminal_says_of_calls_without_agents(tmp_path: Path) -> None:
    project, hours = Project(tmp_path), HourRange.of(START)
    project.write_log("a.jsonl", [otlp_line(*request(1))])
    project.materialize(hours, only=FLEET)
    world = world_of(project, hours)
    told = "2 chat spans and no agent span: see docs/opentelemetry.md#spans-of-model-calls-only, or name their services"
    page = data_page(look_at(world), WantedData())
    assert page.data["without_agents"].startswith(told)
    assert "under services: in the targets file" in html_of(page, look_at(world))
    project.write_targets(SHOP)
    project.materialize(hours, only=FLEET)
    assert data_page(look_at(world_of(project, hours)), WantedData()).data["without_agents"] is None


@pytest.mark.parametrize(
    ("services", "told"),
    [
        ("shop", "services must be a list of {match: pattern}"),
        (["shop"], "services, entry 1 must be a mapping of keys to values"),
        ([{"match": "shop("}], r"services, entry 1: match: 'shop(' is no pattern: missing )"),
        ([{"match": "x", "agent": "y"}], "services, entry 1: agent: unknown key"),
    ],
)
def test_patterns_of_services_that_cannot_be_used_are_refused(tmp_path: Path, services: Any, told: str) -> None:
    project = Project(tmp_path, targets={"services": services})
    with pytest.raises(HealthAssetsError) as error:
        load_targets(project.targets_path)
    assert told.replace("match: ", "") in str(error.value).replace("match: ", "")
