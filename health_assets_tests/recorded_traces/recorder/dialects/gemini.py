"""Gemini's generateContent and streamGenerateContent."""

import json
import re
from collections.abc import Iterator

from health_assets_tests.recorded_traces.recorder.dialects import Exchange, Json, text_of
from health_assets_tests.recorded_traces.recorder.scripts import Message, Turn

STATUSES = {400: "INVALID_ARGUMENT", 429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE"}


def model(path: str, body: Json) -> str:  # noqa: ARG001
    found = re.search(r"models/([^/:]+):", path)
    if found is None:
        raise ValueError(f"no model in {path}")
    return found[1]


def is_streamed(path: str, body: Json) -> bool:  # noqa: ARG001
    return ":streamGenerateContent" in path


def conversation(body: Json) -> list[Message]:
    system = body.get("systemInstruction") or body.get("system_instruction")
    messages = [Message("system", text_of(system.get("parts")))] if system else []
    contents = body["contents"]
    for content in contents if isinstance(contents, list) else [contents]:
        parts = content.get("parts") or []
        if content.get("role") == "model":
            messages.append(Message("assistant", text_of(parts)))
        elif any("functionResponse" in part or "function_response" in part for part in parts):
            messages.append(Message("tool"))
        else:
            messages.append(Message("user", text_of(parts)))
    return messages


def answer(exchange: Exchange) -> Json:
    return _response(exchange, _parts(exchange), is_last=True)


def events(exchange: Exchange) -> Iterator[str]:
    pieces: list[Json] = [{"text": word} for word in exchange.words] if exchange.turn.text else _parts(exchange)
    for number, piece in enumerate(pieces, 1):
        response = _response(exchange, [piece], is_last=number == len(pieces))
        yield f"data: {json.dumps(response)}\r\n\r\n"


def error(turn: Turn) -> Json:
    return {
        "error": {"code": turn.status, "message": turn.text, "status": STATUSES.get(turn.status, "INTERNAL")},
    }


def _parts(exchange: Exchange) -> list[Json]:
    turn = exchange.turn
    parts: list[Json] = [] if turn.text is None else [{"text": turn.text}]
    return parts + [{"functionCall": {"name": call.tool, "args": call.arguments}} for call in turn.calls]


def _response(exchange: Exchange, parts: list[Json], *, is_last: bool) -> Json:
    turn = exchange.turn
    candidate: Json = {"content": {"parts": parts, "role": "model"}, "index": 0}
    if is_last:
        candidate["finishReason"] = "STOP"
    return {
        "candidates": [candidate],
        "usageMetadata": {
            "promptTokenCount": turn.input_tokens,
            "candidatesTokenCount": turn.output_tokens,
            "totalTokenCount": turn.input_tokens + turn.output_tokens,
        },
        "modelVersion": exchange.dated_model,
        "responseId": exchange.id("gemini-"),
    }
