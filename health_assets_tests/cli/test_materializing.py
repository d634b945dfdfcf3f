"""The command `materialize` keeps what it compiled, for its run and for what it shows."""

from collections import OrderedDict
from pathlib import Path

import pytest

from health_assets.core import sql_memory
from health_assets.core.user_cache import cache_folder
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
