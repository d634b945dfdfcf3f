"""The command `materialize`: what it keeps of what it compiled, and what it says of a run that failed halfway."""

from collections import OrderedDict
from pathlib import Path

import pytest
from ibis import ir

from health_assets.core import sql_memory
from health_assets.core.errors import HealthAssetsError
from health_assets.core.user_cache import cache_folder
from health_assets.pipeline import system_step
from health_assets.pipeline.derived import Derived, Inputs, rows_of
from health_assets_tests.support.commands_here import command_here
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.projects import Project, hours_from, materialize_arguments


def test_whatever_a_command_compiles_is_kept_also_for_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for memory in sql_memory._memories:
        monkeypatch.setattr(memory, "_pieces", OrderedDict())
    project = Project(tmp_path / "project")
    project.write_log("a.jsonl", [line(execution("e", "coder", START))])
    arguments = materialize_arguments(project, hours_from(START, 1), "agent_health_model")
    done = command_here(*arguments, folder=project.folder)
    assert done.returncode == 0, done.stderr
    folder = cache_folder()
    assert folder is not None and [*folder.glob("sql-*")]
    assert not any(memory._has_news for memory in sql_memory._memories)


def test_a_run_that_fails_halfway_is_one_sentence_and_no_report_also_where_checks_warned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A report would show scores of before beside the lines that were just read."""
    project = Project(tmp_path / "project")
    project.write_log("a.jsonl", [line(execution("e", "coder", START)), "broken", "broken, too"])

    def away(derived: Derived, inputs: Inputs) -> ir.Table:
        if derived.name == "agent_health":
            raise HealthAssetsError("the cluster went away")
        return rows_of(derived, inputs)

    monkeypatch.setattr(system_step, "rows_of", away)
    arguments = materialize_arguments(project, hours_from(START, 1), "agent_health_model")
    done = command_here(*arguments, folder=project.folder)
    assert done.returncode == 1
    assert "the cluster went away; steps before it are kept, tables of later ones are as they were: run it again" in (
        " ".join(done.stderr.split())
    )
    assert "materialized in" not in done.stdout and "Fleet" not in done.stdout
    monkeypatch.undo()
    done = command_here(*arguments, folder=project.folder)
    assert done.returncode == 0, done.stderr
    assert "materialized in" in done.stdout and "few_lines_are_rejected" in done.stdout
