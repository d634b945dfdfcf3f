"""Results of tau2-bench: a JSON object with `info`, `tasks` and `simulations`. How they map: docs/formats.md."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from health_assets.logs.conventions import UNKNOWN_MODEL
from health_assets.logs.formats.foreign_lines import (
    Line,
    Record,
    Source,
    UnusableRecordError,
    as_content,
    as_time,
    line_of,
    present,
    rejected,
)
from health_assets.logs.formats.json_pieces import Document, DocumentError
from health_assets.logs.json_values import as_count, as_list, as_name, as_number, as_object

LEAST_REWARD_OF_SUCCESS = 1 - 1e-6
ORDERLY_ENDS = ("user_stop", "agent_stop")
NOT_THE_AGENT = "infrastructure_error"
"""Simulations that tau2-bench leaves out of its own metrics."""

ELSEWHERE = "tau2-bench simulation that lies in a file of its own, where it does not name its agent"
UNTIMED_CALL = "tau2-bench message of the agent that tells of a model call without a time"
NO_MODEL = "tau2-bench message of the agent that tells of a model call, in a file that names no model: `unknown`"
UNANSWERED = "tau2-bench tool call without a result, or with one that has no time: whether it failed is not known"
LONE = "a simulation in a file of its own does not name its agent; put tau2-bench's results in one file (format json)"


def is_document(members: Record) -> bool:
    """Whether an object that has these members is a result file, or one simulation of one."""
    return "agent_info" in as_object(members.get("info")) or {"termination_reason", "task_id"} <= members.keys()


def read(source: Source) -> Iterator[Line]:
    """An execution for each simulation, a model call for each message that tells of one, and the tool calls."""
    document, info, number, names = Document(source.blocks), None, 0, set[str]()
    try:
        for name in document.members():
            names.add(name)
            if name == "info":
                info = as_object(document.value())
            elif name == "simulations":
                for simulation in document.elements():
                    number += 1
                    yield from _lines(source, number, simulation, as_object(info))
            elif name == "simulation_index":
                elsewhere = len(as_list(document.value())) - number
                if elsewhere > 0:
                    source.notes[ELSEWHERE] += elsewhere
            elif name == "termination_reason" and info is None:
                yield rejected(1, {name: document.value()}, LONE)
                return
            else:
                document.value()
        document.finish()
        if names.isdisjoint(("simulations", "simulation_index")):
            yield rejected(1, "", "simulations is missing")
    except DocumentError as error:
        yield rejected(number + 1, error.piece, error.reason)


def _lines(source: Source, number: int, simulation: Any, info: Record) -> Iterator[Line]:
    if as_object(simulation).get("termination_reason") == NOT_THE_AGENT:
        source.notes[f"tau2-bench simulation that ended by {NOT_THE_AGENT}"] += 1
        return
    try:
        execution = _execution(as_object(simulation), info)
        messages = [as_object(message) for message in as_list(simulation.get("messages"))]
        notes: Counter[str] = Counter()
        calls = [*_model_calls(execution, messages, notes), *_tool_calls(execution, simulation, messages, notes)]
    except UnusableRecordError as error:
        yield rejected(number, simulation, str(error))
        return
    source.notes.update(notes)
    yield line_of(number, execution)
    for call in calls:
        yield line_of(number, call)


def _execution(simulation: Record, info: Record) -> Record:
    agent = as_object(info.get("agent_info"))
    implementation, model = as_name(agent.get("implementation")), as_name(agent.get("llm"))
    if implementation is None:
        raise UnusableRecordError("info.agent_info.implementation is missing, so the agent is not known")
    reward = as_number(as_object(simulation.get("reward_info")).get("reward"))
    if reward is None:
        raise UnusableRecordError("reward_info.reward is missing: the simulation was not evaluated")
    task, end = as_name(simulation.get("task_id")), as_name(simulation.get("termination_reason"))
    if task is None:
        raise UnusableRecordError("task_id is missing")
    domain = as_name(as_object(info.get("environment_info")).get("domain_name"))
    simulation_id = as_name(simulation.get("id"))
    if simulation_id is None:
        raise UnusableRecordError("id is missing")
    messages = [as_object(message) for message in as_list(simulation.get("messages"))]
    return present(
        {
            "type": "execution",
            "execution_id": simulation_id,
            "agent_id": f"{implementation}:{model}" if model else implementation,
            "agent_version": as_name(info.get("git_commit")),
            "model": model,
            "task_id": f"{domain}/{task}" if domain else task,
            "task_source": "evaluation",
            "started_at": as_time(simulation.get("start_time"), "start_time").isoformat(),
            "ended_at": as_time(simulation.get("end_time"), "end_time").isoformat(),
            "status": "success" if reward >= LEAST_REWARD_OF_SUCCESS else "failure",
            "error": None if end in ORDERLY_ENDS else end,
            "cost_usd": _price(simulation.get("agent_cost")),
            "api_calls": sum(map(_is_model_call, messages)) if messages else None,
            "error_count": sum(map(_is_failed_tool_call, messages)) if messages else None,
            "call_latency_s": _mean([as_number(message.get("generation_time_seconds")) for message in messages
                                     if _is_model_call(message)]),
            "actions": _actions(messages, as_list(simulation.get("ticks"))),
        }
    )  # fmt: skip


def _is_model_call(message: Record) -> bool:
    """Whether a model wrote it; the agent's greeting, which is fixed, has no usage."""
    return message.get("role") == "assistant" and isinstance(message.get("usage"), dict)


def _is_failed_tool_call(message: Record) -> bool:
    return message.get("role") == "tool" and message.get("requestor") == "assistant" and message.get("error") is True


def _calls(messages: list[Record], ticks: list[Any]) -> list[Record] | None:
    """The agent's tool calls; those of the simulated user are not its own. A conversation by voice comes in ticks."""
    if messages:
        calls = [call for message in messages if message.get("role") == "assistant"
                 for call in as_list(message.get("tool_calls"))]  # fmt: skip
    elif ticks:
        calls = [call for tick in ticks for call in as_list(as_object(tick).get("agent_tool_calls"))]
    else:
        return None
    return [call for call in map(as_object, calls) if isinstance(call.get("name"), str)]


def _actions(messages: list[Record], ticks: list[Any]) -> list[str] | None:
    calls = _calls(messages, ticks)
    return None if calls is None else [call["name"] for call in calls]


def _price(cost: Any) -> float | None:
    """A cost in USD; 0 is how tau2-bench writes that it knows no price."""
    return as_number(cost) or None


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _model_calls(execution: Record, messages: list[Record], notes: Counter[str]) -> Iterator[Record]:
    for place, message in enumerate(messages):
        if not _is_model_call(message):
            continue
        if message.get("timestamp") is None:
            notes[UNTIMED_CALL] += 1
            continue
        if "model" not in execution:
            notes[NO_MODEL] += 1
        seconds, usage = as_number(message.get("generation_time_seconds")), message["usage"]
        yield present(
            {
                "type": "model_call",
                "call_id": f"{execution['execution_id']}:{place}",
                "model": execution.get("model", UNKNOWN_MODEL),
                "agent_id": execution["agent_id"],
                "execution_id": execution["execution_id"],
                "ended_at": as_time(message["timestamp"], "timestamp of a message").isoformat(),
                "status": "success",
                "latency_ms": None if seconds is None else seconds * 1000,
                "input_tokens": as_count(usage.get("prompt_tokens")),
                "output_tokens": as_count(usage.get("completion_tokens")),
                "cost_usd": _price(message.get("cost")),
            }
        )


def _tool_calls(execution: Record, simulation: Record, messages: list[Record], notes: Counter[str]) -> Iterator[Record]:
    """Each call of the agent with its result, which comes after it and has the same id."""
    ticks = [as_object(tick) for tick in as_list(simulation.get("ticks"))]
    results = [result for tick in ticks for result in map(as_object, as_list(tick.get("agent_tool_results")))]
    results = [message for message in messages if message.get("role") == "tool"] or results
    waiting = [result for result in results if result.get("requestor") == "assistant"]
    for place, call in enumerate(_calls(messages, ticks) or []):
        result = next((one for one in waiting if one.get("id") == call.get("id")), {})
        if result.get("timestamp") is None or not isinstance(result.get("error"), bool):
            notes[UNANSWERED] += 1
            continue
        waiting.remove(result)
        yield present(
            {
                "type": "tool_call",
                "call_id": f"{execution['execution_id']}:tool:{place}",
                "tool": call["name"],
                "agent_id": execution["agent_id"],
                "execution_id": execution["execution_id"],
                "ended_at": as_time(result["timestamp"], "timestamp of a message").isoformat(),
                "status": "failure" if result["error"] else "success",
                "error": as_name(result.get("content")) if result["error"] else None,
                "arguments": as_content(call.get("arguments")),
                "result": as_content(result.get("content")),
            }
        )
