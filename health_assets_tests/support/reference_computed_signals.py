"""The independent reference of computed signals, in plain Python loops over records (docs/session-scores.md).

Records come from `reference.read_lines` and `reference.deduplicate`; nothing here imports the product.
"""

import json
import re
from datetime import datetime, timedelta
from typing import Any

from health_assets_tests.support.reference import ONE_HOUR, Record

IDS = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|(?:call|toolu|tooluse|chatcmpl|msg|resp|run|fc|adk)[-_][a-z0-9]*[0-9][a-z0-9_-]{3,}"
    r"|\d{4}-\d\d-\d\dt?\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:z|[+-]\d\d:?\d\d)?"
    r"|\b1[5-9]\d{8}(?:\d{3})?\b"
)

FAULTS = {"timeout", "503: down", "TimeoutError: too slow", "Error code: 429 - slow down"}


def content(value: Any, *, masks_ids: bool) -> str | None:
    """A content as it is compared; None where a line states none."""
    if value is None:
        return None
    text = re.sub(r"\s+", "", json.dumps(value, ensure_ascii=False, separators=(",", ":")).lower())
    return IDS.sub("#", text) if masks_ids else text


def signals_of(execution: Record, records: list[Record], lookback_hours: int) -> dict[str, Any] | None:
    """What is computed of an execution, None where it has no call that tells anything."""
    end = execution["_hour"] + ONE_HOUR
    own = [record for record in records if _is_of(record, execution, end - timedelta(hours=lookback_hours), end)]
    steps = sorted(own, key=lambda record: (record["_at"], len(record["call_id"]), record["call_id"]))
    calls = [step for step in steps if step["type"] == "tool_call"]
    answers = [step for step in steps if step["type"] == "model_call" and step.get("output") is not None]
    known = [call for call in calls if call.get("arguments") is not None]
    if not calls and not answers:
        return None
    repaired = [call for place, call in enumerate(calls) if _is_repaired(call, calls[place + 1 :])]
    failures = [call for call in calls if call["status"] == "failure"]
    told = [step for step in steps if step["type"] == "tool_call" or step.get("output") is not None]
    last_answer = {id(step) for step in told[-1:] if step["type"] == "model_call"}
    repeated = (_repeated([*known, *answers]) - last_answer) | _in_cycles(calls)
    tool_correctness = (len(calls) - len(failures) + len(repaired) / 2) / len(calls) if calls else None
    count = len(known) + len(answers)
    return {
        "tool_calls": len(calls), "tool_failures": len(failures), "repaired_failures": len(repaired),
        "tool_faults": sum(map(is_fault, failures)), "steps": count, "repeated_steps": len(repeated), "signal_tool_correctness": tool_correctness,
        "signal_loop_detection": 1 - len(repeated) / count if count else None,
    }  # fmt: skip


def is_fault(call: Record) -> bool:
    """Whether a call failed by no fault of the agent, by the errors that the logs of tests have."""
    return call["status"] == "failure" and (call.get("error") or "") in FAULTS


def _is_of(record: Record, execution: Record, start: datetime, end: datetime) -> bool:
    return (
        record["type"] in ("tool_call", "model_call")
        and record.get("execution_id") == execution["execution_id"]
        and record.get("agent_id") in (None, execution["agent_id"])
        and start <= record["_at"] < end
    )


def _is_repaired(call: Record, later: list[Record]) -> bool:
    return call["status"] == "failure" and any(
        one["tool"] == call["tool"] and one["status"] == "success" for one in later
    )


def _asked(call: Record) -> tuple[str, str] | None:
    arguments = content(call.get("arguments"), masks_ids=False)
    return None if arguments is None else (call["tool"], arguments)


def _whole(step: Record) -> tuple[Any, ...] | None:
    if step["type"] == "model_call":
        return ("answer", content(step["output"], masks_ids=True))
    result = content(step.get("result"), masks_ids=True)
    if step["status"] == "success":
        return None if result is None else (_asked(step), "success", result)
    return (_asked(step), "failure", step.get("error", "") if result is None else result)


def _repeated(steps: list[Record]) -> set[int]:
    seen: set[Any] = set()
    again = set()
    for step in steps:
        whole = _whole(step)
        if whole is not None and whole in seen:
            again.add(id(step))
        seen.add(whole)
    return again


def _in_cycles(calls: list[Record]) -> set[int]:
    keys = [_asked(call) for call in calls]
    found = set()
    for length in (2, 3):
        for start in range(length, len(calls) - length + 1):
            block = keys[start : start + length]
            if None not in block and block == keys[start - length : start] and len(set(block)) > 1:
                found |= {id(call) for call in calls[start : start + length]}
    return found
