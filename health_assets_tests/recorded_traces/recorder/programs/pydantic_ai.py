"""Pydantic AI: agents with tools, an agent as a tool, a hand-over in the program, conversations, streaming."""

from typing import Any

from openai import AsyncOpenAI
from opentelemetry.sdk.trace import TracerProvider
from pydantic_ai import Agent, InstrumentationSettings, ModelRetry
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from health_assets_tests.recorded_traces.recorder.programs.playing import NO_KEY, must_be, must_fail_later, play
from health_assets_tests.recorded_traces.recorder.scripts import REPEATING, script

QUESTION = "What is the weather in Oslo?"
CALL = 'call get_weather {"city": "Oslo"}'
FAIL = "error 500 the model is down"
SUNNY = "It is sunny in Oslo."
SORRY = "I could not find out."
DOWN = "the model is down"


def otel(provider: TracerProvider) -> None:
    Agent.instrument_all(InstrumentationSettings(tracer_provider=provider))


def openinference(provider: TracerProvider) -> None:
    from openinference.instrumentation.pydantic_ai import OpenInferenceSpanProcessor

    provider.add_span_processor(OpenInferenceSpanProcessor())
    otel(provider)


def get_weather(city: str) -> str:
    """Tell the weather of a city."""
    return f"sunny in {city}"


def crashing_get_weather(city: str) -> str:
    """Tell the weather of a city."""
    raise RuntimeError(f"no weather for {city}")


def retried_get_weather(city: str) -> str:
    """Tell the weather of a city."""
    raise ModelRetry(f"no weather for {city}")


def some_get_weather(city: str) -> str:
    """Tell the weather of a city."""
    if city == "Atlantis":
        raise ModelRetry(f"no weather for {city}")
    return f"sunny in {city}"


for tool in (crashing_get_weather, retried_get_weather, some_get_weather):
    tool.__name__ = "get_weather"


def model(url: str) -> OpenAIChatModel:
    client = AsyncOpenAI(base_url=f"{url}/v1", api_key=NO_KEY, max_retries=0)
    return OpenAIChatModel("gpt-4o-mini", provider=OpenAIProvider(openai_client=client))


def weather_agent(url: str, weather: Any = get_weather) -> Agent:
    return Agent(model(url), name="weather-agent", instructions="Tell the weather.", tools=[weather])


async def answered(agent: Agent, *turns: str, answer: str = SUNNY, **more: Any) -> None:
    must_be((await agent.run(QUESTION + script(*turns), **more)).output, answer)


async def good(url: str) -> None:
    for _ in range(2):
        await answered(weather_agent(url), CALL, f"say {SUNNY}")


async def repeats(url: str) -> None:
    for _ in range(2):
        await answered(weather_agent(url, some_get_weather), *REPEATING)


async def crash_model(url: str) -> None:
    await must_fail_later(weather_agent(url).run(QUESTION + script(CALL, FAIL)), DOWN)


async def crash_tool(url: str) -> None:
    await must_fail_later(weather_agent(url, crashing_get_weather).run(QUESTION + script(CALL)), "no weather")


async def crash_retries(url: str) -> None:
    """The tool asks the model to try again, more often than it may."""
    agent = weather_agent(url, retried_get_weather)
    await must_fail_later(agent.run(QUESTION + script(CALL, CALL)), "exceeded max retries|maximum retries")


async def recovered(url: str) -> None:
    await answered(weather_agent(url, retried_get_weather), CALL, f"say {SORRY}", answer=SORRY)


async def handoff(url: str) -> None:
    """A hand-over in the program, as Pydantic AI's documentation has it: one agent's answer decides for the other."""
    triage = Agent(model(url), name="triage-agent")
    await answered(triage, "say weather-agent", answer="weather-agent")
    await answered(weather_agent(url), CALL, f"say {SUNNY}")


def asking(*turns: str) -> str:
    """A call of the agent that is a tool, with a script for that agent."""
    escaped = (QUESTION + script(*turns)).replace("\n", "\\n").replace('"', '\\"')
    return f'call ask_weather {{"question": "{escaped}"}}'


def with_an_agent_as_tool(url: str) -> Agent:
    async def ask_weather(question: str) -> str:
        """Ask the weather agent."""
        try:
            return (await weather_agent(url).run(question)).output
        except Exception as error:
            raise ModelRetry("the weather agent failed") from error

    return Agent(model(url), name="triage-agent", tools=[ask_weather])


async def nested(url: str) -> None:
    await answered(with_an_agent_as_tool(url), asking(CALL, f"say {SUNNY}"), f"say {SUNNY}")


async def nested_recovered(url: str) -> None:
    await answered(with_an_agent_as_tool(url), asking(FAIL), f"say {SORRY}", answer=SORRY)


async def session(url: str) -> None:
    for _ in range(2):
        await answered(weather_agent(url), CALL, f"say {SUNNY}", conversation_id="conversation-7")


async def streaming(url: str) -> None:
    async with weather_agent(url).run_stream(QUESTION + script(CALL, f"say {SUNNY}")) as result:
        must_be(await result.get_output(), SUNNY)


async def crash_streaming(url: str) -> None:
    async def read() -> None:
        async with weather_agent(url).run_stream(QUESTION + script(CALL, f"cut {SUNNY}")) as result:
            await result.get_output()

    await must_fail_later(read(), "Connection error|peer closed|incomplete")


if __name__ == "__main__":
    play(
        {"openinference": openinference, "otel": otel},
        {
            "good": good,
            "repeats": repeats,
            "crash_model": crash_model,
            "crash_tool": crash_tool,
            "crash_retries": crash_retries,
            "recovered": recovered,
            "handoff": handoff,
            "nested": nested,
            "nested_recovered": nested_recovered,
            "session": session,
            "streaming": streaming,
            "crash_streaming": crash_streaming,
        },
    )
