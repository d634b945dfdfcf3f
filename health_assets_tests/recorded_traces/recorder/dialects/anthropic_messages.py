"""Anthropic's messages."""

import json
from collections.abc import Iterator

from health_assets_tests.recorded_traces.recorder.dialects import Exchange, Json, openai_chat, text_of
from health_assets_tests.recorded_traces.recorder.scripts import Message, Turn

model = openai_chat.model
is_streamed = openai_chat.is_streamed
KINDS = {400: "invalid_request_error", 429: "rate_limit_error", 529: "overloaded_error"}


def conversation(body: Json) -> list[Message]:
    messages = [Message("system", text_of(body["system"]))] if body.get("system") else []
    return messages + [Message(message["role"], text_of(message["content"])) for message in body["messages"]]


def answer(exchange: Exchange) -> Json:
    return {
        **_head(exchange),
        "content": _blocks(exchange),
        "stop_reason": _reason(exchange.turn),
        "usage": _usage(exchange.turn),
    }


def events(exchange: Exchange) -> Iterator[str]:
    usage = {**_usage(exchange.turn), "output_tokens": 1}
    begun = {**_head(exchange), "content": [], "stop_reason": None, "usage": usage}
    yield _event("message_start", message=begun)
    for index, block in enumerate(_blocks(exchange)):
        is_text = block["type"] == "text"
        empty = {**block, "text": ""} if is_text else {**block, "input": {}}
        yield _event("content_block_start", index=index, content_block=empty)
        deltas: list[Json] = [{"type": "text_delta", "text": word} for word in exchange.words]
        if not is_text:
            deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
        for delta in deltas:
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    stop = {"stop_reason": _reason(exchange.turn), "stop_sequence": None}
    yield _event("message_delta", delta=stop, usage={"output_tokens": exchange.turn.output_tokens})
    yield _event("message_stop")


def error(turn: Turn) -> Json:
    kind = KINDS.get(turn.status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": turn.text}, "request_id": "req_000000"}


def _head(exchange: Exchange) -> Json:
    return {
        "id": exchange.id("msg_"),
        "type": "message",
        "role": "assistant",
        "model": exchange.dated_model,
        "stop_sequence": None,
    }


def _blocks(exchange: Exchange) -> list[Json]:
    turn = exchange.turn
    blocks: list[Json] = [] if turn.text is None else [{"type": "text", "text": turn.text}]
    for index, call in enumerate(turn.calls):
        tool = {"type": "tool_use", "id": exchange.id("toolu_", index), "name": call.tool, "input": call.arguments}
        blocks.append(tool)
    return blocks


def _reason(turn: Turn) -> str:
    return "tool_use" if turn.calls else "end_turn"


def _usage(turn: Turn) -> Json:
    return {
        "input_tokens": turn.input_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": turn.output_tokens,
        "service_tier": "standard",
    }


def _event(kind: str, **fields: object) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"
