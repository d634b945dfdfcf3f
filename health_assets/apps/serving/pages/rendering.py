"""HTML from templates: the environment, and how values are written for people.

What belongs here: filters that templates use. What does not: what is shown.

Every value is escaped. Names from logs may hold anything, so `name` shows what has no shape as its code, and keeps the
direction of writing from leaking into the text beside it.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, lru_cache
from math import floor, log10
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from health_assets.scoring.explanation import shown_points
from health_assets.scoring.verdict import NOW_FIRST, stake_reservation

NOTHING = "–"
LONGEST_NAME = 120
MOST_HEADS = 2_000
"""Heads of rows that are kept; the hours of two months and more."""
INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Categories of characters that have no shape, or change that of others."""


@cache
def environment() -> Environment:
    """The environment of all templates."""
    made = Environment(
        loader=PackageLoader("health_assets.apps.serving.pages", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        name=name, number=number, score=score, share=share, moment=moment, milliseconds=milliseconds, usd=usd,
        seconds=seconds, part=part, signed=signed, shape=lambda text: shape(str(text)[:LONGEST_NAME]),
        points=shown_points, curve_rows=curve_rows, utc_hour=utc_hour, offset=offset,
    )  # fmt: skip
    return made


def prepare() -> None:
    """Read and compile every template, so that nobody waits for that at the first page of a kind."""
    for one in environment().list_templates():
        environment().get_template(one)


def render(template: str, **shown: Any) -> bytes:
    """A template with what it shows, as UTF-8."""
    return environment().get_template(template).render(**shown).encode("utf-8", "replace")


def part(text: Any) -> str:
    """A text as one part of a URL's path; a slash in it stays one."""
    return quote(str(text), safe="")


def name(text: Any, most: int = LONGEST_NAME) -> Markup:
    """A text from a log: what has no shape is shown as its code, what is long is cut, and says so on hover."""
    if text is None:
        return Markup('<span class="none">–</span>')
    whole = shape(str(text)[: 10 * most])
    if len(str(text)) <= most:
        return Markup(f"<bdi>{escape(whole)}</bdi>")
    return Markup(f'<bdi title="{escape(whole)}">{escape(whole[:most])}…</bdi>')


def shape(text: str) -> str:
    """A text of which every character can be seen: as it is, or its code."""
    return text if text.isprintable() else "".join(map(visible, text))


def visible(character: str) -> str:
    """A character, or its code where it has no shape of its own."""
    if unicodedata.category(character) in INVISIBLE:
        return f"\\u{ord(character):04x}"
    return character


def number(value: float | None, digits: int = 0) -> str:
    """A number with commas."""
    return NOTHING if value is None else f"{value:,.{digits}f}"


def score(value: float | None) -> str:
    """A score of 100 points, to a tenth; what is below 100 never looks like 100."""
    if value is None:
        return NOTHING
    shown = f"{value:.1f}"
    return "99.9" if shown == "100.0" and value < 100 else shown


def share(value: float | None, digits: int = 1) -> str:
    """A share of 1 in percent."""
    return NOTHING if value is None else f"{100 * value:,.{digits}f}%"


def signed(value: float | None, digits: int = 1) -> str:
    """A difference, with its sign."""
    return NOTHING if value is None else f"{value:+,.{digits}f}".replace("-", "−")


def usd(value: float | None) -> str:
    """An amount in US dollars: to the cent, below a dollar with three digits that count."""
    if value is None:
        return NOTHING
    return f"${value:,.{2 if abs(value) >= 1 or not value else 2 - floor(log10(abs(value)))}f}"


def milliseconds(value: float | None) -> str:
    """A duration given in milliseconds."""
    return NOTHING if value is None else seconds(value / 1000)


def seconds(value: float | None) -> str:
    """A duration given in seconds, in the unit that suits it."""
    if value is None:
        return NOTHING
    if value < 1:
        return f"{1000 * value:,.0f} ms"
    if value < 120:
        return f"{value:,.1f} s"
    if value < 2 * 3600:
        return f"{value / 60:,.0f} min"
    return f"{value / 3600:,.0f} h" if value < 2 * 86400 else f"{value / 86400:,.0f} d"


def offset(value: float) -> str:
    """How long after the start of something, in seconds, so that neighbors can be told apart."""
    if value < 120:
        return f"+{seconds(value)}"
    minutes, rest = divmod(int(value), 60)
    return f"+{minutes:d}:{rest:02d}" if minutes < 120 else f"+{minutes // 60:,d}:{minutes % 60:02d}:{rest:02d}"


def moment(value: datetime | str | None, form: str = "%Y-%m-%d %H:%M") -> Markup:
    """A time in UTC; the browser adds the reader's own on hover."""
    if value is None:
        return Markup('<span class="none">–</span>')
    at = datetime.fromisoformat(value) if isinstance(value, str) else value
    at = at.astimezone(UTC)
    return Markup('<time datetime="{}">{}</time>').format(at.isoformat(timespec="seconds"), at.strftime(form))


def utc_hour(value: datetime | str) -> str:
    """The hour of a time, as addresses have it."""
    at = datetime.fromisoformat(value) if isinstance(value, str) else value
    return f"{at.astimezone(UTC):%Y-%m-%dT%H}"


def squares(agents: Sequence[Mapping[str, Any]], query: str = "") -> Markup:
    """Agents as squares that lead to their pages; made here, since hundreds of them take a template too long.

    Args:
        agents: each with `agent_id`, `now`, `state`, `is_provisional`, `health_score` and `points_at_stake`.
        query: what stands behind the address of each page, with its question mark.
    """
    return Markup("".join(_square(agent, escape(query)) for agent in agents))


def _square(agent: Mapping[str, Any], query: str) -> str:
    name, state = escape(shape(agent["agent_id"])), escape(agent["state"])
    kind, note = (" provisional", ", provisional") if agent["is_provisional"] else ("", "")
    if agent["now"] in NOW_FIRST:
        kind, note = f"{kind} now-{agent['now']}", f"{note}, {agent['now']} now"
    stake = stake_reservation(agent)
    note = f"{note}, {stake}" if stake else note
    return (
        f'<li><a class="square {state}{kind}" href="/ui/agents/{part(agent["agent_id"])}{query}" '
        f'title="{name}: {score(agent["health_score"])} {state}{note}"><span class="hidden">{name}</span></a></li>'
    )


def curve_rows(rows: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> Markup:
    """Rows of the table behind a curve; made here, since a month of hours takes a template too long.

    Args:
        rows: each with its `hour`.
        keys: the columns, of numbers or null.
    """
    return Markup("\n".join(_curve_row(row["hour"], [row[key] for key in keys]) for row in rows))


def _curve_row(hour: datetime, values: Sequence[float | None]) -> str:
    cells = "".join([f'<td class="num">{_plain(value)}</td>' for value in values])
    return f"<tr>{_curve_head(hour)}{cells}</tr>"


@lru_cache(MOST_HEADS)
def _curve_head(hour: datetime) -> str:
    """The head of a row; every curve of a page has the same ones."""
    return f'<th scope="row" data-at="{hour.timestamp():.0f}">{hour:%m-%d %H:%M}</th>'


def _plain(value: float | None) -> str:
    """A value as the script that draws the curve reads it: a count as it is, what is small with four digits."""
    if value is None:
        return ""
    if isinstance(value, int):
        return f"{value:d}"
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"
