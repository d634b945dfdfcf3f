"""Superseding: of the lines of one agent and id in an hour one stays a row, and what the others say is not lost.

What belongs here: which line wins, and the violations that all lines of an execution state together. What does not:
loading lines (`loading`) and what violations mean for a score (`systems.reliability`).
"""

import json
from collections.abc import Collection
from collections.abc import Set as AbstractSet
from datetime import datetime

import ibis
import pyarrow as pa
from ibis import ir

from health_assets.core.hours import HourRange, contiguous
from health_assets.core.targets import Targets
from health_assets.pipeline.enrichment import agent_as_named, resolved
from health_assets.schema.catalog import ID_OF_TABLE, SUPERSEDED
from health_assets.schema.records import identity_of
from health_assets.warehouse.partition_states import PartitionStates
from health_assets.warehouse.session import HOUR_TYPE, Session
from health_assets.warehouse.superseded_executions import NOT_JUDGED, Run, SupersededExecutions

ROW = ("hour", "source_file", "line_number", "execution_id")
"""Columns that tell rows of `executions` apart, in whatever file or trace they stand."""
VIOLATIONS = ("violations", "violations_reported")


def keep_winners(
    session: Session, hours: HourRange, competing: AbstractSet[datetime], targets: Targets
) -> tuple[int, dict[str, set[datetime]]]:
    """Keep the greatest row (time, file, line) of each agent and id in each hour, and set the others aside.

    Args:
        session: a write session.
        hours: the hours whose rows are looked at.
        competing: hours among them that lost or got rows. Rows that were set aside there compete again, since what they
            had lost against may be gone.
        targets: targets that resolve names and SLA breaches of rows that come back.

    Returns:
        How many lines of logs lost that had not before; and by table the hours in which rows may have come back.
    """
    lines, back = 0, dict[str, set[datetime]]()
    for table in sorted(ID_OF_TABLE):
        aside = SUPERSEDED[table]
        counts = session.counts_by_hour(aside, hours)
        lines_before = _lines(session, aside, hours) if counts else 0
        back[table] = counts.keys() & competing
        for some in contiguous(back[table]):
            session.insert(table, resolved(session, table, session.hours_of(aside, some), targets))
            session.delete_hours(aside, some)
        order = [ID_OF_TABLE[table][1], "source_file", "line_number"]
        if session.delete_duplicates(table, hours, ["hour", *identity_of(table)], order, into=aside):
            lines += max(0, _lines(session, aside, hours) - lines_before)
    return lines, back


def _lines(session: Session, aside: str, hours: HourRange) -> int:
    """The rows that are a line each, and do not follow from spans."""
    rows = session.hours_of(aside, hours)
    return session.count(rows.filter(rows.span_id.isnull()) if "span_id" in rows.columns else rows)


def add_up_violations(session: Session, hours: HourRange) -> set[datetime]:
    """Give every execution the violations of all its lines; gives the hours of which rows have changed.

    Only a judge can clear an execution (`scoring.safety_verdicts`), so no later line of the agent's own takes back
    what an earlier one states.
    """
    superseded = SupersededExecutions(session)
    stated = superseded.violations(hours)
    if not stated and not superseded.has_added_violations(hours):
        return set()
    corrections = []
    for row in session.arrow(_candidates(session, hours, stated)).to_pylist():
        others = stated.get(Run(row["hour"], row["agent_id"], row["execution_id"]), set())
        before = row["violations"], row["violations_reported"]
        own = before[0] if before[1] is None else None if before[1] == NOT_JUDGED else before[1]
        together = _added_up(own, others)
        after = (together, None) if together == own else (together, own or NOT_JUDGED)
        if after != before:
            corrections.append({name: row[name] for name in ROW} | dict(zip(VIOLATIONS, after, strict=True)))
    if not corrections:
        return set()
    types = {"hour": HOUR_TYPE, "line_number": pa.int64()}
    schema = pa.schema([(name, types.get(name, pa.string())) for name in (*ROW, *VIOLATIONS)])
    rows = ibis.memtable(pa.Table.from_pylist(corrections, schema))
    rows = rows.mutate(**{name: rows[name].cast("json") for name in VIOLATIONS})
    return PartitionStates(session).correct_rows("executions", rows, list(ROW))


def _candidates(session: Session, hours: HourRange, runs: Collection[Run]) -> ir.Table:
    """The executions of these hours that are among some runs, or have other violations than their own line states."""
    rows = session.hours_of("executions", hours)
    rows = rows.select(
        *ROW,
        agent_id=agent_as_named(rows),
        **{name: rows[name].cast("string") for name in VIOLATIONS},
    )
    differing = rows.filter(rows.violations_reported.notnull())
    if not runs:
        return differing
    columns = dict(zip(Run._fields, map(list, zip(*runs, strict=True)), strict=True))
    columns["hour"] = pa.array(columns["hour"], HOUR_TYPE)
    of_runs = rows.semi_join(ibis.memtable(pa.table(columns)), list(Run._fields))
    return ibis.union(differing, of_runs, distinct=True)


def _added_up(own: str | None, others: Collection[str]) -> str | None:
    """The violations of several lines as JSON, those of the line that stays first; None where none was judged."""
    texts = [text for text in [own, *sorted(others)] if text is not None]
    if len(set(texts)) <= 1:
        return texts[0] if texts else None
    each = {json.dumps(violation, sort_keys=True): violation for text in texts for violation in json.loads(text)}
    return json.dumps([*each.values()], ensure_ascii=False, separators=(",", ":"))
