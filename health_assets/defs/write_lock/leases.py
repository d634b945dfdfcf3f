"""The lease on the warehouse: who holds it, who waits, and who has gone silent.

What belongs here: the state that all hosts share, and how it changes, as pure functions. What does not: where it is
kept (`lease_store`), and what a process does to take the lock (`write_lock`).

Every run of Dagster is a client from its beginning, so that it is noticed when its process dies. One that writes
requests the lease, waits until it holds it, and keeps it to its end; between two steps it lets a more urgent client
go first. Every client sends heartbeats, while it waits, too. A client whose heartbeat is too old is dead, and any other
may say so. A dead client is noted until its Dagster run has been ended, so that who notes it may die, too.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Self

from pydantic import BaseModel, ConfigDict

from health_assets.core.processes import Process


class LockClient(BaseModel):
    """A run that is alive, as far as its heartbeats tell, and may want to write.

    Args:
        id: names it, of all clients ever.
        process: the process of the run.
        command: what it does, for people.
        run_id: its run in Dagster, which may not exist yet.
        priority: the higher, the sooner.
        lease_s: seconds without a heartbeat after which it is dead.
        since: when it was registered, or began to want the lock, by the store's clock, UTC.
        beat_at: its last heartbeat, by the store's clock, UTC.
        wants_lock: whether it wants to write, or does; one that does not is never waited for.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    process: Process
    command: str
    run_id: str
    priority: int
    lease_s: float
    since: datetime
    beat_at: datetime
    wants_lock: bool = True

    def is_dead(self, now: datetime) -> bool:
        """Whether it was silent for too long, or its process is known to have ended."""
        return (now - self.beat_at).total_seconds() > self.lease_s or self.process.is_known_to_be_gone

    def __str__(self) -> str:
        return f"{self.command} ({self.process}, since {self.since:%Y-%m-%d %H:%M:%S} UTC)"


class Lease(BaseModel):
    """The state of the lease, its holder and all clients; every change makes a new one.

    Args:
        holder: id of the client that holds it.
        clients: who is alive; those that want it or have it are in the order in which they came to want it.
        dead: clients that were removed, whose runs nobody has ended yet.
    """

    model_config = ConfigDict(frozen=True)

    holder: str | None = None
    clients: tuple[LockClient, ...] = ()
    dead: tuple[LockClient, ...] = ()

    def client(self, client_id: str) -> LockClient | None:
        """The client of this id, while it is alive."""
        return next((client for client in self.clients if client.id == client_id), None)

    @property
    def held_by(self) -> LockClient | None:
        """The client that holds it."""
        return self.client(self.holder) if self.holder else None

    @property
    def first(self) -> LockClient | None:
        """The client that holds it, or acquires it next: the most urgent, and of these the oldest."""
        # clients stand in the order in which they came, and of equal ones `max` takes the first; times may be equal
        waiting = (client for client in self.clients if client.wants_lock)
        return self.held_by or max(waiting, key=lambda client: client.priority, default=None)

    def is_wanted_sooner(self, client_id: str) -> bool:
        """Whether a client that is more urgent than this one waits."""
        own = self.client(client_id)
        return own is not None and any(client.wants_lock and client.priority > own.priority for client in self.clients)

    def registered(self, client: LockClient) -> Self:
        """The lease with one more client; one that is there already, or whose run counts as dead, changes nothing."""
        if self.client(client.id) is not None or any(dead.run_id == client.run_id for dead in self.dead):
            return self
        return self.model_copy(update={"clients": (*self.clients, client)})

    def requested(self, client_id: str, now: datetime) -> Self:
        """The lease requested by this client from now on, behind those that did before."""
        own = self.client(client_id)
        if own is None or own.wants_lock:
            return self
        others = tuple(client for client in self.clients if client.id != client_id)
        return self.model_copy(update={"clients": (*others, own.model_copy(update={"wants_lock": True, "since": now}))})

    def acquired(self, client_id: str) -> Self:
        """The lease, held by this client if it is next."""
        is_next = self.holder is None and self.first is not None and self.first.id == client_id
        return self.model_copy(update={"holder": client_id}) if is_next else self

    def released(self, client_id: str) -> Self:
        """The lease, not held by this client, which stays."""
        return self.model_copy(update={"holder": None}) if self.holder == client_id else self

    def unregistered(self, client_id: str) -> Self:
        """The lease without this client."""
        others = tuple(client for client in self.clients if client.id != client_id)
        return self.released(client_id).model_copy(update={"clients": others})

    def heard(self, client_id: str, now: datetime) -> Self:
        """The lease with a heartbeat of this client; one that is dead stays dead."""
        heard = (
            client.model_copy(update={"beat_at": now}) if client.id == client_id else client for client in self.clients
        )
        return self.model_copy(update={"clients": tuple(heard)})

    def without_the_dead(self, now: datetime) -> Self:
        """The lease without the clients that are dead by now."""
        dead = tuple(client for client in self.clients if client.is_dead(now))
        left = self.model_copy(update={"dead": (*self.dead, *dead)}) if dead else self
        for client in dead:
            left = left.unregistered(client.id)
        return left

    def given_up(self, client: LockClient) -> Self:
        """The lease with a run among the dead that never registered; one that has by now is left alone."""
        if any(known.run_id == client.run_id for known in (*self.clients, *self.dead)):
            return self
        return self.model_copy(update={"dead": (*self.dead, client)})

    def settled(self, clients: Iterable[LockClient]) -> Self:
        """The lease without these dead clients; their runs have ended."""
        ids = {client.id for client in clients}
        return self.model_copy(update={"dead": tuple(client for client in self.dead if client.id not in ids)})
