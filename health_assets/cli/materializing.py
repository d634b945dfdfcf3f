"""The command `materialize` from its hours to its last line: looking for what is new, a run if anything is, the report.

What belongs here: the order of these steps. What does not: flags (`commands`), how it is known that nothing is new
(`receipts`), the run (`running`), and what is printed of it (`run_report`, `progress_bar`).

Each step imports what it needs, since Dagster and Great Expectations take seconds and a command with nothing new needs
neither.
"""

import time
from collections.abc import Collection
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from health_assets.cli.speaking import MOST_TOLD, console, say
from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import EVER, HourGroups, HourRange
from health_assets.core.importing import without_collections
from health_assets.core.settings import Settings
from health_assets.core.terminal import printable

if TYPE_CHECKING:
    from health_assets.cli.receipts import Receipt
    from health_assets.warehouse.session import Session


def hours_asked_for(settings: Settings, start: str | None, end: str | None) -> HourGroups:
    """The hours named, from and to those that the logs hold where one is not; tells how they were chosen.

    Args:
        settings: where the logs and the warehouse are.
        start: the first hour, as it was named.
        end: the hour to stop before, as it was named.

    Raises:
        HealthAssetsError: as `pipeline.wanted_hours`.
    """
    with console.status("looking at the logs") as status:
        from health_assets.logs.progress import listening
        from health_assets.pipeline.wanted_hours import wanted_hours

        with listening(lambda read: status.update(f"looking at the logs: {read}")):
            wanted = wanted_hours(settings, start, end, datetime.now(UTC))
    for sentence in wanted.told:
        console.print(printable(sentence, MOST_TOLD), soft_wrap=True, markup=False, highlight=False)
    return wanted.hours


def materialize_hours(
    settings: Settings,
    hours: HourRange | HourGroups,
    since: float,
    systems: Collection[str] = (),
    *,
    is_forced: bool = False,
) -> None:
    """Materialize where anything is new, and show what came of it.

    Args:
        settings: where logs, targets and warehouse are.
        hours: the hours.
        since: when the user began to wait, by the monotonic clock.
        systems: the scoring systems; all where none is named.
        is_forced: whether to run also where nothing is new.

    Raises:
        HealthAssetsError: the run failed, or met faults that did not stop it.
    """
    with console.status("looking for what is new"):
        from health_assets.cli.receipts import basis_of, receipt_for

        basis = basis_of(settings, hours, systems, datetime.now(UTC))
        receipt = None if is_forced else receipt_for(settings, basis)
    if receipt is None or not _shown_up_to_date(settings, hours, since, systems, receipt):
        _run(settings, hours, since, systems, basis)


def _shown_up_to_date(
    settings: Settings, hours: HourRange | HourGroups, since: float, systems: Collection[str], receipt: "Receipt"
) -> bool:
    """Show what an earlier run came to, if that still holds; returns whether it does."""
    with without_collections():
        from health_assets.cli.run_report import print_up_to_date
        from health_assets.logs.limits import Limits
        from health_assets.warehouse.file_ledger import FileLedger
        from health_assets.warehouse.store import Warehouse

    with Warehouse.of(settings).read() as session:  # from now on nobody writes
        until = Limits.of(settings, datetime.now(UTC)).until
        if not receipt.holds(settings) or FileLedger(session).is_any_due(until):
            return False
        print_up_to_date(console, session, hours, receipt.left_at, time.monotonic() - since)
        _print_results(session, settings, hours, systems)
    return True


def _run(
    settings: Settings, hours: HourRange | HourGroups, since: float, systems: Collection[str], basis: str | None
) -> None:
    """Materialize, and show what came of it; arguments as of `materialize_hours` and `run_hours`."""
    with console.status("loading Dagster and Great Expectations"), without_collections():
        from health_assets.cli.progress_bar import progress_bar
        from health_assets.cli.run_report import print_outcome
        from health_assets.cli.running import run_hours, step_count
        from health_assets.defs.pipeline import Pipeline
        from health_assets.quality.evaluation import import_great_expectations

        import_great_expectations()
        steps = step_count(settings, systems)
    with progress_bar(console, hours, steps) as shown:

        def say_that_it_waits(sentence: str) -> None:
            shown.on_wait()
            say(sentence)

        outcome = run_hours(settings, hours, shown.on_event, systems, basis=basis, say=say_that_it_waits)
    if outcome.error is not None and not outcome.failed_checks:
        raise HealthAssetsError(outcome.error)
    with Pipeline(settings=settings).open().read() as session:
        print_outcome(console, outcome, session, time.monotonic() - since)
        _print_results(session, settings, hours, systems, has_failed=outcome.error is not None)
    if problems := [*([outcome.error] if outcome.error else []), *outcome.faults]:
        raise HealthAssetsError("; ".join(problems))


def _print_results(
    session: "Session",
    settings: Settings,
    hours: HourRange | HourGroups,
    systems: Collection[str],
    *,
    has_failed: bool = False,
) -> None:
    """Print what else is to be materialized, and the health of the fleet."""
    from health_assets.apps.report.blocks import print_health
    from health_assets.cli.run_report import print_left_behind, print_older_results
    from health_assets.core.sql_memory import keep_compiled_sql
    from health_assets.systems.formula_versions import older_results
    from health_assets.systems.staleness import left_behind

    if not has_failed:
        print_left_behind(console, left_behind(session, hours, systems, settings, datetime.now(UTC)))
    print_older_results(console, older_results(session, EVER, settings))
    print_health(console, session, HourRange(hours.start, hours.end))
    keep_compiled_sql()
