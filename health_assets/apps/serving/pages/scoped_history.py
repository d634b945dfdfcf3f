"""The part of the history that a caller sees at one hour.

What belongs here: the one place in which rows of personal agents and of other teams are left out. What does not: what
pages make of the rest.

Without the full view a personal agent is in no list and has no page: a score says how much somebody does. How many
agents are not shown is said to who is not limited to teams; of sessions and models it is said to nobody.
"""

import math
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from health_assets.apps.serving.access_scope import AccessScope
from health_assets.apps.serving.history.reading import History
from health_assets.apps.serving.outdated import DataAge
from health_assets.apps.serving.ownership import Ownership
from health_assets.apps.serving.pages.result_cache import FOR_GOOD, ResultCache
from health_assets.apps.serving.team_lists import NO_TEAM
from health_assets.core.hours import HOUR, HourRange

T = TypeVar("T")
WINDOW_HOURS = 24
ERROR_TEXTS = frozenset({"error", "error_class", "last_error"})
"""Columns that repeat what a log says of an error."""


@dataclass(frozen=True, kw_only=True)
class ScopedHistory:
    """The history as one caller sees it.

    Args:
        history: the history.
        hour: the hour that is looked at; the newest one unless somebody asks for another.
        view: the part of the data that the caller may see.
        ownership: owners of the agents.
        now: the time.
        late_after: how long after its end an hour may be missing without being late.
        is_newest: whether the hour is the newest.
        may_submit_forms: whether the caller may change anything.
        max_age_s: age of the newest hour, from its end, past which it is outdated.
        rules: fingerprint of the rules by which aggregates are shown to everybody, as they are now; rows that were
            marked by others are not shown without the full view.
        memory: keeps what is not made anew for each request.
    """

    history: History
    hour: datetime
    view: AccessScope
    ownership: Ownership
    now: datetime
    late_after: timedelta
    is_newest: bool
    may_submit_forms: bool = False
    max_age_s: float = math.inf
    rules: str = ""
    memory: ResultCache = field(default_factory=ResultCache)

    def remembered(self, what: Hashable, make: Callable[[], T]) -> T:
        """A result that follows from the history, the hour and what the caller may see; made where it is not known.

        Args:
            what: names the result, with all else that it depends on; never with the time.
            make: makes it.
        """
        return self.memory.of(self.history.version, (self.hour, *self._sees, what), make)

    def remembered_of_face(self, series: str, hour: datetime, what: Hashable, make: Callable[[], T]) -> T:
        """A result that follows from the face of one hour and what the caller may see; it outlives other hours.

        Args:
            series: the series.
            hour: the hour.
            what: names the result.
            make: makes it.
        """
        file = self.history.face(series, hour)
        return make() if file is None else self.memory.of(FOR_GOOD, (file, *self._sees, what), make)

    @property
    def _sees(self) -> tuple[Hashable, ...]:
        """All that decides which rows the caller sees."""
        return self.view.is_full, self.view.shows_texts, self.view.teams and tuple(sorted(self.view.teams))

    def at(self, series: str, hour: datetime | None = None) -> pa.Table:
        """The rows of an hour that the caller may see, by key, with `team` where they are of agents; maybe none."""
        wanted = hour or self.hour

        def read() -> pa.Table:
            rows = self.history.at(series, wanted)
            return pa.table({}) if rows is None else self.visible(rows)

        return self.remembered(("at", series, wanted), read)

    def of_all(self, series: str, hour: datetime, columns: tuple[str, ...]) -> pa.Table:
        """Columns of an hour's rows that the caller may see, `agent_id` among them, for sums over many hours."""
        return self.visible(self.history.of_all(series, hour, columns))

    def newest(self, series: str) -> pa.Table:
        """The same of the newest hour of a series up to the one that is looked at."""
        hour = self.history.newest(series, self.hour)
        return pa.table({}) if hour is None else self.at(series, hour)

    def of(self, series: str, key: str, hours: HourRange, columns: tuple[str, ...] | None = None) -> list[dict]:
        """The rows of a key in these hours, by hour, as dicts; whether the caller may see the key is asked before."""
        return self.of_key(series, key, hours, columns).to_pylist()

    def of_key(self, series: str, key: str, hours: HourRange, columns: tuple[str, ...] | None = None) -> pa.Table:
        """The same as a table. Texts of errors may tell anything, so who may not read them has null in their place."""
        rows = self.history.of(series, key, hours, columns)
        if self.view.shows_texts:
            return rows
        for name in ERROR_TEXTS & set(rows.column_names):
            place = rows.column_names.index(name)
            rows = rows.set_column(place, name, pa.nulls(rows.num_rows, pa.string()))
        return rows

    def sessions_of(self, agent_id: str, hours: HourRange) -> pa.Table:
        """The scores of an agent's sessions, by hour, without sessions that the caller may not see."""
        rows = self.history.of("agent_sessions", agent_id, hours)
        if self.hides_nothing or not rows.num_rows:
            return rows
        rows = _with_others(rows)
        seen = self.seen_sessions(pc.unique(rows.column("session_id")).to_pylist(), hours)
        rows = self.visible(rows)
        return rows.filter(pc.is_in(rows.column("session_id"), value_set=seen))

    def seen_sessions(self, ids: Collection[str], hours: HourRange) -> pa.Array:
        """Finds the sessions of some that the caller may see, by their newest score, maybe one of another agent."""
        columns = ("hour", "session_id", "agent_id", "other_agents")
        rows = self.history.newest_of("sessions", ids, hours, columns)
        if not rows.num_rows:
            return pa.array([], pa.string())
        return self.visible(_with_others(rows)).column("session_id").combine_chunks()

    def between(self, series: str, hours: HourRange) -> pa.Table:
        """The rows of a series without a key in these hours that the caller may see; maybe none."""
        return self.visible(self.history.between(series, hours))

    def back(self, days: int) -> HourRange:
        """The hours up to the one that is looked at, of so many days."""
        return HourRange(self.hour - (24 * days - 1) * HOUR, self.hour + HOUR)

    def has_all(self, series: str, hours: HourRange) -> bool:
        """Whether every one of these hours that has scores has this series, too."""
        scored = set(self.history.hours("agents"))
        return {hour for hour in hours if hour in scored} <= set(self.history.hours(series))

    def sees(self, agent_id: str | None) -> bool:
        """Whether the caller may see an agent."""
        if not self.view.is_full and self.ownership.is_personal(agent_id):
            return False
        return self.view.teams is None or self.ownership.team(agent_id) in self.view.teams

    def sees_part_of(self, agent_id: str) -> bool:
        """Whether the caller may see the part that an agent has in another one's run, which the caller sees.

        An agent inside a run that the targets do not name belongs to the run: no team has it for itself.
        """
        if self.view.is_full and self.sees_all:
            return True
        if self.ownership.is_named(agent_id):
            return self.sees(agent_id)
        return self.view.is_full or not self.ownership.is_personal(agent_id)

    @property
    def sees_all(self) -> bool:
        """Whether the caller sees every agent, so that numbers of the whole fleet may be shown."""
        return self.view.teams is None

    @property
    def hides_nothing(self) -> bool:
        """Whether the caller sees every agent in full: then sums over all agents tell nothing that it may not know."""
        return self.sees_all and (self.view.is_full or not self.ownership.has_personal)

    def visible(self, rows: pa.Table) -> pa.Table:
        """The rows without those of agents that the caller may not see; `team` is added where it is known."""
        rows = self._without_hidden(rows)
        if "agent_id" not in rows.column_names or not rows.num_rows:
            return rows
        owned = self.ownership.with_owners(rows.to_reader()).read_all()
        seen = self._are_seen(owned)
        if "other_agents" in owned.column_names:
            seen = pc.and_(seen, self._others_are_seen(owned.column("other_agents")))
        names = pa.array([*self.ownership.teams, None], pa.string())
        places = owned.column("team")
        known = pc.if_else(pc.equal(places, NO_TEAM), len(self.ownership.teams), places)
        named = owned.drop_columns(["team", "is_personal"]).append_column("team", names.take(known.combine_chunks()))
        return named.filter(seen)

    def _without_hidden(self, rows: pa.Table) -> pa.Table:
        """The rows without those that are marked as for the full view alone, or by rules that have changed since."""
        if self.view.is_full or "is_public" not in rows.column_names:
            return rows
        return rows.filter(pc.and_(rows.column("is_public"), pc.equal(rows.column("rules"), self.rules)))

    def _are_seen(self, owned: pa.Table) -> pa.ChunkedArray:
        """Whether the caller may see the agent of each row; `owned` are rows with `is_personal` and `team`."""
        is_personal, places = owned.column("is_personal"), owned.column("team")
        seen = pc.or_(pc.invert(is_personal), self.view.is_full)
        if self.view.teams is None:
            return seen
        wanted = [place for place, team in enumerate(self.ownership.teams) if team in self.view.teams]
        return pc.and_(seen, pc.is_in(places, value_set=pa.array(wanted, pa.int32())))

    def _others_are_seen(self, others: pa.ChunkedArray) -> pa.Array:
        """Whether the caller may see all agents of each list; of none where it is not known whose there were."""
        lists = others.combine_chunks()
        if self.view.teams is None and (self.view.is_full or not self.ownership.has_personal):
            return pa.repeat(pa.scalar(True), len(lists))
        agents = pa.table({"agent_id": pc.list_flatten(lists)})
        are_unseen = pc.invert(self._are_seen(self.ownership.with_owners(agents.to_reader()).read_all()))
        of_lists = pc.filter(pc.list_parent_indices(lists), are_unseen.combine_chunks())
        has_unseen = pc.is_in(pa.array(range(len(lists)), of_lists.type), value_set=of_lists)
        return pc.and_not(pc.is_valid(lists), has_unseen)

    @property
    def shows_lines(self) -> bool:
        """Whether the caller may read lines of raw logs, which may be of any agent and say anything."""
        return self.view.shows_texts and self.hides_nothing

    def hidden_agents(self) -> int | None:
        """The number of agents of the hour that the caller does not see; None for who must not know of other teams."""
        if not self.sees_all:
            return None
        rows = self.history.at("agents", self.hour)
        return 0 if rows is None else rows.num_rows - self.at("agents").num_rows

    def frame(self) -> Mapping[str, Any]:
        """Facts that stand around every page."""
        hours = self.history.hours("agents")
        at = hours.index(self.hour) if self.hour in hours else -1
        return {
            "hour": self.hour,
            "hour_end": self.known_until(self.hour),
            "is_running": self.is_running,
            "is_newest": self.is_newest,
            "hour_before": hours[at - 1] if at > 0 else None,
            "hour_after": hours[at + 1] if 0 <= at < len(hours) - 1 else None,
            "first_hour": hours[0] if hours else None,
            "newest_hour": hours[-1] if hours else None,
            "late_s": self.late_s(),
            "outdated_s": self.outdated_s(),
            "now": self.now,
            "may_submit_forms": self.may_submit_forms,
            "shows_lines": self.shows_lines,
            "shows_texts": self.view.shows_texts,
            "at": None if self.is_newest else f"{self.hour:%Y-%m-%dT%H}",
        }

    @property
    def window_hours(self) -> int:
        """The length of the window of scores; the default where the history does not say."""
        return self.history.facts.get("window_hours") or WINDOW_HOURS

    def known_until(self, hour: datetime) -> datetime:
        """The end of an hour, or an earlier time where it was not over when it was last made."""
        known = self.history.facts.get("as_of", {}).get(hour.isoformat())
        return datetime.fromisoformat(known) if known else hour + HOUR

    @property
    def is_running(self) -> bool:
        """Whether the hour was not over when it was last made."""
        return self.known_until(self.hour) < self.hour + HOUR

    @property
    def is_present(self) -> bool:
        """Whether the hour says how agents are now: it is the newest one, and not outdated."""
        return self.is_newest and self.outdated_s() is None

    def outdated_s(self) -> float | None:
        """Seconds since the newest hour ended, where it is too old to say how agents are now; else None."""
        newest = self.history.newest("agents")
        if newest is None or DataAge(self.max_age_s).left_s(self.known_until(newest), self.now) >= 0:
            return None
        return (self.now - self.known_until(newest)).total_seconds()

    def late_s(self) -> float | None:
        """Seconds since the newest hour ended, where the next one is late; None where none is."""
        newest = self.history.newest("agents")
        if newest is None:
            return None
        known_until = self.known_until(newest)
        next_end = newest + (HOUR if known_until < newest + HOUR else 2 * HOUR)
        return (self.now - known_until).total_seconds() if next_end + self.late_after < self.now else None


def _with_others(sessions: pa.Table) -> pa.Table:
    """Rows of sessions with `other_agents`, null where an older copy does not name them."""
    if "other_agents" in sessions.column_names:
        return sessions
    return sessions.append_column("other_agents", pa.nulls(sessions.num_rows, pa.list_(pa.string())))
