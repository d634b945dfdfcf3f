"""OpenAI's Agents SDK: agents, tools, handoffs, agents as tools, sessions; by Responses, and by chat completions."""

from agents import (
    Agent,
    AsyncOpenAI,
    RunConfig,
    Runner,
    function_tool,
    set_default_openai_api,
    set_default_openai_client,
    set_trace_processors,
    trace,
)
from opentelemetry.sdk.trace import TracerProvider

from health_assets_tests.recorded_traces.recorder.programs.playing import NO_KEY, must_be, must_fail_later, play
from health_assets_tests.recorded_traces.recorder.scripts import REPEATING, script

MODEL = "gpt-4o-mini"
QUESTION = "What is the weather in Oslo?"
CALL = 'call get_weather {"city": "Oslo"}'
FAIL = "error 500 the model is down"
SUNNY = "It is sunny in Oslo."
SORRY = "I could not find out."
DOWN, LOST, NO_WEATHER = "the model is down", "Connection error", "no weather"


def openinference(provider: TracerProvider) -> None:
    from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor

    OpenAIAgentsInstrumentor().instrument(tracer_provider=provider)


def openllmetry(provider: TracerProvider) -> None:
    from opentelemetry.instrumentation.openai_agents import OpenAIAgentsInstrumentor

    OpenAIAgentsInstrumentor(replace_existing_processors=True).instrument(tracer_provider=provider)


def otel(provider: TracerProvider) -> None:
    from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor
    from opentelemetry.instrumentation.genai.openai_agents import OpenAIAgentsInstrumentor

    OpenAIInstrumentor().instrument(tracer_provider=provider)
    OpenAIAgentsInstrumentor().instrument(tracer_provider=provider, disable_openai_trace_export=True)


@function_tool
def get_weather(city: str) -> str:
    """Tell the weather of a city."""
    return f"sunny in {city}"


@function_tool(name_override="get_weather")
def get_no_weather(city: str) -> str:
    """Tell the weather of a city."""
    raise RuntimeError(f"no weather for {city}")


@function_tool(name_override="get_weather", failure_error_function=None)
def get_weather_or_crash(city: str) -> str:
    """Tell the weather of a city."""
    raise RuntimeError(f"no weather for {city}")


def weather_agent(tool: object = get_weather) -> Agent:
    return Agent(name="weather-agent", instructions="Tell the weather.", model=MODEL, tools=[tool])


def triage_agent(**more: object) -> Agent:
    return Agent(name="triage-agent", instructions="Find out who can help.", model=MODEL, **more)


def connect(url: str) -> None:
    set_default_openai_client(AsyncOpenAI(base_url=f"{url}/v1", api_key=NO_KEY, max_retries=1), use_for_tracing=False)


async def answered(agent: Agent, *turns: str, answer: str = SUNNY, **more: object) -> None:
    result = await Runner.run(agent, QUESTION + script(*turns), **more)
    must_be(result.final_output, answer)


async def good(url: str) -> None:
    connect(url)
    for _ in range(2):
        await answered(weather_agent(), CALL, f"say {SUNNY}")


@function_tool(name_override="get_weather")
def get_some_weather(city: str) -> str:
    """Tell the weather of a city."""
    if city == "Atlantis":
        raise RuntimeError(f"no weather for {city}")
    return f"sunny in {city}"


async def repeats(url: str) -> None:
    connect(url)
    for _ in range(2):
        await answered(weather_agent(get_some_weather), *REPEATING)


async def crash_model(url: str) -> None:
    connect(url)
    await must_fail_later(Runner.run(weather_agent(), QUESTION + script(CALL, FAIL)), DOWN)


async def crash_tool(url: str) -> None:
    connect(url)
    await must_fail_later(Runner.run(weather_agent(get_weather_or_crash), QUESTION + script(CALL)), NO_WEATHER)


async def crash_max_turns(url: str) -> None:
    connect(url)
    await must_fail_later(Runner.run(weather_agent(), QUESTION + script(CALL, CALL, CALL), max_turns=2), "Max turns")


async def recovered(url: str) -> None:
    connect(url)
    await answered(weather_agent(get_no_weather), CALL, f"say {SORRY}", answer=SORRY)


async def handoff(url: str) -> None:
    connect(url)
    triage = triage_agent(handoffs=[weather_agent()])
    await answered(triage, "call transfer_to_weather_agent", CALL, f"say {SUNNY}")


async def crash_after_handoff(url: str) -> None:
    connect(url)
    triage = triage_agent(handoffs=[weather_agent()])
    await must_fail_later(Runner.run(triage, QUESTION + script("call transfer_to_weather_agent", CALL, FAIL)), DOWN)


def asking(*turns: str) -> str:
    """A call of the agent that is a tool, with a script for that agent."""
    escaped = (QUESTION + script(*turns)).replace("\n", "\\n").replace('"', '\\"')
    return f'call ask_weather {{"input": "{escaped}"}}'


def with_an_agent_as_tool() -> Agent:
    tool = weather_agent().as_tool(tool_name="ask_weather", tool_description="Ask the weather agent.")
    return triage_agent(tools=[tool])


async def nested(url: str) -> None:
    connect(url)
    await answered(with_an_agent_as_tool(), asking(CALL, f"say {SUNNY}"), f"say {SUNNY}")


async def nested_recovered(url: str) -> None:
    connect(url)
    await answered(with_an_agent_as_tool(), asking(FAIL), f"say {SORRY}", answer=SORRY)


async def session_group(url: str) -> None:
    """The session as the SDK itself knows it."""
    connect(url)
    for _ in range(2):
        config = RunConfig(workflow_name="Weather chat", group_id="conversation-7")
        await answered(weather_agent(), CALL, f"say {SUNNY}", run_config=config)


async def session(url: str) -> None:
    """The session as OpenInference's documentation says."""
    from openinference.instrumentation import using_session

    with using_session("conversation-7"):
        await good(url)


async def streaming(url: str) -> None:
    connect(url)
    result = Runner.run_streamed(weather_agent(), QUESTION + script(CALL, f"say {SUNNY}"))
    async for _ in result.stream_events():
        pass
    must_be(result.final_output, SUNNY)


async def crash_streaming(url: str) -> None:
    connect(url)
    result = Runner.run_streamed(weather_agent(), QUESTION + script(CALL, f"cut {SUNNY}"))

    async def read() -> None:
        async for _ in result.stream_events():
            pass

    await must_fail_later(read(), LOST)


async def workflow(url: str) -> None:
    connect(url)
    with trace("Two questions"):
        await must_fail_later(Runner.run(weather_agent(), QUESTION + script(FAIL)), DOWN)
        await answered(weather_agent(), CALL, f"say {SUNNY}")


async def chat_completions(url: str) -> None:
    set_default_openai_api("chat_completions")
    await good(url)


async def crash_chat_completions(url: str) -> None:
    set_default_openai_api("chat_completions")
    await crash_model(url)


if __name__ == "__main__":
    set_trace_processors([])  # nothing goes to OpenAI
    play(
        {"openinference": openinference, "openllmetry": openllmetry, "otel": otel},
        {
            "good": good,
            "repeats": repeats,
            "crash_model": crash_model,
            "crash_tool": crash_tool,
            "crash_max_turns": crash_max_turns,
            "crash_after_handoff": crash_after_handoff,
            "crash_streaming": crash_streaming,
            "crash_chat_completions": crash_chat_completions,
            "recovered": recovered,
            "handoff": handoff,
            "nested": nested,
            "nested_recovered": nested_recovered,
            "session": session,
            "session_group": session_group,
            "streaming": streaming,
            "workflow": workflow,
            "chat_completions": chat_completions,
        },
    )
