"""What a run shows of what it did; `progress` shows it while it runs."""

from collections.abc import Sequence
from datetime import UTC, datetime

from rich.console import Console
from rich.text import Text

from health_assets.cli.running import Outcome
from health_assets.core.agent_names import UUID_LIKE, alike_but_for_uuids
from health_assets.core.hours import HOUR, HourRange
from health_assets.core.terminal import printable
from health_assets.core.wording import counted
from health_assets.logs.stores import NAMES_THAT_COUNT
from health_assets.pipeline.trace_reading import read_traces
from health_assets.systems.formula_versions import OlderResults
from health_assets.warehouse.session import Session

REASONS_SHOWN = 8


def print_outcome(console: Console, outcome: Outcome, session: Session, elapsed_s: float) -> None:
    """What was read, kept, rejected and scored, and how long that took whoever waited for it."""
    span = [outcome.hours.start, outcome.hours.end]
    hours = HourRange(outcome.hours.start, outcome.hours.end)
    executions, scores = (session.count_hours(name, hours) for name in ("executions", "agent_health"))
    [(rejected,)] = session.query(
        "SELECT coalesce(CAST(sum(lines) AS BIGINT), 0) FROM rejected_records WHERE hour >= ? AND hour < ?", span
    )
    [(agents,)] = session.query("SELECT count(DISTINCT agent_id) FROM agent_health WHERE hour >= ? AND hour < ?", span)
    console.print(f"[bold]{outcome.hours}[/] materialized in {elapsed_s:.1f} s")
    read = outcome.lines_read + outcome.spans_read
    spans = counted(outcome.spans_read, "span") if outcome.spans_read else ""
    lines = counted(outcome.lines_read, "line") if outcome.lines_read or not spans else ""
    console.print(
        f"  read {' and '.join(filter(None, [lines, spans]))} of {counted(outcome.files_read, 'file')}, "
        f"kept {read - outcome.lines_rejected:,}, rejected {outcome.lines_rejected:,}"
    )
    if outcome.secrets_redacted:
        secrets, lines = counted(outcome.secrets_redacted, "secret"), counted(outcome.lines_redacted, "line")
        console.print(f"  {secrets} redacted in {lines}")
    console.print(
        f"  these hours hold {counted(executions, 'execution')}, {counted(scores, 'score')} of "
        f"{counted(agents, 'agent')}, {_rejected(rejected, outcome.lines_rejected)}"
    )
    _print_rejections(console, session, span)
    _print_traces(console, session, hours)
    _print_names_with_uuids(console, session, span)
    if outcome.hours.end > datetime.now(UTC):
        console.print("[yellow]  some of these hours are not over yet; materialize them again when they are[/]")
    if not outcome.files_seen:
        console.print(f"[yellow]  no raw log lies below the raw root; {NAMES_THAT_COUNT}[/]")
    elif not executions:
        _print_where_events_are(console, session)
    for sentence in [*outcome.lost[:REASONS_SHOWN], *outcome.odd[:REASONS_SHOWN]]:
        console.print(Text(printable(f"  {sentence}", 400), style="yellow"), soft_wrap=True)
    for check in outcome.failed_checks:
        text = Text(printable(f"  check {check}", 400), style="red" if check.is_error else "yellow")
        console.print(text, soft_wrap=True)


def _rejected(lines: int, new: int) -> str:
    """The rejected lines of the hours, whose reasons follow, and whether an earlier run rejected them."""
    if not lines:
        return counted(lines, "rejected line")
    of_earlier_runs = "" if new >= lines else f", {'also' if new else 'all'} of earlier runs"
    return f"{counted(lines, 'rejected line')}{of_earlier_runs}:"


def _print_traces(console: Console, session: Session, hours: HourRange) -> None:
    """What became of the spans of these hours, and of how many of them nothing did, by reason."""
    reading = read_traces(session, hours)
    if reading is None:
        return
    console.print(f"  {reading}")
    for reason, count in list(reading.unused.items())[:REASONS_SHOWN]:
        console.print(Text(printable(f"    {count:>6,} × {reason}", 200)), soft_wrap=True)
    for warning in reading.warnings:
        console.print(Text(printable(f"  {warning}", 200), style="yellow"), soft_wrap=True)


def _print_names_with_uuids(console: Console, session: Session, span: list) -> None:
    """Agents that are new with every run would each have too few runs to be judged, so somebody is told."""
    found = session.query(
        f"SELECT DISTINCT agent_id FROM executions WHERE agent_id LIKE '{UUID_LIKE}' AND hour >= ? AND hour < ?", span
    )
    alike = alike_but_for_uuids(name for (name,) in found)
    if alike:
        text = (
            f"  {len(alike):,} agents differ only by a UUID in their names, like {printable(alike[0], 100)}: "
            "fold them into one by names: in the targets file"
        )
        console.print(Text(text, style="yellow"), soft_wrap=True)


def print_left_behind(console: Console, ranges: Sequence[HourRange]) -> None:
    """Which other hours should follow, since they look back on hours that are others now."""
    if not ranges:
        return
    count = sum(len(hours) for hours in ranges)
    more = f", and {counted(len(ranges) - 1, 'more such range')}" if len(ranges) > 1 else ""
    console.print(
        f"[yellow]  {counted(count, 'other hour looks', 'other hours look')} back on what has changed: "
        f"materialize {ranges[0]} too{more}[/]"
    )


def print_older_results(console: Console, older: Sequence[OlderResults]) -> None:
    """Which results another version of their formula made, and what brings them up to date."""
    for results in older:
        console.print(Text(printable(f"  {results}", 400), style="yellow"), soft_wrap=True)
    if due := {hour for results in older for hour in results.due}:
        console.print(
            f"[yellow]  the late-log sensor brings them up to date, the newest first, or "
            f"health-assets materialize --from {min(due):%Y-%m-%dT%H} --to {max(due) + HOUR:%Y-%m-%dT%H}[/]",
            soft_wrap=True,
        )


def _print_where_events_are(console: Console, session: Session) -> None:
    """Whoever asked for other hours than those of the logs is told the right ones."""
    [(first, last)] = session.query(
        "SELECT min(hour), max(hour) FROM raw_logs WHERE record_type <> 'rejected' AND lines > coalesce(lost, 0)"
    )
    if first is not None:
        held = HourRange(first, last + HOUR)
        console.print(f"[yellow]  no execution ended in these hours; the logs hold events of {held}[/]")


def _print_rejections(console: Console, session: Session, span: list) -> None:
    reasons = session.query(
        """
        WITH told AS (
            SELECT regexp_replace(reason, ', (not|in span) .*', '') AS kind, source_file, line_number, lines
            FROM rejected_records WHERE hour >= ? AND hour < ?
        ), placed AS (
            SELECT kind, source_file, line_number, CAST(sum(lines) OVER (PARTITION BY kind) AS BIGINT) AS lines,
                row_number() OVER (PARTITION BY kind ORDER BY source_file, line_number) AS place
            FROM told
        )
        SELECT kind, lines, source_file || ':' || line_number FROM placed WHERE place = 1 ORDER BY lines DESC, kind
        """,
        span,
    )
    for reason, lines, place in reasons[:REASONS_SHOWN]:
        console.print(
            Text(printable(f"    {lines:>6,} × {reason}  (first in {place})", 400), style="yellow"), soft_wrap=True
        )
    if len(reasons) > REASONS_SHOWN:
        more = counted(len(reasons) - REASONS_SHOWN, "more reason")
        console.print(f"    and {more} in rejected_records")
    _print_rejections_elsewhere(console, session)


def _print_rejections_elsewhere(console: Console, session: Session) -> None:
    """A file without any good event has its rejected lines in the hour of its modification, which few would ask for."""
    [(lines, files, first)] = session.query(
        """
        SELECT sum(lines), count(DISTINCT source_file), min(hour)
        FROM raw_logs WHERE record_type = 'rejected' AND NOT is_loaded AND lines > 0
        """
    )
    if lines:
        why = f"see why by --from {first:%Y-%m-%dT%H} --to {first + HOUR:%Y-%m-%dT%H}"
        if first > datetime.now(UTC):
            why = "the files say that they were changed in the future; give them a time that was, to see why"
        text = f"    {lines:>6,} × rejected in hours that are not materialized, of {counted(files, 'file')}: {why}"
        console.print(Text(text, style="yellow"), soft_wrap=True)
