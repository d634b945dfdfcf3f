"""Usage's block: tokens and cost of the fleet; the agents, models, versions and users that cost most."""

from collections.abc import Callable, Iterable
from typing import Any

import ibis
from ibis import ir
from rich.console import Console
from rich.table import Table
from rich.text import Text

from health_assets.core.console import plain_table
from health_assets.core.formatting import counted, dollars, share
from health_assets.core.hours import HOUR, HourRange
from health_assets.core.settings import load_settings
from health_assets.core.terminal import printable
from health_assets.pipeline.price_list import has_price_list
from health_assets.scoring.usage import AMOUNTS
from health_assets.systems.agent_usage.names import CANCELLED
from health_assets.warehouse.session import Session

AGENTS_SHOWN = 10
MODELS_SHOWN = 5
PARTS_SHOWN = 5
"""Models, versions and users."""
SHOWN = (
    "agent_id", "executions", "successes", "positive_feedback", "negative_feedback", *AMOUNTS,
    "executions_with_tokens", "executions_with_cost", "executions_with_computed_cost", *CANCELLED,
    "cost_per_success_usd",
)  # fmt: skip
SUMMED = tuple(name for name in SHOWN if name not in ("agent_id", "cost_per_success_usd"))
AT_LEAST = "≥"
"""Before what only some executions tell."""


def print_block(console: Console, session: Session, hours: HourRange) -> None:
    """Print what the executions in the window of the last of these hours cost, and the costliest agents."""
    latest = session.latest_hour("agent_usage", hours)
    if latest is None:
        return
    usage = session.hours_of("agent_usage", HourRange.of(latest))
    [fleet] = session.dicts(_fleet(usage))
    window = HourRange(fleet["window_start"], latest + HOUR)
    title = Text(f"Usage at {latest:%Y-%m-%d %H:%M} UTC: ", style="bold")
    title.append(f"{counted(fleet['agents'], 'agent')}, {counted(fleet['executions'], 'execution')} ")
    title.append(f"in {len(window):,} h")
    console.print()
    console.print(title)
    console.print(_in_words(fleet) if fleet["telling"] else "no execution tells tokens or cost", highlight=False)
    if fleet["telling"]:
        console.print(_table(session.dicts(_costliest(usage)), fleet["telling"]))
        _print_breakdown(console, session, HourRange.of(latest))
    if fleet["cancelled_runs"]:
        console.print(Text(_told_of_cancelled(fleet)))
    without = session.dicts(_without_cost(session, window))
    if without:
        console.print(Text(_told_without_cost(without)))


def _fleet(usage: ir.Table) -> ir.Table:
    """The sums over all agents, how many agents there are and how many tell anything, and the window."""
    return usage.aggregate(
        agents=usage.count(), telling=usage.count(where=_tells(usage)), window_start=usage.window_start.max(),
        **{name: usage[name].sum() for name in SUMMED},
    )  # fmt: skip


def _print_breakdown(console: Console, session: Session, hour: HourRange) -> None:
    """Print the costliest models and users, and versions of agents that ran several; nothing without names."""
    rows = session.hours_of("usage_breakdown", hour)
    if models := session.dicts(_costliest_of(rows.filter(rows.model != ""), ["model"])):
        console.print(_table_of("costliest models", ((one["model"], one) for one in models)))
    several = rows.group_by("agent_id").aggregate(versions=rows.agent_version.nunique())
    versions = rows.semi_join(several.filter(several.versions > 1), "agent_id")
    if of_agents := session.dicts(_costliest_of(versions, ["agent_id", "agent_version"])):
        named = ((f"{one['agent_id']} {one['agent_version'] or '(no version)'}", one) for one in of_agents)
        console.print(_table_of("costliest versions", named, max_width=30))
    if users := session.dicts(_costliest_of(rows.filter(rows.user_id != ""), ["user_id"])):
        console.print(_table_of("costliest users", ((one["user_id"], one) for one in users)))


def _costliest_of(rows: ir.Table, keys: list[str]) -> ir.Table:
    """The sums by some keys, the costliest first, and where that is unknown those with most tokens."""
    sums = rows.group_by(keys).aggregate(**{name: rows[name].sum() for name in SUMMED})
    sums = sums.mutate(cost_per_success_usd=sums.cost_usd / sums.successes.nullif(0))
    return _costliest_first(sums, keys).limit(PARTS_SHOWN)


def _without_cost(session: Session, window: HourRange) -> ir.Table:
    """The models, asked for and answering, of calls that tell their tokens and have no cost, most calls first."""
    calls = session.hours_of("model_calls", window)
    calls = calls.filter(calls.input_tokens.notnull(), calls.output_tokens.notnull(), calls.cost_usd.isnull())
    counts = calls.group_by(name=ibis.coalesce(calls.response_model, calls.model)).aggregate(calls=calls.count())
    return counts.order_by(counts.calls.desc(), counts.name)


def _told_without_cost(models: list[dict[str, Any]]) -> str:
    """The models whose calls have no cost, and how they get one."""
    shown = [f"{printable(one['name'])} ({one['calls']:,})" for one in models[:MODELS_SHOWN]]
    more = [f"{len(models) - MODELS_SHOWN:,} more models"] if len(models) > MODELS_SHOWN else []
    calls = counted(sum(one["calls"] for one in models), "call")
    if not load_settings().prices:
        why = "HEALTH_PRICES is off"
    elif has_price_list():
        why = "not in the price list, or of tokens that do not add up"
    else:
        why = "pip install 'health-assets[prices]' computes it from list prices"
    return f"{calls} without a cost, {why}: {', '.join([*shown, *more])}"


def _told_of_cancelled(fleet: dict[str, Any]) -> str:
    """How many runs users cancelled, and what these took."""
    tokens = [
        f"{fleet[f'cancelled_{name}']:,} tokens {way}"
        for name, way in (("input_tokens", "in"), ("output_tokens", "out"))
        if fleet[f"cancelled_{name}"] is not None
    ]
    cost = [] if fleet["cancelled_cost_usd"] is None else [dollars(fleet["cancelled_cost_usd"])]
    took = f" took {', '.join([*tokens, *cost])}" if tokens or cost else ""
    return f"in no sum above: {counted(fleet['cancelled_runs'], 'run')} that users cancelled{took}"


def _tells(usage: ir.Table) -> ir.BooleanValue:
    """Whether an execution of the agent tells any amount."""
    return ibis.or_(*(usage[name].notnull() for name in AMOUNTS))


def _costliest(usage: ir.Table) -> ir.Table:
    """The agents that cost most, and where that is unknown those with most tokens."""
    return _costliest_first(usage, ["agent_id"]).select(*SHOWN).limit(AGENTS_SHOWN)


def _costliest_first(usage: ir.Table, keys: list[str]) -> ir.Table:
    """The rows that tell anything, in order."""
    telling = usage.filter(_tells(usage))
    tokens = telling.input_tokens.fill_null(0) + telling.output_tokens.fill_null(0)
    return telling.order_by(telling.cost_usd.desc(nulls_first=False), tokens.desc(), *keys)


def _in_words(fleet: dict[str, Any]) -> str:
    """Tokens and cost of the fleet, and how many of its executions tell them."""
    tokens = [
        f"{fleet[name]:,} tokens {way}{_part(fleet[part], fleet[name], word)}"
        for name, way, part, word in (
            ("input_tokens", "in", "cache_read_tokens", "cached"),
            ("output_tokens", "out", "reasoning_tokens", "reasoning"),
        )
        if fleet[name] is not None
    ]
    told = [(", ".join(tokens), fleet["executions_with_tokens"])] if tokens else []
    if fleet["cost_usd"] is not None:
        told.append((dollars(fleet["cost_usd"]), fleet["executions_with_cost"]))
    words = "; ".join(f"{amount}, told by {counted(executions, 'execution')}" for amount, executions in told)
    computed = fleet["executions_with_computed_cost"]
    return f"{words}, of {computed:,} computed from list prices" if computed else words


def _part(part: int | None, whole: int, word: str) -> str:
    """Which share of tokens is of a kind, in brackets; nothing where no execution tells it."""
    return f" ({share(part / whole)} {word})" if part is not None and part <= whole != 0 else ""


def _table(agents: list[dict[str, Any]], telling: int) -> Table:
    table = _table_of("costliest agents", ((agent["agent_id"], agent) for agent in agents))
    captions = []
    if telling > len(agents):
        captions.append(f"the {len(agents)} of {telling:,} agents that cost most; all are in the table agent_usage")
    if any(agent[f"executions_with_{name}"] < agent["executions"] for agent in agents for name in ("tokens", "cost")):
        captions.append(f"{AT_LEAST} only some of the agent's executions tell it")
    table.caption = "\n".join(captions) or None
    return table


def _table_of(title: str, rows: Iterable[tuple[str, dict[str, Any]]], max_width: int = 24) -> Table:
    """Sums by name, with feedback of people where there is any."""
    rows = list(rows)
    has_feedback = any(sums["positive_feedback"] or sums["negative_feedback"] for _, sums in rows)
    table = plain_table()
    table.add_column(title, no_wrap=True, max_width=max_width)
    feedback = ["liked", "disliked"] if has_feedback else []
    for heading in ("runs", "succeeded", *feedback, "tokens in", "tokens out", "cost", "per success"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, sums in rows:
        with_tokens, with_cost = (
            AT_LEAST if sums[f"executions_with_{amount}"] < sums["executions"] else "" for amount in ("tokens", "cost")
        )
        table.add_row(
            Text(printable(name)), f"{sums['executions']:,}", f"{sums['successes']:,}",
            *([f"{sums['positive_feedback']:,}", f"{sums['negative_feedback']:,}"] if has_feedback else []),
            _or_dash(with_tokens, sums["input_tokens"], "{:,}".format),
            _or_dash(with_tokens, sums["output_tokens"], "{:,}".format),
            _or_dash(with_cost, sums["cost_usd"], dollars),
            _or_dash(with_cost, sums["cost_per_success_usd"], dollars),
        )  # fmt: skip
    return table


def _or_dash(prefix: str, value: float | None, said: Callable[[float], str]) -> str:
    """The value after the sign that more is not known; a dash for none."""
    return "–" if value is None else f"{prefix}{said(value)}"
