"""The no-op check of the records: whether an ingestion would leave every record table as it is.

What belongs here: everything that `ingestion` looks at before it reads or changes anything. What does not: the tables
that are made from records (`systems.no_op_check`) and the ingestion itself.

Targets that apply to stored rows, and amounts that follow from other records, are not looked at here: the fingerprint
of an hour's inputs covers them (`fingerprints`).
"""

from collections.abc import Iterator
from datetime import datetime

from health_assets.core.hours import HOUR, HourGroups, HourRange
from health_assets.core.settings import Settings
from health_assets.logs.stores import names_of
from health_assets.pipeline.ingestion_scope import IngestScope
from health_assets.pipeline.log_files import LogFiles, known_files
from health_assets.schema.records import RECORD_TABLES
from health_assets.warehouse.file_ledger import FileLedger
from health_assets.warehouse.fingerprints import (
    EVERY_LINE_IS_STILL_THERE,
    EVERY_LOG_WAS_READ,
    FEW_READ_LINES_ARE_REJECTED,
    Fingerprints,
)
from health_assets.warehouse.ledger import Ledger
from health_assets.warehouse.loaded_state import LoadedState
from health_assets.warehouse.log_coverage import LogCoverage
from health_assets.warehouse.partition_states import PartitionStates
from health_assets.warehouse.session import Session


def changes_of_records(session: Session, settings: Settings, hours: HourGroups, now: datetime) -> Iterator[str]:
    """Reasons, each in a sentence, for which an ingestion might change a record table or tell something.

    Args:
        session: a session.
        settings: where the logs are, and how far results look back.
        hours: the hours asked for, in all record tables.
        now: the time of the run, aware.

    Raises:
        HealthAssetsError: the logs cannot be listed.
    """
    files = LogFiles.of(known_files(session, settings, now), settings, now)
    yield from files.changes(session, settings)
    names = names_of(files.matched.files)
    scope = IngestScope(
        session, hours.span, names, settings.reach_hours, settings.lookback_hours, settings.horizon(now)
    )
    yield from _lacks(session, scope, hours, settings)
    yield from _tells(session, settings, hours)


def rests_on(hours: HourRange | HourGroups, settings: Settings) -> HourRange:
    """The hours of logs on which results of these hours rest."""
    return HourRange(hours.start - settings.reach_hours * HOUR, hours.end)


def _lacks(session: Session, scope: IngestScope, hours: HourGroups, settings: Settings) -> Iterator[str]:
    """Reasons that lie in the tables: what waits or was dropped, and rows that are not those of the ledger."""
    if LoadedState(session).lacks_slices(scope.span):
        yield "lines wait to be loaded"
    if any(scope.restored.values()):
        yield "hours come back that retention dropped"
    reach = hours.extended_back(settings.reach_hours - 1)
    first_event_hour = LogCoverage(session).first_event_hour()
    if PartitionStates(session).missing(RECORD_TABLES, reach, scope.hours, first_event_hour):
        yield "records of an hour were never loaded"
    seen_by_traces = scope.span.extended_back(scope.trace_hours).extended_forward(scope.trace_hours)
    for table in RECORD_TABLES:
        looked_at = seen_by_traces if table == "spans" else scope.span.extended_forward(1)
        if LoadedState(session).has_other_rows(table, looked_at):
            yield f"{table} has other rows than were loaded"


def _tells(session: Session, settings: Settings, hours: HourGroups) -> Iterator[str]:
    """Reasons that lie in what checks of the ledger and of the reading say: other numbers than they noted."""
    rested_on = rests_on(hours, settings)
    noted = Fingerprints(session)
    logs = len(Ledger(session).known_files())
    if noted.counts_of_check(EVERY_LOG_WAS_READ, hours) != dict.fromkeys(hours, (logs, 0)):
        yield f"{EVERY_LOG_WAS_READ} has noted something else"
    read = noted.counts_of_check(FEW_READ_LINES_ARE_REJECTED, hours).values()
    if any(lines and lines == rejected for lines, rejected in read):
        yield "every line that was read was rejected, which a command says as its error"
    counts = FileLedger(session).lines_and_lost(rested_on, settings.reach_hours)
    if noted.counts_of_check(EVERY_LINE_IS_STILL_THERE, hours) != {hour: counts[hour] for hour in hours}:
        yield f"{EVERY_LINE_IS_STILL_THERE} has noted something else"
