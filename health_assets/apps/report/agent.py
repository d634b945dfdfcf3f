"""The report of one agent: what every scoring system says of it at one hour, and by which events.

What belongs here: the score with the points that it lost, failures, versions, sessions and models; and every other
table about agents and windows as it is, so that a new scoring system shows here by itself. What does not: the fleet,
which has a module for each system.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from difflib import get_close_matches
from typing import Any

import ibis
from ibis import ir
from rich.console import Console
from rich.table import Table
from rich.text import Text

from health_assets.apps.report.now_block import print_now
from health_assets.apps.report.without_targets import agent_without_targets
from health_assets.core.console import plain_table
from health_assets.core.errors import HealthAssetsError
from health_assets.core.formatting import counted
from health_assets.core.hours import HOUR, HourRange
from health_assets.core.terminal import printable
from health_assets.schema.catalog import ALL_TABLES, columns_of
from health_assets.scoring.explanation import COLUMNS, Evidence, explain, untested
from health_assets.scoring.relations import first_line, lookup, newest
from health_assets.scoring.verdict import at_stake, last_runs, reservation, stake_reservation, verdict
from health_assets.systems.agent_drift.report import drifting_in
from health_assets.systems.agent_drift.texts import sentence
from health_assets.systems.agent_health_model.claims import claims_of
from health_assets.systems.agent_health_model.last_runs import LAST_RUNS, with_last_runs
from health_assets.systems.agent_health_model.names import CLAIMS
from health_assets.systems.agent_health_model.severity_order import NOW_COLUMNS, with_now
from health_assets.warehouse.session import Session

IDS_SHOWN = 5
ROWS_SHOWN = 10
ERRORS_SHOWN = 5
NAMES_SUGGESTED = 3
NOT_EVALUATED = "not evaluated"
NOT_SHOWN = ("hour", "agent_id", "window_start", "window_end", "formula_version")
"""Columns that say the same of every row, or stand in the heading."""


def print_agent(console: Console, session: Session, hours: HourRange, agent_id: str) -> None:
    """Everything that is known of an agent at the last of these hours, and its runs and sessions in all of them.

    Raises:
        HealthAssetsError: the agent is not known at that hour.
    """
    hour = hours.end - HOUR
    _require(session, hour, agent_id)
    _print_score(console, session, hours, agent_id)
    _print_drifts(console, session, hours, agent_id)
    _print_failures(console, session, hours, agent_id)
    _print_claims(console, session, hours, agent_id)
    _print_versions(console, session, hours, agent_id)
    for name in shown_tables():
        block = OWN_BLOCKS.get(name, _print_rows)
        block(console, session, hours, agent_id, name)


def shown_tables() -> list[str]:
    """Tables about agents and windows, or in which sessions and models are, in the order in which they are declared."""
    told = {"agent_health", "score_evidence"}
    of_windows = [name for name in ALL_TABLES if {"agent_id", "window_end"} <= set(columns_of(name))]
    return [name for name in ALL_TABLES if name in {*of_windows, *OWN_BLOCKS} - told]


def _print_drifts(console: Console, session: Session, hours: HourRange, agent_id: str) -> None:
    """In what the agent is worse than its own past; nothing where in nothing."""
    drifting = drifting_in(session, HourRange.of(hours.end - HOUR))
    rows = session.dicts(drifting.filter(drifting.agent_id == agent_id))
    for row in sorted(rows, key=lambda row: -row["evidence"]):
        console.print(Text(printable(f"worse than its own past: {sentence(row)}"), style="red"))


def _require(session: Session, hour: datetime, agent_id: str) -> None:
    known = session.hours_of("agent_health", HourRange.of(hour)).select("agent_id")
    agents = [agent["agent_id"] for agent in session.dicts(known)]
    if agent_id in agents:
        return
    close = get_close_matches(agent_id, agents, NAMES_SUGGESTED)
    if close:
        hint = f"did you mean {' or '.join(map(printable, close))}?"
    else:
        hint = f"{counted(len(agents), 'agent')} are known there; health-assets report shows them"
    raise HealthAssetsError(f"no agent {printable(agent_id)} is known at {hour:%Y-%m-%d %H:%M} UTC; {hint}")


def _of_agent(session: Session, table: str, hours: HourRange, agent_id: str) -> ir.Table:
    """The agent's rows of a table in these hours."""
    rows = session.hours_of(table, hours)
    return rows.filter(rows.agent_id == agent_id)


def _heading(console: Console, text: str) -> None:
    console.print()
    console.print(Text(text, style="bold"))


def _print_score(console: Console, session: Session, window: HourRange, agent_id: str) -> None:
    """Print the verdict of now, the score, and by component the points lost, why, and the ids of the worst events."""
    hour = window.end - HOUR
    hours = HourRange.of(hour)
    scores = with_last_runs(_of_agent(session, "agent_health", hours, agent_id), session, hours)
    rows = with_now(scores, session, hours)
    told = ("state", "is_provisional", "health_score", "points_at_stake", "n", "hours_covered", "agent_id")
    columns = tuple(dict.fromkeys((*told, *NOW_COLUMNS, "now_is_by_6h", *LAST_RUNS, *COLUMNS)))
    [row] = session.dicts(rows.select(*columns))
    _heading(console, f"{printable(agent_id)} at {hour:%Y-%m-%d %H:%M} UTC")
    print_now(console, session, hours, row)
    score = "no score" if row["health_score"] is None else f"{row['health_score']:.1f} of 100"
    doubts = "; ".join(filter(None, [reservation(row), stake_reservation(row)]))
    word = verdict(row["state"], is_provisional=row["is_provisional"])
    console.print(Text(f"over {len(window):,} h: {word}, {score}{f' ({doubts})' if doubts else ''}", style="bold"))
    if at_stake(row):
        console.print(f"points counted in full, though nothing tested them: {', '.join(untested(row))}")
    if by_last_runs := last_runs(row):
        console.print(Text(by_last_runs, style="bold"))
    console.print(f"{counted(row['n'], 'execution')}; {row['hours_covered']:,} h of the window are covered")
    if sentence := agent_without_targets(session, hours, agent_id):
        console.print(Text(sentence, style="yellow"), soft_wrap=True)
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
    events = _of_agent(session, "score_evidence", HourRange.of(hour), agent_id)
    evidence: dict[str, list[str]] = {}
    for event in session.dicts(events.order_by("kind", "rank").select("kind", "event_id")):
        evidence.setdefault(event["kind"], []).append(event["event_id"])
    return evidence


def _print_failures(console: Console, session: Session, hours: HourRange, agent_id: str) -> None:
    """The most frequent errors of the agent's failed executions in these hours, by the first line of their texts."""
    found = session.dicts(_errors(_of_agent(session, "executions", hours, agent_id)))
    if not found:
        return
    failures = sum(error["runs"] for error in found)
    _heading(console, f"{counted(failures, 'failed execution')} in {len(hours):,} h")
    table = plain_table()
    table.add_column(justify="right", no_wrap=True)
    table.add_column()
    table.add_column(no_wrap=True)
    table.show_header = False
    for error in found[:ERRORS_SHOWN]:
        line = error["line"]
        text = Text("the log states no error", style="dim") if line is None else Text(printable(line))
        table.add_row(f"{error['runs']:,} ×", text, f"last {_shown(error['last'])}")
    if len(found) > ERRORS_SHOWN:
        others = failures - sum(error["runs"] for error in found[:ERRORS_SHOWN])
        table.caption = f"{others:,} with {counted(len(found) - ERRORS_SHOWN, 'more error')}"
    console.print(table)


def _errors(executions: ir.Table) -> ir.Table:
    """Failed executions by the first line of their errors, null where the log states none; the most frequent first."""
    failed = executions.filter(executions.status == "failure")
    by_line = failed.group_by(line=first_line(failed.error))
    counted_lines = by_line.aggregate(runs=failed.count(), last=failed.ended_at.max())
    return counted_lines.order_by(ibis.desc("runs"), ibis.desc("last"), "line")


def _print_claims(console: Console, session: Session, hours: HourRange, agent_id: str) -> None:
    """Claims of the agent's executions in these hours that evidence contradicts, the most frequent first."""
    found = session.dicts(_claims(claims_of(session, hours, agent_id)))
    if not found:
        return
    _heading(console, f"Claims that evidence contradicts in {len(hours):,} h, which scores count")
    table = plain_table()
    table.add_column(justify="right", no_wrap=True)
    table.add_column()
    table.add_column()
    table.show_header = False
    for one in found:
        line = f"latest {printable(one['event_id'], 80)}, {printable(one['source_file'], 80)}:{one['line_number']}"
        table.add_row(f"{one['runs']:,} ×", CLAIMS[one["claim"]], Text(line, style="dim"))
    console.print(table)


def _claims(claims: ir.Table) -> ir.Table:
    """The latest execution of each claim, with how many there are in all hours."""
    place = ibis.row_number().over(group_by="claim", order_by=[ibis.desc("hour"), ibis.desc("happened_at"), "event_id"])
    in_all_hours = claims.runs.sum().over(group_by="claim").cast("int64")
    latest = claims.mutate(place=place, runs=in_all_hours).filter(ibis._.place == 0)
    return latest.order_by(ibis.desc("runs"), "claim").drop("place", "hour", "agent_id", "happened_at")


def _print_versions(console: Console, session: Session, hours: HourRange, agent_id: str) -> None:
    """Runs and successes in these hours by version of the agent, the newest version first, where one is told."""
    found = session.dicts(_versions(_of_agent(session, "executions", hours, agent_id)))
    if any(version["agent_version"] is not None for version in found):
        _print_table(console, f"Versions in {len(hours):,} h", found)


def _versions(executions: ir.Table) -> ir.Table:
    by_version = executions.group_by("agent_version").aggregate(
        runs=executions.count(), succeeded=executions.count(where=executions.status == "success"),
        last=executions.ended_at.max(),
    )  # fmt: skip
    return by_version.order_by(ibis.desc("last"), "agent_version")


def _print_sessions(console: Console, session: Session, hours: HourRange, agent_id: str, table: str) -> None:
    """The newest scores of the agent's sessions in these hours, the least reliable first.

    Without signals both metrics are 1 by the source's formula. Nobody evaluated such a session: it has no score here,
    and comes last.
    """
    sessions = newest(_of_agent(session, table, hours, agent_id), "session_id")
    _print_table(console, f"Sessions in {len(hours):,} h", session.dicts(_sessions(sessions)))


def _sessions(scores: ir.Table) -> ir.Table:
    """Sessions from the least reliable on; a metric is null, and its band says so, where no trace was evaluated."""
    is_reliability, is_consistency = scores.traces_evaluated > 0, scores.consistency_traces_evaluated > 0
    in_order = scores.order_by(is_reliability.ifelse(0, 1), "agent_reliability", "agent_consistency", "session_id")
    return in_order.select(
        "session_id",
        agent_reliability=is_reliability.ifelse(scores.agent_reliability, None),
        reliability_band=is_reliability.ifelse(scores.reliability_band, NOT_EVALUATED),
        agent_consistency=is_consistency.ifelse(scores.agent_consistency, None),
        consistency_band=is_consistency.ifelse(scores.consistency_band, NOT_EVALUATED),
        total_traces="total_traces",
        flagged_traces="flagged_traces",
    )


def _print_models(console: Console, session: Session, hours: HourRange, agent_id: str, table: str) -> None:
    """The models that the agent called in these hours or ran with, and how these answer everybody."""
    calls, executions = (_of_agent(session, name, hours, agent_id) for name in ("model_calls", "executions"))
    health = newest(session.hours_of(table, hours), "model")
    _print_table(console, f"Models in {len(hours):,} h", session.dicts(_models(calls, executions, health)))


def _models(calls: ir.Table, executions: ir.Table, health: ir.Table) -> ir.Table:
    """The models of an agent's calls and executions, and their health; the worst first."""
    by_model = calls.group_by("model").aggregate(
        calls=calls.count(), failed=calls.count(where=calls.status != "success")
    )
    used = ibis.union(calls.select("model"), executions.select("model"), distinct=True)
    used = used.filter(used.model.notnull())
    told = health.select(
        "model", score_of_all_calls="health_score", degraded="is_degraded", last_error_of_any_call="last_error"
    )
    models = lookup(lookup(used, by_model, "model"), told, "model")
    in_order = models.order_by("score_of_all_calls", "model")
    return in_order.mutate(calls=in_order.calls.fill_null(0), failed=in_order.failed.fill_null(0))


def _print_rows(console: Console, session: Session, hours: HourRange, agent_id: str, table: str) -> None:
    """The agent's rows of the last of these hours that has any; one as a list, several as a table."""
    columns = [name for name in columns_of(table) if name not in NOT_SHOWN]
    rows = _of_agent(session, table, hours, agent_id)
    [latest] = session.dicts(rows.aggregate(hour=rows.hour.max()))
    if latest["hour"] is None:
        return
    # by tools or tasks, since an engine has no order of its own
    names = [name for name in columns if rows[name].type().is_string()]
    found = session.dicts(rows.filter(rows.hour == latest["hour"]).order_by([*names, "hour"]).select(*columns))
    title = f"{table.replace('_', ' ').capitalize()} at {latest['hour']:%Y-%m-%d %H:%M} UTC"
    title += ", its newest row" if latest["hour"] + HOUR < hours.end else ""
    if len(found) > 1:
        _print_table(console, title, [{name: row[name] for name in columns[:COLUMNS_SHOWN]} for row in found])
        return
    _heading(console, title)
    known = {name: _shown(value) for name, value in found[0].items() if value is not None}
    console.print(Text(" · ".join(f"{name} {value}" for name, value in known.items())))


COLUMNS_SHOWN = 9
Block = Callable[[Console, Session, HourRange, str, str], None]
OWN_BLOCKS: Mapping[str, Block] = {"session_scores": _print_sessions, "model_health": _print_models}
"""By table, the blocks of what is more than an agent's row; every other table is shown as it is."""


def _print_table(console: Console, title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """The first rows below the names of their columns; nothing where there is none."""
    if not rows:
        return
    _heading(console, title)
    table: Table = plain_table()
    for column in rows[0]:
        table.add_column(column.replace("_", " "), max_width=40)
    for row in rows[:ROWS_SHOWN]:
        table.add_row(*(Text(_shown(value)) for value in row.values()))
    if len(rows) > ROWS_SHOWN:
        table.caption = f"{ROWS_SHOWN} of {len(rows):,}"
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
