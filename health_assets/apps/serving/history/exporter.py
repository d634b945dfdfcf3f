"""Filling the history from the warehouse, a little at a time, in a process beside the server.

What belongs here: finding the hours that changed, copying them, putting days together, and forgetting old ones. What
does not: which rows (`datasets`) and how files look (`layout`).

The warehouse is held for a few seconds at most, and let go of before the next hours are copied, so that a run that
wants to write gets its turn. The newest hours come first: the pages need them most. Hours are put together to days
without the warehouse.
"""

import hashlib
import json
import time
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from health_assets.apps.serving.history.copying_rules import Rules
from health_assets.apps.serving.history.datasets import COPY, DIGESTED, SERIES, WHOLE, Series
from health_assets.apps.serving.history.history_folder import SPILLED, forget_lost, fresh_name, held, remove_unnamed
from health_assets.apps.serving.history.layout import (
    ROWS_PER_BATCH,
    Account,
    DamagedFileError,
    Kept,
    Part,
    is_damaged,
    make_durable,
    moment,
    read_account,
    read_rows,
    write_account,
    write_rows,
)
from health_assets.apps.serving.ownership import Ownership
from health_assets.core.hours import HOUR, HourRange, floor_hour
from health_assets.core.settings import Settings
from health_assets.core.targets import load_targets
from health_assets.pipeline.span_summary import without_agents
from health_assets.warehouse.in_memory import in_order
from health_assets.warehouse.location import ledger_of
from health_assets.warehouse.partition_states import PartitionStates, WrittenRows
from health_assets.warehouse.session import HOUR_TYPE, Session
from health_assets.warehouse.store import Warehouse

HOLD_S = 2.0
"""Longest time for which the warehouse is held before the next hour is left to the next time."""
MOST_ROWS_AT_ONCE = 200_000
STATE = "state"
MISSING = "missing"


def fill(settings: Settings, folder: Path, warehouse: Warehouse, now: datetime | None = None) -> dict[str, Any]:
    """Bring the history a step nearer to the warehouse.

    Nothing is written where the history has all of it already.

    Returns:
        version: of the account; missing: hours that are still to be copied.

    Raises:
        HealthAssetsError: there is no warehouse, or it is held, or the targets cannot be used, or the folder holds
            something else.
        OSError: the folder cannot be written.
    """
    rules = Rules(Ownership(load_targets(settings.targets)), settings)
    with held(folder):
        account = _account(folder, ledger_of(settings))
        before, known = account.dumps(), account.paths()
        remove_unnamed(folder, known)
        if forget_lost(folder, account):
            account.facts[STATE] = None
        account.facts["declared"] = _declared()
        running = floor_hour(now or datetime.now(UTC))
        with warehouse.read() as session:
            session.use_one_thread()
            missing = _copy(session, folder, account, _hours_of(session, running, settings), rules)
        for series in SERIES if not missing else ():
            missing += _put_days_together(folder, account, series)
        account.facts[MISSING] = missing
        if account.dumps() != before:
            make_durable(folder, account.paths() - known)
            account.version += 1
            write_account(folder, account)
        return {"version": account.version, "missing": missing}


def _hours_of(session: Session, running: datetime, settings: Settings) -> HourRange:
    """The hours that the history has: those of the days before the newest hour with scores, however old that is."""
    newest = PartitionStates(session).newest_of_each(("agent_health",), running + HOUR).get("agent_health")
    end = min(newest.hour + HOUR, running) if newest else running
    return HourRange(end - settings.history_days * 24 * HOUR, running + HOUR)


def _account(folder: Path, ledger: str) -> Account:
    """The account of what has been copied of the warehouse with this ledger, without what nobody declares any more.

    A new one begins with a version that no account before it had: a name that comes again would be taken for known.
    """
    source = hashlib.sha256(ledger.encode()).hexdigest()[:16]
    account = read_account(folder, source) or Account(source=source, version=time.time_ns())
    series = {one.name: account.series.get(one.name, Kept(one.key)) for one in SERIES}
    account.series = {one.name: kept if (kept := series[one.name]).key == one.key else Kept(one.key) for one in SERIES}
    account.whole = {name: path for name, path in account.whole.items() if name in WHOLE}
    return account


def _copy(session: Session, folder: Path, account: Account, hours: HourRange, rules: Rules) -> int:
    """Copy what has changed; returns how many hours are left."""
    state = _state(session, hours, rules)
    is_same = account.facts.get(STATE) == state and not account.facts.get(MISSING)
    missing = 0 if is_same else _copy_stale(session, folder, account, hours, rules)
    for name in WHOLE:
        if not is_same or name not in DIGESTED:
            _copy_whole(session, folder, account, name, hours)
    account.facts |= _facts(session, rules.settings) | {STATE: state}
    return missing


def _state(session: Session, hours: HourRange, rules: Rules) -> str:
    """Changes with all that decides which hours are stale, and costs a fraction of looking at each."""
    digests = [
        {str(hour): digest for hour, digest in session.digests(table, hours).items()} for table in DIGESTED.values()
    ]
    decided = [series.decides(rules) for series in SERIES]
    told = json.dumps([COPY, decided, digests], sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()[:12]


def _copy_whole(session: Session, folder: Path, account: Account, name: str, hours: HourRange) -> None:
    """Copy a small table; one that is as it was keeps its file, so that the account is as it was, too."""
    path, known = fresh_name(account, f"whole/{name}"), account.whole.get(name)
    write_rows(folder / path, session.stream(WHOLE[name](session, hours), ROWS_PER_BATCH), None)
    if known is not None and read_rows(folder / path).equals(_readable(folder / known)):
        (folder / path).unlink()
    else:
        account.whole[name] = path


def _readable(path: Path) -> pa.Table | None:
    """The rows of a file; None where it is damaged, and its rows are copied again as any others."""
    try:
        return read_rows(path)
    except DamagedFileError:
        return None


def _copy_stale(session: Session, folder: Path, account: Account, hours: HourRange, rules: Rules) -> int:
    """Copy changed hours, the newest first, for as long as the warehouse may be held; returns how many are left.

    Then the oldest piece follows, so that a running hour that changes all the time does not keep others waiting.
    """
    written = PartitionStates(session).written(hours)
    stale: dict[str, dict[str, dict[str, str]]] = defaultdict(dict)
    for series in SERIES:
        kept = account.series[series.name]
        stamps, wanted = kept.stamps(), _stamps(series, written, rules)
        kept.drop(set(stamps) - set(wanted))
        for hour, stamp in wanted.items():
            if stamps.get(hour) != stamp:
                stale[hour[:10]].setdefault(series.name, {})[hour] = stamp
    pieces = [
        (series, part)
        for day in sorted(stale, reverse=True)
        for series in SERIES
        for part in _chunks(stale[day].get(series.name, {}), written.get(series.sources[0], {}))
    ]
    deadline = time.monotonic() + HOLD_S
    while pieces:
        _copy_hours(session, folder, account, *pieces.pop(0), rules)
        if time.monotonic() > deadline:
            break
    if pieces:
        oldest = min(pieces, key=lambda piece: min(piece[1]))
        _copy_hours(session, folder, account, *oldest, rules)
        pieces.remove(oldest)
    return len({hour for _, part in pieces for hour in part})


def _chunks(stamps: dict[str, str], written: dict[str, WrittenRows]) -> list[dict[str, str]]:
    """Hours of a day in pieces without holes, the newest first, each of so many rows that memory holds them."""
    pieces: list[dict[str, str]] = []
    rows = 0
    for hour in sorted(stamps, reverse=True):
        own = written[hour].rows
        follows = bool(pieces) and moment(min(pieces[-1])) - HOUR == moment(hour)
        if not follows or rows + own > MOST_ROWS_AT_ONCE:
            pieces.append({})
            rows = 0
        pieces[-1][hour] = stamps[hour]
        rows += own
    return pieces


def _declared() -> dict[str, Any]:
    """Declarations of the program; found before the warehouse is held, since its libraries take a second."""
    from health_assets.apps.serving.history.declared import declared  # whoever reads a session needs none of them

    return declared()


def _facts(session: Session, settings: Settings) -> dict[str, Any]:
    states, end = PartitionStates(session), floor_hour(datetime.now(UTC)) + HOUR
    newest = states.newest_of_each(("agent_health",), end).get("agent_health")
    day = HourRange.of(newest.hour).extended_back(23) if newest else None
    first = states.first("agent_health")
    return {
        "as_of": {hour.isoformat(): known.isoformat() for hour, known in states.as_of("agent_health").items()},
        "without_agents": day and without_agents(session, day),
        "first_hour": first and first.isoformat(),
        "window_hours": settings.window_hours,
        "comparison_margin": settings.comparison_margin,
    }


def _stamps(series: Series, written: dict[str, dict[str, WrittenRows]], rules: Rules) -> dict[str, str]:
    """By hour that the first source has, a fingerprint of when the sources were written, and of what else decides.

    Args:
        series: the series.
        written: by source and hour, when it was written.
        rules: what else decides.
    """
    stamps = {}
    for hour in written.get(series.sources[0], {}):
        sources = [at for source in series.sources if (at := written.get(source, {}).get(hour))]
        if series.repeats_lines and any(at.is_dropped for at in sources):
            continue
        stamp = json.dumps([COPY, series.decides(rules), *(str(at.written_at) for at in sources)])
        stamps[hour] = hashlib.sha256(stamp.encode()).hexdigest()[:12]
    return stamps


def _copy_hours(
    session: Session, folder: Path, account: Account, series: Series, stamps: dict[str, str], rules: Rules
) -> None:
    """Copy hours that follow each other on one day."""
    kept = account.series[series.name]
    first, last = moment(min(stamps)), moment(max(stamps))
    hours = HourRange(first, last + HOUR)
    rows = series.rows(session, hours)
    if series.more is not None:
        rows = series.more(rows, session, hours, rules)
    if series.key is not None:
        rows = rows.filter(rows[series.key].notnull()).order_by(series.key, "hour")
    name = f"{series.name}/{first:%Y-%m-%dT%H}"
    path = fresh_name(account, name)
    write_rows(folder / path, session.stream(rows, ROWS_PER_BATCH), series.key)
    kept.add(Part(path, stamps))
    if series.face:
        shown = read_rows(folder / path, series.face)
        for hour in stamps:
            face = fresh_name(account, f"{series.name}/{hour[:13]}.face")
            of_hour = shown.filter(pc.equal(shown.column("hour"), pa.scalar(moment(hour), HOUR_TYPE)))
            write_rows(folder / face, of_hour.to_reader(max_chunksize=1 << 16), None)
            kept.faces[hour] = face


def _put_days_together(folder: Path, account: Account, series: Series) -> int:
    """Make one file of each day that is over and has several; returns how many hours must be copied again for it."""
    kept = account.series[series.name]
    lost = 0
    for day in sorted(kept.days)[:-1]:
        parts = kept.days[day]
        if len(parts) == 1:
            continue
        try:
            whole = _together(folder, fresh_name(account, f"{series.name}/{day}"), parts, series)
        except (ValueError, OSError, duckdb.Error):
            damaged = [part for part in parts if is_damaged(folder / part.path)]
            if not damaged:
                raise
            for part in damaged:
                kept.drop(part.stamps)
                lost += len(part.stamps)
        else:
            kept.days[day] = [whole]
    return lost


def _together(folder: Path, path: str, parts: list[Part], series: Series) -> Part:
    """The parts as one, by key and hour."""
    order = ["hour"] if series.key is None else [series.key, "hour"]
    sources = [(folder / part.path, set(map(moment, part.stamps))) for part in parts]
    with in_order(sources, order, ROWS_PER_BATCH, folder / SPILLED) as rows:
        write_rows(folder / path, rows, series.key)
    return Part(path, {hour: stamp for part in parts for hour, stamp in part.stamps.items()})
