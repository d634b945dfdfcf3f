"""Surveying now: who is due, what they answer, and keeping it in the warehouse while more answers come in.

What belongs here: everything between "survey these agents" and rows in `agent_probes`. What does not: how an agent is
asked (`probing`) and the summary (`survey_summary`).

A probe is an observation of the present: it cannot be made for an hour that is over, nor made again. So probes are
added to what is stored, and of one agent's probes in one hour the latest stays. The warehouse is held only to write a
batch, since a survey may take long and others need it meanwhile.
"""

import asyncio
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from health_assets.consumer.fetching import health_url, run_async
from health_assets.core.errors import HealthAssetsError, NoWarehouseError
from health_assets.core.hours import HOUR, HourRange, contiguous, floor_hour
from health_assets.core.settings import Settings
from health_assets.systems.survey import FORMULA_VERSION
from health_assets.systems.survey.probing import Manners, Probe, probe_agents
from health_assets.systems.survey.survey_summary import survey_summary
from health_assets.systems.survey.surveyed_agents import RegisteredAgent
from health_assets.warehouse.partition_states import PartitionStates
from health_assets.warehouse.session import Session
from health_assets.warehouse.store import Warehouse

KEEP_EVERY_S = 10.0
LEAST_LOCK_TIMEOUT_S = 600.0
REMEMBERED_DAYS = 7


@dataclass(frozen=True, kw_only=True)
class Survey:
    """The outcome of a survey.

    Args:
        agents: agents in the registry.
        probed: agents that were asked.
        too_soon: agents that were not, because they had been asked less than the polling interval before.
        too_late: agents that were not, because the time was over.
        hours: hours that have new probes.
        host_lost: agents among the probed that were not asked, because their host gave no connection to many others.
    """

    agents: int
    probed: int
    too_soon: int
    too_late: int
    hours: tuple[datetime, ...]
    host_lost: int = 0

    def __str__(self) -> str:
        told = f"{self.probed - self.host_lost:,} of {self.agents:,} agents were asked"
        if self.host_lost:
            told += (
                f"; {self.host_lost:,} were not, since their hosts gave no connection to others, and are unreachable"
            )
        if self.too_soon:
            told += f"; {self.too_soon:,} had been asked too short a time before, and their answers stand"
        if self.too_late:
            told += f"; {self.too_late:,} were not reached before the hour was over, and come first in the next"
        return told


def survey(
    settings: Settings,
    agents: Sequence[RegisteredAgent],
    *,
    until: datetime | None = None,
    on_probe: Callable[[Probe], None] = lambda _: None,
) -> Survey:
    """Ask every agent that is due, and keep the answers in `agent_probes`.

    Those asked longest ago, or never, come first; beyond that the order is random, so that nobody is always last.

    Args:
        settings: the warehouse, and how hard to press.
        agents: the registry.
        until: no agent is asked from then on.
        on_probe: called with each probe.

    Raises:
        HealthAssetsError: the warehouse cannot be read or written; probes that were kept stay.
    """
    interval = timedelta(seconds=settings.survey_interval_s)
    last_asked = _last_asked(Warehouse.of(settings), interval)
    # an answer cannot be had again, so it waits longer for the warehouse
    warehouse = Warehouse.of(settings, lock_timeout_s=max(settings.lock_timeout_s, LEAST_LOCK_TIMEOUT_S))
    due = _due(agents, last_asked, datetime.now(UTC) - interval)
    hours: set[datetime] = set()
    lost = 0

    def take(probe: Probe) -> None:
        nonlocal lost
        lost += not probe.was_asked
        on_probe(probe)

    def keep(probes: Sequence[Probe]) -> None:
        with warehouse.write() as session:
            hours.update(keep_probes(session, probes))

    try:
        too_late = run_async(_probe_and_keep(due, _manners(settings), keep, take, until))
    except* HealthAssetsError as faults:
        raise _first(faults) from None
    return Survey(
        agents=len(agents),
        probed=len(due) - too_late,
        too_soon=len(agents) - len(due),
        too_late=too_late,
        hours=tuple(sorted(hours)),
        host_lost=lost,
    )


def _manners(settings: Settings) -> Manners:
    return Manners(
        concurrency=settings.survey_concurrency,
        per_host=settings.survey_per_host,
        pause_s=settings.survey_pause_s,
        timeout_s=settings.survey_timeout_s,
        waiting=settings.survey_waiting,
        allow_private=settings.allow_private_addresses,
    )


def _last_asked(warehouse: Warehouse, interval: timedelta) -> dict[str, datetime]:
    """The time at which each health document was last asked for, within the last week.

    A time further ahead than the interval was written by a clock that ran ahead, and holds up nothing.
    """
    now = datetime.now(UTC)
    since = now - timedelta(days=REMEMBERED_DAYS)
    try:
        with warehouse.read() as session:
            probes = session.table("agent_probes")
            lately = probes.filter(probes.hour >= floor_hour(since), probes.probed_at <= now + interval)
            found = session.dicts(lately.group_by("url").aggregate(asked_at=lately.probed_at.max()))
    except NoWarehouseError:
        return {}
    return {health_url(row["url"]): row["asked_at"] for row in found}


def _due(
    agents: Iterable[RegisteredAgent], last_asked: Mapping[str, datetime], before: datetime
) -> list[RegisteredAgent]:
    """The agents that were last asked `before` that, longest ago first."""
    never = datetime.min.replace(tzinfo=UTC)
    asked = {agent.health_url: last_asked.get(agent.health_url, never) for agent in agents}
    due = [agent for agent in agents if asked[agent.health_url] <= before]
    random.shuffle(due)
    return sorted(due, key=lambda agent: asked[agent.health_url])


async def _probe_and_keep(
    agents: Sequence[RegisteredAgent],
    manners: Manners,
    keep: Callable[[Sequence[Probe]], None],
    on_probe: Callable[[Probe], None],
    until: datetime | None,
) -> int:
    """Probe, and hand over the probes of every few seconds to `keep`, in a thread of its own."""
    probes: list[Probe] = []
    is_over = asyncio.Event()

    def take(probe: Probe) -> None:
        probes.append(probe)
        on_probe(probe)

    async def keep_now_and_then() -> None:
        while not is_over.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(KEEP_EVERY_S):
                    await is_over.wait()
            batch = probes.copy()
            probes.clear()
            if batch:
                await asyncio.to_thread(keep, batch)

    async with asyncio.TaskGroup() as group:
        group.create_task(keep_now_and_then())
        too_late = await probe_agents(agents, manners, take, until=until)
        is_over.set()
    return too_late


def _first(faults: BaseExceptionGroup[HealthAssetsError]) -> HealthAssetsError:
    fault: BaseException = faults
    while isinstance(fault, BaseExceptionGroup):
        fault = fault.exceptions[0]
    assert isinstance(fault, HealthAssetsError)
    return fault


# -- in the warehouse --------------------------------------------------------------------------------------------------


def keep_probes(session: Session, probes: Sequence[Probe]) -> list[datetime]:
    """Add probes to `agent_probes`, in any order; of one agent and hour the latest stays.

    Returns:
        The hours that they belong to.
    """
    hours = sorted({floor_hour(probe.answer.asked_at) for probe in probes})
    if not hours:
        return []
    span = HourRange(hours[0], hours[-1] + HOUR)
    before = session.digests("agent_probes", span)
    session.insert_arrow("agent_probes", _rows(probes))
    session.delete_duplicates("agent_probes", span, ["hour", "url"], ["probed_at"])
    after = session.digests("agent_probes", span)
    for hour in hours:
        changed = {hour} if before.get(hour) != after.get(hour) else set()
        PartitionStates(session).note("agent_probes", HourRange.of(hour), changed)
    return hours


def _rows(probes: Sequence[Probe]) -> pa.Table:
    times = pa.timestamp("us", "UTC")
    answers = [probe.answer for probe in probes]
    return pa.table(
        {
            "hour": pa.array([floor_hour(answer.asked_at) for answer in answers], times),
            "url": [probe.agent.url for probe in probes],
            "name": [probe.agent.name for probe in probes],
            "platform": [probe.agent.platform for probe in probes],
            "probed_at": pa.array([answer.asked_at for answer in answers], times),
            "outcome": [answer.outcome for answer in answers],
            "status": pa.array([probe.status for probe in probes], pa.string()),
            "http_status": pa.array([answer.http_status for answer in answers], pa.int64()),
            "latency_ms": pa.array([answer.latency_ms for answer in answers], pa.float64()),
            "error": pa.array([probe.error for probe in probes], pa.string()),
        }
    )


def summarise(session: Session, hours: Iterable[datetime]) -> None:
    """Replace these hours of `survey_summary`, and any that an older version of the formula made."""
    older = PartitionStates(session).of_other_versions({"survey_summary": FORMULA_VERSION}).get("survey_summary", {})
    for span in contiguous({*hours, *older}):
        rows = survey_summary(session.hours_of("agent_probes", span))
        PartitionStates(session).replace_rows("survey_summary", span, rows, formula_version=FORMULA_VERSION)
