"""Files of evaluation harnesses: what a trial becomes, that none that broke off is a success, and that nothing private is kept."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from health_assets.core.hours import HourRange
from health_assets_tests.support import harnesses_made as made
from health_assets_tests.support.foreign_lines import lines_of
from health_assets_tests.support.projects import Project, assert_lines_are_conserved

ARRIVED = datetime(2026, 6, 7, 13, 50, tzinfo=UTC)


def fingerprint_of(content: str) -> str:
    """What is kept of a text that is private: 32 letters of its digest."""
    return "".join(
        chr(ord("g") + int(digit)) if digit.isdigit() else digit for digit in sha256(content.encode()).hexdigest()[:32]
    )


MAIL_7 = fingerprint_of("mail__mail-7")
UNTIMED = {"started_at": ARRIVED.isoformat(), "ended_at": ARRIVED.isoformat(), "is_timed": False}
Made = dict[str, Any]
EXECUTIONS = [
    ("Atlas Mini", "sort_mail/main", "evaluation", "failure", 45.5, "usageLimits"),
    ("Atlas Mini", "sort_mail/main", "evaluation", "failure", 45.5, None),
    ("Atlas Mini", "sort_mail/main", "evaluation", "success", 45.5, "usageLimits"),
    ("Atlas Mini", "sort_mail/main", "evaluation", "success", 45.5, None),
    ("Clerk:acme/atlas-mini", None, None, "success", 50.0, None),
    ("SWE-agent:atlas-mini", None, None, "success", None, None),
    ("clerk:acme/atlas-mini", "office-bench/sort-mail", "evaluation", "success", 30.0, "AgentTimeoutError"),
    ("clerk:acme/atlas-mini", "office-bench/sort-mail", "evaluation", "success", 30.0, None),
    ("mini-swe-agent:acme/atlas-mini", None, None, "success", 30.0, None),
    ("night_shift_1", "fix-clock", "evaluation", "success", 60.0, "agent_timeout"),
    ("night_shift_1", "fix-clock", "evaluation", "success", 60.0, None),
    ("swe-bench", "mail-1", "evaluation", "success", None, None),
]
"""Of every file: agent, task, its source, outcome, runtime and error; of a trajectory of SWE-agent nobody knows a runtime."""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


def read(project: Project, *contents: Any, name: str = "a.json", folder: str = "nightly") -> tuple[list[Made], Made]:
    """What becomes of files of that name, a folder each, and what was noted; nothing of them may be rejected."""
    for number, content in enumerate(contents):
        text = content if isinstance(content, str) else json.dumps(content)
        project.write_bytes(f"{number:03d}/{folder}/{name}", text.encode(), modified=ARRIVED)
    rows, notes = lines_of(project)
    assert [row["fault"] for row in rows if row["fault"] is not None] == []
    return [json.loads(row["line"]) for row in rows], dict(notes)


def of_type(kind: str, lines: Iterable[Made]) -> list[Made]:
    return [line for line in lines if line["type"] == kind]


def without(line: Made, *names: str) -> Made:
    return {name: value for name, value in line.items() if name not in names}


def outcomes(project: Project, *contents: Any, **of: Any) -> list[tuple[str, str | None]]:
    lines, _ = read(project, *contents, **of)
    return [(run["status"], run.get("error")) for run in of_type("execution", lines)]


# -- Harbor --------------------------------------------------------------------------------------------------------------


def test_a_trial_of_harbor_is_an_execution_of_the_time_of_its_agent_alone(project: Project) -> None:
    assert read(project, made.harbor_trial(1, 1.0), name="result.json") == (
        [
            {
                "type": "execution",
                "execution_id": "00000000-0000-4000-8000-000000000001",
                "agent_id": "clerk:acme/atlas-mini",
                "session_id": "job-1",
                "model": "acme/atlas-mini",
                "task_id": "office-bench/sort-mail",
                "task_source": "evaluation",
                "started_at": "2026-06-07T13:02:00.500000+00:00",
                "ended_at": "2026-06-07T13:02:30.500000+00:00",
                "status": "success",
                "input_tokens": 900, "output_tokens": 50, "cache_read_tokens": 400, "cost_usd": 0.02,
            }
        ],
        {},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("reward", "exception", "outcome"),
    [(1.0, None, ("success", None)), (1, None, ("success", None)), (0.0, None, ("failure", None)),
     (0.99, None, ("failure", None)), (1.0, made.HARBOR_TIMEOUT, ("success", "AgentTimeoutError")),
     (0.0, made.HARBOR_TIMEOUT, ("failure", "AgentTimeoutError")),
     (None, made.HARBOR_TIMEOUT, ("failure", "AgentTimeoutError"))],
)  # fmt: skip
def test_a_reward_of_one_is_a_success_and_a_trial_without_one_that_broke_off_a_failure(
    project: Project, reward: float | None, exception: Made | None, outcome: tuple[str, str | None]
) -> None:
    assert outcomes(project, made.harbor_trial(1, reward, exception_info=exception)) == [outcome]


def test_a_single_reward_counts_whatever_its_name_and_of_several_the_one_called_reward(project: Project) -> None:
    def trial(**rewards: float) -> Made:
        return made.harbor_trial(1, 1.0, verifier_result={"rewards": rewards})

    assert outcomes(project, trial(passed=1), trial(passed=0), trial(reward=0, style=1)) == [
        ("success", None), ("failure", None), ("failure", None),
    ]  # fmt: skip


def test_several_rewards_without_that_name_do_not_tell_the_outcome(project: Project) -> None:
    trial = made.harbor_trial(1, 1.0, verifier_result={"rewards": {"style": 1, "tests": 1}})
    project.write_bytes("result.json", json.dumps(trial).encode())
    [row], _ = lines_of(project)
    assert (row["fault"], row["line"]) == ("status of the execution is missing", "")


def test_what_harbor_does_not_know_is_left_out(project: Project) -> None:
    """Trials of agents that report nothing, of local tasks, and of agents that could not be set up."""
    trial = made.harbor_trial(
        1, None, exception_info=made.HARBOR_TIMEOUT, source=None, agent_execution=None, agent_result=None,
        agent_info={"name": "oracle", "version": "1.0.0", "model_info": None},
    )  # fmt: skip
    [run], _ = read(project, trial)
    assert without(run, "execution_id", "session_id") == {
        "type": "execution", "agent_id": "oracle", "agent_version": "1.0.0", "task_id": "sort-mail",
        "task_source": "evaluation", "started_at": "2026-06-07T13:01:00.500000+00:00", "ended_at": "2026-06-07T13:03:00.500000+00:00",
        "status": "failure", "error": "AgentTimeoutError",
    }  # fmt: skip


def test_tokens_of_a_cache_that_are_no_part_of_the_input_are_left_out(project: Project) -> None:
    usage = {"n_input_tokens": 100, "n_cache_tokens": 5000, "n_output_tokens": 7}
    [run], _ = read(project, made.harbor_trial(1, 1.0, agent_result=usage))
    assert {name: value for name, value in run.items() if "tokens" in name} == {"input_tokens": 100, "output_tokens": 7}


def test_other_files_of_a_job_of_harbor_are_counted(project: Project) -> None:
    unverified, unfinished = made.harbor_trial(1, None), made.harbor_trial(2, 1.0, finished_at=None)
    assert read(project, made.HARBOR_JOB, *made.HARBOR_CONFIGS, unverified, unfinished) == (
        [],
        {
            "Harbor result of a job, whose trials are in files of their own": 1,
            "Harbor configuration": 2,
            "Harbor trial that nobody verified": 1,
            "Harbor trial that has no end": 1,
        },
    )


def test_steps_of_an_atif_trajectory_that_have_a_time_are_model_calls(project: Project) -> None:
    common = {
        "type": "model_call", "model": "acme/atlas-mini", "agent_id": "clerk:acme/atlas-mini",
        "execution_id": "walk-1", "status": "success", "input_tokens": 700, "output_tokens": 20, "cost_usd": 0.01,
    }  # fmt: skip
    assert read(project, made.ATIF, name="trajectory.json") == (
        [
            common | {"call_id": "walk-1:2", "ended_at": "2026-06-07T13:00:02+00:00"},
            common | {"call_id": "walk-1:5", "ended_at": "2026-06-07T13:00:05+00:00"},
        ],
        {},
    )


def test_an_atif_trajectory_without_times_is_counted(project: Project) -> None:
    steps = [made.atif_step(2, timestamp=None)]
    assert read(project, made.ATIF | {"steps": steps}) == (
        [],
        {"ATIF trajectory that tells of no call of a model with a time": 1},
    )


# -- Terminal-Bench ------------------------------------------------------------------------------------------------------


def test_a_trial_of_terminal_bench_is_the_same_execution_in_the_file_of_its_run_and_in_its_own(
    project: Project,
) -> None:
    trial = made.terminal_bench_trial(1, True)
    expected = {
        "type": "execution",
        "execution_id": "10000000-0000-4000-8000-000000000001",
        "agent_id": "night_shift_1",
        "task_id": "fix-clock",
        "task_source": "evaluation",
        "started_at": "2026-06-07T13:02:00+00:00",
        "ended_at": "2026-06-07T13:03:00+00:00",
        "status": "success",
    }
    assert read(project, made.terminal_bench_run(trial), trial, name="results.json") == ([expected, expected], {})


@pytest.mark.parametrize(
    ("is_resolved", "failure_mode", "outcome"),
    [(True, "unset", ("success", None)), (True, "none", ("success", None)), (True, None, ("success", None)),
     (False, "unset", ("failure", None)), (True, "agent_timeout", ("success", "agent_timeout")),
     (False, "agent_timeout", ("failure", "agent_timeout")), (None, "parse_error", ("failure", "parse_error")),
     (None, "unknown_agent_error", ("failure", "unknown_agent_error"))],
)  # fmt: skip
def test_a_resolved_task_is_a_success_and_one_that_nobody_judged_since_it_broke_off_a_failure(
    project: Project, is_resolved: bool | None, failure_mode: str, outcome: tuple[str, str | None]
) -> None:
    assert outcomes(project, made.terminal_bench_trial(1, is_resolved, failure_mode)) == [outcome]


@pytest.mark.parametrize("failure_mode", ["unset", "none", None])
def test_a_trial_that_nobody_judged_is_counted(project: Project, failure_mode: str | None) -> None:
    lines = read(project, made.terminal_bench_trial(1, None, failure_mode), name="results.json")
    assert lines == ([], {"Terminal-Bench trial that nobody judged": 1})


def test_an_agent_that_could_not_be_set_up_has_the_times_of_its_trial(project: Project) -> None:
    times = {"agent_started_at": None, "agent_ended_at": None}
    [run], _ = read(project, made.terminal_bench_trial(1, False, "agent_installation_failed", **times))
    assert (run["started_at"], run["ended_at"]) == ("2026-06-07T13:00:00+00:00", "2026-06-07T13:10:00+00:00")


def test_old_trials_have_the_time_of_their_file_and_are_of_the_agent_of_their_folder(project: Project) -> None:
    """As of July 2025: no times, another name of the id, and no run in the trial's name."""
    trials = [made.old_terminal_bench_trial(number, number == 1) for number in (1, 2)]
    project.write_bytes(
        "runs/dusk/results.json", json.dumps(made.terminal_bench_run(*trials)).encode(), modified=ARRIVED
    )
    own = "runs/dusk/fix-clock/fix-clock.2-of-5/results.json"
    project.write_bytes(own, json.dumps(trials[1]).encode(), modified=ARRIVED)
    project.write_bytes("results.json", json.dumps(made.old_terminal_bench_trial(3, False)).encode(), modified=ARRIVED)
    rows, notes = lines_of(project)
    common = {
        "type": "execution", "task_id": "fix-clock", "task_source": "evaluation", "input_tokens": 700,
        "output_tokens": 30, **UNTIMED,
    }  # fmt: skip

    def run(number: int, agent_id: str, status: str) -> Made:
        execution_id = f"20000000-0000-4000-8000-{number:012d}"
        return common | {"execution_id": execution_id, "agent_id": agent_id, "status": status}

    found = sorted((json.loads(row["line"]) for row in rows), key=lambda line: line["execution_id"])
    second = run(2, "dusk", "failure")
    assert found == [run(1, "dusk", "success"), second, second, run(3, "terminal-bench", "failure")]
    assert notes.total() == 4


def test_metadata_of_a_run_of_terminal_bench_is_counted(project: Project) -> None:
    note = "Terminal-Bench metadata of a run, whose results are in a file of their own"
    assert read(project, made.TERMINAL_BENCH_METADATA, name="run_metadata.json") == ([], {note: 1})


# -- SWE-agent and mini-swe-agent ----------------------------------------------------------------------------------------


def test_a_trajectory_of_swe_agent_is_an_execution_of_the_time_of_its_file(project: Project) -> None:
    common = {
        "type": "execution", "input": MAIL_7, "status": "success", "cost_usd": 1.25, "input_tokens": 5000, "output_tokens": 300, "api_calls": 3, "actions": ["open", "submit"],
        **UNTIMED,
    }  # fmt: skip
    lines, notes = read(project, made.swe_agent_0(), made.swe_agent_1(), name="mail__mail-7.traj")
    assert [without(line, "execution_id") for line in lines] == [
        common | {"agent_id": "SWE-agent"},
        common | {"agent_id": "SWE-agent:atlas-mini", "model": "atlas-mini", "agent_version": "1.0.1"},
    ]
    assert notes.keys() == {
        "SWE-agent record without an end: its time is the modification time of its file, its duration is not known"
    }


def test_an_old_trajectory_is_of_the_model_that_its_folder_is_named_after(project: Project) -> None:
    folder = "gpt-4__mail-bench__default__t-0.00__p-0.95__c-3.00__install-1"
    [run], _ = read(project, made.swe_agent_0(), name="mail__mail-7.traj", folder=folder)
    assert run["agent_id"] == "SWE-agent:gpt-4"


def test_a_run_that_did_not_submit_by_itself_is_a_failure(project: Project) -> None:
    ends = ("submitted", "submitted (exit_cost)", "exit_context", None)
    assert outcomes(project, *map(made.swe_agent_0, ends), name="mail__mail-7.traj") == [
        ("success", None), ("failure", "exit_cost"), ("failure", "exit_context"), ("failure", None),
    ]  # fmt: skip


def test_the_same_trajectory_is_the_same_execution_in_another_folder(project: Project) -> None:
    first, second = read(project, made.swe_agent_1(), made.swe_agent_1(), name="mail__mail-7.traj")[0]
    assert first == second


def test_the_model_of_swe_agent_is_known_however_its_configuration_is_spaced(project: Project) -> None:
    spaced = made.swe_agent_1()
    spaced["replay_config"] = json.dumps(json.loads(spaced["replay_config"]), indent=1)
    [compact], [run] = (read(project, one, name="mail__mail-7.traj")[0] for one in (made.swe_agent_1(), spaced))
    assert (
        (run["agent_id"], run["model"])
        == (compact["agent_id"], compact["model"])
        == ("SWE-agent:atlas-mini", "atlas-mini")
    )


def test_a_trajectory_of_mini_swe_agent_is_an_execution_with_its_calls(project: Project) -> None:
    lines, notes = read(project, made.MINI_SWE_AGENT, name="mail__mail-7.traj.json")
    [run] = of_type("execution", lines)
    assert without(run, "execution_id") == {
        "type": "execution", "agent_id": "mini-swe-agent:acme/atlas-mini", "agent_version": "1.15.0",
        "model": "acme/atlas-mini", "input": MAIL_7,
        "started_at": "2026-06-07T13:00:10+00:00", "ended_at": "2026-06-07T13:00:40+00:00", "status": "success", "cost_usd": 0.5, "api_calls": 3,
        "actions": ["bash", "bash"],
    }  # fmt: skip
    whose = {"agent_id": run["agent_id"], "execution_id": run["execution_id"]}
    assert of_type("model_call", lines) == [
        whose | {
            "type": "model_call", "call_id": f"gen-{second}", "model": "acme/atlas-mini",
            "response_model": "atlas-mini-0607", "ended_at": f"2026-06-07T13:00:{second}+00:00", "status": "success",
            "input_tokens": 800, "output_tokens": 60, "cache_read_tokens": 500, "reasoning_tokens": 40, "cost_usd": 0.004,
        } for second in (10, 25, 40)
    ]  # fmt: skip
    assert of_type("tool_call", lines) == [
        whose | {
            "type": "tool_call", "call_id": f"{run['execution_id']}:tool_call:{place}", "tool": "bash",
            "ended_at": "2026-06-07T13:00:40+00:00", "status": status,
        } for place, status in enumerate(("success", "failure"))
    ]  # fmt: skip
    assert notes == {}


def test_a_run_of_mini_swe_agent_that_hit_a_limit_is_a_failure(project: Project) -> None:
    info = made.MINI_SWE_AGENT["info"] | {"exit_status": "LimitsExceeded"}
    assert outcomes(project, made.MINI_SWE_AGENT | {"info": info}) == [("failure", "LimitsExceeded")]


def test_a_run_outside_of_a_benchmark_is_known_by_what_it_was_asked(project: Project) -> None:
    lines, _ = read(project, without(made.MINI_SWE_AGENT, "instance_id", "trajectory_format"))
    [run] = of_type("execution", lines)
    assert run["input"] == fingerprint_of(made.SECRET)


# -- OpenHands -----------------------------------------------------------------------------------------------------------


def openhands(**changed: Any) -> str:
    """Two lines, so that the file is one of lines."""
    return "".join(json.dumps(made.OPENHANDS | one) + "\n" for one in (changed, {"instance_id": "other"}))


def test_a_line_of_openhands_is_an_execution_with_its_tool_calls(project: Project) -> None:
    lines, notes = read(project, openhands(), name="output.jsonl")
    run, _ = of_type("execution", lines)
    assert without(run, "execution_id") == {
        "type": "execution", "agent_id": "Clerk:acme/atlas-mini", "agent_version": "0.35.0", "model": "acme/atlas-mini",
        "input": MAIL_7, "started_at": "2026-06-07T13:00:00.250000+00:00",
        "ended_at": "2026-06-07T13:00:50.250000+00:00", "status": "success", "input_tokens": 4000, "output_tokens": 90,
        "cache_read_tokens": 1500, "cache_creation_tokens": 0, "api_calls": 2, "call_latency_s": 2.0,
        "actions": ["execute_bash", "str_replace_editor", "finish"],
    }  # fmt: skip
    assert of_type("tool_call", lines)[:2] == [
        {
            "type": "tool_call", "call_id": f"{run['execution_id']}:tool_call:{place}", "agent_id": run["agent_id"],
            "execution_id": run["execution_id"], "ended_at": f"2026-06-07T13:00:{second}.250000+00:00", "tool": tool,
            "status": status,
        }
        for place, (second, tool, status) in enumerate(
            [(20, "execute_bash", "failure"), (40, "str_replace_editor", "success")]
        )
    ]  # fmt: skip
    assert notes == {}


def test_a_run_of_openhands_succeeds_if_its_patch_does_or_else_if_it_finished(project: Project) -> None:
    unfinished = made.OPENHANDS["history"][:-1]
    limit = "RuntimeError: Agent reached maximum iteration in headless mode."
    report = {"git_patch": "", "report": {"resolved": False}}
    runs = [{}, {"history": unfinished}, {"error": limit}, {"test_result": report},
            {"test_result": {"report": {"resolved": True}}, "error": limit}]  # fmt: skip
    found = outcomes(project, *(openhands(**run) for run in runs), name="output.jsonl")
    assert found[::2] == [
        ("success", None), ("failure", None), ("failure", "RuntimeError"), ("failure", None), ("failure", "RuntimeError"),
    ]  # fmt: skip


def test_a_run_of_openhands_is_a_trial_of_an_evaluation_once_its_patch_was_judged(project: Project) -> None:
    judged = openhands(test_result={"report": {"resolved": True}})
    run, other = of_type("execution", read(project, judged, name="output.jsonl")[0])
    assert (run["task_id"], run["task_source"]) == ("mail__mail-7", "evaluation")
    assert not {"task_id", "task_source"} & other.keys()


@pytest.mark.parametrize("history", [[], None])
def test_a_run_without_events_has_the_time_of_its_file(project: Project, history: list[Made] | None) -> None:
    lines, _ = read(project, openhands(history=history, error="RuntimeError: no container"), name="output.jsonl")
    run, _ = of_type("execution", lines)
    assert run.items() >= (UNTIMED | {"status": "failure", "agent_version": "0a1b"}).items()


# -- METR ----------------------------------------------------------------------------------------------------------------


def test_a_run_of_metr_is_an_execution_and_a_run_of_a_person_is_none(project: Project) -> None:
    lines, notes = read(project, "".join(json.dumps(run) + "\n" for run in made.METR), name="runs.jsonl")
    common = {
        "type": "execution", "agent_id": "Atlas Mini", "model": "am", "task_id": "sort_mail/main",
        "task_source": "evaluation", "sla_s": 1800,
    }  # fmt: skip
    ends = [("success", None), ("failure", None), ("failure", "usageLimits"), ("success", "usageLimits")]
    assert lines == [
        common | {
            "execution_id": f"server_{number}", "started_at": 1780837200000 + number * 60_000,
            "ended_at": 1780837245500 + number * 60_000, "status": status, **({"error": error} if error else {}),
        } for number, (status, error) in enumerate(ends, 1)
    ]  # fmt: skip
    assert notes == {"METR run of a person": 1}


# -- SWE-bench -----------------------------------------------------------------------------------------------------------


def test_instances_of_the_report_of_a_run_are_executions_of_the_time_of_its_file(project: Project) -> None:
    lines, _ = read(project, made.SWE_BENCH_RUN, name="clerk.run-1.json")
    report, _, _ = lines[0]["execution_id"].partition(":")
    ends = {
        "mail-1": {"status": "success"}, "mail-2": {"status": "failure"}, "mail-3": {"status": "failure"},
        "mail-4": {"status": "failure", "error": "empty_patch"},
        "mail-5": {"status": "failure", "error": "evaluation_error"},
    }  # fmt: skip
    assert lines == [
        {
            "type": "execution", "execution_id": f"{report}:{task}", "agent_id": "clerk.run-1", "task_id": task,
            "task_source": "evaluation", **UNTIMED, **end,
        } for task, end in ends.items()
    ]  # fmt: skip


@pytest.mark.parametrize("is_flat", [False, True])
def test_a_report_of_one_instance_is_an_execution_of_the_submission_above_its_logs(
    project: Project, *, is_flat: bool
) -> None:
    for task, resolved in (("mail-1", True), ("mail-2", False)):
        outcome = made.swe_bench_outcome(resolved)
        report = outcome if is_flat else {task: outcome}
        name = f"verified/20260607_clerk/logs/{task}/report.json"
        project.write_bytes(name, json.dumps(report).encode(), modified=ARRIVED)
    rows, _ = lines_of(project)
    assert [json.loads(row["line"]) for row in rows] == [
        {
            "type": "execution", "execution_id": f"20260607_clerk/logs/{task}", "agent_id": "20260607_clerk",
            "task_id": task, "task_source": "evaluation", "status": status, **UNTIMED,
        } for task, status in (("mail-1", "success"), ("mail-2", "failure"))
    ]  # fmt: skip


def test_reports_of_one_name_are_several_runs_and_a_copy_of_one_is_not(project: Project) -> None:
    other = {**made.SWE_BENCH_RUN, "resolved_ids": ["mail-2"], "unresolved_ids": ["mail-1", "mail-3"]}
    for folder, report in (("lite", made.SWE_BENCH_RUN), ("verified", other), ("copy", made.SWE_BENCH_RUN)):
        project.write_bytes(f"{folder}/clerk.run-1.json", json.dumps(report).encode(), modified=ARRIVED)
    ids = [json.loads(row["line"])["execution_id"] for row in lines_of(project)[0]]
    assert (len(ids), len(set(ids))) == (15, 10)


def test_a_report_of_one_instance_beside_that_of_its_run_is_counted(project: Project) -> None:
    report = {"mail-1": made.swe_bench_outcome(True)}
    lines = read(project, report, name="report.json", folder="logs/run_evaluation/run-1/clerk/mail-1")
    assert lines == ([], {"SWE-bench record that no table has a place for": 1})


# -- all of them ---------------------------------------------------------------------------------------------------------


def write_all(project: Project) -> None:
    for name, content in made.every_file().items():
        project.write_bytes(name, content, modified=ARRIVED)


def test_trials_of_all_harnesses_come_to_the_tables(project: Project) -> None:
    write_all(project)
    project.materialize(HourRange.of(ARRIVED.replace(minute=0)), only=["ingest"])
    assert_lines_are_conserved(project)
    assert project.query("SELECT reason FROM rejected_records") == []
    found = project.query(
        "SELECT agent_id, task_id, task_source, status, round(runtime_s, 3), error FROM executions ORDER BY ALL"
    )
    assert found == EXECUTIONS
    assert project.query("SELECT count(*) FROM model_calls") == [(5,)]
    assert project.query("SELECT tool, status, count(*) FROM tool_calls GROUP BY ALL ORDER BY ALL") == [
        ("bash", "failure", 1), ("bash", "success", 1), ("execute_bash", "failure", 1), ("str_replace_editor", "success", 1),
    ]  # fmt: skip


@pytest.mark.parametrize("name", [name for name in made.every_file() if not name.startswith("metr")])
def test_nothing_private_is_kept_of_a_file_that_is_cut_anywhere(project: Project, name: str) -> None:
    content = made.every_file()[name]
    for size in range(1, len(content), max(1, len(content) // 150)):
        project.write_bytes(f"{size:06d}/{name}", content[:size], modified=ARRIVED)
    rows, notes = lines_of(project)
    assert rows and made.SECRET not in json.dumps([rows, dict(notes)], default=str)


@pytest.mark.parametrize("name", [name for name in made.every_file() if not name.startswith("metr")])
def test_nothing_private_is_kept_of_a_file_that_is_damaged_at_any_one_place(project: Project, name: str) -> None:
    content = made.every_file()[name]
    for place in range(0, min(len(content), 1 << 10), 13):
        damaged = content[:place] + b"\x01" + content[place + 1 :]
        project.write_bytes(f"{place:06d}/{name}", damaged, modified=ARRIVED)
    rows, notes = lines_of(project)
    assert any(row["fault"] for row in rows)
    assert made.SECRET not in json.dumps([rows, dict(notes)], default=str)


def test_nothing_private_is_kept_of_a_file_without_its_beginning(project: Project) -> None:
    files = made.every_file() | {"tb/run_metadata.json": json.dumps(made.TERMINAL_BENCH_METADATA).encode()}
    for name, content in files.items():
        for size in (2, 20):
            project.write_bytes(f"{size}/{name}", content[size:], modified=ARRIVED)
    rows, notes = lines_of(project)
    assert made.SECRET not in json.dumps([rows, dict(notes)], default=str)


def test_nothing_private_is_kept_of_whole_or_damaged_files(project: Project) -> None:
    write_all(project)
    for name, content in made.every_file().items():
        assert content.count(made.SECRET.encode()) > 0 or name.startswith("metr"), name
        project.write_bytes(f"cut/{name}", content[: len(content) // 2], modified=ARRIVED)
    rows, notes = lines_of(project)
    assert len(rows) > 20
    assert any(row["fault"] for row in rows)
    assert made.SECRET not in json.dumps([rows, dict(notes)], default=str)
