"""Probing: ask many agents for their health at once, without being a burden to any of them.

What belongs here: who is asked when, and by how many at a time. What does not: one exchange (`consumer.fetching`) and
where probes are kept (`surveying`).

Politeness is by host as well as by agent, because platforms serve thousands of agents from one host: no host is asked
by more than a few at a time, and between two requests each of them rests. Hosts take turns, so that a slow or crowded
one does not hold up the others.

Most agents of a large registry do not answer at all. Three things keep these from using up the hour: a request that
nobody answers gives its place to another one while it waits; a host that lets requests time out again and again gets
less time; and one that gives no connection again and again is given up.
"""

import asyncio
import random
import resource
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

import httpx

from health_assets.consumer.advice import believed_document
from health_assets.consumer.fetching import Answer, fetch_health_async, new_client
from health_assets.core.terminal import printable
from health_assets.systems.survey.surveyed_agents import RegisteredAgent

ERROR_SHOWN = 500
LOOK_UPS_PER_PLACE = 4
TRIES = 8
"""Requests in a row without a connection after which the rest of a host's agents is not asked."""
MOST_REST_S = 10.0
PATIENT_TIMES = 4
LEAST_PATIENCE = 0.1
"""Share of the time limit that an agent has at least, where many before it on its host timed out."""
SILENT_AFTER_S = 0.5
FILES_OF_OTHERS = 256
"""Files that the process may need for other things than requests."""


@dataclass(frozen=True, kw_only=True)
class Manners:
    """The manners of a survey: how hard it may press.

    Args:
        concurrency: most requests under way at a time, without those that wait.
        per_host: most requests to one host, with those that wait.
        pause_s: mean rest between two requests to one host, in seconds; the rest itself is random, 0.5 to 1.5 of it.
        timeout_s: most time for one agent, from the look-up of its name to its last byte.
        allow_private: whether addresses that are not public may be asked.
        waiting: most requests that wait for an answer, and no longer count among those under way; fewer where the
            process may not open so many files.
        silent_after_s: time after which a request without a whole answer waits, in seconds.
    """

    concurrency: int = 32
    per_host: int = 2
    pause_s: float = 0.5
    timeout_s: float = 10.0
    allow_private: bool = False
    waiting: int = 1024
    silent_after_s: float = SILENT_AFTER_S

    @property
    def most_open(self) -> int:
        """Most requests at a time, waiting or not; without a file to open, a live agent would look like a dead one."""
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = self.concurrency + self.waiting
        return wanted if files == resource.RLIM_INFINITY else max(1, min(wanted, files - FILES_OF_OTHERS))


@dataclass(frozen=True)
class Probe:
    """One agent, asked once.

    Args:
        agent: the agent that was asked.
        answer: its answer.
        was_asked: false for an agent of a host that was given up before.
    """

    agent: RegisteredAgent
    answer: Answer
    was_asked: bool = True

    @property
    def status(self) -> str | None:
        """The status of a valid document, or the warning of one with faults."""
        document = believed_document(self.answer)
        return None if document is None else document.health.status

    @property
    def error(self) -> str | None:
        """The fault in one sentence."""
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
        agents: agents to ask; of one host's agents the first come first.
        manners: how hard to press.
        on_probe: called with each probe as soon as it is there.
        until: no request starts from then on.

    Returns:
        How many agents were not asked because the time was over.
    """
    turns, places, origins = _Turns(agents, manners), _Places(manners), _Origins()

    async def ask(agent: RegisteredAgent, host: str) -> None:
        timeout_s = manners.timeout_s * origins.patience(agent)
        with places.held():
            answer = await fetch_health_async(client, agent.url, timeout_s=timeout_s)
        failures = origins.note(answer)
        on_probe(Probe(agent, answer))
        turns.rest(host, failures)

    async with _client(manners) as client, asyncio.TaskGroup() as group:
        while turns.waiting:
            left_s = None if until is None else (until - datetime.now(UTC)).total_seconds()
            if left_s is not None and left_s <= 0:
                return turns.waiting
            try:
                async with asyncio.timeout(left_s):
                    await places.enter()
                    host = await turns.next()
            except TimeoutError:
                return turns.waiting
            agent = turns.taken(host)
            if answer := origins.answer_of_lost(agent):
                places.leave()
                on_probe(Probe(agent, answer, was_asked=False))
                turns.give_back(host)
                await asyncio.sleep(0)  # for what else there is to do
            else:
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
    async with new_client(manners.most_open, allow_private=manners.allow_private) as client:
        yield client


class _Places:
    """Room for requests: so many under way, and more that only wait.

    A request that waits for a silent server uses no processor and no line. At 10 s each, such requests would keep 32
    places busy for half a day where 180,000 agents do not answer.
    """

    def __init__(self, manners: Manners) -> None:
        self._silent_after_s = manners.silent_after_s
        self._under_way = asyncio.Semaphore(min(manners.concurrency, manners.most_open))
        self._open = asyncio.Semaphore(manners.most_open)

    async def enter(self) -> None:
        """Take a place as soon as one is free."""
        await self._open.acquire()
        await self._under_way.acquire()

    def leave(self) -> None:
        """Give a place back without having used it."""
        self._under_way.release()
        self._open.release()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Use a place that was taken, and give it back."""
        is_under_way = True

        def wait() -> None:
            nonlocal is_under_way
            is_under_way = False
            self._under_way.release()

        timer = asyncio.get_running_loop().call_later(self._silent_after_s, wait)
        try:
            yield
        finally:
            timer.cancel()
            if is_under_way:
                self._under_way.release()
            self._open.release()


class _Origins:
    """Hosts (with scheme and port) that do not answer, and those among them that are given up."""

    def __init__(self) -> None:
        self._failures: dict[str, int] = {}
        self._timeouts: dict[str, int] = {}
        self._faults: dict[str, str | None] = {}

    def note(self, answer: Answer) -> int:
        """Note what came of asking.

        Returns:
            How many requests in a row got no connection to this host.
        """
        origin = _origin(answer.url)
        _count(self._timeouts, origin, answer.outcome == "timeout")
        is_lost = answer.outcome in ("unreachable", "timeout") and not answer.was_connected
        failures = _count(self._failures, origin, is_lost)
        if failures >= TRIES:
            self._faults[origin] = answer.error
        return failures

    def patience(self, agent: RegisteredAgent) -> float:
        """Share of the time limit that this agent has: half for each timeout in a row, beyond the first few.

        A host that hangs for all its agents would take a day for 10,000 of them. An answer gives the next one all time.
        """
        timeouts = self._timeouts.get(_origin(agent.health_url), 0)
        return max(LEAST_PATIENCE, 0.5 ** max(0, timeouts - PATIENT_TIMES + 1))

    def answer_of_lost(self, agent: RegisteredAgent) -> Answer | None:
        """The answer for an agent whose host was given up; None for all others."""
        origin = _origin(agent.health_url)
        if origin not in self._faults:
            return None
        error = f"it was not asked, since its host gave {TRIES} agents before it no connection: {self._faults[origin]}"
        return Answer(url=agent.health_url, asked_at=datetime.now(UTC), outcome="unreachable", error=error)


def _count(counts: dict[str, int], origin: str, is_one_more: bool) -> int:
    """Add one to a count, or begin again."""
    if not is_one_more:
        counts.pop(origin, None)
        return 0
    counts[origin] = counts.get(origin, 0) + 1
    return counts[origin]


def _origin(health_url: str) -> str:
    return "/".join(health_url.split("/", 3)[:3])


class _Turns:
    """The order of agents: hosts in turn, each as often at a time as manners allow."""

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

    async def next(self) -> str:
        """The next host with a free turn and an agent that waits; only while there are such agents."""
        while True:
            host = await self._free.get()
            if self._agents[host]:
                return host

    def taken(self, host: str) -> RegisteredAgent:
        """The host's next agent, which waits no longer."""
        self.waiting -= 1
        return self._agents[host].popleft()

    def rest(self, host: str, failures: int) -> None:
        """Give the host's turn back after a while, which doubles with each request that got no connection."""
        if self._agents[host]:
            rest_s = max(self._pause_s, min(self._pause_s * 2**failures, MOST_REST_S)) * random.uniform(0.5, 1.5)
            asyncio.get_running_loop().call_later(rest_s, self.give_back, host)

    def give_back(self, host: str) -> None:
        """Give the host's turn back at once."""
        if self._agents[host]:
            self._free.put_nowait(host)
