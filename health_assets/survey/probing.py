"""Probing: ask many agents for their health at once, without being a burden to any of them.

What belongs here: who is asked when, and by how many at a time. What does not: one exchange (`consumer.fetching`) and
where probes are kept (`keeping`).

Politeness is by host as well as by agent, because platforms serve thousands of agents from one host: no host is asked
by more than a few at a time, and between two requests each of them rests. Hosts take turns, so that a slow or crowded
one does not hold up the others.
"""

import asyncio
import random
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

import httpx

from health_assets.consumer.fetching import Answer, fetch_health_async, new_client
from health_assets.survey.registry import RegisteredAgent
from health_assets.terminal import printable

ERROR_SHOWN = 500
LOOK_UPS_PER_PLACE = 4


@dataclass(frozen=True)
class Manners:
    """How hard a survey may press.

    Args:
        concurrency: most requests under way at a time.
        per_host: most of them to one host.
        pause_s: mean rest between two requests to one host, in seconds; the rest itself is random, 0.5 to 1.5 of it.
        timeout_s: most time for one agent, from the look-up of its name to its last byte.
        allow_private: whether addresses that are not public may be asked.
    """

    concurrency: int = 32
    per_host: int = 2
    pause_s: float = 0.5
    timeout_s: float = 10.0
    allow_private: bool = False


@dataclass(frozen=True)
class Probe:
    """One agent, asked once.

    Args:
        agent: who was asked.
        answer: what came of it.
    """

    agent: RegisteredAgent
    answer: Answer

    @property
    def status(self) -> str | None:
        """The status of a valid document."""
        return None if self.answer.document is None else self.answer.document.health.status

    @property
    def error(self) -> str | None:
        """What was wrong, in one sentence."""
        return None if self.answer.error is None else f"{printable(self.answer.error, ERROR_SHOWN)}."


async def probe_agents(
    agents: Sequence[RegisteredAgent],
    manners: Manners,
    on_probe: Callable[[Probe], None],
    *,
    until: datetime | None = None,
) -> int:
    """Ask each of these agents once.

    Args:
        agents: whom to ask; of one host's agents the first come first.
        manners: how hard to press.
        on_probe: called with each probe as soon as it is there.
        until: no request starts from then on.

    Returns:
        How many agents were not asked because the time was over.
    """
    turns = _Turns(agents, manners)
    places = asyncio.Semaphore(manners.concurrency)

    async def ask(agent: RegisteredAgent, host: str) -> None:
        try:
            answer = await fetch_health_async(client, agent.url, timeout_s=manners.timeout_s)
        finally:
            places.release()
        on_probe(Probe(agent, answer))
        await turns.rest(host)

    async with _client(manners) as client, asyncio.TaskGroup() as group:
        while turns.waiting:
            await places.acquire()
            host, agent = await turns.next()
            if until is not None and datetime.now(UTC) >= until:
                return turns.waiting + 1
            group.create_task(ask(agent, host))
    return 0


@asynccontextmanager
async def _client(manners: Manners) -> AsyncIterator[httpx.AsyncClient]:
    """A client for that many requests at a time, with threads enough to look up their names.

    asyncio has a handful of such threads, and a look-up goes on after its request was given up: names that nobody
    serves any more would keep them all busy, and live agents would be taken for slow ones.
    """
    threads = ThreadPoolExecutor(manners.concurrency * LOOK_UPS_PER_PLACE, thread_name_prefix="survey")
    asyncio.get_running_loop().set_default_executor(threads)
    async with new_client(manners.concurrency, allow_private=manners.allow_private) as client:
        yield client


class _Turns:
    """Which agent is next: hosts in turn, each as often at a time as manners allow."""

    def __init__(self, agents: Iterable[RegisteredAgent], manners: Manners) -> None:
        self._pause_s = manners.pause_s
        self._agents: dict[str, deque[RegisteredAgent]] = {}
        for agent in agents:
            self._agents.setdefault(httpx.URL(agent.health_url).host, deque()).append(agent)
        self.waiting = sum(map(len, self._agents.values()))
        self._free: asyncio.Queue[str] = asyncio.Queue()
        for turn in range(manners.per_host):
            for host, own in self._agents.items():
                if turn < len(own):
                    self._free.put_nowait(host)

    async def next(self) -> tuple[str, RegisteredAgent]:
        """The next host with a free turn, and its next agent; only while there are agents waiting."""
        while True:
            host = await self._free.get()
            if self._agents[host]:
                self.waiting -= 1
                return host, self._agents[host].popleft()

    async def rest(self, host: str) -> None:
        """Give the host's turn back after a while."""
        if self._agents[host]:
            await asyncio.sleep(self._pause_s * random.uniform(0.5, 1.5))
            self._free.put_nowait(host)
