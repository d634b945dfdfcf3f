"""A run of the command line in the user's Dagster, so that its pages show it and its runs share the write lock with it.

What belongs here: which Dagster instance, one run in this process, its error in a sentence. What does not: whether a
command's run goes into a Dagster at all (`running`).
"""

import os
import tempfile
import uuid
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
from sqlalchemy.exc import OperationalError

from health_assets.cli.dagster_home import home_here, records_in
from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HourGroups
from health_assets.core.interruption import ended_by_sigint, ended_by_sigterm
from health_assets.core.settings import Settings
from health_assets.core.temporary import temporary_folder
from health_assets.defs.build import JOB, build_definitions
from health_assets.defs.dagster_internals import MAX_RETRIES_TAG, SerializableErrorInfo, environ, instance_in
from health_assets.defs.partitions import hourly_partitions, hours_tags, named_hours_tags, only_partitions
from health_assets.defs.specs import FULL_REFRESH_TAG, ONLY_STALE_TAG, RECORDS_TAG
from health_assets.defs.write_lock.write_lock import WriteLock, this_command
from health_assets.pipeline.resource import Pipeline

NEVER_AGAIN = {MAX_RETRIES_TAG: "0"}
"""Tags of a run that Dagster is not to start again, since it did not start it."""
QUIET: dict[str, Any] = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
INTERRUPTIONS = ("DagsterExecutionInterruptedError", "KeyboardInterrupt")


def run_in_dagster(
    pipeline: Pipeline,
    hours: HourGroups,
    systems: Collection[str],
    say: Callable[[str], None],
    *,
    full_refresh: bool,
    only_stale: bool,
) -> tuple[str | None, bool]:
    """Make a run in the user's Dagster.

    Args:
        pipeline: the resource, but for the write lock.
        hours: the hours.
        systems: scoring systems to materialize; all where none is named.
        say: told which other run has to be waited for, if any.
        full_refresh: whether every raw log is compared with what was read of it.
        only_stale: whether components that are up to date are left alone and new targets not applied; scores
            are made in any case.

    Returns:
        Why it failed, where it did for another reason than a check, and whether it was asked to end.

    Raises:
        HealthAssetsError: Dagster cannot keep its records, or there is no such system.
        WriteLockTimeoutError: other runs went on writing to the warehouse.
    """
    settings, run_id = pipeline.settings, str(uuid.uuid4())
    with (
        ended_by_sigint(),
        instance_here() as instance,
        WriteLock(instance, settings, run_id, this_command(), say=say) as write_lock,
    ):
        with ended_by_sigterm():
            write_lock.take()  # before there is a run in Dagster, so that one that waits holds up no queue
        own = replace(pipeline, write_lock=write_lock)
        definitions = build_definitions(settings, _partitions(hours, settings), systems, own)
        job = definitions.resolve_job_def(JOB)
        tags = named_hours_tags(hours) | hours_tags(hours) | NEVER_AGAIN
        tags |= {RECORDS_TAG: records_in(settings, os.environ)} | ({FULL_REFRESH_TAG: "true"} if full_refresh else {})
        tags |= {ONLY_STALE_TAG: "true"} if only_stale else {}
        result = job.execute_in_process(
            instance=instance, tags=tags, run_config=QUIET, raise_on_error=False, run_id=run_id
        )
    return (None, False) if result.success else _first_error(result)


@contextmanager
def write_lock_among_runs(settings: Settings, say: Callable[[str], None]) -> Iterator[WriteLock]:
    """The write lock for a command that is no run of Dagster's: it writes between two runs, not between their steps.

    Args:
        settings: whose warehouse it writes to.
        say: told which run has to be waited for, if any.
    """
    with (
        instance_here() as instance,
        WriteLock(instance, settings, str(uuid.uuid4()), this_command(), say=say) as write_lock,
        ended_by_sigterm(),
    ):
        yield write_lock


def _partitions(hours: HourGroups, settings: Settings) -> dg.PartitionsDefinition:
    """Few partitions, since Dagster lists all of them for every check."""
    if hours.has_holes:
        return only_partitions(hours)
    return hourly_partitions(hours.span.extended_back(settings.reach_hours))


def _with_causes(error: SerializableErrorInfo | None) -> list[SerializableErrorInfo]:
    """An error and what it came from, the first cause last."""
    chain = []
    while error:
        chain.append(error)
        error = error.cause
    return chain


def _first_error(result: dg.ExecuteInProcessResult) -> tuple[str | None, bool]:
    """The first error that is no failed check's, in a sentence, and whether it is that the run was asked to end."""
    failures = result.get_step_failure_events()
    for event in failures:
        failure = event.step_failure_data
        if failure.user_failure_data and failure.user_failure_data.description:
            return failure.user_failure_data.description, False
        errors = _with_causes(failure.error)
        if any(error.cls_name in INTERRUPTIONS for error in errors):
            return f"stopped during {event.step_key}", True
        if errors and errors[-1].cls_name != "DagsterAssetCheckFailedError":
            return f"internal error in {event.step_key}: {errors[-1].to_string()}", False
    return (None, False) if failures else _error_outside_steps(result)


def _error_outside_steps(result: dg.ExecuteInProcessResult) -> tuple[str, bool]:
    """The error of a run that failed before its first step or behind its last."""
    for event in result.all_events:
        if event.event_type == dg.DagsterEventType.RUN_CANCELED:
            return "stopped before its first step", True
        if event.event_type == dg.DagsterEventType.RUN_FAILURE:
            errors = _with_causes(event.job_failure_data.error)
            if any(error.cls_name in INTERRUPTIONS for error in errors):
                return "stopped before its first step", True
            return f"internal error: {errors[-1].to_string() if errors else event.message}", False
    raise RuntimeError("the run did not succeed, and Dagster does not say why")


@contextmanager
def instance_here() -> Iterator[dg.DagsterInstance]:
    """The user's Dagster instance.

    Raises:
        HealthAssetsError: Dagster cannot keep its own records, for want of space.
    """
    try:
        with ExitStack() as stack:
            if home := home_here(os.environ):
                stack.enter_context(environ({"DAGSTER_HOME": home}))
                yield stack.enter_context(dg.DagsterInstance.get())
            else:
                folder = str(stack.enter_context(temporary_folder("dagster-")))
                yield stack.enter_context(instance_in(folder, config_dir=str(Path.cwd())))
    except (OSError, OperationalError) as error:
        folder = home_here(os.environ) or tempfile.gettempdir()
        raise HealthAssetsError(
            f"cannot keep Dagster's records of the run in {folder}, is the disk full? {str(error).splitlines()[0]}"
        ) from error
