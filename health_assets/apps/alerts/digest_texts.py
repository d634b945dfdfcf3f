"""Words of a periodic digest: a title, and lines by kind of fact. What does not belong here: the facts themselves."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any

from health_assets.apps.alerts.messages import SIGNS, Message
from health_assets.apps.alerts.periodic import PERIODIC, PeriodicDigest
from health_assets.core.formatting import counted
from health_assets.core.terminal import printable
from health_assets.scoring.verdict import FAILING, NOW_FIRST, stake_reservation

MOST = 200
MOST_REASON = 120
HOURS_SHOWN = 3


def message_of_digest(digest: PeriodicDigest) -> Message:
    """The message that a channel gets: the same facts as text and for programs."""
    key = f"{digest.digest_id}-{PERIODIC}"
    content = digest.content
    return Message(
        key=key,
        event=PERIODIC,
        title=title_of(content),
        lines=tuple(lines_of(content)),
        body={"idempotency_key": key, "event": PERIODIC, "due_at": digest.due_at.isoformat(), **content},
    )


def title_of(content: dict[str, Any]) -> str:
    """One line: the period, the fleet and what is open."""
    fleet, incidents = content["fleet"], content["incidents"]
    told = f"{content['cadence'].capitalize()} digest to {_time(content['to'])}: "
    if fleet is None:
        told += "no hour with scores"
    else:
        states = [f"{fleet[name]:,} {name}" for name in ("healthy", "degraded", "unhealthy", "inactive") if fleet[name]]
        told += f"{counted(fleet['agents'], 'agent')}" + (f" ({', '.join(states)})" if states else "")
    now = content["now"] or {}  # None without an hour that has scores
    doing = [f"{now[name]:,} {name}{' now' if name == FAILING else ''}" for name in NOW_FIRST if now.get(name)]
    return ", ".join([told, *doing, f"{counted(incidents['open'], 'incident')} open"])


def lines_of(content: dict[str, Any]) -> Iterator[str]:
    """The lines below the title; a kind of fact of which there is none has none."""
    yield from _listed("Now", (content["now"] or {}).get("agents", []), _now)
    yield from _listed("Worst", content["worst"], _worst)
    yield from _listed("Fell most", content["dropped"], _dropped)
    yield from _listed("Error budgets spent or burning", content["budgets"], _budget)
    yield from _listed("Releases", content.get("releases", []), _release)  # none in digests of earlier versions
    yield from _listed("Unlike their own past", content.get("drifts", []), _drift)
    yield from _incidents(content["incidents"])
    yield from _quality(content["quality"])
    yield from _silences(content["silences"])


def _listed(heading: str, rows: list[dict[str, Any]], told: Callable[[dict[str, Any]], str]) -> Iterable[str]:
    return [f"{heading}:", *(f"· {told(row)}" for row in rows)] if rows else []


def _now(row: dict[str, Any]) -> str:
    return f"{printable(row['agent_id'], MOST)} {row['verdict']}: {row['evidence']}, since {_time(row['since'])}"


def _worst(row: dict[str, Any]) -> str:
    doubts = ["provisional" if row["is_provisional"] else "", stake_reservation(row)]
    told = ", ".join(filter(None, [row["state"], *doubts]))
    return f"{printable(row['agent_id'], MOST)} {row['health_score']:.1f} ({told})"


def _dropped(row: dict[str, Any]) -> str:
    fell = f"from {row['score_before']:.1f} to {row['health_score']:.1f}"
    fell += f" ({stake})" if (stake := stake_reservation(row)) else ""
    return f"{printable(row['agent_id'], MOST)} -{row['points']:.1f}, {fell}"


def _budget(row: dict[str, Any]) -> str:
    rates = [
        f"{row[name]:.1f} times as fast as it may over {hours} h"
        for name, hours in (("burn_rate_6h", 6), ("burn_rate_1h", 1))
        if row[name] is not None
    ]
    spent = [] if row["budget_spent"] is None else [f"{row['budget_spent']:.0%} spent"]
    return f"{printable(row['agent_id'], MOST)} {', '.join([*spent, *rates])}"


def _release(row: dict[str, Any]) -> str:
    names = [printable(row[name], MOST) for name in ("agent_id", "dimension", "to_version", "from_version")]
    return f"{names[0]}: {names[1]} {names[2]} after {names[3]}, {row['told']}"


def _drift(row: dict[str, Any]) -> str:
    ended = "" if row["until"] is None else f"; no longer from {_time(row['until'])} on"
    return f"{printable(row['agent_id'], MOST)}: {printable(row['told'], MOST)}{ended}"


def _incidents(incidents: dict[str, Any]) -> Iterator[str]:
    silenced = f", {incidents['silenced']:,} of them silenced" if incidents["silenced"] else ""
    changed = f"{incidents['opened']:,} opened and {incidents['closed']:,} closed in the period"
    yield f"Incidents: {incidents['open']:,} open{silenced}; {changed}"
    for row in incidents["urgent"]:
        since = _time(row["opened_at"])
        yield f"· {SIGNS[row['severity']]} {row['rule']} since {since}: {printable(row['reason'], MOST)}"


def _quality(quality: dict[str, Any]) -> Iterator[str]:
    told = []
    if quality["missing_hours"]:
        first = ", ".join(_time(hour) for hour in quality["first_missing"][:HOURS_SHOWN])
        more = ", …" if quality["missing_hours"] > HOURS_SHOWN else ""
        told.append(f"{counted(quality['missing_hours'], 'hour')} missing ({first}{more})")
    if quality["late_hours"]:
        told.append(f"{counted(quality['late_hours'], 'hour')} came late")
    told += [
        f"{printable(row['check'], MOST)} failed in {counted(row['hours'], 'hour')}" for row in quality["failed_checks"]
    ]
    if quality["rejected_lines"]:
        worst = quality["rejected_for"][0]
        why = f"{worst['lines']:,} × {printable(worst['reason'], MOST_REASON)}"
        told.append(f"{counted(quality['rejected_lines'], 'line')} rejected (most: {why})")
    yield "Data: " + ("; ".join(told) if told else "every hour is there, no check failed, no line was rejected")


def _silences(silences: dict[str, int]) -> Iterator[str]:
    told = [counted(silences["active"], "silence") + " in force"] if silences["active"] else []
    told += [f"{silences['planned']:,} to come"] if silences["planned"] else []
    if told:
        yield f"Silences: {', '.join(told)}"


def _time(moment: str) -> str:
    return f"{datetime.fromisoformat(moment):%Y-%m-%d %H:%M} UTC"
