"""The benchmark runs: on data so small that its ratios say nothing, but of which it compares all results as ever."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.coding_sessions import write_sessions
from health_assets_tests.support.coding_sessions_made import CLAUDE_SESSION, CLAUDE_TURN, as_lines
from health_assets_tests.support.projects import REPOSITORY

EXACT = [["bench", "--only", "reliability", "--scale", "0.01", "--repeats", "1"], ["bench.verdicts", "--small"]]
WHOLE = [
    ["bench.session_loops", "--traces", "2000", "--sessions", "100"],
    ["bench", "--only", "headline,cores,window,otlp,postgres", "--scale", "0.001", "--repeats", "1"],
    ["bench", "--only", "backfill,scaling", "--scale", "0.001", "--repeats", "1", "--quick"],
    ["bench.small", "--repeats", "1"],
    ["bench.scale", "--only", "hour,backfill", "--agents", "60", "--hours", "2"],
    ["bench.latency", "--every", "5", "--trials", "2", "--within", "5"],
]
"""Benchmarks that take longer, or time the product alone."""


@pytest.mark.parametrize(
    "arguments", [*EXACT, *(pytest.param(one, marks=pytest.mark.nightly) for one in WHOLE)], ids=" ".join
)
def test_a_benchmark_ends_and_finds_results_that_agree(arguments: list[str], tmp_path: Path) -> None:
    run_benchmark(arguments, tmp_path)


def test_reading_sessions_is_measured_against_a_typed_read_of_the_same_file(tmp_path: Path) -> None:
    (tmp_path / "session.jsonl").write_bytes(as_lines(CLAUDE_SESSION))
    told = run_benchmark(["bench.coding_sessions", str(tmp_path), "--mb", "1", "--repeats", "1"], tmp_path)
    assert "read_json into a table" in told


def test_a_copy_of_a_session_has_ids_of_its_own(tmp_path: Path) -> None:
    session = as_lines(CLAUDE_TURN)
    assert write_sessions(tmp_path / "two.jsonl", [session], len(session) + 1) == 2 * len(session)
    first, second = (tmp_path / "two.jsonl").read_bytes().splitlines()[:: len(CLAUDE_TURN)]
    assert json.loads(first)["message"] == json.loads(second)["message"]
    assert {name for name in json.loads(first) if json.loads(first)[name] != json.loads(second)[name]} == {
        "promptId", "sessionId",
    }  # fmt: skip


def run_benchmark(arguments: list[str], data: Path) -> str:
    environment = {**os.environ, "BENCH_DATA": str(data)}
    command = [sys.executable, "-m", *arguments]
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
