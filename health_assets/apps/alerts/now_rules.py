"""Rules about the last hours, by the verdicts of `agent_now`: the first to speak of an outage.

The verdict rests on counts and streaks, so these rules are blind to no agent, however few executions it has.
"""

from datetime import datetime, timedelta
from typing import ClassVar

from health_assets.apps.alerts.facts import Fact
from health_assets.apps.alerts.rule import Opening, Rule, Severity
from health_assets.apps.alerts.state_facts import NowFact
from health_assets.core.formatting import counted, share
from health_assets.systems.agent_now.names import FAILING, SUSPECT

NOT_GOOD = (FAILING, SUSPECT)
"""Verdicts of hours that are no good ones, whatever the rule."""
QUIET_FOR = timedelta(hours=6)
"""An incident ends when nothing was bad for so long, also where nothing ran meanwhile."""


class NowRule(Rule):
    """The settings that the rules about verdicts have."""

    looks_at: ClassVar[tuple[type[Fact], ...]] = (NowFact,)
    bad: ClassVar[tuple[str, ...]]
    """Verdicts after the last of which an incident is over."""

    def is_good(self, fact: NowFact, recovers_at: float | None) -> bool | None:
        """Whether executions of the hour ended well; None where none ran."""
        del recovers_at
        if fact.verdict in NOT_GOOD:
            return False
        return True if fact.row["executions_1h"] else None

    def recovery(self, fact: NowFact, opened_in: datetime) -> str:
        """Successes since it is over; where its hour as a whole was not bad, in that hour and those after it."""
        over_at = fact.last_bad_end(self.bad)
        is_known = over_at > opened_in
        ran, failed, hours = fact.since(over_at if is_known else opened_in)
        of = f"{fact.subject_id}: {ran - failed:,} of {counted(ran, 'execution')} succeeded in {hours} h"
        return f"{of}; over since {over_at:%Y-%m-%d %H:%M} UTC" if is_known else of

    def gives_up(self, fact: NowFact, opened_in: datetime) -> str | None:
        """End an incident when nothing has run for some hours since the last that was failing or suspect."""
        over_at = max(fact.last_bad_end(NOT_GOOD), opened_in + timedelta(hours=1))
        if fact.hour + timedelta(hours=1) - over_at < QUIET_FOR:
            return None
        ran, failed, hours = fact.since(over_at)
        of = f"{ran - failed:,} of {ran:,} executions succeeded in {hours} h" if ran else f"nothing ran in {hours} h"
        return f"{fact.subject_id} is quiet: {of}, since {over_at:%Y-%m-%d %H:%M} UTC"


class FailingNow(NowRule):
    """An agent is failing: half or more of the last hour's executions, or a streak, and by no chance."""

    name: ClassVar[str] = "failing_now"
    bad: ClassVar[tuple[str, ...]] = (FAILING,)

    severity: Severity = "critical"

    def opening(self, fact: NowFact) -> Opening | None:
        """A verdict `failing`."""
        if fact.verdict != FAILING:
            return None
        row = fact.row
        told = []
        if row["executions_1h"]:
            told.append(
                f"{row['failures_1h']:,} of {counted(row['executions_1h'], 'execution')} failed in the last hour"
            )
        if row["failed_in_a_row"] > row["failures_1h"] or 2 * row["failures_1h"] < row["executions_1h"]:
            told.append(f"the last {row['failed_in_a_row']:,} in a row")
        expected = f"{share(row['expected_success_rate'])} expected to succeed"
        return Opening(
            f"{fact.subject_id} is failing: {', '.join(told)}, {expected}; since {row['since']:%Y-%m-%d %H:%M} UTC"
        )


class SuspectNow(NowRule):
    """More of an agent's executions fail than chance explains, yet fewer than half."""

    name: ClassVar[str] = "suspect_now"
    implied_by: ClassVar[tuple[str, ...]] = (FailingNow.name,)
    bad: ClassVar[tuple[str, ...]] = NOT_GOOD

    def opening(self, fact: NowFact) -> Opening | None:
        """A verdict `suspect`."""
        if fact.verdict != SUSPECT:
            return None
        row = fact.row
        expected = f"{share(row['expected_success_rate'])} expected to succeed"
        return Opening(
            f"{fact.subject_id} fails more often than by chance: {row['failures_1h']:,} of "
            f"{counted(row['executions_1h'], 'execution')} in the last hour, {row['failures_6h']:,} of "
            f"{row['executions_6h']:,} in 6 h, {expected}; since {row['since']:%Y-%m-%d %H:%M} UTC"
        )
