"""A first declaration for JSON of one's own, from the records of a file, for people to review.

What belongs here: which field of a record probably says what. What does not: reading the declaration
(`logs.formats.declaration`).
"""

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from health_assets.core.errors import HealthAssetsError
from health_assets.logs.files import head_of
from health_assets.logs.formats.declaration import as_text
from health_assets.logs.formats.expressions import compiled
from health_assets.logs.formats.foreign_lines import Line
from health_assets.logs.formats.json_pieces import Document, DocumentError
from health_assets.logs.formats.lines import objects
from health_assets.logs.formats.opening import Opening
from health_assets.logs.limits import Unpacking
from health_assets.logs.plain import plain_blocks
from health_assets.logs.stores import RawFile
from health_assets.logs.unicode import as_utf_8

MOST_RECORDS = 1_000
"""Records of a file that are looked at."""
MOST_WORDS = 12
"""Different values of a status that are listed."""
MOST_DEPTH = 3

NAMES = {
    "execution_id": ("execution_id", "run_id", "runid", "trace_id", "traceid", "job_id", "request_id", "uuid", "id",
                     "run"),
    "agent_id": ("agent_id", "agent_name", "agent", "bot", "assistant", "worker", "workflow", "service", "app", "name"),
    "started_at": ("started_at", "start_time", "starttime", "started", "start", "begin", "begun", "begin_time"),
    "ended_at": ("ended_at", "end_time", "endtime", "finished_at", "completed_at", "ended", "finished", "end",
                 "timestamp", "time", "ts", "created_at", "date"),
    "status": ("status", "state", "outcome", "success", "succeeded", "ok", "passed", "result", "is_error", "failed"),
    "error": ("error_message", "error", "exception", "err", "failure", "reason", "message"),
    "session_id": ("session_id", "sessionid", "session", "conversation_id", "thread_id", "chat_id"),
    "task_id": ("task_id", "task", "example_id", "case_id", "instance_id"),
    "agent_version": ("agent_version", "version", "release", "build", "commit"),
    "model": ("model", "model_name", "model_id", "llm"),
    "cost_usd": ("cost_usd", "total_cost", "cost", "price"),
    "input_tokens": ("input_tokens", "prompt_tokens", "tokens_in", "tokens_prompt"),
    "output_tokens": ("output_tokens", "completion_tokens", "tokens_out", "tokens_completion"),
}  # fmt: skip
"""By field of an execution, what other programs call it; the first that is there is taken."""
DURATIONS = {"duration_ms": 0.001, "took_ms": 0.001, "latency_ms": 0.001, "elapsed_ms": 0.001, "ms": 0.001,
             "duration_s": 1.0, "duration": 1.0, "elapsed": 1.0, "runtime": 1.0, "seconds": 1.0}  # fmt: skip
"""By name of a duration, the seconds in its unit."""
GOOD = (
    "true", "1", "ok", "success", "successful", "succeeded", "done", "completed", "complete", "pass", "passed",
    "finished",
)  # fmt: skip
BAD = (
    "false", "0", "error", "failure", "failed", "fail", "broken", "timeout", "timed_out", "crashed", "exception",
    "aborted",
)  # fmt: skip
SAYS_THE_CONTRARY = ("is_error", "failed")
"""Names of flags that tell a failure."""
LISTS = ("runs", "results", "records", "data", "items", "executions", "traces", "events")
"""Members of a document that hold its records."""
UNDECIDED = "success or failure?"


def suggested(file: RawFile) -> str:
    """YAML of a declaration, with a comment where somebody has to decide.

    Raises:
        HealthAssetsError: the file holds no JSON object, or cannot be read.
    """
    head, _ = head_of(file, as_utf_8(plain_blocks(file, Unpacking(1 << 30))))
    opening = Opening(file.source_file, head)
    member, found = (None, _lines(file)) if opening.has_lines else _document(file)
    records = [*islice((record for record in found if isinstance(record, dict)), MOST_RECORDS)]
    if not records:
        raise HealthAssetsError(f"{file.source_file} holds no JSON object, so no declaration can be suggested for it")
    return "\n".join(_declaration(file, member, records)) + "\n"


def _lines(file: RawFile) -> Iterator[Any]:
    for item in objects(as_utf_8(plain_blocks(file, Unpacking(1 << 30)))):
        if not isinstance(item, Line):
            yield item[1]


def _document(file: RawFile) -> tuple[str | None, Iterator[Any]]:
    """The member of a document that lists its records, where one does, and the records."""
    document = Document(as_utf_8(plain_blocks(file, Unpacking(1 << 30))))
    try:
        if document.peek() == "[":
            return None, document.elements()
        whole = document.value()
    except DocumentError as error:
        raise HealthAssetsError(f"{file.source_file}: {error.reason}") from None
    for name in LISTS if isinstance(whole, dict) else ():
        if isinstance(whole.get(name), list) and any(isinstance(one, dict) for one in whole[name]):
            return name, iter(whole[name])
    return None, iter([whole])


def _declaration(file: RawFile, member: str | None, records: Sequence[dict[str, Any]]) -> Iterator[str]:
    paths = _paths(records)
    chosen = {field: path for field, names in NAMES.items() if (path := _named(paths, names)) is not None}
    duration = next((path for name in DURATIONS for path in paths if _last(path) == name), None)
    signs = [name for name in records[0] if all(name in record for record in records)] or [*records[0]]
    yield f"name: {json.dumps(file.source_file.partition('.')[0] or 'my logs')}"
    yield "recognize: # fields that all of these files have, and no other"
    if member is None:
        yield f"  - fields: {json.dumps(signs[:4])}"
    else:
        yield f"  - fields: {json.dumps([member])}"
        yield f"    record_fields: {json.dumps(signs[:4])}"
        yield f"records: {member}"
    if "ended_at" not in chosen:
        yield "file_time: true # no field tells when a run ended: the modification time of the file stands for it"
    yield "make:"
    yield "  - type: execution"
    yield "    fields:"
    yield from _identity(chosen)
    yield from _times(chosen, duration)
    yield from _status(chosen.pop("status", None), chosen.get("error"), records)
    for field, path in chosen.items():
        yield f"      {field}: {_quoted(path)}"


def _identity(chosen: dict[str, str]) -> Iterator[str]:
    if (execution := chosen.pop("execution_id", None)) is not None:
        yield f"      execution_id: {_quoted(execution)}"
    agent = chosen.pop("agent_id", None)
    yield f"      agent_id: {_quoted(agent)}" if agent else "      agent_id: {constant: my-agent} # which agent is it?"


def _times(chosen: dict[str, str], duration: str | None) -> Iterator[str]:
    start, end = chosen.pop("started_at", None), chosen.pop("ended_at", None)
    factor = DURATIONS[_last(duration)] if duration else 1.0
    if start is not None:
        yield f"      started_at: {_quoted(start)}"
        if end is None and duration is not None:
            yield f"      ended_at: {{path: {_quoted(start)}, plus: {_quoted(duration)}, factor: {factor:g}}}"
    elif end is not None and duration is not None:
        yield f"      started_at: {{path: {_quoted(end)}, plus: {_quoted(duration)}, factor: {-factor:g}}}"
    if end is not None:
        yield f"      ended_at: {_quoted(end)}"


def _status(path: str | None, error: str | None, records: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The status; where no field tells it, the declaration is refused until somebody decides."""
    if path is None and error is None:
        yield f"      status: # no field tells it: {UNDECIDED}"
        return
    if path is None:
        assert error is not None
        yield f"      status: {{constant: success, unless: {_quoted(error or '')}}} # no field tells it but the error"
        return
    words = {as_text(compiled(path)(record)) for record in records}
    if all(map(_is_number, words)) and not words <= {"0", "1"}:
        yield f"      status: # from which number on is it a success? {{path: {_quoted(path)}, at_least: …}}"
        return
    yield "      status:"
    yield f"        path: {_quoted(path)}"
    yield "        values:"
    for word in sorted(words)[:MOST_WORDS]:
        said = _meaning(word, path)
        yield f"          {json.dumps(word)}: {said or f'failure # {UNDECIDED}'}"


def _meaning(word: str, path: str) -> str | None:
    is_good, is_bad = word.lower() in GOOD, word.lower() in BAD
    if _last(path) in SAYS_THE_CONTRARY:
        is_good, is_bad = is_bad, is_good
    return "success" if is_good else "failure" if is_bad else None


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _paths(records: Sequence[dict[str, Any]]) -> list[str]:
    """Paths of the values of records, the outer ones first."""
    found: dict[str, int] = {}
    for record in records:
        _add_paths(record, "", 1, found)
    return sorted(found, key=lambda path: (found[path], path))


def _add_paths(value: dict[str, Any], prefix: str, depth: int, found: dict[str, int]) -> None:
    for name, inner in value.items():
        quoted = name if name.isidentifier() and name.isascii() else json.dumps(name)
        path = f"{prefix}{quoted}"
        if isinstance(inner, dict) and depth < MOST_DEPTH:
            _add_paths(inner, f"{path}.", depth + 1, found)
        elif not isinstance(inner, dict | list):
            found.setdefault(path, depth)


def _named(paths: Sequence[str], names: Sequence[str]) -> str | None:
    """The path of the first of these names that is there, the outermost of several."""
    return next((path for name in names for path in paths if _last(path) == name), None)


def _last(path: str) -> str:
    return path.rpartition(".")[2].strip('"').lower().replace("-", "_")


def _quoted(path: str) -> str:
    """A path as YAML writes it: one with quotes of its own would lose them."""
    return json.dumps(path) if '"' in path else path
