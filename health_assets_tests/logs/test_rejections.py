"""Bad input: every kind of bad line is rejected with its place and a reason, and takes no good line with it."""

import gzip
import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest

from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HOUR, HourRange
from health_assets.core.settings import Settings
from health_assets.core.targets import load_targets
from health_assets.logs.decompression import COMPRESSED_BLOCK_BYTES
from health_assets.logs.files import list_files
from health_assets.logs.limits import Limits
from health_assets.logs.stores import MOST_NEAR_MISSES, NAMES_THAT_COUNT
from health_assets.quality.batches import Source
from health_assets.quality.record_batches import files
from health_assets_tests.support import reference
from health_assets_tests.support.examples import example_count
from health_assets_tests.support.logs_made import START, Record, execution, line, trigger
from health_assets_tests.support.projects import (
    TABLE_OF_RECORD,
    Project,
    assert_lines_are_conserved,
    assert_same_tables,
    hours_from,
)

RAW_BYTES = 64 << 10
AT = START + HOUR / 2

GOOD: dict[str, Record] = {
    "execution": execution("e1", "a", AT),
    "trigger": trigger("t1", "a", AT),
    "model_call": {
        "type": "model_call",
        "call_id": "c1",
        "model": "m",
        "ended_at": AT.isoformat(),
        "status": "success",
    },
    "cancellation": {
        "type": "cancellation",
        "execution_id": "e1",
        "agent_id": "a",
        "started_at": AT.isoformat(),
        "ended_at": AT.isoformat(),
    },
    "tool_call": {
        "type": "tool_call",
        "call_id": "c1",
        "tool": "t",
        "ended_at": AT.isoformat(),
        "status": "success",
    },
    "signals": {"type": "signals", "execution_id": "e1", "at": AT.isoformat(), "coherence": 0.5},
    "evaluation": {"type": "evaluation", "name": "n", "at": AT.isoformat(), "value": 1},
    "judgement": {"type": "judgement", "execution_id": "e1", "at": AT.isoformat(), "violations": []},
    "agent_update": {"type": "agent_update", "agent_id": "a", "at": AT.isoformat(), "kind": "restart"},
}
ABSENT = object()
DEEP = 10_000


def bad(kind: str, /, **changes: Any) -> str:
    """A good record of this kind with some fields changed, or left out where they are `ABSENT`."""
    return line({name: value for name, value in (GOOD[kind] | changes).items() if value is not ABSENT})


def token(kind: str, field: str, text: str) -> str:
    """A good record of this kind with the field's value written exactly so."""
    return bad(kind, **{field: "@"}).replace('"@"', text)


def _broken_fields() -> Iterator[tuple[str, str | bytes, str]]:
    """(name, line, part of the reason) for every required field that is missing and every field of a wrong kind."""
    wrong = {
        reference.is_name: ["", 7, True, ["x"], {"x": 1}, "x" * 1025, "é" * 513],
        reference.is_short: [7, False, ["x"], "x" * 1025, "é" * 513],
        reference.is_text: [7, False, ["x"]],
        reference.is_timestamp: ["", "yesterday", "2026-06-07T25:00:00Z", "2026-02-30T00:00:00Z", "1780801200", True, []],
        reference.is_flag: ["true", 1, 0, "yes"],
        reference.is_amount: [-1, -0.001, "1.5", "", True, [1], "NaN", "Infinity"],
        reference.is_share: [-0.1, 1.0001, 100, "0.5", False, []],
        reference.is_score: ["1", "high", "", [1], {"x": 1}],
        reference.is_count: [-1, 1.5, 3.0, "3", True, 2**63, 2**64, 10**40],
        reference.is_actions: ["search", {"0": "search"}, [1], ["a", None], [["a"]], 3, ["a", "é" * 513]],
        reference.is_violations: ["none", {}, [1], [{}], [{"constraint": "c", "severity": "fatal"}], 0,
                                  [{"constraint": 1, "severity": "low"}], [{"constraint": "c"}],
                                  [{"constraint": "é" * 513, "severity": "low"}]],
        reference.is_signals: [[], "high", 0.5, {"confidence": 2}, {"coherence": "0.5"}, {"loop_detection": -1}],
    }  # fmt: skip
    words = ["SUCCESS", "ok", "", 1, True, ["success"]]
    for kind, required in reference.REQUIRED.items():
        for field, check in required.items():
            yield f"{kind} without {field}", bad(kind, **{field: ABSENT}), f"{field} is missing"
            yield f"{kind} with {field} null", bad(kind, **{field: None}), field
            for value in wrong.get(check, words):
                yield f"{kind} {field} {json.dumps(value)[:40]}", bad(kind, **{field: value}), f"{field} must be"
        for field, check in reference.OPTIONAL[kind].items():
            for value in wrong.get(check, words):
                yield f"{kind} {field} {json.dumps(value)[:40]}", bad(kind, **{field: value}), f"{field} must be"


def _broken_lines() -> Iterator[tuple[str, str | bytes, str]]:
    yield "not JSON", "once upon a time", "JSON"
    yield "cut off", line(GOOD["execution"])[:-20], "JSON"
    yield "an object and half of one", line(GOOD["execution"]) + line(GOOD["trigger"])[:-9], "JSON"
    yield "garbage behind", line(GOOD["execution"]) + " x", "JSON"
    yield "single quotes", line(GOOD["execution"]).replace('"', "'"), "JSON"
    yield "a comment", "// " + line(GOOD["execution"]), "JSON"
    yield "a comma too many", line(GOOD["execution"])[:-1] + ",}", "JSON"
    yield "a bare control character", token("execution", "error", '"a\x01b"'), "JSON"
    yield "a null byte in text", token("execution", "error", '"a\x00b"'), "JSON"
    yield "only null bytes", b"\x00" * 100, "JSON"
    yield "a wrong escape", token("execution", "error", '"\\x41"'), "JSON"
    yield "a number with leading zeros", token("execution", "sla_s", "007"), "JSON"
    yield "a number with a plus", token("execution", "sla_s", "+7"), "JSON"
    yield "a hexadecimal number", token("execution", "sla_s", "0x7"), "JSON"
    yield "an array", "[" + line(GOOD["execution"]) + "]", "object"
    yield "a number", "17", "object"
    yield "a text", '"execution"', "object"
    yield "true", "true", "object"
    yield "null", "null", "object"
    yield "an empty object", "{}", "type is missing"
    yield "type missing", bad("execution", type=ABSENT), "type is missing"
    yield "type null", bad("execution", type=None), "type"
    yield "type unknown", bad("execution", type="Execution"), "type must be one of"
    yield "type rejected", bad("execution", type="rejected"), "type must be one of"
    yield "type a number", bad("execution", type=1), "type must be one of"
    yield "type a list", bad("execution", type=["execution"]), "type must be one of"
    yield (
        "ended before started",
        bad("execution", started_at="2026-06-07T00:30:00.000001Z"),
        "ended_at is before started_at",
    )
    yield "before 2000", bad("execution", started_at="1999-12-31T23:59:59Z"), "started_at must be"
    yield "after 2099", bad("execution", ended_at="2100-01-01T00:00:00Z"), "ended_at must be"
    yield "time zero", bad("execution", started_at=0), "started_at must be"
    yield "time negative", bad("execution", started_at=-1780801200), "started_at must be"
    yield "time in nanoseconds", bad("execution", started_at=1780801200 * 10**9), "started_at must be"
    yield "time in words", bad("trigger", fired_at="infinity"), "fired_at must be"
    yield "time now", bad("trigger", fired_at="now"), "fired_at must be"
    yield "time epoch", bad("trigger", fired_at="epoch"), "fired_at must be"
    yield "no signal at all", bad("signals", coherence=ABSENT), "none of confidence, "
    yield "neither score nor label", bad("evaluation", value=ABSENT), "none of value, label"
    yield "only null signals", bad("signals", coherence=None), "none of confidence, "
    for number in ("NaN", "Infinity", "-Infinity", "nan", "inf", "1e400", "-1e400"):
        for field in ("sla_s", "cost_usd", "confidence", "api_calls", "ended_at"):
            yield f"{field} {number}", token("execution", field, number), ""
    yield "count as a float", token("execution", "api_calls", "1e3"), "api_calls must be"
    yield "count 2^63", token("execution", "error_count", str(2**63)), "error_count must be"
    yield "the same field twice", line(GOOD["trigger"])[:-1] + ', "agent_id": "b"}', "twice"
    yield "the same value twice", line(GOOD["trigger"])[:-1] + ', "agent_id": "a"}', "twice"
    yield "the type twice", line(GOOD["trigger"])[:-1] + ', "type": "execution"}', "twice"
    yield "an optional field twice", line(GOOD["trigger"])[:-1] + ', "reason": null, "reason": "x"}', "twice"
    yield "invalid UTF-8 in text", b'{"type": "trigger", "agent_id": "\xff\xfe"}', "UTF-8"
    yield "invalid UTF-8 in an unknown field", line(GOOD["trigger"]).encode()[:-1] + b', "x": "\xc3"}', "UTF-8"
    yield "Latin-1", bad("trigger", agent_id="J\xfcrgen").encode("latin-1"), "UTF-8"
    yield "UTF-16", line(GOOD["trigger"]).encode("utf-16-le").replace(b"\n", b""), "UTF-16"
    yield "UTF-16, the other way round", bad("trigger", agent_id="Jürgen").encode("utf-16-be"), "UTF-16"
    yield "an encoded surrogate", b'{"type": "trigger", "agent_id": "\xed\xa0\x80"}', "UTF-8"
    yield "an overlong encoding", b'{"type": "trigger", "agent_id": "\xc0\xaf"}', "UTF-8"
    yield "deep arrays", "[" * DEEP + "]" * DEEP, ""
    yield "deep arrays without end", "[" * DEEP, "JSON"
    yield "deep objects", '{"type":' * DEEP + "1" + "}" * DEEP, ""
    yield "a deep name", bad("execution", agent_id="@").replace('"@"', "[" * DEEP + "]" * DEEP), "agent_id must be"
    yield "a form feed", "\f", "JSON"
    yield "a no-break space", "\u00a0", "JSON"


BAD = [*_broken_fields(), *_broken_lines()]


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, dict[int, tuple[str, str]]]:
    """All bad lines in one file, a good line after each; gives what was rejected by line number."""
    project = Project(tmp_path_factory.mktemp("rejections") / "project")
    lines: list[str | bytes] = []
    for number, (_, broken, _) in enumerate(BAD):
        lines += [broken, line(execution(f"good {number}", "a", AT))]
    project.write_log("all.jsonl", lines)
    project.ingest(HourRange.of(START))
    found = project.query("SELECT line_number, reason, raw FROM rejected_records")
    assert len(found) == len({row[0] for row in found})
    return project, {number: (reason, raw) for number, reason, raw in found}


@pytest.mark.parametrize("place", range(len(BAD)), ids=[name for name, _, _ in BAD])
def test_a_bad_line_is_rejected_with_its_reason(judged: tuple[Project, dict[int, tuple[str, str]]], place: int) -> None:
    _, broken, fragment = BAD[place]
    _, found = judged
    number = 2 * place + 1
    assert number in found, f"not rejected: {broken[:300]!r}"
    reason, raw = found[number]
    assert fragment in reason
    assert len(reason) < 500
    content = broken if isinstance(broken, bytes) else broken.encode()
    assert raw == content[:RAW_BYTES].decode(errors="replace")


def test_the_good_lines_among_the_bad_ones_are_all_loaded(judged: tuple[Project, dict[int, tuple[str, str]]]) -> None:
    project, found = judged
    good = "SELECT count(*) FROM executions WHERE execution_id LIKE 'good %'"
    assert project.query(good) == [(len(BAD),)]
    assert {number % 2 for number in found} == {1}
    assert_lines_are_conserved(project)


def limits_at(now: datetime) -> Limits:
    return Limits.of(Settings(), now)


def hours_of_rejections(project: Project) -> list[tuple]:
    return project.query("SELECT source_file, line_number, hour FROM rejected_records ORDER BY ALL")


def test_a_rejected_line_is_in_the_hour_of_the_good_line_before_it_else_after_it_else_of_its_file(
    project: Project,
) -> None:
    late, early = START + 5 * HOUR, START + 2 * HOUR
    lines = [
        "bad",
        line(execution("late", "a", late)),
        "bad too",
        "",
        line(execution("early", "a", early)),
        "bad again",
    ]
    project.write_log("a.jsonl", lines, modified=START + 9 * HOUR)
    project.write_log("only bad.jsonl", ["as bad"], modified=START + 3 * HOUR + HOUR / 2)
    project.ingest(hours_from(START, 10))
    found = [("a.jsonl", 1, late), ("a.jsonl", 3, late), ("a.jsonl", 6, early), ("only bad.jsonl", 1, START + 3 * HOUR)]
    assert hours_of_rejections(project) == found
    assert_lines_are_conserved(project)


@pytest.mark.parametrize(
    "lines",
    [
        bad("execution", status="ok", started_at=START.isoformat(), ended_at=(START + 4 * HOUR).isoformat()),
        bad("execution", ended_at=ABSENT, started_at=(START + 4 * HOUR).isoformat()),
        bad("trigger", agent_id=ABSENT, fired_at=(START + 4 * HOUR).timestamp()),
        line({"type": "heartbeat", "at": (START + 4 * HOUR).isoformat()}),
        line({"started_at": (START + 4 * HOUR).isoformat()}),
    ],
)
def test_a_rejected_line_is_in_the_hour_of_its_own_time_where_one_can_be_read(project: Project, lines: str) -> None:
    project.write_log("a.jsonl", [line(execution("e", "a", START)), lines], modified=START + 9 * HOUR)
    project.ingest(hours_from(START, 10))
    assert hours_of_rejections(project) == [("a.jsonl", 2, START + 4 * HOUR)]


def test_one_backdated_good_line_hides_no_rejected_line(project: Project) -> None:
    """Before, all of them lay in the hour of the earliest good line, which nobody looks at."""
    old = execution("old", "a", START - 2000 * HOUR)
    now = [line(execution(f"e{number}", "a", START + HOUR / 2)) for number in range(10)]
    wrong = [bad("execution", execution_id=f"b{number}", status="ok", ended_at=AT.isoformat()) for number in range(200)]
    project.write_log("a.jsonl", [line(old), *now, *wrong, *["no JSON"] * 10], modified=START + 9 * HOUR)
    project.ingest(hours_from(START, 10))
    assert project.query("SELECT hour, count(*) FROM rejected_records GROUP BY hour") == [(START, 210)]


def test_the_share_of_rejected_lines_of_a_file_and_of_a_run_follows_from_no_time(project: Project) -> None:
    far = (START - 2000 * HOUR).isoformat()
    project.write_log("a.jsonl", [line(execution("e", "a", START)), *[bad("execution", status="ok", ended_at=far)] * 9])
    project.write_log("b.jsonl", [line(execution(f"b{number}", "a", START)) for number in range(190)])
    report = project.ingest(hours_from(START, 10))
    assert report.many_rejected(0.05) == ["a.jsonl: 9 of 10 lines rejected"]
    assert project.query("SELECT count(*) FROM rejected_records WHERE hour >= ?", [START]) == [(0,)], (
        "they lie far away"
    )
    with project.pipeline.read() as session:
        source = Source(
            asset="raw_logs",
            session=session,
            hours=HourRange.of(START),
            targets=load_targets(None),
            settings=project.pipeline.settings,
        )
        shares = {row["source_file"]: row["rejected_share"] for row in session.dicts(files(source))}
    assert shares == {"a.jsonl": 0.9, "b.jsonl": 0}


def test_a_time_of_the_future_places_no_rejected_line_until_it_has_come(tmp_path: Path) -> None:
    due = START + 6 * HOUR
    wrong = bad("execution", status="ok", started_at=START.isoformat(), ended_at=due.isoformat())
    projects = [Project(tmp_path / name) for name in ("again", "clean")]
    for project in projects:
        project.write_log("a.jsonl", [line(execution("e", "a", START)), wrong], modified=START + 9 * HOUR)
    again, clean = projects
    again.ingest(hours_from(START, 10), limits=limits_at(due - HOUR))
    assert hours_of_rejections(again) == [("a.jsonl", 2, START)]
    for project in projects:
        project.ingest(hours_from(START, 10), limits=limits_at(due + HOUR))
    assert hours_of_rejections(again) == hours_of_rejections(clean) == [("a.jsonl", 2, due)]


def test_many_rejected_lines_beyond_those_with_text_are_one_row_an_hour(project: Project) -> None:
    hours = [START + number * HOUR for number in range(3)]
    lines = [text for hour in hours for text in [line(execution(f"e{hour.hour}", "a", hour)), *["bad"] * 4]]
    project.write_log("a.jsonl", lines, modified=START + 9 * HOUR)
    project.ingest(hours_from(START, 10), limits=replace(limits_at(START + 9 * HOUR), rejected_lines=6))
    found = project.query("SELECT hour, line_number, lines FROM rejected_records WHERE lines > 1 ORDER BY ALL")
    assert found == [(hours[1], 9, 2), (hours[2], 9, 4)]
    assert_lines_are_conserved(project)


def test_rejected_lines_of_a_very_long_file_have_the_hours_that_a_plain_walk_gives_them(project: Project) -> None:
    """Batches of the parser come in any order, and no place of a line in one of them may show."""
    random, lines = Random(22), []
    for number in range(60_000):
        hour = START + number // 9_000 * HOUR
        kind = random.random()
        lines.append("bad" if kind < 0.2 else "" if kind < 0.25 else line(execution(f"e{number}", "a", hour)))
    project.write_log("a.jsonl", lines, modified=START + 9 * HOUR)
    many = replace(limits_at(START + 20 * HOUR), rejected_lines=100_000)
    project.ingest(hours_from(START, 10), limits=many)
    _, rejected = reference.read_lines(project.raw)
    assert [(name, number, hour) for name, number, hour in hours_of_rejections(project)] == [
        (row["source_file"], row["line_number"], row["hour"]) for row in rejected
    ]


# -- good lines that look strange ----------------------------------------------------------------------------------------


def _strange_but_good() -> Iterator[tuple[str, str, Record]]:
    """(name, line, what the row must hold)."""
    yield "unknown fields", bad("execution", extra={"agent_id": 3}, Status="failure"), {"status": "success"}
    yield "an unknown field twice", line(GOOD["execution"])[:-1] + ', "x": 1, "x": 2}', {}
    yield "an unknown deep field", bad("execution", deep="@").replace('"@"', "[" * 100 + "]" * 100), {}
    yield (
        "optional nulls",
        bad("execution", model=None, actions=None, violations=None, sla_breached=None),
        {"model": None},
    )
    yield "spaces", "  \t" + line(GOOD["execution"]) + " \t ", {}
    yield "a carriage return", line(GOOD["execution"]) + "\r", {}
    yield (
        "escapes",
        bad("execution", agent_id="@").replace("@", '\\u00fc\\n\\"\\\\\\/\\ud83d\\ude00'),
        {"agent_id": 'ü\n"\\/😀'},
    )
    yield "an escaped field name", line(GOOD["execution"]).replace("agent_id", "agent\\u005fid"), {"agent_id": "a"}
    yield "an escaped type", line(GOOD["execution"]).replace('"execution"', '"\\u0065xecution"'), {}
    yield "text that looks like a number", bad("execution", agent_id="1e5", task_id="null"), {"agent_id": "1e5"}
    yield "one letter", bad("execution", agent_id="x", error=""), {"agent_id": "x", "error": ""}
    yield "one backslash", bad("execution", agent_id="\\"), {"agent_id": "\\"}
    yield "one quote", bad("execution", agent_id='"'), {"agent_id": '"'}
    yield (
        "combined characters",
        bad("execution", agent_id="e\u0301👩\u200d👩\u200d👧"),
        {"agent_id": "e\u0301👩\u200d👩\u200d👧"},
    )
    yield "a name of 1 KiB", bad("execution", agent_id="é" * 512), {"agent_id": "é" * 512}
    yield "actions of 1 KiB each", bad("execution", actions=["é" * 512] * 2), {"actions": ["é" * 512] * 2}
    yield "a text of 64 KiB", bad("execution", error="é" * 32_768), {"error": "é" * 32_768}
    yield "a text of 64 KiB as it is meant", bad("execution", error="\n" * 65_536), {"error": "\n" * 65_536}
    yield "an escaped null character", bad("execution", error="a\x00b"), {"error": "a\x00b"}
    yield "a name of spaces", bad("execution", agent_id=" "), {"agent_id": " "}
    yield "2^63 - 1", bad("execution", api_calls=2**63 - 1), {"api_calls": 2**63 - 1}
    yield "zero", bad("execution", api_calls=0, cost_usd=0, confidence=0), {"api_calls": 0, "confidence": 0.0}
    yield "a tiny number", bad("execution", cost_usd=5e-324), {"cost_usd": 5e-324}
    yield "a number with many digits", token("execution", "cost_usd", "0.1" + "0" * 300 + "1"), {"cost_usd": 0.1}
    yield "an integer beyond 64 bits as seconds", token("execution", "sla_s", str(2**70)), {"sla_s": float(2**70)}
    yield "no runtime", bad("execution", started_at=AT.isoformat()), {"runtime_s": 0.0}
    yield "an empty list of actions", bad("execution", actions=[]), {"actions": [], "action_count": 0}
    yield "an empty action", bad("execution", actions=["", 'a"b\\']), {"actions": ["", 'a"b\\'], "action_count": 2}
    yield "judged clean", bad("execution", violations=[]), {"violations": "[]"}
    yield "no signal", bad("execution", signals={}), {"signal_confidence": None}
    yield "one signal", bad("execution", signals={"coherence": 1, "other": 9}), {"signal_coherence": 1.0}
    yield "a null signal", bad("execution", signals={"coherence": None, "confidence": 0.5}), {"signal_coherence": None}
    yield "a flag", bad("execution", sla_breached=True), {"sla_breached": True, "sla_breached_reported": True}


STRANGE = list(_strange_but_good())


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Record]:
    """The rows of the strange lines by line number."""
    project = Project(tmp_path_factory.mktemp("strange") / "project")
    lines = [text.replace('"e1"', f'"e{number}"') for number, (_, text, _) in enumerate(STRANGE)]
    project.write_log("all.jsonl", lines)
    project.ingest(HourRange.of(START))
    rejected = project.query("SELECT line_number, reason FROM rejected_records")
    rows = {row["line_number"]: row for row in project.rows("executions")}
    return rows | {number: {"rejected": reason} for number, reason in rejected}


@pytest.mark.parametrize("place", range(len(STRANGE)), ids=[name for name, _, _ in STRANGE])
def test_a_strange_but_good_line_is_loaded_as_it_is_meant(loaded: dict[int, Record], place: int) -> None:
    row = loaded[place + 1]
    assert "rejected" not in row
    expected = STRANGE[place][2]
    assert {name: row[name] for name in expected} == expected


TIMES: list[tuple[Any, datetime]] = [
    ("2026-06-07T00:30:00Z", AT),
    ("2026-06-07T00:30Z", AT),
    ("2026-06-07 00:30:00", AT),
    ("2026-06-07T00:30:00", AT),
    ("2026-06-07T02:30:00+02:00", AT),
    ("2026-06-07T02:30:00+02", AT),
    ("2026-06-06T19:00:00-05:30", AT),
    ("2026-06-07T00:30:00.5Z", AT.replace(microsecond=500_000)),
    ("2026-06-07T00:30:00.123456Z", AT.replace(microsecond=123_456)),
    ("2026-06-07T00:30:00.123456789Z", AT.replace(microsecond=123_456)),
    ("2026-06-07T00:30:00.999999999Z", AT.replace(microsecond=999_999)),
    ("2026-06-07T00:59:59.9999999Z", AT.replace(minute=59, second=59, microsecond=999_999)),
    (1780792200, AT),
    (1780792200.0, AT),
    (1780792200000, AT),
    (1780792200.25, AT.replace(microsecond=250_000)),
    (1780792200123.5, AT.replace(microsecond=123_500)),
    (1.7807922e9, AT),
    ("2000-01-01T00:00:00Z", datetime(2000, 1, 1, tzinfo=UTC)),
    ("2099-12-31T23:59:59.999999Z", datetime(2099, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)),
    ("2024-02-29T12:00:00Z", datetime(2024, 2, 29, 12, tzinfo=UTC)),
    ("2026-03-29T02:30:00Z", datetime(2026, 3, 29, 2, 30, tzinfo=UTC)),
    ("2026-06-06T24:00:00Z", START),
    ("2026-06-07T06:00:00+0530", AT),
    ("2026-06-07T00:30:5.5Z", AT.replace(second=5, microsecond=500_000)),
]


def test_every_way_to_write_a_time_gives_the_same_moment(project: Project) -> None:
    project.now = datetime(2100, 1, 1, tzinfo=UTC)
    for number, (value, _) in enumerate(TIMES):
        fired = GOOD["trigger"] | {"trigger_id": f"t{number}", "fired_at": value}
        project.write_log(f"{number}.jsonl", [line(fired)])
    project.ingest(HourRange.of(START))
    found = {
        name: (kind, hour) for name, kind, hour in project.query("SELECT source_file, record_type, hour FROM raw_logs")
    }
    for number, (value, moment) in enumerate(TIMES):
        assert found[f"{number}.jsonl"] == ("trigger", moment.replace(minute=0, second=0, microsecond=0)), value


def test_fractions_of_a_second_are_kept_to_the_microsecond(project: Project) -> None:
    project.now = datetime(2100, 1, 1, tzinfo=UTC)
    fractions = {f"t{number}": pair for number, pair in enumerate(TIMES) if pair[1].microsecond}
    fired = [GOOD["trigger"] | {"trigger_id": name, "fired_at": value} for name, (value, _) in fractions.items()]
    project.write_log("a.jsonl", map(line, fired))
    for hour in {moment.replace(minute=0, second=0, microsecond=0) for _, moment in fractions.values()}:
        project.ingest(HourRange.of(hour))
    found = dict(project.query("SELECT trigger_id, fired_at FROM trigger_events"))
    assert found == {name: moment for name, (_, moment) in fractions.items()}


# -- any line, like the reference ------------------------------------------------------------------------------------------

TOKENS = [
    "null", "true", "false", "0", "-0", "-0.0", "1", "-1", "0.5", "1.5", "1e0", "1E-3", "3.0", "1e400", "9223372036854775807",
    "9223372036854775808", "18446744073709551616", "1e309", "NaN", "Infinity", "-Infinity", '""', '" "', '"x"', '"0.5"',
    '"true"', '"null"', '"success"', '"failure"', '"fired"', '"failed"', '"baseline"', '"prompt"', '"restart"', '"Success"',
    '"a\\\\"', '"\\u0041"', '"\\"', "[]", "[1]", '["a"]', '["a", null]', '["a", ["b"]]', "[[]]", "{}", '{"confidence": 0.5}',
    '{"confidence": 2}', '{"coherence": "1"}', '{"coherence": null}', '{"constraint": "c", "severity": "low"}',
    '[{"constraint": "c", "severity": "low"}]', '[{"constraint": "", "severity": "high", "x": 1}]', "[null]", "[{}]",
    '[{"constraint": null, "severity": "low"}]', '[{"severity": "low"}, 1]', '"2026-06-07T00:10:00Z"', '"2026-06-07T00:40:00"',
    '"2026-06-07 00:59:59.999999+00:00"', '"2026-06-07T00"', '"20260607T001000Z"', '"2026-06-07T00:10:00 Z"',
    '"2026-06-07T00:10:60Z"', '"2026-158T00:10:00Z"', '"infinity"', '"-infinity"', '"2026-06-07 (BC) 00:10:00"',
    '"2026-06-07T00:10:00 Europe/Berlin"', '"+2026-06-07T00:10:00Z"', '"2026-06-07T00:10:00−02:00"',
    '"٢٠٢٦-06-07T00:10:00Z"', '"2026-06-07T00:10:00.1234567890123Z"',
    "1780791000", "1780791000000", "1780791000.5", "1780791000000000", '"1780791000"', "1.780791e9", "1780791000e0",
    "1780791000.0000005", "1780791000.0000015", "99999999999", "100000000000", "-1780791000",
]  # fmt: skip
COMMA_TOO_MANY = re.compile(r",\s*[]}]")  # a case of its own in BAD
FIELDS = sorted(reference.KNOWN_FIELDS | {"unknown", "Agent_id"})


NO_TIMES = [
        " 2026-06-07T00:10:00Z", "2026-06-07T00:10:00Z ", "2026-06-07T00:10:00 UTC", "2026-06-07T00:10:00+25:00",
        "2026-06-07T00:10:00+00:60", "2026-06-07T00:10:00+02:00:00", "2026-06-07T00:10:00.Z", "2026-06-07T0:10:00Z", "2026-06-07T 0:10:00Z", "2026-06-07T00:10:00 NZ",
        "2026-6-7T00:10:00Z", "2026/06/07 00:10:00", "2026-06-07T00:10:00z+1", "2026-06-07T00:10:00+02:00Z", "2026-06-07T00:10:5Z",
]  # fmt: skip


def test_a_time_that_is_not_iso_8601_is_rejected(project: Project) -> None:
    for number, text in enumerate(NO_TIMES):
        project.write_log(f"{number}.jsonl", [line(GOOD["trigger"] | {"fired_at": text})], modified=START)
    project.ingest(HourRange.of(START))
    found = {name: found for name, *found in project.query("SELECT source_file, record_type, hour FROM raw_logs")}
    assert found == {f"{number}.jsonl": ["rejected", START] for number in range(len(NO_TIMES))}


def test_a_fraction_of_a_second_may_follow_a_comma(project: Project) -> None:
    project.write_log("a.jsonl", [line(GOOD["trigger"] | {"fired_at": "2026-06-07T00:10:00,5Z"})], modified=START)
    project.ingest(HourRange.of(START))
    assert project.query("SELECT fired_at FROM trigger_events") == [(START + HOUR / 6 + HOUR / 7200,)]


def record_line(kind: str, changes: dict[str, str | None]) -> str:
    """A good record of this kind with fields written exactly so, or left out where they are None."""
    fields = {name: json.dumps(value) for name, value in GOOD[kind].items()} | changes
    return "{" + ", ".join(f"{json.dumps(name)}: {value}" for name, value in fields.items() if value is not None) + "}"


def every_line_with_one_odd_field() -> Iterator[str]:
    for kind in GOOD:
        for name in ["type", *reference.REQUIRED[kind], *reference.OPTIONAL[kind], "unknown", "Agent_id"]:
            yield from (record_line(kind, {name: value}) for value in [None, *TOKENS])


def random_lines_with_odd_fields(random: Random, count: int) -> Iterator[str]:
    for _ in range(count):
        names = random.sample(FIELDS, random.randrange(2, 6))
        text = record_line(random.choice(list(GOOD)), {name: random.choice([None, *TOKENS]) for name in names})
        if random.random() < 0.2:
            text = text[:-1] + f", {json.dumps(random.choice(FIELDS))}: {random.choice(TOKENS)}}}"
        if random.random() < 0.1:
            place = random.randrange(len(text))
            text = (
                text[:place]
                + random.choice(['"', "{", "}", "[", "]", ":", ",", "\\", " ", "e", "-", "é"])
                + text[place:]
            )
        if not COMMA_TOO_MANY.search(text):
            yield text


def with_own_ids(lines: Iterable[str]) -> list[str]:
    """The lines with ids of their own, so that none wins over another."""
    return [text.replace('"e1"', f'"e{n}"').replace('"t1"', f'"t{n}"').replace('"c1"', f'"c{n}"')
            for n, text in enumerate(lines)]  # fmt: skip


def judge_like_the_reference(project: Project, lines: list[str]) -> dict[str, list[str]]:
    """Where the tables and the reference differ: the difference, and the lines."""
    project.write_log("a.jsonl", lines)
    project.ingest(hours_from(START, 24))
    found = {}
    for kind, table in TABLE_OF_RECORD.items():
        for number, hour in project.query(f"SELECT line_number, hour FROM {table}"):
            assert number not in found
            found[number] = (kind, None if kind == "rejected" else hour)
    differences: dict[str, list[str]] = {}
    for number, text in enumerate(lines, start=1):
        parsed = reference.parse_object(text.encode())
        record = None if parsed is None else reference.clean(parsed)
        expected = ("rejected", None) if record is None else (record["type"], record["_hour"])
        if number in found and found[number] != expected:
            differences.setdefault(f"{found[number]}, the reference says {expected}", []).append(text)
        if number not in found and expected[0] not in SUPERSEDABLE:
            differences.setdefault("no row", []).append(text)
    return differences


SUPERSEDABLE = ("execution", "cancellation", "trigger", "model_call", "tool_call")


def test_every_odd_value_of_every_field_is_judged_like_the_reference(project: Project) -> None:
    lines = with_own_ids(every_line_with_one_odd_field())
    assert judge_like_the_reference(project, lines) == {}
    assert_lines_are_conserved(project)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in (1, 2))])
def test_random_odd_lines_are_judged_like_the_reference(project: Project, seed: int) -> None:
    lines = list(random_lines_with_odd_fields(Random(seed), example_count(1000, 3000)))
    assert judge_like_the_reference(project, lines) == {}
    assert_lines_are_conserved(project)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in (1, 2))])
def test_an_unknown_field_changes_neither_what_is_loaded_nor_why_a_line_is_rejected(tmp_path: Path, seed: int) -> None:
    """Lines with more fields than are read are looked at more closely."""
    lines = with_own_ids(
        [*every_line_with_one_odd_field(), *random_lines_with_odd_fields(Random(seed), example_count(1000, 3000))]
    )
    with_unknown = [text.replace("{", '{"x": [{"at": 1}], ', 1) if text.startswith("{") else text for text in lines]
    found = []
    for name, texts in (("plain", lines), ("with unknown", with_unknown)):
        project = Project(tmp_path / name)
        project.write_log("a.jsonl", texts, modified=START)
        project.ingest(hours_from(START, 24))
        tables = {table: project.rows(table) for table in TABLE_OF_RECORD.values()}
        for row in tables["rejected_records"]:
            del row["raw"]
        found.append(tables)
    assert found[0]["executions"]
    assert_same_tables(found[1], found[0])


# -- files -----------------------------------------------------------------------------------------------------------------


def five_lines() -> list[str]:
    return [line(execution(f"e{number}", "a", AT, session_id="s" * 50)) for number in range(5)]


def rejected(project: Project) -> list[tuple[str, int, str]]:
    return project.query("SELECT source_file, line_number, reason FROM rejected_records ORDER BY ALL")


def executions(project: Project) -> list[str]:
    return [row[0] for row in project.query("SELECT execution_id FROM executions ORDER BY ALL")]


def test_a_truncated_gzip_keeps_the_lines_before_the_cut(project: Project) -> None:
    noise = Random(1)
    lines = [line(execution(f"e{n}", "a", AT, error=noise.randbytes(200).hex())) for n in range(200)]
    whole = gzip.compress("".join(text + "\n" for text in lines).encode())
    (project.raw / "cut.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    project.write_log("whole.jsonl.gz", [line(execution("whole", "a", AT))])
    project.ingest(HourRange.of(START))
    kept = len(executions(project)) - 1
    assert 50 < kept < 150
    ((name, number, reason),) = rejected(project)
    assert (name, number) == ("cut.jsonl.gz", kept + 1)
    assert "gzip" in reason
    assert_lines_are_conserved(project)
    (project.raw / "cut.jsonl.gz").write_bytes(whole)  # the rest arrives
    project.ingest(HourRange.of(START))
    assert len(executions(project)) == 201
    assert rejected(project) == []


def test_a_gzip_cut_before_its_checksum_keeps_every_line(project: Project) -> None:
    whole = gzip.compress("".join(text + "\n" for text in five_lines()).encode())
    (project.raw / "cut.jsonl.gz").write_bytes(whole[:-8])
    project.ingest(HourRange.of(START))
    assert len(executions(project)) == 5
    ((_, number, reason),) = rejected(project)
    assert number == 6
    assert "gzip" in reason


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_a_damaged_gzip_is_named_and_keeps_the_lines_before_the_damage(project: Project, share: float) -> None:
    noise = Random(1)
    lines = [line(execution(f"e{n:04}", "a", AT, error=noise.randbytes(200).hex())) for n in range(2000)]
    content = bytearray(gzip.compress("".join(text + "\n" for text in lines).encode()))
    place = int(len(content) * share)
    content[place : place + 200] = b"\xff" * 200
    (project.raw / "damaged.jsonl.gz").write_bytes(content)
    project.ingest(HourRange.of(START))
    found = rejected(project)
    assert found
    assert any("gzip" in reason for _, _, reason in found)
    good = executions(project)
    assert len(good) >= 2000 * share * 0.8
    assert good[: int(2000 * share * 0.8)] == [f"e{n:04}" for n in range(int(2000 * share * 0.8))]
    assert_lines_are_conserved(project)


def test_a_wrong_checksum_in_a_gzip_is_noticed(project: Project) -> None:
    content = bytearray(gzip.compress("".join(text + "\n" for text in five_lines()).encode()))
    content[-8] ^= 1
    (project.raw / "a.jsonl.gz").write_bytes(content)
    project.ingest(HourRange.of(START))
    assert len(executions(project)) == 5
    assert any("gzip" in reason for _, _, reason in rejected(project))


def test_a_file_that_is_not_gzip_but_named_so_is_read_as_it_is(project: Project) -> None:
    (project.raw / "plain.jsonl.gz").write_text("\n".join(five_lines()), encoding="utf-8")
    project.ingest(HourRange.of(START))
    assert len(executions(project)) == 5
    assert rejected(project) == []


def test_of_a_file_that_is_damaged_gzip_nothing_is_read_after_the_damage(project: Project) -> None:
    packed = gzip.compress("\n".join(five_lines()).encode())
    (project.raw / "damaged.jsonl.gz").write_bytes(packed[:10] + b"\xff" * 20)
    project.write_log("good.jsonl", [line(GOOD["execution"])])
    modified = START + HOUR / 4
    os.utime(project.raw / "damaged.jsonl.gz", (modified.timestamp(), modified.timestamp()))
    project.ingest(HourRange.of(START))
    ((name, number, reason),) = rejected(project)
    assert (name, number) == ("damaged.jsonl.gz", 1)
    assert "gzip" in reason
    assert executions(project) == ["e1"]


@pytest.mark.parametrize("padding", [0, 512, COMPRESSED_BLOCK_BYTES])
def test_gzip_members_one_after_another_are_one_log_however_far_it_is_padded(project: Project, padding: int) -> None:
    members = b"".join(gzip.compress(text.encode() + b"\n") for text in five_lines())
    (project.raw / "a.jsonl.gz").write_bytes(members + b"\0" * padding)
    project.ingest(HourRange.of(START))
    assert len(executions(project)) == 5
    assert rejected(project) == []


def test_a_line_may_go_on_in_the_next_gzip_member(project: Project) -> None:
    content = "".join(text + "\n" for text in five_lines()).encode()
    (project.raw / "a.jsonl.gz").write_bytes(gzip.compress(content[:150]) + gzip.compress(content[150:]))
    project.ingest(HourRange.of(START))
    assert len(executions(project)) == 5
    assert rejected(project) == []


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz"])
def test_a_file_without_any_line_is_fine(project: Project, ending: str) -> None:
    for number, content in enumerate([b"", b"\n", b"\n\n \t \r\n\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\r\n"]):
        project.write_bytes(f"empty {number}.{ending}", content)
    project.write_log("good.jsonl", [line(GOOD["execution"])])
    project.ingest(HourRange.of(START))
    assert executions(project) == ["e1"]
    assert rejected(project) == []
    assert project.ingest(HourRange.of(START)).files_read == []


def test_a_gzip_file_of_no_bytes_is_an_empty_file(project: Project) -> None:
    (project.raw / "a.jsonl.gz").touch()
    project.ingest(HourRange.of(START))
    assert rejected(project) == []


def test_a_byte_order_mark_does_not_cost_the_first_line(project: Project) -> None:
    for name in ("a.jsonl", "b.jsonl.gz"):
        lines = [line(execution(f"{name} {number}", "a", AT)) for number in range(2)]
        project.write_log(name, [b"\xef\xbb\xbf" + lines[0].encode(), lines[1]])
    project.ingest(HourRange.of(START))
    assert executions(project) == ["a.jsonl 0", "a.jsonl 1", "b.jsonl.gz 0", "b.jsonl.gz 1"]


def test_windows_line_ends_blank_lines_and_a_missing_last_newline_are_fine(project: Project) -> None:
    lines = five_lines()
    content = (
        b"\r\n" + lines[0].encode() + b"\r\n\r\n  \t\r\nbroken\r\n" + lines[1].encode() + b"\n\n" + lines[2].encode()
    )
    project.write_bytes("a.jsonl", content)
    project.ingest(HourRange.of(START))
    assert executions(project) == ["e0", "e1", "e2"]
    assert [row[1] for row in rejected(project)] == [5]  # as an editor counts them
    assert project.query("SELECT line_number FROM executions ORDER BY ALL") == [(2,), (6,), (8,)]
    assert project.query("SELECT raw FROM rejected_records") == [("broken",)]
    assert project.query("SELECT sum(lines) FROM raw_logs") == [(4,)]


def test_a_last_line_without_newline_is_loaded_and_once_more_when_it_is_finished(project: Project) -> None:
    text = line(GOOD["execution"])
    project.write_bytes("a.jsonl", text.encode()[:-10])
    project.ingest(HourRange.of(START))
    project.write_bytes("a.jsonl", text.encode())
    project.ingest(HourRange.of(START))
    assert executions(project) == ["e1"]
    project.write_bytes("a.jsonl", text.encode() + b"\n")
    project.ingest(HourRange.of(START))
    assert executions(project) == ["e1"]
    assert rejected(project) == []
    assert_lines_are_conserved(project)


def test_a_garbage_line_of_10_megabytes_is_rejected_and_cut_at_64_kibibytes(project: Project) -> None:
    for name in ("a.jsonl", "b.jsonl.gz"):
        good = [line(execution(f"{name} {number}", "a", AT)) for number in range(2)]
        project.write_log(name, [good[0], "x" * (10 << 20), good[1]])
    project.ingest(HourRange.of(START))
    assert len(executions(project)) == 4
    assert [row[1] for row in rejected(project)] == [2, 2]
    assert project.query("SELECT DISTINCT raw FROM rejected_records") == [("x" * RAW_BYTES,)]


def test_a_valid_line_of_10_megabytes_is_loaded(project: Project) -> None:
    for name in ("a.jsonl", "b.jsonl.gz"):
        project.write_log(
            name, [line(execution(name, "a", AT, error="é" * (5 << 20))), line(execution(name + "2", "a", AT))]
        )
    project.ingest(HourRange.of(START))
    assert len(executions(project)) == 4
    [(error,)] = project.query("SELECT DISTINCT error FROM executions WHERE error IS NOT NULL")
    assert error.endswith("é … (cut, 10,485,760 bytes)")


def test_a_line_that_is_far_too_long_is_rejected_without_holding_up_the_rest(project: Project) -> None:
    with (project.raw / "a.jsonl").open("wb") as log:
        log.write(line(execution("before", "a", AT)).encode() + b"\n" + b'{"type": "')
        for _ in range(100):
            log.write(b"x" * (1 << 20))
        log.write(b'"}\n' + line(execution("after", "a", AT)).encode())
    project.ingest(HourRange.of(START))
    assert executions(project) == ["after", "before"]
    assert [row[1] for row in rejected(project)] == [2]
    assert project.query("SELECT line_number FROM executions WHERE execution_id = 'after'") == [(3,)]
    assert project.query("SELECT length(raw) FROM rejected_records") == [(RAW_BYTES,)]


def test_raw_text_is_cut_between_two_characters(project: Project) -> None:
    pairs = [(shift, letter) for letter in ("x", "é", "€", "😀") for shift in range(4)]
    project.write_log("a.jsonl", ["x" * shift + letter * RAW_BYTES for shift, letter in pairs], modified=START)
    project.ingest(HourRange.of(START))
    found = project.query("SELECT raw FROM rejected_records ORDER BY line_number")
    for (shift, letter), (raw,) in zip(pairs, found, strict=True):
        assert raw == "x" * shift + letter * ((RAW_BYTES - shift) // len(letter.encode())), f"{shift} {letter}"


def test_raw_text_of_exactly_64_kibibytes_is_kept_whole(project: Project) -> None:
    project.write_log("a.jsonl", ["x" * RAW_BYTES, "y" * (RAW_BYTES + 1)], modified=START)
    project.ingest(HourRange.of(START))
    lengths = project.query("SELECT line_number, length(raw) FROM rejected_records ORDER BY ALL")
    assert lengths == [(1, RAW_BYTES), (2, RAW_BYTES)]


def test_raw_text_that_is_not_utf_8_is_cut_to_64_kibibytes_as_well(project: Project) -> None:
    project.write_log("a.jsonl", [b"\xff" * (2 * RAW_BYTES)], modified=START)
    project.ingest(HourRange.of(START))
    ((raw,),) = project.query("SELECT raw FROM rejected_records")
    assert 0 < len(raw.encode()) <= RAW_BYTES
    assert set(raw) == {"\ufffd"}


def test_a_deeply_nested_unknown_field_stops_nothing_and_loses_no_line(project: Project) -> None:
    lines = []
    for depth in (10, 1_000, 100_000, 1_000_000):
        lines.append(token("execution", "x", "[" * depth + "]" * depth).replace('"e1"', f'"e{depth}"'))
        lines.append(token("execution", "x", '{"a":' * depth + "1" + "}" * depth).replace('"e1"', f'"o{depth}"'))
    lines.append(line(execution("good", "a", AT)))
    project.write_log("a.jsonl", lines)
    project.ingest(HourRange.of(START))
    kept = executions(project)
    assert {"good", "e10", "o10", "e1000", "o1000"} <= set(kept)
    assert len(kept) + len(rejected(project)) == len(lines)


def test_files_of_other_kinds_are_left_alone(project: Project) -> None:
    for name in ("a.csv", "b.txt", "c.jsonl.bak", "d.jsonl.zst", "jsonl", ".e.jsonl.swp"):
        (project.raw / name).write_text("not a log", encoding="utf-8")
    (project.raw / "folder.jsonl").mkdir()
    project.write_log("folder.jsonl/in it.jsonl", [line(GOOD["execution"])])
    report = project.ingest(HourRange.of(START))
    assert report.files_read == ["folder.jsonl/in it.jsonl"]
    assert executions(project) == ["e1"]


def test_a_file_whose_name_is_near_that_of_a_log_is_told(project: Project) -> None:
    near = ["app.log", "app.log.1", "deep/app.txt", "app.jsonl.zst", "app.JSONLINES", "app.jsonl.bak", "app.json~"]
    for name in [*near, "a.csv", "b.jsonl.tmp", "c.json5", "notes.md", "catalog", ".app.log.swp"]:
        project.write_log(name, [line(GOOD["execution"])])
    (project.raw / "folder.log").mkdir()
    told: dict[str, str] = {}
    assert list_files(project.raw, {}, told) == []
    assert set(told) == set(near)
    assert set(told.values()) == {f"it is not read, for its name: {NAMES_THAT_COUNT}"}


@pytest.mark.parametrize(
    "ending",
    ["1", "20260607", "2026-06-07", "2026-06-07_13", "2026-06-07T13-00-00", "2026-06-07.gz", "1.gz", "gz", "gz.1"],
)
def test_a_log_that_was_rotated_is_read_whatever_its_rotation_calls_it(project: Project, ending: str) -> None:
    names = [f"app.jsonl{separator}{ending}" for separator in (".-" if ending[0] != "g" else ".")]
    for name in names:
        content = (line(GOOD["execution"]) + "\n").encode()
        project.write_files({name: gzip.compress(content) if "gz" in ending else content})
    told: dict[str, str] = {}
    assert [file.source_file for file in list_files(project.raw, {}, told)] == sorted(names)
    assert told == {}
    project.ingest(HourRange.of(START))
    assert executions(project) == ["e1"]


def test_of_many_such_files_some_are_told(project: Project) -> None:
    for number in range(MOST_NEAR_MISSES + 5):
        project.write_log(f"{number:03}.log", ["text"])
    told: dict[str, str] = {}
    list_files(project.raw, {}, told)
    assert sorted(told) == [f"{number:03}.log" for number in range(MOST_NEAR_MISSES)]


def test_a_pipe_that_is_named_like_a_log_is_left_alone_or_named(project: Project) -> None:
    """Whoever opened it would wait for a writer for ever."""
    os.mkfifo(project.raw / "pipe.jsonl")
    with suppress(HealthAssetsError):
        assert [file.source_file for file in list_files(project.raw)] == []


def test_a_link_that_leads_back_is_no_trap(project: Project) -> None:
    project.write_log("deep/a.jsonl", [line(GOOD["execution"])])
    (project.raw / "deep" / "back").symlink_to(project.raw)
    (project.raw / "deep" / "again").symlink_to(project.raw / "deep")
    project.ingest(HourRange.of(START))
    assert project.query("SELECT source_file FROM executions") == [("deep/a.jsonl",)]


def test_any_file_name_will_do(project: Project) -> None:
    names = ["ünï 'quoted'; --.jsonl", "a\nb.jsonl", "%41 *?[x].jsonl", "-rf.jsonl", "A.JSONL", "B.jsonl.GZ"]
    for name in names:
        content = line(GOOD["execution"] | {"execution_id": name}).encode() + b"\nbad\n"
        (project.raw / name).write_bytes(gzip.compress(content) if name.endswith("GZ") else content)
    project.ingest(HourRange.of(START))
    found = project.query("SELECT execution_id, source_file FROM executions")
    assert sorted(found) == sorted((name, name) for name in names)
    assert sorted(row[:2] for row in rejected(project)) == sorted((name, 2) for name in names)
    assert project.ingest(HourRange.of(START)).files_read == []
