"""Anthropic's client without any agent: messages, plain and streamed.

The client writes spans of its own wherever OpenTelemetry is set up. Beside an instrumentor they are switched off, but for
the scenario `twice`, which is what a user gets who does not know.
"""

import os

from anthropic import Anthropic
from opentelemetry.sdk.trace import TracerProvider

from health_assets_tests.recorded_traces.recorder.programs.playing import NO_KEY, must_be, must_fail, play
from health_assets_tests.recorded_traces.recorder.scripts import script

OWN_SPANS = "ANTHROPIC_OPEN_TELEMETRY"
MODEL = "claude-sonnet-4-5"
QUESTION = "What is the weather in Oslo?"
CALL = 'call get_weather {"city": "Oslo"}'
FAIL = "error 500 the model is down"
SUNNY = "It is sunny in Oslo."
LOST = "Connection error|incomplete|peer closed"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = {"name": "get_weather", "description": "Tell the weather of a city.", "input_schema": SCHEMA}


def openinference(provider: TracerProvider) -> None:
    from openinference.instrumentation.anthropic import AnthropicInstrumentor

    os.environ[OWN_SPANS] = "false"
    AnthropicInstrumentor().instrument(tracer_provider=provider)


def openllmetry(provider: TracerProvider) -> None:
    from opentelemetry.instrumentation.anthropic import AnthropicInstrumentor

    os.environ[OWN_SPANS] = "false"
    AnthropicInstrumentor().instrument(tracer_provider=provider)


def otel(provider: TracerProvider) -> None:
    try:
        from opentelemetry.instrumentation.genai.anthropic import AnthropicInstrumentor
    except ModuleNotFoundError:  # the client's own spans
        return
    os.environ[OWN_SPANS] = "false"
    AnthropicInstrumentor().instrument(tracer_provider=provider)


def client(url: str) -> Anthropic:
    return Anthropic(base_url=url, api_key=NO_KEY, max_retries=1)


def asked(*turns: str) -> list[dict]:
    return [{"role": "user", "content": QUESTION + script(*turns)}]


def converse(models: Anthropic, *turns: str) -> None:
    """Ask, run the tool that the model wants, and ask again."""
    messages = asked(*turns)
    while True:
        answer = models.messages.create(model=MODEL, max_tokens=100, messages=messages, tools=[TOOL])
        calls = [block for block in answer.content if block.type == "tool_use"]
        if not calls:
            must_be(answer.content[0].text, SUNNY)
            return
        messages.append({"role": "assistant", "content": [block.model_dump() for block in answer.content]})
        results = [{"type": "tool_result", "tool_use_id": call.id, "content": "sunny"} for call in calls]
        messages.append({"role": "user", "content": results})


def stream(models: Anthropic, *turns: str) -> None:
    with models.messages.stream(model=MODEL, max_tokens=100, messages=asked(*turns)) as events:
        must_be("".join(events.text_stream), SUNNY)


def good(url: str) -> None:
    for _ in range(2):
        converse(client(url), CALL, f"say {SUNNY}")


def crash_model(url: str) -> None:
    must_fail(lambda: converse(client(url), CALL, FAIL), "the model is down")


def crash_overloaded(url: str) -> None:
    must_fail(lambda: converse(client(url), "error 529 overloaded"), "overloaded")


def streaming(url: str) -> None:
    stream(client(url), f"say {SUNNY}")
    events = client(url).messages.create(model=MODEL, max_tokens=100, messages=asked(f"say {SUNNY}"), stream=True)
    pieces = [event.delta.text for event in events if event.type == "content_block_delta"]
    must_be("".join(pieces), SUNNY)


def crash_streaming(url: str) -> None:
    must_fail(lambda: stream(client(url), f"cut {SUNNY}"), LOST)


def twice(url: str) -> None:
    del os.environ[OWN_SPANS]
    converse(client(url), CALL, f"say {SUNNY}")


def session(url: str) -> None:
    """The session as OpenInference's documentation says."""
    from openinference.instrumentation import using_session

    with using_session("conversation-7"):
        good(url)


if __name__ == "__main__":
    play(
        {"openinference": openinference, "openllmetry": openllmetry, "otel": otel},
        {
            "good": good,
            "crash_model": crash_model,
            "crash_overloaded": crash_overloaded,
            "streaming": streaming,
            "crash_streaming": crash_streaming,
            "twice": twice,
            "session": session,
        },
    )
