"""The command `run`: one process that makes new hours and late ones by itself, and ends when it is told to."""

import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ibis.expr.types import Table

from health_assets.cli import tick_inputs
from health_assets.cli import worker as worker_module
from health_assets.cli.dagster_home import write_home
from health_assets.cli.outcomes import Outcome, OutcomeCollector
from health_assets.cli.worker import Failure, Worker, run_worker
from health_assets.core.errors import HealthAssetsError, NoWarehouseError, WarehouseBusyError
from health_assets.core.formatting import seconds_of
from health_assets.core.hours import HOUR, HourGroups, HourRange, floor_hour
from health_assets.core.settings import Settings
from health_assets.pipeline.derived import Inputs
from health_assets.pipeline.ingest_report import IngestReport
from health_assets.systems.declared_assets import DERIVED, SYSTEMS
from health_assets.systems.due_hours import DueRun
from health_assets.warehouse.engines.duckdb.store import DuckDBFile
from health_assets_tests.support.clocks import settable_clock
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.ports import free_port
from health_assets_tests.support.projects import (
    FLEET,
    Project,
    assert_same_tables,
    command_environment,
    command_line,
    declared_systems,
)
from health_assets_tests.support.receivers import receiver

PATIENCE_S = 240
TABLES = ("executions", "agent_health", "system_health", "session_scores")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, None, 2, 4)


@pytest.fixture
def _few_systems() -> Iterator[None]:
    with declared_systems("agent_health_model", "agent_now"):
        yield


def wait_until(holds: Callable[[], bool], otherwise: str) -> None:
    until = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < until, otherwise
        time.sleep(0.5)


def run_of(number: int, hours_ago: int) -> str:
    return line(execution(f"e{number}", "planner", floor_hour(datetime.now(UTC)) - hours_ago * HOUR + HOUR / 2))


def is_there(project: Project, execution_id: str) -> Callable[[], bool]:
    def found() -> bool:
        sql = (
            "SELECT count(*) FROM system_health WHERE hour >= (SELECT min(hour) FROM executions WHERE execution_id = ?)"
        )
        try:
            [(scored,)] = project.query(sql, [execution_id])
        except NoWarehouseError:
            return False
        return scored > 0

    return found


@pytest.mark.parametrize(
    "ignored",
    [False, pytest.param(True, marks=pytest.mark.nightly)],
    ids=["as a command", "as a shell's background job"],
)
def test_it_makes_the_hours_of_the_logs_then_late_ones_and_ends_when_it_is_told_to(
    project: Project, ignored: bool
) -> None:
    project.write_log("a.jsonl", [run_of(n, n) for n in (3, 2)])
    arguments = ["run", "--every", "1s", "--raw", str(project.raw)]
    lengths = {"HEALTH_WINDOW_HOURS": "2", "HEALTH_LOOKBACK_HOURS": "4", "HEALTH_WAREHOUSE": project.warehouse_url}
    if ignored:  # runs in Dagster, which handles signals its own way
        write_home(project.folder / "dagster")
        lengths |= {"DAGSTER_HOME": str(project.folder / "dagster")}
    before = signal.signal(signal.SIGINT, signal.SIG_IGN) if ignored else signal.getsignal(signal.SIGINT)
    process = subprocess.Popen(
        command_line(*arguments), env=command_environment() | lengths, cwd=project.folder,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    signal.signal(signal.SIGINT, before)
    try:
        wait_until(is_there(project, "e2"), "no hour was made")
        project.write_log("late.jsonl", [run_of(4, 4), "bad"])
        wait_until(is_there(project, "e4"), "the late line counts nowhere")
    finally:
        process.send_signal(signal.SIGTERM)
        output, complaints = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, complaints
    assert "read 2 lines of 1 file, kept 2, rejected 0" in output
    assert complaints.splitlines()[-1] == "health-assets: stopped"


@pytest.mark.nightly
def test_what_it_leaves_is_what_a_clean_rebuild_makes_and_another_look_finds_nothing_to_do(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    worker = Worker(project.pipeline)
    worker.tick()
    worker.tick()
    assert capsys.readouterr().err.count("no raw log lies below") == 1, "it is said once"
    for number, lines in enumerate(([run_of(3, 3), run_of(2, 2)], [run_of(30, 3), "bad"], [run_of(4, 4)])):
        project.write_log(f"{number}.jsonl", lines)
        assert worker.tick() is False
    made = sorted(project.built_hours("system_health"))
    hours = HourRange(made[0], made[-1] + HOUR)
    clean = project.clean_rebuild(hours)
    assert_same_tables(project.tables(names=TABLES), clean.tables(names=TABLES))
    before = project.query("SELECT max(materialized_at) FROM partition_states")
    assert worker.tick() is False
    assert project.query("SELECT max(materialized_at) FROM partition_states") == before


TickAt = Callable[[float], None]
Tell = Callable[[str], None]


@pytest.fixture
def tick_at(project: Project, monkeypatch: pytest.MonkeyPatch) -> TickAt:
    """One worker, asked to look so many minutes after the beginning of the fourth hour."""
    set_clock, now = settable_clock(monkeypatch), [START]
    workers: list[Worker] = []

    def ticked(minute: float) -> None:
        now.append(START + 3 * HOUR + timedelta(minutes=minute))
        set_clock(now[-1])
        if not workers:  # the settings are those of the first look
            workers.append(Worker(replace(project.pipeline, clock=lambda: now[-1])))
        assert workers[-1].tick() is False

    return ticked


@pytest.fixture
def tell(project: Project, monkeypatch: pytest.MonkeyPatch) -> Tell:
    """Lets a webhook be told of incidents."""

    def told(url: str) -> None:
        alerts = project.folder / "alerts.yaml"
        alerts.write_text(f"channels: {{pager: {{type: webhook, url: '{url}'}}}}", encoding="utf-8")
        monkeypatch.setenv("HEALTH_ALERTS", str(alerts))

    return told


def log_runs(project: Project, name: str, minutes: Iterable[float], status: str) -> None:
    """Log runs of the agent `planner`, so many minutes after the beginning of the fourth hour."""
    first = START + 3 * HOUR
    runs = [execution(f"e{at}", "planner", first + timedelta(minutes=at), 5.0, status=status) for at in minutes]
    project.write_log(name, map(line, runs))


@pytest.fixture
def well(project: Project) -> Project:
    """With an agent that runs well until the sixth minute of the fourth hour."""
    log_runs(project, "well.jsonl", range(-60, 6, 3), "success")
    return project


def log_outage(project: Project) -> None:
    """Let it fail in the eighth minute, eight times."""
    log_runs(project, "outage.jsonl", (7 + place / 10 for place in range(8)), "failure")


@pytest.mark.usefixtures("_few_systems")
def test_a_tick_scores_the_hour_that_runs_and_tells_of_its_outage(
    project: Project, tell: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_clock, hour = settable_clock(monkeypatch), START + 3 * HOUR

    def runs(first: datetime, count: int, status: str) -> list[str]:
        moments = [first + place * timedelta(minutes=5) for place in range(count)]
        return [line(execution(f"e{moment}", "planner", moment, 5.0, status=status)) for moment in moments]

    def ticked(now: datetime) -> None:
        set_clock(now)
        assert Worker(replace(project.pipeline, clock=lambda: now)).tick() is False

    project.write_log("a.jsonl", runs(START, 36, "success"))
    with receiver() as pager:
        tell(pager.url)
        ticked(hour + timedelta(minutes=6))
        assert not pager.bodies
        project.write_log("b.jsonl", runs(hour + timedelta(minutes=7), 5, "failure"))
        ticked(hour + timedelta(minutes=28))
        assert "planner is failing: 5 of " in str(pager.bodies)
    scored = project.query("SELECT is_final, verdict FROM agent_now ORDER BY hour")
    assert scored[-1] == (False, "failing")
    before = project.query("SELECT max(materialized_at) FROM partition_states WHERE asset = 'agent_now'")
    ticked(hour + timedelta(minutes=29))
    ticked(hour + timedelta(minutes=66))
    assert project.query("SELECT is_final FROM agent_now ORDER BY hour") == [(True,)] * 4
    assert project.query("SELECT max(materialized_at) FROM partition_states WHERE asset = 'agent_now'") > before


def test_an_outage_is_told_before_the_systems_that_are_scored_less_often_follow(
    well: Project, tick_at: TickAt, tell: Tell
) -> None:
    with receiver() as pager, declared_systems("agent_health_model", "agent_now", "model_health", "agent_drift"):
        tell(pager.url)
        tick_at(6)  # the hours that are over
        tick_at(6.5)  # the running one, of all systems
        log_outage(well)
        tick_at(8)
        known = dict(well.query("SELECT asset, max(as_of) FROM partition_states GROUP BY asset"))
        assert known["agent_now"] > max(known["model_health"], known["drift"])
        assert "planner is failing: 8 of " in str(pager.bodies)


@contextmanager
def an_asset_fails(name: str, since: Callable[[], bool]) -> Iterator[None]:
    """Let the formula of an asset raise once `since` says so."""
    with declared_systems("agent_health_model", "agent_now", "model_health", "error_budget"):
        system = next(key for key, assets in SYSTEMS.items() if name in {asset.name for asset in assets})
        sound = DERIVED[name].rows

        def rows(inputs: Inputs) -> Table:
            if since():
                raise MemoryError("out of memory")
            return sound(inputs)

        broken = replace(DERIVED[name], rows=rows)
        SYSTEMS[system] = tuple(broken if asset.name == name else asset for asset in SYSTEMS[system])
        DERIVED[name] = broken
        yield


@pytest.mark.parametrize("asset", ["model_health", "error_budget"])
@pytest.mark.parametrize("is_at_once", [True, False], ids=["from the first run on", "later"])
def test_an_asset_that_cannot_be_made_hides_no_outage(
    well: Project, tick_at: TickAt, tell: Tell, asset: str, is_at_once: bool
) -> None:
    is_failing = [is_at_once]
    with receiver() as pager, an_asset_fails(asset, lambda: is_failing[-1]):
        tell(pager.url)
        tick_at(6)
        tick_at(6.5)
        is_failing.append(True)
        log_outage(well)
        tick_at(8)
        assert "planner is failing: 8 of " in str(pager.bodies)
        assert "hour_late" not in str(pager.bodies), "there are no earlier hours"


@pytest.mark.usefixtures("_few_systems")
def test_a_mistake_in_the_targets_stops_no_alerts(well: Project, tick_at: TickAt, tell: Tell) -> None:
    with receiver() as pager:
        tell(pager.url)
        well.write_targets({})
        tick_at(6)
        well.targets_path.write_text("defauts: {}", encoding="utf-8")
        tick_at(7)
        assert not pager.bodies
        tick_at(6 * 60)
        assert "hour_late" in str(pager.bodies)


@pytest.mark.usefixtures("_few_systems")
def test_a_mistake_in_the_alerts_leaves_the_rules_of_before_in_force_and_is_told_once(
    well: Project, tick_at: TickAt, tell: Tell, capsys: pytest.CaptureFixture[str]
) -> None:
    with receiver() as pager:
        tell(pager.url)
        tick_at(6)
        (well.folder / "alerts.yaml").write_text("rulse: {}", encoding="utf-8")
        log_outage(well)
        tick_at(8)
        tick_at(9)
        assert "planner is failing: 8 of " in str(pager.bodies)
    assert capsys.readouterr().err.count("rulse") == 1


def test_no_worker_starts_with_a_mistake_in_the_alerts(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    (project.folder / "alerts.yaml").write_text("rulse: {}", encoding="utf-8")
    monkeypatch.setenv("HEALTH_ALERTS", str(project.folder / "alerts.yaml"))
    with pytest.raises(HealthAssetsError, match="rulse"):
        run_worker(project.settings, 1.0)


@pytest.mark.usefixtures("_few_systems")
def test_a_channel_that_takes_no_message_is_named_once(
    well: Project, tick_at: TickAt, tell: Tell, capsys: pytest.CaptureFixture[str]
) -> None:
    tell(f"http://127.0.0.1:{free_port()}/")
    tick_at(6)
    log_outage(well)
    tick_at(8)
    tick_at(20)
    assert capsys.readouterr().err.count("alerts not delivered yet: pager: ") == 1


@pytest.mark.usefixtures("_few_systems")
def test_alerts_are_told_where_the_logs_cannot_be_read(project: Project, tell: Tell) -> None:
    project.write_log("a.jsonl", [line(execution("e1", "planner", START))])
    project.materialize(HourRange.of(START), only=FLEET)
    project.raw.rename(project.folder / "elsewhere")
    with receiver() as pager:
        tell(pager.url)
        later = datetime.now(UTC) + HOUR  # by then nobody is catching up
        assert Worker(replace(project.pipeline, clock=lambda: later)).tick() is False
        assert "hour_late" in str(pager.bodies)


@pytest.mark.usefixtures("_few_systems")
def test_without_the_setting_the_hour_that_runs_is_left_for_later(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEALTH_RUNNING_HOUR", "off")
    hour = START + HOUR
    project.write_log("a.jsonl", [line(execution("e1", "planner", START)), line(execution("e2", "planner", hour))])
    now = hour + timedelta(minutes=30)
    settable_clock(monkeypatch)(now)
    worker = Worker(replace(project.pipeline, clock=lambda: now))
    assert not (worker.tick() or worker.tick())
    assert project.built_hours("system_health") == {START}


@dataclass
class Runs:
    """The runs that a worker asks for, in place of which nothing is made."""

    due: list[DueRun]
    made: list[HourGroups] = field(default_factory=list)
    loaded: list[IngestReport | None] = field(default_factory=list)
    error: HealthAssetsError | None = None
    problem: str | None = None
    unreadable: int = 0

    def run_hours(
        self, settings: Settings, hours: HourGroups, *_: object, loaded: IngestReport | None, **__: object
    ) -> Outcome:
        del settings
        self.made.append(hours)
        self.loaded.append(loaded)
        if self.error:
            raise self.error
        outcome = OutcomeCollector().outcome(hours, self.problem)
        return replace(outcome, files_seen=1, files_unreadable=self.unreadable)


@pytest.fixture
def scored(project: Project) -> Project:
    project.write_log("a.jsonl", [run_of(n, n) for n in range(2, 12)])
    newest = floor_hour(datetime.now(UTC)) - 2 * HOUR
    project.materialize(HourRange(newest - 9 * HOUR, newest + HOUR), only=FLEET)
    return project


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    made = Runs([])
    monkeypatch.setattr(worker_module, "run_hours", made.run_hours)
    monkeypatch.setattr(worker_module, "due_hours", lambda *_: made.due)
    monkeypatch.setattr(worker_module, "FIRST_RETRY_S", worker_module.RETRY_S)
    return made


def due_run(hours_ago: int) -> DueRun:
    return DueRun(hours=HourGroups((HourRange.of(floor_hour(datetime.now(UTC)) - hours_ago * HOUR),)))


def test_a_run_that_cannot_begin_is_told_and_counts_as_failed_and_the_others_are_made(
    scored: Project, runs: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    runs.due, runs.error = [due_run(3), due_run(9)], HealthAssetsError("Dagster's records cannot be kept")
    worker = Worker(scored.pipeline)
    assert worker.tick() is False
    assert len(runs.made) == 2
    assert "Dagster's records cannot be kept" in capsys.readouterr().err
    assert worker.tick() is False
    assert len(runs.made) == 2, "they are left alone for a while"


def test_a_warehouse_that_is_busy_after_a_run_ends_nothing(
    scored: Project, runs: Runs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def busy(*_: object) -> None:
        raise WarehouseBusyError("the warehouse is held by another program")

    monkeypatch.setattr(worker_module, "print_outcome", busy)
    runs.due, runs.problem = [due_run(3)], "a check failed"
    worker = Worker(scored.pipeline)
    assert worker.tick() is worker.tick() is False
    assert len(runs.made) == 1
    assert "a check failed; the warehouse is held by another program" in capsys.readouterr().err


def test_what_failed_for_no_check_is_tried_again_soon_and_then_less_often(
    scored: Project, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 0.0
    monkeypatch.setattr(worker_module, "time", SimpleNamespace(monotonic=lambda: now_s))
    monkeypatch.setattr(worker_module, "FIRST_RETRY_S", 5.0)
    runs.due, runs.problem = [due_run(3)], "the warehouse is held by another program"
    worker, tried_at_s = Worker(scored.pipeline), []
    for second in range(80):
        now_s = float(second)
        before = len(runs.made)
        worker.tick()
        tried_at_s += [second] * (len(runs.made) - before)
    assert tried_at_s == [0, 5, 15, 35, 75]


def test_a_log_that_cannot_be_read_is_told_and_its_hours_are_not_left_alone(
    scored: Project, runs: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    runs.due, runs.unreadable = [due_run(3)], 1
    worker = Worker(scored.pipeline)
    assert worker.tick() is worker.tick() is False
    assert len(runs.made) == 2
    assert "1 raw log could not be read" in capsys.readouterr().err


@pytest.mark.parametrize(("minute", "is_over"), [(59, False), (60, True), (66, True)])
def test_an_hour_that_failed_while_it_ran_is_tried_again_when_it_is_over(minute: float, is_over: bool) -> None:
    failure = Failure(at=START + timedelta(minutes=55), at_s=time.monotonic(), wait_s=worker_module.RETRY_S)
    due = DueRun(hours=HourGroups((HourRange.of(START),)))
    assert failure.is_over(due, START + timedelta(minutes=minute)) is is_over
    later = Failure(at=START + timedelta(minutes=61), at_s=time.monotonic(), wait_s=worker_module.RETRY_S)
    assert not later.is_over(due, START + timedelta(minutes=66))


def test_what_failed_is_made_again_once_lines_touch_what_its_hours_look_back_on(scored: Project, runs: Runs) -> None:
    runs.due, runs.problem = [due_run(5)], "a check failed"
    worker = Worker(scored.pipeline)
    worker.tick()
    for number, hours_ago, tries in ((20, 3, 1), (21, 11, 1), (22, 5, 2), (23, 6, 3)):
        scored.write_log(f"{number}.jsonl", [run_of(number, hours_ago)])
        worker.tick()
        assert len(runs.made) == tries, f"a line of {hours_ago} hours ago"


def test_the_next_run_tells_of_all_lines_that_were_loaded_since_the_last(scored: Project, runs: Runs) -> None:
    worker = Worker(scored.pipeline)
    for number, text in enumerate((run_of(20, 2), "bad", "worse")):
        scored.write_log(f"{number}.jsonl", [text])
        worker.tick()
    runs.due = [due_run(3), due_run(9)]
    worker.tick()
    [loaded, nothing] = runs.loaded
    assert nothing is None
    assert loaded is not None
    assert (loaded.lines_read, loaded.rejected, loaded.main_rejection) == (3, 2, None)


@pytest.mark.parametrize(("text", "seconds"), [("30s", 30), (" 5m", 300), ("1h", 3600)])
def test_a_duration_is_a_number_and_a_unit(text: str, seconds: int) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "5", "0s", "-1m", "1.5h", "1d", "m"])
def test_what_is_no_duration_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(HealthAssetsError, match="is no duration like 30s, 5m or 1h"):
        seconds_of(text)


# -- ticks with nothing new --


@dataclass
class Opened:
    """How often the warehouse was opened."""

    count: int = 0


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Opened:
    found, connect = Opened(), DuckDBFile._connect

    def counted(self: DuckDBFile, mode: Any) -> Any:
        found.count += 1
        return connect(self, mode)

    monkeypatch.setattr(DuckDBFile, "_connect", counted)
    monkeypatch.setattr(tick_inputs, "SETTLED_NS", 0)
    return found


NOW = START + HOUR + timedelta(minutes=35)
"""Of the hour before it everything is there."""


class Ticks:
    """A worker, with a clock that says how many minutes have passed."""

    def __init__(self, project: Project, opened: Opened, set_clock: Callable[[datetime], None]) -> None:
        self._opened, self._set_clock, self._now = opened, set_clock, NOW
        self._worker = Worker(replace(project.pipeline, clock=lambda: self._now))

    def opens(self, minutes: float) -> bool:
        """Tick; gives whether the warehouse was opened."""
        self._now = NOW + timedelta(minutes=minutes)
        self._set_clock(self._now)
        before = self._opened.count
        assert self._worker.tick() is False
        return self._opened.count > before


@pytest.fixture
def ticks(project: Project, monkeypatch: pytest.MonkeyPatch, opened: Opened) -> Ticks:
    """A worker that has nothing to do."""
    set_clock = settable_clock(monkeypatch)
    ahead = line(execution("e9", "planner", NOW + timedelta(minutes=12)))
    project.write_log("a.jsonl", [line(execution("e1", "planner", START)), ahead])
    project.write_targets({})
    alerts = project.folder / "alerts.yaml"
    alerts.write_text("rules: {}", encoding="utf-8")
    monkeypatch.setenv("HEALTH_ALERTS", str(alerts))
    project.now = NOW
    set_clock(NOW)
    project.materialize(HourRange.of(START), only=[*FLEET, "agent_health_short", "now_components", "agent_now"])
    found = Ticks(project, opened, set_clock)
    assert found.opens(0), "it is the first"
    assert found.opens(2), "the hour is judged"
    assert found.opens(3), "that was noted"
    assert not found.opens(4)
    return found


@pytest.mark.usefixtures("runs")
def test_a_tick_publishes_what_a_run_before_it_did_not_and_says_once_why_it_cannot(
    scored: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = scored.folder / "published"
    folder.mkdir()
    (folder / "thesis.txt").write_text("mine")
    settings = scored.settings.model_copy(update={"published": folder})
    worker = Worker(replace(scored.pipeline, settings=settings))
    assert worker.tick() is worker.tick() is False
    assert capsys.readouterr().err.count("HEALTH_PUBLISHED must name a folder of its own") == 1
    (folder / "thesis.txt").unlink()
    assert worker.tick() is False
    assert (folder / "manifest.json").exists()


@pytest.mark.usefixtures("_few_systems")
def test_a_tick_with_nothing_new_opens_no_warehouse_until_anything_changes_that_it_follows_from(
    project: Project, ticks: Ticks
) -> None:
    alerts, minute = project.folder / "alerts.yaml", 4.0

    def retire() -> None:
        project.write_targets({"agents": {"planner": {"retired": True}}})

    def write() -> None:
        project.change("UPDATE partition_states SET rows = rows + 1")

    def rule() -> None:
        alerts.write_text("rules: {no_data: false}", encoding="utf-8")

    def touch() -> None:
        (project.raw / "a.jsonl").chmod(0o640)

    for change in (write, retire, rule, touch):
        assert not ticks.opens(minute), "nothing has changed"
        change()
        assert ticks.opens(minute), change.__name__
        minute += 0.1
        while ticks.opens(minute):
            assert minute < 6
            minute += 0.1
    assert not ticks.opens(minute)
    assert ticks.opens(3), "the clock was set back"


@pytest.mark.usefixtures("_few_systems")
def test_a_tick_looks_again_once_the_clock_makes_anything_due(project: Project, ticks: Ticks) -> None:
    assert not ticks.opens(6)
    assert ticks.opens(12), "an event is no longer in the future"
    assert project.query("SELECT count(*) FROM executions WHERE execution_id = 'e9'") == [(1,)]
    assert "planner" in str(project.query("SELECT agent_id FROM agent_now WHERE NOT is_final"))
    assert ticks.opens(13), "the running hour was made"
    assert not ticks.opens(14)
    assert ticks.opens(36), "an hour is over"


@pytest.mark.usefixtures("_few_systems")
def test_a_warehouse_that_was_written_a_moment_ago_is_looked_into_again(
    ticks: Ticks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tick_inputs, "SETTLED_NS", 600 * 10**9)
    assert ticks.opens(5)
