"""The facts of a periodic digest, read from the warehouse: at most a few lines of each kind.

What belongs here: which rows a digest tells of. What does not: their words (`digest_texts`). Personal agents are in
none of its lists, as in no message, and retired ones neither.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import ibis
from ibis import ir

from health_assets.apps.alerts.incidents import Incident, personal_by_now
from health_assets.apps.alerts.outbox import ASSET, open_incidents
from health_assets.apps.alerts.periodic import length_of
from health_assets.apps.alerts.rules import SEVERITIES, HourLate
from health_assets.apps.alerts.silencing import all_silences
from health_assets.core.hours import HOUR, HourRange
from health_assets.core.settings import Settings
from health_assets.core.targets import Targets
from health_assets.pipeline.hour_arithmetic import newest_finished_hour
from health_assets.scoring.verdict import FAILING, NOW_FIRST, SUSPECT, now_evidence
from health_assets.systems.agent_drift.newest import drifts_of_period
from health_assets.systems.agent_drift.texts import sentence as drift_sentence
from health_assets.systems.agent_health_model.severity_order import with_now
from health_assets.systems.release_comparison.newest import decided
from health_assets.systems.release_comparison.texts import sentence
from health_assets.warehouse.partition_states import SCORED_ASSET, PartitionStates
from health_assets.warehouse.rejected_rows import Rejections
from health_assets.warehouse.session import Session

LEAST_DROP = 1.0
"""Points; a score that fell by less has not changed."""

Facts = dict[str, Any]
OF_RELEASE = ("agent_id", "dimension", "to_version", "from_version", "measure", "verdict")


def facts(
    session: Session,
    settings: Settings,
    targets: Targets,
    cadence: str,
    due_at: datetime,
    now: datetime,
    *,
    lines: int,
    releases_told: Sequence[Facts] = (),
) -> Facts:
    """The facts of the period that ends with the newest hour that should be there when the digest is due.

    Args:
        session: a session.
        settings: when an hour is late, and which is the first.
        targets: the personal agents and the retired ones.
        cadence: `daily` or `weekly`.
        due_at: when the digest is due.
        now: the time, as of which incidents are open and silences in force.
        lines: most lines of each list.
        releases_told: `releases` of the digests before; a verdict among them is not told again.

    Returns:
        What can be written as JSON; moments are texts.
    """
    end = newest_finished_hour(due_at, timedelta(minutes=settings.late_after_minutes)) + HOUR
    period = HourRange(end - length_of(cadence), end)
    reading = _Reading(session=session, settings=settings, targets=targets, period=period, lines=lines)
    return {
        "cadence": cadence,
        "from": period.start.isoformat(),
        "to": period.end.isoformat(),
        **reading.health(),
        "releases": reading.releases(releases_told),
        "drifts": reading.drifts(),
        "incidents": reading.incidents(),
        "quality": reading.quality(),
        "silences": reading.silences(now),
    }


@dataclass(frozen=True, kw_only=True)
class _Reading:
    """A period of a warehouse."""

    session: Session
    settings: Settings
    targets: Targets
    period: HourRange
    lines: int

    def health(self) -> Facts:
        """The fleet, its worst agents and budgets in the newest hour, and the agents that fell over the period."""
        hours = PartitionStates(self.session).of("agent_health", HourRange(self.period.start - HOUR, self.period.end))
        if not hours:
            return {"fleet": None, "now": None, "worst": [], "dropped": [], "budgets": []}
        newest = HourRange.of(max(hours))
        return {
            "fleet": self._fleet(newest),
            "now": self._now(newest),
            "worst": self._first(self._worst(newest)),
            "dropped": self._first(self._dropped(HourRange.of(min(hours)), newest)),
            "budgets": self._first(self._budgets(newest)),
        }

    def _fleet(self, newest: HourRange) -> Facts | None:
        fleet = self.session.hours_of("system_health", newest)
        names = ("health_score", "agents", "healthy", "degraded", "unhealthy", "inactive")
        return next(iter(self.session.dicts(fleet.select(*names))), None)

    def _now(self, newest: HourRange) -> Facts:
        """Counts of failing, suspect and recovering agents, and the first of those that are failing or suspect."""
        agents = self.session.hours_of("agent_health", newest).select("hour", "agent_id")
        rows = with_now(agents, self.session, newest)
        place = rows.now.cases(*((one, place) for place, one in enumerate(NOW_FIRST)), else_=ibis.null("int64"))
        bad = rows.mutate(place=place).filter(place.notnull())
        bad = bad.order_by("place", bad.now_failures_6h.desc(), "agent_id").drop("hour", "place")
        found = [row for row in self.session.dicts(bad) if self._may_be_told(row["agent_id"])]
        told = [
            {
                "agent_id": row["agent_id"], "verdict": row["now"], "since": row["now_since"].isoformat(),
                "evidence": now_evidence(row),
            }
            for row in found
            if row["now"] in (FAILING, SUSPECT)
        ]  # fmt: skip
        return {**Counter(row["now"] for row in found), "agents": told[: self.lines]}

    def _worst(self, newest: HourRange) -> ir.Table:
        rows = self.session.hours_of("agent_health", newest)
        bad = rows.filter(rows.state.isin(["degraded", "unhealthy"])).order_by("health_score", "agent_id")
        return bad.select("agent_id", "health_score", "points_at_stake", "state", "is_provisional")

    def _dropped(self, first: HourRange, newest: HourRange) -> ir.Table:
        now = self.session.hours_of("agent_health", newest).select("agent_id", "health_score", "points_at_stake")
        then = self.session.hours_of("agent_health", first).select("agent_id", score_before="health_score")
        rows = now.join(then, "agent_id")
        rows = rows.mutate(points=rows.score_before - rows.health_score)
        fell = rows.filter(rows.points >= LEAST_DROP)
        names = ("agent_id", "score_before", "health_score", "points_at_stake", "points")
        return fell.order_by(fell.points.desc(), "agent_id").select(*names)

    def _budgets(self, newest: HourRange) -> ir.Table:
        rows = self.session.hours_of("error_budget", newest)
        is_burning = (rows.burn_rate_1h > 1) & (rows.burn_rate_6h > 1)
        spent = rows.filter((rows.budget_spent >= 1) | is_burning)
        names = ("agent_id", "budget_spent", "burn_rate_6h", "burn_rate_1h")
        return spent.order_by(spent.budget_spent.desc(), "agent_id").select(*names)

    def releases(self, told_before: Sequence[Facts]) -> list[Facts]:
        """Verdicts on new versions and models of the period that no digest before has, the worse ones first."""

        def verdict_of(row: Facts) -> tuple:
            return tuple(row[name] for name in OF_RELEASE)

        known = {verdict_of(row) for row in told_before}
        rows = self._first(decided(self.session, self.period), lambda row: verdict_of(row) not in known)
        return [{**{name: row[name] for name in OF_RELEASE}, "told": sentence(row)} for row in rows]

    def drifts(self) -> list[Facts]:
        """The agents that were worse than their own past in an hour of the period, and until when."""
        newest = PartitionStates(self.session).newest("drift", self.period.end)
        return [
            {
                "agent_id": row["agent_id"], "measure": row["measure"], "since": row["since"].isoformat(),
                "until": None if row["hour"] == newest else (row["hour"] + HOUR).isoformat(),
                "told": drift_sentence(row),
            }
            for row in self._first(drifts_of_period(self.session, self.period))
        ]  # fmt: skip

    def _first(self, rows: ir.Table, is_wanted: Callable[[Facts], bool] = lambda _: True) -> list[Facts]:
        """The first wanted rows of agents that a message may speak of."""
        found = []
        for row in self.session.dicts(rows):
            if self._may_be_told(row["agent_id"]) and is_wanted(row):
                found.append(row)
            if len(found) == self.lines:
                break
        return found

    def _may_be_told(self, agent_id: str) -> bool:
        own = self.targets.of(agent_id)
        return not (own.personal or own.retired)

    def incidents(self) -> Facts:
        """Counts of incidents that are open, opened and closed, and the most urgent ones that are open."""
        still_open = [personal_by_now(one, self.targets) for one in open_incidents(self.session).values()]
        still_open.sort(key=lambda one: (SEVERITIES.index(one.severity), one.opened_at, one.subject_id, one.rule))
        known = self.session.table(ASSET)
        opened = known.filter(known.opened_at > self.period.start, known.opened_at <= self.period.end)
        closed = known.filter(known.closed_at > self.period.start, known.closed_at <= self.period.end)
        return {
            "open": len(still_open),
            "silenced": sum(one.is_silenced for one in still_open),
            "opened": self.session.count(opened),
            "closed": self.session.count(closed),
            "urgent": [_told(one) for one in still_open if not (one.is_silenced or one.is_personal)][: self.lines],
        }

    def quality(self) -> Facts:
        """Checks that failed, hours that are missing or came late, and lines that were rejected."""
        missing = list(self._missing())
        reasons = Rejections(self.session, self.period).reasons()
        return {
            "failed_checks": self._failed_checks(),
            "missing_hours": len(missing),
            "first_missing": [hour.isoformat() for hour in missing[: self.lines]],
            "late_hours": self._late_hours(),
            "rejected_lines": sum(reason.lines for reason in reasons),
            "rejected_for": [{"reason": reason.text, "lines": reason.lines} for reason in reasons[: self.lines]],
        }

    def _failed_checks(self) -> list[Facts]:
        results = self.session.hours_of("expectation_results", self.period)
        failed = results.filter(~results.success)
        by_check = failed.group_by("asset", "expectation").aggregate(hours=failed.count())
        rows = by_check.order_by(by_check.hours.desc(), "asset", "expectation").limit(self.lines)
        found = self.session.dicts(rows)
        return [{"check": f"{row['asset']}.{row['expectation']}", "hours": row["hours"]} for row in found]

    def _missing(self) -> Iterator[datetime]:
        """Hours of the period that are not there, from the first that ever was."""
        there = PartitionStates(self.session)
        first = there.first(SCORED_ASSET)
        made = there.of(SCORED_ASSET, self.period)
        for hour in self.period:
            if first is not None and hour >= first and hour not in made:
                yield hour

    def _late_hours(self) -> int:
        known = self.session.table(ASSET)
        late = known.filter(known.rule == HourLate.name, known.hour >= self.period.start, known.hour < self.period.end)
        return self.session.count(late)

    def silences(self, now: datetime) -> Facts:
        """Counts of silences that are in force, and that begin later."""
        states = [silence.state(now) for silence in all_silences(self.session)]
        return {"active": states.count("active"), "planned": states.count("planned")}


def _told(incident: Incident) -> Facts:
    return {
        "incident_id": incident.incident_id,
        "rule": incident.rule,
        "severity": incident.severity,
        "subject": {"kind": incident.subject_kind, "id": incident.subject_id},
        "opened_at": incident.opened_at.isoformat(),
        "reason": incident.reason,
    }
