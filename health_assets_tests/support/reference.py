"""The independent reference: the contract and the Agent Health Model in plain Python, one step after another.

Tests compare the warehouse tables with what these functions return. Nothing here imports the product, so that
a misreading in the product cannot hide in its own check. "Contract" is the project's contract page and
"source 1" the Agent Health Model. Speed does not matter here, being easy to check by eye does.

Two things are not read here: OTLP-JSON lines (contract section 7; `read_lines` refuses them loudly), and the
validity of targets (contract section 3; the functions expect targets that passed validation).
"""

import gzip
import json
import math
import re
import sys
from bisect import bisect
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

Record = dict[str, Any]
Check = Callable[[Any], bool]

ONE_HOUR = timedelta(hours=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
LATEST = datetime(2100, 1, 1, tzinfo=UTC)  # exclusive
MOST_NAME_BYTES = 1024
MOST_TEXT_BYTES = 64 * 1024
MILLISECONDS_FROM = 1e11  # an epoch number of this size or more counts milliseconds
UNREADABLE_FROM = 1e13  # beyond the milliseconds of LATEST, 4.1e12; keeps the arithmetic far from overflow
SIGNALS = ("confidence", "loop_detection", "tool_correctness", "coherence")
ISO_TIMESTAMP = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?(Z|[+-][0-9]{2}(:[0-5][0-9])?)?"
)

DEFAULT_TARGETS: dict[str, Any] = {  # contract section 3
    "expected_success_rate": 0.95,
    "expected_failures_per_hour": 1.0,
    "expected_runtime_s": None,
    "deviation_allowed": 0.2,
    "n_full": 20,
    "long_running_factor": 5,
    "stability_threshold": 15,
    "sla_breach_threshold": 5,
    "trigger_failure_threshold": 5,
    "sla_s": None,
    "baseline_latency_ms": None,
    "healthy_at": 85,
    "degraded_at": 65,
    "platform": None,
    "team": None,
    "personal": False,
    "retired": False,
}


# --- Time (contract section 1) --------------------------------------------------------------------


def hour_of(moment: datetime) -> datetime:
    """Contract section 1: the start of the half-open hour `[H, H+1h)` that holds the moment."""
    return moment.replace(minute=0, second=0, microsecond=0)


def parse_timestamp(value: Any) -> datetime | None:
    """Contract section 2, "Timestamps": the moment in UTC, or None where the value is not a timestamp.

    Text is cut to whole microseconds. A fractional number is rounded to the nearest one, because most decimal
    fractions have no exact binary form.
    """
    moment = None
    if isinstance(value, str) and ISO_TIMESTAMP.fullmatch(value):
        try:
            moment = datetime.fromisoformat(value)
            moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        except (ValueError, OverflowError):  # a 31 February, a 25th hour, a zone that leaves the calendar
            return None
    elif is_number(value) and abs(value) < UNREADABLE_FROM:
        microseconds = value * 1_000 if abs(value) >= MILLISECONDS_FROM else value * 1_000_000
        moment = EPOCH + timedelta(microseconds=round(microseconds))
    if moment is None or not EARLIEST <= moment < LATEST:
        return None
    return moment


# --- What a field may hold (contract section 2) ---------------------------------------------------


def is_text(value: Any) -> bool:
    """Contract section 2: any JSON string, the empty one too."""
    return isinstance(value, str)


def is_short(value: Any) -> bool:
    """Contract section 2: a name that may be empty is at most 1 KiB of UTF-8 long."""
    return isinstance(value, str) and len(value.encode(errors="replace")) <= MOST_NAME_BYTES


def is_name(value: Any) -> bool:
    """Contract section 2: ids and names are strings that are not empty, of at most 1 KiB of UTF-8."""
    return is_short(value) and value != ""


def is_flag(value: Any) -> bool:
    """Contract section 2: a JSON boolean."""
    return isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Contract section 2: a finite JSON number; neither text nor a boolean."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max  # false for NaN, infinities and integers that no double can hold


def is_score(value: Any) -> bool:
    return is_flag(value) or is_number(value)


def is_amount(value: Any) -> bool:
    """Contract section 2: a number of at least 0 (seconds, milliseconds, money)."""
    return is_number(value) and value >= 0


def is_share(value: Any) -> bool:
    """Contract section 2: a number in [0, 1] (confidence and the other signals)."""
    return is_number(value) and 0 <= value <= 1


def is_count(value: Any) -> bool:
    """Contract section 2: an integer from 0 to 2**63 - 1, written as one (`3`, not `3.0`)."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def is_timestamp(value: Any) -> bool:
    """Contract section 2: see `parse_timestamp`."""
    return parse_timestamp(value) is not None


def one_of(*allowed: str) -> Check:
    """Contract section 2: exactly one of the listed words."""
    return lambda value: isinstance(value, str) and value in allowed


def is_actions(value: Any) -> bool:
    """Contract section 2: a list of names in order."""
    return isinstance(value, list) and all(is_short(action) for action in value)


def is_violations(value: Any) -> bool:
    """Contract section 2: a list of `{constraint, severity}`; the empty list means judged clean."""
    if not isinstance(value, list):
        return False
    for violation in value:
        if not isinstance(violation, dict) or not is_short(violation.get("constraint")):
            return False
        if violation.get("severity") not in ("low", "medium", "high"):
            return False
    return True


def is_signals(value: Any) -> bool:
    """Contract section 2: an object with any of the four signals, each in [0, 1]; null is absent."""
    if not isinstance(value, dict):
        return False
    return all(value.get(name) is None or is_share(value[name]) for name in SIGNALS)


OUTCOME = one_of("success", "failure")
CONDITION = one_of("baseline", "fault", "structural", "prompt")

REQUIRED: dict[str, dict[str, Check]] = {  # contract section 2, column "required"
    "execution": {
        "execution_id": is_name,
        "agent_id": is_name,
        "started_at": is_timestamp,
        "ended_at": is_timestamp,
        "status": OUTCOME,
    },
    "cancellation": {
        "execution_id": is_name,
        "agent_id": is_name,
        "started_at": is_timestamp,
        "ended_at": is_timestamp,
    },
    "trigger": {
        "trigger_id": is_name,
        "agent_id": is_name,
        "fired_at": is_timestamp,
        "status": one_of("fired", "failed"),
    },
    "model_call": {"call_id": is_name, "model": is_name, "ended_at": is_timestamp, "status": OUTCOME},
    "tool_call": {"call_id": is_name, "tool": is_name, "ended_at": is_timestamp, "status": OUTCOME},
    "signals": {"execution_id": is_name, "at": is_timestamp},
    "evaluation": {"name": is_name, "at": is_timestamp},
    "judgement": {"execution_id": is_name, "at": is_timestamp, "violations": is_violations},
    "agent_update": {
        "agent_id": is_name,
        "at": is_timestamp,
        "kind": one_of("restart", "model_change", "capability_update"),
    },
}
OPTIONAL: dict[str, dict[str, Check]] = {  # contract section 2, column "optional"
    "execution": {
        "session_id": is_name,
        "task_id": is_name,
        "task_source": one_of("stated", "evaluation"),
        "condition": CONDITION,
        "trigger_id": is_name,
        "model": is_name,
        "error": is_text,
        "sla_s": is_amount,
        "sla_breached": is_flag,
        "confidence": is_share,
        "cost_usd": is_amount,
        "api_calls": is_count,
        "error_count": is_count,
        "call_latency_s": is_amount,
        "actions": is_actions,
        "signals": is_signals,
        "violations": is_violations,
        "platform": is_short,
        "agent_version": is_short,
        "input_tokens": is_count,
        "output_tokens": is_count,
        "cache_read_tokens": is_count,
        "cache_creation_tokens": is_count,
        "reasoning_tokens": is_count,
    },
    "cancellation": {
        "session_id": is_name,
        "model": is_name,
        "agent_version": is_short,
        "cost_usd": is_amount,
        "input_tokens": is_count,
        "output_tokens": is_count,
        "cache_read_tokens": is_count,
        "cache_creation_tokens": is_count,
        "reasoning_tokens": is_count,
    },
    "trigger": {"reason": is_text},
    "model_call": {
        "agent_id": is_name,
        "execution_id": is_name,
        "latency_ms": is_amount,
        "error": is_text,
        "input_tokens": is_count,
        "output_tokens": is_count,
        "cache_read_tokens": is_count,
        "cache_creation_tokens": is_count,
        "reasoning_tokens": is_count,
        "cost_usd": is_amount,
    },
    "tool_call": {"agent_id": is_name, "execution_id": is_name, "latency_ms": is_amount, "error": is_text},
    "evaluation": {
        "execution_id": is_name,
        "agent_id": is_name,
        "session_id": is_name,
        "value": is_score,
        "label": is_text,
    },
    "signals": {
        "confidence": is_share,
        "loop_detection": is_share,
        "tool_correctness": is_share,
        "coherence": is_share,
        "session_id": is_name,
        "agent_id": is_name,
    },
    "judgement": {"agent_id": is_name, "judged_by": is_short, "judge": is_short},
    "agent_update": {"detail": is_text},
}
KNOWN_FIELDS = {"type"}
for _fields in [*REQUIRED.values(), *OPTIONAL.values()]:
    KNOWN_FIELDS.update(_fields)

TIME_FIELD = {  # contract section 1: the time that decides the hour
    "execution": "ended_at",
    "cancellation": "ended_at",
    "trigger": "fired_at",
    "model_call": "ended_at",
    "tool_call": "ended_at",
    "signals": "at",
    "evaluation": "at",
    "judgement": "at",
    "agent_update": "at",
}
ID_FIELD = {
    "execution": "execution_id",
    "cancellation": "execution_id",
    "trigger": "trigger_id",
    "model_call": "call_id",
    "tool_call": "call_id",
}


# --- Lines (contract section 2) -------------------------------------------------------------------


def parse_object(line: bytes) -> Record | None:
    """Contract section 2: the JSON object of a line, or None for a line that is not one.

    A known field that the object names twice has no single value, so such a line is bad as well.
    """
    latest_pairs: list[tuple[str, Any]] = []

    def keep_pairs(pairs: list[tuple[str, Any]]) -> Record:
        latest_pairs[:] = pairs  # the outermost object is finished last
        return dict(pairs)

    try:
        parsed = json.loads(line.decode("utf-8"), object_pairs_hook=keep_pairs)
    except (ValueError, RecursionError):
        return None
    if not isinstance(parsed, dict):
        return None
    names = [name for name, _ in latest_pairs if name in KNOWN_FIELDS]
    if len(names) > len(set(names)):
        return None
    return parsed


def clean(parsed: Record) -> Record | None:
    """Contract section 2: the record with its times and without null optional fields, or None if bad."""
    kind = parsed.get("type")
    if not isinstance(kind, str) or kind not in REQUIRED:
        return None
    record = dict(parsed)
    for name, check in REQUIRED[kind].items():
        if name not in record or not check(record[name]):
            return None
    for name, check in OPTIONAL[kind].items():
        if name in record and record[name] is None:
            del record[name]
        if name in record and not check(record[name]):
            return None
    if kind == "signals" and not any(name in record for name in SIGNALS):
        return None
    if kind == "evaluation" and "value" not in record and "label" not in record:
        return None
    record["_at"] = parse_timestamp(record[TIME_FIELD[kind]])
    record["_hour"] = hour_of(record["_at"])
    if kind in ("execution", "cancellation"):
        record["_started_at"] = parse_timestamp(record["started_at"])
        record["_ended_at"] = record["_at"]
        if record["_started_at"] > record["_ended_at"]:
            return None
        record["_runtime_s"] = (record["_ended_at"] - record["_started_at"]).total_seconds()
    return record


def read_lines(root: Path) -> tuple[list[Record], list[Record]]:
    """Contract section 2: every line below the raw root as (good records, rejected lines).

    A rejected line belongs to the hour of its own readable time, else of the nearest good line before it in its file
    (after it, at the top), else of the file's modification time.
    """
    paths = {}
    for path in root.rglob("*"):
        if path.is_file() and re.search(r"\.jsonl([.-]\d+)?(\.gz)?$", path.name):
            paths[path.relative_to(root).as_posix()] = path
    good: list[Record] = []
    rejected: list[Record] = []
    for source_file in sorted(paths):
        path = paths[source_file]
        content = path.read_bytes()
        if source_file.endswith(".gz"):
            content = gzip.decompress(content)
        good_here = []
        bad: dict[int, datetime | None] = {}
        for line_number, line in enumerate(content.split(b"\n"), start=1):
            if line.strip(b" \t\r") == b"":
                continue
            parsed = parse_object(line)
            if parsed is not None and "resourceSpans" in parsed and "type" not in parsed:
                message = f"{source_file}:{line_number}: the reference does not read OTLP-JSON lines"
                raise NotImplementedError(message)
            record = None if parsed is None else clean(parsed)
            if record is None:
                bad[line_number] = None if parsed is None else own_hour(parsed)
            else:
                record["_source_file"] = source_file
                record["_line_number"] = line_number
                good_here.append(record)
        good.extend(good_here)
        written = hour_of(datetime.fromtimestamp(path.stat().st_mtime, tz=UTC))
        for line_number, own in bad.items():
            place = bisect(good_here, line_number, key=lambda record: record["_line_number"])
            neighbors = [record["_hour"] for record in good_here[max(0, place - 1) : place + 1]]
            hour = own or [*neighbors, written][0]
            rejected.append({"source_file": source_file, "line_number": line_number, "hour": hour})
    return good, rejected


def own_hour(parsed: Record) -> datetime | None:
    """The hour of the first readable time of a bad line, that of its kind before the others."""
    first = TIME_FIELD.get(str(parsed.get("type")))
    for name in [*([first] if first else []), "ended_at", "fired_at", "at", "started_at"]:
        moment = parse_timestamp(parsed.get(name))
        if moment is not None:
            return hour_of(moment)
    return None


def deduplicate(records: list[Record]) -> list[Record]:
    """Contract section 2: within an hour one row per agent and id remains, the greatest (time, file, line number).

    Records without an id of their own (signals, judgement, agent_update) all remain. Violations of all lines of an
    execution add up.
    """

    def rank(record: Record) -> tuple[datetime, str, int]:
        return record["_at"], record["_source_file"], record["_line_number"]

    winners: dict[tuple[Any, ...], Record] = {}
    violations: dict[tuple[Any, ...], list[Record]] = {}
    kept = []
    for record in records:
        kind = record["type"]
        if kind not in ID_FIELD:
            kept.append(record)
            continue
        agent_id = record.get("agent_id")
        named_execution = record.get("execution_id") if agent_id is None else None
        key = (kind, record["_hour"], record[ID_FIELD[kind]], agent_id, named_execution)
        if record.get("violations") is not None:
            violations.setdefault(key, []).extend(record["violations"])
        if key not in winners or rank(record) > rank(winners[key]):
            winners[key] = record
    kept.extend(
        winner | ({"violations": violations[key]} if key in violations else {}) for key, winner in winners.items()
    )
    return sorted(kept, key=rank)


# --- Targets and the meaning of one execution (contract sections 3 and 4) -------------------------


def targets_for(agent_id: str, targets: dict[str, Any]) -> dict[str, Any]:
    """Contract section 3: the built-in defaults, then the file's `defaults`, then the agent's overrides."""
    merged = dict(DEFAULT_TARGETS)
    merged.update(targets.get("defaults") or {})
    merged.update((targets.get("agents") or {}).get(agent_id) or {})
    return merged


def is_sla_breached(execution: Record, target: dict[str, Any]) -> bool:
    """Contract section 4, `executions`: the record's flag, else runtime above the SLA of record or target."""
    if "sla_breached" in execution:
        return bool(execution["sla_breached"])
    sla_s = execution.get("sla_s", target["sla_s"])
    return sla_s is not None and bool(execution["_runtime_s"] > sla_s)


def is_sla_checked(execution: Record, target: dict[str, Any]) -> bool:
    """Whether an execution can breach an SLA at all: it says whether it did, or there is a limit."""
    return "sla_breached" in execution or execution.get("sla_s", target["sla_s"]) is not None


def is_long_running(execution: Record, target: dict[str, Any]) -> bool:
    """Source 1, "Stability Score": more than 5x the expected runtime; never without an expected runtime."""
    expected_runtime_s = target["expected_runtime_s"]
    if expected_runtime_s is None:
        return False
    limit_us = Decimal(repr(target["long_running_factor"])) * Decimal(repr(expected_runtime_s)) * 1_000_000
    return round(execution["_runtime_s"] * 1_000_000) > round(limit_us)


def components(
    executions: list[Record], triggers: list[Record], targets: dict[str, Any]
) -> dict[tuple[datetime, str], Record]:
    """Contract section 4, `health_components`: sums of each hour and agent with an execution or trigger."""
    sums: dict[tuple[datetime, str], Record] = {}
    for record in [*executions, *triggers]:
        sums[record["_hour"], record["agent_id"]] = {
            "executions": 0,
            "successes": 0,
            "failures": 0,
            "runtime_s_sum": 0.0,
            "long_running": 0,
            "sla_checked": 0,
            "sla_breaches": 0,
            "trigger_failures": 0,
            **dict.fromkeys(("executions_5m", "failures_5m", "executions_30m", "failures_30m"), 0),
        }
    for execution in executions:
        row = sums[execution["_hour"], execution["agent_id"]]
        target = targets_for(execution["agent_id"], targets)
        row["executions"] += 1
        if execution["status"] == "success":
            row["successes"] += 1
        else:
            row["failures"] += 1
        row["runtime_s_sum"] += execution["_runtime_s"]
        if is_long_running(execution, target):
            row["long_running"] += 1
        if is_sla_checked(execution, target):
            row["sla_checked"] += 1
        if is_sla_breached(execution, target):
            row["sla_breaches"] += 1
        for minutes in (5, 30):
            if execution["_hour"] + ONE_HOUR - execution["_at"] <= timedelta(minutes=minutes):
                row[f"executions_{minutes}m"] += 1
                row[f"failures_{minutes}m"] += execution["status"] != "success"
    for trigger in triggers:
        if trigger["status"] == "failed":
            sums[trigger["_hour"], trigger["agent_id"]]["trigger_failures"] += 1
    return sums


# --- Agent health (contract section 4, source 1) --------------------------------------------------


def scores(executions: list[Record], triggers: list[Record], target: dict[str, Any], window_hours: int) -> Record:
    """Source 1, all of it: the columns of one agent's window, straight from the window's executions.

    Without executions the agent is inactive: what divides by n, and every score, is null.
    """
    n = len(executions)
    successes = len([execution for execution in executions if execution["status"] == "success"])
    row: Record = {
        "n": n,
        "is_provisional": 0 < n < target["n_full"],  # contract section 8
        "untimed": 0,  # a line of the native format must tell both times
        "asr": None,
        "afh": (n - successes) / window_hours,
        "ar_s": None,
        "success_score": None,
        "failure_score": None,
        "reliability_raw": None,
        "confidence_factor": min(1, n / target["n_full"]),
        "reliability_score": None,
        "deviation": None,
        "performance_score": None,
        "stability_score": None,
        "sla_score": None,
        "trigger_score": None,
        "operational_score": None,
        "health_score": None,
        "points_at_stake": None,
        "state": "inactive",
        "long_running": len([execution for execution in executions if is_long_running(execution, target)]),
        "sla_checked": len([execution for execution in executions if is_sla_checked(execution, target)]),
        "sla_breaches": len([execution for execution in executions if is_sla_breached(execution, target)]),
        "triggers": len(triggers),
        "trigger_failures": len([trigger for trigger in triggers if trigger["status"] == "failed"]),
        "expected_success_rate": target["expected_success_rate"],
        "expected_failures_per_hour": target["expected_failures_per_hour"],
        "expected_runtime_s": target["expected_runtime_s"],
    }
    if n == 0:
        return row

    # Source 1, "Reliability Score"; contract section 4 for an expected rate of 0 and for no failures.
    row["asr"] = successes / n
    row["success_score"] = 1.0
    if target["expected_success_rate"] > 0:
        row["success_score"] = min(1.0, row["asr"] / target["expected_success_rate"])
    row["failure_score"] = 1.0
    if row["afh"] > 0:
        row["failure_score"] = min(1.0, target["expected_failures_per_hour"] / row["afh"])
    row["reliability_raw"] = 0.7 * row["success_score"] + 0.3 * row["failure_score"]
    confidence = row["confidence_factor"]
    row["reliability_score"] = confidence * row["reliability_raw"] + (1 - confidence) * 1

    # Source 1, "Performance Score"; contract section 4 for no expected runtime.
    row["ar_s"] = sum(execution["_runtime_s"] for execution in executions) / n
    row["performance_score"] = 1.0
    if target["expected_runtime_s"] is not None:
        row["deviation"] = (row["ar_s"] - target["expected_runtime_s"]) / target["expected_runtime_s"]
        if row["ar_s"] > target["expected_runtime_s"]:
            row["performance_score"] = 1 - min(1, row["deviation"] / target["deviation_allowed"])

    # Source 1, "Stability Score".
    penalty = math.log2(row["long_running"] + 1) / math.log2(target["stability_threshold"] + 1)
    row["stability_score"] = 1 - min(1, penalty)

    # Source 1, "Operational Score".
    row["sla_score"] = 1 - min(1, row["sla_breaches"] / target["sla_breach_threshold"])
    row["trigger_score"] = 1 - min(1, row["trigger_failures"] / target["trigger_failure_threshold"])
    row["operational_score"] = 0.6 * row["sla_score"] + 0.4 * row["trigger_score"]

    # docs/scores.md: the points that something in the window tests.
    row["points_at_stake"] = 40 * confidence
    if target["expected_runtime_s"] is not None:
        row["points_at_stake"] += 40
    if row["sla_checked"]:
        row["points_at_stake"] += 12
    if triggers:
        row["points_at_stake"] += 8

    # Source 1, "Final Health Score" and "Health States"; contract section 4: no gap at 84.x.
    row["health_score"] = round(
        40 * row["reliability_score"]
        + 20 * row["performance_score"]
        + 20 * row["stability_score"]
        + 20 * row["operational_score"],
        9,
    )
    if row["health_score"] >= target["healthy_at"]:
        row["state"] = "healthy"
    elif row["health_score"] >= target["degraded_at"]:
        row["state"] = "degraded"
    else:
        row["state"] = "unhealthy"
    return row


def agent_health(
    records: list[Record],
    targets: dict[str, Any],
    hour_from: datetime,
    hour_to: datetime,
    window_hours: int = 24,
    lookback_hours: int = 168,
) -> list[Record]:
    """Contract section 4, `agent_health`: a row for each hour in `[hour_from, hour_to)` and each known agent.

    Known is an agent that is not retired, and named in targets or seen in any event of the look-back before
    window_end.
    """
    executions_of: dict[str, list[Record]] = {}
    triggers_of: dict[str, list[Record]] = {}
    hours_seen: dict[str, set[datetime]] = {agent_id: set() for agent_id in targets.get("agents") or {}}
    for record in deduplicate(records):
        agent_id = record.get("agent_id")
        if agent_id is None:
            continue
        hours_seen.setdefault(agent_id, set()).add(record["_hour"])
        if record["type"] == "execution":
            executions_of.setdefault(agent_id, []).append(record)
        elif record["type"] == "trigger":
            triggers_of.setdefault(agent_id, []).append(record)

    rows = []
    hour = hour_from
    while hour < hour_to:
        window_end = hour + ONE_HOUR
        window_start = window_end - timedelta(hours=window_hours)
        lookback_start = window_end - timedelta(hours=lookback_hours)
        for agent_id in sorted(hours_seen):
            target = targets_for(agent_id, targets)
            seen = any(lookback_start <= hour_seen < window_end for hour_seen in hours_seen[agent_id])
            named = agent_id in (targets.get("agents") or {})
            if target["retired"] or not (seen or named):
                continue
            executions = executions_of.get(agent_id, [])
            triggers = triggers_of.get(agent_id, [])
            row = {
                "hour": hour,
                "agent_id": agent_id,
                "window_start": window_start,
                "window_end": window_end,
                "as_of": window_end,
                "is_final": True,
            }
            row.update(
                scores(
                    [execution for execution in executions if window_start <= execution["_at"] < window_end],
                    [trigger for trigger in triggers if window_start <= trigger["_at"] < window_end],
                    target,
                    window_hours,
                )
            )
            rows.append(row)
        hour = window_end
    return rows


def system_health(agent_rows: list[Record]) -> list[Record]:
    """Contract section 4, `system_health`: each hour's mean over agents that are not inactive, and counts."""
    rows_of: dict[datetime, list[Record]] = {}
    for agent_row in agent_rows:
        rows_of.setdefault(agent_row["hour"], []).append(agent_row)
    rows = []
    for hour in sorted(rows_of):
        states = [agent_row["state"] for agent_row in rows_of[hour]]
        active = [agent_row["health_score"] for agent_row in rows_of[hour] if agent_row["state"] != "inactive"]
        rows.append(
            {
                "hour": hour,
                "health_score": sum(active) / len(active) if active else None,
                "agents": len(states),
                "healthy": states.count("healthy"),
                "degraded": states.count("degraded"),
                "unhealthy": states.count("unhealthy"),
                "inactive": states.count("inactive"),
                "provisional": len([row for row in rows_of[hour] if row["is_provisional"]]),
            }
        )
    return rows
