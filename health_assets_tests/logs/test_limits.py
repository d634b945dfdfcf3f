"""What is taken of logs that anybody may have written: no event of the future, no endless name, no flood of bad lines."""

import gzip
import json
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest

from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HOUR, HourRange
from health_assets.defs.sensors import late_logs_sensor
from health_assets.logs import content_index, decompression
from health_assets.logs.decompression import decompressed_blocks
from health_assets.logs.files import RawFile, line_batches, list_files
from health_assets.logs.formats.foreign_lines import Damage
from health_assets.logs.limits import BLOCK_BYTES, WITHOUT_LIMIT, Limits, Unpacking
from health_assets.logs.native_line_types import RECORD_TYPES, RULES
from health_assets.logs.read_ahead import Ahead
from health_assets.pipeline.partition_selection import select_hours
from health_assets.pipeline.resource import Pipeline
from health_assets.schema.records import LINE_TYPES
from health_assets_tests.support.logs_made import START, Record, cancellation, execution, line, trigger
from health_assets_tests.support.projects import (
    Project,
    assert_lines_are_conserved,
    assert_same_tables,
    hours_from,
    tick,
)
from health_assets_tests.support.traces_made import agent, otlp_line

AT = START + HOUR / 2
NOW = START + 2 * HOUR
SKEW = timedelta(minutes=5)
DAY = hours_from(START, 24)


def reasons(project: Project) -> dict[tuple[str, int], str]:
    rows = project.query("SELECT source_file, line_number, reason FROM rejected_records")
    return {(name, number): reason for name, number, reason in rows}


# -- events of the future ------------------------------------------------------------------------------------------------

EVENTS: dict[str, Record] = {name: record.sample for name, record in LINE_TYPES.items()} | {
    "execution": execution("e", "a", START),
    "cancellation": cancellation("x", "a", START),
    "trigger": trigger("t", "a", START),
    "model_call": {"type": "model_call", "call_id": "c", "model": "m", "ended_at": "@", "status": "success"},
    "tool_call": {"type": "tool_call", "call_id": "c", "tool": "t", "ended_at": "@", "status": "success"},
    "signals": {"type": "signals", "execution_id": "e", "at": "@", "coherence": 0.5},
    "judgement": {"type": "judgement", "execution_id": "e", "at": "@", "violations": []},
    "agent_update": {"type": "agent_update", "agent_id": "a", "at": "@", "kind": "restart"},
}
TIME_FIELDS = {
    "execution": "ended_at", "cancellation": "ended_at", "trigger": "fired_at", "model_call": "ended_at",
    "tool_call": "ended_at",
}  # fmt: skip


def event(kind: str, at: datetime) -> str:
    return line(EVENTS[kind] | {TIME_FIELDS.get(kind, "at"): at.isoformat()})


@pytest.fixture
def clocked(project: Project) -> Project:
    project.now = NOW
    return project


def test_an_event_later_than_the_clock_and_its_skew_is_rejected_with_that_reason(clocked: Project) -> None:
    for kind in EVENTS:
        clocked.write_log(f"{kind}.jsonl", [event(kind, NOW + SKEW), event(kind, NOW + SKEW + timedelta(seconds=1))])
    spans = [agent(1, 1, NOW + SKEW), agent(2, 2, NOW + 2 * SKEW)]
    clocked.write_log("span.jsonl", [otlp_line(one) for one in spans])
    report = clocked.ingest(DAY)
    found = reasons(clocked)
    assert set(found) == {(f"{kind}.jsonl", 2) for kind in [*EVENTS, "span"]}
    assert all("is in the future; it must be no later than now" in reason for reason in found.values())
    assert found["trigger.jsonl", 2].startswith("fired_at is")
    assert (report.spans_read, report.rejected) == (1, len(EVENTS) + 1)
    assert_lines_are_conserved(clocked)


def test_the_skew_is_a_setting(clocked: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEALTH_CLOCK_SKEW_S", "0")
    clocked.write_log("a.jsonl", [event("trigger", NOW), event("trigger", NOW + timedelta(microseconds=1))])
    clocked.ingest(DAY)
    assert set(reasons(clocked)) == {("a.jsonl", 2)}


def test_a_line_comes_in_once_its_time_has_come_as_in_a_clean_rebuild(clocked: Project) -> None:
    span = agent(1, 1, NOW + 3 * HOUR)
    clocked.write_log("a.jsonl", [event("execution", AT), event("execution", NOW + 2 * HOUR), otlp_line(span)])
    clocked.write_log("b.jsonl", [event("trigger", AT)])
    clocked.ingest(DAY)
    assert clocked.query("SELECT future_at FROM raw_files ORDER BY ALL") == [(NOW + 2 * HOUR,), (None,)]
    clocked.now = NOW + 2 * HOUR - SKEW - timedelta(microseconds=1)
    assert clocked.ingest(DAY).files_read == []
    for hours, left in ((2, 1), (3, 0)):
        clocked.now = NOW + hours * HOUR - SKEW
        assert clocked.ingest(DAY).files_read == ["a.jsonl"]
        assert len(reasons(clocked)) == left
        clean = clocked.clean_rebuild(DAY, f"clean {hours}", only=["ingest"])
        assert_same_tables(clocked.tables(), clean.tables())
        assert clocked.ingest(DAY).files_read == []
        assert_lines_are_conserved(clocked)


def test_the_sensor_finds_the_line_when_its_hour_is_over(clocked: Project, instance: dg.DagsterInstance) -> None:
    clocked.write_log("a.jsonl", [event("execution", AT), event("execution", NOW + HOUR / 2)])
    clocked.materialize(HourRange(START, NOW))

    def hours_requested(now: datetime) -> list[str]:
        pipeline = Pipeline(settings=clocked.settings, clock=lambda: now)
        told = tick(late_logs_sensor("job", clocked.settings), pipeline, instance)
        return [one.tags["dagster/partition"] for one in told.run_requests or ()]

    assert hours_requested(NOW) == []
    assert hours_requested(NOW + HOUR / 2) == ["2026-06-07-00:00"], "it is good now, but its hour is not over"
    assert hours_requested(NOW + 2 * HOUR) == ["2026-06-07-00:00", "2026-06-07-02:00"], "its own, and of its rejection"


def test_a_line_of_the_future_makes_no_hour_and_hides_none(clocked: Project) -> None:
    future = [event("execution", NOW + timedelta(days=40)), event("execution", datetime(2099, 1, 1, tzinfo=UTC))]
    clocked.write_log("a.jsonl", [event("execution", AT), *future], modified=AT)
    found = select_hours(clocked.pipeline, None, None)
    assert found.hours.ranges == (HourRange.of(START),)
    clocked.materialize(found.hours)
    assert clocked.query("SELECT DISTINCT hour FROM partition_states") == [(START,)]
    assert len(reasons(clocked)) == 2
    clocked.write_log("a.jsonl", future, modified=AT)
    with pytest.raises(HealthAssetsError, match=r"line 1: .* in the future"):
        other = replace(clocked, folder=clocked.folder / "other")
        other.raw = clocked.raw
        select_hours(other.pipeline, None, None)


# -- long names and texts ------------------------------------------------------------------------------------------------


def test_a_free_text_is_cut_at_64_kib_between_two_characters_and_says_so(project: Project) -> None:
    for shift in range(4):
        text = "x" * shift + "😀" * 30_000
        records = [
            execution(f"e{shift}", "a", AT, status="failure", error=text),
            trigger(f"t{shift}", "a", AT) | {"reason": text},
            {"type": "agent_update", "agent_id": "a", "at": AT.isoformat(), "kind": "restart", "detail": text},
        ]
        project.write_log(f"{shift}.jsonl", [line(record) for record in records])
    project.ingest(HourRange.of(START))
    assert reasons(project) == {}
    kept = [
        *project.query("SELECT error FROM executions"),
        *project.query("SELECT reason FROM trigger_events"),
        *project.query("SELECT detail FROM agent_updates"),
    ]
    assert len(kept) == 12
    for (text,) in kept:
        beginning, said, length = text.partition(" … (cut, ")
        assert len(text.encode()) <= 64 << 10
        assert ("x" * 3 + "😀" * 30_000).find(beginning) >= 0
        assert len(beginning.encode()) > (64 << 10) - 70
        assert said
        assert length in [f"{120_000 + shift:,} bytes)" for shift in range(4)]


LONG = "x" * (1 << 20)
LONG_VALUES: dict[str, object] = dict.fromkeys(RULES, LONG) | {
    "actions": ["x" * 1000] * 1100,
    "violations": [{"constraint": "x" * 1000, "severity": "low"}] * 1100,
}
FREE_TEXTS = ("error", "reason", "detail", "label")
CONTENTS = ("arguments", "result", "output", "input", "user_id")


@pytest.mark.parametrize("kind", RECORD_TYPES)
def test_no_field_of_any_record_takes_a_megabyte(project: Project, kind: str) -> None:
    """Free texts are cut, of contents digests are kept; whatever else is text costs its line."""
    fields = [name for name in RECORD_TYPES[kind].values if name != "trigger_status"]
    project.write_log("a.jsonl", [line(EVENTS[kind] | times(kind) | {field: LONG_VALUES[field]})
                                  for field in fields], modified=START)  # fmt: skip
    project.ingest(HourRange.of(START))
    taken = [number for number, field in enumerate(fields, 1) if field in FREE_TEXTS + CONTENTS]
    assert sorted(number for _, number in reasons(project)) == sorted({*range(1, len(fields) + 1)} - {*taken})
    assert all(len(reason) < 300 for reason in reasons(project).values())


def times(kind: str) -> Record:
    return {TIME_FIELDS.get(kind, "at"): AT.isoformat()}


def test_a_name_of_megabytes_costs_no_more_than_its_line(project: Project) -> None:
    long = "x" * (10 << 20)
    others = [line(execution("e", "a", AT) | {"own": long}), event("trigger", AT)]
    of_other = cpu_s_of_ingesting(replace(project, folder=project.folder / "other"), others)
    of_name = cpu_s_of_ingesting(project, [line(execution("e", long, AT)), event("trigger", AT)])
    assert of_name < 3 * of_other + 3, "as a name it cost 200 s"
    [(place, reason)] = reasons(project).items()
    assert place == ("a.jsonl", 1)
    assert reason.startswith("agent_id must be text that is not empty, of at most 1 KiB, not")
    assert len(reason) < 200


def test_every_name_of_a_judgement_has_its_limit_and_what_is_kept_of_a_violation_too(project: Project) -> None:
    judged = {"type": "judgement", "execution_id": "e", "at": AT.isoformat(), "violations": [], "agent_id": "a"}
    most, more = "é" * 512, "é" * 512 + "x"
    names = ("execution_id", "agent_id", "judged_by", "judge")
    graded = {"severity": "low", "told": more * 100}
    good = [judged | {name: most} for name in names] + [
        judged | {"violations": [{"constraint": most} | graded] * 100},
        execution("run", "a", AT, violations=[{"constraint": most} | graded]),
    ]
    bad = [judged | {name: more} for name in names] + [
        judged | {"violations": [{"constraint": most} | graded, {"constraint": more} | graded]},
        execution("run", "a", AT, violations=[{"constraint": more} | graded]),
    ]
    project.write_log("good.jsonl", map(line, good))
    project.write_log("judgements/bad.jsonl", map(line, bad), modified=AT)
    project.ingest(HourRange.of(START))
    found = reasons(project)
    assert set(found) == {("judgements/bad.jsonl", place) for place in range(1, len(bad) + 1)}
    for place, name in enumerate([*names, "violations", "violations"], 1):
        reason = found["judgements/bad.jsonl", place]
        assert reason.startswith(f"{name} must be ")
        assert "of at most 1 KiB, " in reason and len(reason) < 300
    kept = [row["violations"] for table in ("judgements", "executions") for row in project.rows(table)]
    assert max(len(str(violations)) for violations in kept) < 100 * 700, "what else stands in a violation is not kept"


def cpu_s_of_ingesting(project: Project, lines: list[str]) -> float:
    project.write_log("a.jsonl", lines)
    before = time.process_time()
    project.ingest(HourRange.of(START))
    return time.process_time() - before


# -- floods of bad lines -------------------------------------------------------------------------------------------------


def test_beyond_a_number_of_bad_lines_the_others_of_a_file_are_one_record_with_their_count(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEALTH_MAX_REJECTED_LINES", "3")
    lines = ["bad"] * 2 + [event("trigger", AT)] + ["bad"] * 3 + [line(execution("e", "a", AT))] + ["{}"] * 20_000
    project.write_log("a.jsonl", [*lines, line(execution("last", "a", AT))])
    project.write_log("b.jsonl", ["bad"] * 3)
    report = project.ingest(HourRange.of(START))
    found = project.query("SELECT source_file, line_number, lines FROM rejected_records ORDER BY ALL")
    assert found[:4] == [("a.jsonl", 1, 1), ("a.jsonl", 2, 1), ("a.jsonl", 4, 1), ("a.jsonl", 5, 20_002)]
    assert reasons(project)["a.jsonl", 5].startswith("neither reason nor text is kept of the rejected lines")
    assert project.query("SELECT execution_id FROM executions ORDER BY ALL") == [("e",), ("last",)]
    assert report.rejected == 20_005 + 3
    assert project.query("SELECT rejected FROM raw_files ORDER BY source_file") == [(20_005,), (3,)]
    assert_lines_are_conserved(project)
    assert project.ingest(HourRange.of(START)).files_read == [], "a row for many lines is no damage"


def test_one_line_of_very_many_bad_spans_is_no_more_rows_than_as_many_lines(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEALTH_MAX_REJECTED_LINES", "100")
    scopes = [{"spans": [{}] * 11}, {"spans": [{}] * 10_000}]
    flood = json.dumps({"resourceSpans": [{"scopeSpans": scopes}, {"scopeSpans": scopes}]})
    project.write_log("a.jsonl", ["bad", flood, flood, event("trigger", AT), "bad"])
    report = project.ingest(HourRange.of(START))
    found = project.rows("rejected_records")
    spans = [f"0.0.{place}" for place in range(11)] + [f"0.1.{place}" for place in range(88)]
    assert {row["reason"].partition(" in span ")[2] for row in found if row["lines"] == 1} == {"", *spans}
    assert sorted((row["line_number"], row["lines"]) for row in found)[-1] == (2, 2 * 20_022 + 2 - 100)
    assert (len(found), report.rejected) == (101, 2 * 20_022 + 2)
    assert_lines_are_conserved(project)


def test_a_file_that_unpacks_to_more_than_its_most_is_read_up_to_there(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = event("trigger", AT)
    content = "".join(good.replace('"t"', f'"t{number}"') + "\n" for number in range(1000)).encode()
    limit = content.index(b'"t500"')
    project.write_bytes("a.jsonl", content)
    project.write_bytes("b.jsonl.gz", re.sub(rb'"t(\d+)"', rb'"u\1"', content))
    limits = replace(project.pipeline.limits, unpacked_bytes=limit)
    monkeypatch.setattr(Limits, "of", lambda *_: limits)
    project.ingest(HourRange.of(START))
    assert project.query("SELECT count(*) FROM trigger_events") == [(2 * 500,)]
    assert set(reasons(project)) == {("a.jsonl", 501), ("b.jsonl.gz", 501)}
    assert all("HEALTH_MAX_UNPACKED_GIB" in reason for reason in reasons(project).values())
    assert_lines_are_conserved(project)


def test_a_file_that_is_packed_too_much_is_read_up_to_there(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    good = event("trigger", AT).encode()
    bomb = good + b"\n" * (64 << 20) + good + b"\n"
    project.write_bytes("a.jsonl.gz", bomb)
    project.write_bytes("b.jsonl", bomb.replace(b'"t"', b'"u"'))
    limits = replace(project.pipeline.limits, packing_ratio=100)
    monkeypatch.setattr(Limits, "of", lambda *_: limits)
    monkeypatch.setattr(decompression, "UNPACKED_ANYWAY", 1 << 20)
    project.ingest(HourRange.of(START))
    assert sorted(project.query("SELECT source_file, line_number FROM trigger_events")) == [
        ("a.jsonl.gz", 1), ("b.jsonl", (64 << 20) + 1)
    ]  # fmt: skip
    [(place, reason)] = reasons(project).items()
    assert place[0] == "a.jsonl.gz"
    assert "HEALTH_MAX_PACKING_RATIO" in reason
    assert_lines_are_conserved(project)


def test_a_file_of_too_many_lines_is_read_up_to_there(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    events, others = (
        [event("trigger", AT).replace('"t"', f'"{name}{number}"') for number in range(30)] for name in "tu"
    )
    project.write_log("a.jsonl", events)
    project.write_bytes("b.json", f"[{','.join(others)}]".encode())
    limits = replace(project.pipeline.limits, lines=20)
    monkeypatch.setattr(Limits, "of", lambda *_: limits)
    project.ingest(HourRange.of(START))
    assert project.query("SELECT source_file, count(*), max(line_number) FROM trigger_events GROUP BY 1 ORDER BY 1") == [
        ("a.jsonl", 20, 20), ("b.json", 20, 20)
    ]  # fmt: skip
    assert set(reasons(project)) == {("a.jsonl", 21), ("b.json", 21)}
    assert all("HEALTH_MAX_LINES" in reason for reason in reasons(project).values())
    assert_lines_are_conserved(project)


@pytest.mark.parametrize("blank", ["\n", " \n", "\r\n", "\t\n"], ids=repr)
@pytest.mark.parametrize("count", [5_000, 9_000_000], ids=["few", "more than a block"])
def test_blank_lines_in_large_numbers_are_counted_and_not_parsed(project: Project, blank: str, count: int) -> None:
    good = event("trigger", AT)
    project.write_bytes("a.jsonl", f"{blank * count}{good}\n{blank * count}{good}\n{blank * count}".encode())
    batches = [*line_batches(enumerate(list_files(project.raw)))]
    assert [number for batch in batches for number in batch["line_number"].to_pylist()] == [count + 1, 2 * count + 2]


def test_a_block_that_unpacks_to_a_thousand_times_its_size_is_taken_in_pieces(project: Project) -> None:
    padded = event("trigger", AT) + " " * (20 << 20)
    content = gzip.compress(f"{padded}\n{event('trigger', AT)}\n".encode())
    path = project.write_bytes("a.jsonl", b"")
    path.unlink()
    (project.raw / "a.jsonl.gz").write_bytes(content + content)
    [file] = list_files(project.raw)
    sizes = [len(block) for block in decompressed_blocks(file, WITHOUT_LIMIT) if isinstance(block, bytes)]
    assert max(sizes) <= BLOCK_BYTES < sum(sizes)
    project.ingest(HourRange.of(START))
    assert project.query("SELECT lines FROM raw_logs") == [(4,)]
    (project.raw / "a.jsonl.gz").write_bytes(content + content[: len(content) // 2])
    project.ingest(HourRange.of(START))
    assert "cut off" in reasons(project)["a.jsonl.gz", 3]


def test_a_log_beyond_its_most_is_compared_with_others_only_up_to_there(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = event("trigger", AT)
    content = "".join(good.replace('"t"', f'"t{number}"') + "\n" for number in range(200_000)).encode()
    limits = replace(project.pipeline.limits, unpacked_bytes=content.index(b'"t500"'))
    monkeypatch.setattr(Limits, "of", lambda *_: limits)
    path = project.write_bytes("a.jsonl", content)
    project.ingest(HourRange.of(START))
    before = project.tables(names=["trigger_events"])
    path.unlink()
    project.write_bytes("packed.jsonl.gz", content)
    read_bytes = []

    def counted(file: RawFile, most: Unpacking, ahead: Ahead) -> Iterator[bytes | Damage]:
        for block in decompressed_blocks(file, most, ahead=ahead):
            read_bytes.append(0 if isinstance(block, Damage) else len(block))
            yield block

    monkeypatch.setattr(content_index, "decompressed_blocks", counted)
    project.ingest(HourRange.of(START))
    assert sum(read_bytes) == limits.unpacked_bytes
    assert project.query("SELECT source_file FROM raw_files WHERE gone_at IS NOT NULL") == []
    assert {row["source_file"] for row in project.rows("trigger_events")} == {"packed.jsonl.gz"}
    assert len(project.rows("trigger_events")) == len(before["trigger_events"]) == 500
