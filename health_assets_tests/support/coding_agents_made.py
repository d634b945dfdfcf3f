"""Sessions of more coding agents as these write them: made by hand after recorded ones, with values that tests expect."""

import json
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


# -- Copilot CLI, after sessions of 1.0.77 and 1.0.78 ------------------------------------------------------------------

WORKSPACE = "b4c90000-0000-4000-8000-000000000001"


def copilot(kind: str, seconds: float, agent: str | None = None, **data: Any) -> Record:
    own = {} if agent is None else {"agentId": agent}
    return {"type": kind, "data": data, "id": f"e-{seconds}", "timestamp": at(seconds), "parentId": "e-0"} | own


def copilot_answer(seconds: float, content: str, *tools: str, agent: str | None = None) -> Record:
    return copilot("assistant.message", seconds, agent, messageId=f"m-{seconds}", model="gpt-5-mini", content=content,
                   outputTokens=50, toolRequests=[{"toolCallId": one, "name": "bash"} for one in tools])  # fmt: skip


def copilot_tool(seconds: float, call_id: str, name: str, agent: str | None = None) -> Record:
    return copilot(
        "tool.execution_start", seconds, agent, toolCallId=call_id, toolName=name, arguments={"path": "/home/ada"}
    )


def copilot_result(
    seconds: float, call_id: str, *, success: bool, agent: str | None = None, code: str | None = None
) -> Record:
    error = {} if code is None else {"error": {"message": "no rule to make apples", "code": code}}
    return copilot("tool.execution_complete", seconds, agent, toolCallId=call_id, success=success,
                   result={"content": "no rule"}, **error)  # fmt: skip


COPILOT = [
    copilot("session.start", 0, sessionId=WORKSPACE, producer="copilot-agent", copilotVersion="1.0.77"),
    copilot("session.model_change", 0.5, newModel="auto"),
    copilot("user.message", 1, content="Mend the parser of apples."),
    copilot("assistant.turn_start", 1.5, turnId="0"),
    copilot_answer(3, "I let a helper look.", "call_1", "call_2"),
    copilot_tool(3, "call_1", "bash"),
    copilot_tool(3.5, "call_2", "task"),
    copilot("user.message", 3.75, "helper", content="Look at the parser.", source="agent-helper"),
    copilot_answer(4, "", "call_3", agent="helper"),
    copilot_tool(4, "call_3", "view", "helper"),
    copilot_result(4.5, "call_3", success=True, agent="helper"),
    copilot_answer(4.75, "It has a comma.", agent="helper"),
    copilot_result(5, "call_2", success=True),
    copilot_result(6, "call_1", success=False, code="failure"),
    copilot("assistant.turn_end", 6, turnId="0"),
    copilot("assistant.turn_start", 6.5, turnId="1"),
    copilot_answer(8, "It is mended."),
    copilot("assistant.turn_end", 9, turnId="1"),
    copilot("user.message", 60, content="Count the plums."),
    copilot("session.error", 61, errorType="query", message="no plums", statusCode=400),
    copilot("user.message", 120, content="Write notes about pears."),
    copilot_answer(121, "", "call_4"),
    copilot_tool(121, "call_4", "create"),
    copilot_result(122, "call_4", success=False, code="denied"),
    copilot("abort", 123, reason="user initiated"),
    copilot("session.mode_changed", 179, newMode="autopilot"),
    copilot("user.message", 180, content="Make three files."),
    copilot_answer(181, "One.", "call_5"),
    copilot_tool(181, "call_5", "create"),
    copilot_result(182, "call_5", success=True),
    copilot("user.message", 183, content="Go on.", isAutopilotContinuation=True),
    copilot("session.task_complete", 184, success=True, summary="Three files."),
    copilot("assistant.turn_end", 184.5, turnId="2"),
    copilot("user.message", 240, content="Run all tests."),
    copilot_answer(241, "I run them.", "call_6"),
    copilot_tool(241, "call_6", "bash"),
    copilot("session.shutdown", 250, shutdownType="routine", modelMetrics={}),
]
"""Turns of all kinds: with a subagent, failed, aborted, of the autopilot, and one without a hand-back."""


# -- Cline, after tasks of October 2025 to February 2026 ---------------------------------------------------------------


def shown(seconds: float, way: str, kind: str, text: Any = "", **fields: Any) -> Record:
    words = text if isinstance(text, str) else json.dumps(text)
    return {"ts": ms(seconds), "type": way, way: kind, "text": words, "conversationHistoryIndex": 0} | fields


def request(seconds: float, **told: Any) -> Record:
    usage = {
        "request": "the orchard",
        "tokensIn": 10,
        "tokensOut": 20,
        "cacheWrites": 50,
        "cacheReads": 100,
        "cost": 0.5,
    }
    info = {"providerId": "anthropic", "modelId": "claude-opus-4-6", "mode": "act"}
    return shown(seconds, "say", "api_req_started", usage | told, modelInfo=info)


CLINE = [
    shown(0, "say", "task", "Mend the parser of apples."),
    request(1),
    shown(2, "say", "tool", {"tool": "readFile", "path": "/home/ada/orchard.py"}),
    request(3),
    shown(4, "ask", "tool", {"tool": "editedExistingFile", "path": "/home/ada"}, partial=True),
    shown(4, "ask", "tool", {"tool": "editedExistingFile", "path": "/home/ada/orchard.py"}),
    request(5),
    shown(6, "ask", "followup", "Which apples?"),
    shown(7, "say", "user_feedback", "All of them."),
    request(8, cost=0),
    shown(9, "say", "completion_result", "It is mended.", partial=False),
    shown(9, "ask", "command", "make test"),
    shown(10, "ask", "completion_result"),
    shown(60, "say", "user_feedback", "Count the plums."),
    request(61, cancelReason="streaming_failed", tokensIn=0, tokensOut=0),
    shown(62, "say", "error_retry", {"attempt": 1}),
    shown(63, "say", "api_req_retried"),
    shown(64, "ask", "api_req_failed", "no plums"),
    shown(120, "say", "user_feedback", "Write notes about pears."),
    request(121, cancelReason="user_cancelled"),
    shown(122, "ask", "resume_task"),
    shown(180, "say", "user_feedback", "Plan the orchard."),
    request(181),
    shown(183, "ask", "plan_mode_respond", {"response": "Trees."}),
    shown(240, "say", "user_feedback", "Run all tests."),
    request(241, tokensOut=None),
]
"""Turns of all kinds: with a question, failed, cancelled, a plan, and one without a hand-back."""


# -- Roo Code, after tasks of August to September 2025 -----------------------------------------------------------------


def roo_shown(seconds: float, way: str, kind: str, text: Any = "", **fields: Any) -> Record:
    message = shown(seconds, way, kind, text, **fields)
    return {name: value for name, value in message.items() if name != "conversationHistoryIndex"}


def roo_request(seconds: float, **told: Any) -> Record:
    usage = {
        "apiProtocol": "openai",
        "tokensIn": 160,
        "tokensOut": 20,
        "cacheWrites": 0,
        "cacheReads": 100,
        "cost": 0.5,
    }
    return roo_shown(seconds, "say", "api_req_started", usage | told)


ROO_CODE = [
    roo_shown(0, "say", "text", "Mend the parser of apples.", images=[]),
    roo_request(1),
    roo_shown(2, "say", "reasoning", "The orchard has a parser.", partial=False),
    roo_shown(3, "ask", "tool", {"tool": "newTask", "mode": "Code", "content": "Look at the orchard."}, partial=False),
    roo_shown(20, "say", "subtask_result", "I looked at the orchard."),
    roo_request(21),
    roo_shown(22, "ask", "followup", {"question": "Which apples?", "suggest": []}, partial=False, isAnswered=True),
    roo_shown(30, "say", "user_feedback", "All of them.", images=[]),
    roo_request(31, apiProtocol="anthropic", tokensIn=10, cacheWrites=50),
    roo_shown(32, "ask", "use_mcp_server", {"type": "use_mcp_tool", "serverName": "orchard", "toolName": "count"}),
    roo_shown(32, "say", "mcp_server_request_started"),
    roo_shown(33, "say", "mcp_server_response", "7 apples"),
    roo_shown(34, "say", "condense_context") | {"contextCondense": {
        "summary": "The orchard.", "cost": 0.25, "prevContextTokens": 900, "newContextTokens": 300}},
    roo_request(35),
    roo_shown(36, "ask", "command", "make orchard", partial=False),
    roo_shown(37, "ask", "command_output", "apples"),
    roo_request(38),
    roo_shown(39, "say", "completion_result", "It is mended.", partial=False),
    roo_shown(40, "ask", "completion_result"),
    roo_shown(60, "say", "user_feedback", "Count the plums.", images=[]),
    roo_request(61, cancelReason="user_cancelled"),
    roo_shown(62, "ask", "resume_task"),
]  # fmt: skip
"""A turn with a subtask, a question, a server's tool and a condensed history, and one that is cancelled."""


# -- aider, after analytics logs of August 2025 to November 2026 -------------------------------------------------------

USER = "0dd5ca1e-0000-4000-8000-000000000002"


def event(seconds: float, name: str, **properties: Any) -> Record:
    return {"event": name, "properties": properties, "user_id": USER, "time": ms(seconds) // 1000}


def aider_answer(seconds: float, completion_tokens: int = 20, **properties: Any) -> Record:
    told = {
        "main_model": "gpt-5.2", "weak_model": "None", "editor_model": "gpt-5.2", "edit_format": "diff",
        "prompt_tokens": 100, "completion_tokens": completion_tokens, "total_tokens": 100 + completion_tokens,
        "cost": 0.25, "total_cost": 0.75,
    }  # fmt: skip
    return event(seconds, "message_send", **(told | properties))


AIDER = [
    event(0, "launched"),
    event(0, "repo", num_files=3),
    event(0, "auto_commits", enabled=True),
    event(1, "cli session", main_model="gpt-5.2", edit_format="diff"),
    event(2, "message_send_starting"),
    aider_answer(9),
    event(20, "command_ask"),
    event(20, "message_send_starting"),
    aider_answer(24, 0),
    event(30, "message_send_starting"),
    event(31, "message_send_starting"),
    aider_answer(40, cost=0),
    aider_answer(41, main_model="None"),
    event(50, "message_send_starting"),
    event(52, "exit", reason="Completed --message"),
    event(60, "launched"),
    event(62, "message_send_starting"),
    aider_answer(70, main_model="openai/REDACTED"),
    event(71, "exit", reason="/exit"),
]
"""Messages that are answered, one without words, two of two aiders at once, and one without an answer."""
