"""The outcome of a run, put together from the engine's events.

What belongs here: the counts of what was read, the checks that failed, the error in a sentence. What does not: making
the run (`running`) and printing its outcome (`run_summary`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from health_assets.cli.failed_checks import FailedCheck
from health_assets.core.formatting import counted
from health_assets.core.hours import HourGroups, HourRange
from health_assets.pipeline.events import Checked, Event, Materialized, Metadata, StepFailed, StepStarted
from health_assets.pipeline.summaries import LOST, ODD, UNREADABLE

REASONS_SHOWN = 3
COUNTS = (
    "files_seen", "files_read", "files_unreadable", "folders_unreadable", "lines_read", "spans_read",
    "lines_rejected", "lines_superseded", "secrets_redacted", "lines_redacted",
)  # fmt: skip
TEXTS = {"unreadable": UNREADABLE, "all_rejected": "all_rejected", "lost": LOST, "odd": ODD}
"""By field of an outcome, the key of the metadata that has it, where there is any."""


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
        odd: warnings of names, times and places of logs that no earlier run told, in sentences.
        secrets_redacted: secrets that were replaced in texts of lines and spans.
        lines_redacted: lines and spans that had any.
        publishing_error: why the tables were not published.
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
    publishing_error: str | None = None

    @property
    def problems(self) -> list[str]:
        """The error and the faults: why the exit code is not 0."""
        return [*([self.error] if self.error else []), *self.faults]

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
        if self.publishing_error:
            found.append(self.publishing_error)
        return found


class OutcomeCollector:
    """Collects the outcome of a run from its events."""

    def __init__(self) -> None:
        self.step = "the start of the run"
        self.failed_steps: list[str] = []
        self._failed: list[FailedCheck] = []
        self._read: Metadata | None = None
        self.publishing_error: str | None = None

    def on_event(self, event: Event) -> None:
        """Take an event of the run."""
        if isinstance(event, StepStarted):
            self.step = event.step
        elif isinstance(event, StepFailed):
            self.failed_steps.append(event.step)
        elif isinstance(event, Checked) and not event.passed:
            self._failed.append(FailedCheck.found(event))
        elif isinstance(event, Materialized) and self._read is None and COUNTS[0] in event.metadata:
            self._read = event.metadata

    def outcome(self, hours: HourRange | HourGroups, error: str | None, *, was_stopped: bool = False) -> Outcome:
        """The outcome of the run, which has ended.

        Args:
            hours: the hours asked for.
            error: why it failed, where it did for another reason than a check.
            was_stopped: whether it was asked to end.
        """
        blocking = [check for check in self._failed if check.is_error]
        if error is None and blocking:
            told = [f"{check.asset}.{check.name} ({counted(check.unexpected, 'row')})" for check in blocking]
            error = f"checks failed, so what follows was not materialized: {', '.join(told)}"
        return Outcome(
            hours=hours, **self._read_counts(), failed_checks=self._failed, error=error, was_stopped=was_stopped,
            publishing_error=self.publishing_error,
        )  # fmt: skip

    def _read_counts(self) -> dict[str, Any]:
        if self._read is None:
            return dict.fromkeys(COUNTS, 0)
        counts = {name: self._read[name] for name in COUNTS}
        return counts | {name: self._read[key] for name, key in TEXTS.items() if key in self._read}
