"""Silences: of which incidents, from when until when, nobody is told. Pure: no clock, no warehouse.

What belongs here: one silence, what is asked of a new one, and moments as people write them. What does not: what
becomes of incidents and their messages (`muting`), and where silences are kept (`silencing`). A maintenance window is
a silence that begins later.
"""

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal, Protocol

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from health_assets.apps.alerts.incidents import Incident
from health_assets.apps.alerts.rules import RULES, Names
from health_assets.core.errors import RefusedError
from health_assets.core.formatting import counted
from health_assets.core.hours import FIRST_YEAR, LAST_YEAR, floor_hour
from health_assets.core.terminal import printable

EXAMPLE = "2026-12-02T06:00Z"
LONG = timedelta(days=90)
"""A silence that lasts longer is taken, with a warning."""
OFTEN, LATELY = 3, timedelta(days=30)
"""So many silences of the same within that time are a reason to look at the rule."""
LISTED_FOR = timedelta(days=7)
"""How long a silence that is over remains listed."""
AGENT = "agent"
_AHEAD = re.compile(r"(\d{1,4}) ?(min|m|h|d|w)")
_UNITS = {
    "m": timedelta(minutes=1),
    "min": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}


def moment(value: Any) -> datetime:
    """A moment as people and YAML write it, in UTC where no offset is named.

    Raises:
        ValueError: it is none, or not in the years of which logs are taken.
    """
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            value = None
    elif isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)  # noqa: DTZ001, its zone is set below
    if not isinstance(value, datetime):
        raise ValueError(f"must be a moment like {EXAMPLE}")
    if not FIRST_YEAR <= value.year < LAST_YEAR:  # whose moments no offset brings beyond what there is
        raise ValueError(f"must be in the years {FIRST_YEAR} to {LAST_YEAR - 1}")
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def moment_ahead(text: str, now: datetime) -> datetime:
    """A moment, or how long it is until then: `90m`, `12h`, `3d`, `2w`.

    Raises:
        ValueError: it is neither.
    """
    if found := _AHEAD.fullmatch(text.strip().lower()):
        return moment(now + int(found[1]) * _UNITS[found[2]])
    try:
        return moment(text)
    except ValueError as error:
        told = str(error)
    raise ValueError(f"{told}, or how long from now, like 12h or 3d")


def _named(names: tuple[str, ...]) -> tuple[str, ...]:
    if any(not name.strip() for name in names):
        raise ValueError("a name must not be blank")
    return names


def _known(names: tuple[str, ...]) -> tuple[str, ...]:
    if unknown := [name for name in names if name not in RULES]:
        raise ValueError(f"{', '.join(map(repr, unknown))} is no rule; there are {', '.join(RULES)}")
    return names


def _said(value: str) -> str:
    if not value.strip():
        raise ValueError("must be said")
    return " ".join(value.split())


Moment = Annotated[datetime, BeforeValidator(moment)]


class SilenceWanted(BaseModel):
    """A silence as the alerts file or a caller asks for it.

    Args:
        agents: patterns, like `crawler*`, of ids of agents; every subject of the rules where none is named.
        rules: names of rules; every rule where none is named.
        start: from when on, called `from` in the file; at once where it is not named.
        until: until when, excluded.
        reason: why.
        by: name of the person who wants it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    agents: Annotated[Names, AfterValidator(_named), Field(max_length=100)] = ()
    rules: Annotated[Names, AfterValidator(_known)] = ()
    start: Moment | None = Field(None, alias="from")
    until: Moment
    reason: Annotated[str, Field(max_length=500), AfterValidator(_said)]
    by: Annotated[str, Field(max_length=100), AfterValidator(_said)]

    @model_validator(mode="after")
    def _names_something(self) -> "SilenceWanted":
        if not (self.agents or self.rules):
            raise ValueError("name agents, or rules, or both; '*' is every agent")
        if self.start is not None and self.until <= self.start:
            raise ValueError("until must be later than from")
        return self

    def silence_of_file(self, now: datetime) -> "Silence":
        """The silence that it is in the alerts file: its id follows from what is written there."""
        return self._silence(now, None, is_of_file=True)

    def silence_of_caller(self, now: datetime) -> "Silence":
        """The silence that it is when somebody adds it."""
        return self._silence(now, now, is_of_file=False)

    def _silence(self, now: datetime, known_by: datetime | None, *, is_of_file: bool) -> "Silence":
        moments = [None if at is None else at.isoformat() for at in (self.start, self.until, known_by)]
        identity = json.dumps([self.agents, self.rules, *moments, self.reason, self.by])
        return Silence(
            hour=floor_hour(now),
            silence_id=hashlib.sha256(identity.encode()).hexdigest()[:8],
            agents=self.agents,
            rules=self.rules,
            starts_at=self.start or now,
            ends_at=self.until,
            reason=self.reason,
            added_by=self.by,
            added_at=now,
            is_of_file=is_of_file,
        )


State = Literal["active", "planned", "expired", "ended"]


class Coverable(Protocol):
    """An incident, or as much of it as says whether it is silenced."""

    @property
    def rule(self) -> str:
        """The rule."""

    @property
    def subject_kind(self) -> str:
        """The kind of subject."""

    @property
    def subject_id(self) -> str:
        """The subject."""


@dataclass(frozen=True, kw_only=True)
class Scope:
    """The agents and rules of which nobody is told.

    Args:
        agents: patterns of ids of agents; every subject of the rules where there is none.
        rules: names of rules; every rule where there is none.
    """

    agents: tuple[str, ...]
    rules: tuple[str, ...]

    def covers(self, incident: Coverable) -> bool:
        """Whether an incident is one that it covers; a pattern of agents is one of nothing else."""
        if self.rules and incident.rule not in self.rules:
            return False
        return not self.agents or (incident.subject_kind == AGENT and self.covers_agent(incident.subject_id))

    def covers_agent(self, agent_id: str) -> bool:
        """Whether an agent fits one of its patterns; every one does where there is none."""
        return not self.agents or any(fnmatchcase(agent_id, pattern) for pattern in self.agents)

    def is_of_every_agent(self, known: Collection[str]) -> bool:
        """Whether it covers all that there is to say about any agent, so that somebody should say that this is meant.

        Args:
            known: ids of the agents that there are.
        """
        return not self.rules and ("*" in self.agents or (bool(known) and all(map(self.covers_agent, known))))


@dataclass(frozen=True, kw_only=True)
class Silence(Scope):
    """A row of `alert_silences`."""

    hour: datetime
    silence_id: str
    starts_at: datetime
    ends_at: datetime
    reason: str
    added_by: str
    added_at: datetime
    ended_at: datetime | None = None
    is_of_file: bool = False

    def state(self, now: datetime) -> State:
        """Whether it covers now (`active`), will (`planned`), did (`expired`), or was `ended` by somebody."""
        if self.ended_at is not None:
            return "ended"
        if now >= self.ends_at:
            return "expired"
        begins_at_once = self.starts_at <= self.added_at  # also where a clock that ran ahead wrote both
        return "active" if begins_at_once or now >= self.starts_at else "planned"

    def is_over(self, now: datetime) -> bool:
        """Whether it will never silence again."""
        return self.state(now) in ("expired", "ended")

    @property
    def over_at(self) -> datetime:
        """The moment at which it is or was over."""
        return min(self.ended_at, self.ends_at) if self.ended_at else self.ends_at

    def is_listed(self, now: datetime, over_for: timedelta = LISTED_FOR) -> bool:
        """Whether it is in force, to come, or over only lately."""
        return not self.is_over(now) or self.over_at > now - over_for

    @property
    def scope(self) -> str:
        """The rules and agents that it covers, in a few words."""
        rules = ", ".join(self.rules) or "every rule"
        return f"{rules} of {printable(', '.join(self.agents), 200)}" if self.agents else rules


def silences_of(rows: Iterable[Mapping[str, Any]]) -> list[Silence]:
    """The silences of rows of `alert_silences`, whose lists are JSON; the one that is over last first."""
    found = [
        Silence(**{**row, "agents": tuple(json.loads(row["agents"])), "rules": tuple(json.loads(row["rules"]))})
        for row in rows
    ]
    return sorted(found, key=lambda silence: (silence.over_at, silence.silence_id), reverse=True)


def longest_covering(silences: Iterable[Silence], incident: Incident) -> Silence | None:
    """The silence that covers an incident for longest; None where none does."""
    covering = [silence for silence in silences if silence.covers(incident)]
    return max(covering, key=lambda silence: (silence.ends_at, silence.silence_id), default=None)


def remarks_on(silence: Silence, others: Sequence[Silence], agents: Sequence[str]) -> list[str]:
    """Sentences that whoever adds a silence should read.

    Args:
        silence: the silence.
        others: the silences that there are already.
        agents: ids of the agents that are known now.
    """
    matched = [agent for agent in agents if silence.covers_agent(agent)]
    told = []
    if silence.agents:
        shown = ", ".join(printable(agent, 60) for agent in matched[:5])
        more = f" and {len(matched) - 5:,} more" if len(matched) > 5 else ""
        names = f": {shown}{more}" if shown else ""
        told.append(f"matches {len(matched):,} of {counted(len(agents), 'agent')}{names}")
    if silence.ends_at - silence.starts_at > LONG:
        days = (silence.ends_at - silence.starts_at).days
        told.append(f"warning: it lasts {days:,} days; what is silenced for more than {LONG.days} is forgotten")
    same = [
        one
        for one in others
        if (set(one.agents), set(one.rules)) == (set(silence.agents), set(silence.rules))
        and one.added_at > silence.added_at - LATELY
    ]
    if len(same) + 1 >= OFTEN:
        told.append(
            f"warning: it is number {len(same) + 1} of the same within {LATELY.days} days; another threshold of the "
            "rule, or `only`, may serve better"
        )
    return told


def new_silence(
    *,
    until: datetime | str,
    reason: str,
    by: str,
    agents: Sequence[str] = (),
    rules: Sequence[str] = (),
    start: datetime | str | None = None,
    now: datetime | None = None,
) -> Silence:
    """The silence that a caller asks for.

    Args:
        until: until when: a moment, or how long from now, like `3d`.
        reason: why.
        by: name of the person who wants it.
        agents: patterns of agents.
        rules: names of rules; at least one of these or of the patterns.
        start: from when on, likewise; None for at once.
        now: the time, where it is not the clock's.

    Raises:
        RefusedError: it cannot be.
    """
    now = now or datetime.now(UTC)
    moments = {"until": until, "from": start}
    values: dict[str, Any] = {"agents": tuple(agents), "rules": tuple(rules), "reason": reason, "by": by}
    for name, text in moments.items():
        if text is not None:
            values[name] = _moment(name, text, now)
    try:
        wanted = SilenceWanted.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_context=False)[0]
        key = f"{first['loc'][0]}: " if first["loc"] else ""
        raise RefusedError(f"{key}{first['msg'].removeprefix('Value error, ')}") from None
    if wanted.until <= now:
        raise RefusedError(f"until: {wanted.until:%Y-%m-%d %H:%M} UTC is over already")
    return wanted.silence_of_caller(now)


def _moment(name: str, text: datetime | str, now: datetime) -> datetime:
    try:
        return text if isinstance(text, datetime) else moment_ahead(text, now)
    except ValueError as error:
        raise RefusedError(f"{name}: {error}") from None
