"""Exports of observability tools as these write them: made by hand after recorded ones, with values that tests expect.

Each export has the same three runs of one agent: a success, a failure, and one that recovers from a failed tool.
"""

import base64
import json
from datetime import datetime
from typing import Any

from health_assets_tests.support.coding_sessions_made import ZERO, Record, at

SESSION = "chat-7"
TRACES = [f"{number:032x}" for number in (0xA1, 0xA2, 0xA3)]
STEPS = (("advisor", "agent", 0, 9), ("small-1", "model", 1, 3), ("get_soil", "tool", 3, 4.5))
"""Name, kind, start and end of the spans of a run."""


def steps(run: int) -> list[tuple[str, str, float, float, str | None, str | None]]:
    """Name, kind, start, end, error and parent of each span of a run."""
    failed = {1: {"advisor": "no such field", "get_soil": "no such field"}, 2: {"get_soil": "no such field"}}.get(
        run, {}
    )
    return [
        (name, kind, 60 * run + start, 60 * run + end, failed.get(name), None if kind == "agent" else span_id(run, "advisor"))
        for name, kind, start, end in STEPS
    ]  # fmt: skip


def span_id(run: int, name: str) -> str:
    place = [step[0] for step in STEPS].index(name)
    return f"{16 * (run + 1) + place:016x}"


def ns(seconds: float) -> int:
    return round((ZERO.timestamp() + seconds) * 1000) * 1_000_000


# -- LangSmith, after runs of the API of January 2026 and of its SDK of February 2026 ----------------------------------


def uuid_of(run: int, name: str) -> str:
    plain = f"{int(span_id(run, name), 16):032x}"
    return f"{plain[:8]}-{plain[8:12]}-{plain[12:16]}-{plain[16:20]}-{plain[20:]}"


def langsmith_run(run: int, step: tuple[str, str, float, float, str | None, str | None], **fields: Any) -> Record:
    name, kind, start, end, error, parent = step
    own: Record = {
        "id": uuid_of(run, name), "name": name, "run_type": {"agent": "chain", "model": "llm", "tool": "tool"}[kind],
        "start_time": at(start).rstrip("Z"), "end_time": at(end).rstrip("Z"), "error": error,
        "status": "success" if error is None else "error", "trace_id": uuid_of(run, "advisor"),
        "parent_run_id": None if parent is None else uuid_of(run, "advisor"), "dotted_order": "20260607T131000000000Z",
        "session_id": "5e551012-0000-4000-8000-00000000000a", "inputs": {"field": "north"}, "outputs": {"output": "clay"},
        "extra": {"metadata": {"thread_id": SESSION, "revision_id": "1.2"}}, "reference_example_id": None,
        "prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120, "total_cost": "0.002",
        "prompt_token_details": {"cache_read": 40}, "completion_token_details": {"reasoning": 5},
    }  # fmt: skip
    if kind == "model":
        own["extra"]["metadata"]["ls_model_name"] = "small-1"
    return own | fields


LANGSMITH = [langsmith_run(run, step) for run in range(3) for step in steps(run)]


# -- MLflow, after traces of 2.20.3 and 3.17.2 -------------------------------------------------------------------------

MLFLOW_TYPES = {"agent": "AGENT", "model": "CHAT_MODEL", "tool": "TOOL"}


def mlflow_attributes(name: str, kind: str) -> Record:
    values: Record = {"mlflow.spanType": MLFLOW_TYPES[kind], "mlflow.spanFunctionName": name,
                      "mlflow.spanInputs": {"field": "north"}, "mlflow.spanOutputs": "clay"}  # fmt: skip
    if kind == "model":
        values |= {"mlflow.chat.tokenUsage": {"input_tokens": 100, "output_tokens": 20, "cache_read_input_tokens": 40},
                   "mlflow.llm.model": "small-1", "mlflow.llm.cost": {"total_cost": 0.002}}  # fmt: skip
    return {key: json.dumps(value) for key, value in values.items()}


def in_base64(digits: str) -> str:
    return base64.b64encode(bytes.fromhex(digits)).decode()


def mlflow_trace(run: int, *assessments: Record) -> Record:
    """A trace of version 3."""
    spans = [
        {"trace_id": in_base64(TRACES[run]), "span_id": in_base64(span_id(run, name)),
         "parent_span_id": None if parent is None else in_base64(parent), "name": name,
         "start_time_unix_nano": ns(start), "end_time_unix_nano": ns(end), "events": [], "links": [],
         "status": {"code": "STATUS_CODE_OK" if error is None else "STATUS_CODE_ERROR", "message": error or ""},
         "attributes": mlflow_attributes(name, kind)}
        for name, kind, start, end, error, parent in steps(run)
    ]  # fmt: skip
    info = {"trace_id": f"tr-{TRACES[run]}", "request_time": at(60 * run), "state": "ERROR" if run == 1 else "OK",
            "trace_metadata": {"mlflow.trace.session": SESSION, "mlflow.source.git.commit": "1.2"}, "tags": {},
            "execution_duration_ms": 9000, "assessments": list(assessments)}  # fmt: skip
    return {"info": info, "data": {"spans": spans}}


def mlflow_old_trace(run: int) -> Record:
    """The same of version 2, whose spans have other fields, and a number behind a name that occurs twice."""
    spans = [
        {"name": f"{name}_1", "context": {"trace_id": f"0x{TRACES[run]}", "span_id": f"0x{span_id(run, name)}"},
         "parent_id": None if parent is None else f"0x{parent}", "start_time": ns(start), "end_time": ns(end),
         "status_code": "OK" if error is None else "ERROR", "status_message": error or "", "events": [],
         "attributes": mlflow_attributes(name, kind)}
        for name, kind, start, end, error, parent in steps(run)
    ]  # fmt: skip
    info = {"request_id": f"{run:032x}", "timestamp_ms": ns(60 * run) // 10**6, "status": "ERROR" if run == 1 else "OK", "tags": {},
            "request_metadata": {"mlflow.trace.session": SESSION, "mlflow.source.git.commit": "1.2"}}  # fmt: skip
    return {"info": info, "data": {"spans": spans, "request": "{}", "response": "{}"}}


def mlflow_row(trace: Record) -> Record:
    """A row of `search_traces`."""
    return trace["info"] | {
        "trace": json.dumps(trace),
        "spans": trace["data"]["spans"],
        "request": {},
        "response": "clay",
    }


def assessed(name: str, **fields: Any) -> Record:
    return {"assessment_id": f"a-{name}", "assessment_name": name, "create_time": at(20), "last_update_time": at(30),
            "source": {"source_type": "HUMAN", "source_id": "ada"}, "rationale": "it is clay", "valid": True} | fields  # fmt: skip


MLFLOW = [mlflow_trace(run) for run in range(3)]


# -- Phoenix, after spans of 20.26.1 -----------------------------------------------------------------------------------

PHOENIX_KINDS = {"agent": "AGENT", "model": "LLM", "tool": "TOOL"}


def phoenix_span(run: int, step: tuple[str, str, float, float, str | None, str | None]) -> Record:
    """A span as the API has it."""
    name, kind, start, end, error, parent = step
    attributes: Record = {
        "agent": {"agent.name": name, "session.id": SESSION, "input.value": "north", "metadata": {"agent_version": "1.2"}},
        "model": {"llm.model_name": name, "llm.token_count.prompt": 100, "llm.token_count.completion": 20,
                  "llm.token_count.prompt_details.cache_read": 40,
                  "llm.token_count.completion_details.reasoning": 5, "llm.cost.total": 0.002},
        "tool": {"tool.name": name, "input.value": '{"field": "north"}', "output.value": "clay"},
    }[kind]  # fmt: skip
    return {
        "id": f"U3Bhbjo{run}", "name": name, "span_kind": PHOENIX_KINDS[kind], "parent_id": parent,
        "context": {"trace_id": TRACES[run], "span_id": span_id(run, name)}, "start_time": at(start), "end_time": at(end),
        "status_code": ("OK" if run else "UNSET") if error is None else "ERROR", "status_message": error or "",
        "attributes": attributes, "events": [],
    }  # fmt: skip


PHOENIX_SPANS = [phoenix_span(run, step) for run in range(3) for step in steps(run)]


def phoenix_rows() -> list[Record]:
    """The same as the client's table writes them: a column for each attribute, times as milliseconds, decimals."""
    names = {name for span in PHOENIX_SPANS for name in span["attributes"]}
    rows = []
    for span in PHOENIX_SPANS:
        found = {f"attributes.{name}": span["attributes"].get(name) for name in sorted(names)}
        found = {name: float(value) if isinstance(value, int) else value for name, value in found.items()}
        times = {name: round(datetime.fromisoformat(span[name]).timestamp() * 1000)
                 for name in ("start_time", "end_time")}  # fmt: skip
        context = {f"context.{name}": value for name, value in span["context"].items()}
        rows.append(
            {key: span[key] for key in span if key not in ("id", "attributes", "context")} | context | found | times
        )
    return rows


# -- OpenAI Agents SDK, after traces of 0.0.19 and 0.24.0 --------------------------------------------------------------

ASKED = [{"role": "system", "content": "You know soils."}, {"role": "user", "content": "north"}]


def agents_id(run: int, name: str) -> str:
    return f"span_{int(span_id(run, name), 16):024x}"


def agents_span(run: int, step: tuple[str, str, float, float, str | None, str | None], **fields: Any) -> Record:
    """A span as version 0.0.19 writes it: the run that a tool ended has no error of its own."""
    name, kind, start, end, error, parent = step
    tool_error = "Error running tool (non-fatal)" if run == 2 else "Error running tool"
    data: Record = {
        "agent": {"type": "agent", "name": name, "handoffs": [], "tools": ["get_soil"], "output_type": "str"},
        "model": {"type": "generation", "input": ASKED, "output": [{"role": "assistant", "content": None}],
                  "model": name, "model_config": {"temperature": None}, "usage": {
                      "input_tokens": 100, "output_tokens": 20, "total_tokens": 120,
                      "input_tokens_details": {"cached_tokens": 40}, "output_tokens_details": {"reasoning_tokens": 5}}},
        "tool": {"type": "function", "name": name, "input": '{"field": "north"}', "output": "clay", "mcp_data": None},
    }[kind]  # fmt: skip
    return {
        "object": "trace.span", "id": agents_id(run, name), "trace_id": f"trace_{TRACES[run]}",
        "parent_id": None if parent is None else agents_id(run, "advisor"), "started_at": at(start), "ended_at": at(end),
        "span_data": data, "error": {"message": tool_error, "data": {"error": error}} if error and kind == "tool" else None,
    } | fields  # fmt: skip


def agents_trace(run: int) -> Record:
    return {"object": "trace", "id": f"trace_{TRACES[run]}", "workflow_name": "Agent workflow", "group_id": SESSION, "metadata": None}  # fmt: skip


def agents_records(run: int) -> list[Record]:
    """A trace and its spans, which are written as they end."""
    agent, model, tool = (agents_span(run, step) for step in steps(run))
    return [agents_trace(run), model, tool, agent]


def agents_custom(run: int, name: str, start: float, end: float, parent: str | None, **fields: Any) -> Record:
    return {
        "object": "trace.span", "id": f"span_{name}", "trace_id": f"trace_{TRACES[run]}", "parent_id": parent,
        "started_at": at(60 * run + start), "ended_at": at(60 * run + end), "error": None,
        "span_data": {"type": "custom", "name": name, "data": {"sdk_span_type": name}},
    } | fields  # fmt: skip


def agents_new_records(run: int) -> list[Record]:
    """The same of version 0.24.0: a turn is around what an agent does, a task around the agent, and runs tell errors."""
    trace, model, tool, agent = agents_records(run)
    turn, task = f"span_turn{run}", f"span_task{run}"
    if run == 1:
        agent["error"] = {"message": "Error in agent run", "data": {"error": "no such field"}}
    return [
        trace, model | {"parent_id": turn}, tool | {"parent_id": turn},
        agents_custom(run, "turn", 0.5, 5, agent["id"], id=turn), agent | {"parent_id": task},
        agents_custom(run, "task", 0, 9, None, id=task),
    ]  # fmt: skip


AGENTS = [record for run in range(3) for record in agents_records(run)]
AGENTS_NEW = [record for run in range(3) for record in agents_new_records(run)]


# -- Weave, after calls that the trace server of 0.51.59 and 0.52.40 gave ----------------------------------------------

WEAVE_NAMES = {"advisor": "advisor", "small-1": "openai.chat.completions.create", "get_soil": "get_soil"}


def weave_call(run: int, step: tuple[str, str, float, float, str | None, str | None], **fields: Any) -> Record:
    name, kind, start, end, error, parent = step
    usage = {"small-1": {"prompt_tokens": 100, "completion_tokens": 20, "requests": 1,
                         "prompt_tokens_details": {"cached_tokens": 40}, "completion_tokens_details": {"reasoning_tokens": 5}}}  # fmt: skip
    costs = {
        "small-1": {"prompt_tokens": 100, "prompt_tokens_total_cost": 0.0015, "completion_tokens_total_cost": 0.0005}
    }
    status = "error" if error else "descendant_error" if run == 2 and kind == "agent" else "success"
    told = {"type": "ValueError", "message": error, "traceback": [{"text": f'"message": "{name}"'}]}
    summary = {"status_counts": {}, "weave": {"status": status, "trace_name": name}}
    if kind != "tool":  # a call above others has their sums
        summary |= {"usage": usage, "weave": summary["weave"] | {"costs": costs}}
    return {
        "id": uuid_of(run, name), "project_id": "acme/advice", "op_name": f"weave:///acme/advice/op/{WEAVE_NAMES[name]}:1.2",
        "display_name": None, "trace_id": uuid_of(run, "advisor"), "parent_id": None if parent is None else uuid_of(run, "advisor"),
        "thread_id": SESSION, "started_at": at(start), "ended_at": at(end), "exception": json.dumps(told) if error else None,
        "attributes": {"weave": {"client_version": "0.52.40"} | ({} if kind == "agent" else {"kind": {"model": "llm"}.get(kind, kind)})},
        "inputs": {"field": "north"} | ({"model": "small-1"} if kind == "model" else {}), "output": "clay", "summary": summary,
    } | fields  # fmt: skip


WEAVE = [weave_call(run, step) for run in range(3) for step in steps(run)]
