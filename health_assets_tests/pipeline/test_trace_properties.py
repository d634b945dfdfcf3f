"""Traces in the hands of chance: spread, doubled, late, dropped and asked for again; the end is always the same."""

import os
import shutil
import tempfile
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from health_assets.core.hours import HOUR, HourRange
from health_assets.pipeline import trace_hours
from health_assets.pipeline.retention import prune
from health_assets.systems.pruning import PRUNED_COMPONENTS
from health_assets_tests.support import reference_traces
from health_assets_tests.support.examples import tried_with
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.projects import (
    Project,
    Row,
    assert_lines_are_conserved,
    assert_same_tables,
    hours_from,
)
from health_assets_tests.support.traces_made import in_lines, random_spans, span_id, trace_id

HOURS = 8
LOOKBACK_HOURS = 3
ALL_HOURS = hours_from(START - 2 * HOUR, HOURS + 4)
NAMES = st.sampled_from(["a.jsonl", "b.jsonl.gz", "deep/c.jsonl"])
RANGES = st.builds(
    lambda first, count: hours_from(START + first * HOUR, count), st.integers(-1, HOURS), st.integers(1, 4)
)


def native_lines(random: Random) -> list[str]:
    """Executions, some with the id of one that follows from a span."""
    ids = [f"{trace_id(random.randrange(1, 9))}:{span_id(random.randrange(1, 4))}", f"e{random.randrange(3)}"]
    at = START + random.randrange(HOURS) * HOUR + random.choice([0, 0.5, 0.9999]) * HOUR
    return [line(execution(random.choice(ids), "native", at))] + ["bad"] * (random.random() < 0.2)


class Traces(RuleBasedStateMachine):
    """Spans of the same few traces come in files that are written, grow and change, while hours are materialized."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="traces-"))
        targets = {"defaults": {"expected_runtime_s": 60}, "agents": {"planner": {"sla_s": 40}}}
        self.project = Project(self.folder / "project", targets, window_hours=1, lookback_hours=LOOKBACK_HOURS)
        self.contents: dict[str, list[str]] = {}
        self.writes = 0

    def write(self, name: str, lines: list[str]) -> None:
        self.writes += 1
        self.contents[name] = lines
        path = self.project.write_log(name, lines)
        modified = int((START + self.writes % HOURS * HOUR).timestamp()) * 10**9 + self.writes
        os.utime(path, ns=(modified, modified))

    @rule(name=NAMES, seed=st.integers(0, 5), chance=st.integers(0, 10**6))
    def some_spans_come(self, name: str, seed: int, chance: int) -> None:
        """Of a small world of traces, so that parts of one trace come at different times and in different files."""
        random = Random(chance)
        spans = random_spans(Random(seed), traces=4, hours=HOURS)
        some = [one for one in spans if random.random() < 0.5]
        lines = in_lines(random, some) + (native_lines(random) if random.random() < 0.5 else [])
        random.shuffle(lines)
        self.write(name, lines + (self.contents.get(name, []) if random.random() < 0.5 else []))

    @precondition(lambda self: self.contents)
    @rule(data=st.data(), name=NAMES)
    def a_file_comes_twice(self, data: st.DataObject, name: str) -> None:
        self.write(name, self.contents[data.draw(st.sampled_from(sorted(self.contents)))])

    @precondition(lambda self: self.contents)
    @rule(data=st.data())
    def a_file_loses_or_swaps_lines(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.contents)))
        lines = data.draw(st.permutations(self.contents[name]))
        self.write(name, lines[: data.draw(st.integers(0, len(lines)))])

    @rule(hours=RANGES)
    def hours_are_ingested(self, hours: HourRange) -> None:
        self.project.ingest(hours)
        assert_records_equal_the_reference(self.project, hours)

    @precondition(lambda self: self.contents)
    @rule()
    def all_hours_are_ingested_and_right(self) -> None:
        self.project.ingest(ALL_HOURS)
        assert_equal_to_the_reference(self.project)

    @rule(kept=st.integers(1, HOURS))
    def old_hours_are_dropped(self, kept: int) -> None:
        if self.project.warehouse_path.exists():
            prune(self.project.warehouse, PRUNED_COMPONENTS, START + (HOURS - kept) * HOUR, LOOKBACK_HOURS)
            assert_lines_are_conserved(self.project)

    @rule(hours=RANGES, table=st.sampled_from(["executions", "model_calls", "tool_calls", "spans"]))
    def somebody_deletes_rows_by_hand(self, hours: HourRange, table: str) -> None:
        if self.project.warehouse_path.exists():
            self.project.change(f"DELETE FROM {table} WHERE hour >= ? AND hour < ?", [hours.start, hours.end])

    def teardown(self) -> None:
        try:
            self.project.materialize(ALL_HOURS, only=["ingest", "health_components"])
            assert_equal_to_the_reference(self.project)
            clean = self.project.clean_rebuild(ALL_HOURS, only=["ingest", "health_components"])
            names = ["executions", "model_calls", "tool_calls", "spans", "rejected_records", "health_components"]
            assert_same_tables(self.project.tables(names=names), clean.tables(names=names))
        finally:
            shutil.rmtree(self.folder)


def assert_equal_to_the_reference(project: Project, hours: HourRange = ALL_HOURS) -> None:
    """What the tables have of spans is what plain Python makes of the files, but for ids that native lines have too."""
    spans = reference_traces.spans_below(project.raw)
    assert_lines_are_conserved(project)
    found = {(row["source_file"], row["line_number"], row["position"]) for row in project.rows("spans")}
    assert found == {(one["file"], one["line"], one["position"]) for one in spans}
    assert_records_equal_the_reference(project, hours)


def assert_records_equal_the_reference(project: Project, hours: HourRange) -> None:
    """What follows from spans in these hours, however much of them the warehouse has."""
    spans = reference_traces.spans_below(project.raw)
    expected = reference_traces.records(spans, hours, project.lookback_hours)
    tables = {"executions": "execution_id", "model_calls": "call_id", "tool_calls": "call_id"}
    for (table, key), rows in zip(tables.items(), expected, strict=True):
        stored = project.rows(table, hours)
        best: dict[tuple, Row] = {}
        for row in sorted([*rows, *(row for row in stored if row["span_id"] is None)], key=place):
            best[row["hour"], row[key], row["agent_id"], row["agent_id"] or row.get("execution_id")] = row
        winners = [row for row in best.values() if row["span_id"] is not None]
        assert_same_rows([row for row in stored if row["span_id"] is not None], winners)


def place(row: Row) -> tuple[datetime, str, int]:
    return row["ended_at"], row["source_file"], row["line_number"]


def assert_same_rows(found: list[Row], expected: list[Row]) -> None:
    columns = list(expected[0]) if expected else []

    def comparable(rows: list[Row]) -> list[list[Any]]:
        return sorted([[row[name] for name in columns] for row in rows], key=repr)

    assert len(found) == len(expected)
    assert comparable(found) == comparable(expected)


def test_any_history_of_spans_ends_like_a_clean_rebuild_and_like_the_reference() -> None:
    run_state_machine_as_test(Traces, settings=settings(tried_with(2, 60), stateful_step_count=9))


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.nightly)])
def test_after_every_delivery_the_tables_are_those_of_the_reference(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    project = Project(tmp_path / "project", None, 1, LOOKBACK_HOURS)
    spans = random_spans(random, traces=8, hours=HOURS)
    for turn in range(5):
        some = random.sample(spans, 3 if turn else len(spans) // 2)  # few, which touch hours besides their own
        name = f"{turn}.jsonl" if turn < 3 else f"{random.randrange(3)}.jsonl"  # new files, then others in their place
        project.write_log(name, in_lines(random, some) + native_lines(random), modified=START + turn * HOUR)
        project.ingest(ALL_HOURS)
        assert_equal_to_the_reference(project)


@pytest.mark.parametrize("rows_at_once", [1, trace_hours.ROWS_AT_ONCE])
def test_traces_far_from_each_other_are_those_of_the_reference_however_many_rows_wait_for_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_at_once: int
) -> None:
    monkeypatch.setattr(trace_hours, "ROWS_AT_ONCE", rows_at_once)
    targets = {"agents": {"planner": {"sla_s": 40}}}
    project = Project(tmp_path / "project", targets, 1, LOOKBACK_HOURS)
    project.write_log("a.jsonl", in_lines(Random(5), random_spans(Random(5), traces=12, hours=12 * HOURS)))
    hours = hours_from(START - 2 * HOUR, 12 * HOURS + 4)
    project.ingest(hours)
    assert_equal_to_the_reference(project, hours)


@pytest.mark.parametrize("engine", ["postgres", pytest.param("duckdb", marks=pytest.mark.nightly)])
def test_spans_that_come_late_and_twice_end_like_the_reference_on_both_engines(tmp_path: Path, engine: str) -> None:
    random = Random(17)
    targets = {"agents": {"planner": {"sla_s": 40}}}
    project = Project(tmp_path / "project", targets, 1, LOOKBACK_HOURS, engine=engine)
    spans = random_spans(random, traces=8, hours=HOURS)
    for turn in range(6):
        name = random.choice(["a.jsonl", "b.jsonl.gz", "deep/c.jsonl"])
        lines = in_lines(random, [one for one in spans if random.random() < 0.4]) + native_lines(random)
        project.write_log(name, lines, modified=START + turn * HOUR)
        project.ingest(hours_from(START + random.randrange(HOURS) * HOUR, 3))
        if turn == 3:
            project.change("DELETE FROM spans WHERE hour = ?", [START + 2 * HOUR])
            project.change("DELETE FROM executions WHERE hour < ?", [START + 3 * HOUR])
    project.ingest(ALL_HOURS)
    assert_equal_to_the_reference(project)
