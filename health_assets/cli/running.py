"""Running the assets in this process, for the command line: which Dagster instance, one run, what came of it.

What belongs here: everything between "these hours, please" and an outcome. What does not: how it is shown
(`run_report`).
"""

import gc
import os
import tempfile
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg
from sqlalchemy.exc import OperationalError

from health_assets.cli.dagster_home import CONFIGURATION, EVENT_STORAGE, home_here, records_in
from health_assets.cli.failed_checks import FailedCheck
from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import KEY_FORMAT, HourGroups, HourRange
from health_assets.core.settings import Settings, load_settings
from health_assets.core.sql_memory import keep_compiled_sql
from health_assets.core.temporary import swept, temporary_folder
from health_assets.core.wording import counted
from health_assets.defs.build import JOB, build_definitions
from health_assets.defs.checks import FAILED_HOURS
from health_assets.defs.dagster_internals import MAX_RETRIES_TAG, SerializableErrorInfo, environ, instance_in
from health_assets.defs.partitions import hourly_partitions, hours_tags, named_hours_tags, only_partitions
from health_assets.defs.progress_logger import listening
from health_assets.defs.specs import READ_ANEW_TAG, RECORDS_TAG
from health_assets.defs.summaries import LOST, ODD, UNREADABLE
from health_assets.defs.turns.turns import Turn, ended_by_sigterm, this_command
from health_assets.pipeline.first_hour import EARLIEST
from health_assets.quality.evaluation import import_great_expectations
from health_assets.warehouse.engines.duckdb.shared import SharedDuckDB

QUIET: dict[str, Any] = {"loggers": {"progress": {}}}
NEVER_AGAIN = {MAX_RETRIES_TAG: "0"}
"""Tags of a run that Dagster is not to start again, since it did not start it."""
REASONS_SHOWN = 3
INTERRUPTIONS = ("DagsterExecutionInterruptedError", "KeyboardInterrupt")


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The outcome of a run.

    Args:
        hours: the hours asked for, with the holes between them.
        files_seen: raw logs below the raw root.
        files_read: raw logs that were read.
        lines_read: non-blank lines read; span lines only if rejected.
        spans_read: spans read.
        lines_rejected: lines and spans that were rejected.
        lines_superseded: lines that a later one of the same agent and id replaced.
        failed_checks: every failed check.
        error: one sentence when the run failed, else None.
        was_stopped: whether the run failed because it was asked to end.
        files_unreadable: raw logs, and folders of them, that could not be read, while all others were.
        folders_unreadable: folders among them, which could not be listed.
        unreadable: reasons, in a sentence for each of the first.
        all_rejected: the most frequent reason and its place, where lines were read and every one was rejected.
        lost: logs of which lines are lost because they were gone before, in a sentence for each of the first.
        odd: oddities of names, times and places of logs that no earlier run told, in sentences.
        secrets_redacted: secrets that were replaced in texts of lines and spans.
        lines_redacted: lines and spans that had any.
    """

    hours: HourRange | HourGroups
    files_seen: int
    files_read: int
    lines_read: int
    spans_read: int
    lines_rejected: int
    failed_checks: list[FailedCheck]
    error: str | None
    was_stopped: bool = False
    files_unreadable: int = 0
    folders_unreadable: int = 0
    unreadable: Sequence[str] = ()
    all_rejected: str = ""
    lost: Sequence[str] = ()
    odd: Sequence[str] = ()
    lines_superseded: int = 0
    secrets_redacted: int = 0
    lines_redacted: int = 0

    @property
    def faults(self) -> list[str]:
        """Sentences about faults that did not stop the run; each makes the exit code 1."""
        found = []
        if self.files_unreadable:
            more = self.files_unreadable - len(self.unreadable[:REASONS_SHOWN])
            reasons = [*self.unreadable[:REASONS_SHOWN], *([f"and {more:,} more"] if more else [])]
            files = self.files_unreadable - self.folders_unreadable
            told = [f"{counted(files, 'raw log')} could not be read"] if files else []
            if self.folders_unreadable:
                told.insert(0, f"{counted(self.folders_unreadable, 'folder')} could not be listed")
            found.append(f"{' and '.join(told)}; all others were loaded: {'; '.join(reasons)}")
        if self.all_rejected:
            found.append(f"every line that was read was rejected, most of them because: {self.all_rejected}")
        return found


def run_hours(
    settings: Settings,
    hours: HourRange | HourGroups,
    on_event: Callable[[dg.DagsterEvent], None],
    systems: Collection[str] = (),
    *,
    say: Callable[[str], None] = lambda _: None,
    read_anew: bool = False,
) -> Outcome:
    """Materialize the assets for these hours, with checks, as one Dagster run in this process.

    Args:
        settings: where logs, targets and warehouse are.
        hours: at least one hour; between them there may be holes.
        on_event: called with every event of the run.
        systems: scoring systems to materialize, keys of `SYSTEMS`; all where none is named.
        say: told which other run has to be waited for, if any.
        read_anew: whether every raw log is compared with what was read of it, whatever its size and times say.

    Raises:
        HealthAssetsError: the range is empty, or there is no such system.
        TurnTimeoutError: other runs went on writing to the warehouse.
    """
    if not len(hours):
        raise HealthAssetsError(f"there is no hour from {hours.start:%Y-%m-%dT%H} to {hours.end:%Y-%m-%dT%H}")
    groups = HourGroups(hours.ranges)
    import_great_expectations()
    run_id = str(uuid.uuid4())
    with (
        swept(),
        SharedDuckDB() as shared_duckdb,
        _instance(settings) as (instance, is_lasting),
        Turn(instance, settings, run_id, this_command(), say=say) as turn,
        listening(on_event),
        _modules_left_alone(),
    ):
        with ended_by_sigterm():
            turn.take()  # before there is a run in Dagster, so that one that waits holds up no queue
        partitions = _partitions(groups, settings) if is_lasting else hourly_partitions(HourRange.of(groups.span.start))
        definitions = build_definitions(settings, partitions, systems, shared_duckdb, turn, is_partitioned=is_lasting)
        job = definitions.resolve_job_def(JOB)
        tags = named_hours_tags(groups) | (hours_tags(groups) if is_lasting else {}) | NEVER_AGAIN
        tags |= {RECORDS_TAG: records_in(settings, os.environ)} | ({READ_ANEW_TAG: "true"} if read_anew else {})
        result = job.execute_in_process(
            instance=instance, tags=tags, run_config=QUIET, raise_on_error=False, run_id=run_id
        )
    keep_compiled_sql()
    return _outcome(result, hours)


@contextmanager
def turn_to_write(settings: Settings, say: Callable[[str], None]) -> Iterator[Turn]:
    """A turn for a command that is no run of Dagster's, so that it writes between two runs and not between their steps.

    Args:
        settings: whose warehouse it writes to.
        say: told which run has to be waited for, if any.
    """
    with (
        _instance(settings) as (instance, _),
        Turn(instance, settings, str(uuid.uuid4()), this_command(), say=say) as turn,
        ended_by_sigterm(),
    ):
        yield turn


def _partitions(hours: HourGroups, settings: Settings) -> dg.PartitionsDefinition:
    """Few partitions, since Dagster lists all of them for every check."""
    if hours.has_holes:
        return only_partitions(hours)
    return hourly_partitions(hours.span.extended_back(settings.reach_hours))


@contextmanager
def _modules_left_alone() -> Iterator[None]:
    """Let garbage collections pass over all that is imported by now, which stays anyway."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def step_count(settings: Settings, systems: Collection[str] = ()) -> int:
    """The number of steps of a run."""
    some_hour = HourRange.of(EARLIEST)  # the steps are the same for all
    return len(build_definitions(settings, some_hour, systems).resolve_job_def(JOB).nodes_in_topological_order)


@contextmanager
def _instance(settings: Settings) -> Iterator[tuple[dg.DagsterInstance, bool]]:
    """The user's Dagster instance, where the run is about the warehouse that it shows; else one for this run alone.

    It comes with whether it is the user's: the other's partitions nobody will ever see.

    Raises:
        HealthAssetsError: Dagster cannot keep its own records, for want of space.
    """
    try:
        with _opened_instance(settings) as opened:
            yield opened
    except (OSError, OperationalError) as error:
        folder = home_here(os.environ) or tempfile.gettempdir()
        raise HealthAssetsError(
            f"cannot keep Dagster's records of the run in {folder}, is the disk full? {str(error).splitlines()[0]}"
        ) from error


@contextmanager
def _opened_instance(settings: Settings) -> Iterator[tuple[dg.DagsterInstance, bool]]:
    is_own_warehouse = settings.warehouse == load_settings().warehouse
    with ExitStack() as stack:
        folder = str(stack.enter_context(temporary_folder("dagster-")))
        if is_own_warehouse and (home := home_here(os.environ)):
            stack.enter_context(environ({"DAGSTER_HOME": home}))
            yield stack.enter_context(dg.DagsterInstance.get()), True
        elif is_own_warehouse and Path(CONFIGURATION).exists():
            yield stack.enter_context(instance_in(folder, config_dir=str(Path.cwd()))), True
        else:
            overrides = {
                "telemetry": {"enabled": False},
                "event_log_storage": {**EVENT_STORAGE, "config": {"base_dir": f"{folder}/history/runs"}},
            }
            yield stack.enter_context(instance_in(folder, overrides=overrides)), False


def _outcome(result: dg.ExecuteInProcessResult, hours: HourRange | HourGroups) -> Outcome:
    failed = [_failed_check(evaluation) for evaluation in result.get_asset_check_evaluations() if not evaluation.passed]
    error, was_stopped = (None, False) if result.success else _first_error(result, failed)
    return Outcome(hours=hours, **_read_counts(result), failed_checks=failed, error=error, was_stopped=was_stopped)


def _hour_of(key: str) -> datetime:
    return datetime.strptime(key, KEY_FORMAT).replace(tzinfo=UTC)


def _failed_check(evaluation: dg.AssetCheckEvaluation) -> FailedCheck:
    count, hours = 0, []
    if told := evaluation.metadata.get(FAILED_HOURS):
        number, _, keys = str(told.value).partition(": ")
        count, hours = int(number), [_hour_of(key) for key in keys.split(", ")]
    return FailedCheck(
        asset=evaluation.asset_key.to_user_string(),
        name=evaluation.check_name,
        severity=evaluation.severity.value,
        unexpected=_number(evaluation.metadata, "unexpected_count"),
        hours=hours,
        hour_count=count,
    )


def _read_counts(result: dg.ExecuteInProcessResult) -> dict[str, Any]:
    names = (
        "files_seen", "files_read", "files_unreadable", "folders_unreadable", "lines_read", "spans_read",
        "lines_rejected", "lines_superseded", "secrets_redacted", "lines_redacted",
    )  # fmt: skip
    texts = {"unreadable": UNREADABLE, "all_rejected": "all_rejected", "lost": LOST, "odd": ODD}
    for event in result.get_asset_materialization_events():
        metadata = event.step_materialization_data.materialization.metadata
        if "lines_read" in metadata:
            told = {name: metadata[key].value for name, key in texts.items() if key in metadata}
            return {name: _number(metadata, name) for name in names} | told
    return dict.fromkeys(names, 0)


def _number(metadata: Mapping[str, Any], name: str) -> int:
    return int(metadata[name].value)


def _with_causes(error: SerializableErrorInfo | None) -> list[SerializableErrorInfo]:
    """An error and what it came from, the first cause last."""
    chain = []
    while error:
        chain.append(error)
        error = error.cause
    return chain


def _first_error(result: dg.ExecuteInProcessResult, failed_checks: list[FailedCheck]) -> tuple[str, bool]:
    """The first error in a sentence, and whether it is that the run was asked to end."""
    for event in result.get_step_failure_events():
        failure = event.step_failure_data
        if failure.user_failure_data and failure.user_failure_data.description:
            return failure.user_failure_data.description, False
        errors = _with_causes(failure.error)
        if any(error.cls_name in INTERRUPTIONS for error in errors):
            return f"stopped during {event.step_key}", True
        if errors and errors[-1].cls_name != "DagsterAssetCheckFailedError":
            return f"internal error in {event.step_key}: {errors[-1].to_string()}", False
    blocking = [
        f"{check.asset}.{check.name} ({counted(check.unexpected, 'row')})" for check in failed_checks if check.is_error
    ]
    return f"checks failed, so what follows was not materialized: {', '.join(blocking)}", False
