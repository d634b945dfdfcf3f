"""Inspect AI's eval logs, `.eval` and `.json`, read by its own package. How they become executions: docs/formats.md."""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pydantic_core import to_jsonable_python

from health_assets.core.temporary import temporary_folder
from health_assets.logs.formats.foreign_lines import (
    READ_CHARACTERS,
    Damage,
    Line,
    Record,
    Source,
    UnusableRecordError,
    as_content,
    line_of,
    present,
    rejected,
)
from health_assets.logs.json_values import as_name, as_object

ZIP_MAGIC = b"PK\x03\x04"
NEEDS_PACKAGE = (
    "an eval log of Inspect AI is read by its own package: install health-assets[inspect], and touch the file"
)
VALUES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Inspect's letters: correct, partially correct, incorrect, no answer."""
NOT_NEEDED = {"messages", "store", "attachments"}
UNSCORED = "Inspect sample without a score"
INVALIDATED = "Inspect sample that somebody declared invalid"
NO_SAMPLES = "Inspect log without samples"
FROM_CACHE = "Inspect model call that was answered from the cache"
OF_SCORER = "Inspect model or tool call of a scorer, not of the agent"
PENDING = "Inspect model or tool call that never ended"
RETRIED = "Inspect attempt of a model call that failed and was tried again, which the log does not tell apart"


def is_document(members: Record) -> bool:
    """Whether an object with these members is an eval log; `eval` is None where the head cuts it off."""
    if not {"version", "status", "eval"} <= members.keys():
        return False
    task = members["eval"]
    return task is None or (isinstance(task, dict) and "run_id" in task)


def read(source: Source) -> Iterator[Line]:
    """An execution for each sample and epoch that has an outcome, and a model call for each call of the agent.

    The package wants a file that it can seek in, so the log is copied to the disk for as long as it is read.
    """
    if find_spec("inspect_ai") is None:
        yield rejected(1, "", NEEDS_PACKAGE)
        return
    with temporary_folder() as folder:
        copy = folder / "log"
        with copy.open("wb") as out:
            for block in source.blocks:
                if isinstance(block, Damage):
                    yield rejected(1, "", block.reason)
                    return
                out.write(block)
        yield from _lines(copy, source.notes)


def _lines(path: Path, notes: Counter[str]) -> Iterator[Line]:
    with path.open("rb") as file:
        head = file.read(1000)
    try:
        log, samples = _opened(path, is_zip=head.startswith(ZIP_MAGIC))
        shared = _shared(log)
    except Exception as error:  # whatever a damaged file makes the package raise
        yield rejected(1, head.decode(errors="replace"), f"Inspect AI cannot read it: {_sentence(error)}")
        return
    if not samples:
        notes[NO_SAMPLES] += 1
    for number, (sample_id, epoch, load) in enumerate(samples, start=1):
        told: Counter[str] = Counter()
        try:
            sample = load()
            is_invalid = sample.invalidation is not None
            records = [] if is_invalid else list(_records(sample, shared, log.eval, told))
        except UnusableRecordError as error:
            yield rejected(number, {"id": sample_id, "epoch": epoch}, str(error))
            continue
        except Exception as error:
            reason = f"Inspect AI cannot read the sample: {_sentence(error)}"
            yield rejected(number, {"id": sample_id, "epoch": epoch}, reason)
            continue
        if not records:
            told = Counter([INVALIDATED if is_invalid else UNSCORED])
        notes.update(told)
        for record in records:
            yield line_of(number, record)


def _opened(path: Path, *, is_zip: bool) -> tuple[Any, list[tuple[Any, int, Callable[[], Any]]]]:
    """The log without its samples, and for each sample its id, its epoch, and what reads it: one by one from a zip."""
    from inspect_ai.log import read_eval_log, read_eval_log_sample, read_eval_log_sample_summaries

    if not is_zip:
        log = read_eval_log(str(path), format="json")
        return log, [(sample.id, sample.epoch, partial(_itself, sample)) for sample in log.samples or ()]
    log = read_eval_log(str(path), header_only=True, format="eval")
    keys = [(one.id, one.epoch) for one in read_eval_log_sample_summaries(str(path), format="eval")]
    load = partial(read_eval_log_sample, str(path), format="eval", exclude_fields=NOT_NEEDED)
    return log, [(sample_id, epoch, partial(load, id=sample_id, epoch=epoch)) for sample_id, epoch in keys]


def _itself(sample: Any) -> Any:
    return sample


def _sentence(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]


def _shared(log: Any) -> Record:
    """The facts that all samples of a log share."""
    named = as_name(as_object(log.eval.metadata).get("agent_id"))
    solver = log.eval.solver or (log.plan.steps[-1].solver if log.plan.steps else None)
    return {
        "agent_id": named or (f"{solver}:{log.eval.model}" if solver else log.eval.model),
        "agent_version": _version(log.eval, solver or ""),
        "session_id": log.eval.run_id,
    }


def _version(spec: Any, solver: str) -> str | None:
    """The agent's version: as it was stated, else of the package that the solver is from, else the commit of the code.

    The version of a task is that of the questions, and none of the agent.
    """
    stated = as_name(as_object(spec.metadata).get("agent_version"))
    package, slash, _ = solver.partition("/")
    of_package = as_name(spec.packages.get(package)) if slash else None
    if stated or of_package or spec.revision is None:
        return stated or of_package
    return f"{spec.revision.commit}-dirty" if spec.revision.dirty else spec.revision.commit


def _records(sample: Any, shared: Record, spec: Any, notes: Counter[str]) -> Iterator[Record]:
    succeeded = _succeeded(sample)
    if succeeded is None:
        return
    own = _own_events(sample.events, notes)
    calls = [event for event in own if event.event == "model" and event.cache != "read"]
    tools = [event for event in own if event.event == "tool"]
    _count(notes, FROM_CACHE, sum(event.event == "model" for event in own) - len(calls))
    _count(notes, RETRIED, sum(event.retries or 0 for event in calls))
    started_at, ended_at = _times(sample)
    latencies = [latency for latency in map(_latency_s, calls) if latency is not None]
    execution_id = sample.uuid or f"{spec.eval_id}:{sample.id}:{sample.epoch}"
    yield present(
        {
            "type": "execution",
            "execution_id": execution_id,
            **shared,
            "model": spec.model,
            "task_id": f"{spec.task}/{sample.id}",
            "task_source": "evaluation",
            "started_at": started_at,
            "ended_at": ended_at,
            "status": "success" if succeeded else "failure",
            "error": _error(sample, succeeded=succeeded),
            "api_calls": len(calls),
            "error_count": sum(event.error is not None for event in calls) + sum(map(_has_failed, tools)),
            "call_latency_s": sum(latencies) / len(latencies) if latencies else None,
            "actions": [event.function for event in tools],
            **_used(sample, calls),
        }
    )
    whose = {"agent_id": shared["agent_id"], "execution_id": execution_id}
    for place, event in enumerate(calls):
        yield present(_model_call(event, f"{execution_id}:{place}") | whose)
    for place, event in enumerate(tools):
        yield present(_tool_call(event, f"{execution_id}:tool:{place}") | whose)


def _model_call(event: Any, key: str) -> Record:
    return {
        "type": "model_call",
        "call_id": event.uuid or key,
        "model": event.model,
        "response_model": as_name(event.output.model),
        **_of_a_call(event),
        "status": "success" if event.error is None else "failure",
        "error": event.error,
        **_amounts([event.output.usage] if event.output.usage is not None else []),
    }


def _tool_call(event: Any, key: str) -> Record:
    return {
        "type": "tool_call",
        "call_id": event.uuid or key,
        "tool": event.function,
        **_of_a_call(event),
        "status": "failure" if _has_failed(event) else "success",
        "error": None if event.error is None else f"{event.error.type}: {event.error.message}",
        "arguments": as_content(event.arguments),
        "result": as_content(to_jsonable_python(event.result, fallback=str)),
    }


def _has_failed(tool_event: Any) -> bool:
    return tool_event.error is not None or bool(tool_event.failed)


def _of_a_call(event: Any) -> Record:
    latency = _latency_s(event)
    return {
        "ended_at": _utc(event.completed or event.timestamp),
        "latency_ms": None if latency is None else latency * 1000,
    }


def _used(sample: Any, calls: list[Any]) -> Record:
    """Tokens and cost of a sample whose log holds no calls, of all of its models; else its calls tell them."""
    return {} if calls else _amounts(list(sample.model_usage.values()))


def _amounts(usages: list[Any]) -> Record:
    """Sums of tokens, what came from the cache with the others, and of cost; nothing where nothing was counted."""
    cache_read, cache_creation, reasoning = (
        _sum_where_told([getattr(usage, name) for usage in usages])
        for name in ("input_tokens_cache_read", "input_tokens_cache_write", "reasoning_tokens")
    )
    input_tokens = sum(usage.input_tokens for usage in usages) + (cache_read or 0) + (cache_creation or 0)
    output_tokens = sum(usage.output_tokens for usage in usages)
    is_counted = input_tokens > 0 or output_tokens > 0
    return {
        "input_tokens": input_tokens if is_counted else None,
        "output_tokens": output_tokens if is_counted else None,
        "cache_read_tokens": cache_read,
        "cache_creation_tokens": cache_creation,
        "reasoning_tokens": reasoning,
        "cost_usd": _sum_where_told([usage.total_cost for usage in usages]),
    }


def _sum_where_told(values: list[Any]) -> Any:
    told = [value for value in values if value is not None]
    return sum(told) if told else None


def _count(notes: Counter[str], what: str, count: int) -> None:
    if count:
        notes[what] += count


def _succeeded(sample: Any) -> bool | None:
    """Whether the first scorer found it wholly correct; a sample that broke off failed.

    Returns:
        None where nobody knows: no scorer ran, or it left the sample unscored, which Inspect writes as NaN.
    """
    if not sample.scores:
        return False if sample.error is not None else None
    name, score = next(iter(sample.scores.items()))
    value = VALUES.get(score.value, score.value) if isinstance(score.value, str) else score.value
    if isinstance(value, dict):
        parts = ", ".join(map(str, value))[:READ_CHARACTERS]
        raise UnusableRecordError(f"the score of {name} has several values ({parts}); success needs a score of one")
    try:
        number = float(value)
    except (TypeError, ValueError):
        reason = f"the score of {name} must be C, P, I, N or a number, not {str(value)[:READ_CHARACTERS]}"
        raise UnusableRecordError(reason) from None
    if math.isnan(number):
        return False if sample.error is not None else None
    if not 0 <= number <= 1:
        raise UnusableRecordError(f"the score of {name} must lie between 0 and 1 to tell success, not {number:g}")
    return number == 1


def _error(sample: Any, *, succeeded: bool) -> str | None:
    if sample.error is not None:
        return sample.error.message
    return f"limit reached: {sample.limit.type}" if sample.limit is not None and not succeeded else None


def _own_events(events: list[Any], notes: Counter[str]) -> list[Any]:
    """Model and tool calls of the agent: not those of scorers, which call models too, and none that has not ended."""
    of_scorers: set[str] = set()
    own = []
    for event in events:
        if event.event == "span_begin" and (event.type in ("scorers", "scorer") or event.parent_id in of_scorers):
            of_scorers.add(event.id)
        if event.event not in ("model", "tool"):
            continue
        if event.span_id in of_scorers:
            notes[OF_SCORER] += 1
        elif event.pending:
            notes[PENDING] += 1
        else:
            own.append(event)
    return own


def _times(sample: Any) -> tuple[str, str]:
    moments = [event.timestamp for event in sample.events]
    started_at = sample.started_at or (min(moments) if moments else None)
    ended_at = sample.completed_at or (max(moments) if moments else None)
    if started_at is None or ended_at is None:
        raise UnusableRecordError("the sample has neither times nor events, so its end is not known")
    return _utc(started_at), _utc(ended_at)


def _utc(moment: datetime | str) -> str:
    if isinstance(moment, str):
        return moment
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat()


def _latency_s(event: Any) -> float | None:
    if event.working_time is not None:
        return event.working_time
    return (event.completed - event.timestamp).total_seconds() if event.completed is not None else None
