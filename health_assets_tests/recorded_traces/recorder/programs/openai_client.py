"""OpenAI's client without any agent: chat completions and Responses, plain and streamed."""

import json

from openai import OpenAI
from opentelemetry.sdk.trace import TracerProvider

from health_assets_tests.recorded_traces.recorder.programs.playing import NO_KEY, must_be, must_fail, play
from health_assets_tests.recorded_traces.recorder.scripts import script

MODEL = "gpt-4o-mini"
QUESTION = "What is the weather in Oslo?"
CALL = 'call get_weather {"city": "Oslo"}'
FAIL = "error 500 the model is down"
SUNNY = "It is sunny in Oslo."
LOST = "Connection error|peer closed connection"
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
FUNCTION = {"name": "get_weather", "description": "Tell the weather of a city.", "parameters": PARAMETERS}


def openinference(provider: TracerProvider) -> None:
    from openinference.instrumentation.openai import OpenAIInstrumentor

    OpenAIInstrumentor().instrument(tracer_provider=provider)


def openllmetry(provider: TracerProvider) -> None:
    from opentelemetry.instrumentation.openai import OpenAIInstrumentor

    OpenAIInstrumentor().instrument(tracer_provider=provider)


def otel(provider: TracerProvider) -> None:
    try:
        from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor
    except ModuleNotFoundError:  # the name under which it went before
        from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor

    OpenAIInstrumentor().instrument(tracer_provider=provider)


def client(url: str) -> OpenAI:
    return OpenAI(base_url=f"{url}/v1", api_key=NO_KEY, max_retries=1)


def asked(*turns: str) -> list[dict]:
    return [{"role": "user", "content": QUESTION + script(*turns)}]


def chat(models: OpenAI, *turns: str) -> None:
    """Ask, run the tool that the model wants, and ask again."""
    messages = asked(*turns)
    tools = [{"type": "function", "function": FUNCTION}]
    while True:
        answer = models.chat.completions.create(model=MODEL, messages=messages, tools=tools).choices[0].message
        if not answer.tool_calls:
            must_be(answer.content, SUNNY)
            return
        messages.append(answer.model_dump(exclude_none=True))
        messages += [{"role": "tool", "tool_call_id": call.id, "content": "sunny"} for call in answer.tool_calls]


def respond(models: OpenAI, *turns: str) -> None:
    """Do the same by Responses."""
    items = asked(*turns)
    tools = [{"type": "function", **FUNCTION, "strict": False}]
    while True:
        answer = models.responses.create(model=MODEL, input=items, tools=tools)
        calls = [item for item in answer.output if item.type == "function_call"]
        if not calls:
            must_be(answer.output_text, SUNNY)
            return
        items += [item.model_dump(exclude_none=True) for item in answer.output]
        items += [
            {"type": "function_call_output", "call_id": call.call_id, "output": json.dumps("sunny")} for call in calls
        ]


def stream_chat(models: OpenAI, *turns: str, **more: object) -> None:
    chunks = models.chat.completions.create(model=MODEL, messages=asked(*turns), stream=True, **more)
    must_be("".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices), SUNNY)


def good(url: str) -> None:
    for _ in range(2):
        chat(client(url), CALL, f"say {SUNNY}")


def crash_model(url: str) -> None:
    must_fail(lambda: chat(client(url), CALL, FAIL), "the model is down")


def crash_rate_limit(url: str) -> None:
    must_fail(lambda: chat(client(url), "error 429 too many requests"), "too many requests")


def crash_connection(url: str) -> None:
    must_fail(lambda: chat(client(url), "cut never said"), LOST)


def streaming(url: str) -> None:
    stream_chat(client(url), f"say {SUNNY}")
    stream_chat(client(url), f"say {SUNNY}", stream_options={"include_usage": True})


def crash_streaming(url: str) -> None:
    must_fail(lambda: stream_chat(client(url), f"cut {SUNNY}"), LOST)


def responses(url: str) -> None:
    respond(client(url), CALL, f"say {SUNNY}")


def crash_responses(url: str) -> None:
    must_fail(lambda: respond(client(url), CALL, FAIL), "the model is down")


def responses_streaming(url: str) -> None:
    with client(url).responses.stream(model=MODEL, input=asked(f"say {SUNNY}")) as events:
        must_be(events.get_final_response().output_text, SUNNY)


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
            "crash_rate_limit": crash_rate_limit,
            "crash_connection": crash_connection,
            "streaming": streaming,
            "crash_streaming": crash_streaming,
            "responses": responses,
            "crash_responses": crash_responses,
            "responses_streaming": responses_streaming,
            "session": session,
        },
    )
