"""Strands Agents, which trace themselves: agents with tools, an agent as a tool, sessions."""

import json

from opentelemetry.sdk.trace import TracerProvider
from strands import Agent, tool
from strands.models.openai import OpenAIModel

from health_assets_tests.recorded_traces.recorder.programs.playing import NO_KEY, must_be, must_fail, play
from health_assets_tests.recorded_traces.recorder.scripts import REPEATING, script

QUESTION = "What is the weather in Oslo?"
CALL = 'call get_weather {"city": "Oslo"}'
REFUSED = "the prompt is refused"
FAIL = f"error 400 {REFUSED}"
SUNNY = "It is sunny in Oslo."
SORRY = "I could not find out."


def otel(provider: TracerProvider) -> None:
    """Strands trace themselves, to the provider that is set."""


def openinference(provider: TracerProvider) -> None:
    from openinference.instrumentation.strands_agents import StrandsAgentsToOpenInferenceProcessor

    # Its processor rewrites spans when they end, so it has to come before the one that exports them.
    processors = provider._active_span_processor._span_processors
    provider._active_span_processor._span_processors = (StrandsAgentsToOpenInferenceProcessor(), *processors)


@tool
def get_weather(city: str) -> str:
    """Tell the weather of a city."""
    if city == "Atlantis":
        raise RuntimeError(f"no weather for {city}")
    return f"sunny in {city}"


def agent(url: str, name: str = "weather-agent", **more: object) -> Agent:
    arguments = {"base_url": f"{url}/v1", "api_key": NO_KEY, "max_retries": 0}
    model = OpenAIModel(client_args=arguments, model_id=str(more.pop("model", "gpt-4o-mini")))
    more.setdefault("tools", [get_weather])
    return Agent(name=name, model=model, callback_handler=None, **more)


def asked(of: Agent, *turns: str, answer: str = SUNNY) -> None:
    must_be(str(of(QUESTION + script(*turns))).strip(), answer)


def good(url: str) -> None:
    for _ in range(2):
        asked(agent(url), CALL, f"say {SUNNY}")


def repeats(url: str) -> None:
    for _ in range(2):
        asked(agent(url), *REPEATING)


def crash_model(url: str) -> None:
    must_fail(lambda: agent(url)(QUESTION + script(CALL, FAIL)), REFUSED)


def recovered(url: str) -> None:
    asked(agent(url), 'call get_weather {"city": "Atlantis"}', f"say {SORRY}", answer=SORRY)


def nested(url: str) -> None:
    @tool
    def ask_weather(question: str) -> str:
        """Ask the weather agent."""
        return str(agent(url, model="gpt-4o")(question))

    inner = json.dumps({"question": QUESTION + script(CALL, f"say {SUNNY}")})
    asked(agent(url, "triage-agent", tools=[ask_weather]), f"call ask_weather {inner}", f"say {SUNNY}")


def session(url: str) -> None:
    for _ in range(2):
        asked(agent(url, trace_attributes={"session.id": "conversation-7"}), CALL, f"say {SUNNY}")


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
        },
    )
