"""AutoGen's AgentChat, which traces itself: agents with tools, a team, a handoff, an agent as a tool."""

import json

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination, TextMentionTermination
from autogen_agentchat.teams import RoundRobinGroupChat, Swarm
from autogen_agentchat.tools import AgentTool
from autogen_ext.models.openai import OpenAIChatCompletionClient
from opentelemetry.sdk.trace import TracerProvider

from health_assets_tests.recorded_traces.recorder.programs.playing import NO_KEY, must_be, must_fail_later, play
from health_assets_tests.recorded_traces.recorder.scripts import script

QUESTION = "What is the weather in Oslo?"
CALL = 'call get_weather {"city": "Oslo"}'
DOWN = "the model is down"
FAIL = f"error 500 {DOWN}"
SUNNY = "It is sunny in Oslo."
SORRY = "I could not find out."


def otel(provider: TracerProvider) -> None:
    """AutoGen traces itself, to the provider that is set."""


def openinference(provider: TracerProvider) -> None:
    from openinference.instrumentation.autogen_agentchat import AutogenAgentChatInstrumentor
    from openinference.instrumentation.openai import OpenAIInstrumentor

    AutogenAgentChatInstrumentor().instrument(tracer_provider=provider)
    OpenAIInstrumentor().instrument(tracer_provider=provider)


async def get_weather(city: str) -> str:
    """Tell the weather of a city."""
    if city == "Atlantis":
        raise RuntimeError(f"no weather for {city}")
    return f"sunny in {city}"


def agent(url: str, name: str = "weather_agent", *turns: str, **more: object) -> AssistantAgent:
    """An agent; where turns are given, the script is the agent's own, else it comes with the question."""
    client = OpenAIChatCompletionClient(
        model=str(more.pop("model", "gpt-4o-mini")),
        base_url=f"{url}/v1",
        api_key=NO_KEY,
        max_retries=0,
        parallel_tool_calls=False,
    )
    more.setdefault("tools", [get_weather])
    prompt = "Tell the weather." + (script(*turns) if turns else "")
    return AssistantAgent(name, client, system_message=prompt, reflect_on_tool_use=True, **more)


async def asked(of: AssistantAgent, *turns: str, answer: str = SUNNY) -> None:
    result = await of.run(task=QUESTION + script(*turns))
    must_be(result.messages[-1].content, answer)


async def good(url: str) -> None:
    for _ in range(2):
        await asked(agent(url), CALL, f"say {SUNNY}")


async def crash_model(url: str) -> None:
    await must_fail_later(agent(url).run(task=QUESTION + script(CALL, FAIL)), DOWN)


async def recovered(url: str) -> None:
    await asked(agent(url), 'call get_weather {"city": "Atlantis"}', f"say {SORRY}", answer=SORRY)


async def nested(url: str) -> None:
    helper = agent(url, model="gpt-4o", description="Tells the weather.")
    inner = json.dumps({"task": QUESTION + script(CALL, f"say {SUNNY}")})
    triage = agent(url, "triage_agent", tools=[AgentTool(helper)])
    await asked(triage, f"call weather_agent {inner}", f"say {SUNNY}")


async def team(url: str) -> None:
    first = agent(url, "weather_agent", CALL, f"say {SUNNY}")
    second = agent(url, "writer_agent", "say Oslo shines. DONE", tools=[])
    both = RoundRobinGroupChat([first, second], termination_condition=TextMentionTermination("DONE"))
    must_be((await both.run(task=QUESTION)).messages[-1].content, "Oslo shines. DONE")


async def crash_team(url: str) -> None:
    first = agent(url, "weather_agent", CALL, f"say {SUNNY}")
    second = agent(url, "writer_agent", FAIL, tools=[])
    both = RoundRobinGroupChat([first, second], termination_condition=MaxMessageTermination(9))
    await must_fail_later(both.run(task=QUESTION), DOWN)


async def handoff(url: str) -> None:
    triage = agent(url, "triage_agent", "call transfer_to_weather_agent", tools=[], handoffs=["weather_agent"])
    helper = agent(url, "weather_agent", CALL, f"say {SUNNY}")
    sunny = TextMentionTermination("sunny", sources=["weather_agent"])
    swarm = Swarm([triage, helper], termination_condition=sunny)
    await swarm.run(task=QUESTION)


if __name__ == "__main__":
    play(
        {"otel": otel, "openinference": openinference},
        {
            "good": good,
            "crash_model": crash_model,
            "recovered": recovered,
            "nested": nested,
            "team": team,
            "crash_team": crash_team,
            "handoff": handoff,
        },
    )
