"""Fields of Langfuse's traces, observations and scores, whichever export and server they come from.

What belongs here: telling the three kinds apart, and what one field of one record says under all of its names. What
does not: what records add up to (`langfuse_traces`) and which files hold them (`langfuse`).

The API and the web page write their fields in camel case, the blob storage export in snake case. What an
instrumentation itself told lies in `metadata`: below `attributes`, as an object or as text, or with keys `attributes.…`
(servers from version 4 on).
"""

import json
import re
from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from typing import Any

from health_assets.logs.conventions import (
    ATTRIBUTES,
    CLAUDE_CODE,
    KIND_IN_AI_SDK,
    KIND_OF_OPERATION,
    MODELS_IN_PARAMETERS,
    NO_MODELS,
)
from health_assets.logs.formats.foreign_lines import (
    Record,
    UnusableRecordError,
    as_time,
    hex_id,
    present,
)
from health_assets.logs.formats.otlp_writing import span_id_of, trace_id_of
from health_assets.logs.json_values import as_count, as_name, as_number, as_object
from health_assets.logs.span_kinds import KINDS
from health_assets.logs.span_outcomes import BEGINS_WITH_CONTROL_FLOW, IS_CONTROL_FLOW

KIND_OF_TYPE = {"GENERATION": "chat", "TOOL": "tool", "AGENT": "agent"}
OTHER_TYPES = ("SPAN", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL")
"""Observations that by their type say nothing to us but who is below whom."""
EVENT = "EVENT"
TYPES = (*KIND_OF_TYPE, *OTHER_TYPES, EVENT)
ERROR_LEVEL = "ERROR"
INPUT_TOKENS = ("promptTokens", "prompt_tokens")
OUTPUT_TOKENS = ("completionTokens", "completion_tokens")
TRACE_FIELDS = ("sessionId", "userId", "htmlPath", "latency", "observations", "bookmarked", "tags")
LANGCHAIN_AGENT = "lc_agent_name"
NAMES_IN_NAMES = {
    "openinference.instrumentation.openai_agents": re.compile(r"(.+)"),
    "openinference.instrumentation.google_adk": re.compile(r"(?:agent_run|invoke_agent) \[?(.+?)\]?"),
    "gcp.vertex.agent": re.compile(r"(?:agent_run|invoke_agent) \[?(.+?)\]?"),
}
"""How the older versions of some instrumentations name the span of an agent, below the one of the whole workflow."""
LOOKED_UP = {
    "attributes": tuple(
        name
        for column in (
            *KINDS, "agent_id", "graph_node", "traceloop_name", "ai_sdk_function", "agent_version", "metadata",
            "workflow_name", "request_model", "answering_model", "openinference_model", "invocation_parameters",
            "tool_name", "error_type", "dataset_item",
        )
        for name in ATTRIBUTES[column]
    ),
    "resourceAttributes": ("service.name", "service.version"),
    "scope": ("name",),
}  # fmt: skip
"""What is read of the metadata, in which an observation's own attributes and those of its program lie."""
NO_LEVEL = "level is missing, so whether it failed is not known"


def normal(record: Record) -> Record:
    """The record with the field names of the API, and of its metadata what is looked at here, as one flat object."""
    found = {_camel_name(name): value for name, value in record.items()}
    if "metadata" in found:
        found["metadata"] = _metadata(_json_object(found["metadata"]))
    return found


def _metadata(metadata: Record) -> Record:
    found = {}
    for place, names in LOOKED_UP.items():
        told_there = _json_object(metadata.get(place))
        for name in names:
            found[f"{place}.{name}"] = told_there.get(name, metadata.get(f"{place}.{name}"))
    of_langchain = _json_object(found.pop("attributes.metadata"))
    found[LANGCHAIN_AGENT] = metadata.get(LANGCHAIN_AGENT, of_langchain.get(LANGCHAIN_AGENT))
    return present(found)


def _json_object(value: Any) -> Record:
    """The object, also one that is written as text within the JSON."""
    if isinstance(value, str) and value.startswith("{"):
        try:
            return as_object(json.loads(value))
        except (ValueError, RecursionError):
            return {}
    return as_object(value)


@lru_cache(maxsize=1000)
def _camel_name(name: str) -> str:
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), name)


def is_observation(record: Record) -> bool:
    """Whether the record, in camel case, is an observation."""
    return "startTime" in record and record.get("type") in TYPES


def is_score(record: Record) -> bool:
    """Whether the record, in camel case, is a score."""
    has_value = "value" in record or "stringValue" in record
    return has_value and "name" in record and ("dataType" in record or "traceId" in record) and "type" not in record


def is_trace(record: Record) -> bool:
    """Whether the record, in camel case, is a trace, with or without its observations."""
    return "id" in record and "timestamp" in record and "type" not in record and any(
        name in record for name in TRACE_FIELDS
    )  # fmt: skip


def stated_score(score: Record) -> Record:
    """What a score says: a `value`, a `label` or both; nothing of one that is a text, which may hold anything.

    Of a category the label counts alone, since its number only says which one it is.
    """
    kind, value = score.get("dataType"), score.get("value")
    text = as_name(score.get("stringValue")) or as_name(value)
    if kind == "CATEGORICAL":
        return present({"label": text})
    if kind == "BOOLEAN":
        return present({"value": float(value) if isinstance(value, bool) else as_number(value), "label": text})
    return present({"value": as_number(value)}) if kind in (None, "NUMERIC") else {}


# -- ids -------------------------------------------------------------------------------------------------------------


def trace_id(langfuse_id: str) -> str:
    """32 hexadecimal digits: the id itself, a UUID without its dashes, else a digest of the id."""
    return trace_id_of(langfuse_id, "langfuse trace")


def observation_span_id(langfuse_id: str) -> str:
    """16 hexadecimal digits: the id itself, else a digest of it."""
    return span_id_of(langfuse_id, "langfuse observation")


def trace_span_id(langfuse_id: str) -> str:
    """The id of the span that stands for the whole trace."""
    return hex_id(16, "langfuse trace span", langfuse_id)


def row_of_trace(langfuse_id: str) -> str:
    """The id of the row that newer servers put above a trace's roots; it is named after the trace and has no end."""
    return f"t-{langfuse_id}"


def required_name(record: Record, name: str) -> str:
    """A text that must be there.

    Raises:
        UnusableRecordError: it is not.
    """
    value = as_name(record.get(name))
    if value is None:
        raise UnusableRecordError(f"{name} is missing")
    return value


def is_root(record: Record, trace_key: str, known: Iterable[str] | None = None) -> bool:
    """Whether nothing of its trace is above the observation.

    Args:
        record: the observation.
        trace_key: Langfuse's id of its trace.
        known: ids of all observations of the trace; None where only this one is at hand. What hangs below an
            observation that the trace does not hold hangs below the trace: the part above ran in another system.
    """
    parent = as_name(record.get("parentObservationId"))
    if parent in (None, row_of_trace(trace_key)) or record.get("isRootObservation") is True:
        return True
    return record.get("isAppRoot") is True or (known is not None and parent not in known)


# -- what an observation says ----------------------------------------------------------------------------------------


def times(record: Record) -> tuple[datetime, datetime]:
    """The times of its start and end.

    Raises:
        UnusableRecordError: one of them is not known, or they are in the wrong order.
    """
    started_at = as_time(record.get("startTime"), "startTime")
    ended_at = as_time(record.get("endTime"), "endTime")
    if ended_at < started_at:
        raise UnusableRecordError("endTime is before startTime")
    return started_at, ended_at


def error(record: Record) -> str | None:
    """The message of an observation that failed, empty where it has none; None for one that did not.

    Raises:
        UnusableRecordError: it does not say whether it failed, as an export without its basic fields.
    """
    if "level" not in record:
        raise UnusableRecordError(NO_LEVEL)
    told_type, message = told(record, "error_type"), as_name(record.get("statusMessage"))
    if str(record["level"]).upper() != ERROR_LEVEL and told_type is None:
        return None
    if re.search(IS_CONTROL_FLOW, told_type or "") or re.search(BEGINS_WITH_CONTROL_FLOW, message or ""):
        return None
    return message or told_type or ""


def kind(record: Record) -> str:
    """The kind of its span: by its type, and for a type that says nothing by what its tool told."""
    of_type = KIND_OF_TYPE.get(str(record.get("type")), "other")
    if record.get("type") == EVENT or of_type in ("chat", "tool"):
        return of_type
    stated = {column: told(record, column) for column in KINDS}
    if of_type == "agent":  # Langfuse calls `create_agent` so, too, and that is no run
        named = {"create_agent": "other", **KIND_OF_OPERATION}.get(stated["operation"] or "")
        return named if named in ("other", "workflow") else "agent"
    stated["openinference_kind"] = (stated["openinference_kind"] or "").upper()
    if not (as_name(record.get("name")) or "").startswith(CLAUDE_CODE):
        stated["span_type"] = None
    found = (kinds.get(stated[column] or "") for column, (kinds, *_) in KINDS.items())
    return next(filter(None, found), "other")


def model(record: Record) -> str | None:
    """The model of a model call that was asked for; None where no field names it.

    Langfuse's own field names the model that answered wherever the instrumentation told that one, so what the
    instrumentation itself told of the request goes before it.
    """
    parameters = _json_object(told(record, "invocation_parameters"))
    of_request = (told(record, "request_model"), *(as_name(parameters.get(name)) for name in MODELS_IN_PARAMETERS))
    asked_for = next((name for name in of_request if name is not None and name not in NO_MODELS), None)
    return asked_for or _own_model(record) or told(record, "openinference_model") or told(record, "answering_model")


def response_model(record: Record) -> str | None:
    """The model that answered, where the instrumentation told it."""
    return told(record, "answering_model") or told(record, "openinference_model")


def _own_model(record: Record) -> str | None:
    return as_name(record.get("model")) or as_name(record.get("providedModelName"))


def dataset_item(record: Record) -> str | None:
    """The item of a dataset that an experiment ran it for, where the export tells it."""
    return as_name(record.get("experimentItemId")) or told(record, "dataset_item")


def tool_name(record: Record) -> str | None:
    """The tool's name where the instrumentation told one apart from the name of the observation."""
    return told(record, "tool_name")


def agent_name(record: Record) -> str | None:
    """The agent's name where the instrumentation told one; the name of an observation is none by itself."""
    name = told(record, "agent_id") or _of_metadata(record, LANGCHAIN_AGENT)
    if name is None and kind(record) == "workflow":
        name = told(record, "workflow_name")
    if name is None and kind(record) == "agent":
        name = told(record, "graph_node") or told(record, "traceloop_name")
    return name or told(record, "ai_sdk_function") or _name_in_name(record)


def _name_in_name(record: Record) -> str | None:
    """The agent's name from the name of an observation, for instrumentations that tell it nowhere else."""
    pattern = NAMES_IN_NAMES.get(_of_metadata(record, "scope.name") or "")
    if pattern is None or kind(record) != "agent" or as_name(record.get("parentObservationId")) is None:
        return None
    found = pattern.fullmatch(as_name(record.get("name")) or "")
    return found[1] if found else None


def version(record: Record) -> str | None:
    """The version of the agent: the version that the program gave, else its release, else that of its service."""
    fields = (as_name(record.get("version")), as_name(record.get("release")))
    names = (*fields, told(record, "agent_version"), _of_metadata(record, "resourceAttributes.service.version"))
    return next((name for name in names if name is not None), None)


def service(record: Record) -> str | None:
    """The service that ran it; None where nobody named it."""
    name = _of_metadata(record, "resourceAttributes.service.name")
    return None if name is None or name.startswith("unknown_service") else name


def says_operation_only(name: str) -> bool:
    """Whether a name is just that of an operation, which every agent of a framework has."""
    return name in KIND_OF_OPERATION or name in KIND_IN_AI_SDK


def told(record: Record, column: str) -> str | None:
    """The first of these attributes that the instrumentation itself set, as text.

    Args:
        record: the observation.
        column: a key of `conventions.ATTRIBUTES`.
    """
    found = (_of_metadata(record, f"attributes.{name}") for name in ATTRIBUTES[column])
    return next((value for value in found if value is not None), None)


def _of_metadata(record: Record, name: str) -> str | None:
    return as_name(as_object(record.get("metadata")).get(name))


# -- what a model call used ------------------------------------------------------------------------------------------


def tokens(record: Record) -> tuple[int | None, int | None]:
    """Tokens in and out; nothing where both are 0, which is how Langfuse writes that it does not know.

    Langfuse counts what came from a cache or was reasoned apart, under names of their own: all that have `input` in
    them are the input, as on its own page.
    """
    details, usage = _json_object(record.get("usageDetails")), _json_object(record.get("usage"))
    if as_name(usage.get("unit")) not in (None, "TOKENS"):
        usage = {}
    found = tuple(
        next(
            (
                count
                for count in (
                    _sum_of(details, word),
                    _sum_of(usage, word),
                    *(as_count(place.get(name)) for place in (details, usage) for name in names),
                    *(as_count(record.get(name)) or None for name in (f"{word}Usage", *names)),  # 0 where not known
                )
                if count is not None
            ),
            None,
        )
        for word, names in (("input", INPUT_TOKENS), ("output", OUTPUT_TOKENS))
    )
    return (found[0], found[1]) if any(found) else (None, None)


def token_details(record: Record) -> tuple[int | None, int | None, int | None]:
    """Input tokens that came from a cache, those that were written to one, and output tokens of reasoning.

    Langfuse and its SDKs write `input_cached_tokens`, `cache_read_input_tokens` and `input_cache_creation`, for
    example.
    """
    details = _json_object(record.get("usageDetails"))
    cached = {name: count for name, count in details.items() if "cache" in name.lower()}
    written = {name: count for name, count in cached.items() if re.search("creation|write", name.lower())}
    read = {name: count for name, count in cached.items() if name not in written}
    reasoning = {name: count for name, count in details.items() if "reasoning" in name.lower()}
    return _sum_of(read, "input"), _sum_of(written, "input"), _sum_of(reasoning, "output")


def has_other_units(record: Record) -> bool:
    """Whether the usage counts something else than tokens."""
    return as_name(_json_object(record.get("usage")).get("unit")) not in (None, "TOKENS") and tokens(record)[0] is None


def _sum_of(details: Record, word: str) -> int | None:
    counts = [as_count(value) for name, value in details.items() if word in name.lower() and "cost" not in name.lower()]
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def cost(record: Record) -> float | None:
    """The cost in USD. Langfuse writes a total of 0 beside empty details when it knows no price."""
    details = _json_object(record.get("costDetails"))
    parts = [number for name, value in details.items() if name != "total" and (number := as_number(value)) is not None]
    total = as_number(details.get("total"))
    if total is not None or parts:
        return total if total is not None else sum(parts)
    values = (as_number(record.get("totalCost")), as_number(record.get("calculatedTotalCost")))
    return next((value for value in values if value), None)
