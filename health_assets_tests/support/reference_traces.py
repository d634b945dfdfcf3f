"""Executions, model calls and tool calls that follow from spans, in plain Python: the contract's section 7.

It shares nothing with the product: it reads the files itself, and walks from span to span.
"""

import gzip
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

Span = dict[str, Any]
Row = dict[str, Any]
WORKFLOW_OPERATIONS = ("invoke_workflow", "handle_conversation_turn")
AGENT_OPERATIONS = ("invoke_agent", *WORKFLOW_OPERATIONS)
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
        service = values_of(resource.get("resource", {}))
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


def told_in_json(text: str | None, *names: str) -> str | None:
    try:
        told = json.loads(text or "{}")
    except ValueError:
        return None
    return next((str(told[name]) for name in names if told.get(name)), None) if isinstance(told, dict) else None


def own_name(name: str) -> str | None:
    for operation in (*AGENT_OPERATIONS, *CHAT_OPERATIONS, "execute_tool"):
        if name == operation or name.startswith(f"{operation} "):
            name = name[len(operation) :].strip()
            break
    return name or None


def agent_name(name: str, *models: str | None) -> str | None:
    own = own_name(name)
    return own if own not in models else None


def cleaned(one: dict[str, Any], service: dict[str, str], position: str) -> Span:
    values = values_of(one)
    operation = values.get("gen_ai.operation.name")
    names_agent = any(values.get(name) for name in ("gen_ai.agent.name", "gen_ai.agent.id", "agent.name"))
    if names_agent and one["name"].split(" ")[0] == "invoke_agent" and operation in (None, *CHAT_OPERATIONS):
        operation = "invoke_agent"  # two that agree outweigh the most general operation
    code = one.get("status", {}).get("code", 0)
    failed = code in (2, "STATUS_CODE_ERROR") or "error.type" in values
    texts = [text for text in (values.get("error.type"), one.get("status", {}).get("message")) if text]
    ended_at = moment(one["endTimeUnixNano"])
    model = (
        values.get("gen_ai.request.model")
        or told_in_json(values.get("llm.invocation_parameters"), "model", "model_name")
        or values.get("gen_ai.response.model")
    )
    return {
        "trace": one["traceId"].lower(),
        "id": one["spanId"].lower(),
        "parent": (one.get("parentSpanId") or "").lower() or None,
        "position": position,
        "kind": "workflow"
        if operation in WORKFLOW_OPERATIONS
        else "agent"
        if operation in AGENT_OPERATIONS
        else "chat"
        if operation in CHAT_OPERATIONS
        else "tool"
        if operation == "execute_tool"
        else "other",
        "named": values.get("gen_ai.agent.name")
        or values.get("gen_ai.agent.id")
        or values.get("agent.name")
        or told_in_json(values.get("metadata"), "lc_agent_name"),
        "agent": agent_name(one["name"], model, values.get("gen_ai.response.model"))
        or service.get("service.name")
        or "unknown_service",
        "service": service.get("service.name"),
        "version": values.get("gen_ai.agent.version"),
        "service_version": service.get("service.version"),
        "session": values.get("gen_ai.conversation.id") or values.get("session.id"),
        "model": model,
        "response_model": values.get("gen_ai.response.model"),
        "tool": values.get("gen_ai.tool.name") or own_name(one["name"]) or "unknown",
        **{name: int(values[key]) if key in values else None for name, key in TOKENS.items()},
        "cost": float(values["gen_ai.usage.cost"]) if "gen_ai.usage.cost" in values else None,
        "started_at": moment(one["startTimeUnixNano"]),
        "ended_at": ended_at,
        "hour": ended_at.replace(minute=0, second=0, microsecond=0),
        "status": "failure" if failed else "success",
        "error": ": ".join(texts) or None if failed else None,
    }


def moment(nanoseconds: str) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(nanoseconds) // 1000)


def records(spans: Sequence[Span], hours: Iterable[datetime], lookback_hours: int) -> tuple[list[Row], ...]:
    """The executions, model calls and tool calls of these hours; those with one id in one hour are not yet compared."""
    all_found: tuple[list[Row], ...] = ([], [], [])
    for hour in hours:
        reach = timedelta(hours=lookback_hours)
        seen = [one for one in spans if hour - reach <= one["hour"] <= hour + reach]
        traces: dict[str, list[Span]] = {}
        for one in seen:
            traces.setdefault(one["trace"], []).append(one)
        for trace in traces.values():
            for rows, found in zip(all_found, records_of_trace(trace), strict=True):
                rows += [row for row in found if row["hour"] == hour]
    return all_found


def records_of_trace(trace: Sequence[Span]) -> tuple[list[Row], list[Row], list[Row]]:
    spans: dict[str, Span] = {}
    for one in sorted(trace, key=lambda one: (one["ended_at"], one["file"], one["line"], one["position"])):
        key = f"{one['id']} {writer_of(one, trace)}"
        spans[key] = {**one, "key": key}
    parent_of = {one["key"]: parent_among(one, spans.values()) for one in spans.values()}
    for start in spans:
        circle = circle_from(start, parent_of)
        if circle:
            parent_of[min(circle, key=lambda name: (spans[name]["started_at"], name))] = None

    def above(name: str) -> list[Span]:
        parent = parent_of[name]
        return [] if parent is None else [spans[parent], *above(parent)]

    runs = [one for one in spans.values() if one["kind"] in ("agent", "workflow")]
    above_agents = {other["key"] for one in runs if one["kind"] == "agent" for other in above(one["key"])}
    passed = {one["key"] for one in runs if one["kind"] == "workflow" and one["key"] in above_agents}
    above_named = {other["key"] for one in runs if one["named"] and one["key"] not in passed
                   for other in above(one["key"])}  # fmt: skip
    passed |= {one["key"] for one in runs if not one["named"] and one["key"] in above_named}

    def is_wrapper(one: Span) -> bool:
        return one["key"] in passed

    def execution_of(one: Span) -> Span | None:
        agents = [other for other in [one, *above(one["key"])] if other in runs and not is_wrapper(other)]
        return agents[-1] if agents else None

    def name_of(one: Span) -> str:
        return one["named"] or one["agent"]

    found = [one for one in runs if execution_of(one) is one]
    told_below = {other["key"] for one in found if one["status"] == "failure" for other in above(one["key"])}

    def calls_of(kind: str, is_same: Callable[[Span, Span], bool]) -> list[Span]:
        own = [one for one in spans.values() if one["kind"] == kind]
        held: dict[str, list[Span]] = {}
        outer_of: dict[str, Span] = {}
        for one in own:
            nearest = next((other for other in above(one["key"]) if other["kind"] != "other"), None)
            if nearest and nearest["kind"] == kind and is_same(nearest, one):
                held.setdefault(nearest["key"], []).append(one)
                outer_of[one["key"]] = nearest
        return [with_what_is_around(one, held, outer_of) for one in own if one["key"] not in held]

    leaves = calls_of("chat", lambda _outer, _inner: True)
    tool_leaves = calls_of("tool", lambda outer, inner: outer["tool"] == inner["tool"])
    executions = []
    for one in found:
        wrappers = [other for other in above(one["key"]) if is_wrapper(other)]
        untold = [other for other in wrappers if other["status"] == "failure" and other["key"] not in told_below]
        failed = one if one["status"] == "failure" else untold[0] if untold else None
        own_tools = [other for other in tool_leaves if execution_of(other) is one]
        own_calls = sorted(
            (other for other in leaves if execution_of(other) is one),
            key=lambda other: (other["ended_at"], other["id"]),
        )
        answered, unanswered = (
            {other["model"] for other in own_calls if other["model"] and (other["status"] == "success") is is_good}
            for is_good in (True, False)
        )
        own_tools.sort(key=lambda other: (other["started_at"], other["ended_at"], other["id"]))
        executions.append(
            row_of(one)
            | {
                "execution_id": f"{one['trace']}:{one['id']}",
                "agent_id": name_of(one),
                "agent_version": first(one["version"], *(other["version"] for other in wrappers))
                or one["service_version"],
                "session_id": first(one["session"], *(other["session"] for other in wrappers)),
                "started_at": one["started_at"],
                "status": "failure" if failed else "success",
                "error": failed and failed["error"],
                "succeeded": failed is None,
                "runtime_s": (one["ended_at"] - one["started_at"]) / timedelta(seconds=1),
                "model": the_only(answered) or one["model"] or the_only(unanswered),
                "actions": [other["tool"] for other in own_tools] or None,
                "action_count": len(own_tools) or None,
            }
            | {
                column: one[name] if one[name] is not None else total(other[name] for other in own_calls)
                for name, column in AMOUNTS.items()
            }
            | {f"{column}_reported": one[name] for name, column in AMOUNTS.items()}
        )
    calls = []
    for one in leaves:
        row = call_row(one, execution_of(one), name_of)
        row |= {"model": one["model"] or "unknown", "response_model": one["response_model"]}
        calls.append(row | {column: one[name] for name, column in AMOUNTS.items()})
    tools = [call_row(one, execution_of(one), name_of) | {"tool": one["tool"]} for one in tool_leaves]
    return executions, calls, tools


TOKENS = {
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "cache_read_tokens": "gen_ai.usage.cache_read.input_tokens",
    "cache_creation_tokens": "gen_ai.usage.cache_creation.input_tokens",
    "reasoning_tokens": "gen_ai.usage.reasoning.output_tokens",
}
AMOUNTS = {"cost": "cost_usd", **{name: name for name in TOKENS}}


def with_what_is_around(leaf: Span, held: dict[str, list[Span]], outer_of: dict[str, Span]) -> Span:
    made, inner, is_last = dict(leaf), leaf, True
    while inner["key"] in outer_of:
        outer = outer_of[inner["key"]]
        siblings = held[outer["key"]]
        is_last = is_last and inner is max(siblings, key=lambda one: (one["ended_at"], one["id"], one["started_at"]))
        for name in ("model", "response_model"):
            made[name] = made[name] or outer[name]
        is_told = made["status"] == "failure" or any(one["status"] == "failure" for one in siblings)
        if is_last and outer["status"] == "failure" and not is_told:
            made |= {"status": "failure", "error": outer["error"]}
        for name in AMOUNTS:
            if is_last and made[name] is None and all(one[name] is None for one in siblings):
                made[name] = outer[name]
        inner = outer
    return made


def writer_of(one: Span, trace: Sequence[Span]) -> str:
    """The service that wrote a span; of a copy that names another one or none, that of the span that it repeats."""
    alike = [other for other in trace if other["id"] == one["id"] and other["service"]]
    at_once = [other for other in alike if other["started_at"] == one["started_at"]]
    return min((other["service"] for other in at_once or alike), default="")


def parent_among(one: Span, spans: Iterable[Span]) -> str | None:
    """Of spans of several services with the id of the parent that of the same service, else the last before it."""
    parents = [other for other in spans if other["id"] == one["parent"]]
    nearness = {
        other["key"]: (
            other["service"] == one["service"],
            other["started_at"] <= one["started_at"],
            other["started_at"],
        )
        for other in parents
    }
    return max(nearness, key=nearness.__getitem__, default=None)


def the_only(values: set[str]) -> str | None:
    return next(iter(values)) if len(values) == 1 else None


def first(*values: str | None) -> str | None:
    return next((value for value in values if value), None)


def total(values: Iterable[Any]) -> Any:
    """Costs add up in whole 10^-18 of a dollar, so that no order shows."""
    known = [value for value in values if value is not None]
    if not known or isinstance(known[0], int):
        return sum(known) if known else None
    return float(Decimal(sum(round(value * 1e18) for value in known)) / 10**18)


def call_row(one: Span, execution: Span | None, name_of: Callable[[Span], str]) -> Row:
    return row_of(one) | {
        "call_id": f"{one['trace']}:{one['id']}",
        "agent_id": name_of(execution) if execution else one["named"],
        "execution_id": execution and f"{execution['trace']}:{execution['id']}",
        "latency_ms": (one["ended_at"] - one["started_at"]) / timedelta(milliseconds=1),
    }


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
