"""Receipts: a command with nothing new runs nothing and says the same; whatever is new, it runs."""

import json
import os
import shutil
import subprocess
import time
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import pytest

from health_assets.cli import receipts
from health_assets.cli.dagster_home import write_home
from health_assets.core import sql_memory
from health_assets.core.hours import HOUR, HourRange
from health_assets.core.user_cache import cache_folder
from health_assets.warehouse.file_ledger import FileLedger
from health_assets_tests.support.commands_here import command_here
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.projects import (
    FLEET,
    Project,
    assert_same_tables,
    command,
    hours_from,
    lasting_folder,
    materialize_arguments,
)

HOURS = hours_from(START, 2)
SYSTEM = "agent_health_model"
RAN, DID_NOT = "materialized in", "up to date, looked at in"

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def materialize(project: Project, *flags: str, environment: dict[str, str] | None = None) -> str:
    done = command_here(
        *materialize_arguments(project, HOURS, SYSTEM), *flags, environment=environment, folder=project.folder
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@cache
def logs_and_targets() -> Project:
    """A project with nothing materialized; change only copies, as of the next one."""
    project = Project(lasting_folder() / "project", {"agents": {"slow": {"expected_runtime_s": 1}}})
    records = [execution(f"e{n}", "slow", START + n * HOUR / 30, 60) for n in range(60)]
    project.write_log("a.jsonl", [*map(line, records), "not JSON"])
    project.write_log("b.jsonl", [line(execution("of b", "quick", START))])
    return project


@cache
def materialized() -> Project:
    project = logs_and_targets().copied(lasting_folder() / "project")
    project.materialize(HOURS, only=FLEET)
    return project


@pytest.fixture
def done(tmp_path: Path) -> Project:
    """A project of which the hours of one system are materialized, with a receipt as a command leaves it."""
    project = materialized().copied(tmp_path / "project")
    basis = basis_here(project)
    assert basis is not None
    receipts.leave_receipt(project.settings, basis, None, datetime.now(UTC))
    return project


def basis_here(project: Project, hours: HourRange = HOURS, system: str = SYSTEM) -> str | None:
    return receipts.basis_of(project.settings, hours, [system], datetime.now(UTC))


def is_up_to_date(project: Project) -> bool:
    return receipts.receipt_for(project.settings, basis_here(project)) is not None


def of_the_fleet(said: str) -> str:
    """What a command says behind the account of what it did."""
    return said[said.index("  these hours hold") :]


def test_the_same_hours_again_with_nothing_new_run_nothing_and_say_the_same_of_the_fleet(tmp_path: Path) -> None:
    project = materialized().copied(tmp_path / "project")
    assert RAN in materialize(project)
    before = project.warehouse_path.stat()
    said = materialize(project)
    assert DID_NOT in said and RAN not in said
    assert "every check passed; --force runs it again" in said
    after = project.warehouse_path.stat()
    assert (after.st_mtime_ns, after.st_size) == (before.st_mtime_ns, before.st_size)
    verdicts = "SELECT * FROM expectation_results ORDER BY ALL"
    tables, judged = project.tables(), project.query(verdicts)
    forced = materialize(project, "--force")
    assert RAN in forced
    assert "not valid JSON" in said
    assert of_the_fleet(said) == of_the_fleet(forced)
    assert judged and project.query(verdicts) == judged
    assert_same_tables(project.tables(), tables)


@pytest.mark.nightly
def test_all_systems_are_up_to_date_after_one_run_of_all(tmp_path: Path) -> None:
    project = logs_and_targets().copied(tmp_path / "project")
    arguments = materialize_arguments(project, HOURS)
    assert RAN in command_here(*arguments, folder=project.folder).stdout
    tables = project.tables()
    again = command_here(*arguments, folder=project.folder)
    assert (again.returncode, DID_NOT in again.stdout) == (0, True), again.stderr
    assert RAN in command_here(*arguments, "--force", folder=project.folder).stdout
    assert_same_tables(project.tables(), tables)


def test_a_command_with_nothing_new_imports_neither_dagster_nor_great_expectations(tmp_path: Path) -> None:
    project = materialized().copied(tmp_path / "project")
    assert RAN in materialize(project)
    environment = {"PYTHONPROFILEIMPORTTIME": "1"}
    told = command(*materialize_arguments(project, HOURS, SYSTEM), environment=environment, folder=project.folder)
    assert told.returncode == 0 and DID_NOT in told.stdout, told.stdout + told.stderr[-2000:]
    imported = {name.rpartition("|")[2].strip() for name in told.stderr.splitlines()}
    assert "duckdb" in imported
    assert not imported & {"dagster", "great_expectations", "pandas", "rapidfuzz", "scipy"}


def kept_receipts() -> Path:
    folder = cache_folder()
    assert folder is not None
    return folder / receipts.FILE


def test_whatever_a_command_compiles_is_kept_also_for_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for memory in sql_memory._memories:
        monkeypatch.setattr(memory, "_pieces", OrderedDict())
    project = materialized().copied(tmp_path / "project")
    assert RAN in materialize(project)
    assert [*kept_receipts().parent.glob("sql-*")]
    assert not any(memory._has_news for memory in sql_memory._memories)


# -- what is new -------------------------------------------------------------------------------------------------------


def a_log_comes(project: Project) -> None:
    project.write_log("late.jsonl", [line(execution("late", "slow", START))])


def a_log_of_another_hour_comes(project: Project) -> None:
    project.write_log("later.jsonl", [line(execution("later", "slow", START + 100 * HOUR))])


def a_log_grows(project: Project) -> None:
    with (project.raw / "b.jsonl").open("a") as file:
        file.write(line(execution("more of b", "quick", START)) + "\n")


def a_log_is_written_anew_with_as_many_bytes(project: Project) -> None:
    path = project.raw / "b.jsonl"
    path.write_text(path.read_text().replace("of b", "of c"))


def a_log_gets_another_name(project: Project) -> None:
    (project.raw / "b.jsonl").rename(project.raw / "c.jsonl")


def a_log_goes(project: Project) -> None:
    (project.raw / "b.jsonl").unlink()


def targets_change(project: Project) -> None:
    project.write_targets({"agents": {"slow": {"expected_runtime_s": 2}}})


def somebody_changes_a_row(project: Project) -> None:
    project.change("DELETE FROM agent_health")


def the_warehouse_goes(project: Project) -> None:
    project.warehouse_path.unlink()


def another_file_takes_its_place(project: Project) -> None:
    shutil.copy2(project.warehouse_path, project.folder / "copy")
    (project.folder / "copy").replace(project.warehouse_path)


def the_cache_goes(_: Project) -> None:
    shutil.rmtree(kept_receipts().parent)


def others_may_write_the_receipt(_: Project) -> None:
    kept_receipts().chmod(0o666)


def the_receipt_is_damaged(_: Project) -> None:
    kept_receipts().write_text("[")


def the_receipt_is_of_another_kind(_: Project) -> None:
    path = kept_receipts()
    [name] = json.loads(path.read_text())
    path.write_text(json.dumps({name: {"left_at": "today"}}))


NEWS = [
    a_log_comes, a_log_of_another_hour_comes, a_log_grows, a_log_is_written_anew_with_as_many_bytes,
    a_log_gets_another_name, a_log_goes, targets_change, somebody_changes_a_row, the_warehouse_goes,
    another_file_takes_its_place, the_cache_goes, others_may_write_the_receipt, the_receipt_is_damaged,
    the_receipt_is_of_another_kind,
]  # fmt: skip


@pytest.mark.parametrize("happens", NEWS, ids=lambda happens: happens.__name__)
def test_a_receipt_holds_no_longer_once_anything_is_new(done: Project, happens: Callable[[Project], None]) -> None:
    assert is_up_to_date(done)
    happens(done)
    assert not is_up_to_date(done)


def test_a_command_runs_where_somebody_has_changed_a_row_and_makes_it_anew(tmp_path: Path) -> None:
    project = materialized().copied(tmp_path / "project")
    assert RAN in materialize(project)
    scores = project.rows("agent_health")
    somebody_changes_a_row(project)
    assert RAN in materialize(project)
    assert project.rows("agent_health") == scores


def test_a_setting_another_hour_and_another_system_are_new(done: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    basis = basis_here(done)
    others = {basis_here(done, HourRange.of(START)), basis_here(done, system="model_health")}
    done.window_hours = 2
    others.add(basis_here(done))
    done.window_hours = 24
    monkeypatch.chdir(done.folder)
    others.add(basis_here(done))  # another folder may have another home of Dagster
    assert len({*others, basis}) == 5 and None not in others


def test_a_module_of_the_program_that_changes_is_new(done: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    copied = done.folder / "program"
    shutil.copytree(Path(receipts.__file__).parents[1], copied, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr("health_assets.__file__", str(copied / "__init__.py"))
    now = datetime.now(UTC)
    before = receipts.basis_of(done.settings, HOURS, (), now)
    assert receipts.basis_of(done.settings, HOURS, (), now) == before is not None
    os.utime(copied / "systems" / "suites.py")
    assert receipts.basis_of(done.settings, HOURS, (), now) != before


def test_events_that_were_in_the_future_are_read_once_their_time_has_come(tmp_path: Path) -> None:
    project = logs_and_targets().copied(tmp_path / "project")
    skew = {"HEALTH_CLOCK_SKEW_S": "0"}
    due = datetime.now(UTC) + timedelta(seconds=20)
    project.write_log("early.jsonl", [line(execution("early", "slow", due))])
    assert RAN in materialize(project, environment=skew)
    with project.warehouse.read() as session:
        ledger = FileLedger(session)
        assert [ledger.is_any_due(due + timedelta(seconds=seconds)) for seconds in (-1, 1)] == [False, True]
    assert DID_NOT in materialize(project, environment=skew), "this machine is too slow for the test's 20 s"
    time.sleep(max(0.0, (due - datetime.now(UTC)).total_seconds()) + 0.1)
    assert RAN in materialize(project, environment=skew)


# -- runs that leave no receipt ----------------------------------------------------------------------------------------


def test_a_check_that_fails_is_told_again_each_time(done: Project) -> None:
    done.change("UPDATE executions SET confidence = 7 WHERE execution_id = 'e3'")
    for _ in range(2):
        told: subprocess.CompletedProcess[str] = command_here(
            *materialize_arguments(done, HOURS, SYSTEM), folder=done.folder
        )
        assert told.returncode == 1
        assert "executions.shares_are_between_0_and_1" in told.stderr


def test_a_log_that_cannot_be_read_is_told_again_each_time(done: Project) -> None:
    (done.raw / "no.jsonl").symlink_to(done.raw / "nowhere")
    for _ in range(2):
        told = command_here(*materialize_arguments(done, HOURS, SYSTEM), folder=done.folder)
        assert told.returncode == 1
        assert "no.jsonl" in told.stderr


def test_hours_that_are_not_over_are_never_up_to_date(done: Project) -> None:
    within = HOURS.end - timedelta(seconds=1)
    assert receipts.basis_of(done.settings, HOURS, (), HOURS.end) is not None
    assert receipts.basis_of(done.settings, HOURS, (), within) is None


def test_a_warehouse_on_postgresql_has_no_receipt(done: Project) -> None:
    settings = done.settings.model_copy(update={"warehouse": "postgresql://somebody@host/health"})
    assert receipts.basis_of(settings, HOURS, (), datetime.now(UTC)) is None


def test_a_run_during_which_the_targets_change_leaves_no_receipt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from health_assets.defs.turns.turns import Turn

    project = logs_and_targets().copied(tmp_path / "project")
    taken = Turn.take

    def changed_while_waiting(turn: Turn) -> None:
        targets_change(project)
        taken(turn)

    with monkeypatch.context() as patched:
        patched.setattr(Turn, "take", changed_while_waiting)
        assert RAN in materialize(project)
    assert RAN in materialize(project)
    assert DID_NOT in materialize(project)


def test_of_very_many_warehouses_the_last_ones_have_receipts(done: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receipts, "MOST_RECEIPTS", 2)
    for name in ("a", "b"):
        settings = done.settings.model_copy(update={"warehouse": str(done.folder / name)})
        receipts.leave_receipt(settings, "some basis", None, datetime.now(UTC))
        assert receipts.receipt_for(settings, "some basis") is not None
        assert is_up_to_date(done) == (name == "a")


# -- Dagster's records -------------------------------------------------------------------------------------------------


def test_a_run_of_which_dagster_has_no_record_any_more_is_done_again(tmp_path: Path) -> None:
    project = logs_and_targets().copied(tmp_path / "project")
    home = tmp_path / "home"
    write_home(home)
    environment = {"DAGSTER_HOME": str(home), "HEALTH_WAREHOUSE": project.warehouse_url}
    assert RAN in materialize(project, environment=environment)
    assert DID_NOT in materialize(project, environment=environment)
    shutil.rmtree(home / "history")
    assert RAN in materialize(project, environment=environment)
