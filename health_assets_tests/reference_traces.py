"""Executions and model calls that follow from spans, in plain Python: the contract's section 7, hour by hour.

It shares nothing with the product: it reads the files itself, and walks from span to span.
"""

import gzip
import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

Span = dict[str, Any]
Row = dict[str, Any]
AGENT_OPERATIONS = ("invoke_agent", "invoke_workflow")
CHAT_OPERATIONS = ("chat", "text_completion", "generate_content")


def spans_below(raw: Path) -> list[Span]:
    """Every span of the raw logs; lines that are no OTLP-JSON are passed over."""
    spans = []
    for path in sorted(raw.rglob("*.jsonl*")):
        content = path.read_bytes()
        text = (gzip.decompress(content) if path.name.endswith(".gz") else content).decode()
        for number, line in enumerate(text.split("\n"), 1):
            if line.startswith('{"resourceSpans"'):
                spans += [
                    {**one, "file": path.relative_to(raw).as_posix(), "line": number}
                    for one in spans_of(json.loads(line))
                ]
    return spans


def spans_of(line: dict[str, Any]) -> Iterator[Span]:
    for resource_place, resource in enumerate(line["resourceSpans"]):
        service = values_of(resource.get("resource", {})).get("service.name")
        for scope_place, scope in enumerate(resource["scopeSpans"]):
            for place, one in enumerate(scope["spans"]):
                yield cleaned(one, service, f"{resource_place}.{scope_place}.{place}")


def values_of(owner: dict[str, Any]) -> dict[str, str]:
    values = {}
    for attribute in owner.get("attributes", []):
        for kind, value in attribute["value"].items():
            if kind in ("stringValue", "intValue", "doubleValue"):
                values[attribute["key"]] = str(value)
    return {key: value for key, value in values.items() if value}


def cleaned(one: dict[str, Any], service: str | None, position: str) -> Span:
    values = values_of(one)
    operation = values.get("gen_ai.operation.name")
    code = one.get("status", {}).get("code", 0)
    failed = code in (2, "STATUS_CODE_ERROR") or "error.type" in values
    texts = [text for text in (values.get("error.type"), one.get("status", {}).get("message")) if text]
    ended_at = moment(one["endTimeUnixNano"])
    return {
        "trace": one["traceId"].lower(),
        "id": one["spanId"].lower(),
        "parent": (one.get("parentSpanId") or "").lower() or None,
        "position": position,
        "kind": "agent"
        if operation in AGENT_OPERATIONS
        else "chat"
        if operation in CHAT_OPERATIONS
        else "tool"
        if operation == "execute_tool"
        else "other",
        "agent": values.get("gen_ai.agent.name") or values.get("gen_ai.agent.id") or service or "unknown_service",
        "session": values.get("gen_ai.conversation.id") or values.get("session.id"),
        "model": values.get("gen_ai.response.model") or values.get("gen_ai.request.model"),
        "tool": values.get("gen_ai.tool.name"),
        "cost": float(values["gen_ai.usage.cost"]) if "gen_ai.usage.cost" in values else None,
        "started_at": moment(one["startTimeUnixNano"]),
        "ended_at": ended_at,
        "hour": ended_at.replace(minute=0, second=0, microsecond=0),
        "status": "failure" if failed else "success",
        "error": ": ".join(texts) or None if failed else None,
    }


def moment(nanoseconds: str) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(nanoseconds) // 1000)


def records(spans: Sequence[Span], hours: Iterable[datetime], lookback_hours: int) -> tuple[list[Row], list[Row]]:
    """The executions and model calls of these hours; those with one id in one hour are not yet compared."""
    executions: list[Row] = []
    calls: list[Row] = []
    for hour in hours:
        reach = timedelta(hours=lookback_hours)
        seen = [one for one in spans if hour - reach <= one["hour"] <= hour + reach]
        traces: dict[str, list[Span]] = {}
        for one in seen:
            traces.setdefault(one["trace"], []).append(one)
        for trace in traces.values():
            found, called = records_of_trace(trace)
            executions += [row for row in found if row["hour"] == hour]
            calls += [row for row in called if row["hour"] == hour]
    return executions, calls


def records_of_trace(trace: Sequence[Span]) -> tuple[list[Row], list[Row]]:
    spans: dict[str, Span] = {}
    for one in sorted(trace, key=lambda one: (one["ended_at"], one["file"], one["line"], one["position"])):
        spans[one["id"]] = one
    parent_of = {one["id"]: one["parent"] if one["parent"] in spans else None for one in spans.values()}
    for start in spans:
        circle = circle_from(start, parent_of)
        if circle:
            parent_of[min(circle, key=lambda name: (spans[name]["started_at"], name))] = None

    def above(name: str) -> list[Span]:
        parent = parent_of[name]
        return [] if parent is None else [spans[parent], *above(parent)]

    def execution_of(one: Span) -> Span | None:
        agents = [other for other in [one, *above(one["id"])] if other["kind"] == "agent"]
        return agents[-1] if agents else None

    chats = [one for one in spans.values() if one["kind"] == "chat"]
    wrappers = {other["id"] for one in chats for other in above(one["id"]) if other["kind"] == "chat"}
    leaves = [one for one in chats if one["id"] not in wrappers]
    executions = []
    for one in spans.values():
        if one["kind"] != "agent" or execution_of(one) is not one:
            continue
        own_tools = [other for other in spans.values() if other["kind"] == "tool" and execution_of(other) is one]
        own_calls = sorted(
            (other for other in leaves if execution_of(other) is one),
            key=lambda other: (other["ended_at"], other["id"]),
        )
        models = {other["model"] for other in own_calls if other["model"]}
        costs = [other["cost"] for other in own_calls if other["cost"] is not None]
        own_tools.sort(key=lambda other: (other["started_at"], other["ended_at"], other["id"]))
        executions.append(
            row_of(one)
            | {
                "execution_id": f"{one['trace']}:{one['id']}",
                "agent_id": one["agent"],
                "session_id": one["session"],
                "started_at": one["started_at"],
                "succeeded": one["status"] == "success",
                "runtime_s": (one["ended_at"] - one["started_at"]) / timedelta(seconds=1),
                "model": one["model"] or (models.pop() if len(models) == 1 else None),
                "cost_usd": one["cost"] if one["cost"] is not None else sum(costs) if costs else None,
                "actions": [other["tool"] for other in own_tools] or None,
                "action_count": len(own_tools) or None,
            }
        )
    calls = []
    for one in leaves:
        if one["model"] is None:
            continue
        execution = execution_of(one)
        calls.append(
            row_of(one)
            | {
                "call_id": f"{one['trace']}:{one['id']}",
                "model": one["model"],
                "agent_id": execution and execution["agent"],
                "execution_id": execution and f"{execution['trace']}:{execution['id']}",
                "latency_ms": (one["ended_at"] - one["started_at"]) / timedelta(milliseconds=1),
            }
        )
    return executions, calls


def circle_from(start: str, parent_of: dict[str, str | None]) -> list[str]:
    """The circle that the way up from here leads into, if it leads into one."""
    path: list[str] = []
    name: str | None = start
    while name is not None and name not in path:
        path.append(name)
        name = parent_of[name]
    return [] if name is None else path[path.index(name) :]


def row_of(one: Span) -> Row:
    return {
        "hour": one["hour"],
        "source_file": one["file"],
        "line_number": one["line"],
        "ended_at": one["ended_at"],
        "status": one["status"],
        "error": one["error"],
        "span_id": one["id"],
    }
