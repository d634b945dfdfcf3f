"""Results of tau-bench: a JSON list of trials. How they become executions: docs/formats.md."""

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import PurePosixPath
from typing import Any

from health_assets.logs.formats.foreign_lines import (
    EPOCH,
    Line,
    Record,
    Source,
    UnusableRecordError,
    as_content,
    dumped,
    hex_id,
    line_of,
    present,
    rejected,
)
from health_assets.logs.formats.json_pieces import Document, DocumentError
from health_assets.logs.json_values import as_list, as_name, as_number, as_object

LEAST_REWARD_OF_SUCCESS = 1 - 1e-6
"""As tau-bench itself counts."""

RUN_NAME = re.compile(r"(?P<strategy>tool-calling|act|react|few-shot)-(?P<model>.+)-[\d.]+_range_")
DOMAIN = re.compile(r"#\s*(\w+) agent policy", re.IGNORECASE)
RESPOND = "respond"
"""The action by which a ReAct agent talks to the user; it is no tool."""

FAILED = ("Error", "Unknown action ")
"""How tau-bench begins the result of a tool that failed, or that there is none."""

RESULT_AS_TEXT = "API output: "
"""What stands before a result for an agent that writes its actions as text."""

UNANSWERED = "tau-bench tool call without a result: whether it failed is not known"
NO_TIMES = "tau-bench trial without times: its time is the modification time of its file, its runtime is not known"


def is_result(members: Record) -> bool:
    """Whether an element of a list that has these members is a trial."""
    return {"task_id", "reward", "info"} <= members.keys()


def read(source: Source) -> Iterator[Line]:
    """An execution for each trial, and a tool call for each result of a tool."""
    agent = _agent(source.file.source_file)
    ended_at = (EPOCH + timedelta(milliseconds=source.file.modified_ns // 1_000_000)).isoformat()
    waiting: list[tuple[int, Record]] = []  # a trial that broke off does not say of which domain it is; another does
    domain: str | None = None
    number = 0
    try:
        document = Document(source.blocks)
        for trial in document.elements():
            number += 1
            if not isinstance(trial, dict):
                yield rejected(number, trial, "a trial must be an object")
                continue
            domain = domain or _domain(trial)
            waiting.append((number, trial))
            if domain:
                yield from _executions(source, waiting, agent, domain, ended_at)
                waiting = []
        document.finish()
    except DocumentError as error:
        yield from _executions(source, waiting, agent, domain, ended_at)
        yield rejected(number + 1, error.piece, error.reason)
    else:
        yield from _executions(source, waiting, agent, domain, ended_at)


def _agent(source_file: str) -> Record:
    """The run's name has the strategy and the model; any other name is the agent's."""
    name = re.sub(r"\.json(\.\d+)?(\.gz)?$", "", PurePosixPath(source_file).name, flags=re.IGNORECASE)
    run = RUN_NAME.match(name)
    if run is None:
        return {"agent_id": name}
    return {"agent_id": f"{run['strategy']}:{run['model']}", "model": run["model"]}


def _domain(trial: Record) -> str | None:
    """The environment, as the heading of the policy that the agent was given names it."""
    for message in as_list(trial.get("traj"))[:1]:
        found = DOMAIN.search(str(as_object(message).get("content"))[:1000])
        if found:
            return found[1].lower()
    return None


def _executions(
    source: Source, trials: list[tuple[int, Record]], agent: Record, domain: str | None, ended_at: str
) -> Iterator[Line]:
    for number, trial in trials:
        try:
            execution = _execution(trial, agent, domain)
            yield line_of(number, execution | _times(ended_at))
        except UnusableRecordError as error:
            yield rejected(number, trial, str(error))
            continue
        source.notes[NO_TIMES] += 1
        calls = list(_tool_calls(execution, [as_object(message) for message in as_list(trial.get("traj"))]))
        unanswered = len(execution.get("actions", [])) - len(calls)
        if unanswered > 0:
            source.notes[UNANSWERED] += unanswered
        for place, call in enumerate(calls):
            yield line_of(number, call | {"call_id": f"{execution['execution_id']}:{place}", "ended_at": ended_at})


def _times(ended_at: str) -> Record:
    """An end alone; a runtime of 0 would be a claim."""
    return {"started_at": ended_at, "ended_at": ended_at, "is_timed": False}


def _execution(trial: Record, agent: Record, domain: str | None) -> Record:
    task, reward = as_name(trial.get("task_id")), as_number(trial.get("reward"))
    if task is None:
        raise UnusableRecordError("task_id is missing")
    if reward is None:
        raise UnusableRecordError("reward must be a number")
    messages = [as_object(message) for message in as_list(trial.get("traj"))]
    error = as_object(trial.get("info")).get("error")
    return present(
        {
            "type": "execution",
            # the same trial has the same id wherever its file lies
            "execution_id": hex_id(32, json.dumps(agent), dumped(trial, is_sorted=True)),
            **agent,
            "task_id": f"{domain}/{task}" if domain else task,
            "task_source": "evaluation",
            "status": "success" if reward >= LEAST_REWARD_OF_SUCCESS else "failure",
            "error": None if error is None else str(error),
            "actions": _actions(messages) if messages else None,
            "api_calls": sum(message.get("role") == "assistant" for message in messages) if messages else None,
        }
    )


def _tool_calls(execution: Record, messages: list[Record]) -> Iterator[Record]:
    """The calls that have a result: of a tool by itself, or told to the agent by the user's voice."""
    names: list[str | None] = []
    written: Record = {}
    told: dict[str | None, Any] = {}
    for message in messages:
        if message.get("role") == "assistant":
            written = _written_action(message.get("content"))
            names = [as_name(written.get("name"))]
            calls = map(as_object, as_list(message.get("tool_calls")))
            told = {as_name(call.get("id")): as_object(call.get("function")).get("arguments") for call in calls}
            continue
        tool, result = as_name(message.get("name")), str(message.get("content"))
        if message.get("role") != "tool" and result.startswith(RESULT_AS_TEXT):
            tool, result = next(iter(names), None), result.removeprefix(RESULT_AS_TEXT)
        elif message.get("role") != "tool":
            continue
        names = []
        arguments = told.get(as_name(message.get("tool_call_id"))) if told else written.get("arguments")
        if tool is None or tool == RESPOND:
            continue
        has_failed = result.startswith(FAILED)
        yield present(
            {
                "type": "tool_call",
                "tool": tool,
                "agent_id": execution["agent_id"],
                "execution_id": execution["execution_id"],
                "status": "failure" if has_failed else "success",
                "error": result if has_failed else None,
                "arguments": as_content(arguments),
                "result": as_content(result),
            }
        )


def _actions(messages: list[Record]) -> list[str]:
    own = [message for message in messages if message.get("role") == "assistant"]
    names = [
        as_object(as_object(call).get("function")).get("name")
        for message in own
        for call in as_list(message.get("tool_calls"))
    ]
    if not names:
        names = [_written_action(message.get("content")).get("name") for message in own]
    return [name for name in names if isinstance(name, str) and name != RESPOND]


def _written_action(content: Any) -> Record:
    """The name and arguments in the JSON that an agent without tool calling writes after `Action:`."""
    _, mark, text = str(content).rpartition("Action:")
    try:
        return as_object(json.JSONDecoder().raw_decode(text.lstrip())[0]) if mark else {}
    except (ValueError, RecursionError):
        return {}  # tau-bench took such a message for a reply to the user
