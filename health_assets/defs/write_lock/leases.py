"""The lease on the warehouse: who holds it, who waits, and who has gone silent.

What belongs here: the state that all hosts share, and how it changes, as pure functions. What does not: where it is
kept (`lease_store`), and what a process does to take the lock (`write_lock`).

Every run of Dagster has a claim from its beginning, so that it is noticed when its process dies. One that writes
contends for the lease, waits until it holds it, and keeps it to its end; between two steps it lets a more urgent claim
go first. Whoever has a claim sends heartbeats, while it waits, too. A claim whose heartbeat is too old is dead, and
anybody may say so. A dead claim is noted until its Dagster run has been ended, so that who notes it may die, too.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Self

from pydantic import BaseModel, ConfigDict

from health_assets.core.processes import Process


class Claim(BaseModel):
    """A run that is alive, as far as its heartbeats tell, and may want to write.

    Args:
        id: names it, of all claims ever.
        process: the process of the run.
        command: what it does, for people.
        run_id: its run in Dagster, which may not exist yet.
        priority: the higher, the sooner.
        lease_s: seconds without a heartbeat after which it is dead.
        since: when it was made, or began to contend, by the store's clock, UTC.
        beat_at: its last heartbeat, by the store's clock, UTC.
        contends: whether it wants to write, or does; one that does not is never waited for.
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
    contends: bool = True

    def is_dead(self, now: datetime) -> bool:
        """Whether it was silent for too long, or its process is known to have ended."""
        return (now - self.beat_at).total_seconds() > self.lease_s or self.process.is_known_to_be_gone

    def __str__(self) -> str:
        return f"{self.command} ({self.process}, since {self.since:%Y-%m-%d %H:%M:%S} UTC)"


class Lease(BaseModel):
    """The state of the lease, its holder and all claims; every change makes a new one.

    Args:
        holder: id of the claim that holds it.
        claims: who is alive; those that want it or have it are in the order in which they came to want it.
        dead: claims that were taken away, whose runs nobody has ended yet.
    """

    model_config = ConfigDict(frozen=True)

    holder: str | None = None
    claims: tuple[Claim, ...] = ()
    dead: tuple[Claim, ...] = ()

    def claim(self, claim_id: str) -> Claim | None:
        """The claim of this id, while it is alive."""
        return next((claim for claim in self.claims if claim.id == claim_id), None)

    @property
    def held_by(self) -> Claim | None:
        """The claim that holds it."""
        return self.claim(self.holder) if self.holder else None

    @property
    def first(self) -> Claim | None:
        """The claim that holds it, or takes it next: the most urgent, and of these the oldest."""
        # claims stand in the order in which they came, and of equal ones `max` takes the first; times may be equal
        contending = (claim for claim in self.claims if claim.contends)
        return self.held_by or max(contending, key=lambda claim: claim.priority, default=None)

    def is_wanted_sooner(self, claim_id: str) -> bool:
        """Whether a claim that is more urgent than this one waits."""
        own = self.claim(claim_id)
        return own is not None and any(claim.contends and claim.priority > own.priority for claim in self.claims)

    def claimed(self, claim: Claim) -> Self:
        """The lease with one more claim; one that is there already, or whose run counts as dead, changes nothing."""
        if self.claim(claim.id) is not None or any(dead.run_id == claim.run_id for dead in self.dead):
            return self
        return self.model_copy(update={"claims": (*self.claims, claim)})

    def contended(self, claim_id: str, now: datetime) -> Self:
        """The lease with this claim contending from now on, behind those that did before."""
        own = self.claim(claim_id)
        if own is None or own.contends:
            return self
        others = tuple(claim for claim in self.claims if claim.id != claim_id)
        return self.model_copy(update={"claims": (*others, own.model_copy(update={"contends": True, "since": now}))})

    def taken(self, claim_id: str) -> Self:
        """The lease, held by this claim if it is next."""
        is_next = self.holder is None and self.first is not None and self.first.id == claim_id
        return self.model_copy(update={"holder": claim_id}) if is_next else self

    def let_go(self, claim_id: str) -> Self:
        """The lease, not held by this claim, which stays."""
        return self.model_copy(update={"holder": None}) if self.holder == claim_id else self

    def withdrawn(self, claim_id: str) -> Self:
        """The lease without this claim."""
        others = tuple(claim for claim in self.claims if claim.id != claim_id)
        return self.let_go(claim_id).model_copy(update={"claims": others})

    def heard(self, claim_id: str, now: datetime) -> Self:
        """The lease with a heartbeat of this claim; one that is dead stays dead."""
        heard = (claim.model_copy(update={"beat_at": now}) if claim.id == claim_id else claim for claim in self.claims)
        return self.model_copy(update={"claims": tuple(heard)})

    def without_the_dead(self, now: datetime) -> Self:
        """The lease without the claims that are dead by now."""
        dead = tuple(claim for claim in self.claims if claim.is_dead(now))
        left = self.model_copy(update={"dead": (*self.dead, *dead)}) if dead else self
        for claim in dead:
            left = left.withdrawn(claim.id)
        return left

    def given_up(self, claim: Claim) -> Self:
        """The lease with a run among the dead that never made its claim; one that has a claim by now is left alone."""
        if any(known.run_id == claim.run_id for known in (*self.claims, *self.dead)):
            return self
        return self.model_copy(update={"dead": (*self.dead, claim)})

    def settled(self, claims: Iterable[Claim]) -> Self:
        """The lease without these dead claims; their runs have ended."""
        ids = {claim.id for claim in claims}
        return self.model_copy(update={"dead": tuple(claim for claim in self.dead if claim.id not in ids)})
