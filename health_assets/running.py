"""Running the assets in this process, for the command line: which Dagster instance, one run, what came of it.

What belongs here: everything between "these hours, please" and an outcome. What does not: how it is shown (`report`).
"""

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
from dagster._core.instance.ref import InstanceRef

from health_assets.defs.assets import RECORD_TABLES
from health_assets.defs.build import JOB, build_definitions
from health_assets.defs.partitions import hours_tags
from health_assets.defs.progress import listening
from health_assets.errors import HealthAssetsError
from health_assets.hours import HourRange
from health_assets.settings import Settings

QUIET = {"loggers": {"progress": {}}}
EVENT_STORAGE = {"module": "health_assets.defs.event_storage", "class": "BatchingSqliteEventLogStorage"}


@dataclass(frozen=True)
class Outcome:
    """What a run did.

    Args:
        hours: the hours asked for.
        elapsed_s: how long it took, without interpreter start and imports.
        files_read: raw logs read.
        lines_read: lines read that are not blank.
        lines_rejected: lines among them that were rejected.
        failed_checks: (asset, check, severity, rows that break it) of every failed check.
        error: one sentence when the run failed, else None.
    """

    hours: HourRange
    elapsed_s: float
    files_read: int
    lines_read: int
    lines_rejected: int
    failed_checks: list[tuple[str, str, str, int]]
    error: str | None


def run_hours(settings: Settings, hours: HourRange, on_event: Callable[[dg.DagsterEvent], None]) -> Outcome:
    """Materialise every asset for these hours, with checks, as one Dagster run in this process.

    Args:
        settings: where logs, targets and warehouse are.
        hours: at least one hour.
        on_event: called with every event of the run.

    Raises:
        HealthAssetsError: the range is empty.
    """
    if not len(hours):
        raise HealthAssetsError(f"there is no hour from {hours.start:%Y-%m-%dT%H} to {hours.end:%Y-%m-%dT%H}")
    # few partitions: Dagster lists all of them for every check
    definitions = build_definitions(settings, hours.extended_back(settings.lookback_hours))
    job = definitions.resolve_job_def(JOB)
    with _instance(settings) as instance, listening(on_event):
        start = time.perf_counter()
        result = job.execute_in_process(
            instance=instance, tags=hours_tags(hours), run_config=QUIET, raise_on_error=False
        )
        elapsed_s = time.perf_counter() - start
    return _outcome(result, hours, elapsed_s)


def step_count(settings: Settings) -> int:
    """How many steps a run has."""
    return len(build_definitions(settings).resolve_job_def(JOB).nodes_in_topological_order)


@contextmanager
def _instance(settings: Settings) -> Iterator[dg.DagsterInstance]:
    """The user's Dagster instance, where the run is about the warehouse that it shows; else one for this run alone."""
    is_own_warehouse = settings.warehouse == Settings().warehouse
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="health-assets-dagster-"))
        if is_own_warehouse and os.getenv("DAGSTER_HOME"):
            yield stack.enter_context(dg.DagsterInstance.get())
        elif is_own_warehouse and Path("dagster.yaml").exists():
            ref = InstanceRef.from_dir(folder, config_dir=str(Path.cwd()))
            yield stack.enter_context(dg.DagsterInstance.from_ref(ref))
        else:
            overrides = {
                "telemetry": {"enabled": False},
                "event_log_storage": {**EVENT_STORAGE, "config": {"base_dir": f"{folder}/history/runs"}},
            }
            yield stack.enter_context(dg.DagsterInstance.from_ref(InstanceRef.from_dir(folder, overrides=overrides)))


def _outcome(result: dg.ExecuteInProcessResult, hours: HourRange, elapsed_s: float) -> Outcome:
    read = {"files_read": 0, "lines_read": 0, "lines_rejected": 0}
    for event in result.get_asset_materialization_events():
        if event.asset_key.to_user_string() in RECORD_TABLES:
            metadata = event.step_materialization_data.materialization.metadata
            if "lines_read" in metadata:
                read = {name: metadata[name].value for name in read}
                break
    failed = [
        (
            evaluation.asset_key.to_user_string(),
            evaluation.check_name,
            evaluation.severity.value,
            evaluation.metadata["unexpected_count"].value,
        )
        for evaluation in result.get_asset_check_evaluations()
        if not evaluation.passed
    ]
    return Outcome(
        hours, elapsed_s, **read, failed_checks=failed, error=None if result.success else _first_error(result, failed)
    )


def _first_error(result: dg.ExecuteInProcessResult, failed_checks: list[tuple[str, str, str, int]]) -> str:
    for event in result.get_step_failure_events():
        failure = event.step_failure_data
        if failure.user_failure_data and failure.user_failure_data.description:
            return failure.user_failure_data.description
        error = failure.error
        while error.cause:
            error = error.cause
        if "DagsterAssetCheckFailedError" not in (error.cls_name or ""):
            return f"internal error in {event.step_key}: {error.to_string()}"
    errors = [
        f"{asset}.{check} ({count} rows)" for asset, check, severity, count in failed_checks if severity == "ERROR"
    ]
    return f"checks failed, so what follows was not materialised: {', '.join(errors)}"
