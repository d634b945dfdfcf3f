"""The report of one agent: what every scoring system says of it at one hour, and by which events.

What belongs here: the score with the points that it lost, failures, versions, sessions and models; and every other
table about agents and windows as it is, so that a new scoring system shows here by itself. What does not: the fleet,
which has a module for each system.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from difflib import get_close_matches
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from health_assets.core.console import plain_table
from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HOUR, HourRange
from health_assets.core.terminal import printable
from health_assets.core.wording import counted
from health_assets.schema.catalog import ALL_TABLES, columns_of
from health_assets.scoring.explanation import COLUMNS, Evidence, explain
from health_assets.scoring.verdict import reservation, verdict
from health_assets.warehouse.session import Session

IDS_SHOWN = 5
ROWS_SHOWN = 10
SESSIONS_SHOWN = 10
ERRORS_SHOWN = 5
FIRST_LINE_OF_ERROR = (
    "nullif(rtrim(split_part(ltrim(error, chr(13) || chr(10) || ' '), chr(10), 1), chr(13) || ' '), '')"
)
"""SQL for the first line of an error that is not blank; null where the log states none."""
NAMES_SUGGESTED = 3
NOT_SHOWN = ("hour", "agent_id", "window_start", "window_end", "formula_version")
"""Columns that say the same of every row, or stand in the heading."""


def print_agent(console: Console, session: Session, hours: HourRange, agent_id: str) -> None:
    """Everything that is known of an agent at the last of these hours, and its runs and sessions in all of them.

    Raises:
        HealthAssetsError: the agent is not known at that hour.
    """
    hour = hours.end - HOUR
    _require(session, hour, agent_id)
    _print_score(console, session, hour, agent_id)
    _print_failures(console, session, hours, agent_id)
    _print_versions(console, session, hours, agent_id)
    for name in shown_tables():
        block = OWN_BLOCKS.get(name, _print_rows)
        block(console, session, hours, agent_id, name)


def shown_tables() -> list[str]:
    """Tables about agents and windows, or in which sessions and models are, in the order in which they are declared."""
    told = {"agent_health", "score_evidence"}
    of_windows = [name for name in ALL_TABLES if {"agent_id", "window_end"} <= set(columns_of(name))]
    return [name for name in ALL_TABLES if name in {*of_windows, *OWN_BLOCKS} - told]


def _require(session: Session, hour: datetime, agent_id: str) -> None:
    agents = [name for (name,) in session.query("SELECT agent_id FROM agent_health WHERE hour = ?", [hour])]
    if agent_id in agents:
        return
    close = get_close_matches(agent_id, agents, NAMES_SUGGESTED)
    if close:
        hint = f"did you mean {' or '.join(map(printable, close))}?"
    else:
        hint = f"{counted(len(agents), 'agent')} are known there; health-assets report shows them"
    raise HealthAssetsError(f"no agent {printable(agent_id)} is known at {hour:%Y-%m-%d %H:%M} UTC; {hint}")


def _row(session: Session, table: str, hour: datetime, agent_id: str, columns: Sequence[str]) -> dict[str, Any]:
    sql = f"SELECT {', '.join(columns)} FROM {table} WHERE hour = ? AND agent_id = ?"
    [values] = session.query(sql, [hour, agent_id])
    return dict(zip(columns, values, strict=True))


def _heading(console: Console, text: str) -> None:
    console.print()
    console.print(Text(text, style="bold"))


def _print_score(console: Console, session: Session, hour: datetime, agent_id: str) -> None:
    """The score, and by component the points that it lost, why, and the ids of the events that weigh most."""
    columns = tuple(dict.fromkeys(("state", "is_provisional", "health_score", "n", "hours_covered", *COLUMNS)))
    row = _row(session, "agent_health", hour, agent_id, columns)
    score = "no score" if row["health_score"] is None else f"{row['health_score']:.1f} of 100"
    doubt = f" ({reservation(row)})" if row["is_provisional"] else ""
    word = verdict(row["state"], is_provisional=row["is_provisional"])
    _heading(console, f"{printable(agent_id)} at {hour:%Y-%m-%d %H:%M} UTC: {word}, {score}{doubt}")
    console.print(f"{counted(row['n'], 'execution')} in the window, of which {row['hours_covered']:,} h are covered")
    losses = [] if row["health_score"] is None else explain(row, _evidence(session, hour, agent_id))
    if not losses:
        return
    table = plain_table()
    for heading in ("points lost", "of"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("to", no_wrap=True)
    table.add_column("because")
    table.add_column("see")
    for loss in losses:
        ids = ", ".join(printable(event_id, 80) for event_id in loss.evidence[:IDS_SHOWN])
        table.add_row(
            f"{loss.lost:.1f}",
            f"{loss.component.points:g}",
            loss.component.name,
            Text(printable(loss.sentence)),
            Text(ids, style="dim"),
        )
    console.print(table)


def _evidence(session: Session, hour: datetime, agent_id: str) -> Evidence:
    evidence: dict[str, list[str]] = {}
    for kind, event_id in session.query(
        "SELECT kind, event_id FROM score_evidence WHERE hour = ? AND agent_id = ? ORDER BY kind, rank",
        [hour, agent_id],
    ):
        evidence.setdefault(kind, []).append(event_id)
    return evidence


def _print_failures(console: Console, session: Session, hours: HourRange, agent_id: str) -> None:
    """The most frequent errors of the agent's failed executions in these hours, by the first line of their texts."""
    found = session.query(
        f"""
        SELECT {FIRST_LINE_OF_ERROR} AS line, count(*), max(ended_at)
        FROM executions WHERE agent_id = ? AND status = 'failure' AND hour >= ? AND hour < ?
        GROUP BY 1 ORDER BY 2 DESC, 3 DESC, 1
        """,
        [agent_id, hours.start, hours.end],
    )
    if not found:
        return
    failures = sum(count for _, count, _ in found)
    _heading(console, f"{counted(failures, 'failed execution')} in {len(hours):,} h")
    table = plain_table()
    table.add_column(justify="right", no_wrap=True)
    table.add_column()
    table.add_column(no_wrap=True)
    table.show_header = False
    for error, count, last in found[:ERRORS_SHOWN]:
        text = Text("the log states no error", style="dim") if error is None else Text(printable(error))
        table.add_row(f"{count:,} ×", text, f"last {_shown(last)}")
    if len(found) > ERRORS_SHOWN:
        others = failures - sum(count for _, count, _ in found[:ERRORS_SHOWN])
        table.caption = f"{others:,} with {counted(len(found) - ERRORS_SHOWN, 'more error')}"
    console.print(table)


def _print_versions(console: Console, session: Session, hours: HourRange, agent_id: str) -> None:
    """Runs and successes in these hours by version of the agent, the newest version first, where one is told."""
    found = session.query(
        """
        SELECT agent_version, count(*), count(CASE WHEN status = 'success' THEN 1 END) AS succeeded, max(ended_at)
        FROM executions WHERE agent_id = ? AND hour >= ? AND hour < ?
        GROUP BY 1 ORDER BY 4 DESC, 1
        """,
        [agent_id, hours.start, hours.end],
    )
    if any(version is not None for version, *_ in found):
        shown = ("agent_version", "runs", "succeeded", "last")
        _print_table(console, f"Versions in {len(hours):,} h", shown, found, len(found))


def _print_sessions(console: Console, session: Session, hours: HourRange, agent_id: str, table: str) -> None:
    """The newest scores of the agent's sessions in these hours, the least reliable first.

    Without signals both metrics are 1 by the source's formula. Nobody evaluated such a session: it has no score here,
    and comes last.
    """
    shown = ("session_id", "agent_reliability", "reliability_band", "agent_consistency", "consistency_band",
             "total_traces", "flagged_traces")  # fmt: skip
    newest = f"""
        SELECT *, row_number() OVER (PARTITION BY session_id ORDER BY hour DESC) AS place
        FROM {table} WHERE agent_id = ? AND hour >= ? AND hour < ?
    """
    found = session.query(
        f"""
        SELECT session_id, {_evaluated("agent_reliability", "reliability_band", "traces_evaluated")},
            {_evaluated("agent_consistency", "consistency_band", "consistency_traces_evaluated")},
            total_traces, flagged_traces
        FROM ({newest}) AS newest WHERE place = 1
        ORDER BY CASE WHEN traces_evaluated > 0 THEN 0 ELSE 1 END, agent_reliability, agent_consistency, session_id
        """,
        [agent_id, hours.start, hours.end],
    )
    _print_table(console, f"Sessions in {len(hours):,} h", shown, found[:SESSIONS_SHOWN], len(found))


def _evaluated(score: str, band: str, evaluated: str) -> str:
    """A session's metric and its band as SQL: null, and said so, where no trace could be evaluated."""
    return f"CASE WHEN {evaluated} > 0 THEN {score} END, CASE WHEN {evaluated} > 0 THEN {band} ELSE 'not evaluated' END"


def _print_models(console: Console, session: Session, hours: HourRange, agent_id: str, table: str) -> None:
    """The models that the agent called in these hours or ran with, and how these answer everybody."""
    span = {"agent": agent_id, "start": hours.start, "end": hours.end}
    inside = "agent_id = $agent AND model IS NOT NULL AND hour >= $start AND hour < $end"
    shown = ("model", "calls", "failed", "score of all calls", "degraded", "last error of any call")
    found = session.query(
        f"""
        WITH called AS (
            SELECT model, count(*) AS calls, count(CASE WHEN status <> 'success' THEN 1 END) AS failed
            FROM model_calls WHERE {inside} GROUP BY model
        ), used AS (
            SELECT model FROM called UNION SELECT model FROM executions WHERE {inside}
        ), newest AS (
            SELECT *, row_number() OVER (PARTITION BY model ORDER BY hour DESC) AS place
            FROM {table} WHERE hour >= $start AND hour < $end
        )
        SELECT used.model, coalesce(calls, 0), coalesce(failed, 0), health_score, is_degraded, last_error
        FROM used LEFT JOIN called ON called.model = used.model
        LEFT JOIN newest ON newest.model = used.model AND newest.place = 1
        ORDER BY health_score, used.model
        """,
        span,
    )
    _print_table(console, f"Models in {len(hours):,} h", shown, found[:ROWS_SHOWN], len(found))


def _print_rows(console: Console, session: Session, hours: HourRange, agent_id: str, table: str) -> None:
    """The agent's rows of the last of these hours that has any; one as a list, several as a table."""
    columns = [name for name in columns_of(table) if name not in NOT_SHOWN]
    sql = f"SELECT max(hour) FROM {table} WHERE agent_id = ? AND hour >= ? AND hour < ?"
    [(hour,)] = session.query(sql, [agent_id, hours.start, hours.end])
    if hour is None:
        return
    sql = f"SELECT {', '.join(columns)} FROM {table} WHERE agent_id = ? AND hour = ?"
    found = session.query(sql, [agent_id, hour])
    title = f"{table.replace('_', ' ').capitalize()} at {hour:%Y-%m-%d %H:%M} UTC"
    if len(found) > 1:
        _print_table(console, title, columns[:COLUMNS_SHOWN], [row[:COLUMNS_SHOWN] for row in found], len(found))
        return
    _heading(console, title)
    known = {name: _shown(value) for name, value in zip(columns, found[0], strict=True) if value is not None}
    console.print(Text(" · ".join(f"{name} {value}" for name, value in known.items())))


COLUMNS_SHOWN = 9
Block = Callable[[Console, Session, HourRange, str, str], None]
OWN_BLOCKS: Mapping[str, Block] = {"session_scores": _print_sessions, "model_health": _print_models}
"""By table, the blocks of what is more than an agent's row; every other table is shown as it is."""


def _print_table(
    console: Console, title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], count: int
) -> None:
    if not rows:
        return
    _heading(console, title)
    table: Table = plain_table()
    for column in columns:
        table.add_column(column.replace("_", " "), max_width=40)
    for row in rows[:ROWS_SHOWN]:
        table.add_row(*(Text(_shown(value)) for value in row))
    if count > len(rows[:ROWS_SHOWN]):
        table.caption = f"{len(rows[:ROWS_SHOWN])} of {count:,}"
    console.print(table)


def _shown(value: object) -> str:
    """A value as a person reads it; a dash for what is not known."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M}"
    if isinstance(value, list):
        return ", ".join(printable(str(one), 60) for one in value[:IDS_SHOWN]) or "none"
    return f"{value:,}" if isinstance(value, int) else printable(str(value))
