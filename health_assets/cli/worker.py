"""The command `run`: keep the tables up to date in one process, until it is stopped.

What belongs here: looking every so often, making what is due, saying what came of it. What does not: which hours are
due (`systems.due_hours`), one run (`running`), and what alerts tell (`apps.alerts`). Everything is imported once, so
that an hour costs its work alone.
"""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Generic, TypeVar

from health_assets.apps.alerts.config import Alerts, load_alerts
from health_assets.apps.alerts.evaluator import next_change_at
from health_assets.apps.alerts.tick_runner import tick as tick_alerts
from health_assets.cli.console import MOST_TOLD, console, say
from health_assets.cli.run_summary import print_outcome
from health_assets.cli.running import run_hours, write_lock_of_command
from health_assets.cli.tick_inputs import QuietTick, TickInputs
from health_assets.core.errors import HealthAssetsError, NoWarehouseError, WriteLockTimeoutError
from health_assets.core.interruption import ended_by_sigint, ended_by_sigterm
from health_assets.core.settings import Settings
from health_assets.core.targets import Targets
from health_assets.core.terminal import printable
from health_assets.pipeline.ingest_report import IngestReport
from health_assets.pipeline.log_ingestion import load_new_logs
from health_assets.pipeline.partition_selection import select_hours
from health_assets.pipeline.publishing import publish_if_configured
from health_assets.pipeline.resource import Pipeline
from health_assets.quality.validation import import_great_expectations
from health_assets.systems.due_hours import DueRun, due_hours, next_due_at, running_hour_due
from health_assets.warehouse.engines.duckdb.shared import SharedDuckDB
from health_assets.warehouse.partition_states import SCORED_ASSET, PartitionStates

RETRY_S = 3600.0
"""Hours of which a check failed are made again once new lines touch them, or after so long."""
FIRST_RETRY_S = 5.0
"""After another failure they are made again after so long, and then after twice as long each time, up to `RETRY_S`."""

Content = TypeVar("Content")

_log = logging.getLogger(__name__)


def run_worker(settings: Settings, every_s: float) -> None:
    """Look for what is due every so often, and make it, until SIGINT or SIGTERM.

    Args:
        settings: where logs, targets and warehouse are.
        every_s: seconds from the begin of a tick to that of the next.

    Raises:
        HealthAssetsError: the alerts file cannot be used.
    """
    if settings.alerts is not None:
        load_alerts(settings.alerts)  # a mistake is told now, and nothing runs without alerts
    import_great_expectations()
    worker = Worker(Pipeline(settings=settings))
    try:
        with ended_by_sigint(), ended_by_sigterm():
            while True:
                began_s = time.monotonic()
                if worker.tick():
                    break
                time.sleep(max(0.0, began_s + every_s - time.monotonic()))
    except (KeyboardInterrupt, SystemExit):
        pass
    say("stopped")


class OngoingProblem:
    """A problem that is printed when it begins or changes, and not again at each tick."""

    def __init__(self) -> None:
        self._sentence = ""

    @property
    def is_ongoing(self) -> bool:
        """Whether it was reported and not cleared since."""
        return bool(self._sentence)

    def report(self, sentence: str) -> None:
        """Print the sentence, unless it is the one that was printed last."""
        if sentence != self._sentence:
            say(printable(sentence, MOST_TOLD))
            self._sentence = sentence

    def clear(self) -> None:
        """Forget the problem, so that it is printed when it comes back."""
        self._sentence = ""


class LastUsable(Generic[Content]):
    """What a file says, or while it cannot be used, what it said before."""

    def __init__(self) -> None:
        self._content: Content | None = None

    def loaded(self, load: Callable[[], Content]) -> tuple[Content, HealthAssetsError | None]:
        """The content, and why it is that of before, where it is.

        Raises:
            HealthAssetsError: it cannot be loaded, and never could.
        """
        try:
            self._content = load()
        except HealthAssetsError as error:
            if self._content is None:
                raise
            return self._content, error
        return self._content, None


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A run that failed.

    Args:
        at: when, by the clock of the pipeline.
        at_s: when, by the monotonic clock.
        wait_s: how long its hours are left alone.
    """

    at: datetime
    at_s: float
    wait_s: float

    def is_over(self, due: DueRun, now: datetime) -> bool:
        """Whether its hours are to be tried again, also since they ran when it failed, and are over."""
        return time.monotonic() - self.at_s >= self.wait_s or self.at < due.hours.end <= now


class Worker:
    """Keeps the tables of a pipeline up to date.

    Args:
        pipeline: where logs, targets and warehouse are, and the clock.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._duckdb = SharedDuckDB()
        self._pipeline = replace(pipeline, shared_duckdb=self._duckdb)
        self._failed: dict[DueRun, Failure] = {}
        self._alerts = LastUsable[Alerts]()
        self._targets = LastUsable[Targets]()
        self._loaded: IngestReport | None = None
        """The report of what was loaded since the last run, which the next one checks."""
        self._due_problem = OngoingProblem()
        self._alerts_problem = OngoingProblem()
        self._publishing_problem = OngoingProblem()
        self._delivery_problem = OngoingProblem()
        self._is_published = False
        """Whether the last run published; a worker before this one may have been stopped."""
        self._quiet: QuietTick | None = None
        """The last tick, if it found nothing to do."""

    def tick(self) -> bool:
        """Load what is new in the logs, make what is due, and tell of it; gives whether a run was asked to end."""
        now, inputs = self._pipeline.clock(), TickInputs.of(self._pipeline.settings)
        if self._quiet is not None and self._quiet.holds(inputs, now):
            return False
        self._quiet = None
        due: list[DueRun] | None = None
        try:
            due = self._due()
        except HealthAssetsError as error:
            self._due_problem.report(str(error))
        else:
            self._due_problem.clear()
        is_ended = self._make_all(due or [])
        if not is_ended and not self._is_published:
            self._publish()
        is_failing = due is None or self._failed or self._alerts_problem.is_ongoing or not self._is_published
        if inputs is not None and not due and not is_failing:
            self._quiet = QuietTick(inputs=inputs, at=now, until=self._next_change_at(now))
        return is_ended

    def _make_all(self, due: Sequence[DueRun]) -> bool:
        """Make what is due, the running hour first, and tell of it; gives whether a run was asked to end."""
        for run in due:
            if self._make(run):
                return True
            self._alert()  # before the next, which may take long
        if not due:
            self._alert()  # also where nothing can be made: that is told then
        return False

    def _next_change_at(self, now: datetime) -> datetime:
        """The time at which the clock alone may give a tick something to do; `now` where that cannot be told."""
        settings = self._pipeline.settings
        try:
            with self._pipeline.read() as session:
                due_at = next_due_at(session, settings, now)
                if settings.alerts is None:
                    return due_at
                return min(due_at, next_change_at(session, load_alerts(settings.alerts), settings, now))
        except HealthAssetsError as error:
            _log.debug("the next tick looks again: %s", error)
            return now

    def _publish(self) -> None:
        """Publish what a run left unpublished."""
        try:
            publish_if_configured(self._pipeline.settings)
        except NoWarehouseError:
            return  # nothing was made yet
        except HealthAssetsError as error:
            self._publishing_problem.report(str(error))
        else:
            self._is_published = True
            self._publishing_problem.clear()

    def _alert(self) -> None:
        """Open and close incidents by what was made, and tell the channels."""
        settings, now = self._pipeline.settings, self._pipeline.clock()
        if settings.alerts is None:
            return
        try:
            alerts, mistake = self._alerts.loaded(partial(load_alerts, settings.alerts))
            targets, _ = self._targets.loaded(self._pipeline.load_targets)  # of a mistake `_due` tells
            done = tick_alerts(settings, alerts, targets, now)
            publish_if_configured(settings)
        except NoWarehouseError:
            return  # nothing was made yet
        except HealthAssetsError as error:
            self._alerts_problem.report(f"alerts: {error}")
        else:
            if mistake is None:
                self._alerts_problem.clear()
            else:
                self._alerts_problem.report(f"alerts: {mistake}; the rules of before are in force until it is mended")
            _log.info("alerts: %s", done)
            if done.sent.failed:
                self._delivery_problem.report(f"alerts not delivered yet: {'; '.join(done.sent.errors)}")
            elif done.sent.delivered:
                self._delivery_problem.clear()

    def _due(self) -> list[DueRun]:
        """Load what is new in the logs; gives what is due by then, without what failed a short while ago.

        Raises:
            HealthAssetsError: logs, targets or warehouse cannot be read, or the logs hold no event.
        """
        settings = self._pipeline.settings
        with write_lock_of_command(settings, say) as write_lock:
            pipeline = replace(self._pipeline, write_lock=write_lock)
            if _has_scores(pipeline):
                self._take(load_new_logs(pipeline))
                with pipeline.read() as session:
                    running = running_hour_due(session, settings, pipeline.clock()) if settings.running_hour else None
                    due = [*([running] if running else []), *due_hours(session, settings, pipeline.clock())]
            else:
                selection = select_hours(pipeline, None, None)
                self._take(selection.loaded)
                due = [DueRun(hours=selection.hours, only_stale=False)]
        self._failed = {run: self._failed[run] for run in due if run in self._failed}
        return [run for run in due if self._is_to_be_tried(run)]

    def _take(self, loaded: IngestReport | None) -> None:
        """Keep what was loaded for the next run, and try again what failed where it may come out otherwise now."""
        if loaded is None:
            return
        if loaded.has_read:
            _log.info("loaded %d lines and %d spans", loaded.lines_read, loaded.spans_read)
        back_hours = self._pipeline.settings.reach_hours - 1
        self._failed = {
            due: failure
            for due, failure in self._failed.items()
            if loaded.touched_hours.isdisjoint(due.hours.extended_back(back_hours))
        }
        self._loaded = loaded if self._loaded is None else loaded.after(self._loaded)

    def _is_to_be_tried(self, due: DueRun) -> bool:
        failure = self._failed.get(due)
        return failure is None or failure.is_over(due, self._pipeline.clock())

    def _make(self, due: DueRun) -> bool:
        """Make hours, and print what came of it; gives whether the run was asked to end."""
        began_s = time.monotonic()
        try:
            outcome = run_hours(
                self._pipeline.settings, due.hours, lambda _: None, due.systems,
                say=say, only_stale=due.only_stale, is_checked=due.is_checked, loaded=self._loaded,
                shared_duckdb=self._duckdb,
            )  # fmt: skip
        except WriteLockTimeoutError as error:  # before the run began: the next tick tries again
            self._due_problem.report(str(error))
            return False
        except HealthAssetsError as error:
            self._say_problems([str(error)])
            self._note_failure(due)
            return False
        self._is_published = outcome.publishing_error is None
        if outcome.was_stopped:
            return True
        if outcome.files_seen:  # else it ended before the logs were looked at
            self._loaded = None
        problems = outcome.problems
        console.print(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC")
        try:
            with self._pipeline.read() as session:
                print_outcome(console, outcome, session, time.monotonic() - began_s)
        except HealthAssetsError as error:
            problems = [*problems, str(error)]
        if problems:
            self._say_problems(problems)
        if outcome.error is None:  # faults of single logs, and of what follows the run, do not undo it
            self._failed.pop(due, None)
        else:
            self._note_failure(due, has_failed_check=any(check.is_error for check in outcome.failed_checks))
        return False

    def _say_problems(self, problems: Sequence[str]) -> None:
        say(printable("; ".join(dict.fromkeys(problems)), MOST_TOLD))

    def _note_failure(self, due: DueRun, *, has_failed_check: bool = False) -> None:
        """Leave the hours of a run that failed alone for a while."""
        before = self._failed.get(due)
        again_s = FIRST_RETRY_S if before is None else min(2 * before.wait_s, RETRY_S)
        self._failed[due] = Failure(
            at=self._pipeline.clock(), at_s=time.monotonic(), wait_s=RETRY_S if has_failed_check else again_s
        )


def _has_scores(pipeline: Pipeline) -> bool:
    try:
        with pipeline.read() as session:
            return PartitionStates(session).first(SCORED_ASSET) is not None
    except NoWarehouseError:
        return False
