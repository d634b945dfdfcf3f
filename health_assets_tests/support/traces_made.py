"""Makes lines of OTLP-JSON by hand: single spans, whole lines, and random traces with everything odd in them."""

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from health_assets_tests.support.logs_made import START

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Span = dict[str, Any]


def trace_id(number: int) -> str:
    return f"{number:032x}"


def span_id(number: int) -> str:
    return f"{number:016x}"


def nanoseconds(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1) * 1000


def attributes(**values: Any) -> list[dict[str, Any]]:
    """Attributes as OTLP-JSON has them; two underscores in a name stand for a dot."""
    return [{"key": name.replace("__", "."), "value": any_value(value)} for name, value in values.items()]


def any_value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [any_value(item) for item in value]}}
    return {"stringValue": value}


def span(
    trace: int, number: int, ended_at: datetime, parent: int | None = None, runtime_s: float = 1.0, **values: Any
) -> Span:
    """A span that ended well; `status` is its status, the other values are attributes."""
    status = values.pop("status", {})
    made = {
        "traceId": trace_id(trace),
        "spanId": span_id(number),
        "name": values.pop("name", f"span {number}"),
        "kind": 1,
        "startTimeUnixNano": str(nanoseconds(ended_at - timedelta(seconds=runtime_s))),
        "endTimeUnixNano": str(nanoseconds(ended_at)),
        "attributes": attributes(**values),
        "status": status,
    }
    return made if parent is None else {**made, "parentSpanId": span_id(parent)}


def agent(trace: int, number: int, ended_at: datetime, parent: int | None = None, **values: Any) -> Span:
    own = {"gen_ai__operation__name": "invoke_agent", "gen_ai__agent__name": "planner"}
    return span(trace, number, ended_at, parent, **{"runtime_s": 30.0, **own, **values})


def workflow(trace: int, number: int, ended_at: datetime, parent: int | None = None, **values: Any) -> Span:
    own = {"gen_ai__operation__name": "invoke_workflow", "gen_ai__agent__name": "pipeline"}
    return span(trace, number, ended_at, parent, **{"runtime_s": 40.0, **own, **values})


def chat(trace: int, number: int, ended_at: datetime, parent: int | None = None, **values: Any) -> Span:
    return span(
        trace,
        number,
        ended_at,
        parent,
        **{"gen_ai__operation__name": "chat", "gen_ai__response__model": "m1", **values},
    )


def tool(trace: int, number: int, ended_at: datetime, parent: int | None = None, **values: Any) -> Span:
    own = {"gen_ai__operation__name": "execute_tool", "gen_ai__tool__name": "search"}
    return span(trace, number, ended_at, parent, **{**own, **values})


def otlp_line(*spans: Span, service: str | None = "shop") -> str:
    """A line with these spans, all of one resource and scope."""
    told = attributes(service__name=service, service__version=f"{service}-1", host__name="h1") if service else []
    resource = {"attributes": told} if service else {}
    scope = {"scope": {"name": "by hand"}, "spans": list(spans)}
    return json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}, ensure_ascii=False)


def in_snake_case(text: str) -> str:
    """A line with the keys of the protocol's own files, Protobuf's other spelling."""
    keys = ("resourceSpans", "scopeSpans", "traceId", "spanId", "parentSpanId", "startTimeUnixNano", "endTimeUnixNano",
            "stringValue", "intValue", "doubleValue", "boolValue", "arrayValue", "schemaUrl")  # fmt: skip
    for key in keys:
        snake = re.sub(r"([A-Z])", lambda found: f"_{found[1].lower()}", key)
        text = re.sub(rf'(?<!\\)"{key}"(\s*:)', rf'"{snake}"\1', text)
    return text


def random_spans(random: Random, traces: int, hours: int) -> list[Span]:
    """Spans of traces that reach over hours: nested agents, wrapped chats, lost parents, circles, odd attributes."""
    return [one for trace in range(1, traces + 1) for one in _random_trace(random, trace, hours)]


def _random_trace(random: Random, trace: int, hours: int) -> list[Span]:
    count = random.randrange(1, 9)
    first_hour = random.randrange(hours)
    width = random.choice([0, 0, 1, 2, hours])
    spans = []
    for number in range(1, count + 1):
        at = START + timedelta(
            hours=min(first_hour + random.randrange(width + 1), hours - 1), seconds=random.choice([0, 1800, 3599])
        )
        parent = random.choice([None, 99, *range(1, count + 1)]) if random.random() < 0.2 else random.randrange(number)
        make = random.choices([agent, chat, tool, span, workflow], [3, 4, 3, 2, 1])[0]
        spans.append(make(trace, number, at, parent or None, **_random_values(random)))
    return spans


def _random_values(random: Random) -> dict[str, Any]:
    possible: dict[str, Any] = {
        "status": random.choice([{"code": 2, "message": "broke"}, {"code": "STATUS_CODE_ERROR"}, {"code": 1}]),
        "error__type": random.choice(["TimeoutError", ""]),
        "gen_ai__agent__id": "asst_1",
        "gen_ai__conversation__id": random.choice(["c1", ""]),
        "session__id": "s1",
        "gen_ai__request__model": random.choice(["m1", "m2"]),
        "gen_ai__usage__cost": random.choice([0.1, 0.2, 0.3]),
        "runtime_s": random.choice([0.0, 0.000001, 5000.0]),
        "gen_ai__usage__input_tokens": random.choice([0, 7]),
        "gen_ai__usage__output_tokens": 11,
        "gen_ai__agent__version": random.choice(["1.0", "2.0"]),
        "gen_ai__agent__name": random.choice(["", "", "researcher"]),
        "gen_ai__response__model": "",
        "gen_ai__tool__name": "",
        "llm__invocation_parameters": random.choice(
            ['{"model": "m3"}', '{"model_name": "m4"}', '{"model', '["model"]']
        ),
        "metadata": random.choice(['{"lc_agent_name": "helper"}', '{"lc_agent_name": ""}', "lc_agent_name"]),
        "name": random.choice(["Ünïcode", "invoke_agent writer", "invoke_agent", "execute_tool look up", ""]),
    }
    return {name: value for name, value in possible.items() if random.random() < 0.2}


def in_lines(random: Random, spans: Sequence[Span]) -> list[str]:
    """The spans in an order of chance, a few of them a line, of several services."""
    waiting = random.sample(list(spans), len(spans))
    lines = []
    while waiting:
        count = random.randrange(1, 5)
        lines.append(otlp_line(*waiting[:count], service=random.choice(["shop", "desk", None])))
        del waiting[:count]
    return lines
