"""CrewAI: crews of agents with tasks and tools, an agent alone, a flow, delegation to a coworker."""

import json

from crewai import LLM, Agent, Crew, Process, Task
from crewai.flow.flow import Flow, start
from crewai.tools import tool
from opentelemetry.sdk.trace import TracerProvider

from health_assets_tests.recorded_traces.recorder.programs.playing import NO_KEY, must_be, must_fail, play
from health_assets_tests.recorded_traces.recorder.scripts import script

QUESTION = "What is the weather in Oslo?"
CALL = 'call get_weather {"city": "Oslo"}'
SUNNY = "It is sunny in Oslo."
SORRY = "I could not find out."


def openinference(provider: TracerProvider) -> None:
    from openinference.instrumentation.crewai import CrewAIInstrumentor
    from openinference.instrumentation.openai import OpenAIInstrumentor

    CrewAIInstrumentor().instrument(tracer_provider=provider)
    OpenAIInstrumentor().instrument(tracer_provider=provider)


def openllmetry(provider: TracerProvider) -> None:
    from opentelemetry.instrumentation.crewai import CrewAIInstrumentor
    from opentelemetry.instrumentation.openai import OpenAIInstrumentor

    CrewAIInstrumentor().instrument(tracer_provider=provider)
    OpenAIInstrumentor().instrument(tracer_provider=provider)


@tool("get_weather")
def get_weather(city: str) -> str:
    """Tell the weather of a city."""
    return f"sunny in {city}"


@tool("get_weather")
def get_no_weather(city: str) -> str:
    """Tell the weather of a city."""
    raise RuntimeError(f"no weather for {city}")


def agent(url: str, role: str = "weather-agent", **more: object) -> Agent:
    llm = LLM(
        model=str(more.pop("model", "openai/gpt-4o-mini")),
        base_url=f"{url}/v1",
        api_key=NO_KEY,
        max_retries=0,
        stream=bool(more.pop("stream", False)),
    )
    return Agent(role=role, goal="Tell the weather.", backstory="You know the sky.", llm=llm, max_retry_limit=0, **more)


def task(of: Agent, *turns: str, question: str = QUESTION) -> Task:
    return Task(description=question + script(*turns), expected_output="a sentence", agent=of)


def crew(*tasks: Task, **more: object) -> Crew:
    return Crew(agents=[each.agent for each in tasks], tasks=list(tasks), process=Process.sequential, **more)


def good(url: str) -> None:
    for _ in range(2):
        one = crew(task(agent(url, tools=[get_weather]), CALL, f"say {SUNNY}"))
        must_be(one.kickoff().raw, SUNNY)


def crash_model(url: str) -> None:
    one = crew(task(agent(url, tools=[get_weather]), CALL, "error 500 the model is down"))
    must_fail(one.kickoff, "the model is down")


def recovered(url: str) -> None:
    one = crew(task(agent(url, tools=[get_no_weather]), CALL, f"say {SORRY}"))
    must_be(one.kickoff().raw, SORRY)


def handoff(url: str) -> None:
    first = task(agent(url, tools=[get_weather]), CALL, f"say {SUNNY}")
    second = task(agent(url, "writer-agent", model="openai/gpt-4o"), "say Oslo shines.", question="Write it up.")
    must_be(crew(first, second, name="weather-crew").kickoff().raw, "Oslo shines.")


def crash_second(url: str) -> None:
    first = task(agent(url, tools=[get_weather]), CALL, f"say {SUNNY}")
    second = task(agent(url, "writer-agent"), "error 500 the model is down", question="Write it up.")
    must_fail(crew(first, second, name="weather-crew").kickoff, "the model is down")


def nested(url: str) -> None:
    helper = agent(url, tools=[get_weather])
    asked = {"task": QUESTION + script(CALL, f"say {SUNNY}"), "context": "none", "coworker": "weather-agent"}
    triage = agent(url, "triage-agent", allow_delegation=True)
    first = task(triage, f"call delegate_work_to_coworker {json.dumps(asked)}", f"say {SUNNY}")
    one = Crew(agents=[triage, helper], tasks=[first], name="weather-crew")
    must_be(one.kickoff().raw, SUNNY)


def session_openinference(url: str) -> None:
    from openinference.instrumentation import using_session

    with using_session("conversation-7"):
        good(url)


def streaming(url: str) -> None:
    one = crew(task(agent(url, tools=[get_weather], stream=True), CALL, f"say {SUNNY}"))
    must_be(one.kickoff().raw, SUNNY)


def agent_alone(url: str) -> None:
    answer = agent(url, tools=[get_weather]).kickoff(QUESTION + script(CALL, f"say {SUNNY}"))
    must_be(answer.raw, SUNNY)


def flow(url: str) -> None:
    class WeatherFlow(Flow):
        @start()
        def ask(self) -> str:
            return crew(task(agent(url, tools=[get_weather]), CALL, f"say {SUNNY}")).kickoff().raw

    must_be(WeatherFlow().kickoff(), SUNNY)


if __name__ == "__main__":
    play(
        {"openinference": openinference, "openllmetry": openllmetry},
        {
            "good": good,
            "crash_model": crash_model,
            "recovered": recovered,
            "handoff": handoff,
            "crash_second": crash_second,
            "nested": nested,
            "session": session_openinference,
            "streaming": streaming,
            "agent_alone": agent_alone,
            "flow": flow,
        },
    )
