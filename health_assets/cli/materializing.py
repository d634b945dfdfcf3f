"""The command `materialize` from its hours to its last line: the hours, the run, the report.

What belongs here: the order of these steps. What does not: flags (`commands`), the run (`running`), and what is printed
of it (`run_summary`, `progress_bar`).

Each step imports what it needs, since Dagster and Great Expectations take seconds.
"""

import logging
import os
import time
from collections.abc import Collection
from contextlib import AbstractContextManager, ExitStack, nullcontext
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from health_assets.cli.console import MOST_TOLD, console, say
from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import EVER, HourGroups, HourRange
from health_assets.core.importing import without_collections
from health_assets.core.terminal import printable

if TYPE_CHECKING:
    from health_assets.core.settings import Settings
    from health_assets.pipeline.ingest_report import IngestReport
    from health_assets.pipeline.partition_selection import PartitionSelection
    from health_assets.warehouse.store import Guard

_log = logging.getLogger(__name__)
NOT_AS_A_WHOLE = "steps before it are kept, tables of later ones are as they were: run it again"


def hours_asked_for(
    settings: "Settings", start: str | None, end: str | None, *, full_refresh: bool = False
) -> "PartitionSelection":
    """The hours named, from and to those of the logs where one is not; tells how they were chosen.

    Args:
        settings: where the logs and the warehouse are.
        start: the first hour, as it was named.
        end: the hour to stop before, as it was named.
        full_refresh: whether every raw log is read where the logs tell the hours.

    Raises:
        HealthAssetsError: as of `pipeline.partition_selection`, or somebody stopped it.
    """
    with console.status("looking at the logs") as status:
        with without_collections():
            from health_assets.logs.progress import listening
            from health_assets.pipeline.partition_selection import select_hours
            from health_assets.pipeline.resource import Pipeline

        write_lock = nullcontext(None) if start and end else _write_lock_to_load(settings)
        try:
            with listening(lambda read: status.update(f"loading the logs: {read}")), write_lock as guard:
                pipeline = Pipeline(settings=settings, write_lock=guard)
                wanted = select_hours(pipeline, start, end, full_refresh=full_refresh)
        except (KeyboardInterrupt, SystemExit):
            raise HealthAssetsError("stopped while logs were loaded, of which nothing was kept; run it again") from None
    for sentence in wanted.notices:
        console.print(printable(sentence, MOST_TOLD), soft_wrap=True, markup=False, highlight=False)
    return wanted


def _write_lock_to_load(settings: "Settings") -> AbstractContextManager["Guard | None"]:
    from health_assets.cli.running import write_lock_of_command

    return write_lock_of_command(settings, say)


def materialize_hours(
    settings: "Settings",
    hours: HourRange | HourGroups,
    since: float,
    systems: Collection[str] = (),
    *,
    full_refresh: bool = False,
    loaded: "IngestReport | None" = None,
) -> None:
    """Materialize what is not up to date, and show what came of it.

    Args:
        settings: where logs, targets and warehouse are.
        hours: the hours.
        since: when the user began to wait, by the monotonic clock.
        systems: the scoring systems; all where none is named.
        full_refresh: whether to make a run although it could change nothing, in which every raw log is read.
        loaded: report of logs that were loaded just before, to find out the hours.

    Raises:
        HealthAssetsError: the run failed, or met faults that did not stop it.
    """
    if full_refresh or loaded or not _show_what_is_up_to_date(settings, hours, since, systems):
        _run(settings, hours, since, systems, full_refresh=full_refresh, loaded=loaded)


def _show_what_is_up_to_date(
    settings: "Settings", hours: HourRange | HourGroups, since: float, systems: Collection[str]
) -> bool:
    """Show the results without a run, if a run could change nothing of them; gives whether they were shown."""
    with console.status("looking for what has changed"), without_collections():
        from health_assets.apps.report.blocks import print_health
        from health_assets.cli.dagster_home import records_in
        from health_assets.cli.failed_checks import FailedCheck
        from health_assets.cli.run_summary import (
            print_checks,
            print_left_behind,
            print_older_results,
            print_older_targets,
            print_outdated_sources,
            print_sentences,
            print_unmapped_evaluators,
            print_up_to_date,
        )
        from health_assets.core.sql_memory import keep_compiled_sql
        from health_assets.core.targets import load_targets
        from health_assets.pipeline.publishing import publish_if_configured
        from health_assets.systems.formula_versions import older_results
        from health_assets.systems.no_op_check import made_at, noted_warnings, reason_to_run
        from health_assets.systems.stale_partitions import left_behind, outdated_sources
        from health_assets.warehouse.location import is_spark
        from health_assets.warehouse.store import Warehouse

        if is_spark(settings.warehouse):  # where looking takes as long as a run
            return False
    now = datetime.now(UTC)
    with ExitStack() as stack:
        try:
            session = stack.enter_context(Warehouse.of(settings).read())
            targets = load_targets(settings.targets)
            why = reason_to_run(session, settings, targets, hours, systems, records_in(settings, os.environ), now)
        except HealthAssetsError as error:  # the run meets it, too, and says it
            why = str(error)
        if why is not None:
            _log.debug("a run is made: %s", why)
            return False
        print_up_to_date(console, session, hours, made_at(session, hours), time.monotonic() - since)
        failed, lost = noted_warnings(session, settings, hours, systems)
        print_sentences(console, map(str, lost))
        print_checks(console, map(FailedCheck.of, failed))
        print_left_behind(console, left_behind(session, hours, systems, settings, now))
        print_outdated_sources(console, outdated_sources(session, hours, systems, settings))
        print_older_targets(console, session, hours.start, targets)
        print_unmapped_evaluators(console, session, HourRange(hours.start, hours.end), targets)
        print_older_results(console, older_results(session, EVER, settings))
        print_health(console, session, HourRange(hours.start, hours.end))
    keep_compiled_sql()
    publish_if_configured(settings)
    return True


def _run(
    settings: "Settings",
    hours: HourRange | HourGroups,
    since: float,
    systems: Collection[str],
    *,
    full_refresh: bool,
    loaded: "IngestReport | None",
) -> None:
    """Make a run, and show what came of it.

    Raises:
        HealthAssetsError: the run failed, or met faults that did not stop it.
    """
    with console.status("loading"), without_collections():
        from health_assets.apps.report.blocks import print_health
        from health_assets.cli.progress_bar import progress_bar
        from health_assets.cli.run_summary import (
            print_left_behind,
            print_older_results,
            print_older_targets,
            print_outcome,
            print_outdated_sources,
            print_unmapped_evaluators,
        )
        from health_assets.cli.running import run_hours, step_count
        from health_assets.core.sql_memory import keep_compiled_sql
        from health_assets.core.targets import load_targets
        from health_assets.pipeline.resource import Pipeline
        from health_assets.quality.validation import import_great_expectations
        from health_assets.systems.formula_versions import older_results
        from health_assets.systems.stale_partitions import left_behind, outdated_sources

        import_great_expectations()  # now, while nobody waits for the warehouse
        steps = step_count(hours, systems)
    with progress_bar(console, hours, steps) as shown:

        def say_that_it_waits(sentence: str) -> None:
            shown.on_wait()
            say(sentence)

        outcome = run_hours(
            settings, hours, shown.on_event, systems,
            say=say_that_it_waits, full_refresh=full_refresh, loaded=loaded,
        )  # fmt: skip
    if outcome.error is not None and not any(check.is_error for check in outcome.failed_checks):
        # the logs are loaded by then: whoever asks for a report sees scores that are older than they
        if outcome.files_seen:
            raise HealthAssetsError(f"{outcome.error}; {NOT_AS_A_WHOLE}")
        again = "; run it again" if outcome.was_stopped else ""
        raise HealthAssetsError(f"{outcome.error}{again}")
    with Pipeline(settings=settings).open().read() as session:
        print_outcome(console, outcome, session, time.monotonic() - since)
        if outcome.error is None:
            print_left_behind(console, left_behind(session, hours, systems, settings, datetime.now(UTC)))
            print_outdated_sources(console, outdated_sources(session, hours, systems, settings))
            targets = load_targets(settings.targets)
            print_older_targets(console, session, hours.start, targets)
            print_unmapped_evaluators(console, session, HourRange(hours.start, hours.end), targets)
        print_older_results(console, older_results(session, EVER, settings))
        print_health(console, session, HourRange(hours.start, hours.end))
    keep_compiled_sql()
    if outcome.problems:
        raise HealthAssetsError("; ".join(outcome.problems))
