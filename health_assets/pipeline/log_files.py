"""The raw logs that there are, compared with what the warehouse knows of them.

What belongs here: listing and matching them, whether they have to be loaded, and how much that is. What does not:
loading them (`log_ingestion`) and the tables (`record_no_op_check`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from health_assets.core.settings import Settings
from health_assets.logs.decompression import is_gzip
from health_assets.logs.file_matching import match_files
from health_assets.logs.formats.format_settings import FormatSettings
from health_assets.logs.known_files import KnownFile, MatchedFiles, is_settled
from health_assets.logs.limits import Limits
from health_assets.logs.stores import Faults, RawFile, distrusted, list_files
from health_assets.warehouse.file_ledger import FileLedger
from health_assets.warehouse.ledger import Ledger
from health_assets.warehouse.session import Session

TYPICAL_PACKING_RATIO = 10
"""How many bytes of logs a byte of a compressed file holds, about."""


@dataclass(frozen=True, kw_only=True)
class LogFiles:
    """The raw logs that there are.

    Args:
        known: what the ledger says of them.
        matched: what became of those that were read, and which count.
        unreadable: those that cannot be read, with the reason.
        file_warnings: what is odd about them, by name.
    """

    known: Mapping[str, KnownFile]
    matched: MatchedFiles
    unreadable: Faults
    file_warnings: Mapping[str, str]

    @classmethod
    def of(cls, known: Mapping[str, KnownFile], settings: Settings, now: datetime) -> Self:
        """List them, and compare them with what is known; takes its time, and needs no warehouse.

        Args:
            known: `known_files` of the warehouse.
            settings: where they are.
            now: the time, aware.

        Raises:
            HealthAssetsError: they cannot be listed.
        """
        unreadable: Faults = {}
        file_warnings: dict[str, str] = {}
        files = list_files(settings.raw, unreadable, file_warnings, FormatSettings.of(settings))
        unpacking = Limits.of(settings, now).unpacking
        return cls(
            known=known,
            matched=match_files(known, files, unreadable, unpacking=unpacking, trusted=settings.trust),
            unreadable=unreadable,
            file_warnings=distrusted(files, settings.trust) | file_warnings,
        )

    @property
    def new_bytes(self) -> int:
        """About how many bytes have to be read, once unpacked; of a file that has become longer, what is new."""
        before = self.matched.before
        changed = sum(_bytes_to_read(file, before[file.source_file]) for file in self.matched.changed)
        return changed + sum(_unpacked_bytes(file) for file in self.matched.new)

    def changes(self, session: Session, settings: Settings) -> Iterator[str]:
        """Reasons, each in a sentence, for which they have to be loaded, or the ledger says something else of them."""
        ledger = Ledger(session)
        if not self.matched.files:
            yield "no raw log is there"
        if self.unreadable != ledger.unreadable():
            yield "a raw log cannot be read, or could not"
        if not ledger.knows_root(settings.raw):
            yield "the raw root is another one"
        if not FileLedger(session).has_noted(self.file_warnings):
            yield "something else is odd about the raw logs"
        if not is_settled(self.known, self.matched):
            yield "a raw log is new, changed, moved, gone or back, or has an event whose time has come"


def known_files(session: Session, settings: Settings, now: datetime) -> dict[str, KnownFile]:
    """What the warehouse knows of files, by name."""
    return FileLedger(session).known(Limits.of(settings, now).until, FormatSettings.of(settings).digest)


def _bytes_to_read(file: RawFile, before: KnownFile) -> int:
    """The bytes of a changed file that have to be read, if all that it held is still there."""
    is_appended = before.stamp[0] <= file.size_bytes and not is_gzip(file) and not before.is_to_be_read_whole
    return file.size_bytes - before.stamp[0] if is_appended else _unpacked_bytes(file)


def _unpacked_bytes(file: RawFile) -> int:
    return file.size_bytes * (TYPICAL_PACKING_RATIO if is_gzip(file) else 1)
