"""A first declaration for JSON of one's own, from the records of a file, for people to review.

What belongs here: which field of a record probably says what. What does not: reading the declaration
(`logs.formats.declaration`).
"""

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from health_assets.core.errors import HealthAssetsError
from health_assets.logs.decompression import decompressed_blocks
from health_assets.logs.files import head_of
from health_assets.logs.formats import recognized
from health_assets.logs.formats.declaration import as_text
from health_assets.logs.formats.expressions import compiled
from health_assets.logs.formats.foreign_lines import Line
from health_assets.logs.formats.json_pieces import Document, DocumentError
from health_assets.logs.formats.lines import objects
from health_assets.logs.formats.opening import Opening
from health_assets.logs.limits import Unpacking
from health_assets.logs.stores import RawFile
from health_assets.logs.unicode import as_utf_8
from health_assets.logs.unknown_formats import NO_LOG, hint_of

MOST_RECORDS = 1_000
"""Records of a file that are looked at."""
MOST_WORDS = 12
"""Different values of a status that are listed."""
MOST_DEPTH = 3
MOST_LISTED = 12

NAMES = {
    "execution_id": ("execution_id", "run_id", "trace_id", "job_id", "request_id", "uuid", "id", "run", "job"),
    "agent_id": ("agent_id", "agent_name", "agent", "bot", "assistant", "worker", "workflow", "service", "app", "name"),
    "started_at": ("started_at", "start_time", "start_ts", "started", "start", "begin_time", "begin", "begun", "t0"),
    "ended_at": ("ended_at", "end_time", "end_ts", "finished_at", "completed_at", "ended", "finished", "end", "t1",
                 "timestamp", "time", "ts", "created_at", "date"),
    "error": ("error_message", "error", "exception", "err", "failure", "reason", "why", "cause", "message"),
    "session_id": ("session_id", "session", "conversation_id", "thread_id", "chat_id"),
    "task_id": ("task_id", "task", "example_id", "case_id", "case", "instance_id"),
    "agent_version": ("agent_version", "version", "ver", "release", "build", "commit"),
    "model": ("model", "model_name", "model_id", "llm"),
    "cost_usd": ("cost_usd", "total_cost", "cost", "price", "usd"),
    "input_tokens": ("input_tokens", "prompt_tokens", "tokens_in", "tokens_prompt", "tok_in",
                     "usage.input", "usage.prompt", "tokens.input", "tokens.prompt"),
    "output_tokens": ("output_tokens", "completion_tokens", "tokens_out", "tokens_completion", "tok_out",
                      "usage.output", "usage.completion", "tokens.output", "tokens.completion"),
}  # fmt: skip
"""By field of an execution, what other programs call it, also without underscores; the first that is there is taken.

With a dot, the field must lie in another one of this name.
"""
OUTCOMES = (
    "status", "state", "outcome", "success", "succeeded", "ok", "passed", "result", "is_error", "failed", "code",
)  # fmt: skip
"""What other programs call an outcome."""
DURATIONS = {
    "duration_ms": 0.001, "took_ms": 0.001, "latency_ms": 0.001, "elapsed_ms": 0.001, "ms": 0.001,
    "duration_s": 1.0, "duration_seconds": 1.0, "elapsed_s": 1.0, "elapsed_seconds": 1.0, "runtime_s": 1.0,
    "runtime_seconds": 1.0, "took_s": 1.0, "latency_s": 1.0, "duration": 1.0, "elapsed": 1.0, "runtime": 1.0,
    "seconds": 1.0, "secs": 1.0,
}  # fmt: skip
"""By name of a duration, the seconds in its unit."""
TEXTS = ("prompt", "text", "content", "input", "output", "question", "answer", "request", "response", "code", "path")
"""Names of fields that may hold what nobody should store."""
GOOD = ("true", "1", "ok", "success", "successful", "succeeded", "pass", "passed")
"""Words that say more than that it ended, as `done` and `completed` do not."""
BAD = (
    "false", "0", "error", "failure", "failed", "fail", "broken", "timeout", "timed_out", "crashed", "exception",
)  # fmt: skip
CANCELLED = ("cancelled", "canceled")
ENDED_FROM_OUTSIDE = ("aborted", "interrupted")
SAYS_THE_CONTRARY = ("is_error", "failed")
"""Names of flags that tell a failure."""
LISTS = ("runs", "results", "records", "data", "items", "executions", "traces", "events")
"""Members of a document that hold its records."""
UNDECIDED = "success or failure?"
CANCELLED_BY_WHOM = "or failure, where its user did not want that?"


def suggested(file: RawFile) -> str:
    """YAML of a declaration, with a comment where somebody has to decide.

    Raises:
        HealthAssetsError: the file holds no JSON object, or cannot be read.
    """
    head, _ = head_of(file, as_utf_8(decompressed_blocks(file, Unpacking(1 << 30))))
    opening = Opening(file.source_file, head)
    member, found = (None, _lines(file)) if opening.has_lines else _document(file)
    records = [*islice((record for record in found if isinstance(record, dict)), MOST_RECORDS)]
    if not records:
        raise HealthAssetsError(f"{file.source_file} holds no JSON object, so no declaration can be suggested for it")
    return "\n".join([*_remarks(opening, head), *_declaration(file, member, records)]) + "\n"


def _remarks(opening: Opening, head: bytes) -> Iterator[str]:
    """A comment where a file needs no declaration."""
    if known := recognized(opening):
        yield f"# needed only for other files than this one, which is read as {known[0].name}"
    elif (look := hint_of(head)).hint == NO_LOG:
        yield f"# this {look}"


def _lines(file: RawFile) -> Iterator[Any]:
    for item in objects(as_utf_8(decompressed_blocks(file, Unpacking(1 << 30)))):
        if not isinstance(item, Line):
            yield item[1]


def _document(file: RawFile) -> tuple[str | None, Iterator[Any]]:
    """The member of a document that lists its records, where one does, and the records."""
    document = Document(as_utf_8(decompressed_blocks(file, Unpacking(1 << 30))))
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
    paths, lists = _paths(records)
    chosen = {field: path for field, names in NAMES.items() if (path := _named(paths, names)) is not None}
    duration, outcomes = _named(paths, tuple(DURATIONS)), [path for path in paths if _is_called(path, OUTCOMES)]
    signs = [name for name in records[0] if all(name in record for record in records)] or [*records[0]]
    yield f"name: {json.dumps(file.source_file.partition('.')[0] or 'my logs')}"
    yield "recognize: # fields that all of these files have, and no other"
    if member is None:
        yield f"  - fields: {json.dumps(signs[:4])}"
    else:
        yield f"  - fields: {json.dumps([member])}"
        yield f"    record_fields: {json.dumps(signs[:4])}"
        yield f"records: {member}"
    if texts := [path for path in paths if _is_called(path, TEXTS) and path not in chosen.values()]:
        yield f"# private: true # stores no text of these files: there is {_listed(texts)}"
    yield "make:"
    yield "  - type: execution"
    yield "    fields:"
    yield from _identity(chosen)
    yield from _times(chosen, duration)
    yield from _status(outcomes, records)
    for field, path in chosen.items():
        if field not in (*IDENTITY, *TIMES):
            yield f"      {field}: {_quoted(path)}"
    if unused := [path for path in paths + lists if path not in (*chosen.values(), *outcomes, duration)]:
        yield f"# fields that nothing uses: {_listed(unused)}"


IDENTITY, TIMES = ("execution_id", "agent_id"), ("started_at", "ended_at")


def _identity(chosen: dict[str, str]) -> Iterator[str]:
    if "execution_id" in chosen:
        yield f"      execution_id: {_quoted(chosen['execution_id'])}"
    if "agent_id" in chosen:
        yield f"      agent_id: {_quoted(chosen['agent_id'])}"
    else:
        yield "      agent_id: {constant: my-agent} # which agent is it?"


def _times(chosen: dict[str, str], duration: str | None) -> Iterator[str]:
    """The times; where no field tells the end, the declaration is refused until somebody decides."""
    start, end = (_quoted(chosen[name]) if name in chosen else None for name in TIMES)
    factor = DURATIONS[next(name for name in DURATIONS if _is_called(duration, (name,)))] if duration else 1.0
    length = f"plus: {_quoted(duration)}, factor: {{:g}}" if duration else ""
    if start is not None:
        yield f"      started_at: {start}"
    elif end is not None and duration is not None:
        yield f"      started_at: {{path: {end}, {length.format(-factor)}}}"
    if end is not None:
        yield f"      ended_at: {end}"
    elif start is not None and duration is not None:
        yield f"      ended_at: {{path: {start}, {length.format(factor)}}}"
    else:
        yield "      ended_at: # which field? Without one, leave this out and put `file_time: true` above `make`"


def _status(outcomes: Sequence[str], records: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The status; where not exactly one field tells it, the declaration is refused until somebody decides."""
    told = {path: _words(path, records) for path in outcomes}
    telling = [path for path, own in told.items() if len(own) > 1]
    if len(telling) != 1:
        which = f" Which field tells it: {_listed(telling or outcomes)}?" if outcomes else ""
        yield f"      status: # {UNDECIDED}{which}"
        return
    [path] = telling
    if all(map(_is_number, told[path])) and not set(told[path]) <= {"0", "1"}:
        yield f"      status: # {UNDECIDED} Of {path}, by `at_least` or `values`?"
        return
    yield "      status:"
    yield f"        path: {_quoted(path)}"
    yield "        values:"
    for word in told[path][:MOST_WORDS]:
        yield f"          {json.dumps(word)}: {_meaning(word, path)}"


def _words(path: str, records: Sequence[dict[str, Any]]) -> list[str]:
    """The values that records have there."""
    found = (compiled(path)(record) for record in records)
    return sorted({as_text(value) for value in found if value is not None})


def _listed(paths: Sequence[str]) -> str:
    others = len(paths) - MOST_LISTED
    return ", ".join(paths[:MOST_LISTED]) + (f" and {others} more" if others > 0 else "")


def _meaning(word: str, path: str) -> str:
    """The status of a word, with a comment where somebody has to decide."""
    if word.lower() in CANCELLED:
        return "cancelled"
    if word.lower() in ENDED_FROM_OUTSIDE:
        return f"cancelled # {CANCELLED_BY_WHOM}"
    is_good, is_bad = word.lower() in GOOD, word.lower() in BAD
    if _is_called(path, SAYS_THE_CONTRARY):
        is_good, is_bad = is_bad, is_good
    return "success" if is_good else "failure" if is_bad else f"failure # {UNDECIDED}"


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _paths(records: Sequence[dict[str, Any]]) -> tuple[list[str], list[str]]:
    """Paths of the single values of records, and those of their lists; the outer ones first."""
    found: dict[str, int] = {}
    lists: dict[str, int] = {}
    for record in records:
        _add_paths(record, "", 1, found, lists)
    return _outer_first(found), _outer_first({path: lists[path] for path in lists.keys() - found.keys()})


def _outer_first(depths: dict[str, int]) -> list[str]:
    return sorted(depths, key=lambda path: (depths[path], path))


def _add_paths(value: dict[str, Any], prefix: str, depth: int, found: dict[str, int], lists: dict[str, int]) -> None:
    for name, inner in value.items():
        quoted = name if name.isidentifier() and name.isascii() else json.dumps(name)
        path = f"{prefix}{quoted}"
        if isinstance(inner, dict) and depth < MOST_DEPTH:
            _add_paths(inner, f"{path}.", depth + 1, found, lists)
        elif isinstance(inner, list):
            lists.setdefault(path, depth)
        elif not isinstance(inner, dict):
            found.setdefault(path, depth)


def _named(paths: Sequence[str], names: Sequence[str]) -> str | None:
    """The path of the first of these names that is there, the outermost of several."""
    return next((path for name in names for path in paths if _is_called(path, (name,))), None)


def _is_called(path: str, names: Sequence[str]) -> bool:
    last = path.split(".")[-2:]
    return any(_plain(".".join(last[-1 - name.count(".") :])) == _plain(name) for name in names)


def _plain(name: str) -> str:
    """A name without what tells spellings apart: `startedAt` is `started_at`."""
    return name.replace('"', "").lower().replace("-", "").replace("_", "")


def _quoted(path: str) -> str:
    """A path as YAML writes it: one with quotes of its own would lose them."""
    return json.dumps(path) if '"' in path else path
