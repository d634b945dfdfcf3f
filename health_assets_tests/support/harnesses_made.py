"""Files of evaluation harnesses as they write them: made by hand after files that they really wrote, in our own words.

Where one holds a prompt, code or a path, it holds `SECRET`, which no table may have.
"""

import json
from typing import Any

Record = dict[str, Any]

SECRET = "swordfish"

# -- Harbor: result.json of a trial, as versions of January to August 2026 write it --------------------------------------


def harbor_trial(number: int, reward: float | None, **changed: Any) -> Record:
    """A trial of the task `sort-mail`, started in the minute of its number; the agent alone ran 30 s of two minutes."""

    def at(second: int) -> str:
        return f"2026-06-07T13:{number + second // 60:02d}:{second % 60:02d}.500000Z"

    def phase(start: int, end: int) -> Record:
        return {"started_at": at(start), "finished_at": at(end)}

    return {
        "id": f"00000000-0000-4000-8000-{number:012d}",
        "task_name": "sort-mail",
        "trial_name": f"sort-mail__aBc{number:04d}",
        "trial_uri": f"file:///home/{SECRET}/jobs/nightly/sort-mail__aBc{number:04d}",
        "task_id": {"git_url": "https://git.example/tasks.git", "git_commit_id": "0a1b", "path": "sort-mail"},
        "source": "office-bench",
        "task_checksum": "5" * 64,
        "config": {
            "trial_name": f"sort-mail__aBc{number:04d}", "trials_dir": f"/home/{SECRET}/jobs/nightly",
            "agent": {"name": "clerk", "model_name": "acme/atlas-mini", "kwargs": {}}, "job_id": "job-1",
        },
        "agent_info": {"name": "clerk", "version": "unknown", "model_info": {"name": "atlas-mini", "provider": "acme"}},
        "agent_result": {
            "n_input_tokens": 900, "n_cache_tokens": 400, "n_output_tokens": 50, "cost_usd": 0.02,
            "rollout_details": None, "metadata": None,
        },
        "verifier_result": None if reward is None else {"rewards": {"reward": reward}},
        "exception_info": None,
        "started_at": at(0), "finished_at": at(120),
        "environment_setup": phase(0, 40), "agent_setup": phase(40, 60),
        "agent_execution": phase(60, 90), "verifier": phase(90, 120),
        **changed,
    }  # fmt: skip


HARBOR_TIMEOUT = {
    "exception_type": "AgentTimeoutError", "exception_message": f"the task was: find the {SECRET}",
    "exception_traceback": f"File /home/{SECRET}/agent.py", "occurred_at": "2026-06-07T15:00:00",
}  # fmt: skip
HARBOR_JOB = {
    "id": "job-1", "started_at": "2026-06-07T15:00:00", "finished_at": "2026-06-07T15:30:00", "n_total_trials": 2,
    "stats": {"n_trials": 2, "n_errors": 1, "evals": {}},
}  # fmt: skip
HARBOR_CONFIGS = [
    {"trial_name": "sort-mail__aBc0001", "trials_dir": f"/home/{SECRET}", "agent": {}, "verifier": {}},
    {"job_name": "nightly", "jobs_dir": f"/home/{SECRET}", "agents": [], "verifier": {}},
]


# -- ATIF 1.6 and 1.7: the trajectory of a trial of Harbor ---------------------------------------------------------------


def atif_step(step_id: int, **changed: Any) -> Record:
    return {
        "step_id": step_id, "timestamp": f"2026-06-07T13:00:{step_id:02d}Z", "source": "agent", "message": SECRET,
        "model_name": "acme/atlas-mini",
        "tool_calls": [{"tool_call_id": "t1", "function_name": "exec", "arguments": {"command": SECRET}}],
        "metrics": {"prompt_tokens": 700, "completion_tokens": 20, "cached_tokens": 900, "cost_usd": 0.01}, **changed,
    }  # fmt: skip


ATIF: Record = {
    "schema_version": "ATIF-v1.6",
    "session_id": "walk-1",
    "agent": {"name": "clerk", "version": "2.0.0", "model_name": "acme/atlas-mini"},
    "steps": [
        {"step_id": 1, "timestamp": "2026-06-07T13:00:01Z", "source": "user", "message": SECRET},
        atif_step(2),
        atif_step(3, is_copied_context=True),
        atif_step(4, timestamp=None),
        atif_step(5, model_name=None),
    ],
    "final_metrics": {"total_prompt_tokens": 1400},
}

# -- Terminal-Bench: results.json of a run and of each trial, September 2025; rows of July 2025 have no times ------------


def terminal_bench_trial(number: int, is_resolved: bool | None, failure_mode: str = "unset", **changed: Any) -> Record:
    """A trial of the task `fix-clock`, whose agent ran a minute."""
    return {
        "id": f"10000000-0000-4000-8000-{number:012d}",
        "trial_name": f"fix-clock.{number}-of-5.night_shift_1",
        "task_id": "fix-clock",
        "instruction": f"Find the {SECRET}.",
        "is_resolved": is_resolved,
        "failure_mode": failure_mode,
        "parser_results": {"test_clock": "passed"} if is_resolved else None,
        "recording_path": f"/home/{SECRET}/agent.cast",
        "total_input_tokens": 0, "total_output_tokens": 0,
        "trial_started_at": "2026-06-07T13:00:00+00:00", "trial_ended_at": "2026-06-07T13:10:00+00:00",
        "agent_started_at": "2026-06-07T13:02:00+00:00", "agent_ended_at": "2026-06-07T13:03:00+00:00",
        "test_started_at": "2026-06-07T13:04:00+00:00", "test_ended_at": "2026-06-07T13:05:00+00:00",
        **changed,
    }  # fmt: skip


def old_terminal_bench_trial(number: int, is_resolved: bool) -> Record:
    return {
        "uuid": f"20000000-0000-4000-8000-{number:012d}", "trial_name": f"fix-clock.{number}-of-5",
        "task_id": "fix-clock", "instruction": SECRET, "is_resolved": is_resolved, "failure_mode": "unset",
        "parser_results": {}, "recording_path": SECRET, "total_input_tokens": 700, "total_output_tokens": 30,
    }  # fmt: skip


def terminal_bench_run(*trials: Record) -> Record:
    return {
        "id": "run-1", "results": list(trials), "pass_at_k": {}, "n_resolved": 1, "n_unresolved": len(trials) - 1,
        "resolved_ids": ["fix-clock"], "unresolved_ids": ["fix-clock"], "accuracy": 0.5,
    }  # fmt: skip


TERMINAL_BENCH_METADATA = {
    "run_id": "night_shift_1", "dataset_name": "clock-bench", "dataset_version": "0.1.1", "agent_name": "clerk",
    "output_path": f"/home/{SECRET}", "n_concurrent_trials": 4, "n_attempts": 5, "model_name": "acme/atlas-mini",
}  # fmt: skip

# -- SWE-agent: a .traj of 0.x, and of 1.0.1 and 1.1.0, which begins otherwise and holds its configuration as a text -----

SWE_AGENT_STEPS = [
    {"action": f"open {SECRET}.py\n", "observation": SECRET, "response": SECRET, "thought": SECRET, "state": "{}"},
    {"action": f"./{SECRET}.sh", "observation": SECRET, "response": SECRET, "thought": SECRET, "state": "{}"},
    {"action": "submit", "observation": SECRET, "response": SECRET, "thought": SECRET, "state": "{}"},
]
SWE_AGENT_STATS = {"instance_cost": 1.25, "tokens_sent": 5000, "tokens_received": 300, "api_calls": 3}


def swe_agent_0(exit_status: str | None = "submitted") -> Record:
    info = {"exit_status": exit_status, "submission": SECRET, "model_stats": SWE_AGENT_STATS | {"total_cost": 99.0}}
    return {"environment": "swe_main", "trajectory": SWE_AGENT_STEPS, "history": [], "info": info}


def swe_agent_1(exit_status: str = "submitted") -> Record:
    replay = (
        '{"env":{"repo":{"repo_name":"testbed"}},"agent":{"name":"main","model":{"name":"atlas-mini","top_p":1.0}}}'
    )
    return {
        "trajectory": SWE_AGENT_STEPS,
        "history": [],
        "info": {
            "swe_agent_hash": "0a1b", "swe_agent_version": "1.0.1", "submission": SECRET, "exit_status": exit_status,
            "model_stats": SWE_AGENT_STATS,
        },
        "replay_config": replay,
        "environment": "mail__mail-7",
    }  # fmt: skip


# -- mini-swe-agent: a .traj.json of 1.15 --------------------------------------------------------------------------------


def _mini_answer(second: int, command: str) -> Record:
    usage = {
        "prompt_tokens": 800, "completion_tokens": 60, "cost": 0.004,
        "prompt_tokens_details": {"cached_tokens": 500}, "completion_tokens_details": {"reasoning_tokens": 40},
    }  # fmt: skip
    response = {"id": f"gen-{second}", "model": "atlas-mini-0607", "created": 1780837200 + second, "usage": usage}
    return {"role": "assistant", "content": f"```bash\n{command} {SECRET}\n```", "extra": {"response": response}}


def _mini_output(code: int) -> Record:
    return {"role": "user", "content": f"<returncode>{code}</returncode>\n<output>\n{SECRET}\n</output>"}


MINI_SWE_AGENT: Record = {
    "info": {
        "exit_status": "Submitted", "submission": SECRET, "model_stats": {"instance_cost": 0.5, "api_calls": 3},
        "mini_version": "1.15.0",
        "config": {"agent": {"system_template": SECRET}, "model": {"model_name": "acme/atlas-mini"}},
    },
    "messages": [
        {"role": "system", "content": SECRET}, {"role": "user", "content": SECRET},
        _mini_answer(10, "ls"), _mini_output(0),
        _mini_answer(25, "cat"), _mini_output(127),
        _mini_answer(40, "echo"),
    ],
    "trajectory_format": "mini-swe-agent-1",
    "instance_id": "mail__mail-7",
}  # fmt: skip

# -- OpenHands: a line of output.jsonl, of 0.35; 0.25 has neither the tokens nor the version of its events ---------------


def _openhands_event(place: int, **members: Any) -> Record:
    return {"id": place, "timestamp": f"2026-06-07T13:00:{place * 10:02d}.250000", "source": "agent", **members}


def _openhands_call(place: int, tool: str, observation: str, **told: Any) -> list[Record]:
    called = {"function_name": tool, "tool_call_id": f"t{place}"}
    return [
        _openhands_event(place, action=observation, args={"command": SECRET}, tool_call_metadata=called),
        _openhands_event(
            place + 1, observation=observation, content=SECRET, cause=place, tool_call_metadata=called, **told
        ),
    ]


OPENHANDS: Record = {
    "instance_id": "mail__mail-7",
    "test_result": {"git_patch": SECRET},
    "instruction": SECRET,
    "metadata": {
        "agent_class": "Clerk", "llm_config": {"model": "acme/atlas-mini", "api_key": "**********"},
        "eval_output_dir": f"/home/{SECRET}", "start_time": "2026-06-07 12:00:00", "git_commit": "0a1b",
    },
    "history": [
        _openhands_event(0, action="system", args={"content": SECRET, "openhands_version": "0.35.0"}),
        *_openhands_call(1, "execute_bash", "run", success=False, extras={"metadata": {"exit_code": 2}}),
        *_openhands_call(3, "str_replace_editor", "edit"),
        _openhands_event(5, action="finish", args={}, tool_call_metadata={"function_name": "finish"}),
    ],
    "metrics": {
        "accumulated_cost": 0.0,
        "accumulated_token_usage": {
            "model": "default", "prompt_tokens": 4000, "completion_tokens": 90, "cache_read_tokens": 1500,
            "cache_write_tokens": 0,
        },
        "costs": [],
        "response_latencies": [{"model": "acme/atlas-mini", "latency": 1.5}, {"model": "acme/atlas-mini", "latency": 2.5}],
    },
    "error": None,
    "instance": {"repo": "mail/mail", "problem_statement": SECRET},
}  # fmt: skip

# -- METR: a line of runs.jsonl, of 2025 ---------------------------------------------------------------------------------


def metr_run(number: int, score_binarized: int, fatal_error_from: str | None = None, **changed: Any) -> Record:
    started_at = 1780837200000 + number * 60_000
    return {
        "run_id": f"server_{number}", "task_id": "sort_mail/main", "score": score_binarized / 2, "time_limit": 1800,
        "started_at": started_at, "completed_at": started_at + 45_500, "task_family": "sort_mail",
        "alias": "Atlas Mini", "model": "am", "fatal_error_from": fatal_error_from, "human_minutes": 12.5,
        "human_source": "baseline", "score_binarized": score_binarized, **changed,
    }  # fmt: skip


METR = [
    metr_run(1, 1), metr_run(2, 0), metr_run(3, 0, "usageLimits"), metr_run(4, 1, "usageLimits"),
    metr_run(5, 1, alias="human", run_id=5, started_at=0),
]  # fmt: skip


# -- SWE-bench: the report of a run (schema 2), and report.json of an instance, which some lists of results have flat ------


def swe_bench_outcome(resolved: bool) -> Record:
    tests = {"FAIL_TO_PASS": {"success": [f"test_{SECRET}"], "failure": []}}
    return {
        "patch_is_None": False, "patch_exists": True, "patch_successfully_applied": True, "resolved": resolved,
        "tests_status": tests,
    }  # fmt: skip


SWE_BENCH_RUN = {
    "total_instances": 6, "submitted_instances": 5, "completed_instances": 3, "resolved_instances": 1,
    "unresolved_instances": 2, "empty_patch_instances": 1, "error_instances": 1,
    "completed_ids": ["mail-1", "mail-2", "mail-3"], "incomplete_ids": ["mail-6"], "empty_patch_ids": ["mail-4"],
    "submitted_ids": ["mail-1", "mail-2", "mail-3", "mail-4", "mail-5"], "resolved_ids": ["mail-1"],
    "unresolved_ids": ["mail-2", "mail-3"], "error_ids": ["mail-5"], "schema_version": 2,
}  # fmt: skip


# -- all of them ---------------------------------------------------------------------------------------------------------


def every_file() -> dict[str, bytes]:
    """A file of each kind, by name, with a trial that broke off of each harness that tests for it."""
    documents = {
        "harbor/sort-mail__aBc0001/result.json": harbor_trial(1, 1.0),
        "harbor/sort-mail__aBc0002/result.json": harbor_trial(2, 1.0, exception_info=HARBOR_TIMEOUT),
        "harbor/sort-mail__aBc0001/agent/trajectory.json": ATIF,
        "tb/results.json": terminal_bench_run(
            terminal_bench_trial(1, True), terminal_bench_trial(2, True, "agent_timeout")
        ),
        "swe/mail__mail-7.traj": swe_agent_1(),
        "mini/mail__mail-7.traj.json": MINI_SWE_AGENT,
        "swe-bench/logs/mail-1/report.json": {"mail-1": swe_bench_outcome(resolved=True)},
    }
    lines = {"openhands/output.jsonl": [OPENHANDS], "metr/runs.jsonl": METR}
    return {name: json.dumps(document, indent=1).encode() for name, document in documents.items()} | {
        name: "".join(json.dumps(one) + "\n" for one in records).encode() for name, records in lines.items()
    }
