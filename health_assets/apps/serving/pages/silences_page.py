"""The page of silences: which there are, what a new one would silence, and the forms that add and end one.

What belongs here: choosing and counting. What does not: making a change (`changing`), and what a silence does
(`apps.alerts`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from health_assets.apps.alerts.rules import RULES
from health_assets.apps.alerts.silences import LONG, Coverable, Scope, Silence, new_silence, silences_of
from health_assets.apps.serving.history.reading import History
from health_assets.apps.serving.pages.incident_rows import open_incidents
from health_assets.apps.serving.pages.page import Page
from health_assets.apps.serving.pages.scoped_history import ScopedHistory
from health_assets.core.errors import HealthAssetsError
from health_assets.core.formatting import counted

MOST_LISTED = 200
NAMES_SHOWN = 5
NOT_OF_TEAMS = "Silences silence agents of all teams, so who is limited to some does not see them."
WILD = frozenset("*?[")


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A silence as somebody typed it into the form.

    Args:
        agents: patterns of agents, one a line.
        rules: names of rules.
        start: from when on.
        until: until when.
        reason: why.
    """

    agents: str = ""
    rules: tuple[str, ...] = ()
    start: str = ""
    until: str = ""
    reason: str = ""

    @property
    def patterns(self) -> tuple[str, ...]:
        """The patterns."""
        return tuple(filter(None, (line.strip() for line in self.agents.splitlines())))

    @property
    def scope(self) -> Scope:
        """The agents and rules that it covers."""
        return Scope(agents=self.patterns, rules=self.rules)

    def silence(self, by: str) -> Silence:
        """The silence that it asks for.

        Raises:
            HealthAssetsError: it cannot be.
        """
        texts = [*self.patterns, self.start, self.until, self.reason]
        if not all(text.isprintable() for text in texts):
            raise HealthAssetsError("something in the form cannot be printed; type it again")
        return new_silence(
            agents=self.patterns, rules=self.rules, start=self.start.strip() or None, until=self.until,
            reason=self.reason, by=by,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A change that was not made.

    Args:
        sentence: why.
        status: the HTTP status.
        again: address and fields of the form that tries it again; None where that would not help.
    """

    sentence: str
    status: int
    again: tuple[str, Sequence[tuple[str, str]]] | None = None


def known_silences(history: History) -> list[Silence]:
    """Every silence that the history has, the one that is over last first."""
    rows = history.whole("silences")
    return silences_of(rows.to_pylist() if rows is not None else ())


def silences_page(look: ScopedHistory, draft: Draft, refused: Refused | None = None, done: str = "") -> Page:
    """The silences in force, those to come, those that were over lately, and the form for another one.

    Args:
        look: the part of the history that the caller sees.
        draft: contents of the form.
        refused: why a change was not made; None where none was tried.
        done: id of the silence that was just added or ended.

    Raises:
        HealthAssetsError: the caller is limited to some teams.
    """
    if not look.sees_all:
        raise HealthAssetsError(NOT_OF_TEAMS)
    opened = open_incidents(look)
    incidents = [_Open(**row) for row in opened.select(_Open._fields).to_pylist()] if opened.num_rows else []
    data: dict[str, list[dict[str, Any]]] = {"active": [], "planned": [], "over": []}
    for silence in known_silences(look.history):
        state = silence.state(look.now)
        place = "over" if silence.is_over(look.now) else state
        if silence.is_listed(look.now) and _is_seen(look, silence) and len(data[place]) < MOST_LISTED:
            data[place].append({**_told(silence, incidents), "state": state})
    data["planned"].reverse()
    known = {silence["silence_id"] for of_place in data.values() for silence in of_place}
    has_matchers = bool(draft.patterns or draft.rules)
    return Page(
        name="silences",
        title="Silences",
        data={"hour": look.hour, **data, "listed": [*data["active"], *data["planned"], *data["over"]]},
        listing="listed",
        shown={
            "draft": draft,
            "preview": preview(look, draft, incidents) if look.may_submit_forms and has_matchers else None,
            "rules": list(RULES),
            "refused": refused,
            "done": done,
            "is_done_shown": done in known,
        },
        status=refused.status if refused else 200,
    )


def preview(look: ScopedHistory, draft: Draft, incidents: Sequence[Coverable]) -> dict[str, Any]:
    """Tells what a silence would silence now: agents, open incidents, and remarks about its length.

    Args:
        look: the part of the history that the caller sees.
        draft: contents of the form.
        incidents: the open incidents.
    """
    known = _known_agents(look)
    matched = [name for name in known if draft.scope.covers_agent(name)] if draft.patterns else []
    try:
        silence = draft.silence("nobody")
        fault = None
        span_s = (silence.ends_at - silence.starts_at).total_seconds()
    except HealthAssetsError as error:
        silence, fault, span_s = None, str(error), None
    return {
        "agents": len(matched) if draft.patterns else None,
        "known": len(known),
        "names": sorted(matched)[:NAMES_SHOWN],
        "open": sum(map(draft.scope.covers, incidents)),
        "is_everything": draft.scope.is_of_every_agent(known),
        "fault": fault,
        "starts_at": silence and silence.starts_at,
        "ends_at": silence and silence.ends_at,
        "span_s": span_s,
        "is_long": span_s is not None and span_s > LONG.total_seconds(),
        "long": counted(LONG.days, "day"),
    }


def is_everything(look: ScopedHistory, draft: Draft) -> bool:
    """Whether it covers every rule of every agent that the caller sees."""
    return draft.scope.is_of_every_agent(_known_agents(look))


def _known_agents(look: ScopedHistory) -> list[str]:
    """Ids as a list: the patterns are those of file names, which no column of Arrow can be asked for."""
    rows = look.at("agents")
    return list(rows.column("agent_id").to_pylist()) if rows.num_rows else []


class _Open(NamedTuple):
    """The facts of an open incident that say whether it is silenced."""

    rule: str
    subject_kind: str
    subject_id: str


def _is_seen(look: ScopedHistory, silence: Silence) -> bool:
    """Whether the caller may see all agents that it names."""
    return all(look.sees(name) for name in silence.agents if not WILD & set(name))


def _told(silence: Silence, incidents: Sequence[Coverable]) -> dict[str, Any]:
    return {
        "silence_id": silence.silence_id,
        "agents": list(silence.agents),
        "rules": list(silence.rules),
        "starts_at": silence.starts_at,
        "ends_at": silence.ends_at,
        "over_at": silence.over_at,
        "reason": silence.reason,
        "added_by": silence.added_by,
        "added_at": silence.added_at,
        "is_of_file": silence.is_of_file,
        "open_incidents": sum(map(silence.covers, incidents)),
    }
