"""Langfuse's exports of one run of an agent, in the shapes that its servers, its web page and its instrumentors write.

Made by hand after the samples in Langfuse's own repository and the code of its exports; nothing here is copied.
"""

import json
from typing import Any

Record = dict[str, Any]

TRACE_ID = "5b8efff798038103d269b633813fc60c"
PROJECT = "cm0project"
AT = "2026-06-07T13:20:{:02d}.000Z"
SIZES = {"input": 500, "output": 40, "total": 540}


def observation(
    key: int, kind: str, name: str | None, seconds: tuple[int, int | None], parent: int | None = None, **fields: Any
) -> Record:
    """An observation as the web page's download has it; its id follows from the key."""
    start, end = seconds
    return {
        "id": span_id(key), "traceId": TRACE_ID, "projectId": PROJECT, "type": kind, "environment": "default",
        "parentObservationId": None if parent is None else span_id(parent), "startTime": AT.format(start),
        "endTime": None if end is None else AT.format(end), "name": name, "metadata": "{}", "level": "DEFAULT",
        "statusMessage": None, "version": None, "modelParameters": None, "completionStartTime": None, "promptId": None,
        "usageDetails": {}, "costDetails": {}, "model": None, "internalModelId": None, "totalCost": 0, "inputUsage": 0,
        "outputUsage": 0, "totalUsage": 0, "input": '{"q": "a long text"}', "output": None,
    } | fields  # fmt: skip


def span_id(key: int) -> str:
    return f"{key:016x}"


def failed(message: str | None = "out of paper") -> Record:
    return {"level": "ERROR", "statusMessage": message}


def attributes(**told: str) -> Record:
    """What an instrumentor told, as servers of version 3 keep it; `gen_ai__agent__name` stands for `gen_ai.agent.name`."""
    return {"metadata": json.dumps({"attributes": {key.replace("__", "."): value for key, value in told.items()}})}


def generation(key: int, seconds: tuple[int, int | None], parent: int | None = None, **fields: Any) -> Record:
    usage: Record = {"model": "gpt-4o", "usageDetails": SIZES, "costDetails": {"input": 0.01, "total": 0.02}}
    return observation(key, "GENERATION", "answer", seconds, parent, **(usage | fields))


OBSERVATIONS = [
    observation(1, "CHAIN", "desk", (0, 30)),
    generation(2, (1, 5), 1),
    observation(3, "TOOL", "printer", (6, 9), 1, **failed()),
    generation(4, (10, 29), 1),
    observation(5, "EVENT", "page shown", (29, None), 1),
]
SCORES = [
    {"id": "sc-1", "projectId": PROJECT, "name": "coherence", "value": 0.5, "source": "EVAL", "dataType": "NUMERIC",
     "timestamp": AT.format(59), "traceId": TRACE_ID, "sessionId": None, "observationId": None, "datasetRunId": None},
    {"id": "sc-2", "projectId": PROJECT, "name": "confidence", "value": 0.25, "source": "EVAL", "dataType": "NUMERIC",
     "timestamp": AT.format(59), "traceId": TRACE_ID, "sessionId": None, "observationId": span_id(1)},
    {"id": "sc-3", "projectId": PROJECT, "name": "toxicity", "value": 0.1, "source": "EVAL", "dataType": "NUMERIC",
     "timestamp": AT.format(59), "traceId": TRACE_ID, "sessionId": None, "observationId": None},
]  # fmt: skip
TRACE = {
    "id": TRACE_ID, "projectId": PROJECT, "name": "front-desk", "timestamp": AT.format(0), "environment": "default",
    "tags": [], "bookmarked": False, "release": "r-12", "version": None, "userId": "u-4", "sessionId": "s-9",
    "public": True, "input": '{"q": 1}', "output": '"done"', "metadata": "{}", "scores": SCORES, "corrections": [],
    "latency": 30.0,
}  # fmt: skip


def download(observations: list[Record] = OBSERVATIONS, **fields: Any) -> Record:
    """What servers up to version 3 hand out: the trace, which holds the observations without their texts once more."""
    short = [{name: value for name, value in item.items() if name != "input"} for item in observations]
    return {"trace": TRACE | {"observations": short} | fields, "observations": observations}


def download_without_trace(observations: list[Record] = OBSERVATIONS) -> Record:
    """What servers of version 4 hand out: each observation knows what there is to know of its trace."""
    return {"observations": [in_version_4(item) for item in observations], "scores": SCORES}


def in_version_4(item: Record, name: str | None = "front-desk") -> Record:
    dropped = ("totalCost", "inputUsage", "outputUsage", "totalUsage", "environment")
    of_trace = {"traceName": name, "sessionId": "s-9", "userId": "u-4", "release": "r-12", "tags": [], "public": True}
    metadata = json.loads(item["metadata"])
    flat = {f"{place}.{key}": value for place, told in metadata.items() for key, value in told.items()}
    return {key: value for key, value in item.items() if key not in dropped} | of_trace | {"metadata": flat}


def row(item: Record, name: str | None = "front-desk") -> Record:
    """As the blob storage export of a server of version 4 writes it."""
    renamed = {}
    for key, value in in_version_4(item, name).items():
        snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in key)
        renamed["provided_model_name" if snake == "model" else snake] = value
    times = {key: (renamed[key] or "").replace("T", " ").rstrip("Z") or None for key in ("start_time", "end_time")}
    details = {key: str(value) for key, value in renamed["usage_details"].items()}
    is_root = renamed["parent_observation_id"] is None
    return renamed | times | {"usage_details": details, "is_root_observation": is_root}
