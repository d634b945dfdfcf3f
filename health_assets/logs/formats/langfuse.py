"""Langfuse's exports: traces, observations and scores, as OTLP-JSON and `signals` lines. The mapping: docs/formats.md.

What belongs here: which files and documents hold what. What does not: what a record says (`langfuse_records`) and what
spans follow from it (`langfuse_traces`).

Each kind of record is told by its fields, one by one, so all may lie in one file or in three. A trace may hold its
observations and scores, or lie beside them in the download of the web page.
"""

from collections.abc import Iterator
from typing import Any

from health_assets.logs.formats import langfuse_records as records
from health_assets.logs.formats.foreign_lines import (
    Line,
    Record,
    Source,
    UnusableRecordError,
    as_content,
    as_time,
    line_of,
    rejected,
)
from health_assets.logs.formats.json_pieces import Document, DocumentError
from health_assets.logs.formats.langfuse_traces import Runs, executions_of_trace, lines_of_observation, lines_of_trace
from health_assets.logs.formats.lines import objects
from health_assets.logs.json_values import as_list, as_name, as_object
from health_assets.schema.log_fields import SIGNALS

DOWNLOAD_FIELDS = {"trace", "observations", "scores"}
"""Members of a download of the web page: newer servers write no trace, older ones no scores of their own."""
LISTS = ("data", "traces")
"""Members with records: of an answer of the API, and of the download of a session."""
LARGE_FIELDS = ("input", "output")
CONTENTS = {"TOOL": LARGE_FIELDS, "GENERATION": LARGE_FIELDS}
"""Of which of them digests are kept, by the type of their observation; of any other type of the input alone."""
UNKNOWN = "neither a trace nor an observation nor a score of Langfuse"
NO_OBSERVATIONS = (
    "Langfuse trace without its observations, which alone tell when it ended and whether it failed: its root "
    "observation stands for it where it comes by itself"
)
ONLY_IDS = "Langfuse score of which its trace tells the id alone"
NO_TIME_OF_SCORE = "Langfuse score in a row of a table, which does not tell its time"


def is_record(members: Record) -> bool:
    """Whether an object that has these members is a trace, an observation, a score or a download of a trace."""
    record = records.normal(members)
    return (
        records.is_observation(record) or records.is_score(record) or records.is_trace(record) or _is_download(members)
    )


def _is_download(members: Record) -> bool:
    return bool({"trace", "observations"} & members.keys()) and members.keys() <= DOWNLOAD_FIELDS


def is_page(members: Record) -> bool:
    """Whether an object that has these members is an answer of the API that lists records, or a session's download."""
    return ("data" in members and set(members) <= {"data", "meta"}) or {"id", "traces", "comments"} <= members.keys()


def read_lines(source: Source) -> Iterator[Line]:
    """One record a line."""
    runs: Runs = {}
    for item in objects(source.blocks):
        if isinstance(item, Line):
            yield item
        else:
            yield from _lines(source, *item, runs)


def read_document(source: Source) -> Iterator[Line]:
    """A list of records, an object with such a list, a download of a trace, or one record over many lines."""
    document, number = Document(source.blocks), 0
    runs: Runs = {}
    members: Record = {}
    is_list = False
    try:
        if document.peek() == "[":
            for record in document.elements():
                number += 1
                yield from _lines(source, number, record, runs)
        else:
            for name in document.members():
                if name in LISTS and document.peek() == "[":
                    is_list = True
                    for record in document.elements():
                        number += 1
                        yield from _lines(source, number, record, runs)
                elif name == "observations" and document.peek() == "[":
                    members[name] = [_without_texts(item) for item in document.elements()]
                else:
                    members[name] = document.value()
            if not is_list:
                number = 1
                yield from _lines(source, number, members, runs)
        document.finish()
    except DocumentError as error:
        yield rejected(number + 1, error.piece, error.reason)


def _without_texts(item: Any) -> Any:
    """An observation with no more of what its model was told and said, or its tool, than is looked at."""
    if not isinstance(item, dict):
        return item
    kept = CONTENTS.get(str(item.get("type")), ("input",))
    contents = {name: as_content(item[name]) for name in kept if name in item}
    return {name: value for name, value in item.items() if name not in LARGE_FIELDS} | contents


def _lines(source: Source, number: int, raw: Any, runs: Runs) -> Iterator[Line]:
    members = as_object(raw)
    try:
        if _is_download(members):
            for trace in _traces_of_download(members):
                yield from _trace_lines(source, number, trace)
            return
        record = records.normal(members)
        if records.is_observation(record):
            yield from _row_lines(source, number, members, runs)
        elif records.is_score(record):
            yield from _score_lines(source, number, [record])
        elif records.is_trace(record):
            yield from _trace_lines(source, number, members)
        else:
            raise UnusableRecordError(UNKNOWN)
    except UnusableRecordError as error:
        yield rejected(number, raw, str(error))


def _row_lines(source: Source, number: int, raw: Record, runs: Runs) -> Iterator[Line]:
    trace_key = as_name(raw.get("traceId", raw.get("trace_id")))
    if trace_key is not None and raw.get("id") == records.row_of_trace(trace_key):
        source.notes[NO_OBSERVATIONS] += 1
    else:
        yield from lines_of_observation(source, number, raw, runs)


# -- traces ----------------------------------------------------------------------------------------------------------


def _traces_of_download(download: Record) -> list[Record]:
    """The traces with their observations and scores; of a download that tells no trace, what observations tell of it.

    Raises:
        UnusableRecordError: it holds neither a trace nor observations of one.
    """
    beside = {name: download[name] for name in ("observations", "scores") if name in download}
    if isinstance(download.get("trace"), dict):
        return [download["trace"] | beside]
    traces: dict[str, Record] = {}
    for item in as_list(download.get("observations")):
        record = records.normal(as_object(item))
        trace_key = as_name(record.get("traceId"))
        if trace_key is None or not records.is_observation(record):
            raise UnusableRecordError(UNKNOWN)
        trace = traces.setdefault(trace_key, {"id": trace_key, "observations": [], "scores": [], "latency": None})
        trace["observations"].append(item)
        started = [found for found in (trace.get("timestamp"), as_name(record.get("startTime"))) if found is not None]
        trace["timestamp"] = min(started, default=None)
        for name, told in (
            ("name", "traceName"),
            *((same, same) for same in ("sessionId", "userId", "version", "release")),
        ):
            trace[name] = trace.get(name) or record.get(told)
    if not traces:
        raise UnusableRecordError(UNKNOWN)
    for score in as_list(download.get("scores")):
        of_trace = traces.get(str(as_object(score).get("traceId"))) or next(iter(traces.values()))
        of_trace["scores"].append(score)
    return list(traces.values())


def _trace_lines(source: Source, number: int, raw: Record) -> Iterator[Line]:
    record = records.normal(raw)
    held = [item for item in as_list(record.get("observations")) if isinstance(item, dict)]
    listed = as_list(record.get("scores"))
    scores = [records.normal(item) for item in listed if isinstance(item, dict)]
    if len(listed) > len(scores):
        source.notes[ONLY_IDS] += len(listed) - len(scores)
    if held:
        yield from lines_of_trace(source, number, record, held)
    else:
        source.notes[NO_OBSERVATIONS] += 1
    table_scores = sum(name in record for name in SIGNALS)
    if table_scores:
        source.notes[NO_TIME_OF_SCORE] += table_scores
    if scores:
        yield from _score_lines(source, number, scores, record, held)


# -- scores ----------------------------------------------------------------------------------------------------------


def _score_lines(
    source: Source, number: int, scores: list[Record], trace: Record | None = None, held: list[Record] | None = None
) -> Iterator[Line]:
    """A record for each score: `signals` for a number that is named like one, `evaluation` for any other.

    What a person wrote as a score, or beside it, is no record.
    """
    for score in scores:
        name, stated = as_name(score.get("name")), records.stated_score(score)
        signal = (name or "").lower().replace(" ", "_").replace("-", "_")
        trace_key = as_name(score.get("traceId")) or as_name((trace or {}).get("id"))
        session_id = as_name(score.get("sessionId"))
        is_signal = signal in SIGNALS and score.get("dataType") in (None, "NUMERIC")
        is_signal = is_signal and not isinstance(score.get("value"), bool)
        if not stated and not is_signal:
            source.notes["Langfuse score that is neither a number nor a category"] += 1
            continue
        if trace_key is None and (session_id is None or is_signal):
            source.notes["Langfuse score of a session or a dataset run, not of a trace"] += 1
            continue
        about: Record = {} if session_id is None else {"session_id": session_id}
        if trace_key is not None:
            span_id = _scored_span(score, trace_key, trace, held or [])
            if span_id is None and is_signal:
                source.notes["Langfuse score of a trace with several agents, which does not tell whose"] += 1
                continue
            of_span = "" if span_id is None else f":{span_id}"
            about["execution_id"] = f"{records.trace_id(trace_key)}{of_span}"
        try:
            at = as_time(score.get("timestamp"), "timestamp").isoformat()
        except UnusableRecordError as error:
            yield rejected(number, {key: value for key, value in score.items() if key != "comment"}, str(error))
            continue
        if is_signal:
            told = {"type": "signals", "execution_id": about["execution_id"], "at": at, signal: score.get("value")}
        else:
            told = {"type": "evaluation", "name": name, "at": at, **about, **stated}
        yield line_of(number, told)


def _scored_span(score: Record, trace_key: str, trace: Record | None, held: list[Record]) -> str | None:
    """The span that a score is about; None where the trace has several executions and the score names none.

    A score of the trace, of the row that stands for it, or of a root observation is one of the execution.
    """
    executions, roots = [records.trace_span_id(trace_key)], set[str]()
    if trace is not None and trace.get("id") == trace_key:
        executions, roots = executions_of_trace(trace, held)
    observation = as_name(score.get("observationId"))
    if observation not in (None, records.row_of_trace(trace_key), *roots):
        return records.observation_span_id(str(observation))
    return executions[0] if len(executions) == 1 else None
