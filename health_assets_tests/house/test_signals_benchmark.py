"""The measurement of computed signals against known outcomes: its statistics by hand, its formats, and the command."""

import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import mannwhitneyu

from bench.auroc import Z_95, auroc, auroc_difference, auroc_within, fifths
from bench.signals import main
from bench.trajectories import Call, auto_code_rover, claude_code, mini_swe_agent, swe_agent
from health_assets_tests.support.foreign_logs_made import TAU_BENCH_NAME, tau_bench_trial

HAS_FAILED = [True, True, False, False, False]
RISKS = [0.8, 0.4, 0.6, 0.2, 0.4]


def write(folder: Path, name: str, content: Any) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


# -- statistics --------------------------------------------------------------------------------------------------------


def test_the_area_and_its_interval_are_those_worked_out_by_hand() -> None:
    # 0.8 is above all three successes; 0.4 is above one, ties with one and is below one: (3 + 1.5) / 6
    # failures beat 1 and 1/2 of the successes, variance 1/8; successes are beaten by 1/2, 1 and 3/4, variance 1/16
    error = math.sqrt(1 / 8 / 2 + 1 / 16 / 3)
    area = auroc(HAS_FAILED, RISKS)
    assert area.value == pytest.approx(0.75, abs=1e-12)
    assert area.low == pytest.approx(0.75 - Z_95 * error, abs=1e-12) == pytest.approx(0.184, abs=1e-3)
    assert area.high == 1.0, "an area is 1 at most"
    assert str(area) == "0.75 [0.18, 1.00]"


def test_the_area_is_the_statistic_of_mann_and_whitney_by_pairs() -> None:
    risks = [(place * 7 % 11) / 10 for place in range(60)]
    has_failed = [place % 3 == 0 for place in range(60)]
    failed, succeeded = (
        [risk for risk, own in zip(risks, has_failed, strict=True) if own is kind] for kind in (True, False)
    )
    pairs = len(failed) * len(succeeded)
    assert auroc(has_failed, risks).value == pytest.approx(mannwhitneyu(failed, succeeded).statistic / pairs, abs=1e-12)


def test_an_area_differs_from_itself_by_nothing_and_from_chance_by_what_it_is_above_it() -> None:
    assert auroc_difference(HAS_FAILED, RISKS, RISKS) == (0.0, 0.0, 0.0)
    above = auroc_difference(HAS_FAILED, RISKS, [1.0] * 5)
    assert above.value == pytest.approx(0.25, abs=1e-12)
    assert above.high == pytest.approx(0.25 + Z_95 * math.sqrt(1 / 8 / 2 + 1 / 16 / 3), abs=1e-12)


def test_within_strata_only_pairs_of_the_same_stratum_count() -> None:
    # the risk is the stratum, so that it tells everything between them and nothing within
    has_failed = [True, True, True, False, False, True, True, False, False, False]
    strata = [1, 1, 1, 1, 1, 0, 0, 0, 0, 0]
    assert auroc(has_failed, strata).value > 0.5
    assert auroc_within(has_failed, strata, strata) == (0.5, 0.5, 0.5)
    doubled = auroc_within(HAS_FAILED * 2, RISKS * 2, [0] * 5 + [1] * 5)
    assert doubled.value == pytest.approx(0.75, abs=1e-12)
    assert doubled.low == pytest.approx(0.75 - Z_95 * math.sqrt((1 / 8 / 2 + 1 / 16 / 3) / 2), abs=1e-12)


def test_equal_values_lie_in_the_same_fifth() -> None:
    assert fifths([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]) == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert len(set(fifths([3, 3, 3, 3, 9])[:4])) == 1


@pytest.mark.parametrize("has_failed", [[True, False, False], [False, False, False], [True, True, False]])
def test_too_few_outcomes_give_no_area(has_failed: list[bool]) -> None:
    with pytest.raises(ValueError, match="two runs that failed and two that succeeded"):
        auroc(has_failed, [0.1, 0.2, 0.3])
    with pytest.raises(ValueError, match="no stratum"):
        auroc_within(has_failed, [0.1, 0.2, 0.3], [0, 0, 0])


# -- formats -----------------------------------------------------------------------------------------------------------


def swe_agent_run(*observations: str) -> dict[str, Any]:
    steps = [{"action": f"open file_{place}.py\n", "observation": text} for place, text in enumerate(observations)]
    return {"trajectory": [*steps, {"action": "exit_cost", "observation": "Exited"}], "info": {}}


def test_swe_agent_fails_a_call_by_what_it_writes_and_a_run_that_is_not_resolved(tmp_path: Path) -> None:
    write(tmp_path, "one/results/results.json", {"resolved_ids": ["a-1"]})
    write(tmp_path, "one/trajs/a-1.traj", swe_agent_run("[File: file_0.py]", "Usage: open <path>"))
    write(
        tmp_path,
        "one/trajs/a-2.traj",
        swe_agent_run("before\nTraceback (most recent call last):\n  File", "2 errors found"),
    )
    first, second = swe_agent(tmp_path)
    assert (first.execution_id, first.agent_id, first.has_failed, second.has_failed) == ("one/a-1", "one", False, True)
    assert first.calls[0] == Call("open", "open file_0.py", "[File: file_0.py]", False)
    assert [call.has_failed for call in (*first.calls, *second.calls)] == [False, True, True, False]


def test_mini_swe_agent_fails_a_command_by_its_return_code_and_unknown_outcomes_are_left_out(tmp_path: Path) -> None:
    def step(number: int, command: str, result: str) -> str:
        return (
            f"\x1b[31mmini-swe-agent\x1b[0m (step {number}, $0.01):\r\nTHOUGHT: on.\r\n```bash\r\n{command}\r\n```\r\n"
            f"User:\r\n{result}\r\n"
        )

    log = step(1, "ls", "<returncode>0</returncode>\r\na.py\r\n─────") + step(
        2, "make", "<returncode>2</returncode>\r\nno"
    )
    for name, is_resolved in {"solved": True, "unknown": None}.items():
        write(tmp_path, f"run/{name}/results.json", {"is_resolved": is_resolved})
        write(tmp_path, f"run/{name}/sessions/agent.log", log + step(3, "sleep", ""))
    [run] = mini_swe_agent(tmp_path)
    assert (run.execution_id, run.has_failed) == ("run/solved", False)
    assert run.calls == [Call("bash", "ls", "\na.py", False), Call("bash", "make", "\nno\n", True)]


def test_auto_code_rover_says_itself_which_call_was_well(tmp_path: Path) -> None:
    called = [{"func_name": "search", "arguments": {"name": "f"}, "call_ok": is_ok} for is_ok in (True, False)]
    write(tmp_path, "one/patches/a-1_2024-04-06_13-51-50/tool_call_sequence.json", called)
    write(tmp_path, "one/evaluation/report.json", {"resolved": []})
    [run] = auto_code_rover(tmp_path)
    assert (run.execution_id, run.has_failed, [call.has_failed for call in run.calls]) == (
        "one/a-1",
        True,
        [False, True],
    )


def test_claude_code_fails_a_call_whose_result_is_an_error(tmp_path: Path) -> None:
    used = [{"type": "tool_use", "id": name, "name": "find", "input": {"q": name}} for name in "ab"]
    results = [{"type": "tool_result", "tool_use_id": "a", "content": "nobody", "is_error": True}]
    messages = [
        {"type": "mode"},
        {"message": {"content": "Hi!"}},
        {"message": {"content": used}},
        {"message": {"content": results}},
    ]
    told = [{"db_match": True, "communicate_match": said} for said in (None, False)]
    write(tmp_path, "one/eval_results.json", [one | {"task_id": str(place)} for place, one in enumerate(told)])
    for place in range(2):
        write(tmp_path, f"one/task_{place}.jsonl", "\n".join(map(json.dumps, messages)))
    runs = list(claude_code(tmp_path))
    assert [run.has_failed for run in runs] == [False, True]
    assert runs[0].calls == [Call("find", {"q": "a"}, '"nobody"', True)], "a call without a result tells nothing"


# -- the command -------------------------------------------------------------------------------------------------------


def run_command(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Do what `python -m bench.signals` does, in this process; the product runs in processes of its own."""
    monkeypatch.setattr(sys, "argv", ["bench.signals", "--data", str(folder)])
    main()


def test_the_command_takes_converted_runs_and_files_of_our_readers_through_the_product(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # failed runs have a failed call; lengths are alike, so that the number of calls tells nothing
    for place in range(4):
        write(tmp_path, f"swe_agent/made/one/{place}.traj", swe_agent_run("fine", "fine" if place < 2 else "Error: no"))
    write(tmp_path, "swe_agent/made/one/report.json", {"resolved": ["0", "1"]})
    trials = [tau_bench_trial(place, 0, float(place % 2), "search", "book") for place in range(4)]
    write(tmp_path, f"tau_bench/made/{TAU_BENCH_NAME}", [*trials, tau_bench_trial(9, 0, 0.0)])
    run_command(tmp_path, monkeypatch)
    cells = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in capsys.readouterr().out.splitlines()
        if line.startswith("| ")
    ]
    by_name = {row[0]: row[1:] for row in cells}
    nothing = "0.50 [0.50, 0.50]"
    assert by_name["swe_agent/made"] == [
        "4", "2", "100%", "1.00 [1.00, 1.00]", "1.00 [1.00, 1.00]", nothing, nothing, "0.50 [0.50, 0.50]", "1.00 [1.00, 1.00]",
    ]  # fmt: skip
    assert by_name["tau_bench/made"] == [
        "5", "3", "80%", nothing, nothing, nothing, nothing, "0.00 [0.00, 0.00]", nothing
    ]  # fmt: skip
    assert by_name["`step_risk`"] == ["1.00", "0.50"]
    assert by_name["number of calls"] == ["0.50", "0.50"]


def test_a_folder_without_a_known_format_is_told_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "elsewhere").mkdir()
    with pytest.raises(SystemExit) as ended:
        run_command(tmp_path, monkeypatch)
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert "has no data set; a folder of a format is named auto_code_rover, claude_code, mini_swe_agent" in said
