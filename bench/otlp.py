"""Traces as a collector writes them to a file, and the plain Python loop that an honest user writes over that file.

The loop reads a line with `json.loads`, keeps its spans in dictionaries, and walks down from each agent span. It trusts
every line: it rejects nothing, knows neither duplicates nor older names, and writes nothing.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from bench.fleet import HEADLINE_HOUR

SPANS_PER_TRACE = 10
SPANS_PER_LINE = 100
AGENTS = 500
MODELS = ("gpt-4o-2024-08-06", "claude-sonnet-4-5", "gemini-2.5-pro")
TOOLS = ("search", "read_file", "run_code", "send_mail")
HOUR_NS = 3600 * 10**9
CHATS = ("chat", "text_completion", "generate_content")

Span = dict[str, Any]


# -- the file --------------------------------------------------------------------------------------------------------


def write_traces(path: Path, traces: int) -> None:
    """Traces of one hour: an agent span, three chats with a request below each, three tools; 13 attributes a span."""
    random = Random(4)
    resource = {
        "attributes": _attributes({"service.name": "shop", "host.name": "h1", "telemetry.sdk.language": "python"})
    }
    spans: list[Span] = []
    with path.open("w", encoding="utf-8") as file:
        for number in range(traces):
            spans += _trace(random, number, traces)
            while len(spans) >= SPANS_PER_LINE or (spans and number == traces - 1):
                scope = {"scope": {"name": "opentelemetry.instrumentation.openai_v2"}, "spans": spans[:SPANS_PER_LINE]}
                line = {"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}
                file.write(json.dumps(line, separators=(",", ":")) + "\n")
                del spans[:SPANS_PER_LINE]


def _trace(random: Random, number: int, traces: int) -> Iterator[Span]:
    trace_id = f"{random.getrandbits(128) | 1:032x}"
    start = int(HEADLINE_HOUR.timestamp()) * 10**9 + int(number / traces * (HOUR_NS - 10 * 10**9))
    agent, model = f"agent-{random.randrange(AGENTS)}", random.choice(MODELS)
    everywhere = {"gen_ai.provider.name": "openai", "server.address": "api.openai.com", "server.port": 443}
    conversation = {"gen_ai.conversation.id": f"conversation-{number // 5}"}

    def span(parent: str | None, name: str, after_s: float, lasts_s: float, **values: Any) -> Span:
        own = {} if parent is None else {"parentSpanId": parent}
        failed = values.pop("failed", False)
        return {
            "traceId": trace_id, "spanId": f"{random.getrandbits(64) | 1:016x}", **own, "flags": 257, "name": name,
            "kind": 3, "startTimeUnixNano": str(start + int(after_s * 1e9)),
            "endTimeUnixNano": str(start + int((after_s + lasts_s) * 1e9)),
            "attributes": _attributes({**values["attributes"], **everywhere}),
            "status": {"code": 2, "message": "RateLimitError: try again later"} if failed else {},
        }  # fmt: skip

    root = span(None, f"invoke_agent {agent}", 0, 9, failed=number % 17 == 0, attributes={
        "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": agent, "gen_ai.agent.id": f"asst_{number}",
        "gen_ai.agent.description": "answers what customers ask", "gen_ai.request.model": model, **conversation,
        "gen_ai.usage.input_tokens": 1200, "gen_ai.usage.output_tokens": 300, "gen_ai.output.type": "text",
        "gen_ai.response.finish_reasons": ["stop"]})  # fmt: skip
    yield root
    for turn in range(3):
        chat = span(root["spanId"], f"chat {model}", 3 * turn, 2, attributes={
            "gen_ai.operation.name": "chat", "gen_ai.request.model": model, "gen_ai.response.model": model,
            "gen_ai.request.temperature": 0.7, "gen_ai.request.max_tokens": 1024, **conversation,
            "gen_ai.response.id": f"chatcmpl-{random.getrandbits(64):016x}",
            "gen_ai.response.finish_reasons": ["tool_calls"],
            "gen_ai.usage.input_tokens": number % 2000, "gen_ai.usage.output_tokens": number % 500})  # fmt: skip
        yield chat
        yield span(chat["spanId"], "POST", 3 * turn + 0.001, 1.9, attributes={
            "http.request.method": "POST", "url.full": "https://api.openai.com/v1/chat/completions",
            "http.response.status_code": 200, "network.protocol.version": "1.1", "network.peer.port": 443,
            "network.peer.address": "192.0.2.7", "user_agent.original": "OpenAI/Python 1.2.3",
            "http.request.body.size": 2048, "http.response.body.size": 512})  # fmt: skip
        tool = random.choice(TOOLS)
        yield span(root["spanId"], f"execute_tool {tool}", 3 * turn + 2, 0.9, attributes={
            "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool, "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": f"call_{random.getrandbits(64):016x}",
            "gen_ai.tool.description": "does what the model asks it to do", "thread.id": 12345,
            "thread.name": "MainThread", "code.function.name": "run", "code.line.number": 12})  # fmt: skip


def _attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": name, "value": _any_value(value)} for name, value in values.items()]


def _any_value(value: Any) -> dict[str, Any]:
    if isinstance(value, list):
        return {"arrayValue": {"values": [_any_value(item) for item in value]}}
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}


# -- what an honest user writes --------------------------------------------------------------------------------------


def loop(path: Path) -> dict[str, int]:
    """Executions, model calls and actions of the file as dictionaries; tells how many, to be compared."""
    spans: dict[tuple[str, str], Span] = {}
    children: dict[tuple[str, str | None], list[Span]] = {}
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            for resource in json.loads(line)["resourceSpans"]:
                service = _values(resource["resource"]).get("service.name")
                for scope in resource["scopeSpans"]:
                    for span in scope["spans"]:
                        span["values"], span["service"] = _values(span), service
                        spans[span["traceId"], span["spanId"]] = span
    for span in spans.values():
        children.setdefault((span["traceId"], span.get("parentSpanId")), []).append(span)
    executions: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    for span in spans.values():
        is_root = (span["traceId"], span.get("parentSpanId")) not in spans
        if is_root:
            _walk(span, None, children, executions, calls)
    return {
        "executions": len(executions),
        "failures": sum(execution["status"] == "failure" for execution in executions),
        "calls": len(calls),
        "actions": sum(len(execution["actions"]) for execution in executions),
        "runtime_us": sum(execution["runtime_us"] for execution in executions),
    }


def _values(owner: dict[str, Any]) -> dict[str, Any]:
    return {one["key"]: next(iter(one["value"].values())) for one in owner["attributes"]}


def _walk(
    span: Span,
    execution: dict[str, Any] | None,
    children: dict[tuple[str, str | None], list[Span]],
    executions: list[dict[str, Any]],
    calls: list[dict[str, Any]],
) -> None:
    values = span["values"]
    operation = values.get("gen_ai.operation.name")
    start, end = int(span["startTimeUnixNano"]) // 1000, int(span["endTimeUnixNano"]) // 1000
    own = {
        "id": f"{span['traceId']}:{span['spanId']}",
        "status": "failure" if span["status"].get("code") == 2 or values.get("error.type") else "success",
        "error": span["status"].get("message"),
        "ended_at_us": end,
        "runtime_us": end - start,
    }
    below = children.get((span["traceId"], span["spanId"]), [])
    if operation in ("invoke_agent", "invoke_workflow") and execution is None:
        agent_id = values.get("gen_ai.agent.name") or values.get("gen_ai.agent.id") or span["service"]
        session_id = values.get("gen_ai.conversation.id") or values.get("session.id")
        execution = {**own, "agent_id": agent_id, "session_id": session_id, "actions": []}
        executions.append(execution)
    elif operation in CHATS and not any(child["values"].get("gen_ai.operation.name") in CHATS for child in below):
        model = values.get("gen_ai.response.model") or values.get("gen_ai.request.model")
        calls.append({**own, "model": model, "execution_id": execution and execution["id"]})
    elif operation == "execute_tool" and execution is not None:
        execution["actions"].append(values.get("gen_ai.tool.name"))
    for child in sorted(below, key=lambda child: int(child["startTimeUnixNano"])):
        _walk(child, execution, children, executions, calls)
