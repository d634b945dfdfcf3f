"""List the raw logs and ingest them, again if one changes while it is read: for the step and for commands."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from health_assets.core.errors import HealthAssetsError, NoWarehouseError, UnreadableFilesError
from health_assets.core.hours import HourGroups
from health_assets.core.temporary import remove_what_the_dead_left
from health_assets.logs.files import list_files
from health_assets.logs.formats.format_settings import FormatSettings
from health_assets.logs.stores import Faults, RawFile, Stamp, distrusted, is_among, require_root
from health_assets.pipeline.fingerprints import RunFingerprint
from health_assets.pipeline.ingest_report import IngestReport
from health_assets.pipeline.ingestion import ingest
from health_assets.pipeline.log_files import LogFiles, known_files
from health_assets.pipeline.price_list import has_price_list
from health_assets.pipeline.resource import Pipeline
from health_assets.warehouse.file_ledger import FileLedger
from health_assets.warehouse.ledger import Ledger
from health_assets.warehouse.session import Session

Result = TypeVar("Result")
MOST_TRIES = 3
"""How often a run tries to read a log that changes meanwhile."""


class TooMuchToLoadError(HealthAssetsError):
    """More is new in the logs than may be loaded now."""


def ingest_logs(
    pipeline: Pipeline,
    hours: HourGroups | None,
    then: Callable[[Session, IngestReport, Mapping[str, str]], Result],
    *,
    with_new_targets: bool = False,
    full_refresh: bool = False,
) -> Result:
    """Bring the record tables up to date with every readable raw log, in one transaction.

    Files are listed inside the transaction: another run may have loaded newer ones while this one waited for the lock.

    Args:
        pipeline: where logs, targets and warehouse are.
        hours: the hours asked for; None for what is new or changed in the logs alone, whatever hours it is of.
        then: called before the transaction ends, with the report and what is odd about files, by name.
        with_new_targets: whether targets that have changed apply to rows of the hours that are there already.
        full_refresh: whether every file is compared with what was read of it, whatever its size and times say.

    Returns:
        What `then` returns.

    Raises:
        HealthAssetsError: the raw root, the targets or the warehouse cannot be read.
    """
    settings, failures = pipeline.settings, _Failures()
    require_root(pipeline.raw_root)  # a mistyped path is told before waiting for the lock
    pipeline.load_targets()
    remove_what_the_dead_left()
    while True:
        files: list[RawFile] = []
        try:
            with pipeline.write() as session:
                unreadable: Faults = {}
                read_at = session.now()
                file_warnings: dict[str, str] = {}
                files = list_files(pipeline.raw_root, unreadable, file_warnings, FormatSettings.of(settings))
                unreadable |= failures.still_of(files)
                files = [file for file in files if not is_among(unreadable, file.source_file)]
                Ledger(session).require_root(pipeline.raw_root, files)
                file_warnings = distrusted(files, settings.trust) | file_warnings
                odd = FileLedger(session).write_warnings(file_warnings)
                targets = pipeline.load_targets()
                report = ingest(
                    session, files, hours, targets,
                    settings.reach_hours, trace_hours=settings.lookback_hours, with_new_targets=with_new_targets,
                    unreadable=unreadable, trusted_judgements=settings.trust, limits=pipeline.limits,
                    run=RunFingerprint.of(settings, targets, hours) if hours else None,
                    horizon=pipeline.horizon, full_refresh=full_refresh, salt=pipeline.salt,
                    with_prices=settings.prices and has_price_list(), read_at=read_at,
                )  # fmt: skip
                return then(session, report, {**odd, **report.notices})
        except UnreadableFilesError as error:  # which shows only when they are read; nothing has been changed
            if not failures.add(files, error.faults):
                raise HealthAssetsError(f"what cannot be read is no raw log that was listed: {error}") from error


def load_new_logs(
    pipeline: Pipeline,
    check: Callable[[Session], object] = lambda _: None,
    *,
    full_refresh: bool = False,
    most_bytes: float = math.inf,
) -> IngestReport | None:
    """Load the logs that are new or changed, whatever hours they are of; None where there are none.

    Args:
        pipeline: where logs, targets and warehouse are.
        check: called once they are loaded; what it raises takes them back.
        full_refresh: as of `ingest_logs`.
        most_bytes: most that may have to be read.

    Raises:
        TooMuchToLoadError: more would have to be read; nothing was loaded.
        HealthAssetsError: as of `ingest_logs`.
    """
    if not full_refresh:
        files, has_changed = compared_logs(pipeline)
        if not has_changed:
            return None
        if files.new_bytes > most_bytes:
            raise TooMuchToLoadError(f"logs of {files.new_bytes / (1 << 20):,.0f} MB are to be loaded")

    def checked(session: Session, report: IngestReport, odd: Mapping[str, str]) -> IngestReport:
        check(session)
        report.notices = dict(odd)  # which is not said again by the run that follows
        return report

    return ingest_logs(pipeline, None, checked, full_refresh=full_refresh)


def compared_logs(pipeline: Pipeline) -> tuple[LogFiles, bool]:
    """The raw logs that there are, and whether there is anything to load of them, or to note.

    The warehouse is not held while files are looked into.

    Raises:
        HealthAssetsError: the logs cannot be listed, or the warehouse cannot be read.
    """
    settings, now = pipeline.settings, pipeline.clock()
    try:
        with pipeline.read() as session:
            known = known_files(session, settings, now)
        files = LogFiles.of(known, settings, now)
        with pipeline.read() as session:
            return files, any(files.changes(session, settings))
    except NoWarehouseError:
        files = LogFiles.of({}, settings, now)
        return files, bool(files.matched.files)


class _Failures:
    """Logs that were listed and could not be read in this run.

    A name that has another file by now, as after a rotation, is tried again, for the log may be there twice otherwise.
    """

    def __init__(self) -> None:
        self._stamps: dict[str, set[Stamp]] = {}
        self._reasons: Faults = {}

    def add(self, files: Sequence[RawFile], faults: Faults) -> bool:
        """Note which of the files, as they were listed, cannot be read, and why; gives whether any is among them."""
        failed = [file for file in files if file.source_file in faults]
        for file in failed:
            self._stamps.setdefault(file.source_file, set()).add(file.stamp)
        self._reasons |= faults
        return bool(failed)

    def still_of(self, files: Sequence[RawFile]) -> Faults:
        """Faults of these files that are as they were when they could not be read, or that failed too often."""
        failed = [(file, self._stamps[file.source_file]) for file in files if file.source_file in self._stamps]
        return {
            file.source_file: self._reasons[file.source_file]
            for file, stamps in failed
            if file.stamp in stamps or len(stamps) >= MOST_TRIES
        }
