"""Tasks that nobody numbered: runs that were asked the same, and items of evaluation tools; worked by hand."""

import json
import math
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest

from health_assets.core.hours import HOUR, HourRange
from health_assets.systems.reliability.assets import ASSETS
from health_assets.systems.reliability.consistency import MOST_COMPARED
from health_assets_tests.support import langfuse_made
from health_assets_tests.support.langfuse_made import attributes
from health_assets_tests.support.logs_made import START, Record, execution, line
from health_assets_tests.support.projects import (
    DUCKDB_BY_DAY,
    ENGINES,
    Project,
    Row,
    assert_same_tables,
    assert_tables_equal_to_9_digits,
    hours_from,
)
from health_assets_tests.support.traces_made import Span, agent, chat, otlp_line, span, tool

TABLES = tuple(asset.name for asset in ASSETS)
STEPS = ("ingest", "computed_signals", *TABLES)
AT = START + timedelta(minutes=30)
HOUR_ONE = HourRange.of(START)
ASKED = "What does order 1234567 cost at 2026-06-07T13:00:00Z?"
ASKED_AGAIN = "what does  order 7654321\ncost at 2026-06-09 08:15?"


def input_of(trace: int, at: datetime = AT, **values: Any) -> str:
    """The line of a run of the agent `planner` whose span has these attributes."""
    return otlp_line(agent(trace, 1, at, **values))


def with_calls(trace: int, *calls: dict[str, Any], **values: Any) -> str:
    """The line of a run with these model calls, one after another."""
    spans = [
        chat(trace, 10 + place, AT - timedelta(seconds=20 - place), 1, **own) for place, own in enumerate(calls)
    ]  # fmt: skip
    return otlp_line(agent(trace, 1, AT, **values), *spans)


def digests(project: Project, *lines: str) -> list[str | None]:
    """The digest of what each run was asked, in the order of the lines."""
    project.write_log("spans.jsonl", lines)
    project.ingest(HOUR_ONE)
    in_order = sorted(project.rows("executions"), key=lambda row: row["line_number"])
    assert len(in_order) == len(lines)
    return [row["input_digest"] for row in in_order]


def messages(*texts: str, role: str = "user") -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]} for text in texts])


# -- what counts as the same input -------------------------------------------------------------------------------------


TEXTS = [
    (ASKED, ASKED_AGAIN, True),
    ("Read 5f0c1e2a-0000-4000-8000-0123456789ab", "read 00000000-aaaa-4000-8000-0123456789AB ", True),
    ("<Context at 0x7f7ea2e9>", "<context at 0x7f00aa11>", True),
    ("order 12345", "order 12346", False),
    ("add 123 456", "add 789 012", False),  # no long numbers, though they would be one without the space
    ("What is the weather in Oslo?", "What is the weather in Bergen?", False),
    ("昨日は?", "明日は?", False),
]


def test_the_same_text_with_other_times_and_ids_is_the_same_task(project: Project) -> None:
    texts = [text for one, other, _ in TEXTS for text in (one, other)]
    found = digests(project, *(input_of(n, input__value=text) for n, text in enumerate(texts, 1)))
    assert None not in found
    assert [one == other for one, other in [*pairwise(found)][::2]] == [is_same for *_, is_same in TEXTS]


def test_an_input_that_says_nothing_or_was_hidden_is_no_task(project: Project) -> None:
    texts = ["", "{}", "…", "__REDACTED__", "<REDACTED>", "null"]
    found = digests(project, *(input_of(n, input__value=text) for n, text in enumerate(texts, 1)))
    assert dict(zip(texts, found, strict=True)) == dict.fromkeys(texts)


WAYS = {
    "input.value": {"input__value": "pay"},
    "traceloop.entity.input": {"traceloop__entity__input": "pay"},
    "langfuse.observation.input": {"langfuse__observation__input": "pay"},
    "langfuse.trace.input": {"langfuse__trace__input": "pay"},
    "ai.prompt": {"ai__prompt": '{"system": "be kind", "prompt": "pay"}'},
    "messages in input.value": {"input__value": '{"messages": [{"role": "system", "content": "x"}, "pay"]}'},
    "ai.prompt.messages": {"ai__prompt__messages": '["pay"]'},
    "gen_ai.input.messages": {"gen_ai__input__messages": '[{"role": "developer", "content": "x"}, "pay"]'},
}


def test_every_convention_tells_what_an_agent_was_asked_without_how_to_work(project: Project) -> None:
    found = dict(
        zip(WAYS, digests(project, *(input_of(n, **own) for n, own in enumerate(WAYS.values(), 1))), strict=True)
    )
    plain = {name: found.pop(name) for name in [*WAYS][:5]}
    assert len({*plain.values()}) == len({*found.values()}) == 1
    assert None not in {*plain.values(), *found.values()}


def test_where_the_agent_tells_none_its_first_model_call_does(project: Project) -> None:
    first = {"gen_ai__input__messages": messages("pay")}
    second = {"gen_ai__input__messages": messages("pay", "done")}
    own, of_calls, of_parts, older, nothing = digests(
        project,
        input_of(1, gen_ai__input__messages=messages("pay"), input__value="unused"),
        with_calls(2, first, second),
        with_calls(3, {"llm__input_messages__0__message__role": "system", "llm__input_messages__0__message__content": "x",
                       "llm__input_messages__1__message__contents__0__message_content__text": "pay"}),
        with_calls(4, {"gen_ai__prompt__0__role": "user", "gen_ai__prompt__0__content": "pay"}),
        with_calls(5, {}, second),
    )  # fmt: skip
    assert own == of_calls
    assert of_parts == older
    assert None not in (own, older)
    assert nothing is None, "what a later call was asked differs from run to run"


def test_a_turn_of_a_conversation_is_another_task_than_its_beginning(project: Project) -> None:
    history = json.dumps(
        [*json.loads(messages("pay")), *json.loads(messages("paid", role="assistant")), *json.loads(messages("again"))]
    )
    parts = {"gen_ai__prompt__0__role": "assistant", "gen_ai__prompt__0__content": "paid"}
    first, later, of_call, of_parts = digests(
        project,
        input_of(1, gen_ai__input__messages=messages("pay")),
        input_of(2, gen_ai__input__messages=history),
        with_calls(3, {"gen_ai__input__messages": history}),
        with_calls(4, {**parts, "gen_ai__prompt__1__role": "user", "gen_ai__prompt__1__content": "again"}),
    )
    assert None not in (first, later)
    assert first != later
    assert (of_call, of_parts) == (None, None), "a model call within a conversation begins no task"


def test_messages_that_were_cut_off_are_no_task(project: Project) -> None:
    assert digests(project, with_calls(1, {"gen_ai__input__messages": messages("pay")[:-3]})) == [None]


def test_arguments_of_tools_are_told_apart_by_times_still(project: Project) -> None:
    calls = [tool(n, 2, AT, 1, input__value=text) for n, text in ((1, ASKED), (2, ASKED_AGAIN))]
    project.write_log("a.jsonl", [otlp_line(agent(n, 1, AT), call) for n, call in enumerate(calls, 1)])
    project.ingest(HOUR_ONE)
    assert len({row["arguments_digest"] for row in project.rows("tool_calls")}) == 2


# -- rows --------------------------------------------------------------------------------------------------------------


def asked(trace: int, text: str, *tools: str, at: datetime = AT, failed: bool = False, name: str = "planner") -> str:
    """The line of a run that was asked something, and its tools."""
    status = {"code": 2, "message": "broke"} if failed else {}
    run = agent(trace, 1, at, input__value=text, gen_ai__agent__name=name, status=status)
    return otlp_line(run, *_calls(trace, tools, at))


def _calls(trace: int, tools: tuple[str, ...], at: datetime) -> list[Span]:
    return [
        tool(trace, 2 + place, at - timedelta(seconds=9 - place), 1, gen_ai__tool__name=name)
        for place, name in enumerate(tools)
    ]


def evaluated(project: Project, *lines: str, hours: HourRange = HOUR_ONE) -> dict[str, Row]:
    """By agent its row, with those of its tasks under `tasks`."""
    project.write_log("runs.jsonl", lines)
    project.materialize(hours, only=STEPS)
    tasks = project.rows("task_consistency")
    return {
        row["agent_id"]: row | {"tasks_of": [task for task in tasks if task["agent_id"] == row["agent_id"]]}
        for row in project.rows("agent_reliability")
    }


@pytest.fixture(scope="module", params=ENGINES)
def on_engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Row]:
    """What is evaluated on either engine of agents that were asked the same, and whose tools met faults."""
    troubles = [
        (None, False),
        (None, False),
        ("KeyError: 'city'", False),
        (None, True),
        ("HTTP 503", False),
        ("ReadTimeout: fetch", True),
    ]
    return evaluated(
        Project(tmp_path_factory.mktemp("on engine") / "project", engine=request.param),
        asked(1, ASKED, "a", "b", "c"),
        asked(2, ASKED_AGAIN, "a", "b", "d"),
        asked(3, ASKED, failed=True),
        asked(4, "something else"),
        asked(5, "once", name="other"),
        *(troubled(n, error, failed=failed, name="troubled") for n, (error, failed) in enumerate(troubles, 11)),
    )  # fmt: skip


def test_runs_that_were_asked_the_same_are_compared(on_engine: dict[str, Row]) -> None:
    """Two successes with two of three steps alike and a failure: p = 2/3, JSD = 1/3 of each run's own, 1 edit in 3."""
    assert on_engine.keys() == {"planner", "troubled"}, "an input that came once is no task"
    row = on_engine["planner"]
    [task] = row["tasks_of"]
    assert (row["task_source"], task["task_source"]) == ("observed", "observed")
    assert task["task_id"].startswith("input:")
    assert (row["tasks"], row["runs"], row["repeated_share"]) == (1, 3, 0.75)
    assert (task["runs"], task["successes"], task["pairs"]) == (3, 2, 1)
    assert row["baseline_accuracy"] == pytest.approx(2 / 3, abs=1e-12)
    assert row["outcome_agreement"] == pytest.approx(1 / 9, abs=1e-12)
    assert row["c_traj_d"] == pytest.approx(1 - math.sqrt(1 / 3), abs=1e-12)
    assert row["c_traj_s"] == pytest.approx(2 / 3, abs=1e-12)
    assert (row["r_pred"], row["r_rob"], row["reliability"]) == (None, None, None)


def test_a_repetition_counts_only_in_windows_that_hold_both_runs(tmp_path: Path) -> None:
    """Windows of 3 hours; runs in hours 0, 2 and 5, of which hours 0 and 2 meet, and in hours 0, 2 and 4."""
    project = Project(tmp_path / "project", evaluation_window_hours=3)
    times = [("apart", hours) for hours in (0, 2, 5)] + [("between", hours) for hours in (0, 2, 4)]
    lines = [asked(n, "pay", at=AT + hours * HOUR, name=name) for n, (name, hours) in enumerate(times, 1)]
    evaluated(project, *lines, hours=hours_from(START, 9))
    for table in TABLES:
        found = {(row["agent_id"], (row["hour"] - START) // HOUR): row["runs"] for row in project.rows(table)}
        assert found == {("apart", 2): 2, ("between", 2): 2, ("between", 4): 2}, table


# -- which source of tasks and conditions counts -----------------------------------------------------------------------


def troubled(trace: int, error: str | None, *, failed: bool = False, at: datetime = AT, name: str = "planner") -> str:
    """The line of a run whose tool failed by an error, or succeeded."""
    status = {"code": 2, "message": "broke"} if failed else {}
    of_tool = {"status": {"code": 2, "message": error}} if error else {}
    run = agent(trace, 1, at, input__value="pay", gen_ai__agent__name=name, status=status)
    return otlp_line(run, tool(trace, 2, at - timedelta(seconds=5), 1, gen_ai__tool__name="fetch", **of_tool))


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Row]:
    """What is evaluated of the agents that the tests below look at."""
    item = {"langfuse__experiment__item__id": "item-1"}
    failing = tool(42, 2, AT, 1, status={"code": 2, "message": "HTTP 503"})
    project = Project(tmp_path_factory.mktemp("agents") / "project")
    return evaluated(
        project,
        line(execution("s", "stated", AT, task_id="t", input="pay", violations=[])),
        *(input_of(n, **item, input__value="pay", gen_ai__agent__name="stated") for n in (11, 12)),
        *(input_of(n, input__value="pay", gen_ai__agent__name="stated") for n in (13, 14)),
        *(input_of(n, **item, gen_ai__agent__name="evaluation") for n in (21, 22)),
        *(input_of(n, input__value="pay", gen_ai__agent__name="evaluation") for n in (23, 24, 25)),
        *(line(execution(f"e{n:02}", "often", AT, input="pay", actions=["x"])) for n in range(MOST_COMPARED + 5)),
        troubled(31, None, name="condition"),
        troubled(32, "HTTP 503", failed=True, name="condition"),
        line(execution("c", "condition", AT, input="pay", condition="prompt", status="failure")),
        input_of(41, **item, gen_ai__agent__name="items"),
        otlp_line(agent(42, 1, AT, **item, gen_ai__agent__name="items"), failing),
    )


def test_a_stated_task_leaves_no_room_for_others(agents: dict[str, Row]) -> None:
    row = agents["stated"]
    assert (row["task_source"], row["runs"], row["tasks"], row["judged"]) == ("stated", 1, 0, 1)
    assert (row["tasks_of"], row["repeated_share"]) == ([], None)


def test_an_evaluation_leaves_no_room_for_observed_tasks(agents: dict[str, Row]) -> None:
    row = agents["evaluation"]
    [task] = row["tasks_of"]
    assert (row["task_source"], row["runs"], row["tasks"]) == ("evaluation", 2, 1)
    assert (task["task_id"], task["task_source"]) == ("item-1", "evaluation")


def test_an_agent_has_its_observed_tasks_back_once_the_stated_one_has_left_the_window(tmp_path: Path) -> None:
    project = Project(tmp_path / "project", evaluation_window_hours=2)
    stated = line(execution("e", "planner", AT, task_id="t"))
    lines = [stated, *(asked(n, "pay", at=AT + HOUR) for n in (1, 2))]
    evaluated(project, *lines, hours=hours_from(START, 4))
    sources = {(row["hour"] - START) // HOUR: row["task_source"] for row in project.rows("agent_reliability")}
    assert sources == {0: "stated", 1: "stated", 2: "observed"}
    assert {(row["hour"] - START) // HOUR for row in project.rows("task_consistency")} == {2}


def test_lines_state_where_their_task_is_from_and_what_was_asked(project: Project) -> None:
    records: list[Record] = [
        execution("1", "a", AT, task_id="t"),
        execution("2", "a", AT, task_id="t", task_source="evaluation"),
        execution("3", "a", AT, task_source="evaluation", input={"pay": 1}),
    ]
    project.write_log("a.jsonl", map(line, records))
    project.ingest(HOUR_ONE)
    rows = sorted(project.rows("executions"), key=lambda row: row["execution_id"])
    assert [row["task_source"] for row in rows] == ["stated", "evaluation", None]
    assert [row["input_digest"] is not None for row in rows] == [False, False, True]


def test_only_the_first_runs_of_an_observed_task_in_an_hour_are_compared(agents: dict[str, Row]) -> None:
    """Whatever a minute's schedule makes of an agent, its pairs stay few."""
    row, count = agents["often"], MOST_COMPARED + 5
    [task] = row["tasks_of"]
    assert (row["runs"], task["runs"]) == (count, count)
    assert task["pairs"] == MOST_COMPARED * (MOST_COMPARED - 1) // 2


# -- faults that runs met ----------------------------------------------------------------------------------------------


def test_what_is_left_of_accuracy_where_tools_met_faults_is_observed(on_engine: dict[str, Row]) -> None:
    """Without a fault 3 of 4 succeed, one of them despite a wrong argument; with a fault 1 of 2: (1/2) / (3/4)."""
    row = on_engine["troubled"]
    assert (row["task_source"], row["condition_source"]) == ("observed", "observed")
    assert (row["runs"], row["baseline_runs"], row["fault_runs"]) == (6, 6, 2)
    assert row["r_fault"] == row["r_rob"] == pytest.approx(2 / 3, abs=1e-12)
    assert row["baseline_accuracy"] == pytest.approx(4 / 6, abs=1e-12), "of all runs, as without tools"
    [task] = row["tasks_of"]
    assert (task["runs"], task["successes"]) == (6, 4), "consistency is about all of them"


def test_a_condition_that_a_run_states_leaves_no_room_for_observed_ones(agents: dict[str, Row]) -> None:
    row = agents["condition"]
    assert (row["condition_source"], row["r_fault"], row["r_prompt"]) == ("stated", None, 0)
    assert row["fault_runs"] == 0


def test_an_evaluation_tells_its_conditions_itself(agents: dict[str, Row]) -> None:
    """A fault that the harness did not make is no condition of it."""
    row = agents["items"]
    assert (row["task_source"], row["condition_source"], row["r_fault"], row["fault_runs"]) == (
        "evaluation", None, None, 0,
    )  # fmt: skip


# -- evaluation tools --------------------------------------------------------------------------------------------------

STATES = {
    "Langfuse": {"langfuse__experiment__item__id": "item-7"},
    "LangSmith": {"langsmith__reference_example_id": "item-7"},
    "Braintrust": {"braintrust__origin": '{"object_type": "dataset", "object_id": "d", "id": "item-7"}'},
}


def test_the_item_of_a_dataset_is_the_task_of_the_runs_in_its_trace(project: Project) -> None:
    ways = [*product(STATES, ["the agent", "a span above", "a span below"])]
    for trace, (by, on) in enumerate(ways, 1):
        values = STATES[by]
        spans = [
            span(trace, 1, AT, **(values if on == "a span above" else {})),
            agent(trace, 2, AT, 1, **(values if on == "the agent" else {})),
            chat(trace, 3, AT, 2, **(values if on == "a span below" else {})),
        ]
        project.write_log(f"{by} {on}.jsonl", [otlp_line(one) for one in spans])
    project.ingest(HOUR_ONE)
    found = {row["source_file"]: (row["task_id"], row["task_source"]) for row in project.rows("executions")}
    assert found == {f"{by} {on}.jsonl": ("item-7", "evaluation") for by, on in ways}


def test_a_trace_of_several_items_tells_no_task_of_runs_that_state_none(project: Project) -> None:
    items = [span(1, 10 + n, AT, langfuse__experiment__item__id=f"item-{n}") for n in (1, 2)]
    project.write_log(
        "a.jsonl", [otlp_line(*items, agent(1, 2, AT, 10), agent(1, 3, AT, langfuse__experiment__item__id="x"))]
    )
    project.ingest(HOUR_ONE)
    assert {row["task_id"] for row in project.rows("executions")} == {None, "x"}


def test_an_origin_that_is_no_dataset_is_no_task(project: Project) -> None:
    project.write_log("a.jsonl", [input_of(1, braintrust__origin='{"object_type": "project_logs", "id": "row"}')])
    project.ingest(HOUR_ONE)
    assert [row["task_id"] for row in project.rows("executions")] == [None]


SHAPES = {
    "download": lambda held, **fields: langfuse_made.download(held, **fields),
    "download of version 4": lambda held, **_: langfuse_made.download_without_trace(held),
    "rows": lambda held, **_: [langfuse_made.row(item) for item in held],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_exports_of_langfuse_tell_what_was_asked(project: Project, shape: str) -> None:
    for text, trace_id in ((ASKED, langfuse_made.TRACE_ID), (ASKED_AGAIN, langfuse_made.TRACE_ID[::-1])):
        held = [item | {"input": text} for item in langfuse_made.OBSERVATIONS]
        exported = json.dumps(SHAPES[shape](held, input=text)).replace(langfuse_made.TRACE_ID, trace_id)
        project.write_bytes(f"{trace_id}.json", exported.encode())
    project.ingest(HOUR_ONE)
    one, other = (row["input_digest"] for row in project.rows("executions"))
    assert one == other
    assert one is not None


def test_exports_of_langfuse_tell_the_item_of_an_experiment(project: Project) -> None:
    by_whom = {
        "SDK": attributes(langfuse__experiment__item__id="item-7"), "server": {"experimentItemId": "item-7"},
    }  # fmt: skip
    ways = [*product(SHAPES, by_whom)]
    for number, (shape, by) in enumerate(ways, 1):
        held = [langfuse_made.OBSERVATIONS[0] | by_whom[by], *langfuse_made.OBSERVATIONS[1:]]
        exported = json.dumps(SHAPES[shape](held)).replace(langfuse_made.TRACE_ID, f"{number:032x}")
        project.write_bytes(f"{shape} {by}.json", exported.encode())
    project.ingest(HOUR_ONE)
    found = {row["source_file"]: (row["task_id"], row["task_source"]) for row in project.rows("executions")}
    assert found == {f"{shape} {by}.json": ("item-7", "evaluation") for shape, by in ways}


# -- what must not matter ----------------------------------------------------------------------------------------------


def runs_of_some_hours() -> Iterator[str]:
    """Runs of two agents over five hours, with inputs that come once, twice and often, and some stated tasks."""
    for n in range(60):
        at = AT + (n * 7 % 5) * HOUR
        tools = ("a", "b", "c")[: n % 4]
        yield asked(n + 1, f"task {n % 11} of {n * 123456789}", *tools, at=at, failed=n % 5 == 0, name=f"agent {n % 2}")
    for n in range(3):
        yield line(execution(f"e{n}", "agent 1", AT + n * HOUR, task_id="t"))


@pytest.mark.parametrize("engine", DUCKDB_BY_DAY)  # the two tests of both engines above run the same statements
def test_late_logs_in_any_order_give_the_same_rows(tmp_path: Path, engine: str) -> None:
    lines, hours = [*runs_of_some_hours()], hours_from(START, 7)
    project = Project(tmp_path / "late", evaluation_window_hours=4, engine=engine)
    for place, some in enumerate((lines[::3], lines[2::3], lines[1::3])):
        project.write_log(f"{place}.jsonl", reversed(some))
        project.materialize(hours, only_stale=True, only=STEPS)
    whole = Project(tmp_path / "whole", evaluation_window_hours=4)
    whole.write_log("a.jsonl", lines)
    whole.materialize(hours, only=STEPS)
    expected = whole.tables(hours, TABLES)
    assert {row["task_source"] for row in expected["agent_reliability"]} == {"stated", "observed"}
    compare = assert_same_tables if engine == "duckdb" else assert_tables_equal_to_9_digits
    compare(project.tables(hours, TABLES), expected)
