"""Published trajectories of formats that the product does not read, as lines of our log format.

One small function a format. Formats that a reader of the product knows need none: `signals` gives it those files as
they are. None of these formats tells a time that scoring needs, so a run's calls end a second apart, all in one hour.
"""

import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

START = datetime(2026, 1, 1, tzinfo=UTC)


class Call(NamedTuple):
    """A tool call of a run; no result where the format keeps none."""

    tool: str
    arguments: Any
    result: str | None
    has_failed: bool


class Run(NamedTuple):
    """A trajectory with its outcome."""

    execution_id: str
    agent_id: str
    has_failed: bool
    calls: list[Call]


def lines_of(run: Run) -> Iterator[str]:
    """The run and its calls as lines of our format."""
    own = {"execution_id": run.execution_id, "agent_id": run.agent_id}
    for place, call in enumerate(run.calls):
        ended_at = (START + timedelta(seconds=place)).isoformat()
        line = {"type": "tool_call", "call_id": f"{run.execution_id}:{place}", **own, "tool": call.tool}
        line |= {"ended_at": ended_at, "status": _status(call.has_failed), "arguments": call.arguments}
        yield json.dumps(line if call.result is None else line | {"result": call.result})
    ended_at = (START + timedelta(minutes=59)).isoformat()
    yield json.dumps(
        {"type": "execution", **own, "started_at": ended_at, "ended_at": ended_at, "is_timed": False}
        | {"status": _status(run.has_failed)}
    )


def _status(has_failed: bool) -> str:
    return "failure" if has_failed else "success"


def _json(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))


# -- SWE-agent ---------------------------------------------------------------------------------------------------------

NO_TOOLS = ("exit_", "skip")
"""How SWE-agent names the end of a run beside its tools."""
FAILED_OBSERVATION = re.compile(
    r"\A(?:Your proposed edit has introduced|EXECUTION TIMED OUT|Usage: |Error: |File .* not found|/bin/bash: )"
    r"|^Traceback \(most recent call last\)|\A.*: No such file or directory",
    re.MULTILINE,
)
"""SWE-agent keeps no exit status: what its own tools, bash and Python write of a failure stands for it."""


def swe_agent(folder: Path) -> Iterator[Run]:
    """Runs of SWE-agent, `<run>/**/*.traj`, with the instances that a `*report.json` or `results.json` calls resolved.

    A tool is the first word of an action. An evaluation names the resolved instances alone: all others failed.
    """
    for run in _folders(folder):
        [evaluation] = [*run.rglob("*report.json"), *run.rglob("results.json")]
        told = _json(evaluation)
        resolved = set(told.get("resolved_ids") or told["resolved"])
        for file in sorted(run.rglob("*.traj")):
            actions = ((step["action"].strip(), step["observation"] or "") for step in _json(file)["trajectory"])
            calls = [
                Call(action.split()[0], action, observation, bool(FAILED_OBSERVATION.search(observation)))
                for action, observation in actions
                if action and not action.startswith(NO_TOOLS)
            ]
            yield Run(f"{run.name}/{file.stem}", run.name, file.stem not in resolved, calls)


def _folders(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir())


# -- mini-SWE-agent on Terminal-Bench ----------------------------------------------------------------------------------

ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
STEP = re.compile(r"mini-swe-agent \(step \d+, \$[\d.]+\):")
COMMAND = re.compile(r"```bash\n(.*?)\n```", re.DOTALL)
RESULT = re.compile(r"<returncode>(-?\d+)</returncode>(.*?)(?:\n─|\Z)", re.DOTALL)


def mini_swe_agent(folder: Path) -> Iterator[Run]:
    """Trials of mini-SWE-agent on Terminal-Bench: `**/results.json` beside the terminal's `sessions/agent.log`.

    Trials of an unknown outcome (`is_resolved` null: the tests broke off) are left out, and so is a command without a
    return code, which the end of the trial cut off.
    """
    for file in sorted(folder.rglob("results.json")):
        told, log = _json(file), file.parent / "sessions" / "agent.log"
        if told.get("is_resolved") is None or not log.exists():
            continue
        text = ANSI.sub("", log.read_text(encoding="utf-8", errors="replace"))
        calls = []
        for step in STEP.split(text)[1:]:
            command, result = COMMAND.search(step), RESULT.search(step)
            if command and result:
                calls.append(Call("bash", command[1], result[2], result[1] != "0"))
        yield Run(str(file.parent.relative_to(folder)), "mini-swe-agent", not told["is_resolved"], calls)


# -- AutoCodeRover -----------------------------------------------------------------------------------------------------


def auto_code_rover(folder: Path) -> Iterator[Run]:
    """Runs of AutoCodeRover, `<run>/**/<instance>_<time>/tool_call_sequence.json`; the run's `report.json` judges them.

    A call failed where `call_ok` is false. The file keeps no results, so that only cycles of calls can repeat.
    """
    for run in _folders(folder):
        reports = [*run.rglob("report.json")]
        if not reports:
            continue
        resolved = set(_json(reports[0])["resolved"])
        for file in sorted(run.rglob("tool_call_sequence.json")):
            instance = re.sub(r"_\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d$", "", file.parent.name)
            calls = [Call(call["func_name"], call["arguments"], None, not call["call_ok"]) for call in _json(file)]
            yield Run(f"{run.name}/{instance}", run.name, instance not in resolved, calls)


# -- Claude Code -------------------------------------------------------------------------------------------------------


def claude_code(folder: Path) -> Iterator[Run]:
    """Sessions of Claude Code on tasks of tau2-bench: `<run>/task_*.jsonl`, judged by `<run>/eval_results.json`.

    A task succeeded if the database is as it should be and the answer says what it should, where that was checked. A
    call failed where its result has `is_error`.
    """
    for run in _folders(folder):
        for told in _json(run / "eval_results.json"):
            session = run / f"task_{told['task_id']}.jsonl"
            with session.open(encoding="utf-8") as lines:
                messages = [json.loads(line).get("message") for line in lines]
            parts = [part for message in messages if message for part in message["content"] if isinstance(part, dict)]
            results = {part["tool_use_id"]: part for part in parts if part["type"] == "tool_result"}
            calls = [
                Call(part["name"], part["input"], json.dumps(result["content"]), bool(result.get("is_error")))
                for part in parts
                if part["type"] == "tool_use" and (result := results.get(part["id"]))
            ]
            has_failed = not told["db_match"] or told["communicate_match"] is False
            yield Run(f"{run.name}/{told['task_id']}", run.name, has_failed, calls)


CONVERTERS: dict[str, Callable[[Path], Iterator[Run]]] = {
    "auto_code_rover": auto_code_rover,
    "claude_code": claude_code,
    "mini_swe_agent": mini_swe_agent,
    "swe_agent": swe_agent,
}
READ_AS_THEY_ARE = ("tau2_bench", "tau_bench")
"""Formats that a reader of the product knows."""
