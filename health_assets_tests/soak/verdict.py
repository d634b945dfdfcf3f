"""What must be true once the disturbances are over, however many there were.

What belongs here: waiting until nothing is left to do, comparing, counting. What does not: how the figures are shown
(`__main__`).
"""

import json
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg

from health_assets.core.hours import HOUR, KEY_FORMAT, HourRange, floor_hour
from health_assets.defs.unfinished_runs import UNFINISHED
from health_assets.pipeline.hour_arithmetic import newest_finished_hour
from health_assets.systems.declared_assets import DERIVED
from health_assets_tests.soak.installation import (
    AGREES,
    DAGSTER,
    ELSE,
    WAREHOUSE,
    WRITE_AHEAD_LOG,
    Installation,
    end_with_journal,
    wait_until,
)
from health_assets_tests.soak.sender import SENT_AGENTS
from health_assets_tests.soak.services import Service
from health_assets_tests.support.projects import Project, assert_lines_are_conserved, assert_same_tables

QUIET_S = 900.0
"""Longest until the installation has caught up: leases expire, runs are tried again, and the sensor looks once a minute."""
SAMPLES_TO_COMPARE = 90
MOST_GROWTH = 1.3
SPARE_MIB = 60.0
"""What a process may have more than that: allocators keep what they had."""
MOST_MIB_A_RUN = 1.0
"""Dagster's records may grow by so much."""
MOST_TIMES_REBUILT = 4.0
"""A warehouse may be so many times as large as a new one of the same logs: what is replaced is there twice until it is
committed, and PostgreSQL forgets at each crash which places are free until it has looked through the table."""
SPARE_DISK_MIB = 24.0
MOST_LOG_MIB = 160.0
"""PostgreSQL aims at a log of `max_wal_size`, 128 MiB here, which a single checkpoint does not always bring about."""


@dataclass(frozen=True)
class Verdict:
    """The figures of a soak in which nothing was wrong.

    Args:
        lines: lines that the writer wrote, copies aside.
        executions: of them, executions of hours that are over.
        hours: hours that are materialized.
        quiet_after_s: how long after the last disturbance nothing was left to do.
        runs: by state, the runs that there were.
        rss_mib: by service, the median of its memory in the first, second and last third.
        disk_mib: by part, what the data took on the disk before and after.
        rebuilt_mib: the space of a new warehouse of the same logs.
    """

    lines: int
    executions: int
    hours: int
    quiet_after_s: float
    runs: dict[str, int]
    rss_mib: dict[str, tuple[float, float, float]]
    disk_mib: dict[str, tuple[float, float]]
    rebuilt_mib: float


def judge(installation: Installation, disk_mib_before: dict[str, float]) -> Verdict:
    """End the writer, wait until all is done, and compare with a clean rebuild.

    Raises:
        AssertionError: a line is lost, a table differs, something is stuck, or memory or the disk grew.
    """
    end_with_journal(installation, "writer", installation.journal)
    ended_at = datetime.now(UTC)
    wait_until(lambda: _is_quiet(installation, ended_at.timestamp()), QUIET_S, _what_is_left(installation), every_s=2)
    quiet_after_s = (datetime.now(UTC) - ended_at).total_seconds()
    for name in ("daemon", "code-server"):
        installation.services[name].end()
    runs = _runs(installation)
    hours = materialized(installation)
    lines, executions = assert_every_execution_is_there(installation, hours)
    rebuilt_mib = assert_equal_to_a_clean_rebuild(installation, hours)
    for service in installation.services.values():
        assert_memory_is_flat(service)
    rss_mib = {name: thirds(service.rss_mib) for name, service in installation.services.items()}
    disk_mib = {part: (disk_mib_before[part], after) for part, after in installation.used_mib().items()}
    told = f"on the disk in MiB, before and after: {disk_mib}; new {rebuilt_mib:.0f}; runs: {runs}"
    growth = {part: after - before for part, (before, after) in disk_mib.items()}
    assert disk_mib[WRITE_AHEAD_LOG][1] <= MOST_LOG_MIB, told
    assert disk_mib[WAREHOUSE][1] <= MOST_TIMES_REBUILT * rebuilt_mib + SPARE_DISK_MIB, told
    assert growth[DAGSTER] <= MOST_MIB_A_RUN * sum(runs.values()) + SPARE_DISK_MIB, told
    assert growth[ELSE] <= SPARE_DISK_MIB, told
    return Verdict(lines, executions, len(hours), quiet_after_s, runs, rss_mib, disk_mib, rebuilt_mib)


def _is_quiet(installation: Installation, since: float) -> bool:
    return installation.sensor_said(since).startswith(AGREES) and not installation.runs(*UNFINISHED)


def _what_is_left(installation: Installation) -> str:
    return f"the installation does not come to rest; see {installation.folder}"


def _runs(installation: Installation) -> dict[str, int]:
    counts: dict[str, int] = {}
    for run in installation.runs(*dg.DagsterRunStatus):
        counts[run.status.value] = counts.get(run.status.value, 0) + 1
    return counts


def materialized(installation: Installation) -> HourRange:
    """The hours of all tables, that are over: the same for each, without a hole, up to the newest that is due."""
    with _seen(installation).warehouse.read() as session:
        rows = session.query("SELECT asset, hour FROM partition_states")
    hours_of: dict[str, set[datetime]] = {name: set() for name in DERIVED}
    for asset, hour in rows:
        if asset in hours_of:
            hours_of[asset].add(hour)
    scored = {hour for hour in hours_of["system_health"] if hour < floor_hour(datetime.now(UTC))}
    first, last = min(scored), max(scored)
    expected = set(HourRange(first, last + HOUR))
    for asset, hours in hours_of.items():
        assert hours >= expected, f"{asset} lacks {sorted(f'{hour:{KEY_FORMAT}}' for hour in expected - hours)}"
    due = newest_finished_hour(datetime.now(UTC), timedelta(minutes=installation.settings.schedule_minute + 5))
    assert last >= due, f"{due:{KEY_FORMAT}} is not materialized"
    return HourRange(first, last + HOUR)


def assert_every_execution_is_there(
    installation: Installation, hours: HourRange, sent: Mapping[str, int] | None = None
) -> tuple[int, int]:
    """Check that every execution is there once; gives how many lines were written, and the executions of these hours.

    Args:
        installation: what was soaked.
        hours: finished hours.
        sent: by hour, the executions that were sent as traces; None where nothing was sent.

    Raises:
        AssertionError: an execution is lost, there twice, or was never written.
    """
    journal = json.loads(installation.journal.read_text(encoding="utf-8"))
    keys = {f"{hour:%Y-%m-%dT%H}" for hour in hours}
    written = {(hour, name) for hour, names in journal["executions"].items() if hour in keys for name in names}
    with _seen(installation).warehouse.read() as session:
        rows = session.query("SELECT hour, execution_id, agent_id FROM executions")
    rows = [(f"{hour:%Y-%m-%dT%H}", *names) for hour, *names in rows]
    rows = [row for row in rows if row[0] in keys]
    found = [(hour, execution_id) for hour, execution_id, agent_id in rows if agent_id not in SENT_AGENTS]
    found_sent = Counter(hour for hour, _, agent_id in rows if agent_id in SENT_AGENTS)
    assert len(found) == len(set(found)), "executions stand there twice"
    lost, spare = sorted(written - set(found)), sorted(set(found) - written)
    assert not lost and not spare, f"{len(lost)} executions are lost, like {lost[:3]}; nobody wrote {spare[:3]}"
    expected_sent = {hour: count for hour, count in (sent or {}).items() if hour in keys}
    assert found_sent == expected_sent, f"of traces there are {found_sent}, not {expected_sent}"
    return journal["lines"], len(written) + sum(found_sent.values())


def assert_equal_to_a_clean_rebuild(installation: Installation, hours: HourRange) -> float:
    """Compare all tables; returns the space of the rebuilt warehouse, in MiB."""
    seen = _seen(installation)
    assert_lines_are_conserved(seen)
    clean = seen.clean_rebuild(hours)
    assert_same_tables(seen.tables(hours), clean.tables(hours))
    if clean.url:
        [[size_bytes]] = clean.query("SELECT pg_database_size(current_database())")
    else:
        size_bytes = clean.warehouse_path.stat().st_size
    return size_bytes / 2**20


def _seen(installation: Installation) -> Project:
    """The installation as tests look at projects."""
    url = installation.environment["HEALTH_WAREHOUSE"]
    is_postgres = url.startswith("postgres")
    folder = installation.folder / "seen"
    project = Project(folder, engine="postgres" if is_postgres else "duckdb", url=url if is_postgres else "")
    project.raw = installation.raw
    project.warehouse_path = Path(url)
    return project


def assert_memory_is_flat(service: Service) -> None:
    """The memory of a service's process does not grow from the second third of the time to the last.

    Raises:
        AssertionError: it does.
    """
    _, second, third = thirds(service.rss_mib)
    is_flat = len(service.rss_mib) < SAMPLES_TO_COMPARE or third <= MOST_GROWTH * second + SPARE_MIB
    assert is_flat, f"{service.name} grew from {second:.0f} to {third:.0f} MiB"


def thirds(values: Sequence[float]) -> tuple[float, float, float]:
    """Medians of the first, second and last third."""
    size = max(1, len(values) // 3)
    parts = values[:size], values[size : 2 * size] or values, values[-size:]
    first, second, third = (statistics.median(part) for part in parts)
    return first, second, third
