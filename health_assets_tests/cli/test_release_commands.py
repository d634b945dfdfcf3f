"""`health-assets compare` and `gate`: their output in each form, and their exit codes."""

import io
import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console

from health_assets.apps.releases.forms import as_junit, as_markdown
from health_assets.apps.releases.gate import (
    PASSED,
    REFUSED,
    TOO_LITTLE_KNOWN,
    GateRules,
    exit_code_of,
    judged,
)
from health_assets.cli import release_commands
from health_assets.cli.release_commands import Form
from health_assets.core.hours import HOUR
from health_assets.systems.release_comparison.names import SAME_TASKS, SUCCESS_RATE
from health_assets.systems.release_comparison.report import print_comparisons
from health_assets_tests.support.commands_here import command_here
from health_assets_tests.support.logs_made import START, line
from health_assets_tests.support.projects import Project, hours_from
from health_assets_tests.systems.test_release_comparison import runs


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """`a` got worse with version 2 and has spent its budget; `b` did not change with version 2; `c` has one version."""
    project = Project(tmp_path_factory.mktemp("releases"), None, 24, 24)
    records = [
        *runs(0, 100, "1", failed=2), *runs(1, 100, "2", failed=40),
        *runs(0, 120, "1", failed=2, agent_id="b"), *runs(1, 120, "2", failed=2, agent_id="b"),
        *runs(0, 5, "1", agent_id="c"),
    ]  # fmt: skip
    project.write_log("a.jsonl", [line(record) for record in records])
    project.materialize(hours_from(START, 2))
    return project


def said(project: Project, *arguments: str) -> tuple[int, str]:
    ended = command_here(*arguments, environment={"HEALTH_WAREHOUSE": str(project.warehouse_path)} | LENGTHS)
    return ended.returncode, ended.stdout + ended.stderr


LENGTHS = {"HEALTH_WINDOW_HOURS": "24", "HEALTH_LOOKBACK_HOURS": "24"}


# -- compare -----------------------------------------------------------------------------------------------------------


def test_compare_shows_the_worst_release_first_with_its_interval_and_verdict(project: Project) -> None:
    code, text = said(project, "compare")
    assert code == 0
    lines = [line.rstrip() for line in text.splitlines()]
    assert [line for line in lines if not line.startswith(" ")] == ["a: 1 → 2", "b: 1 → 2"]
    assert lines[1].split() == ["measure", "before", "now", "difference", "(95%)", "margin", "runs", "verdict"]
    assert re.fullmatch(
        r" +success rate +98% +60% -38\.0 pts \(-[0-9.]+ to -[0-9.]+\) +±2 pts 100 → 100 worse", lines[2]
    )
    assert any(re.search(r"±10% 118 → 118 no difference$", line) for line in lines)


@pytest.mark.parametrize("width", [62, 120])
def test_compare_cuts_no_name_short_and_a_narrow_terminal_has_the_margins_below(width: int) -> None:
    row = _ROW | {"agent_id": "a long name of an agent " * 5, "from_version": "2026-06-07.main.0123456789abcdef"}
    told = io.StringIO()
    tokens = _ROW | {"measure": "tokens", "margin": 0.1, "n_from": 99, "difference": 0.5}
    print_comparisons(Console(width=width, file=told), [[row, tokens]])
    name, _, rate, of_tokens, *below = [line.rstrip() for line in told.getvalue().splitlines()]
    assert name == f"{row['agent_id']}: 2026-06-07.main.0123456789abcdef → 2"
    assert re.search(r"100 → 100 +worse$", rate) and re.search(r" 99 → 100 +worse$", of_tokens)
    assert max(map(len, (rate, of_tokens))) <= width
    assert ("±2 pts" in rate and "±10%" in of_tokens) == (width == 120)
    assert below == ([] if width == 120 else ["no difference that matters: within ±2 pts or ±10%"])


def test_the_report_shows_the_success_rate_of_a_release_and_of_the_other_measures_what_is_worse_or_better(
    project: Project,
) -> None:
    code, text = said(project, "report", "--hour", f"{START + HOUR:%Y-%m-%dT%H}")
    assert code == 0
    block = text.partition("Releases compared")[2].partition("\n\n")[0]
    assert block.count("success rate") == 2 and "runtime" not in block, block
    assert "runtime" in said(project, "compare")[1]
    assert block.rstrip().endswith("health-assets compare has all measures")


def test_compare_shows_the_worst_agents_and_says_that_there_are_others(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release_commands, "AGENTS_SHOWN", 1)
    code, text = said(project, "compare")
    *table, told = text.splitlines()
    assert code == 0 and told == "the worst 1 of all agents; --agent NAME and --format json have the others"
    assert [line for line in table if line and not line.startswith(" ")] == ["a: 1 → 2"]
    assert f"|\n\n{told}\n" in said(project, "compare", "--format", "markdown")[1]
    assert {row["agent_id"] for row in json.loads(said(project, "compare", "--format", "json")[1])} == {"a", "b"}


def test_compare_gives_json_and_markdown(project: Project) -> None:
    code, text = said(project, "compare", "--agent", "a", "--by", "version", "--format", "json")
    rows = {row["measure"]: row for row in json.loads(text)}
    rate = rows[SUCCESS_RATE]
    assert (code, rate["verdict"], rate["to_version"]) == (0, "worse", "2")
    assert (rate["n_from"], rate["n_to"], rate["margin"]) == (100, 100, 0.02)
    code, text = said(project, "compare", "--agent", "a", "--format", "markdown")
    assert text.splitlines()[2].startswith("| a | version 1 → 2 | success rate | 98% | 60% | -38.0 points (")
    assert text.splitlines()[2].endswith(") | ±2 pts | 100 → 100 | **worse** |")
    assert said(project, "compare", "--agent", "c", "--format", "json") == (0, "[]\n")


def test_compare_gives_junit_and_shows_what_its_flags_name(project: Project) -> None:
    code, text = said(project, "compare", "--format", "junit", "--from", "1", "--to", "2")
    suite = ET.fromstring(text)
    failed = [case.attrib["name"] for case in suite if case.find("failure") is not None]
    assert (code, failed) == (0, ["a 1 → 2 success_rate"])


@pytest.mark.parametrize("form", list(Form))
def test_a_version_that_nothing_is_compared_with_is_an_error_that_names_those_which_are(
    project: Project, form: Form
) -> None:
    code, text = said(project, "compare", "--to", "3", "--format", form)
    assert (code, text) == (1, "health-assets: any version or model → 3 is not compared; compared: 1 → 2\n")
    code, text = said(project, "compare", "--agent", "c", "--from", "1", "--format", form)
    assert (code, text) == (1, "health-assets: 1 → any version or model is not compared; compared: none\n")


def test_compare_says_where_nothing_is_compared(project: Project) -> None:
    code, text = said(project, "compare", "--agent", "c")
    assert (code, text) == (0, "no new version or model of c is compared: none ran first while another was known\n")


def test_text_from_logs_ends_no_cell_of_markdown() -> None:
    [row] = json.loads(json.dumps([_ROW | {"to_version": "2|<b>[x](y)\n"}]))
    line = as_markdown([row]).splitlines()[2]
    assert "2\\|\\<b\\>\\[x\\](y)\\\\n" in line


def test_markdown_says_which_release_ran_another_mix_of_tasks() -> None:
    told = as_markdown([{**_ROW, "to_version": "2|<b>"}]).splitlines()[-1]
    assert told == (
        "a 1 → 2\\|\\<b\\>: another mix of tasks than before (40% would have to be of other tasks): "
        "too few tasks are common to compare the same ones"
    )
    same = {**_ROW, "measure": SAME_TASKS}
    assert as_markdown([_ROW, same]).splitlines()[-1].endswith("see 'success, same tasks'")
    assert "another mix" not in as_markdown([{**_ROW, "is_mix_changed": False}])


_ROW = {
    "agent_id": "a", "dimension": "version", "from_version": "1", "to_version": "2", "measure": SUCCESS_RATE,
    "n_from": 100, "n_to": 100, "estimate_from": 0.9, "estimate_to": 0.8, "difference": -0.1,
    "low": -0.2, "high": -0.01, "margin": 0.02, "verdict": "worse", "more_runs": None,
    "released_at": "2026-06-07T00:00:00+00:00", "mix_shift": 0.4, "is_mix_changed": True,
}  # fmt: skip


# -- gate --------------------------------------------------------------------------------------------------------------


def test_a_worse_release_is_refused_with_its_reasons_as_junit(project: Project, tmp_path: Path) -> None:
    file = tmp_path / "gate.xml"
    code, text = said(project, "gate", "a", "--junit", str(file))
    assert code == REFUSED
    assert "success rate 98% → 60%, -38.0 points" in text
    assert "of the error budget is spent" in text
    suite = ET.fromstring(file.read_text(encoding="utf-8"))
    assert suite.attrib == {"name": "health-assets gate a", "tests": "2", "failures": "2", "skipped": "0"}
    assert [case.find("failure") is not None for case in suite] == [True, True]


def test_a_release_that_changed_nothing_may_go_on_unless_a_verdict_is_needed(project: Project) -> None:
    assert said(project, "gate", "b")[0] == PASSED
    assert said(project, "gate", "b", "--to", "2", "--measure", "runtime", "--needs-verdict")[0] == PASSED
    assert said(project, "gate", "b", "--needs-verdict")[0] == TOO_LITTLE_KNOWN
    assert said(project, "gate", "b", "--least-runs", "121")[0] == TOO_LITTLE_KNOWN


def test_without_a_comparison_the_gate_says_so(project: Project) -> None:
    code, text = said(project, "gate", "c")
    assert code == TOO_LITTLE_KNOWN
    assert "success_rate is not compared" in text


def test_a_spent_budget_stops_a_release_unless_it_is_left_out() -> None:
    fine = [_ROW | {"verdict": "better"}]
    assert exit_code_of(judged(fine, 1.0, GateRules())) == REFUSED
    assert exit_code_of(judged(fine, 0.99, GateRules())) == PASSED
    assert exit_code_of(judged(fine, None, GateRules())) == PASSED
    assert exit_code_of(judged(fine, 1.0, GateRules(looks_at_budget=False))) == PASSED


def test_what_is_against_a_release_counts_before_what_is_not_known() -> None:
    rules = GateRules(measures=[SUCCESS_RATE, "cost_per_success_usd"])
    assert exit_code_of(judged([_ROW], None, rules)) == REFUSED
    reasons = judged([_ROW | {"verdict": "better"}], None, rules)
    assert exit_code_of(reasons) == TOO_LITTLE_KNOWN
    assert ET.fromstring(as_junit("x", reasons)).attrib["skipped"] == "1"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("gate", "a", "--to", "3"), "a has no comparison of version '3'; compared: 2"),
        (
            ("gate", "a", "--measure", "speed"),
            "'speed' is no measure; those are success_rate, success_rate_same_tasks, tool_failure_share, loop_share, "
            "violation_share, runtime, latency_p50_ms, latency_p95_ms, tokens, cost_per_success_usd",
        ),
        (("gate", "a", "--junit", "/nowhere/gate.xml"), "cannot write /nowhere/gate.xml: No such file or directory"),
        (("gate", "a", "--hour", "2026-01-01T00"), "the hour 2026-01-01T00 has no scores"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_exit_code_2(
    project: Project, arguments: tuple[str, ...], told: str
) -> None:
    code, text = said(project, *arguments)
    assert code == 2
    assert told in " ".join(text.split())
