"""Google's Agent Development Kit: agents, tools, transfers, agents as tools, a sequence of agents, sessions."""

import json
from collections.abc import Iterator

from google.adk.agents import BaseAgent, LlmAgent, SequentialAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models.google_llm import Gemini
from google.adk.runners import InMemoryRunner
from google.adk.tools.agent_tool import AgentTool
from google.genai import types
from opentelemetry.sdk.trace import TracerProvider

from health_assets_tests.recorded_traces.recorder.programs.playing import must_be, must_fail_later, play
from health_assets_tests.recorded_traces.recorder.scripts import REPEATING, script

QUESTION = "What is the weather in Oslo?"
CALL = 'call get_weather {"city": "Oslo"}'
REFUSED = "the prompt is refused"
FAIL = f"error 400 {REFUSED}"
SUNNY = "It is sunny in Oslo."
SORRY = "I could not find out."


def openinference(provider: TracerProvider) -> None:
    from openinference.instrumentation.google_adk import GoogleADKInstrumentor

    GoogleADKInstrumentor().instrument(tracer_provider=provider)


def otel(provider: TracerProvider) -> None:
    """ADK traces itself, to the provider that is set."""


def get_weather(city: str) -> str:
    """Tell the weather of a city."""
    if city == "Atlantis":
        raise RuntimeError(f"no weather for {city}")
    return f"sunny in {city}"


def tell_of_error(tool: object, args: object, tool_context: object, error: Exception) -> dict[str, str]:  # noqa: ARG001
    return {"error": str(error)}


def agent(url: str, name: str = "weather_agent", *turns: str, **more: object) -> LlmAgent:
    """An agent; where turns are given, the script is the agent's own, else it comes with the question."""
    model = Gemini(model=str(more.pop("model", "gemini-2.5-flash")), base_url=url)
    more.setdefault("tools", [get_weather])
    instruction = "Tell the weather." + (script(*turns) if turns else "")
    return LlmAgent(name=name, model=model, instruction=instruction, description="Tells the weather.", **more)


async def asked(of: BaseAgent, *turns: str, sessions: Iterator[str], streamed: bool = False) -> str | None:
    """Ask in the next of these sessions; return the last text."""
    runner = InMemoryRunner(agent=of, app_name="weather")
    session_id = next(sessions)
    await runner.session_service.create_session(app_name="weather", user_id="somebody", session_id=session_id)
    question = types.Content(role="user", parts=[types.Part(text=QUESTION + (script(*turns) if turns else ""))])
    config = RunConfig(streaming_mode=StreamingMode.SSE if streamed else StreamingMode.NONE)
    text = None
    async for event in runner.run_async(
        user_id="somebody", session_id=session_id, new_message=question, run_config=config
    ):
        for part in (event.content.parts or []) if event.content else []:
            text = part.text or text
    return text


def numbered() -> Iterator[str]:
    yield from (f"conversation-{number}" for number in range(1, 9))


async def good(url: str) -> None:
    sessions = numbered()
    for _ in range(2):
        must_be(await asked(agent(url), CALL, f"say {SUNNY}", sessions=sessions), SUNNY)


async def repeats(url: str) -> None:
    sessions, lenient = numbered(), agent(url, on_tool_error_callback=tell_of_error)
    for _ in range(2):
        must_be(await asked(lenient, *REPEATING, sessions=sessions), SUNNY)


async def crash_model(url: str) -> None:
    await must_fail_later(asked(agent(url), CALL, FAIL, sessions=numbered()), REFUSED)


async def crash_tool(url: str) -> None:
    await must_fail_later(
        asked(agent(url), 'call get_weather {"city": "Atlantis"}', sessions=numbered()), "no weather for Atlantis"
    )


async def recovered(url: str) -> None:
    lenient = agent(url, on_tool_error_callback=tell_of_error)
    turns = ['call get_weather {"city": "Atlantis"}', f"say {SORRY}"]
    must_be(await asked(lenient, *turns, sessions=numbered()), SORRY)


def with_transfer(url: str, *turns: str) -> LlmAgent:
    helper = agent(url, "weather_agent", *turns)
    transfer = 'call transfer_to_agent {"agent_name": "weather_agent"}'
    return agent(url, "triage_agent", transfer, sub_agents=[helper], tools=[])


async def handoff(url: str) -> None:
    must_be(await asked(with_transfer(url, CALL, f"say {SUNNY}"), sessions=numbered()), SUNNY)


async def crash_after_handoff(url: str) -> None:
    await must_fail_later(asked(with_transfer(url, CALL, FAIL), sessions=numbered()), REFUSED)


async def nested(url: str) -> None:
    helper = agent(url, "weather_agent", model="gemini-2.5-pro")
    inner = json.dumps({"request": QUESTION + script(CALL, f"say {SUNNY}")})
    triage = agent(url, "triage_agent", tools=[AgentTool(helper)])
    must_be(await asked(triage, f"call weather_agent {inner}", f"say {SUNNY}", sessions=numbered()), SUNNY)


async def session(url: str) -> None:
    runner = InMemoryRunner(agent=agent(url), app_name="weather")
    await runner.session_service.create_session(app_name="weather", user_id="somebody", session_id="conversation-7")
    for _ in range(2):
        text = QUESTION + script(CALL, f"say {SUNNY}")
        question = types.Content(role="user", parts=[types.Part(text=text)])
        async for _event in runner.run_async(user_id="somebody", session_id="conversation-7", new_message=question):
            pass


async def streaming(url: str) -> None:
    must_be(await asked(agent(url), CALL, f"say {SUNNY}", sessions=numbered(), streamed=True), SUNNY)


async def sequence(url: str) -> None:
    first = agent(url, "weather_agent", CALL, f"say {SUNNY}")
    second = agent(url, "writer_agent", "say Oslo shines.", tools=[])
    both = SequentialAgent(name="weather_report", sub_agents=[first, second])
    must_be(await asked(both, sessions=numbered()), "Oslo shines.")


if __name__ == "__main__":
    play(
        {"openinference": openinference, "otel": otel},
        {
            "good": good,
            "repeats": repeats,
            "crash_model": crash_model,
            "crash_tool": crash_tool,
            "recovered": recovered,
            "handoff": handoff,
            "crash_after_handoff": crash_after_handoff,
            "nested": nested,
            "session": session,
            "streaming": streaming,
            "sequence": sequence,
        },
    )
