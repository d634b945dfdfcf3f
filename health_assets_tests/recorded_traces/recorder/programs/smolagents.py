"""Smolagents: agents with tools, a managed agent, an agent that writes code."""

import json
from itertools import count

from opentelemetry.sdk.trace import TracerProvider
from smolagents import CodeAgent, OpenAIModel, Tool, ToolCallingAgent, tool

from health_assets_tests.recorded_traces.recorder.programs.playing import NO_KEY, must_be, must_fail, play
from health_assets_tests.recorded_traces.recorder.scripts import script

QUESTION = "What is the weather in Oslo?"
CALL = 'call get_weather {"city": "Oslo"}'
DOWN = "the prompt is refused"
FAIL = f"error 400 {DOWN}"
SUNNY = "It is sunny in Oslo."


def openinference(provider: TracerProvider) -> None:
    from openinference.instrumentation.smolagents import SmolagentsInstrumentor

    SmolagentsInstrumentor().instrument(tracer_provider=provider)


def otel(provider: TracerProvider) -> None:
    from opentelemetry.instrumentation.genai.smolagents import SmolagentsInstrumentor

    SmolagentsInstrumentor().instrument(tracer_provider=provider)


@tool
def get_weather(city: str) -> str:
    """Tell the weather of a city.

    Args:
        city: the city.
    """
    return f"sunny in {city}"


tries = count()


@tool
def get_weather_later(city: str) -> str:
    """Tell the weather of a city, but not at the first try.

    Args:
        city: the city.
    """
    if next(tries) == 0:
        raise RuntimeError(f"no weather for {city}")
    return f"sunny in {city}"


def answer(text: str) -> str:
    return f"call final_answer {json.dumps({'answer': text})}"


def agent(url: str, name: str = "weather_agent", tools: list[Tool] | None = None, **more: object) -> ToolCallingAgent:
    model = OpenAIModel("gpt-4o-mini", api_base=f"{url}/v1", api_key=NO_KEY, client_kwargs={"max_retries": 0})
    given = [get_weather] if tools is None else tools
    return ToolCallingAgent(tools=given, model=model, name=name, description="Tells the weather.", **more)


def good(url: str) -> None:
    for _ in range(2):
        must_be(agent(url).run(QUESTION + script(CALL, answer(SUNNY))), SUNNY)


def crash_model(url: str) -> None:
    must_fail(lambda: agent(url).run(QUESTION + script(CALL, FAIL)), DOWN)


def recovered(url: str) -> None:
    # a call whose tool failed is not part of the conversation, so that the model calls it again
    call = CALL.replace("get_weather", "get_weather_later")
    must_be(agent(url, tools=[get_weather_later]).run(QUESTION + script(call, answer(SUNNY))), SUNNY)


def nested(url: str) -> None:
    inner = json.dumps({"task": QUESTION + script(CALL, answer(SUNNY))})
    triage = agent(url, "triage_agent", tools=[], managed_agents=[agent(url)])
    must_be(triage.run(QUESTION + script(f"call weather_agent {inner}", answer(SUNNY))), SUNNY)


def session(url: str) -> None:
    from openinference.instrumentation import using_session

    with using_session("conversation-7"):
        good(url)


def streaming(url: str) -> None:
    steps = list(agent(url, stream_outputs=True).run(QUESTION + script(CALL, answer(SUNNY)), stream=True))
    must_be(steps[-1].output, SUNNY)


def unnamed(url: str) -> None:
    must_be(agent(url, name=None).run(QUESTION + script(CALL, answer(SUNNY))), SUNNY)


def code(url: str) -> None:
    model = OpenAIModel("gpt-4o-mini", api_base=f"{url}/v1", api_key=NO_KEY, client_kwargs={"max_retries": 0})
    written = f'say Thought: I ask. <code>get_weather("Oslo"); final_answer("{SUNNY}")</code>'
    must_be(CodeAgent(tools=[get_weather], model=model, name="weather_agent").run(QUESTION + script(written)), SUNNY)


if __name__ == "__main__":
    play(
        {"openinference": openinference, "otel": otel},
        {
            "good": good,
            "crash_model": crash_model,
            "recovered": recovered,
            "nested": nested,
            "session": session,
            "streaming": streaming,
            "unnamed": unnamed,
            "code": code,
        },
    )
