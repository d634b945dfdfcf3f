"""The command `materialize`: what it prints, how it ends, and where it finds things."""

import errno
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from io import StringIO
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from rich.console import Console
from typer.testing import CliRunner

from health_assets import __version__
from health_assets.cli.commands import app
from health_assets.cli.console import say
from health_assets.cli.failed_checks import FailedCheck
from health_assets.cli.outcomes import Outcome
from health_assets.cli.run_summary import print_outcome
from health_assets.core.errors import HealthAssetsError, is_want_of_memory
from health_assets.core.hours import HOUR, HourRange
from health_assets.pipeline.log_ingestion import load_new_logs
from health_assets.pipeline.partition_selection import select_hours
from health_assets.warehouse.fingerprints import INGEST_CHECKS
from health_assets_tests.support.commands_here import command_here
from health_assets_tests.support.logs_made import START, execution, line, trigger
from health_assets_tests.support.projects import (
    FLEET,
    SURVEY_TABLES,
    Project,
    command,
    command_environment,
    command_line,
    forked_command,
    hours_from,
    lasting_folder,
    materialize_arguments,
    run_steps,
)

HOURS = hours_from(START, 3)


def make_project(folder: Path) -> Project:
    """Agents that are healthy, unhealthy, quiet and never seen, and a few bad lines."""
    targets = {
        "agents": {"Claude 3.5 Sonnet (New)": {}, "slow": {"expected_runtime_s": 1, "n_full": 1}, "never seen": {}}
    }
    project = Project(folder, targets)
    records = [execution(f"good {n}", "Claude 3.5 Sonnet (New)", START + n * HOUR / 10) for n in range(30)]
    records += [execution(f"slow {n}", "slow", START + HOUR, 60, status="failure", sla_s=1) for n in range(30)]
    records += [trigger(f"t{n}", "slow", START, "failed") for n in range(9)]
    lines = [line(record) for record in records]
    project.write_log("good.jsonl", lines[:20])
    project.write_log("deep/more.jsonl.gz", [*lines[20:], "not JSON", "not JSON either", '{"type": "execution"}'])
    return project


Run = tuple[Project, subprocess.CompletedProcess[str]]


def _plain(folder: Path) -> Run:
    """Flags say where things are; the environment says something else and is not heeded."""
    project = make_project(folder)
    wrong = {"HEALTH_RAW": "/nowhere", "HEALTH_TARGETS": "/nowhere.yaml", "HEALTH_WAREHOUSE": "/proc/nowhere.duckdb"}
    start = time.monotonic()
    done = command(*materialize_arguments(project, HOURS), folder=folder, environment=wrong)
    (folder / "waited_s").write_text(str(time.monotonic() - start))
    return project, done


@cache
def made_once() -> Project:
    """A project whose hours are materialized; change only copies."""
    project = make_project(lasting_folder() / "project")
    project.materialize(HOURS, only=FLEET)
    return project


def _again(folder: Path) -> Run:
    project = made_once().copied(folder)
    return project, command_here(*materialize_arguments(project, HOURS, SYSTEM), folder=folder)


SYSTEM = "agent_health_model"
"""The assets that are materialized where one system stands for all; `_plain` takes all of them."""


def _environment(folder: Path) -> Run:
    """Settings by environment, the warehouse at its default place, in a folder that has nothing else."""
    project = make_project(folder)
    environment = {
        "HEALTH_RAW": str(project.raw),
        "HEALTH_TARGETS": str(project.targets_path),
        "HEALTH_WINDOW_HOURS": "2",
    }
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    project.warehouse_path = elsewhere / "data" / "health.duckdb"
    done = command_here(
        "materialize",
        "--from",
        "2026-06-07T00",
        "--to",
        "2026-06-07T03",
        "--system",
        SYSTEM,
        environment=environment,
        folder=elsewhere,
    )
    return project, done


def _red_check(folder: Path) -> Run:
    """A row that somebody spoiled by hand fails a check that blocks."""
    project = made_once().copied(folder)
    project.change("UPDATE executions SET confidence = 7 WHERE execution_id = 'good 3'")
    return project, forked_command(*materialize_arguments(project, HOURS, SYSTEM), folder=folder)


def _no_logs(folder: Path) -> Run:
    project = Project(folder)
    return project, command_here(*materialize_arguments(project, HOURS, SYSTEM), folder=folder)


def _late_log(folder: Path) -> Run:
    """Hours are there already when a log of the first of them arrives, and that hour alone is asked for."""
    project = made_once().copied(folder)
    project.write_log("late.jsonl", [line(execution("late", "slow", START))])
    return project, command_here(*materialize_arguments(project, HourRange.of(START), SYSTEM), folder=folder)


def _one_system(folder: Path) -> Run:
    project = make_project(folder)
    return project, command_here(*materialize_arguments(project, HOURS, "model_health"), folder=folder)


# as a user does it for a run that succeeds (`_plain`), in a process of its own for one that fails; the others are here
RUNS: dict[str, Callable[[Path], Run]] = {
    run.__name__: run for run in (_plain, _again, _environment, _red_check, _no_logs, _late_log, _one_system)
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    folder = tmp_path_factory.mktemp("runs")
    return {name: run(folder / name) for name, run in RUNS.items()}


def test_a_run_says_what_it_read_kept_rejected_and_scored_and_how_long_it_took(runs: dict[str, Run]) -> None:
    project, done = runs["_plain"]
    assert done.returncode == 0, done.stderr
    said = re.search(r"2026-06-07T00 to 2026-06-07T03 \(3 h\) materialized in (\d+\.\d) s", done.stdout)
    waited_s = float((project.folder / "waited_s").read_text())
    assert said and 0.6 * waited_s < float(said[1]) <= waited_s + 0.1  # the rest is the end of the process
    assert "read 72 lines of 2 files, kept 69, rejected 3" in done.stdout
    assert "60 executions" in done.stdout
    assert "9 scores of 3 agents" in done.stdout
    assert project.query("SELECT count(*) FROM executions") == [(60,)]


def test_a_run_names_the_reasons_of_rejection_with_a_place(runs: dict[str, Run]) -> None:
    _, done = runs["_plain"]
    assert re.search(r"2 × .*JSON.*deep/more\.jsonl\.gz:50", done.stdout)
    assert re.search(r"1 × execution_id is missing.*deep/more\.jsonl\.gz:52", done.stdout)


def test_a_run_shows_the_fleet_and_the_worst_agents_first(runs: dict[str, Run]) -> None:
    project, done = runs["_plain"]
    (fleet,) = [row for row in project.rows("system_health") if row["hour"] == HOURS.end - HOUR]
    assert f"Fleet at 2026-06-07 02:00 UTC: {fleet['health_score']:.1f}" in done.stdout
    assert "3 agents" in done.stdout
    fleet_block = done.stdout.partition("Fleet at")[2].partition("Health documents at")[0]
    rows = [text for text in fleet_block.splitlines() if re.match(r"(slow|Claude|never)", text)]
    assert [text.split()[0] for text in rows] == ["slow", "Claude", "never"]
    scores = {
        row["agent_id"]: row["health_score"] for row in project.rows("agent_health") if row["hour"] == HOURS.end - HOUR
    }
    assert f"{scores['slow']:.1f}" in rows[0]
    assert "unhealthy" in rows[0]
    assert "healthy" in rows[1]
    assert "inactive" in rows[2]


def test_nothing_but_text_is_printed_where_there_is_no_terminal(runs: dict[str, Run]) -> None:
    for _, done in runs.values():
        assert "\x1b" not in done.stdout + done.stderr
        assert "Traceback" not in done.stdout + done.stderr
        assert "DEBUG" not in done.stdout + done.stderr


def test_a_good_run_complains_about_nothing(runs: dict[str, Run]) -> None:
    for name, (_, done) in runs.items():
        if name != "_red_check":
            assert done.returncode == 0, f"{name}: {done.stderr}"
            assert done.stderr == "", name


def test_a_second_run_reads_nothing_again(runs: dict[str, Run]) -> None:
    _, done = runs["_again"]
    assert "read 0 lines of 0 files" in done.stdout
    assert "60 executions" in done.stdout


def test_the_names_of_agents_are_not_broken_over_lines(runs: dict[str, Run]) -> None:
    _, done = runs["_plain"]
    assert "Claude 3.5 Sonnet (New)" in done.stdout
    assert re.search(r"^slow +FAILING +unhealthy +\d+\.\d", done.stdout, re.MULTILINE)


def test_settings_come_from_the_environment_and_the_warehouse_has_a_place_of_its_own(runs: dict[str, Run]) -> None:
    project, done = runs["_environment"]
    assert done.returncode == 0, done.stderr
    windows = project.query("SELECT DISTINCT window_end - window_start FROM agent_health")
    assert [row[0] for row in windows] == [2 * HOUR]
    elsewhere = project.folder / "elsewhere"
    assert sorted(path.relative_to(elsewhere).as_posix() for path in elsewhere.rglob("*")) == [
        "data",
        "data/health.duckdb",
    ]


def test_a_check_that_blocks_ends_the_run_with_its_name_and_an_exit_code(runs: dict[str, Run]) -> None:
    project, done = runs["_red_check"]
    assert done.returncode != 0
    assert len(done.stderr.strip().splitlines()) == 1
    assert "executions.shares_are_between_0_and_1" in done.stderr
    assert "1 row" in done.stderr
    failed = project.query(
        "SELECT asset, expectation, hour, unexpected_count FROM expectation_results WHERE NOT success AND severity = 'error'"
    )
    assert failed == [("executions", "shares_are_between_0_and_1", START, 1)]


def test_every_check_of_every_hour_is_kept_by_a_run(runs: dict[str, Run]) -> None:
    from health_assets.systems.suites import SUITES

    project, _ = runs["_plain"]
    kept = set(project.query("SELECT asset, expectation, hour FROM expectation_results"))
    checks = {
        (asset, check.name) for asset, suite in SUITES.items() if asset not in SURVEY_TABLES for check in suite.checks
    }
    checks |= {("raw_logs", name) for name in INGEST_CHECKS}
    assert kept == {(*check, hour) for check in checks for hour in HOURS}


def test_without_any_log_there_is_an_empty_fleet(runs: dict[str, Run]) -> None:
    project, done = runs["_no_logs"]
    assert done.returncode == 0, done.stderr
    assert "no active agent" in done.stdout
    assert "no raw log lies below the raw root; names that count end in .jsonl" in " ".join(done.stdout.split())
    assert [row["agents"] for row in project.rows("system_health")] == [0, 0, 0]


def test_a_run_that_leaves_other_hours_behind_says_which(runs: dict[str, Run]) -> None:
    for name, (_, done) in runs.items():
        assert ("look back on what has changed" in done.stdout) == (name == "_late_log"), name
    _, done = runs["_late_log"]
    assert "2 other hours look back" in done.stdout
    assert "materialize 2026-06-07T01 to 2026-06-07T03 (2 h) too" in " ".join(done.stdout.split())


def test_a_run_of_one_system_reads_every_log_and_leaves_the_other_systems_alone(runs: dict[str, Run]) -> None:
    from health_assets.systems.declared_assets import DERIVED, SYSTEMS

    project, done = runs["_one_system"]
    assert done.returncode == 0, done.stderr
    assert "read 72 lines of 2 files, kept 69, rejected 3" in done.stdout
    materialized = {asset for (asset,) in project.query("SELECT DISTINCT asset FROM partition_states")}
    assert materialized & set(DERIVED) == {asset.name for asset in SYSTEMS["model_health"]}
    assert "executions" in materialized


# -- without a run -----------------------------------------------------------------------------------------------------


def printed(project: Project, hours: HourRange) -> str:
    """What a run that has read these hours' logs would print of them."""
    read = project.materialize(hours, only=["ingest"])["raw_logs"]
    counts = {
        name: int(read[name]) for name in ("files_seen", "files_read", "lines_read", "spans_read", "lines_rejected")
    }
    output = StringIO()
    with project.warehouse.read() as session:
        print_outcome(
            Console(file=output, width=200), Outcome(hours=hours, **counts, failed_checks=[], error=None), session, 1.0
        )
    return output.getvalue()


def test_whoever_asks_for_other_hours_than_those_of_the_logs_is_told_the_right_ones(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write_log("a.jsonl", [line(execution(f"e{n}", "planner", START + n * HOUR)) for n in range(3)])
    held = "no execution ended in these hours; the logs hold events of 2026-06-07T00 to 2026-06-07T03 (3 h)"
    assert held in printed(project, HourRange.of(START + 100 * HOUR))
    assert held not in printed(project, HOURS)


def test_of_lines_that_were_rejected_for_one_reason_the_first_of_the_first_file_is_named(tmp_path: Path) -> None:
    project = Project(tmp_path)
    for name in ("b.jsonl", "a.jsonl"):
        good = line(execution(f"of {name}", "planner", START))
        project.write_log(name, [*[good] * 8, *["no JSON"] * 3])
    assert "6 × not valid JSON  (first in a.jsonl:9)" in printed(project, HourRange.of(START))


def test_a_reason_shows_the_value_of_its_first_line_without_secrets(tmp_path: Path) -> None:
    project = Project(tmp_path)
    good = execution("e", "planner", START)
    secret = "password=hunter2hunter2"
    bad = [good | {"status": "ok"}, good | {"status": "done"}, good | {"confidence": secret}]
    project.write_log("a.jsonl", [line(record) for record in [*[good] * 8, *bad]])
    text = printed(project, HourRange.of(START))
    assert '2 × status must be success or failure, not "ok"  (first in a.jsonl:9)' in text
    assert "1 × confidence must be a number from 0 to 1, not " in text
    assert "hunter2" not in text


def test_a_run_that_rejects_nothing_says_that_the_rejected_lines_of_its_hours_are_of_earlier_runs(
    tmp_path: Path,
) -> None:
    project = Project(tmp_path)
    project.write_log("a.jsonl", [line(execution("e", "planner", START)), "no JSON"])
    first, again = (printed(project, HourRange.of(START)).splitlines() for _ in range(2))
    held = "  these hours hold 1 execution, 0 scores of 0 agents, 1 rejected line"
    reason = "         1 × not valid JSON  (first in a.jsonl:2)"
    assert first[1].endswith("rejected 1") and first[2:4] == [f"{held}:", reason]
    assert again[1].endswith("rejected 0") and again[2:4] == [f"{held}, all of earlier runs:", reason]


def test_a_failed_check_is_told_with_its_severity_its_rows_and_their_hours() -> None:
    hours = [START + number * HOUR for number in range(4)]
    assert (
        str(FailedCheck(asset="a", name="b", severity="WARN", unexpected=1, hours=hours[:1], hour_count=1))
        == "a.b failed (warning): 1 row of 1 hour, 2026-06-07T00"
    )
    rejected = FailedCheck(
        asset="rejected_records",
        name="few_lines_are_rejected",
        severity="WARN",
        unexpected=1,
        hours=hours[:1],
        hour_count=1,
    )
    assert str(rejected) == (
        "rejected_records.few_lines_are_rejected failed (warning): "
        "more than 5% of the lines are rejected in 1 hour, 2026-06-07T00"
    )
    assert str(FailedCheck(asset="a", name="b", severity="ERROR", unexpected=1234, hours=hours, hour_count=30)) == (
        "a.b failed (error): 1,234 rows of 30 hours, 2026-06-07T00, 2026-06-07T01, 2026-06-07T02, …"
    )


def test_whoever_names_a_folder_without_raw_logs_is_told_which_names_count(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write_log("traces.json.zst", ["Collectors can write this too"])
    with pytest.raises(HealthAssetsError, match=r"^no raw log lies below .*; names that count end in \.jsonl, "):
        select_hours(project.pipeline, None, None)
    project.write_log("traces.json", ["bad"], modified=START)
    with pytest.raises(HealthAssetsError, match=r"traces\.json looks like plain text; write one JSON object a line"):
        select_hours(project.pipeline, None, None)


def test_lines_that_were_rejected_in_other_hours_are_counted_and_their_hour_is_named(tmp_path: Path) -> None:
    """Such as those of a file without any good line, which stand in the hour of its modification."""
    project = Project(tmp_path)
    project.write_log("good.jsonl", [line(execution("e", "planner", START))])
    project.write_log("package.json", ["{", "}"], modified=START + 5 * HOUR)
    told = (
        "1 × rejected in hours that are not materialized, of 1 file (package.json): see why by --from 2026-06-07T05 "
        "--to 2026-06-07T06"
    )
    assert told in printed(project, HOURS)
    there = printed(project, HourRange.of(START + 5 * HOUR))
    assert told not in there
    assert "no reader knows what this file holds" in there
    assert told not in printed(project, HOURS)


def invoke(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, result.output


def test_the_version_is_shown() -> None:
    code, output = invoke("--version")
    assert (code, output.strip()) == (0, f"health-assets {__version__}")


def test_help_names_every_command_and_option() -> None:
    code, output = invoke("--help")
    assert code == 0
    for name in ("materialize", "demo", "dev"):
        assert name in output
    code, output = invoke("materialize", "--help")
    assert code == 0
    for name in ("--from", "--to", "--raw", "--targets", "--warehouse", "--system"):
        assert name in output


def test_a_system_that_there_is_not_is_named_with_those_that_there_are(tmp_path: Path) -> None:
    project = Project(tmp_path)
    code, output = invoke(*materialize_arguments(project, HOURS), "--system", "astrology")
    assert code == 1
    assert "there is no system 'astrology'; choose from agent_health_model," in " ".join(output.split())
    assert not project.warehouse_path.exists()


@pytest.mark.parametrize(
    "arguments", [["materialize", "--from"], ["materialize", "--nonsense"], ["materializes"], ["--nonsense"]]
)
def test_a_wrong_command_line_is_an_error_of_usage(arguments: list[str]) -> None:
    code, output = invoke(*arguments)
    assert code == 2
    assert "Traceback" not in output


def test_every_command_says_what_it_does() -> None:
    for registered in app.registered_commands:
        assert registered.callback.__doc__, registered.callback.__name__


# -- nothing but rejected lines ----------------------------------------------------------------------------------------


def test_a_run_whose_lines_were_all_rejected_names_the_most_frequent_reason_and_ends_with_an_exit_code(
    tmp_path: Path,
) -> None:
    project = Project(tmp_path)
    future = '{"type": "trigger", "trigger_id": "t", "agent_id": "a", "fired_at": "soon", "status": "fired"}'
    project.write_log("b.jsonl", ["{", future, "not JSON", "neither"], modified=START)
    project.write_log("a.jsonl", ["", future, "no"], modified=START + 50 * HOUR)
    done = forked_command(*materialize_arguments(project, HOURS, "tool_health"), folder=tmp_path)
    assert done.returncode == 1
    assert done.stderr == (
        "health-assets: every line that was read was rejected, most of them because: "
        "not valid JSON (4 lines, first in a.jsonl:3)\n"
    )
    assert "read 6 lines of 2 files, kept 0, rejected 6" in done.stdout
    assert "all_rejected" not in project.materialize(HOURS, only=["ingest"])["raw_logs"], "nothing was read"
    project.write_log("c.jsonl", ["bad", line(execution("e", "planner", START))])
    assert "all_rejected" not in project.materialize(HOURS, only=["ingest"])["raw_logs"], "a good line is among them"


def test_a_bad_line_that_comes_during_a_run_does_not_hide_the_good_lines_loaded_just_before(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write_log("a.jsonl", ["bad"])
    loaded = load_new_logs(project.pipeline)
    nothing_new = run_steps(replace(project.pipeline, loaded=loaded), HOURS, only=["ingest"])["raw_logs"]
    assert nothing_new["all_rejected"] == "not valid JSON (1 line, first in a.jsonl:1)"
    project.write_log("b.jsonl", ["worse", "type"])
    both = run_steps(replace(project.pipeline, loaded=loaded), HOURS, only=["ingest"])["raw_logs"]
    assert both["all_rejected"] == "not valid JSON (3 lines, first in a.jsonl:1)"
    project.write_log("c.jsonl", [line(execution("e", "planner", START))])
    loaded = load_new_logs(project.pipeline)
    project.write_log("d.jsonl", ["half a li"])
    read = run_steps(replace(project.pipeline, loaded=loaded), HOURS, only=["ingest"])["raw_logs"]
    assert (read["lines_read"], read["lines_rejected"]) == (2, 1)
    assert "all_rejected" not in read


def test_a_name_between_colons_is_no_emoji(capsys: pytest.CaptureFixture[str]) -> None:
    say("there is no agent :bug:")
    assert capsys.readouterr().err == "health-assets: there is no agent :bug:\n"


def test_want_of_memory_is_one_sentence(tmp_path: Path) -> None:
    """The database's library alone does not fit into so little; each library says so in words of its own."""
    limited = ["sh", "-c", 'ulimit -v 200000; exec "$@"', "sh"]
    arguments = command_line("report", "--warehouse", str(tmp_path / "health.duckdb"))
    done = subprocess.run(
        [*limited, *arguments], env=command_environment(), capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "health-assets: there is not enough memory for this; allow the process more, or ask for fewer hours at a time\n"
    )


@pytest.mark.parametrize(
    ("error", "is_memory"),
    [
        (MemoryError(), True),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), True),
        (OSError(errno.ENOENT, "No such file"), False),
        (RuntimeError("can't start new thread"), True),
        (ImportError("lib.so: failed to map segment from shared object"), True),
        (ImportError("no module"), False),
        (duckdb.OutOfMemoryException("could not allocate block: out of memory"), True),
        (duckdb.ParserException("syntax error near 'out of memory'"), False),
        (pa.ArrowMemoryError("malloc of size 64 failed"), True),
    ],
)
def test_want_of_memory_is_known_in_the_words_of_every_library(error: Exception, is_memory: bool) -> None:
    assert is_want_of_memory(error) is is_memory
    outer = ValueError("it failed")
    outer.__cause__ = error
    assert is_want_of_memory(outer) is is_memory


def test_a_ctrl_c_while_the_command_still_imports_leaves_no_stack_trace(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", f"import sys, signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
         f"sys.path.insert(0, {str(tmp_path)!r}); from health_assets.__main__ import main; main()"],
        capture_output=True, text=True, check=False, timeout=120, env=command_environment(),
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
