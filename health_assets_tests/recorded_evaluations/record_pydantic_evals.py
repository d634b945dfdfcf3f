"""What wrote `pydantic-evals.jsonl`: an agent of Pydantic AI whose runs evaluators of pydantic-evals judge as they end.

Recorded with pydantic-ai-slim and pydantic-evals 2.62.0, opentelemetry-sdk 1.45.2 and the JSON file exporter 0.66b1 by
`python record_pydantic_evals.py`, whose spans and logs were put into one file, moved in time as a whole to 2026-06-07
at 13:00, and left without the resource's attributes but its name. No model is asked: Pydantic AI's test model answers.
"""

import asyncio
from typing import Any

from opentelemetry import trace
from opentelemetry._logs import set_logger_provider
from opentelemetry.exporter.otlp.json.file._log_exporter import FileLogExporter
from opentelemetry.exporter.otlp.json.file.trace_exporter import FileSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from pydantic_ai import Agent, InstrumentationSettings
from pydantic_ai.models.test import TestModel
from pydantic_evals.evaluators import EvaluationReason, Evaluator
from pydantic_evals.online import wait_for_evaluations
from pydantic_evals.online_capability import OnlineEvaluation

RESOURCE = Resource.create({"service.name": "weather"})


class Helpfulness(Evaluator):
    def evaluate(self, _: Any) -> dict[str, float]:
        return {"helpfulness": 4.0}


class IsNonEmpty(Evaluator):
    def evaluate(self, ctx: Any) -> bool:
        return bool(ctx.output)


class Tone(Evaluator):
    def evaluate(self, _: Any) -> dict[str, EvaluationReason]:
        return {"tone": EvaluationReason(value="friendly", reason="the answer greets the user")}


class Broken(Evaluator):
    def evaluate(self, _: Any) -> bool:
        raise RuntimeError("no judge")


def get_weather(city: str) -> str:
    """Tell the weather of a city."""
    return f"sunny in {city}"


async def main() -> None:
    judges = [Helpfulness(), IsNonEmpty(), Tone(), Broken()]
    capability = OnlineEvaluation(evaluators=judges)
    agent = Agent(TestModel(), name="weather-agent", tools=[get_weather], capabilities=[capability])
    await agent.run("weather in Oslo?")
    await wait_for_evaluations()


if __name__ == "__main__":
    spans, logs = TracerProvider(resource=RESOURCE), LoggerProvider(resource=RESOURCE)
    spans.add_span_processor(SimpleSpanProcessor(FileSpanExporter("spans.jsonl")))
    logs.add_log_record_processor(SimpleLogRecordProcessor(FileLogExporter("logs.jsonl")))
    trace.set_tracer_provider(spans)
    set_logger_provider(logs)
    Agent.instrument_all(InstrumentationSettings(tracer_provider=spans))
    asyncio.run(main())
    spans.shutdown()
    logs.shutdown()
