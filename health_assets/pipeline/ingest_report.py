"""The report of an ingestion: what it read, what it built, and what people should be told.

What belongs here: the counts, and adding to them. What does not: how they come about (`ingestion`) and how they are
shown (`summaries`, `cli.run_summary`).
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime

from health_assets.core.formatting import counted
from health_assets.core.hours import NO_HOURS, HourRange
from health_assets.logs.files import RawFile
from health_assets.logs.routing import Rejection, main_rejection
from health_assets.pipeline.append_detection import Appended
from health_assets.warehouse.file_slices import FileSlice, SliceContent


@dataclass(kw_only=True)
class IngestReport:
    """The counts of what a run read and built.

    Args:
        hours: the hours built: those asked for, and earlier ones of the look-back that were missing.
        files_seen: raw logs below the raw root.
        files_read: raw logs that were read: new ones, changed ones, those with lines that these hours lacked.
        bytes_read: size of the files read; of a file that only grew, of what is new.
        lines_read: non-blank lines that were read; span lines only if rejected.
        spans_read: spans that were read.
        rejected: rejected lines and spans.
        superseded: lines that a later one of the same agent and id replaced, read in this run or before.
        secrets_redacted: secrets that were replaced in texts of lines and spans that were loaded or rejected.
        lines_redacted: lines and spans that had any.
        changed_hours: hours built whose rows may have changed.
        changed_elsewhere: other hours whose rows have changed, and that runs had built before.
        touched_hours: all hours whose rows have changed, whether runs had built them or not.
        unreadable: files and folders that cannot be read, with the reason.
        main_rejection: the most frequent reason and its place, where every line was rejected.
        notices: by name of a file, a sentence that people should be told of it.
        read_by_file: by file, lines and spans that were read, and how many of them were rejected.
    """

    hours: HourRange
    files_seen: int = 0
    files_read: list[str] = field(default_factory=list)
    bytes_read: int = 0
    lines_read: int = 0
    spans_read: int = 0
    rejected: int = 0
    superseded: int = 0
    secrets_redacted: int = 0
    lines_redacted: int = 0
    changed_hours: set[datetime] = field(default_factory=set)
    changed_elsewhere: set[datetime] = field(default_factory=set)
    touched_hours: set[datetime] = field(default_factory=set)
    unreadable: Mapping[str, str] = field(default_factory=dict)
    main_rejection: Rejection | None = None
    notices: Mapping[str, str] = field(default_factory=dict)
    read_by_file: dict[str, tuple[int, int]] = field(default_factory=dict)

    def add_read(self, files: Sequence[RawFile], found: Mapping[FileSlice, SliceContent], appended: Appended) -> None:
        """Count what was read of files, and those of the files that hold any lines."""
        names = {file_slice.source_file for file_slice in found}
        self.files_read += sorted(names)
        self.bytes_read += sum(appended.read_bytes(file) for file in files if file.source_file in names)
        for file_slice, lines in appended.without_known(found).items():
            if file_slice.record_type == "span":
                self.spans_read += lines
            else:
                self.lines_read += lines
            rejected = lines if file_slice.record_type == "rejected" else 0
            self.rejected += rejected
            self.add_to_file(file_slice.source_file, lines, rejected)

    def add_to_file(self, name: str, lines: int, rejected: int) -> None:
        """Add to the counts of one file."""
        before = self.read_by_file.get(name, (0, 0))
        self.read_by_file[name] = before[0] + lines, before[1] + rejected

    def with_loaded(self, loaded: "IngestReport", span: HourRange) -> "IngestReport":
        """Both reports as one.

        Args:
            loaded: the report of loading logs just before this run.
            span: the hours asked for and their look-back.
        """
        both = replace(
            self,
            files_read=sorted({*loaded.files_read, *self.files_read}),
            bytes_read=loaded.bytes_read + self.bytes_read,
            lines_read=loaded.lines_read + self.lines_read,
            spans_read=loaded.spans_read + self.spans_read,
            rejected=loaded.rejected + self.rejected,
            superseded=loaded.superseded + self.superseded,
            secrets_redacted=loaded.secrets_redacted + self.secrets_redacted,
            lines_redacted=loaded.lines_redacted + self.lines_redacted,
            changed_hours=self.changed_hours | {hour for hour in loaded.changed_elsewhere if hour in span},
            touched_hours=self.touched_hours | loaded.touched_hours,
            main_rejection=main_rejection(filter(None, [loaded.main_rejection, self.main_rejection])),
            notices={**loaded.notices, **self.notices},
            read_by_file={**loaded.read_by_file},
        )
        if both.rejected < both.lines_read + both.spans_read:
            both.main_rejection = None
        for name, (lines, rejected) in self.read_by_file.items():
            both.add_to_file(name, lines, rejected)
        return both

    def after(self, earlier: "IngestReport") -> "IngestReport":
        """Both reports of loading new logs as one, of which a later run tells."""
        both = self.with_loaded(earlier, NO_HOURS)
        both.changed_elsewhere = self.changed_elsewhere | earlier.changed_elsewhere
        return both

    @property
    def has_read(self) -> bool:
        """Whether any line or span was read."""
        return bool(self.lines_read or self.spans_read)

    def many_rejected(self, most_share: float) -> list[str]:
        """Sentences about files of which more than this share was rejected, the most rejected lines first."""
        found = [(rejected, name, lines) for name, (lines, rejected) in self.read_by_file.items()]
        return [
            f"{name}: {rejected:,} of {counted(lines, 'line')} rejected"
            for rejected, name, lines in sorted(found, key=lambda one: (-one[0], one[1]))
            if rejected > most_share * lines
        ]

    def add_built(self, changed_hours: AbstractSet[datetime]) -> None:
        """Count hours whose rows may have changed."""
        self.changed_hours |= changed_hours
        self.hours = HourRange(min(self.changed_hours | {self.hours.start}), self.hours.end)
