"""Sessions of coding agents as these write them: made by hand after recorded ones, with values that tests expect."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

Record = dict[str, Any]
ZERO = datetime(2026, 6, 7, 13, 10, tzinfo=UTC)
SESSION = "5e551012-0000-4000-8000-000000000001"


def at(seconds: float) -> str:
    return (ZERO + timedelta(seconds=seconds)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def as_lines(records: Iterable[Record]) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


# -- Claude Code -------------------------------------------------------------------------------------------------------

USAGE = {"input_tokens": 3, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 50}
PARSER, NOTES, LIMIT, PLAN, DOCS, TESTS = (f"b0b00000-0000-4000-8000-00000000000{digit}" for digit in "123456")
"""Ids of prompts."""


def claude(kind: str, seconds: float, **fields: Any) -> Record:
    """A line of a session, with a uuid that follows from its time."""
    common = {"parentUuid": None, "isSidechain": False, "userType": "external", "cwd": "/home/ada/orchard",
              "sessionId": SESSION, "version": "2.1.143", "gitBranch": "main"}  # fmt: skip
    return common | {"type": kind, "uuid": f"u-{seconds}", "timestamp": at(seconds)} | fields


def asked(seconds: float, prompt: str | None, text: str, **fields: Any) -> Record:
    own = {} if prompt is None else {"promptId": prompt}
    return claude("user", seconds, message={"role": "user", "content": text}, **own, **fields)


def answered(
    seconds: float, message_id: str, block: Record, stop: str | None, tokens: int = 1, **fields: Any
) -> Record:
    message = {"id": message_id, "type": "message", "role": "assistant", "model": "claude-sonnet-4-6",
               "content": [block], "stop_reason": stop, "usage": USAGE | {"output_tokens": tokens}}  # fmt: skip
    return claude("assistant", seconds, message=message, requestId=f"req_{message_id}", **fields)


def thought() -> Record:
    return {"type": "thinking", "thinking": "It may be the comma.", "signature": "c2lnbmVk"}


def text(words: str) -> Record:
    return {"type": "text", "text": words}


def use(call_id: str, tool: str, **arguments: str) -> Record:
    return {"type": "tool_use", "id": call_id, "name": tool, "input": arguments}


def result(seconds: float, call_id: str, content: Any, *, is_error: bool | None = None, **fields: Any) -> Record:
    block = {"type": "tool_result", "tool_use_id": call_id, "content": content} | (
        {} if is_error is None else {"is_error": is_error}
    )
    return claude("user", seconds, message={"role": "user", "content": [block]}, **fields)


def interrupted(seconds: float, of: str = "") -> Record:
    words = f"[Request interrupted by user{of}]"
    return claude("user", seconds, message={"role": "user", "content": [text(words)]})


def api_error(seconds: float, kind: str, status: int | None = None, **fields: Any) -> Record:
    message = {"id": f"local-{seconds}", "type": "message", "role": "assistant", "model": "<synthetic>",
               "content": [text(f"API Error: {status} the orchard is closed")], "stop_reason": "stop_sequence",
               "usage": {"input_tokens": 0, "output_tokens": 0}}  # fmt: skip
    own = {} if status is None else {"apiErrorStatus": status}
    return claude("assistant", seconds, message=message, isApiErrorMessage=True, error=kind, **own, **fields)


def synthetic(seconds: float, words: str) -> Record:
    line = api_error(seconds, "none")
    line["message"]["content"] = [text(words)]
    return line | {"isApiErrorMessage": False}


CLAUDE_TURN = [
    asked(0, PARSER, "Mend the parser of apples."),
    answered(2, "msg_1", thought(), None),
    answered(3, "msg_1", use("toolu_1", "Bash", command="make test"), "tool_use", 20),
    result(5, "toolu_1", "Exit code 2\nno rule to make target", is_error=True, toolUseResult="Error: Exit code 2"),
    answered(6, "msg_2", use("toolu_2", "Grep", pattern="apple"), "tool_use", 30),
    result(9, "toolu_2", [text("3 files")], toolUseResult={"mode": "count", "durationMs": 250}),
    claude("system", 10, subtype="api_error", error={"status": 529}, retryAttempt=1),
    answered(12, "msg_3", text("The parser is mended."), "end_turn", 40),
    claude("system", 12.5, subtype="turn_duration", durationMs=12500),
]
"""A turn with a failed tool and a retry."""

CLAUDE_SESSION = [
    {"type": "permission-mode", "permissionMode": "default", "sessionId": SESSION},
    {"type": "file-history-snapshot", "messageId": "u-0", "snapshot": {"trackedFileBackups": {"/home/ada/a.py": {}}}},
    *CLAUDE_TURN,
    asked(20, None, "<command-name>/model</command-name>\n<command-args>opus</command-args>"),
    asked(20.5, None, "<local-command-stdout>Set model to opus</local-command-stdout>"),
    asked(60, NOTES, "Write notes about pears."),
    answered(62, "msg_4", thought(), None),
    synthetic(64, "Pears are"),
    interrupted(65),
    asked(120, LIMIT, "Count the plums."),
    api_error(121, "rate_limit", 429),
    {"type": "summary", "summary": "The orchard's parser", "leafUuid": "u-121"},
    claude("system", 130, subtype="compact_boundary", content="Conversation compacted"),
    asked(131, None, "This session goes on from one about apples.", isCompactSummary=True),
    asked(180, PLAN, "Rename the orchard."),
    answered(181, "msg_5", use("toolu_3", "Write", file_path="/home/ada/orchard.py"), "tool_use", 10),
    result(185, "toolu_3", "The user doesn't want to proceed with this tool use.", is_error=True,
           toolUseResult="User rejected tool use"),
    interrupted(185.5, " for tool use"),
    asked(240, DOCS, "Let a helper read the docs."),
    answered(241, "msg_6", use("toolu_4", "Agent", prompt="Read the docs."), "tool_use", 10),
    asked(241.5, None, "Read the docs.", isSidechain=True),
    answered(243, "msg_7", use("toolu_5", "Read", file_path="/home/ada/docs.md"), "tool_use", 10, isSidechain=True),
    result(244, "toolu_5", "# Docs", isSidechain=True),
    answered(246, "msg_8", text("Docs are read."), "end_turn", 10, isSidechain=True),
    result(247, "toolu_4", [text("Docs are read.")], toolUseResult={"status": "completed", "totalDurationMs": 5000}),
    answered(250, "msg_9", text("The helper read them."), "end_turn", 10),
    asked(300, TESTS, "Run all tests."),
    answered(302, "msg_10", use("toolu_6", "Bash", command="make"), "tool_use", 10),
]  # fmt: skip
"""Turns of all kinds; the last one is not at its end."""


# -- Codex -------------------------------------------------------------------------------------------------------------

THREAD = "019e0000-0000-7000-8000-000000000001"
BUILD, ESSAY, QUOTA, OPEN = (f"019e0000-000{digit}-7000-8000-000000000000" for digit in "1234")
FORK = "019e0000-0005-7000-8000-000000000000"
AFTER_FORK = "019e0000-0006-7000-8000-000000000000"


def codex(kind: str, seconds: float, event: str | None = None, **payload: Any) -> Record:
    return {"timestamp": at(seconds), "type": kind, "payload": ({} if event is None else {"type": event}) | payload}


def event(seconds: float, kind: str, **payload: Any) -> Record:
    return codex("event_msg", seconds, kind, **payload)


def item(seconds: float, kind: str, **payload: Any) -> Record:
    return codex("response_item", seconds, kind, **payload)


def header(seconds: float, session_id: str = THREAD, **fields: Any) -> Record:
    own = {"id": session_id, "timestamp": at(seconds), "cwd": "/home/ada/orchard", "originator": "codex-tui",
           "cli_version": "0.130.0", "source": "cli", "model_provider": "openai"}  # fmt: skip
    return codex("session_meta", seconds, **(own | fields))


def begun(seconds: float, turn_id: str, words: str, model: str = "gpt-5.4") -> list[Record]:
    return [
        event(seconds, "task_started", turn_id=turn_id, started_at=int(ZERO.timestamp() + seconds)),
        codex("turn_context", seconds, turn_id=turn_id, cwd="/home/ada/orchard", model=model),
        item(seconds, "message", role="user", content=[{"type": "input_text", "text": words}]),
        event(seconds, "user_message", message=words),
    ]


def counted(seconds: float, calls: int) -> Record:
    """Usage after so many calls, each of the same size."""
    last = {"input_tokens": 1000, "cached_input_tokens": 600, "output_tokens": 20, "reasoning_output_tokens": 5}
    total = {name: calls * count for name, count in last.items()}
    return event(seconds, "token_count", info={"total_token_usage": total, "last_token_usage": last}, rate_limits=None)


CODEX_TURN = [
    *begun(0, BUILD, "Build the orchard."),
    event(0.5, "token_count", info=None, rate_limits={}),
    item(2, "function_call", name="exec_command", arguments='{"cmd":"make"}', call_id="call_1"),
    counted(2.1, 1),
    item(4, "function_call_output", call_id="call_1",
         output="Chunk ID: 1\nWall time: 1.5000 seconds\nProcess exited with code 2\nOutput:\nno rule"),
    item(5, "custom_tool_call", name="apply_patch", input="*** Begin Patch", call_id="call_2", status="completed"),
    counted(5.1, 2),
    event(6, "patch_apply_end", call_id="call_2", success=True, changes={"/home/ada/a.py": {}}),
    item(6.1, "custom_tool_call_output", call_id="call_2",
         output='{"output":"Success.","metadata":{"exit_code":0,"duration_seconds":0.5}}'),
    event(8, "agent_message", message="It is built."),
    item(8, "message", role="assistant", content=[{"type": "output_text", "text": "It is built."}]),
    counted(8.1, 3),
    event(9, "task_complete", turn_id=BUILD, last_agent_message="It is built."),
]  # fmt: skip
"""A turn with a failed command."""

CODEX_SESSION = [
    header(0),
    *CODEX_TURN,
    *begun(60, ESSAY, "Write about plums."),
    counted(60.5, 3),
    event(64, "turn_aborted", turn_id=ESSAY, reason="interrupted"),
    *begun(120, QUOTA, "Count the plums.", "gpt-5.4-mini"),
    event(121, "error", message="You have no plums left.", codex_error_info="usage_limit_exceeded"),
    event(122, "task_complete", turn_id=QUOTA, last_agent_message=None),
    *begun(180, OPEN, "Run all tests."),
    item(182, "function_call", name="shell", arguments="{}", call_id="call_3"),
]

CODEX_FORK = [
    header(300, FORK, forked_from_id=THREAD),
    *(line | {"timestamp": at(300)} for line in CODEX_SESSION[: len(CODEX_TURN) + 1]),
    *begun(310, AFTER_FORK, "Now with pears."),
    event(315, "agent_message", message="With pears."),
    counted(315.5, 4),
    event(316, "task_complete", turn_id=AFTER_FORK, last_agent_message="With pears."),
]
"""A session that was forked behind the first turn of the other, whose lines it repeats with the time of the fork."""

CODEX_WITHOUT_TURNS = [
    header(0, cli_version="0.46.0"),
    codex("turn_context", 0, cwd="/home/ada/orchard", model="gpt-5-codex"),
    event(1, "user_message", message="Build the orchard."),
    item(2, "local_shell_call", call_id="call_1", status="completed", action={"command": ["make"]}),
    item(3, "function_call_output", call_id="call_1", output={"content": "no", "success": False}),
    event(4, "agent_message", message="It cannot be built."),
    event(60, "user_message", message="Try again."),
    event(61, "agent_message", message="I do."),
]
"""A session of a version that does not write when turns begin and end."""

CODEX_OLD = [
    {"id": THREAD, "timestamp": at(0), "instructions": None, "git": {}},
    {"record_type": "state"},
    {"type": "message", "id": None, "role": "user", "content": [{"type": "input_text", "text": "Build the orchard."}]},
]
