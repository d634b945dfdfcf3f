"""Rules about the status of health documents: an agent's own, and those that surveyed agents serve.

The draft (source 3, section 5.2 and appendix A, step 4) asks for a signal when an agent goes from healthy to degraded:
what is trusted because of its health is to be verified again. `unknown`, or no answer, is no worse status.
"""

from datetime import datetime
from typing import ClassVar

from health_assets.apps.alerts.facts import Fact
from health_assets.apps.alerts.rule import UNKNOWN_FOR, Opening, Rule
from health_assets.apps.alerts.state_facts import DocumentFact, ProbeFact, StatusFact
from health_assets.core.formatting import counted, duration, share

STATUSES = ("healthy", "degraded", "unhealthy")
"""The best first; `unknown` is none of them."""
LEAST_RATIO = {"healthy": 0.95, "degraded": 0.5}
"""Response ratio from which on a document says so (draft, section 4.3)."""
VERIFY = "what is trusted because of its health is to be verified again"


class DocumentRule(Rule):
    """The base of the rules about statuses."""

    def opening(self, fact: DocumentFact) -> Opening | None:
        """A status that is worse than the best of the day before."""
        before = fact.best_status_before
        if fact.status not in STATUSES or before is None:
            return None
        if STATUSES.index(fact.status) <= STATUSES.index(before):
            return None
        reason = f"{fact.title} went from {before} to {fact.status}{self.cause(fact)}; {VERIFY}"
        return Opening(reason, LEAST_RATIO[before])

    def cause(self, fact: DocumentFact) -> str:
        """Say why, as the end of a clause; nothing where that is not known."""
        del fact
        return ""

    def is_good(self, fact: DocumentFact, recovers_at: float | None) -> bool | None:
        """Whether the status is as good as it was; None where it is unknown."""
        if fact.status not in STATUSES or recovers_at is None:
            return None
        return LEAST_RATIO.get(fact.status, 0.0) >= recovers_at

    def recovery(self, fact: DocumentFact, opened_in: datetime) -> str:
        """The status that it has again."""
        del opened_in
        return f"{fact.title} is {fact.status} again{self.cause(fact)}"

    def gives_up(self, fact: DocumentFact, opened_in: datetime) -> str | None:
        """End an incident where no status was known for a day."""
        known_in = fact.last_known_in
        is_old = fact.hour - opened_in >= UNKNOWN_FOR and (known_in is None or fact.hour - known_in >= UNKNOWN_FOR)
        return f"the status of {fact.title} is not known any more" if is_old else None


class StatusWorsened(DocumentRule):
    """The status of an agent's health document is worse than its best of the day before."""

    name: ClassVar[str] = "status_worsened"
    looks_at: ClassVar[tuple[type[Fact], ...]] = (StatusFact,)

    def cause(self, fact: DocumentFact) -> str:
        """The shares and latencies that decide the status."""
        row = fact.row
        if row.get("response_ratio") is None:
            return ""
        told = f" ({share(row['response_ratio'])} of {counted(row['sample_count'], 'execution')} succeeded"
        if row["is_slow"]:
            p99, declared = duration(row["latency_p99_ms"] / 1e3), duration(row["baseline_latency_ms"] / 1e3)
            told += f", p99 {p99}, declared {declared}"
        return told + ")"


class ProbeWorsened(DocumentRule):
    """The document that a surveyed agent serves has a worse status than its best of the day before."""

    name: ClassVar[str] = "probe_worsened"
    looks_at: ClassVar[tuple[type[Fact], ...]] = (ProbeFact,)
