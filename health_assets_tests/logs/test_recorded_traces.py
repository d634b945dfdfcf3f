"""Spans that real instrumentors wrote, and what a person says happened: `recorded_traces/` tells how they were recorded.

A recording's `told.yaml` was written from the program that was run. Each list of it is compared with the table of its
name; a field that it leaves out is not compared, and neither is the order of rows.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from health_assets.core.hours import HourRange, parse_hour
from health_assets_tests.support.projects import Project, Row, assert_lines_are_conserved

RECORDINGS = Path(__file__).parents[1] / "recorded_traces"
RECORDED = sorted(path.relative_to(RECORDINGS).with_suffix("").as_posix() for path in RECORDINGS.glob("*/*.jsonl"))
HOUR_OF_ALL = HourRange.of(parse_hour("2026-06-07T13"))
COLUMN_OF = {"agent": "agent_id", "session": "session_id", "version": "agent_version"}
"""Where a column has another name than the word in `told.yaml`."""
LARGEST_RECORDING_BYTES = 64 * 1024
LARGEST_CORPUS_BYTES = 4 * 1024 * 1024

TABLES = ("executions", "model_calls", "tool_calls")
MAY_BE_TOLD = {"says", "not_told", *TABLES}

Told = dict[str, Any]


@cache
def told_in(folder: Path) -> dict[str, Told]:
    path = folder / "told.yaml"
    return yaml.safe_load(path.read_text(encoding="utf-8")) if path.exists() else {}


def all_told() -> Iterator[tuple[str, Told]]:
    for folder in sorted(path for path in RECORDINGS.iterdir() if (path / "told.yaml").exists()):
        for scenario, told in told_in(folder).items():
            yield f"{folder.name}/{scenario}", told


def as_told(row: Row, told: Row) -> Row:
    """What a row says of the fields that are told; costs up to the rounding of a sum."""
    values = {name: row[COLUMN_OF.get(name, name)] for name in told}
    return {name: round(value, 12) if isinstance(value, float) else value for name, value in values.items()}


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], list[Row]]:
    """The rows of each table and trace, of all recordings at once, which is far cheaper than one by one."""
    project = Project(tmp_path_factory.mktemp("recorded"))
    for recording in RECORDED:
        lines = (RECORDINGS / f"{recording}.jsonl").read_text(encoding="utf-8").splitlines()
        project.write_log(f"{recording}.jsonl", lines)
    project.ingest(HOUR_OF_ALL)
    assert_lines_are_conserved(project)
    tables = project.tables(names=[*TABLES, "rejected_records"])
    assert tables["rejected_records"] == []
    of_trace: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for table in TABLES:
        for row in tables[table]:
            span = row["execution_id"] if table == "executions" else row["call_id"]
            of_trace[table, span.partition(":")[0]].append(row)
    return of_trace


def traces_in(recording: str) -> set[str]:
    text = (RECORDINGS / f"{recording}.jsonl").read_text(encoding="utf-8")
    return set(re.findall(r'"traceId":"([0-9a-f]{32})"', text))


@pytest.mark.parametrize("recording", RECORDED)
def test_a_recorded_trace_becomes_what_a_person_says_happened(
    recording: str, rows: dict[tuple[str, str], list[Row]]
) -> None:
    folder, _, scenario = recording.partition("/")
    told = told_in(RECORDINGS / folder)[scenario]
    for table in TABLES:
        expected = told[table]
        fields = expected[0] if expected else {}
        made = [row for trace in traces_in(recording) for row in rows.get((table, trace), [])]
        found = sorted((as_told(row, fields) for row in made), key=repr)
        assert found == sorted(expected, key=repr), f"{table}: {told['says']}"


def test_every_recording_is_told_and_everything_told_is_recorded() -> None:
    assert sorted(name for name, _ in all_told()) == RECORDED


def test_what_is_told_has_a_sentence_and_all_lists_and_their_entries_tell_the_same_fields() -> None:
    for name, told in all_told():
        assert told["says"].endswith("."), name
        assert set(TABLES) <= told.keys() <= MAY_BE_TOLD, name
        for table in TABLES:
            assert len({frozenset(entry) for entry in told[table]}) <= 1, f"{name}: {table}"


def test_the_recordings_stay_small() -> None:
    sizes = {name: (RECORDINGS / f"{name}.jsonl").stat().st_size for name in RECORDED}
    assert {name: size for name, size in sizes.items() if size > LARGEST_RECORDING_BYTES} == {}
    assert sum(sizes.values()) <= LARGEST_CORPUS_BYTES


# -- kinds of tokens ---------------------------------------------------------------------------------------------------

USED = {
    "input_tokens": 1000, "output_tokens": 300, "cache_read_tokens": 600, "cache_creation_tokens": 200,
    "reasoning_tokens": 100,
}  # fmt: skip
SUM = USED["input_tokens"] + USED["output_tokens"]
COUNTED_AS = [
    (re.compile(r"(cache_?(read|d).*(tokens|Tokens)|cache_read|cacheReadTokens|cachedInputTokens)$"), 600),
    (re.compile(r"(cache_(write|creation).*tokens|cache_write|cacheWriteTokens)$"), 200),
    (re.compile(r"(reasoning.*tokens|[.]reasoning|reasoningTokens)$"), 100),
    (re.compile(r"(input_tokens|prompt_tokens|count[.]prompt|usage[.]inputTokens)$"), 1000),
    (re.compile(r"(output_tokens|completion_tokens|count[.]completion|usage[.]outputTokens)$"), 300),
    (re.compile(r"(total_tokens|count[.]total|totalTokens)$"), SUM),
]
"""What the attributes of an instrumentor count, by the ends of their names."""
INSTRUMENTORS = {
    "agent-framework-otel": {"cache_creation_tokens"},
    "autogen-openinference": {"cache_creation_tokens"},
    "openai-agents-openinference": set(),
    "openai-agents-openllmetry": {"cache_creation_tokens"},
    "pydantic-ai-otel": {"cache_read_tokens", "cache_creation_tokens"},
    "vercel-ai-6-otel": {"cache_creation_tokens"},
}
"""Recordings with counts of reasoning tokens, and what none of their attributes tells."""


def with_other_counts(line: str) -> str:
    """A recorded line whose counts of tokens, of which the fake models make no use of a cache, are those of `USED`."""

    def counted(match: re.Match[str]) -> str:
        used = next((count for pattern, count in COUNTED_AS if pattern.search(match[1])), None)
        return match[0] if used is None else f'"key":"{match[1]}","value":{{"intValue":"{used}"}}'

    return re.sub(r'"key":"([^"]*(?:usage|token_count)[^"]*)","value":\{"intValue":"?\d+"?\}', counted, line)


@pytest.mark.parametrize("folder", INSTRUMENTORS)
def test_cached_and_reasoning_tokens_are_read_as_each_instrumentor_writes_them(folder: str, tmp_path: Path) -> None:
    project = Project(tmp_path)
    recording = next(iter(sorted((RECORDINGS / folder).glob("good*.jsonl"))))
    project.write_log("a.jsonl", map(with_other_counts, recording.read_text(encoding="utf-8").splitlines()))
    project.ingest(HOUR_OF_ALL)
    expected = {**USED, **dict.fromkeys(INSTRUMENTORS[folder])}
    calls = [row for row in project.rows("model_calls") if row["input_tokens"] is not None]
    assert calls
    assert [{name: row[name] for name in USED} for row in calls] == [expected] * len(calls)
