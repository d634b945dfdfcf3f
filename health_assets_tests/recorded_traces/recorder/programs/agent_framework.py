"""Microsoft's Agent Framework, which traces itself: agents with tools, an agent as a tool, sessions, streaming."""

import json

from agent_framework import Agent
from agent_framework.observability import enable_instrumentation
from agent_framework.openai import OpenAIChatCompletionClient
from openai import AsyncOpenAI
from opentelemetry.sdk.trace import TracerProvider

from health_assets_tests.recorded_traces.recorder.programs.playing import NO_KEY, must_be, must_fail_later, play
from health_assets_tests.recorded_traces.recorder.scripts import REPEATING, script

QUESTION = "What is the weather in Oslo?"
CALL = 'call get_weather {"city": "Oslo"}'
DOWN = "the model is down"
FAIL = f"error 500 {DOWN}"
SUNNY = "It is sunny in Oslo."
SORRY = "I could not find out."


def otel(provider: TracerProvider) -> None:  # noqa: ARG001
    enable_instrumentation()


def openinference(provider: TracerProvider) -> None:
    from openinference.instrumentation.agent_framework import AgentFrameworkToOpenInferenceProcessor

    enable_instrumentation()
    # Its processor rewrites spans when they end, so it has to come before the one that exports them.
    processors = provider._active_span_processor._span_processors
    provider._active_span_processor._span_processors = (AgentFrameworkToOpenInferenceProcessor(), *processors)


def get_weather(city: str) -> str:
    """Tell the weather of a city."""
    if city == "Atlantis":
        raise RuntimeError(f"no weather for {city}")
    return f"sunny in {city}"


def agent(url: str, name: str = "weather-agent", **more: object) -> Agent:
    openai = AsyncOpenAI(base_url=f"{url}/v1", api_key=NO_KEY, max_retries=0)
    client = OpenAIChatCompletionClient(model=str(more.pop("model", "gpt-4o-mini")), async_client=openai)
    more.setdefault("tools", [get_weather])
    return Agent(client, instructions="Tell the weather.", name=name, description="Tells the weather.", **more)


async def asked(of: Agent, *turns: str, answer: str = SUNNY, **more: object) -> None:
    must_be((await of.run(QUESTION + script(*turns), **more)).text, answer)


async def good(url: str) -> None:
    for _ in range(2):
        await asked(agent(url), CALL, f"say {SUNNY}")


async def repeats(url: str) -> None:
    for _ in range(2):
        await asked(agent(url), *REPEATING)


async def crash_model(url: str) -> None:
    await must_fail_later(agent(url).run(QUESTION + script(CALL, FAIL)), DOWN)


async def recovered(url: str) -> None:
    await asked(agent(url), 'call get_weather {"city": "Atlantis"}', f"say {SORRY}", answer=SORRY)


async def nested(url: str) -> None:
    helper = agent(url, model="gpt-4o").as_tool(name="ask_weather", arg_name="question")
    inner = json.dumps({"question": QUESTION + script(CALL, f"say {SUNNY}")})
    await asked(agent(url, "triage-agent", tools=[helper]), f"call ask_weather {inner}", f"say {SUNNY}")


async def session(url: str) -> None:
    one = agent(url)
    chat = one.create_session(session_id="conversation-7")
    for _ in range(2):
        await asked(one, CALL, f"say {SUNNY}", session=chat)


async def streaming(url: str) -> None:
    text = ""
    async for update in agent(url).run(QUESTION + script(CALL, f"say {SUNNY}"), stream=True):
        text += update.text or ""
    must_be(text, SUNNY)


if __name__ == "__main__":
    play(
        {"otel": otel, "openinference": openinference},
        {
            "good": good,
            "repeats": repeats,
            "crash_model": crash_model,
            "recovered": recovered,
            "nested": nested,
            "session": session,
            "streaming": streaming,
        },
    )
