"""Running the steps in this process, for the command line: in the user's Dagster where there is one, else without any.

What belongs here: everything between "these hours, please" and an outcome. What does not: how it is shown
(`run_summary`), and Dagster itself (`dagster_run`), which a run without one never imports.
"""

import gc
import os
import traceback
import uuid
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace

from health_assets.apps.lineage.open_lineage import is_wanted, lineage
from health_assets.cli.dagster_home import records_in
from health_assets.cli.outcomes import Outcome, OutcomeCollector
from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HourGroups, HourRange
from health_assets.core.interruption import ended_by_sigterm
from health_assets.core.settings import Settings
from health_assets.core.sql_memory import keep_compiled_sql
from health_assets.core.temporary import swept
from health_assets.pipeline import engine
from health_assets.pipeline.events import Event
from health_assets.pipeline.fingerprints import RECORDS
from health_assets.pipeline.ingest_report import IngestReport
from health_assets.pipeline.plan import Plan
from health_assets.pipeline.publishing import publish_if_configured
from health_assets.pipeline.resource import Pipeline
from health_assets.systems.declared_assets import SYSTEMS, require_known_systems
from health_assets.systems.graph import declared_graph
from health_assets.warehouse.engines.duckdb.shared import SharedDuckDB
from health_assets.warehouse.fingerprints import INGEST_CHECKS
from health_assets.warehouse.store import Guard


def run_hours(
    settings: Settings,
    hours: HourRange | HourGroups,
    on_event: Callable[[Event], None],
    systems: Collection[str] = (),
    *,
    say: Callable[[str], None] = lambda _: None,
    full_refresh: bool = False,
    only_stale: bool = False,
    is_checked: bool = True,
    loaded: IngestReport | None = None,
    shared_duckdb: SharedDuckDB | None = None,
) -> Outcome:
    """Materialize the assets for these hours, with checks, as one run in this process.

    Args:
        settings: where logs, targets and warehouse are.
        hours: at least one hour; between them there may be holes.
        on_event: called with every event of the run.
        systems: scoring systems to materialize, keys of `SYSTEMS`; all where none is named.
        say: told which other run has to be waited for, if any.
        full_refresh: whether every raw log is compared with what was read of it, whatever its size and times say.
        only_stale: whether hours are left alone whose inputs have not changed since they were made.
        is_checked: whether the suites of the assets are evaluated; in Dagster, they always are.
        loaded: report of logs that were loaded just before.
        shared_duckdb: the DuckDB that the sessions share; by default one of the run's own.

    Raises:
        HealthAssetsError: the range is empty, or there is no such system.
        WriteLockTimeoutError: other runs went on writing to the warehouse.
    """
    if not len(hours):
        raise HealthAssetsError(f"there is no hour from {hours.start:%Y-%m-%dT%H} to {hours.end:%Y-%m-%dT%H}")
    plan = plan_of(
        HourGroups(hours.ranges), systems, full_refresh=full_refresh, only_stale=only_stale, is_checked=is_checked
    )
    collector = OutcomeCollector()

    def take(event: Event) -> None:
        collector.on_event(event)
        on_event(event)

    with swept(), SharedDuckDB() as own_duckdb, _modules_left_alone():
        pipeline = Pipeline(settings=settings, shared_duckdb=shared_duckdb or own_duckdb, loaded=loaded)
        if records_in(settings, os.environ):
            from health_assets.cli.dagster_run import run_in_dagster

            of_dagster = replace(pipeline, on_event=take)
            error, was_stopped = run_in_dagster(
                of_dagster, plan.hours, systems, say, full_refresh=full_refresh, only_stale=only_stale
            )
        else:
            error, was_stopped = _run_here(pipeline, plan, take, collector)
        if not was_stopped:  # by Dagster, too: its last asset is left out where a step before it fails
            collector.publishing_error = _publish(settings)
    keep_compiled_sql()
    return collector.outcome(hours, error, was_stopped=was_stopped)


def _publish(settings: Settings) -> str | None:
    """Publish the tables where that is wanted; gives why it failed."""
    try:
        publish_if_configured(settings)
    except HealthAssetsError as error:
        return str(error)
    except Exception:
        return f"internal error while the tables were published: {traceback.format_exc()}"
    return None


def _run_here(
    pipeline: Pipeline, plan: Plan, take: Callable[[Event], None], collector: OutcomeCollector
) -> tuple[str | None, bool]:
    """Run the steps without Dagster; gives why they failed, and whether they were asked to end."""
    try:
        named = replace(pipeline, run=f"run {uuid.uuid4()}")
        with ended_by_sigterm(), lineage(named, plan) as tell_lineage:
            for event in engine.run(named, declared_graph(), plan):
                tell_lineage(event)
                take(event)
    except HealthAssetsError as error:
        return str(error), False
    except (KeyboardInterrupt, SystemExit):
        return f"stopped during {collector.step}", True
    except Exception:
        step = next(iter(collector.failed_steps), collector.step)
        return f"internal error in {step}: {traceback.format_exc()}", False
    return None, False


def plan_of(
    hours: HourGroups,
    systems: Collection[str] = (),
    *,
    full_refresh: bool = False,
    only_stale: bool = False,
    is_checked: bool = True,
) -> Plan:
    """The plan of all assets of these systems, or of all, with their checks.

    Checks of no suite are always among them: they are about what the run reads.

    Raises:
        HealthAssetsError: there is no such system.
    """
    require_known_systems(systems, SYSTEMS)
    graph = declared_graph()
    assets = [*RECORDS, *(asset.name for system in systems or SYSTEMS for asset in SYSTEMS[system])]
    return Plan(
        hours=hours,
        assets=set(assets),
        checks={asset: graph.check_names(asset) for asset in assets} if is_checked else {"raw_logs": INGEST_CHECKS},
        full_refresh=full_refresh,
        only_stale=only_stale,
        has_summaries=is_wanted(os.environ),  # which count the rows
    )


def step_count(hours: HourRange | HourGroups, systems: Collection[str] = ()) -> int:
    """The number of steps of a run."""
    return len(engine.planned_steps(declared_graph(), plan_of(HourGroups(hours.ranges), systems)))


@contextmanager
def write_lock_of_command(settings: Settings, say: Callable[[str], None]) -> Iterator[Guard | None]:
    """The write lock for a command that is no run, so that it writes between two runs and not between their steps.

    Args:
        settings: whose warehouse it writes to.
        say: told which run has to be waited for, if any.

    Returns:
        The lock; None where no Dagster has runs of this warehouse.
    """
    if not records_in(settings, os.environ):
        with ended_by_sigterm():
            yield None
        return
    from health_assets.cli.dagster_run import write_lock_among_runs

    with write_lock_among_runs(settings, say) as write_lock:
        yield write_lock


@contextmanager
def _modules_left_alone() -> Iterator[None]:
    """Let garbage collections pass over all that is imported by now, which stays anyway."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
