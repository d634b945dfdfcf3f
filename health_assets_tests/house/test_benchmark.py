"""The benchmark runs: on data so small that its ratios say nothing, but of which it compares all results as ever."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from health_assets_tests.support.projects import REPOSITORY

EXACT = [
    ["bench", "--only", "reliability", "--scale", "0.01", "--repeats", "1"],
    ["bench.session_loops", "--traces", "2000", "--sessions", "100"],
]
WHOLE = [
    ["bench", "--only", "headline,cores,window,otlp,postgres", "--scale", "0.001", "--repeats", "1"],
    ["bench", "--only", "backfill,scaling", "--scale", "0.001", "--repeats", "1", "--quick"],
    ["bench.small", "--repeats", "1"],
    ["bench.scale", "--only", "hour,backfill", "--agents", "60", "--hours", "2"],
]
"""Benchmarks that time the product alone, or take minutes on any data."""


@pytest.mark.parametrize(
    "arguments", [*EXACT, *(pytest.param(one, marks=pytest.mark.nightly) for one in WHOLE)], ids=" ".join
)
def test_a_benchmark_ends_and_finds_results_that_agree(arguments: list[str], tmp_path: Path) -> None:
    environment = {**os.environ, "BENCH_DATA": str(tmp_path)}
    command = [sys.executable, "-m", *arguments]
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
