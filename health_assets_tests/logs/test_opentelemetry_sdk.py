"""Lines that the real OpenTelemetry SDK writes, with GenAI attributes and with those of OpenInference.

The SDK's own exporter to OTLP-JSON files writes them; what the tables say is compared with what the SDK's spans say.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from openinference.semconv.trace import OpenInferenceSpanKindValues, SpanAttributes
from opentelemetry import trace
from opentelemetry.exporter.otlp.json.file.trace_exporter import FileSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import error_attributes, gen_ai_attributes
from opentelemetry.trace import Status, StatusCode

from health_assets.core.hours import HOUR, HourRange, floor_hour
from health_assets_tests.support.projects import Project, Row

GenAi = gen_ai_attributes
Operation = gen_ai_attributes.GenAiOperationNameValues


class Instrumented:
    """A program with an agent: its tracer, and the spans that it ended."""

    def __init__(self, path: Path, *, one_span_a_line: bool) -> None:
        self.provider = TracerProvider(resource=Resource.create({"service.name": "helpdesk"}))
        processor = SimpleSpanProcessor if one_span_a_line else BatchSpanProcessor
        self.provider.add_span_processor(processor(FileSpanExporter(path)))
        self._memory = InMemorySpanExporter()
        self.provider.add_span_processor(SimpleSpanProcessor(self._memory))
        self.tracer = self.provider.get_tracer("a test")

    def ended(self, name: str) -> ReadableSpan:
        [found] = [span for span in self._memory.get_finished_spans() if span.name == name]
        return found


@contextmanager
def instrumented(project: Project, *, one_span_a_line: bool = False) -> Iterator[Instrumented]:
    program = Instrumented(project.raw / "traces.jsonl", one_span_a_line=one_span_a_line)
    yield program
    program.provider.shutdown()


def ingested(project: Project, *more: str) -> dict[str, list[Row]]:
    now = floor_hour(datetime.now(UTC))
    project.ingest(HourRange(now - HOUR, now + 2 * HOUR))
    return project.tables(names=["executions", "model_calls", "spans", "rejected_records", *more])


def id_of(span: ReadableSpan) -> str:
    return f"{trace.format_trace_id(span.context.trace_id)}:{trace.format_span_id(span.context.span_id)}"


def moment(nanoseconds: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=nanoseconds // 1000)


@pytest.mark.parametrize("one_span_a_line", [False, True])
def test_an_instrumented_agent_becomes_an_execution_with_its_calls_and_actions(
    project: Project, one_span_a_line: bool
) -> None:
    with instrumented(project, one_span_a_line=one_span_a_line) as program:
        agent_attributes = {
            GenAi.GEN_AI_OPERATION_NAME: Operation.INVOKE_AGENT.value,
            GenAi.GEN_AI_AGENT_NAME: "triage",
            GenAi.GEN_AI_AGENT_ID: "asst_5",
            GenAi.GEN_AI_CONVERSATION_ID: "conversation 7",
        }
        chat_attributes = {
            GenAi.GEN_AI_OPERATION_NAME: Operation.CHAT.value,
            GenAi.GEN_AI_REQUEST_MODEL: "gpt-4o",
            GenAi.GEN_AI_RESPONSE_MODEL: "gpt-4o-2024-08-06",
            GenAi.GEN_AI_USAGE_INPUT_TOKENS: 120,
            GenAi.GEN_AI_USAGE_OUTPUT_TOKENS: 12,
            GenAi.GEN_AI_REQUEST_TEMPERATURE: 0.5,
            GenAi.GEN_AI_RESPONSE_FINISH_REASONS: ["stop"],
        }
        tool_attributes = {GenAi.GEN_AI_OPERATION_NAME: Operation.EXECUTE_TOOL.value}
        with (
            program.tracer.start_as_current_span("GET /ticket"),
            program.tracer.start_as_current_span("invoke_agent triage", attributes=agent_attributes),
        ):
            with program.tracer.start_as_current_span("chat gpt-4o", attributes=chat_attributes):
                pass
            for name in ["lookup", "reply"]:
                with program.tracer.start_as_current_span(
                    f"execute_tool {name}", attributes={**tool_attributes, GenAi.GEN_AI_TOOL_NAME: name}
                ):
                    pass
    tables = ingested(project)
    agent, chat = program.ended("invoke_agent triage"), program.ended("chat gpt-4o")
    [execution] = tables["executions"]
    assert execution["execution_id"] == id_of(agent)
    assert (execution["agent_id"], execution["session_id"]) == ("triage", "conversation 7")
    assert (execution["started_at"], execution["ended_at"]) == (moment(agent.start_time), moment(agent.end_time))
    assert (execution["status"], execution["succeeded"], execution["error"]) == ("success", True, None)
    assert (execution["actions"], execution["action_count"]) == (["lookup", "reply"], 2)
    assert execution["model"] == "gpt-4o"
    [call] = tables["model_calls"]
    assert (call["call_id"], call["execution_id"], call["agent_id"]) == (id_of(chat), id_of(agent), "triage")
    assert (call["model"], call["response_model"], call["status"], call["ended_at"]) == (
        "gpt-4o",
        "gpt-4o-2024-08-06",
        "success",
        moment(chat.end_time),
    )
    assert call["latency_ms"] == pytest.approx((chat.end_time - chat.start_time) / 1e6, abs=0.002)
    assert [row["kind"] for row in sorted(tables["spans"], key=lambda row: row["started_at"])] == [
        "other", "agent", "chat", "tool", "tool",
    ]  # fmt: skip
    assert {(row["input_tokens"], row["output_tokens"]) for row in tables["spans"] if row["kind"] == "chat"} == {
        (120, 12)
    }
    assert tables["rejected_records"] == []


def test_an_exception_in_the_agent_and_an_error_of_the_model_are_failures(project: Project) -> None:
    agent = {GenAi.GEN_AI_OPERATION_NAME: "invoke_agent", GenAi.GEN_AI_AGENT_ID: "asst_5"}
    call = {GenAi.GEN_AI_OPERATION_NAME: "chat", GenAi.GEN_AI_REQUEST_MODEL: "gpt-4o"}
    with (
        instrumented(project) as program,
        pytest.raises(ValueError, match="no such ticket"),
        program.tracer.start_as_current_span("agent", attributes=agent),
    ):
        with program.tracer.start_as_current_span("chat 1", attributes=call) as span:
            span.set_status(Status(StatusCode.ERROR, "try again later"))
            span.set_attribute(error_attributes.ERROR_TYPE, "RateLimitError")
        raise ValueError("no such ticket")
    tables = ingested(project)
    [execution], [call_row] = tables["executions"], tables["model_calls"]
    assert (execution["agent_id"], execution["status"]) == ("asst_5", "failure")
    assert execution["error"] == "ValueError: no such ticket"
    assert (call_row["status"], call_row["error"]) == ("failure", "RateLimitError: try again later")
    assert (call_row["model"], execution["model"]) == ("gpt-4o", "gpt-4o")


def test_the_openinference_conventions_are_understood(project: Project) -> None:
    Kind = OpenInferenceSpanKindValues
    with instrumented(project) as program:
        chain = {SpanAttributes.OPENINFERENCE_SPAN_KIND: Kind.CHAIN.value}
        agent = {
            SpanAttributes.OPENINFERENCE_SPAN_KIND: Kind.AGENT.value,
            SpanAttributes.AGENT_NAME: "researcher",
            SpanAttributes.SESSION_ID: "session 3",
        }
        model = {
            SpanAttributes.OPENINFERENCE_SPAN_KIND: Kind.LLM.value,
            SpanAttributes.LLM_MODEL_NAME: "claude-sonnet",
            SpanAttributes.LLM_TOKEN_COUNT_PROMPT: 50,
            SpanAttributes.LLM_TOKEN_COUNT_COMPLETION: 5,
            SpanAttributes.LLM_COST_TOTAL: 0.25,
        }
        tool = {SpanAttributes.OPENINFERENCE_SPAN_KIND: Kind.TOOL.value, SpanAttributes.TOOL_NAME: "web search"}
        retriever = {SpanAttributes.OPENINFERENCE_SPAN_KIND: Kind.RETRIEVER.value}
        with (
            program.tracer.start_as_current_span("LangGraph", attributes=chain),
            program.tracer.start_as_current_span("agent", attributes=agent),
        ):
            for number, attributes in enumerate([model, tool, retriever, model]):
                with program.tracer.start_as_current_span(f"step {number}", attributes=attributes):
                    pass
    tables = ingested(project)
    [execution] = tables["executions"]
    assert execution["execution_id"] == id_of(program.ended("agent"))
    assert (execution["agent_id"], execution["session_id"], execution["model"]) == (
        "researcher",
        "session 3",
        "claude-sonnet",
    )
    assert (execution["actions"], execution["cost_usd"]) == (["web search"], 0.5)
    assert {row["call_id"] for row in tables["model_calls"]} == {
        id_of(program.ended("step 0")),
        id_of(program.ended("step 3")),
    }
    assert {row["convention"] for row in tables["spans"]} == {"openinference"}
    kinds = {row["name"]: row["kind"] for row in tables["spans"]}
    assert (kinds["LangGraph"], kinds["step 2"]) == ("other", "retrieval")


def test_an_agent_without_a_name_goes_by_its_service(project: Project) -> None:
    with instrumented(project) as program:
        program.tracer.start_span("invoke_workflow", attributes={GenAi.GEN_AI_OPERATION_NAME: "invoke_workflow"}).end()
    assert [row["agent_id"] for row in ingested(project)["executions"]] == ["helpdesk"]


def test_the_program_on_the_page_tells_its_runs_its_crash_its_tool_its_tokens_and_its_session(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "opentelemetry.md").read_text(encoding="utf-8")
    [program] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(project.raw)
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, timeout=60)

    tables = ingested(project, "tool_calls")
    runs = sorted(tables["executions"], key=lambda row: row["started_at"])
    assert [row["status"] for row in runs] == ["success", "success", "failure"]
    told = ("agent_id", "agent_version", "session_id", "model", "actions", "input_tokens", "output_tokens")
    expected = ("weather-agent", "1.2.0", "chat-42", "small-1", ["get_weather"], 100, 10)
    assert [tuple(row[name] for name in told) for row in runs] == [expected] * 3
    assert [row["error"] for row in runs] == [None, None, "ValueError: no such city"]
    calls = sorted(tables["tool_calls"], key=lambda row: row["ended_at"])
    assert [(row["tool"], row["status"]) for row in calls] == [("get_weather", status) for status in
                                                               ("success", "success", "failure")]  # fmt: skip
    assert tables["rejected_records"] == []
