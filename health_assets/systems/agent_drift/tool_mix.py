"""Drift of the tool mix: which share of an agent's calls each tool has, beside the agent's past.

A mix that changed has a tool whose share grew, so the shares of all tools are looked at as shares of runs are
(`evidence`), with calls for runs. Their evidence is added up with equal weights that are known before: the mean of
e-detectors is one, too. A distance between mixes, as that of Jensen and Shannon, promises nothing as it stands: how
great it becomes by chance depends on the number of calls and on how they hang together.

Looked at are the tools that an agent called most in the days that thresholds come from, and all others as one: a tool
that is new makes that one grow.
"""

from collections.abc import Iterator

import ibis
import numpy as np
import pyarrow as pa
from ibis import ir

from health_assets.core.hours import HourRange
from health_assets.scoring.relations import lookup
from health_assets.systems.agent_drift.detectors import HourlyGrid, Search, counts_of_detectors, rows_of
from health_assets.systems.agent_drift.evidence import SHARE_HOURS, Bets, Floats, log_evidence, share_bets
from health_assets.systems.agent_drift.names import FEWEST_RUNS, TOOL_MIX
from health_assets.systems.agent_drift.past import Integers, Past
from health_assets.systems.agent_drift.run_counts import place, threshold_hours

MOST_TOOLS = 15
"""Tools of an agent that are looked at apart from the others."""
OTHERS = MOST_TOOLS
"""The part of the other tools."""
MARGIN = 0.1
"""Largest growth of a tool's share of the calls that does not matter."""


def called_tools(components: ir.Table, agents: ir.Table, hours: HourRange) -> ir.Table:
    """`number`, `agent_id`, `tool` and `part` of the tools that agents with enough calls for a past called.

    `part` is 0 to `MOST_TOOLS` - 1 of the tools that an agent called most in its past, and `OTHERS` of the others.

    Args:
        components: `tool_components` of the hours to find drift in, and of the look-back before them.
        agents: `number` and `agent_id` of the agents that count.
        hours: the hours to find drift in, of one day.
    """
    called = _calls(components)
    called = called.mutate(all_calls=called.calls.sum().over(group_by="agent_id"))
    enough = called.filter(called.all_calls >= FEWEST_RUNS).select("agent_id", "tool")
    usual = _calls(components.filter(components.hour.isin(threshold_hours(hours))))
    most = ibis.row_number().over(group_by="agent_id", order_by=[ibis.desc(usual.calls), usual.tool])
    usual = usual.mutate(part=most)
    usual = usual.filter(usual.part < MOST_TOOLS).drop("calls")
    rows = lookup(enough.inner_join(agents.select("number", "agent_id"), "agent_id"), usual, ["agent_id", "tool"])
    return rows.mutate(part=rows.part.fill_null(OTHERS))


def _calls(components: ir.Table) -> ir.Table:
    return components.group_by(["agent_id", "tool"]).aggregate(calls=components.calls.sum())


def tool_counts(components: ir.Table, tools: ir.Table, hours: HourRange) -> ir.Table:
    """One row per agent, tool and hour: `number`, `part`, `place` and `calls`.

    Args:
        components: as of `called_tools`.
        tools: `called_tools`.
        hours: the hours to find drift in.
    """
    rows = components.inner_join(tools, ["agent_id", "tool"])
    return rows.select(
        "number", place=place(rows.hour, hours), part=rows.part.cast("int32"), calls=rows.calls.cast("int32")
    )


def tool_detectors(counts: pa.Table, search: Search) -> pa.Table:
    """Rows of `detectors.EVIDENCE_SCHEMA` about the tool mix.

    Args:
        counts: `tool_counts` of whole agents, in any order.
        search: what drift is found in.
    """
    numbers, places, calls = (counts[name].to_numpy() for name in ("number", "place", "calls"))
    of_agents = HourlyGrid(numbers, places, search.hours)
    all_calls = of_agents.summed(calls)
    # all agents have other tools, if without a call
    others = of_agents.numbers * (OTHERS + 1) + OTHERS
    owned = np.concatenate([numbers * (OTHERS + 1) + counts["part"].to_numpy(), others])
    of_tools = HourlyGrid(owned, np.concatenate([places, np.zeros_like(others)]), search.hours)
    own_calls = of_tools.summed(np.concatenate([calls, np.zeros(len(others), calls.dtype)]))
    detectors = np.zeros(len(search.hours), np.int64)
    tables = []
    for agents, tools in _slices(of_agents.numbers, of_tools.numbers // (OTHERS + 1), search.agents_at_once):
        owners = np.searchsorted(of_agents.numbers[agents], of_tools.numbers[tools] // (OTHERS + 1))
        past = Past.of(all_calls[:, agents][:, owners], own_calls[:, tools], len(search.hours))
        with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
            bets = [share_bets(past, hours, MARGIN, is_by_time_of_day=True) for hours in SHARE_HOURS]
            evidence, best, has_past = _of_agents(bets, owners)
        detectors += has_past.sum(axis=1)
        hours_at, columns = np.nonzero(evidence >= search.least)
        best_tools = best[hours_at, columns]
        tables.append(
            rows_of(
                TOOL_MIX, bets, hours_at, best_tools, evidence[hours_at, columns],
                of_agents.numbers[agents][columns], search,
                parts=of_tools.numbers[tools][best_tools] % (OTHERS + 1),
            )
        )  # fmt: skip
    return pa.concat_tables([*tables, counts_of_detectors(search.hours, detectors)])


def _slices(agents: Integers, agents_of_tools: Integers, step: int) -> Iterator[tuple[slice, slice]]:
    """Some agents at a time, with their tools."""
    for first in range(0, len(agents), step):
        own = slice(first, min(first + step, len(agents)))
        ends = np.searchsorted(agents_of_tools, [agents[own.start], agents[own.stop - 1] + 1])
        yield own, slice(*ends)


def _of_agents(bets: list[Bets], owners: Integers) -> tuple[Floats, Integers, np.ndarray]:
    """The logarithm of the mean evidence of each agent's tools, the tool with the greatest bet, and who has a past.

    Args:
        bets: the bets of tools, by their start.
        owners: the agent of each tool, from 0 on, in order.
    """
    firsts = np.searchsorted(owners, np.arange(owners[-1] + 1))
    of_tools = log_evidence(bets)
    greatest = np.maximum.reduceat(of_tools, firsts, axis=1)
    finite = np.where(np.isfinite(greatest), greatest, 0.0)
    summed = np.add.reduceat(np.exp(of_tools - finite[:, owners]), firsts, axis=1)
    evidence = finite + np.log(summed) - np.log(np.bincount(owners))
    has_past = np.any([own.has_past for own in bets], axis=0)
    bet = np.max([np.where(own.has_past, own.log_ratio, -np.inf) for own in bets], axis=0)
    is_best = bet == np.maximum.reduceat(bet, firsts, axis=1)[:, owners]
    columns = np.where(is_best, np.arange(len(owners)), len(owners))
    best = np.minimum.reduceat(columns, firsts, axis=1)
    return evidence, best, np.logical_or.reduceat(has_past, firsts, axis=1)
