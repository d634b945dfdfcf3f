"""An agent without any framework: functions with the decorators of OpenInference, and OpenAI's client."""

import json
from collections.abc import Callable
from typing import Any

from openai import OpenAI
from openinference.instrumentation import OITracer, TraceConfig, using_session
from openinference.instrumentation.openai import OpenAIInstrumentor
from opentelemetry.sdk.trace import TracerProvider

from health_assets_tests.recorded_traces.recorder.programs.playing import NO_KEY, must_be, must_fail, play
from health_assets_tests.recorded_traces.recorder.scripts import script

QUESTION = "What is the weather in Oslo?"
CALL = 'call get_weather {"city": "Oslo"}'
SUNNY = "It is sunny in Oslo."
SORRY = "I could not find out."
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
FUNCTION = {"name": "get_weather", "description": "Tell the weather of a city.", "parameters": PARAMETERS}

tracers: list[OITracer] = []
"""The one that writes, once the program is instrumented."""


def openinference(provider: TracerProvider) -> None:
    OpenAIInstrumentor().instrument(tracer_provider=provider)
    tracers.append(OITracer(provider.get_tracer("by hand"), config=TraceConfig()))


def weather_agent(url: str, *, fails: bool = False, tells: bool = False) -> Callable[..., str]:
    """Make the agent: its tool may fail, and the agent may tell the model so."""
    models = OpenAI(base_url=f"{url}/v1", api_key=NO_KEY, max_retries=0)
    [tracer] = tracers

    @tracer.tool(name="get_weather")
    def get_weather(city: str) -> str:
        if fails:
            raise RuntimeError(f"no weather for {city}")
        return f"sunny in {city}"

    def called(city: str) -> str:
        try:
            return get_weather(city=city)
        except RuntimeError as error:
            if tells:
                return str(error)
            raise

    @tracer.agent(name="weather-agent")
    def run(question: str) -> str:
        messages: list[Any] = [{"role": "user", "content": question}]
        while True:
            answer = models.chat.completions.create(
                model="gpt-4o-mini", messages=messages, tools=[{"type": "function", "function": FUNCTION}]
            )
            message = answer.choices[0].message
            if not message.tool_calls:
                return message.content or ""
            messages.append(message.model_dump(exclude_none=True))
            for call in message.tool_calls:
                content = called(**json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": content})

    return run


def good(url: str) -> None:
    for _ in range(2):
        must_be(weather_agent(url)(QUESTION + script(CALL, f"say {SUNNY}")), SUNNY)


def crash_model(url: str) -> None:
    turns = script(CALL, "error 500 the model is down")
    must_fail(lambda: weather_agent(url)(QUESTION + turns), "the model is down")


def crash_tool(url: str) -> None:
    must_fail(lambda: weather_agent(url, fails=True)(QUESTION + script(CALL)), "no weather")


def recovered(url: str) -> None:
    must_be(weather_agent(url, fails=True, tells=True)(QUESTION + script(CALL, f"say {SORRY}")), SORRY)


def nested(url: str) -> None:
    [tracer] = tracers

    @tracer.agent(name="triage-agent")
    def triage(question: str) -> str:
        return weather_agent(url)(question)

    must_be(triage(QUESTION + script(CALL, f"say {SUNNY}")), SUNNY)


def session(url: str) -> None:
    with using_session("conversation-7"):
        good(url)


if __name__ == "__main__":
    play(
        {"openinference": openinference},
        {
            "good": good,
            "crash_model": crash_model,
            "crash_tool": crash_tool,
            "recovered": recovered,
            "nested": nested,
            "session": session,
        },
    )
