"""Spans whose evidence disagrees: kinds, errors that are none, tokens that cannot all be true, and who is told of it."""

from typing import Any

import pytest

from health_assets.core.hours import HOUR, HourRange
from health_assets.pipeline.span_summary import SpanSummary, summarize_spans
from health_assets_tests.support.log_histories import Histories, LogFolder, Outcomes, Steps
from health_assets_tests.support.logs_made import START
from health_assets_tests.support.traces_made import agent, attributes, chat, otlp_line, span, tool, workflow

AT = START + HOUR / 2
FIRST = HourRange.of(START)
LATER = AT + HOUR / 3600
LANGGRAPH = "langgraph.errors.GraphInterrupt"
HAYSTACK = "haystack_experimental.components.agents.human_in_the_loop.errors.HITLBreakpointException"

HISTORIES = Histories(FIRST, has_rebuilds=False)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    return HISTORIES.run(tmp_path_factory.mktemp("spans"))


def ingested(log: LogFolder, *spans: dict[str, Any], **line: Any) -> Steps:
    """The rows of these spans, whose traces are those of one test."""
    write(log, "traces.jsonl", *spans, **line)
    yield
    tables = log.tables(["executions", "model_calls", "tool_calls", "spans", "rejected_records"])
    assert tables["rejected_records"] == []
    return tables


def write(log: LogFolder, name: str, *spans: dict[str, Any], **line: Any) -> None:
    """Write a line of spans, in traces that no other test has."""
    own = [span | {"traceId": f"{int(log.name):016x}{span['traceId'][16:]}"} for span in spans]
    log.write(name, f"{otlp_line(*own, **line)}\n".encode(), modified=AT)


def told(log: LogFolder) -> SpanSummary:
    with log.session() as session:
        reading = summarize_spans(session, FIRST)
    assert reading is not None
    return reading


def raised(*types: str) -> list[dict[str, Any]]:
    """Events of exceptions, as SDKs record them."""
    return [
        {
            "name": "exception",
            "timeUnixNano": "1",
            "attributes": attributes(exception__type=one, exception__message="x"),
        }
        for one in types
    ]


# -- kinds ---------------------------------------------------------------------------------------------------------------


@HISTORIES.test
def test_an_agents_run_that_states_the_operation_chat_is_an_agents_run(log: LogFolder) -> Steps:
    """As .NET's agent framework writes it: its name and its agent's name outweigh the operation."""
    named = {"gen_ai__operation__name": "chat", "gen_ai__agent__name": "Language Agent", "gen_ai__request__model": "m"}
    tables = yield from ingested(
        log,
        span(1, 1, AT, name="invoke_agent Language Agent", **named),
        tool(1, 2, AT, 1, gen_ai__tool__name="translate"),
        span(2, 1, AT, name="invoke_agent Language Agent", error__type="HttpRequestException", **named),
    )
    found = sorted((row["agent_id"], row["status"], row["actions"]) for row in tables["executions"])
    assert found == [("Language Agent", "failure", None), ("Language Agent", "success", ["translate"])]
    assert tables["model_calls"] == []
    assert told(log).warnings == ["2 spans: taken for agent, not for what gen_ai.operation.name chat says"]


@HISTORIES.test
def test_a_call_to_an_mcp_server_is_one_tool_call_whoever_tells_of_it(log: LogFolder) -> Steps:
    """The framework, the client and the server each write a span of the first call, the client alone of the second."""
    called = {"mcp__method__name": "tools/call", "name": "tools/call get_weather", "gen_ai__tool__name": "get_weather"}
    failed = {"error__type": "tool_error", "status": {"code": 2}}
    tables = yield from ingested(
        log,
        agent(1, 1, AT),
        span(1, 2, AT, 1, name="initialize", mcp__method__name="initialize"),
        tool(1, 3, AT, 1, name="execute_tool get_weather", gen_ai__tool__name="get_weather"),
        span(1, 4, AT, 3, **called, **failed),
        span(1, 5, AT, 4, name="POST"),
        span(1, 6, AT, 5, **called, **failed, gen_ai__operation__name="execute_tool"),
        span(1, 7, LATER, 1, name="tools/call search", mcp__method__name="tools/call"),
    )
    found = {(row["span_id"], row["tool"], row["status"], row["agent_id"]) for row in tables["tool_calls"]}
    assert found == {
        (f"{6:016x}", "get_weather", "failure", "planner"), (f"{7:016x}", "search", "success", "planner"),
    }  # fmt: skip
    conventions = {row["name"]: row["convention"] for row in tables["spans"] if row["operation"] != "invoke_agent"}
    assert conventions["tools/call search"] == "mcp"
    assert [sorted(row["actions"]) for row in tables["executions"]] == [["get_weather", "search"]]


@HISTORIES.test
def test_a_step_between_two_spans_of_one_call_leaves_it_one_call(log: LogFolder) -> Steps:
    tables = yield from ingested(
        log,
        agent(1, 1, AT),
        tool(1, 2, AT, 1),
        span(1, 3, AT, 2, openinference__span__kind="RETRIEVER"),
        tool(1, 4, AT, 3),
        span(2, 1, AT, openinference__span__kind="GUARDRAIL"),
    )
    assert [row["span_id"] for row in tables["tool_calls"]] == [f"{4:016x}"]
    assert len(tables["executions"]) == 1


KINDS: list[tuple[dict[str, Any], str, str | None]] = [
    ({"name": "chat m", "gen_ai__operation__name": "chat", "gen_ai__agent__name": "a"}, "chat", None),
    ({"name": "invoke_agent a", "gen_ai__operation__name": "chat"}, "chat", None),  # nothing else says agent
    (
        {"name": "execute_tool t", "gen_ai__operation__name": "chat", "gen_ai__tool__name": "t"},
        "tool",
        "gen_ai.operation.name chat",
    ),
    (
        {"gen_ai__operation__name": "chat", "openinference__span__kind": "AGENT", "agent__name": "a"},
        "agent",
        "gen_ai.operation.name chat",
    ),
    (
        {"gen_ai__operation__name": "execute_tool", "openinference__span__kind": "AGENT"},
        "tool",
        "openinference.span.kind AGENT",
    ),
    (
        {
            "name": "invoke_agent a",
            "gen_ai__operation__name": "generate_content",
            "openinference__span__kind": "LLM",
            "gen_ai__agent__name": "a",
        },
        "chat",
        "the name invoke_agent",
    ),
    ({"name": "invoke_agent a", "gen_ai__agent__name": "a"}, "agent", None),
    ({"name": "execute_tool t", "gen_ai__tool__name": "t", "gen_ai__system": "x"}, "tool", None),
    ({"name": "tool", "gen_ai__tool__name": "t", "gen_ai__system": "x"}, "other", None),
    ({"name": "invoke_agent a"}, "other", None),
    ({"name": "tool", "span__type": "tool"}, "other", None),  # only Claude Code's spans mean it so
    (  # a call that an agent makes, whose exporter takes each span that names an agent for its run
        {
            "name": "chat gpt-4o",
            "gen_ai__operation__name": "chat",
            "openinference__span__kind": "AGENT",
            "gen_ai__agent__name": "a",
            "gen_ai__request__model": "gpt-4o",
        },
        "chat",
        "openinference.span.kind AGENT",
    ),
    ({"name": "chat.completions m", "gen_ai__operation__name": "chat.completions"}, "chat", None),
    ({"name": "tools/call t", "mcp__method__name": "tools/call"}, "tool", None),
    ({"name": "tools/list", "mcp__method__name": "tools/list"}, "other", None),
    ({"name": "BaseRetriever", "openinference__span__kind": "RETRIEVER"}, "retrieval", None),
    ({"name": "rerank", "openinference__span__kind": "reranker"}, "rerank", None),
    ({"name": "bedrock.apply_guardrail", "openinference__span__kind": "GUARDRAIL"}, "guardrail", None),
    ({"name": "retrieval docs", "gen_ai__operation__name": "retrieval"}, "retrieval", None),
    ({"name": "cohere.rerank", "gen_ai__system": "Cohere", "llm__request__type": "rerank"}, "rerank", None),
    # a step is never more than what states a record
    ({"gen_ai__operation__name": "execute_tool", "openinference__span__kind": "RETRIEVER"}, "tool", None),
    ({"openinference__span__kind": "RETRIEVER", "traceloop__span__kind": "tool"}, "tool", None),
    ({"name": "execute_tool t", "gen_ai__tool__name": "t", "openinference__span__kind": "GUARDRAIL"}, "tool", None),
    ({"name": "text.completions m", "gen_ai__operation__name": "text.completions"}, "chat", None),
]


@HISTORIES.test
@pytest.mark.parametrize(("values", "kind", "overruled"), KINDS)
def test_two_that_agree_outweigh_the_attribute_that_states_the_kind(
    log: LogFolder, values: dict[str, Any], kind: str, overruled: str | None
) -> Steps:
    [row] = (yield from ingested(log, span(1, 1, AT, **values)))["spans"]
    remark = overruled and f"taken for {kind}, not for what {overruled} says"
    assert (row["kind"], row["remark"]) == (kind, remark)


@HISTORIES.test
def test_what_a_framework_writes_besides_its_tools_is_no_tool(log: LogFolder) -> Steps:
    """Google's ADK writes one span more where it calls tools at once."""
    tables = yield from ingested(
        log,
        agent(1, 1, AT),
        tool(1, 2, AT, 1, gen_ai__tool__name="get_weather"),
        tool(1, 3, LATER, 1, gen_ai__tool__name="get_flights", error__type="ConnectionError"),
        tool(1, 4, LATER, 1, name="execute_tool (merged)", gen_ai__tool__name="(merged tools)"),
    )
    assert sorted((row["tool"], row["status"]) for row in tables["tool_calls"]) == [
        ("get_flights", "failure"),
        ("get_weather", "success"),
    ]
    assert tables["executions"][0]["actions"] == ["get_weather", "get_flights"]
    assert told(log).unused == {"span for bookkeeping of its framework": 1}


@HISTORIES.test
def test_what_logfire_writes_when_a_span_starts_is_no_work(log: LogFolder) -> Steps:
    """It is a span of its own below the real one, with all that is known by then and no duration."""
    pending = {"runtime_s": 0, "logfire__span_type": "pending_span", "logfire__pending_parent_id": "0" * 16}
    tables = yield from ingested(
        log,
        agent(1, 1, AT, error__type="ValueError"),
        agent(1, 11, AT, 1, **pending),
        chat(1, 2, AT, 1, runtime_s=2, gen_ai__usage__input_tokens=5),
        chat(1, 12, AT, 2, **pending),
        tool(1, 3, AT, 1, runtime_s=3, error__type="ValueError"),
        tool(1, 13, AT, 3, **pending),
    )
    assert [(row["status"], row["actions"]) for row in tables["executions"]] == [("failure", ["search"])]
    assert [(row["latency_ms"], row["input_tokens"]) for row in tables["model_calls"]] == [(2000, 5)]
    assert [(row["latency_ms"], row["status"]) for row in tables["tool_calls"]] == [(3000, "failure")]
    assert told(log).unused == {"span for bookkeeping of its framework": 3}


@HISTORIES.test
def test_an_agent_that_only_a_call_names_is_the_calls_agent(log: LogFolder) -> Steps:
    tables = yield from ingested(
        log,
        chat(1, 1, AT, gen_ai__agent__name="helper"),
        tool(2, 1, AT, gen_ai__agent__name="helper"),
        agent(3, 1, AT, gen_ai__agent__name="boss"),
        chat(3, 2, AT, 1, gen_ai__agent__name="helper"),
    )
    calls = sorted((row["agent_id"], row["execution_id"] is None) for row in tables["model_calls"])
    assert calls == [("boss", False), ("helper", True)]
    assert [(row["agent_id"], row["execution_id"]) for row in tables["tool_calls"]] == [("helper", None)]


# -- workflows -----------------------------------------------------------------------------------------------------------


@HISTORIES.test
@pytest.mark.parametrize("operation", ["invoke_workflow", "handle_conversation_turn"])
@pytest.mark.parametrize("name", ["gen_ai__agent__name", "gen_ai__workflow__name"])
def test_two_agents_that_hand_over_below_a_workflow_both_count(log: LogFolder, operation: str, name: str) -> Steps:
    """By the newer conventions the workflow has its name where agents have theirs, and by the older ones apart."""
    around = {"gen_ai__operation__name": operation, name: "support", "gen_ai__conversation__id": "c"}
    nested = {"gen_ai__invocation__is_nested": True}
    tables = yield from ingested(
        log,
        span(1, 1, LATER, **around),
        agent(1, 2, AT, 1, gen_ai__agent__name="triage", **nested),
        agent(1, 3, LATER, 1, gen_ai__agent__name="billing", **nested),
        agent(1, 4, LATER, 3, gen_ai__agent__name="helper", **nested),
        chat(1, 5, LATER, 4),
    )
    found = sorted((row["agent_id"], row["session_id"]) for row in tables["executions"])
    assert found == [("billing", "c"), ("triage", "c")]
    assert [row["agent_id"] for row in tables["model_calls"]] == ["billing"]
    assert told(log).unused == {
        "agent span inside another agent's run": 1,
        "workflow span around agents' runs or inside another run": 1,
    }


@HISTORIES.test
@pytest.mark.parametrize("name", ["gen_ai__agent__name", "gen_ai__workflow__name"])
def test_a_workflow_without_agents_is_an_execution_itself(log: LogFolder, name: str) -> Steps:
    tables = yield from ingested(
        log,
        span(1, 1, AT, gen_ai__operation__name="invoke_workflow", **{name: "rag"}),
        workflow(1, 2, AT, 1),
        chat(1, 3, AT, 2),
    )
    assert [row["agent_id"] for row in tables["executions"]] == ["rag"]
    assert tables["model_calls"][0]["agent_id"] == "rag"


@HISTORIES.test
def test_an_error_of_a_workflow_that_no_agent_below_it_has_is_theirs(log: LogFolder) -> Steps:
    tables = yield from ingested(log, workflow(1, 1, AT, error__type="GraphRecursionError"), agent(1, 2, AT, 1))
    assert [(row["agent_id"], row["error"]) for row in tables["executions"]] == [("planner", "GraphRecursionError")]


# -- errors that are none ------------------------------------------------------------------------------------------------

ERROR = {"code": 2}
NO_FAILURES: list[dict[str, Any]] = [
    {"error__type": "GraphInterrupt"},
    {"error__type": LANGGRAPH, "status": ERROR},
    {"status": {"code": 2, "message": "GraphInterrupt((Interrupt(value={'ask': 'refund?'}, id='f00d'),))Traceback"}},
    {"status": {"code": 2, "message": f"{LANGGRAPH}: waits"}},
    {"status": ERROR, "events": raised(LANGGRAPH)},
    {"status": ERROR, "events": raised("ValueError", "langgraph.errors.ParentCommand")},
    {"status": ERROR, "events": raised("langgraph.errors.NodeInterrupt")},
    {"status": ERROR, "events": raised("langgraph.errors.GraphBubbleUp")},
    {"status": ERROR, "events": raised("pydantic_ai.exceptions.CallDeferred")},
    {"status": ERROR, "events": raised("pydantic_ai.exceptions.ApprovalRequired")},
    {"status": ERROR, "events": raised("crewai.flow.async_feedback.types.HumanFeedbackPending")},
    {"status": ERROR, "events": raised("workflows.runtime.types.step_function.WaitingForEvent")},
    {"status": ERROR, "events": raised("agent_framework.exceptions.UserInputRequiredException")},
    {"status": ERROR, "events": raised("google.adk.workflow._errors.NodeInterruptedError")},
    {"status": ERROR, "events": raised("strands.types.interrupt.InterruptException")},
    {"status": ERROR, "events": raised("haystack.core.errors.BreakpointException")},
    {"status": ERROR, "events": raised(HAYSTACK)},
    {"error__type": "WorkflowSuspension"},
    {"status": ERROR, "events": raised("temporalio.workflow.ContinueAsNewError")},
    {"status": {"code": 2, "message": "GeneratorExit: "}, "events": raised("GeneratorExit")},
    {"status": {"code": 2, "message": "StopIteration: "}},
    {"error__type": "StopAsyncIteration"},
]
FAILURES: list[dict[str, Any]] = [
    {"status": ERROR},
    {"status": ERROR, "events": raised("asyncio.exceptions.CancelledError")},
    {"status": ERROR, "events": raised(LANGGRAPH, "ValueError")},
    {"status": ERROR, "events": raised("cluster.NodeInterruptedError")},
    {"status": {"code": 2, "message": "NotAGraphInterrupt(1)"}},
    {"status": ERROR, "events": raised("debugger.BreakpointException")},
    {"status": {"code": 2, "message": "RuntimeError: coroutine raised StopIteration"}},
    {"status": {"code": 2, "message": "the tool raised GraphInterrupt"}},
    {"error__type": "pydantic_ai.exceptions.ToolRetryError"},
]


def with_events(values: dict[str, Any]) -> list[dict[str, Any]]:
    own = dict(values)
    events = own.pop("events", None)
    made = [agent(1, 1, AT, **own), tool(1, 2, AT, 1, **own)]
    return [one | {"events": events} if events else one for one in made]


@HISTORIES.test
@pytest.mark.parametrize("values", NO_FAILURES)
def test_waiting_for_a_person_and_handing_over_are_no_failures_wherever_they_are_told(
    log: LogFolder, values: dict[str, Any]
) -> Steps:
    tables = yield from ingested(log, *with_events(values))
    assert [row["status"] for row in tables["executions"] + tables["tool_calls"]] == ["success", "success"]
    assert told(log).warnings == [
        "2 spans: an error by which its framework waits, hands over or ends a stream, which is no failure"
    ]


@HISTORIES.test
@pytest.mark.parametrize("values", FAILURES)
def test_any_other_error_is_a_failure(log: LogFolder, values: dict[str, Any]) -> Steps:
    tables = yield from ingested(log, *with_events(values))
    assert [row["status"] for row in tables["executions"] + tables["tool_calls"]] == ["failure", "failure"]
    assert told(log).warnings == []


# -- Claude Code ---------------------------------------------------------------------------------------------------------


def of_claude(trace: int, number: int, span_type: str, parent: int | None = None, **values: Any) -> dict[str, Any]:
    own = {"name": f"claude_code.{span_type}", "span__type": span_type, "session__id": "s"}
    return span(trace, number, AT, parent, **own, **values)


@HISTORIES.test
def test_the_spans_of_claude_code_are_what_they_are(log: LogFolder) -> Steps:
    model = {"model": "claude-opus-5", "gen_ai__system": "anthropic", "gen_ai__request__model": "claude-opus-5"}
    tables = yield from ingested(
        log,
        of_claude(1, 1, "interaction"),
        of_claude(1, 2, "llm_request", 1, **model, input_tokens=2, output_tokens=1200, cache_read_tokens=84562,
                  cache_creation_tokens=7096, success=True),
        of_claude(1, 3, "llm_request", 1, **model, input_tokens=0, output_tokens=0, success=False, error="529 overloaded"),
        of_claude(1, 4, "tool", 1, tool_name="Bash"),
        of_claude(1, 5, "tool.blocked_on_user", 4),
        of_claude(1, 6, "tool.execution", 4, success=True),
        of_claude(1, 7, "tool", 1, tool_name="Edit"),
        of_claude(1, 8, "tool.execution", 7, success=False, error="no such file"),
        service="claude-code",
    )  # fmt: skip
    [execution] = tables["executions"]
    assert (execution["agent_id"], execution["session_id"], execution["status"]) == ("claude-code", "s", "success")
    assert (execution["input_tokens"], execution["output_tokens"]) == (91660, 1200)
    assert sorted(execution["actions"]) == ["Bash", "Edit"]
    calls = {(row["model"], row["status"], row["error"], row["input_tokens"]) for row in tables["model_calls"]}
    assert calls == {
        ("claude-opus-5", "success", None, 91660),
        ("claude-opus-5", "failure", "529 overloaded", 0),
    }
    assert {(row["tool"], row["status"], row["error"]) for row in tables["tool_calls"]} == {
        ("Bash", "success", None),
        ("Edit", "failure", "no such file"),
    }


@HISTORIES.test
def test_flat_names_mean_nothing_on_the_spans_of_others(log: LogFolder) -> Steps:
    tables = yield from ingested(log, chat(1, 1, AT, success=False, error="x", model="y", input_tokens=5))
    [call] = tables["model_calls"]
    assert (call["status"], call["model"], call["input_tokens"]) == ("success", "m1", None)


# -- spans that have not ended -----------------------------------------------------------------------------------------


@HISTORIES.test
@pytest.mark.parametrize("end", [None, "0", 0])
def test_a_span_without_an_end_runs_still_and_counts_once_it_has_one(log: LogFolder, end: Any) -> Steps:
    running = {**agent(1, 1, AT, runtime_s=60), "endTimeUnixNano": end}
    tables = yield from ingested(log, running, chat(1, 2, AT, 1))
    assert (tables["executions"], len(tables["model_calls"])) == ([], 1)
    assert [row["remark"] for row in tables["spans"] if row["span_id"].endswith("1")] == ["no end"]
    text = "span without an end in these hours, which counts once a log has its end"
    assert told(log).unused == {text: 1}
    write(log, "later.jsonl", agent(1, 1, AT, runtime_s=60))
    yield
    assert [row["runtime_s"] for row in log.rows("executions")] == [60.0]
    assert [row["agent_id"] for row in log.rows("model_calls")] == ["planner"]
    assert told(log).unused == {"span that came more than once": 1}


@HISTORIES.test
def test_a_span_that_ended_at_once_counts_whichever_file_comes_last(log: LogFolder) -> Steps:
    ended = agent(1, 1, AT, runtime_s=0)
    write(log, "a.jsonl", ended)
    write(log, "b.jsonl", {**ended, "endTimeUnixNano": "0"})
    yield
    assert len(log.rows("executions")) == 1


# -- tokens --------------------------------------------------------------------------------------------------------------

READ = "gen_ai__usage__cache_read__input_tokens"
ADDED = "input_tokens without the cached ones, which were added, as its provider counts"
BY_TOTAL = "input_tokens without the cached ones, which were added, as its total of tokens counts"
IMPOSSIBLE = "more cached tokens than input_tokens, left as they are"
TOKENS: list[tuple[dict[str, Any], int, str | None]] = [
    ({READ: 80}, 100, None),
    ({READ: 80, "gen_ai__usage__cache_write__input_tokens": 20}, 100, None),
    ({READ: 80, "gen_ai__usage__cache_write__input_tokens": 30, "gen_ai__provider__name": "anthropic"}, 210, ADDED),
    ({READ: 80, "gen_ai__usage__cache_creation__input_tokens": 30, "gen_ai__system": "aws.bedrock"}, 210, ADDED),
    ({"gen_ai__usage__cache_read_input_tokens": 500, "gen_ai__request__model": "claude-sonnet-4-5"}, 600, ADDED),
    ({"llm__token_count__prompt_details__cache_read": 500, "llm__provider": "anthropic"}, 600, ADDED),
    ({READ: 500, "gen_ai__provider__name": "openai"}, 100, IMPOSSIBLE),
    ({READ: 500}, 100, IMPOSSIBLE),
    ({READ: 80, "gen_ai__usage__output_tokens": 7, "gen_ai__usage__total_tokens": 187}, 180, BY_TOTAL),
    ({READ: 80, "gen_ai__usage__output_tokens": 7, "gen_ai__usage__total_tokens": 107}, 100, None),
    ({READ: 500, "gen_ai__system": "openai", "llm__token_count__total": 600}, 600, BY_TOTAL),
    ({READ: 500, "gen_ai__system": "openai", "llm__usage__total_tokens": 100}, 100, IMPOSSIBLE),
]


@HISTORIES.test
@pytest.mark.parametrize(("values", "expected", "remark"), TOKENS)
def test_input_tokens_hold_the_cached_ones_whoever_wrote_them(
    log: LogFolder, values: dict[str, Any], expected: int, remark: str | None
) -> Steps:
    tables = yield from ingested(log, chat(1, 1, AT, gen_ai__usage__input_tokens=100, **values))
    assert [row["input_tokens"] for row in tables["model_calls"]] == [expected]
    assert [row["remark"] for row in tables["spans"]] == [remark]
    cached = [value for name, value in values.items() if "cache_read" in name]
    assert [tables["spans"][0]["cache_read_tokens"]] == cached
    warnings = [one for one in told(log).warnings if "tokens" in one]
    assert warnings == ([f"1 span: {remark}"] if remark else [])


REASONING = "gen_ai__usage__reasoning__output_tokens"
REASONING_ADDED = "output_tokens without the reasoning ones, which were added, as its provider counts"
REASONING_BY_TOTAL = "output_tokens without the reasoning ones, which were added, as its total of tokens counts"
IMPOSSIBLE_REASONING = "more reasoning tokens than output_tokens, left as they are"
TOTAL = "gen_ai__usage__total_tokens"


@HISTORIES.test
@pytest.mark.parametrize(
    ("values", "expected", "remark"),
    [
        ({REASONING: 7}, 20, None),
        ({REASONING: 7, TOTAL: 120}, 20, None),
        ({REASONING: 7, TOTAL: 127}, 27, REASONING_BY_TOTAL),
        ({REASONING: 50, "gen_ai__provider__name": "gcp.gemini"}, 70, REASONING_ADDED),
        ({REASONING: 50, "gen_ai__request__model": "gemini-2.5-pro"}, 70, REASONING_ADDED),
        ({REASONING: 50, "gen_ai__provider__name": "openai"}, 20, IMPOSSIBLE_REASONING),
        ({REASONING: 7, READ: 80, TOTAL: 200}, 20, BY_TOTAL),
        ({REASONING: 7, READ: 80, TOTAL: 127}, 27, REASONING_BY_TOTAL),
    ],
)
def test_output_tokens_hold_those_of_reasoning_whoever_wrote_them(
    log: LogFolder, values: dict[str, Any], expected: int, remark: str | None
) -> Steps:
    used = {"gen_ai__usage__input_tokens": 100, "gen_ai__usage__output_tokens": 20}
    tables = yield from ingested(log, chat(1, 1, AT, **used, **values))
    [call] = tables["model_calls"]
    assert (call["output_tokens"], call["reasoning_tokens"]) == (expected, values[REASONING])
    assert [row["remark"] for row in tables["spans"]] == [remark]


@HISTORIES.test
def test_tokens_beyond_any_number_stop_nothing(log: LogFolder) -> Steps:
    used = {"gen_ai__usage__input_tokens": 2**63 - 1, "gen_ai__usage__output_tokens": 2**63 - 1}
    parts = {READ: 2**63 - 1, "gen_ai__usage__cache_write__input_tokens": 2**63 - 1, REASONING: 2**63 - 1}
    tables = yield from ingested(
        log, chat(1, 1, AT, **used, **parts, **{TOTAL: 2**63 - 1, "gen_ai__system": "anthropic"})
    )
    assert len(tables["model_calls"]) == 1


@HISTORIES.test
def test_the_tokens_of_semantic_kernel_are_read_by_its_own_names(log: LogFolder) -> Steps:
    own = {"gen_ai__response__prompt_tokens": 12, "gen_ai__response__completion_tokens": 3}
    named = {"name": "chat.completions gpt-4o", "gen_ai__operation__name": "chat.completions"}
    tables = yield from ingested(log, span(1, 1, AT, gen_ai__request__model="gpt-4o", **named, **own))
    [call] = tables["model_calls"]
    assert (call["model"], call["input_tokens"], call["output_tokens"]) == ("gpt-4o", 12, 3)
