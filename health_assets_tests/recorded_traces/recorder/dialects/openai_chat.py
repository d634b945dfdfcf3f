"""OpenAI's chat completions."""

import json
from collections.abc import Iterator

from health_assets_tests.recorded_traces.recorder.dialects import CREATED, Exchange, Json, text_of
from health_assets_tests.recorded_traces.recorder.scripts import Message, Turn

ROLES = {"developer": "system", "function": "tool"}


def model(path: str, body: Json) -> str:  # noqa: ARG001
    return str(body["model"])


def is_streamed(path: str, body: Json) -> bool:  # noqa: ARG001
    return bool(body.get("stream"))


def conversation(body: Json) -> list[Message]:
    return [
        Message(ROLES.get(message["role"], message["role"]), text_of(message.get("content")))
        for message in body["messages"]
    ]


def answer(exchange: Exchange) -> Json:
    turn = exchange.turn
    message: Json = {"role": "assistant", "content": turn.text, "refusal": None, "annotations": []}
    if turn.calls:
        message["tool_calls"] = _tool_calls(exchange)
    return {
        **_head(exchange, "chat.completion"),
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": _reason(turn)}],
        "usage": _usage(turn),
    }


def events(exchange: Exchange) -> Iterator[str]:
    deltas: list[Json] = [{"role": "assistant", "content": "" if exchange.turn.text else None}]
    deltas += [{"content": word} for word in exchange.words]
    deltas += [{"tool_calls": [{"index": index, **call}]} for index, call in enumerate(_tool_calls(exchange))]
    for delta in deltas:
        yield _chunk(exchange, choices=[{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}])
    ended = {"index": 0, "delta": {}, "logprobs": None, "finish_reason": _reason(exchange.turn)}
    yield _chunk(exchange, choices=[ended])
    if (exchange.asked.get("stream_options") or {}).get("include_usage"):
        yield _chunk(exchange, choices=[], usage=_usage(exchange.turn))
    yield "data: [DONE]\n\n"


def error(turn: Turn) -> Json:
    kind = {429: "rate_limit_exceeded", 400: "invalid_request_error"}.get(turn.status, "server_error")
    return {"error": {"message": turn.text, "type": kind, "param": None, "code": kind}}


def _head(exchange: Exchange, kind: str) -> Json:
    return {
        "id": exchange.id("chatcmpl-"),
        "object": kind,
        "created": CREATED,
        "model": exchange.dated_model,
        "service_tier": "default",
        "system_fingerprint": "fp_000000",
    }


def _tool_calls(exchange: Exchange) -> list[Json]:
    return [
        {
            "id": exchange.id("call_", index),
            "type": "function",
            "function": {"name": call.tool, "arguments": json.dumps(call.arguments)},
        }
        for index, call in enumerate(exchange.turn.calls)
    ]


def _reason(turn: Turn) -> str:
    return "tool_calls" if turn.calls else "stop"


def _usage(turn: Turn) -> Json:
    return {
        "prompt_tokens": turn.input_tokens,
        "completion_tokens": turn.output_tokens,
        "total_tokens": turn.input_tokens + turn.output_tokens,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
    }


def _chunk(exchange: Exchange, **fields: object) -> str:
    return f"data: {json.dumps({**_head(exchange, 'chat.completion.chunk'), **fields})}\n\n"
