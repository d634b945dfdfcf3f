"""LlamaIndex: agents with tools, handoffs between them, an agent as a tool, a model by itself."""

import json

from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.llms import ChatMessage
from llama_index.llms.openai_like import OpenAILike
from opentelemetry.sdk.trace import TracerProvider

from health_assets_tests.recorded_traces.recorder.programs.playing import (
    NO_KEY,
    must_be,
    must_fail,
    must_fail_later,
    play,
)
from health_assets_tests.recorded_traces.recorder.scripts import script

QUESTION = "What is the weather in Oslo?"
CALL = 'call get_weather {"city": "Oslo"}'
DOWN = "the model is down"
FAIL = f"error 500 {DOWN}"
SUNNY = "It is sunny in Oslo."
SORRY = "I could not find out."


def openinference(provider: TracerProvider) -> None:
    from openinference.instrumentation.llama_index import LlamaIndexInstrumentor

    LlamaIndexInstrumentor().instrument(tracer_provider=provider)


def openllmetry(provider: TracerProvider) -> None:
    from opentelemetry.instrumentation.llamaindex import LlamaIndexInstrumentor

    LlamaIndexInstrumentor().instrument(tracer_provider=provider)


def otel(provider: TracerProvider) -> None:
    from opentelemetry.instrumentation.genai.llama_index import LlamaIndexInstrumentor

    LlamaIndexInstrumentor().instrument(tracer_provider=provider)


def get_weather(city: str) -> str:
    """Tell the weather of a city."""
    if city == "Atlantis":
        raise RuntimeError(f"no weather for {city}")
    return f"sunny in {city}"


def model(url: str, name: str = "gpt-4o-mini") -> OpenAILike:
    return OpenAILike(
        model=name,
        api_base=f"{url}/v1",
        api_key=NO_KEY,
        is_chat_model=True,
        is_function_calling_model=True,
        max_retries=0,
    )


def agent(url: str, name: str = "weather-agent", *turns: str, **more: object) -> FunctionAgent:
    """An agent; where turns are given, the script is the agent's own, else it comes with the question."""
    prompt = "Tell the weather." + (script(*turns) if turns else "")
    more.setdefault("tools", [get_weather])
    more.setdefault("streaming", False)
    llm = model(url, str(more.pop("model", "gpt-4o-mini")))
    return FunctionAgent(name=name, description="Tells the weather.", system_prompt=prompt, llm=llm, **more)


async def good(url: str) -> None:
    for _ in range(2):
        answer = await agent(url).run(QUESTION + script(CALL, f"say {SUNNY}"))
        must_be(str(answer), SUNNY)


async def crash_model(url: str) -> None:
    async def run() -> None:
        await agent(url).run(QUESTION + script(CALL, FAIL))

    await must_fail_later(run(), DOWN)


async def recovered(url: str) -> None:
    answer = await agent(url).run(QUESTION + script('call get_weather {"city": "Atlantis"}', f"say {SORRY}"))
    must_be(str(answer), SORRY)


def two_agents(url: str, *turns: str) -> AgentWorkflow:
    handoff = 'call handoff {"to_agent": "weather-agent", "reason": "it knows"}'
    triage = agent(url, "triage-agent", handoff, tools=[], can_handoff_to=["weather-agent"])
    # the script counts the turns of the whole conversation, and the first one is triage-agent's
    return AgentWorkflow(agents=[triage, agent(url, "weather-agent", handoff, *turns)], root_agent="triage-agent")


async def handoff(url: str) -> None:
    must_be(str(await two_agents(url, CALL, f"say {SUNNY}").run(QUESTION)), SUNNY)


async def crash_after_handoff(url: str) -> None:
    async def run() -> None:
        await two_agents(url, CALL, FAIL).run(QUESTION)

    await must_fail_later(run(), DOWN)


async def nested(url: str) -> None:
    helper = agent(url, model="gpt-4o")

    async def ask_weather(question: str) -> str:
        """Ask the weather agent."""
        return str(await helper.run(question))

    inner = json.dumps({"question": QUESTION + script(CALL, f"say {SUNNY}")})
    triage = agent(url, "triage-agent", tools=[ask_weather])
    must_be(str(await triage.run(QUESTION + script(f"call ask_weather {inner}", f"say {SUNNY}"))), SUNNY)


async def session(url: str) -> None:
    from openinference.instrumentation import using_session

    with using_session("conversation-7"):
        await good(url)


async def streaming(url: str) -> None:
    answer = await agent(url, streaming=True).run(QUESTION + script(CALL, f"say {SUNNY}"))
    must_be(str(answer), SUNNY)


def model_alone(url: str) -> None:
    answer = model(url).chat([ChatMessage(role="user", content=QUESTION + script(f"say {SUNNY}"))])
    must_be(answer.message.content, SUNNY)
    failing = [ChatMessage(role="user", content=QUESTION + script(FAIL))]
    must_fail(lambda: model(url).chat(failing), DOWN)


if __name__ == "__main__":
    play(
        {"openinference": openinference, "openllmetry": openllmetry, "otel": otel},
        {
            "good": good,
            "crash_model": crash_model,
            "recovered": recovered,
            "handoff": handoff,
            "crash_after_handoff": crash_after_handoff,
            "nested": nested,
            "session": session,
            "streaming": streaming,
            "model_alone": model_alone,
        },
    )
