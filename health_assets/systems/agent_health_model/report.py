"""The Agent Health Model's block: the fleet, and its agents from those on that a person looks at first."""

from collections.abc import Iterator, Mapping
from typing import Any

from ibis import ir
from rich.console import Console
from rich.table import Table
from rich.text import Text

from health_assets.core.console import is_narrow, plain_table
from health_assets.core.formatting import counted
from health_assets.core.hours import HourRange
from health_assets.core.terminal import printable
from health_assets.scoring.agent_health_weights import (
    OPERATIONAL_POINTS,
    PERFORMANCE_POINTS,
    RELIABILITY_POINTS,
    STABILITY_POINTS,
)
from health_assets.scoring.explanation import COLUMNS, costliest, explain, unmeasured
from health_assets.scoring.verdict import (
    FAILING,
    NOW_FIRST,
    RECOVERING,
    SUSPECT,
    at_stake,
    runs,
    verdict,
)
from health_assets.systems.agent_health_model.severity_order import NOW_COLUMNS, with_now, with_verdict
from health_assets.systems.agent_health_model.system_health import STATES
from health_assets.warehouse.session import Session

COLOURS = {"healthy": "green", "degraded": "yellow", "unhealthy": "red", "inactive": "dim"}
NOW_COLOURS = {FAILING: "bold white on red", SUSPECT: "bold yellow", RECOVERING: "cyan"}
POINTS = {
    "rel": RELIABILITY_POINTS, "perf": PERFORMANCE_POINTS, "stab": STABILITY_POINTS, "oper": OPERATIONAL_POINTS,
}  # fmt: skip
LEAST_LOSS = 0.05
AGENTS_SHOWN = 15
NAMES_SHOWN = 3
SHOWN = tuple(
    dict.fromkeys(
        (
            "agent_id",
            *NOW_COLUMNS,
            "now_is_by_6h",
            "state",
            "is_provisional",
            "health_score",
            "points_at_stake",
            "reliability_score",
            "operational_score",
            *COLUMNS,
        )
    )
)


def print_block(console: Console, session: Session, hours: HourRange) -> None:
    """The fleet in the last of these hours, and its agents in the order of their verdicts."""
    latest = session.latest_hour("system_health", hours)
    if latest is None:
        return
    hours = HourRange.of(latest)
    agents = with_now(session.hours_of("agent_health", hours), session, hours)
    [fleet] = session.dicts(session.hours_of("system_health", hours).select("health_score", "agents"))
    score = fleet["health_score"]
    counts = dict.fromkeys(((state, False) for state in STATES), 0)
    for found in session.dicts(_agents_by_verdict(agents)):
        counts[found["state"], found["is_provisional"]] = found["agents"]
    title = Text(f"Fleet at {latest:%Y-%m-%d %H:%M} UTC: ", style="bold")
    title.append(f"{score:.1f}" if score is not None else "no active agent", style=_colour_of(score))
    window_hours = _window_hours(session, agents)
    title.append(f" over {window_hours:,.0f} h" if window_hours is not None else "")
    title.append(f"  {counted(fleet['agents'], 'agent')}: ")
    for state, is_provisional in sorted(counts, key=lambda count: (STATES.index(count[0]), count[1])):
        before = f"{counts[state, is_provisional]:,} "
        title.append_text(shown_verdict({"state": state, "is_provisional": is_provisional}, before)).append("  ")
    console.print()
    console.print(title)
    console.print(_agents_table(session.dicts(_first_agents(agents)), fleet["agents"], is_brief=is_narrow(console)))


def _agents_by_verdict(agents: ir.Table) -> ir.Table:
    """The number of agents of each state, provisional ones counted apart."""
    is_provisional = agents.is_provisional.fill_null(False)
    return agents.group_by("state", is_provisional=is_provisional).aggregate(agents=agents.count())


def _window_hours(session: Session, agents: ir.Table) -> float | None:
    """The length of the window of the scores; None without an agent."""
    span_s = agents.window_end.max().epoch_seconds() - agents.window_start.max().epoch_seconds()
    [found] = session.dicts(agents.aggregate(hours=span_s / 3600))
    return found["hours"]


def _first_agents(agents: ir.Table) -> ir.Table:
    """The agents that a person looks at first, in that order."""
    in_order = with_verdict(agents).order_by("urgency", "health_score", "agent_id")
    return in_order.select(*SHOWN).limit(AGENTS_SHOWN)


def shown_verdict(agent: Mapping[str, Any], before: str = "") -> Text:
    """An agent's verdict behind a text; a provisional one is pale, for it is neither good nor bad news yet."""
    word = verdict(agent["state"], is_provisional=agent["is_provisional"])
    return Text(before + word, style=f"{'dim ' if agent['is_provisional'] else ''}{COLOURS[agent['state']]}")


def _agents_table(shown: list[dict[str, Any]], count: int, *, is_brief: bool) -> Table:
    """The agents to look at first, the points that each dimension cost them unless it is brief, and what cost most."""
    table = plain_table()
    table.add_column("agent", no_wrap=True, max_width=24)
    has_now = not is_brief and any(agent["now"] in NOW_FIRST for agent in shown)
    if has_now:
        table.add_column("now", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("score", justify="right", no_wrap=True)
    has_stakes = any(map(at_stake, shown))
    if has_stakes:
        table.add_column("tested", justify="right", no_wrap=True)
    for dimension in () if is_brief else POINTS:
        table.add_column(f"-{dimension}", justify="right", no_wrap=True)
    table.add_column("runs", justify="right", no_wrap=True)
    table.add_column("what cost most")
    for agent in shown:
        row: list[Text | str] = [Text(printable(agent["agent_id"]))]
        row += [_shown_now(agent)] if has_now else []
        row += [shown_verdict(agent), _points(agent["health_score"])]
        row += [_shown_stake(agent)] if has_stakes else []
        row += [] if is_brief else map(_lost, _losses(agent))
        table.add_row(*row, runs(agent), _brief_reason(agent) if is_brief else Text(_reason(agent)))
    table.caption = "\n".join(_captions(shown, count, is_brief=is_brief))
    return table


def _shown_stake(agent: Mapping[str, Any]) -> str:
    return "–" if agent["points_at_stake"] is None else at_stake(agent) or "100"


def _shown_now(agent: Mapping[str, Any]) -> Text:
    """The verdict of now in a word."""
    word = agent["now"]
    if word not in NOW_FIRST:
        return Text(word or "–", style="dim")
    return Text("FAILING" if word == FAILING else word, style=NOW_COLOURS[word])


def _captions(shown: list[dict[str, Any]], count: int, *, is_brief: bool) -> Iterator[str]:
    """The meanings of the signs that the table has."""
    if not is_brief:
        yield "points lost to reliability (of 40), performance, stability and operation (of 20 each); · none"
    if not is_brief and (causes := _why_unmeasured(shown)):
        yield f"– not evaluated: {causes}"
    if any(map(at_stake, shown)):
        yield "tested: points of 100 that could be lost; the others count in full, so a high score of few proves little"
    if any(agent["is_provisional"] for agent in shown):
        yield "? provisional: fewer runs than the score needs, so it leans to 100"
    if count > len(shown):
        yield f"the {len(shown)} of {count:,} agents to look at first; all are in the table agent_health"


def _why_unmeasured(shown: list[dict[str, Any]]) -> str:
    """The causes for which dimensions were not evaluated; with names where they are not the same for all agents."""
    without = [agent for agent in shown if agent["health_score"] is not None and unmeasured(agent)]
    untimed = [agent["agent_id"] for agent in without if agent["n"] <= (agent["untimed"] or 0)]
    unexpected = [agent["agent_id"] for agent in without if agent["expected_runtime_s"] is None]
    unoperated = [agent["agent_id"] for agent in without if "operation" in unmeasured(agent)]
    causes = {
        "perf and stab: no runtime in the logs": untimed,
        "perf and stab: no expected_runtime_s in the targets": unexpected,
        "oper: neither SLA nor trigger": unoperated,
    }
    found = {cause: names for cause, names in causes.items() if names}
    if len({tuple(names) for names in found.values()}) == 1:
        return "; ".join(found)
    return "; ".join(f"{cause}{_of(names)}" for cause, names in found.items())


def _of(names: list[str]) -> str:
    more = f" and {len(names) - NAMES_SHOWN:,} more" if len(names) > NAMES_SHOWN else ""
    return f" of {', '.join(map(printable, names[:NAMES_SHOWN]))}{more}"


def _losses(agent: dict[str, Any]) -> list[float | None]:
    """Points that each dimension cost; None where it could not be evaluated."""
    scores = {
        "reliability": agent["reliability_score"], "performance": agent["performance_score"],
        "stability": agent["stability_score"], "operation": agent["operational_score"],
    }  # fmt: skip
    return [
        None if score is None or name in unmeasured(agent) else points * (1 - score)
        for points, (name, score) in zip(POINTS.values(), scores.items(), strict=True)
    ]


def _lost(points: float | None) -> str:
    return "·" if points is not None and points <= LEAST_LOSS else _points(points)


def _points(points: float | None) -> str:
    return "–" if points is None else f"{points:.1f}"


def _reason(agent: dict[str, Any]) -> str:
    """The greatest loss, as what was seen against what was expected."""
    if agent["health_score"] is None:
        return "no execution in the window"
    loss = costliest(explain(agent))
    return loss.sentence if loss and loss.lost > LEAST_LOSS else ""


def _brief_reason(agent: dict[str, Any]) -> Text:
    """The same behind what the agent does now, which has no column of its own there."""
    if agent["now"] not in NOW_FIRST:
        return Text(_reason(agent))
    return _shown_now(agent).append(f" {_reason(agent)}".rstrip(), style="default")


def _colour_of(score: float | None) -> str:
    if score is None:
        return "dim"
    return "green" if score >= 85 else "yellow" if score >= 65 else "red"
