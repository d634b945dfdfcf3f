"""Report of a run after its end; `cli.progress_bar` shows it while it runs."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from health_assets.cli.failed_checks import FailedCheck
from health_assets.core.agent_names import UUID_LIKE, alike_but_for_uuids, twins
from health_assets.core.formatting import counted
from health_assets.core.hours import HOUR, HourGroups, HourRange
from health_assets.core.targets import Targets
from health_assets.core.terminal import printable
from health_assets.logs.stores import NAMES_THAT_COUNT
from health_assets.pipeline.span_summary import summarize_spans
from health_assets.systems.agent_health_model.older_targets import older_targets
from health_assets.systems.formula_versions import OlderResults
from health_assets.systems.session_scores.unmapped_evaluators import unmapped_evaluators
from health_assets.warehouse.log_coverage import LogCoverage, RejectedElsewhere
from health_assets.warehouse.rejected_rows import Reason, Rejections
from health_assets.warehouse.session import Session

if TYPE_CHECKING:
    from health_assets.cli.outcomes import Outcome

REASONS_SHOWN = 8


def print_outcome(console: Console, outcome: "Outcome", session: Session, elapsed_s: float) -> None:
    """Print the counts of lines read, kept and rejected, the scores, and how long the user waited."""
    hours = HourRange(outcome.hours.start, outcome.hours.end)
    how = "materialized in" if outcome.error is None else "[red]materialized in part[/] in"
    console.print(f"[bold]{outcome.hours}[/] {how} {elapsed_s:.1f} s")
    read = outcome.lines_read + outcome.spans_read
    spans = counted(outcome.spans_read, "span") if outcome.spans_read else ""
    lines = counted(outcome.lines_read, "line") if outcome.lines_read or not spans else ""
    replaced = f"replaced by later lines {outcome.lines_superseded:,}, " if outcome.lines_superseded else ""
    console.print(
        f"  read {' and '.join(filter(None, [lines, spans]))} of {counted(outcome.files_read, 'file')}, "
        f"kept {max(0, read - outcome.lines_rejected - outcome.lines_superseded):,}, {replaced}"
        f"rejected {outcome.lines_rejected:,}"
    )
    if outcome.secrets_redacted:
        secrets, lines = counted(outcome.secrets_redacted, "secret"), counted(outcome.lines_redacted, "line")
        console.print(f"  {secrets} redacted in {lines}")
    executions = _print_what_is_held(console, session, hours, outcome.lines_rejected)
    if outcome.hours.end > datetime.now(UTC):
        console.print("[yellow]  the last of these hours is not over; its scores are of what is known so far[/]")
    if not outcome.files_seen:
        console.print(f"[yellow]  no raw log lies below the raw root; {NAMES_THAT_COUNT}[/]")
    elif not executions:
        _print_where_events_are(console, session)
    print_sentences(console, outcome.lost)
    print_sentences(console, outcome.odd)
    print_checks(console, outcome.failed_checks)


def print_sentences(console: Console, sentences: Iterable[str]) -> None:
    """Print the first of some warnings, a line each."""
    for sentence in islice(sentences, REASONS_SHOWN):
        console.print(Text(printable(f"  {sentence}", 400), style="yellow"), soft_wrap=True)


def print_checks(console: Console, failed: Iterable[FailedCheck]) -> None:
    """Print the checks that failed, a line each."""
    for check in failed:
        text = Text(printable(f"  check {check}", 400), style="red" if check.is_error else "yellow")
        console.print(text, soft_wrap=True)


def print_up_to_date(
    console: Console, session: Session, hours: HourRange | HourGroups, made_at: datetime, elapsed_s: float
) -> None:
    """Print that no run was made and since when nothing has changed, what the hours hold, how long the user waited."""
    console.print(
        f"[bold]{hours}[/] up to date: nothing has changed since {made_at:%Y-%m-%d %H:%M} UTC; "
        f"no run was made (--full-refresh makes one); looked at in {elapsed_s:.1f} s",
        soft_wrap=True,
    )
    if not _print_what_is_held(console, session, HourRange(hours.start, hours.end), 0):
        _print_where_events_are(console, session)


def _print_what_is_held(console: Console, session: Session, hours: HourRange, lines_rejected: int) -> int:
    """Print what the tables hold of these hours; gives the number of executions."""
    executions, scores = (session.count_hours(name, hours) for name in ("executions", "agent_health"))
    agents = session.count(session.hours_of("agent_health", hours).select("agent_id").distinct())
    rejections = Rejections(session, hours)
    console.print(
        f"  these hours hold {counted(executions, 'execution')}, {counted(scores, 'score')} of "
        f"{counted(agents, 'agent')}, {_rejected(rejections.lines(), lines_rejected)}"
    )
    _print_rejections(console, rejections.reasons(), LogCoverage(session).rejected_elsewhere())
    _print_traces(console, session, hours)
    _print_names_with_uuids(console, session, hours)
    print_twins(console, session, hours)
    return executions


def _rejected(lines: int, new: int) -> str:
    """The rejected lines of the hours, whose reasons follow, and whether an earlier run rejected them."""
    if not lines:
        return counted(lines, "rejected line")
    of_earlier_runs = "" if new >= lines else f", {'also' if new else 'all'} of earlier runs"
    return f"{counted(lines, 'rejected line')}{of_earlier_runs}:"


def _print_traces(console: Console, session: Session, hours: HourRange) -> None:
    """Print how many spans of these hours became records, and how many did not, by reason."""
    reading = summarize_spans(session, hours)
    if reading is None:
        return
    console.print(f"  {reading}")
    for reason, count in list(reading.unused.items())[:REASONS_SHOWN]:
        console.print(Text(printable(f"    {count:>6,} × {reason}", 200)), soft_wrap=True)
    for warning in reading.warnings:
        console.print(Text(printable(f"  {warning}", 200), style="yellow"), soft_wrap=True)


def _print_names_with_uuids(console: Console, session: Session, hours: HourRange) -> None:
    """Agents that are new with every run would each have too few runs to be judged, so somebody is told."""
    executions = session.hours_of("executions", hours)
    found = session.arrow(executions.filter(executions.agent_id.like(UUID_LIKE)).select("agent_id").distinct())
    alike = alike_but_for_uuids(found["agent_id"].to_pylist())
    if alike:
        text = (
            f"  {len(alike):,} agents differ only by a UUID in their names, like {printable(alike[0], 100)}: "
            "fold them into one by names: in the targets file"
        )
        console.print(Text(text, style="yellow"), soft_wrap=True)


def print_twins(console: Console, session: Session, hours: HourRange) -> None:
    """Print how many agents have look-alike names, since each name has a score of its own."""
    names = session.arrow(session.hours_of("executions", hours).select("agent_id").distinct())["agent_id"].to_pylist()
    if groups := twins(names):
        first, second = (_spelled(name) for name in groups[0][:2])
        text = (
            f"  {counted(sum(map(len, groups)), 'agent')} have names that differ only by case, encoding or letters "
            f"that look alike, like {first} and {second}: fold them into one by names: in the targets file"
        )
        console.print(Text(text, style="yellow"), soft_wrap=True)


def _spelled(name: str) -> str:
    return printable(name if name.isascii() else f"{name} ({name!a})", 100)


def print_left_behind(console: Console, ranges: Sequence[HourRange]) -> None:
    """Print other hours that should be materialized too, since they look back on hours that have changed."""
    if not ranges:
        return
    count = sum(len(hours) for hours in ranges)
    more = f", and {counted(len(ranges) - 1, 'more such range')}" if len(ranges) > 1 else ""
    console.print(
        f"[yellow]  {counted(count, 'other hour looks', 'other hours look')} back on what has changed: "
        f"materialize {ranges[0]} too{more}[/]"
    )


def print_outdated_sources(console: Console, sources: Mapping[str, Sequence[str]]) -> None:
    """Print the tables of other systems that a run used as they were, and the systems that bring them up to date."""
    if sources:
        tables = ", ".join(name for names in sources.values() for name in names)
        options = " ".join(f"--system {system}" for system in sources)
        sentence = f"scores were made from {tables}, older than these logs: add {options}"
        console.print(Text(printable(f"  {sentence}", 400), style="yellow"), soft_wrap=True)


def print_older_targets(console: Console, session: Session, start: datetime, targets: Targets) -> None:
    """Print that earlier hours keep other targets than those of the run that began with this hour."""
    if older := older_targets(session, start, targets):
        console.print(Text(printable(f"  {older}", 400), style="yellow"), soft_wrap=True)


def print_unmapped_evaluators(console: Console, session: Session, hours: HourRange, targets: Targets) -> None:
    """Print the evaluators whose results nothing uses."""
    if sentence := unmapped_evaluators(session, hours, targets.evaluators):
        console.print(Text(printable(f"  {sentence}", 600), style="yellow"), soft_wrap=True)


def print_older_results(console: Console, older: Sequence[OlderResults]) -> None:
    """Print how many hours of results are of an older formula version, and what brings them up to date."""
    for results in older:
        console.print(Text(printable(f"  {results}", 400), style="yellow"), soft_wrap=True)
    if due := {hour for results in older for hour in results.due}:
        console.print(
            f"[yellow]  the late-log sensor brings them up to date, the newest first, or "
            f"health-assets materialize --from {min(due):%Y-%m-%dT%H} --to {max(due) + HOUR:%Y-%m-%dT%H}[/]",
            soft_wrap=True,
        )


def _print_where_events_are(console: Console, session: Session) -> None:
    """Print the hours of the logs, for a user who asked for others."""
    held = LogCoverage(session).event_span()
    if held is not None:
        console.print(f"[yellow]  no execution ended in these hours; the logs hold events of {held}[/]")


def _print_rejections(console: Console, reasons: Sequence[Reason], elsewhere: RejectedElsewhere | None) -> None:
    for reason in reasons[:REASONS_SHOWN]:
        text = printable(
            f"    {reason.lines:>6,} × {reason.text}{reason.example}  (first in {reason.first_place})", 400
        )
        console.print(Text(text, style="yellow"), soft_wrap=True)
    if len(reasons) > REASONS_SHOWN:
        more = counted(len(reasons) - REASONS_SHOWN, "more reason")
        console.print(f"    and {more} in rejected_records")
    if elsewhere:
        _print_rejections_elsewhere(console, elsewhere)


def _print_rejections_elsewhere(console: Console, rejected: RejectedElsewhere) -> None:
    """Rejected lines lie in the hours of their own times, or of their files, which few may have asked for."""
    why = f"see why by --from {rejected.first:%Y-%m-%dT%H} --to {rejected.first + HOUR:%Y-%m-%dT%H}"
    if rejected.first > datetime.now(UTC):
        why = "the files say that they were changed in the future; give them a time that was, to see why"
    example = f"{'such as ' if rejected.files > 1 else ''}{printable(rejected.example_file)}"
    files = f"{counted(rejected.files, 'file')} ({example})"
    text = f"    {rejected.lines:>6,} × rejected in hours that are not materialized, of {files}: {why}"
    console.print(Text(text, style="yellow"), soft_wrap=True)
