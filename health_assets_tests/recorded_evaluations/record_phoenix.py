"""What wrote `phoenix-*`: two runs of an agent, and what people and evaluators said of them, as Phoenix exports it.

Recorded with arize-phoenix 20.26.1, arize-phoenix-client 3.5.0, opentelemetry-sdk 1.45.2 and the JSON file exporter
0.66b1 by `python record_phoenix.py` beside `phoenix serve` on port 6006. All times were moved as a whole to 2026-06-07
at 13:00, and the resources left without all attributes but their names.
"""

import json
import time
import urllib.request
from pathlib import Path

import pandas as pd
from opentelemetry.exporter.otlp.json.file.trace_exporter import FileSpanExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from phoenix.client import Client

URL = "http://localhost:6006"
PROJECT = "weather"
SESSION = "chat-42"
KINDS = {
    "weather-agent": ("AGENT", {"agent.name": "weather-agent", "session.id": SESSION}),
    "ChatCompletion": ("LLM", {"llm.model_name": "small-1"}),
    "get_weather": ("TOOL", {"tool.name": "get_weather"}),
    "documents": ("RETRIEVER", {}),
}


def run(provider: TracerProvider) -> dict[str, str]:
    """The id of each span of a run by its name, and that of its trace."""
    tracer = provider.get_tracer(PROJECT)
    ids = {}
    with tracer.start_as_current_span("weather-agent") as agent:
        ids["trace"] = f"{agent.get_span_context().trace_id:032x}"
        for name, (kind, attributes) in KINDS.items():
            span = agent if name == "weather-agent" else tracer.start_span(name)
            span.set_attributes({"openinference.span.kind": kind, **attributes})
            ids[name] = f"{span.get_span_context().span_id:016x}"
            if span is not agent:
                span.end()
    return ids


def annotate(client: Client, one: dict[str, str], two: dict[str, str]) -> None:
    spans = client.spans
    for ids, label, score, said in (
        (one, "up", 1, {}),
        (two, "down", 0, {"explanation": "the answer is wrong", "metadata": {"reviewer": "ana"}, "identifier": "r-1"}),
    ):
        spans.add_span_annotation(
            span_id=ids["weather-agent"], annotation_name="thumbs", annotator_kind="HUMAN", label=label, score=score,
            sync=True, **said,
        )  # fmt: skip
    toxicity = pd.DataFrame({
        "span_id": [one["ChatCompletion"], two["ChatCompletion"]], "label": ["toxic", "non-toxic"],
        "score": [0.9, 0.1], "explanation": ["it insults the user", "polite"],
    })  # fmt: skip
    spans.log_span_annotations_dataframe(
        dataframe=toxicity, annotation_name="toxicity", annotator_kind="LLM", sync=True
    )
    spans.add_span_annotation(
        span_id=one["get_weather"], annotation_name="is_json", annotator_kind="CODE", score=0.0, sync=True
    )
    spans.add_span_annotation(
        span_id=two["documents"], annotation_name="relevance", annotator_kind="LLM", label="relevant", sync=True
    )
    spans.add_span_note(span_id=two["weather-agent"], note="looks odd")
    client.traces.add_trace_annotation(
        trace_id=one["trace"], annotation_name="goal reached", annotator_kind="LLM", label="yes", score=1.0, sync=True
    )
    client.sessions.add_session_annotation(
        session_id=SESSION, annotation_name="satisfaction", annotator_kind="HUMAN", score=4, sync=True
    )


def answer_of(what: str, key: str, values: list[str]) -> str:
    query = "&".join(f"{key}={value}" for value in values)
    with urllib.request.urlopen(f"{URL}/v1/projects/{PROJECT}/{what}?{query}") as found:
        return str(found.read().decode())


def main() -> None:
    resource = Resource.create({"service.name": PROJECT, "openinference.project.name": PROJECT})
    provider = TracerProvider(resource=resource)
    for exporter in (FileSpanExporter("phoenix-spans.jsonl"), OTLPSpanExporter(f"{URL}/v1/traces")):
        provider.add_span_processor(SimpleSpanProcessor(exporter))
    runs = [run(provider), run(provider)]
    provider.shutdown()
    time.sleep(3)  # Phoenix writes spans a little later
    client = Client(base_url=URL)
    annotate(client, *runs)
    spans = [ids[name] for ids in runs for name in KINDS]
    for what, key, values in (
        ("span", "span_ids", spans),
        ("trace", "trace_ids", [ids["trace"] for ids in runs]),
        ("session", "session_ids", [SESSION]),
    ):
        Path(f"phoenix-{what}-annotations.json").write_text(answer_of(f"{what}_annotations", key, values))
    listed = client.spans.get_span_annotations(span_ids=spans, project_identifier=PROJECT)
    Path("phoenix-client.json").write_text(json.dumps(listed, default=str))
    table = client.spans.get_span_annotations_dataframe(span_ids=spans, project_identifier=PROJECT)
    table.reset_index().to_json("phoenix-dataframe.jsonl", orient="records", lines=True, date_format="iso")


if __name__ == "__main__":
    main()
