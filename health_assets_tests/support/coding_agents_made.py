"""Sessions of more coding agents as these write them: made by hand after recorded ones, with values that tests expect."""

from typing import Any

from health_assets_tests.support.coding_sessions_made import ZERO, Record, at

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


def ms(seconds: float) -> int:
    return round((ZERO.timestamp() + seconds) * 1000)


# -- OpenCode, after exports of 1.15.6 and 1.17.18 ---------------------------------------------------------------------

EXPORTED = "ses_orchard1"


def open_prompt(seconds: float, words: str, **part: Any) -> Record:
    info = {
        "role": "user",
        "time": {"created": ms(seconds)},
        "agent": "build",
        "id": f"msg_{seconds}",
        "sessionID": EXPORTED,
    }
    return {"info": info, "parts": [{"type": "text", "text": words, "id": f"prt_{seconds}"} | part]}


def open_answer(begun: float, ended: float | None, finish: str | None, *parts: Record, **info: Any) -> Record:
    own = {"role": "assistant", "modelID": "claude-sonnet-5", "providerID": "anthropic", "cost": 0.5,
           "tokens": {"input": 2, "output": 20, "reasoning": 10, "cache": {"read": 100, "write": 50}},
           "time": {"created": ms(begun)} | ({} if ended is None else {"completed": ms(ended)}),
           "id": f"msg_{begun}", "sessionID": EXPORTED, "path": {"cwd": "/home/ada/orchard"}}  # fmt: skip
    return {"info": own | ({} if finish is None else {"finish": finish}) | info, "parts": list(parts)}


def words(text: str) -> Record:
    return {"type": "text", "text": text}


def open_tool(call_id: str, name: str, begun: float, ended: float | None, status: str, **state: Any) -> Record:
    time = {"start": ms(begun)} | ({} if ended is None else {"end": ms(ended)})
    called = {"status": status, "input": {"path": "/home/ada/orchard.py"}, "time": time}
    return {"type": "tool", "id": call_id, "callID": "call_1", "tool": name, "state": called | state}


OPENCODE = {
    "info": {"id": EXPORTED, "projectID": "p1", "directory": "/home/ada/orchard", "title": "The parser of apples",
             "version": "1.17.18", "time": {"created": ms(0), "updated": ms(300)}},
    "messages": [
        open_prompt(1, "Mend the parser of apples."),
        open_answer(1, 4, "tool-calls", words("I look."),
                    open_tool("prt_a", "bash", 2, 3.5, "completed", output="no rule", metadata={"exit": 2}),
                    open_tool("prt_b", "read", 2, 2.25, "completed", output="apples")),
        open_answer(4, 5, "tool-calls", open_tool("prt_c", "edit", 4.5, 5, "error", error="no such text in the file")),
        open_answer(5, 8, "stop", words("It is mended."), cost=0),
        open_prompt(60, "Write notes about pears."),
        open_answer(60, 62, None, words("Pears are"), error={"name": "MessageAbortedError", "data": {"message": "Aborted"}}),
        open_prompt(120, "Count the plums."),
        open_answer(120, 121, None, error={"name": "APIError", "data": {"message": "no plums", "statusCode": 429}},
                    tokens={"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}),
        open_prompt(180, "Write all that is known of cherries."),
        open_answer(180, 190, "length", words("Cherries are")),
        open_prompt(240, "Rename the orchard."),
        open_answer(240, 241, "tool-calls", open_tool(
            "prt_d", "write", 240.5, 241, "error", error="The user rejected permission to use this specific tool call.")),
        open_prompt(300, "Run all tests."),
        open_answer(300, None, None, open_tool("prt_e", "bash", 301, None, "running")),
    ],
}  # fmt: skip
"""Turns of all kinds: one with failed tools, one that its user aborted, two that failed, and two without a hand-back."""
