"""LangGraph and LangChain: agents by `create_agent`, agents that hand over or are tools, and a graph by hand."""

from collections.abc import Callable
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import wrap_tool_call
from langchain.tools import ToolRuntime
from langchain_core.messages import ToolMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.tools import BaseTool, ToolException, tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command
from opentelemetry.sdk.trace import TracerProvider

from health_assets_tests.recorded_traces.recorder.programs.playing import NO_KEY, must_be, must_fail, play
from health_assets_tests.recorded_traces.recorder.scripts import REPEATING, script

MODEL = "gpt-4o-mini"
QUESTION = "What is the weather in Oslo?"
CALL = 'call get_weather {"city": "Oslo"}'
FAIL = "error 500 the model is down"
SUNNY = "It is sunny in Oslo."
SORRY = "I could not find out."
DOWN = "the model is down"


def openinference(provider: TracerProvider) -> None:
    from openinference.instrumentation.langchain import LangChainInstrumentor

    LangChainInstrumentor().instrument(tracer_provider=provider)


def openllmetry(provider: TracerProvider) -> None:
    from opentelemetry.instrumentation.langchain import LangchainInstrumentor

    LangchainInstrumentor().instrument(tracer_provider=provider)


def otel(provider: TracerProvider) -> None:
    from opentelemetry.instrumentation.genai.langchain import LangChainInstrumentor

    LangChainInstrumentor().instrument(tracer_provider=provider)


@tool
def get_weather(city: str) -> str:
    """Tell the weather of a city."""
    return f"sunny in {city}"


@tool("get_weather")
def get_no_weather(city: str) -> str:
    """Tell the weather of a city."""
    raise RuntimeError(f"no weather for {city}")


@tool("get_weather")
def get_handled_weather(city: str) -> str:
    """Tell the weather of a city."""
    raise ToolException(f"no weather for {city}")


get_handled_weather.handle_tool_error = True


@wrap_tool_call
def tell_the_error(request: Any, handler: Callable[[Any], Any]) -> Any:
    """Tell the model that the tool failed, as LangChain's documentation does."""
    try:
        return handler(request)
    except Exception as error:
        return ToolMessage(f"failed: {error}", tool_call_id=request.tool_call["id"])


def model(url: str) -> ChatOpenAI:
    return ChatOpenAI(model=MODEL, base_url=f"{url}/v1", api_key=NO_KEY, max_retries=0)


def weather_agent(url: str, weather: BaseTool = get_weather, name: str | None = "weather-agent", **more: Any) -> Any:
    return create_agent(model(url), [weather], name=name, system_prompt="Tell the weather.", **more)


def asked(*turns: str) -> dict:
    return {"messages": [{"role": "user", "content": QUESTION + script(*turns)}]}


def answered(agent: Any, *turns: str, answer: str = SUNNY, **more: Any) -> None:
    must_be(agent.invoke(asked(*turns), **more)["messages"][-1].content, answer)


def good(url: str) -> None:
    for _ in range(2):
        answered(weather_agent(url), CALL, f"say {SUNNY}")


@tool("get_weather")
def get_some_weather(city: str) -> str:
    """Tell the weather of a city."""
    if city == "Atlantis":
        raise RuntimeError(f"no weather for {city}")
    return f"sunny in {city}"


def repeats(url: str) -> None:
    for _ in range(2):
        answered(weather_agent(url, get_some_weather, middleware=[tell_the_error]), *REPEATING)


def crash_model(url: str) -> None:
    must_fail(lambda: weather_agent(url).invoke(asked(CALL, FAIL)), DOWN)


def crash_tool(url: str) -> None:
    must_fail(lambda: weather_agent(url, get_no_weather).invoke(asked(CALL)), "no weather")


def crash_recursion(url: str) -> None:
    must_fail(lambda: weather_agent(url).invoke(asked(CALL, CALL, CALL), {"recursion_limit": 4}), "GraphRecursionError")


def recovered(url: str) -> None:
    agent = weather_agent(url, get_no_weather, middleware=[tell_the_error])
    answered(agent, CALL, f"say {SORRY}", answer=SORRY)


def recovered_handled(url: str) -> None:
    """The tool itself says what of its errors the model is told."""
    answered(weather_agent(url, get_handled_weather), CALL, f"say {SORRY}", answer=SORRY)


@tool
def transfer_to_weather(runtime: ToolRuntime) -> Command:
    """Hand over to the weather agent."""
    done = ToolMessage("Handed over.", tool_call_id=runtime.tool_call_id)
    update = {"messages": [runtime.state["messages"][-1], done]}
    return Command(goto="weather-agent", graph=Command.PARENT, update=update)


def team(url: str) -> Any:
    """Two agents in a graph, the first of which hands over to the second."""
    triage = create_agent(model(url), [transfer_to_weather], name="triage-agent")

    def ask_weather(state: MessagesState) -> dict:
        return weather_agent(url).invoke(state)

    graph = StateGraph(MessagesState)
    graph.add_node("triage-agent", triage, destinations=("weather-agent",))
    graph.add_node("weather-agent", ask_weather)
    graph.add_edge(START, "triage-agent")
    graph.add_edge("weather-agent", END)
    return graph.compile(name="support-team")


def handoff(url: str) -> None:
    answered(team(url), "call transfer_to_weather", CALL, f"say {SUNNY}")


def crash_after_handoff(url: str) -> None:
    must_fail(lambda: team(url).invoke(asked("call transfer_to_weather", FAIL)), DOWN)


def asking(*turns: str) -> str:
    """A call of the agent that is a tool, with a script for that agent."""
    escaped = (QUESTION + script(*turns)).replace("\n", "\\n").replace('"', '\\"')
    return f'call ask_weather {{"question": "{escaped}"}}'


def with_an_agent_as_tool(url: str, **more: Any) -> Any:
    @tool
    def ask_weather(question: str) -> str:
        """Ask the weather agent."""
        return weather_agent(url).invoke({"messages": [{"role": "user", "content": question}]})["messages"][-1].content

    return create_agent(model(url), [ask_weather], name="triage-agent", **more)


def nested(url: str) -> None:
    answered(with_an_agent_as_tool(url), asking(CALL, f"say {SUNNY}"), f"say {SUNNY}")


def nested_recovered(url: str) -> None:
    agent = with_an_agent_as_tool(url, middleware=[tell_the_error])
    answered(agent, asking(FAIL), f"say {SORRY}", answer=SORRY)


def session(url: str) -> None:
    agent = weather_agent(url, checkpointer=InMemorySaver())
    for _ in range(2):
        answered(agent, CALL, f"say {SUNNY}", config={"configurable": {"thread_id": "conversation-7"}})


def streaming(url: str) -> None:
    pieces = weather_agent(url).stream(asked(CALL, f"say {SUNNY}"), stream_mode="messages")
    must_be("".join(piece.content for piece, about in pieces if about["langgraph_node"] == "model"), SUNNY)


async def asynchronous(url: str) -> None:
    answer = await weather_agent(url).ainvoke(asked(CALL, f"say {SUNNY}"))
    must_be(answer["messages"][-1].content, SUNNY)


def unnamed(url: str) -> None:
    answered(weather_agent(url, name=None), CALL, f"say {SUNNY}")


def graph_by_hand(url: str) -> None:
    """A graph whose only node asks the model: once well, once with an error in the node."""

    def answer(state: MessagesState) -> dict:
        return {"messages": [model(url).invoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("answer", answer)
    graph.add_edge(START, "answer")
    compiled = graph.compile(name="weather-graph")
    answered(compiled, f"say {SUNNY}")
    must_fail(lambda: compiled.invoke(asked(FAIL)), DOWN)


def chain(url: str) -> None:
    """No agent at all: a chain of a prompt and the model."""
    asking_once = ChatPromptTemplate([("user", "{question}")]) | model(url)
    must_be(asking_once.invoke({"question": QUESTION + script(f"say {SUNNY}")}).content, SUNNY)


if __name__ == "__main__":
    play(
        {"openinference": openinference, "openllmetry": openllmetry, "otel": otel},
        {
            "good": good,
            "repeats": repeats,
            "crash_model": crash_model,
            "crash_tool": crash_tool,
            "crash_recursion": crash_recursion,
            "recovered": recovered,
            "recovered_handled": recovered_handled,
            "handoff": handoff,
            "crash_after_handoff": crash_after_handoff,
            "nested": nested,
            "nested_recovered": nested_recovered,
            "session": session,
            "streaming": streaming,
            "asynchronous": asynchronous,
            "unnamed": unnamed,
            "graph_by_hand": graph_by_hand,
            "chain": chain,
        },
    )
