"""OpenAI's Responses."""

import json
from collections.abc import Iterator
from itertools import count

from health_assets_tests.recorded_traces.recorder.dialects import CREATED, Exchange, Json, openai_chat, text_of
from health_assets_tests.recorded_traces.recorder.scripts import Message, Turn

model = openai_chat.model
is_streamed = openai_chat.is_streamed
error = openai_chat.error
OF_THE_ASSISTANT = {"function_call", "reasoning"}


def conversation(body: Json) -> list[Message]:
    messages = [Message("system", body["instructions"])] if body.get("instructions") else []
    asked = body.get("input") or []
    if isinstance(asked, str):
        return [*messages, Message("user", asked)]
    for item in asked:
        if item.get("type") in OF_THE_ASSISTANT or item.get("role") == "assistant":
            if not messages or messages[-1].role != "assistant":  # a turn of several calls is one turn
                messages.append(Message("assistant"))
        elif str(item.get("type")).endswith("_output"):
            messages.append(Message("tool"))
        else:
            role = item.get("role", "user")
            messages.append(Message("system" if role == "developer" else role, text_of(item.get("content"))))
    return messages


def answer(exchange: Exchange) -> Json:
    turn = exchange.turn
    return {
        **_head(exchange, "completed"),
        "output": [_done(item) for item in _items(exchange)],
        "usage": {
            "input_tokens": turn.input_tokens,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": turn.output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": turn.input_tokens + turn.output_tokens,
        },
    }


def events(exchange: Exchange) -> Iterator[str]:
    numbers = count()

    def event(kind: str, **fields: object) -> str:
        body = {"type": kind, "sequence_number": next(numbers), **fields}
        return f"event: {kind}\ndata: {json.dumps(body)}\n\n"

    begun = {**_head(exchange, "in_progress"), "output": [], "usage": None}
    yield event("response.created", response=begun)
    yield event("response.in_progress", response=begun)
    for index, item in enumerate(_items(exchange)):
        at = {"output_index": index, "item_id": item["id"]}
        if item["type"] == "message":
            part = item["content"][0]
            started = {**item, "content": [], "status": "in_progress"}
            yield event("response.output_item.added", output_index=index, item=started)
            yield event("response.content_part.added", **at, content_index=0, part={**part, "text": ""})
            for word in exchange.words:
                yield event("response.output_text.delta", **at, content_index=0, delta=word, logprobs=[])
            yield event("response.output_text.done", **at, content_index=0, text=part["text"], logprobs=[])
            yield event("response.content_part.done", **at, content_index=0, part=part)
        else:
            started = {**item, "arguments": "", "status": "in_progress"}
            yield event("response.output_item.added", output_index=index, item=started)
            arguments = item["arguments"]
            yield event("response.function_call_arguments.delta", **at, delta=arguments)
            yield event("response.function_call_arguments.done", **at, name=item["name"], arguments=arguments)
        yield event("response.output_item.done", output_index=index, item=_done(item))
    yield event("response.completed", response=answer(exchange))


def _head(exchange: Exchange, status: str) -> Json:
    return {
        "id": exchange.id("resp_"),
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": exchange.dated_model,
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
    }


def _items(exchange: Exchange) -> list[Json]:
    turn: Turn = exchange.turn
    items: list[Json] = []
    if turn.text is not None:
        part = {"type": "output_text", "text": turn.text, "annotations": [], "logprobs": []}
        items.append({"id": exchange.id("msg_"), "type": "message", "role": "assistant", "content": [part]})
    for index, call in enumerate(turn.calls):
        items.append(
            {
                "id": exchange.id("fc_", index),
                "type": "function_call",
                "call_id": exchange.id("call_", index),
                "name": call.tool,
                "arguments": json.dumps(call.arguments),
            }
        )
    return items


def _done(item: Json) -> Json:
    return {**item, "status": "completed"}
