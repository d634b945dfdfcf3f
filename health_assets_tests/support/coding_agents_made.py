"""Sessions of more coding agents as these write them: made by hand after recorded ones, with values that tests expect."""

from typing import Any

from health_assets_tests.support.coding_sessions_made import Record, at

# -- Gemini CLI, after chats of 2026-06 --------------------------------------------------------------------------------

CHAT = "c4a70000-0000-4000-8000-000000000001"


def gemini_header(**fields: str) -> Record:
    own = {"sessionId": CHAT, "projectHash": "ab" * 32, "startTime": at(0), "lastUpdated": at(0), "kind": "main"}
    return own | fields


def message(seconds: float, kind: str, content: Any, **fields: Any) -> Record:
    return {"id": f"m-{seconds}", "timestamp": at(seconds), "type": kind, "content": content} | fields


def prompt(seconds: float, words: str) -> Record:
    return message(seconds, "user", [{"text": words}])


def answer(seconds: float, content: str, output: int, *tools: Record, cached: int = 0, thoughts: int = 0) -> Record:
    tokens = {"input": 1000, "output": output, "cached": cached, "thoughts": thoughts, "tool": 0,
              "total": 1000 + output + thoughts}  # fmt: skip
    called = {"toolCalls": list(tools)} if tools else {}
    return message(seconds, "gemini", content, thoughts=[], tokens=tokens, model="gemini-2.5-pro", **called)


def tool(call_id: str, name: str, seconds: float, status: str, output: str, **arguments: str) -> Record:
    key = "error" if status == "error" else "output"
    result = [{"functionResponse": {"id": call_id, "name": name, "response": {key: output}}}]
    return {
        "id": call_id,
        "name": name,
        "args": arguments,
        "status": status,
        "timestamp": at(seconds),
        "result": result,
    }


def updated(seconds: float, *messages: Record) -> Record:
    """What follows each message; with messages, the history that a chat goes on from."""
    return {"$set": ({"messages": list(messages)} if messages else {}) | {"lastUpdated": at(seconds)}}


LISTED = tool("list_1", "list_directory", 4.25, "success", "apples", dir_path="/home/ada/orchard")
MADE = tool(
    "make_1", "run_shell_command", 9, "success", "Output: no rule\nExit Code: 2\nProcess Group PGID: 7", command="make"
)
READ = tool("read_1", "read_file", 13, "error", "no such file", path="/home/ada/pears.md")
GEMINI_CHAT = [
    gemini_header(),
    updated(0, message(0, "user", [{"text": "<session_context>\nThis is the Gemini CLI. /home/ada/orchard"}])),
    prompt(1, "Mend the parser of apples."),
    updated(1),
    answer(4, "I look.", 40, thoughts=30),
    updated(4),
    answer(4, "I look.", 40, LISTED, thoughts=30),
    message(4.5, "user", [{"functionResponse": {"id": "list_1", "response": {"output": "apples"}}}]),
    answer(8, "", 30, cached=600),
    answer(8, "", 30, MADE, cached=600),
    answer(12, "", 20),
    answer(12, "", 20, READ),
    answer(15, "The parser is mended.", 6),
    updated(15),
    prompt(60, "Write notes about pears."),
    message(62, "info", "Request cancelled."),
    prompt(120, "Count the plums."),
    message(121, "error", '[API Error: {"error":{"code":429,"message":"no plums","status":"RESOURCE_EXHAUSTED"}}]'),
    message(121, "info", "This request failed."),
    prompt(180, "Rename the orchard."),
    answer(182, "", 20),
    answer(182, "", 20, tool("write_1", "write_file", 190, "cancelled", "", file_path="/home/ada/orchard.py")),
    {"$rewindTo": "m-180"},
    updated(200, prompt(1, "Mend the parser of apples."), answer(15, "The parser is mended.", 6)),
    prompt(240, "Run all tests."),
    answer(242, "", 20),
]  # fmt: skip
"""Turns of all kinds: one with failed tools, one cancelled, one failed, and two without a hand-back."""
GEMINI_OLD = {**gemini_header(), "messages": [one for one in GEMINI_CHAT[2:19] if "$set" not in one]}
"""The first turns as a document, as versions before 0.40 wrote them."""
