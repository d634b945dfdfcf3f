"""OpenTelemetry logs as coding agents write them: made by hand after recorded ones, with values that tests expect."""

import json
from collections.abc import Iterable
from typing import Any

from health_assets_tests.support.coding_sessions_made import SESSION, ZERO, at

Record = dict[str, Any]
ZERO_NS = int(ZERO.timestamp()) * 10**9
SCOPES = {"claude_code": "com.anthropic.claude_code.events", "codex": "codex_otel.log_only", "gemini_cli": "gemini-cli"}
SERVICES = {
    "claude_code": {"service.name": "claude-code", "service.version": "2.1.197"},
    "codex": {"service.name": "codex_exec", "service.version": "0.171.0"},
    "gemini_cli": {"service.name": "gemini-cli", "service.version": "v20.20.2", "process.owner": "ada"},
}


def value(of: Any) -> Record:
    """A value as the SDK of JavaScript writes it."""
    kinds = {bool: "boolValue", int: "intValue", float: "doubleValue", str: "stringValue"}
    return {} if of is None else {kinds[type(of)]: of}


def attributes(values: Record) -> list[Record]:
    return [{"key": key, "value": value(of)} for key, of in values.items()]


def without(record: Record, *names: str) -> Record:
    """A log record without these attributes."""
    return record | {"attributes": [one for one in record["attributes"] if one["key"] not in names]}


def claude(name: str, seconds: float, prompt_id: str | None = "p-1", **values: Any) -> Record:
    """A log record of Claude Code, which has the event's whole name in its body alone."""
    prompt = {} if prompt_id is None else {"prompt.id": prompt_id}
    own = {
        "user.id": "installation-7", "user.email": "ada@orchard.example", "session.id": SESSION, "event.name": name,
        "event.timestamp": at(seconds), "event.sequence": int(seconds * 10), **prompt,
    }  # fmt: skip
    nanoseconds = str(ZERO_NS + int(seconds * 10**9))
    return {
        "timeUnixNano": nanoseconds, "observedTimeUnixNano": nanoseconds, "body": value(f"claude_code.{name}"),
        "attributes": attributes(own | {key.replace("__", "."): of for key, of in values.items()}),
    }  # fmt: skip


def claude_request(seconds: float, request_id: str, prompt: str | None = "p-1", **values: Any) -> Record:
    usage = {"input_tokens": 3, "output_tokens": 40, "cache_read_tokens": 100, "cache_creation_tokens": 50}
    own = {"model": "claude-sonnet-4-6", "duration_ms": 900, "request_id": request_id, "cost_usd": 0.002,
           "query_source": "repl_main_thread"}  # fmt: skip
    return claude("api_request", seconds, prompt, **usage, **own | values)


def claude_text(seconds: float, request_id: str, prompt: str | None = "p-1", **values: Any) -> Record:
    own = {"response": "The comma is mended.", "request_id": request_id, "query_source": "repl_main_thread"}
    return claude("assistant_response", seconds, prompt, **own | values)


def claude_tool(seconds: float, call_id: str, prompt: str | None = "p-1", **values: Any) -> Record:
    arguments = '{"command": "make test"}'
    own = {"tool_name": "Bash", "tool_use_id": call_id, "success": "true", "duration_ms": "250",
           "tool_input": arguments, "tool_input_size_bytes": str(len(arguments))}  # fmt: skip
    return claude("tool_result", seconds, prompt, **own | values)


def claude_decision(
    seconds: float, call_id: str, decision: str = "accept", prompt: str | None = "p-1", tool_name: str = "Bash"
) -> Record:
    own = {"decision": decision, "source": "config", "tool_name": tool_name, "tool_use_id": call_id}
    return claude("tool_decision", seconds, prompt, **own)


CLAUDE = [
    [
        claude("user_prompt", 0, prompt="Mend it.", prompt_length="8"),
        claude_request(1, "req_title", query_source="generate_session_title"),
        claude_decision(2, "toolu_1"),  # a tool begins while the answer that asks for it is written
        claude_request(2.1, "req_1"),
        claude_tool(3, "toolu_1"),
        claude_request(4, "req_sub", query_source="agent:builtin:general-purpose"),
    ],
    [
        claude_decision(4.5, "toolu_2"),
        claude_tool(5, "toolu_2", success="false", error_type="ShellError", error="make: hunter"),
        claude_request(6, "req_2"),
        claude_text(6.1, "req_2"),
        claude("user_prompt", 10, "p-2", command_name="quit"),
        claude("user_prompt", 20, "p-3"),
        claude("api_error", 21, "p-3", model="claude-sonnet-4-6[1m]", error="Overloaded", status_code=529,
               duration_ms=12, request_id="req_3", query_source="repl_main_thread"),
        claude("user_prompt", 30, "p-4"),
        claude_request(31, "req_4", "p-4"),
        claude_decision(32, "toolu_3", "reject", "p-4"),
        claude("user_prompt", 40, "p-5"),
        claude_request(41, "req_5", "p-5"),
        claude_decision(42, "toolu_4", prompt="p-5"),
    ],
]  # fmt: skip
"""Lines of a session: a turn with two tools, a command, one that failed, one whose tool was refused, one that runs."""


CONVERSATION = "019a0000-0000-7000-8000-00000000000c"


def codex(name: str, seconds: float, **values: Any) -> Record:
    """A log record of Codex, whose own time is 0."""
    own = {"event.name": f"codex.{name}", "event.timestamp": at(seconds), "conversation.id": CONVERSATION,
           "app.version": "0.171.0", "model": "gpt-5", "user.email": "ada@orchard.example"}  # fmt: skip
    return {
        "timeUnixNano": "0", "observedTimeUnixNano": str(ZERO_NS + int(seconds * 10**9) + 7), "severityNumber": 9,
        "body": None, "traceId": "", "spanId": "", "eventName": "event otel/src/events/session.rs:737",
        "attributes": attributes(own | {key.replace("__", "."): of for key, of in values.items()}),
    }  # fmt: skip


def codex_request(seconds: float, status: int = 200) -> Record:
    failed = {} if status == 200 else {"error__message": f"http {status}"}
    return codex("api_request", seconds, duration_ms="100", http__response__status_code=status, attempt=0,
                 endpoint="/responses", **failed)  # fmt: skip


def codex_answer(seconds: float) -> list[Record]:
    """The end of an answer, which is told twice, and its tokens once."""
    tokens = {"input_token_count": "200", "output_token_count": "30", "cached_token_count": 50,
              "cache_write_token_count": 0, "reasoning_token_count": 5}  # fmt: skip
    return [
        codex("sse_event", seconds, event__kind="response.completed", duration_ms="0"),
        codex("sse_event", seconds, event__kind="response.completed", **tokens),
    ]


def codex_tool(seconds: float, call_id: str, code: int | None = 0, decision: str = "approved") -> list[Record]:
    output = f"Wall time: 0.5 seconds\nProcess exited with code {code}\nOutput:\nProcess exited with code 7\n"
    is_ok = "true" if decision == "approved" else "false"
    own = {"tool_name": "exec_command", "call_id": call_id}
    return [
        codex("tool_decision", seconds - 0.5, decision=decision, source="Config", **own),
        codex(
            "tool_result", seconds, duration_ms="500", success=is_ok, arguments='{"cmd": "make"}', output=output, **own
        ),
    ]


CODEX = [
    [
        codex("conversation_starts", 0, provider_name="OpenAI"),
        codex("user_prompt", 1, prompt="[REDACTED]", prompt_length="9"),
        codex_request(2),
        *codex_answer(3),
        *codex_tool(4, "call_1"),
        *codex_tool(5, "call_2", code=3),
        *codex_tool(6, "call_3", decision="denied"),
        codex_request(7),
        *codex_answer(8),
    ],
    [
        codex("user_prompt", 20, prompt="Mend it."),
        codex_request(21, 503),
        codex_request(22, 503),
        codex("user_prompt", 30, prompt="Mend it."),
        codex_request(31, 503),
        codex_request(32),
        *codex_answer(33),
        codex("user_prompt", 40, prompt="Mend it."),
        codex_request(41),
        *codex_answer(42),
        codex("tool_decision", 43, decision="approved", tool_name="exec_command", call_id="call_4"),
    ],
]  # fmt: skip
"""Lines of a conversation: a turn with tools, one that failed, one that was tried again, one that runs."""


CHAT = "c4a70000-0000-4000-8000-000000000001"


def gemini(name: str, seconds: float, turn: int | None = 0, **values: Any) -> Record:
    """A log record of Gemini CLI."""
    prompt = {} if turn is None else {"prompt_id": f"{CHAT}########{turn}"}
    own = {"session.id": CHAT, "user.email": "ada@orchard.example", "event.name": f"gemini_cli.{name}",
           "event.timestamp": at(seconds), **prompt}  # fmt: skip
    nanoseconds = str(ZERO_NS + int(seconds * 10**9))
    return {
        "timeUnixNano": nanoseconds, "observedTimeUnixNano": nanoseconds, "body": value("Something was done."),
        "traceId": "5ff9f6c732b8c24ba3589d9cbb031e55", "spanId": "5ff9f6c732b8c24b",
        "attributes": attributes(own | values),
    }  # fmt: skip


def gemini_answer(seconds: float, turn: int | None = 0, **values: Any) -> Record:
    own = {"model": "gemini-2.5-flash", "duration_ms": 800, "input_token_count": 300, "output_token_count": 25,
           "cached_content_token_count": 80, "thoughts_token_count": 6, "tool_token_count": 0, "status_code": 200,
           "role": "main"}  # fmt: skip
    return gemini("api_response", seconds, turn, **own | values)


def gemini_tool(seconds: float, turn: int = 0, **values: Any) -> Record:
    own = {"function_name": "run_shell_command", "duration_ms": 75, "success": True, "decision": "accept",
           "function_args": '{\n  "command": "make"\n}', "error": None}  # fmt: skip
    return gemini("tool_call", seconds, turn, **own | values)


GEMINI = [
    [
        gemini("config", 0, None, model="gemini-2.5-flash"),
        gemini("user_prompt", 1, 0, prompt="Mend it.", prompt_length=8),
        gemini("api_request", 1.5, 0, request_text="Mend it."),
        gemini_answer(2),
        gemini_tool(3),
        gemini_tool(4, success=False, error="no such file", error_type="invalid_tool_params"),
        gemini_answer(5),
        gemini("conversation_finished", 5.5, None, turnCount=2),
        gemini_answer(6, None, role="utility_summarizer", prompt_id="session-summary-generation"),
    ],
    [
        gemini("user_prompt", 20, 1),
        gemini("api_error", 21, 1, model="gemini-2.5-flash", error='{"error": "make"}', status_code=503, duration_ms=9,
               role="main"),
        gemini("user_prompt", 30, 2),
        gemini_answer(31, 2),
        gemini_tool(32, 2, success=False),  # its user stopped it
        gemini("conversation_finished", 33, None, turnCount=1),
        gemini("user_prompt", 40, 3),
        gemini_answer(41, 3),
    ],
]  # fmt: skip
"""Lines of a session: a turn with tools, one that failed, one that was stopped, one of which it is not known."""


def line(agent: str, records: Iterable[Record], *, scope: str | None = None) -> Record:
    """A line with these records of an agent."""
    scopes = [{"scope": {"name": scope or SCOPES[agent]}, "logRecords": list(records)}]
    return {"resourceLogs": [{"resource": {"attributes": attributes(SERVICES[agent])}, "scopeLogs": scopes}]}


SESSIONS = {
    "claude_code": [line("claude_code", records) for records in CLAUDE],
    "codex": [line("codex", records) for records in CODEX],
    "gemini_cli": [line("gemini_cli", records) for records in GEMINI],
}


def as_collected(written: Any) -> Any:
    """The same as a Collector writes it: whole numbers are texts."""
    if isinstance(written, dict):
        return {key: str(of) if key == "intValue" else as_collected(of) for key, of in written.items()}
    return [as_collected(one) for one in written] if isinstance(written, list) else written


def in_snake_case(written: str) -> str:
    """The same in the other spelling of Protobuf's JSON."""
    for name in ("resource_logs", "scope_logs", "log_records", "event_name", "time_unix_nano", "trace_id", "span_id",
                 "observed_time_unix_nano", "string_value", "int_value", "double_value", "bool_value"):  # fmt: skip
        first, *others = name.split("_")
        written = written.replace(f'"{first}{"".join(map(str.title, others))}"', f'"{name}"')
    return written


def dumped(lines: Iterable[Any]) -> bytes:
    return "".join(json.dumps(one) + "\n" for one in lines).encode()
