"""What a run shows while it runs: a bar that moves inside the long step, and lines where there is no terminal."""

import gzip
import os
import re
import time
from io import StringIO
from pathlib import Path

from rich.console import Console

from health_assets.cli.progress_bar import READING_WEIGHT, RunProgress, progress_bar
from health_assets.core.hours import HOUR
from health_assets.logs import progress as reading
from health_assets.logs.files import list_files
from health_assets.logs.reader import contents
from health_assets.pipeline.events import StepFinished, StepStarted
from health_assets.pipeline.plan import INGEST
from health_assets.warehouse.cluster_work import ClusterProgress
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.projects import Project, hours_from

HOURS = hours_from(START, 3)


def test_bytes_and_files_are_told_while_logs_are_read(project: Project) -> None:
    lines = [line(execution(f"e{n}", "planner", START + n * HOUR / 10_000)) for n in range(60_000)]
    project.write_log("a.jsonl", lines)
    project.write_log("b.jsonl.gz", lines[:10])
    project.write_log("c.jsonl", ["bad"])
    files = list_files(project.raw)
    seen: list[reading.Progress] = []
    with reading.listening(seen.append):
        contents(files)
    assert not reading._listeners
    size = sum(file.size_bytes for file in files)
    assert {one.files for one in seen} == {3}
    assert {one.size_bytes for one in seen} == {size}
    assert seen[-1] == reading.Progress(files=3, files_done=3, size_bytes=size, bytes_done=size)
    assert [one.bytes_done for one in seen] == sorted(one.bytes_done for one in seen)
    assert any(0 < one.share < 0.9 and not one.files_done for one in seen), "it moves inside a file"


def test_a_compressed_log_counts_as_it_lies_there(project: Project) -> None:
    path = project.raw / "a.jsonl.gz"
    path.write_bytes(gzip.compress(line(execution("e", "planner", START)).encode()))
    seen: list[reading.Progress] = []
    with reading.listening(seen.append):
        contents(list_files(project.raw))
    assert seen[-1].bytes_done == path.stat().st_size


def test_the_bar_moves_while_logs_are_read_and_says_what_happens() -> None:
    progress = RunProgress(HOURS, steps=38)
    progress.on_wait()
    assert str(progress) == "3 h · 0 of 38 steps · waiting for the write lock"
    progress = RunProgress(HOURS, steps=38)
    shown = [(progress.completed, str(progress))]

    def look() -> None:
        shown.append((progress.completed, str(progress)))

    progress.on_event(StepStarted(INGEST))
    look()
    progress.on_read(reading.Progress(files=4, files_done=1, size_bytes=4_000_000, bytes_done=1_000_000))
    look()
    progress.on_read(reading.Progress(files=4, files_done=4, size_bytes=4_000_000, bytes_done=4_000_000))
    look()
    progress.on_event(StepFinished(INGEST))
    progress.on_event(StepStarted("agent_health_model"))
    look()
    progress.on_event(StepFinished("agent_health_model"))
    look()
    assert [done for done, _ in shown] == [0, 0, READING_WEIGHT / 4, READING_WEIGHT, READING_WEIGHT, READING_WEIGHT + 1]
    assert [text for _, text in shown] == [
        "3 h · 0 of 38 steps · starting",
        "3 h · 0 of 38 steps · comparing the logs with the tables",
        "3 h · 0 of 38 steps · reading 1 of 4 files, 1.0 MB of 4.0 MB",
        "3 h · 0 of 38 steps · read 4 files, writing the records",
        "3 h · 1 of 38 steps · agent health model",
        "3 h · 2 of 38 steps · agent health model",
    ]
    assert progress.total == 37 + READING_WEIGHT


def test_the_bar_says_how_many_tasks_of_a_statement_a_cluster_has_done() -> None:
    progress = RunProgress(HOURS, steps=38)
    for step, words in ((INGEST, "ingest"), ("agent_health_model", "agent health model")):
        progress.on_event(StepStarted(step))
        alone = progress.doing
        progress.on_tasks(ClusterProgress(tasks=1_400, tasks_done=120))
        assert progress.doing == f"{words}, 120 of 1,400 tasks"
        progress.on_tasks(None)
        assert progress.doing == alone


def test_output_that_is_no_terminal_gets_a_line_now_and_then() -> None:
    output = StringIO()
    with progress_bar(Console(file=output, width=40), HOURS, 38, seconds_between_lines=0.05) as progress:
        progress.on_event(StepStarted("agent_health_model"))
        deadline = time.monotonic() + 20
        while output.getvalue().count("\n") < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
    lines = output.getvalue().splitlines()
    assert len(lines) >= 2
    assert all(re.fullmatch(r"  0:00:\d\d · 3 h · 0 of 38 steps · agent health model", text) for text in lines), lines


def test_output_that_is_no_terminal_says_that_the_run_waits() -> None:
    output = StringIO()
    with progress_bar(Console(file=output, width=40), HOURS, 38, seconds_between_lines=0.05) as progress:
        progress.on_wait()
        deadline = time.monotonic() + 20
        while "waiting" not in output.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
    assert "3 h · 0 of 38 steps · waiting for the write lock" in output.getvalue()


def test_a_short_run_prints_no_progress_where_there_is_no_terminal() -> None:
    output = StringIO()
    with progress_bar(Console(file=output), HOURS, 38) as progress:
        progress.on_event(StepStarted("agent_health_model"))
    assert output.getvalue() == ""


def test_a_terminal_gets_a_bar_that_is_gone_afterwards() -> None:
    output = StringIO()
    console = Console(file=output, width=80, force_terminal=True, color_system=None)
    with progress_bar(console, HOURS, 38) as progress:
        progress.on_event(StepStarted(INGEST))
        for listener in reading._listeners:
            listener(reading.Progress(files=40, files_done=17, size_bytes=4_200_000_000, bytes_done=1_700_000_000))
        time.sleep(0.3)
    assert "0/38 reading 17 of 40 files, 1.7 GB of 4.2 GB" in output.getvalue()


def test_the_bar_moves_while_the_process_prints_into_a_file(tmp_path: Path) -> None:
    """As it does during the steps of a run, whose output Dagster keeps."""
    master, slave = os.openpty()
    with (
        os.fdopen(slave, "w", encoding="utf-8") as terminal,
        (tmp_path / "kept").open("w", encoding="utf-8") as kept,
        progress_bar(Console(file=terminal, width=80, color_system=None), HOURS, 38) as progress,
    ):
        os.dup2(kept.fileno(), terminal.fileno())
        progress.on_event(StepStarted("agent_health_model"))
        time.sleep(0.5)
        shown = os.read(master, 1 << 16).decode()
    os.close(master)
    assert "0/38 agent health model" in shown
    assert (tmp_path / "kept").read_text(encoding="utf-8") == ""
