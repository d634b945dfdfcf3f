"""Identities: which executions a record that names an execution belongs to.

What belongs here: joining by id and agent. What does not: which of several rows of one identity stays
(`pipeline.superseding`).

Agents number their runs independently, so several may have one of the same id. A record that names an agent belongs to
that agent's executions of the id, whether it names the agent as they report it or as the targets map it; a record that
names none belongs to every execution of the id.
"""

from collections.abc import Sequence

import ibis
from ibis import ir

from health_assets.scoring.relations import lookup

CLAIMANT = "claimant"
NOBODY = ""
"""The claimant of a record that names no agent."""


def claimant_of(rows: ir.Table) -> ir.StringValue:
    """The agent that a record names, as the log reports it; `NOBODY` where it names none."""
    return ibis.coalesce(rows.agent_id_reported, rows.agent_id, NOBODY)


def with_columns_of_runs(executions: ir.Table, rows: ir.Table, columns: Sequence[str]) -> ir.Table:
    """Executions with columns of another table's rows of the same executions; null where it has none.

    Args:
        executions: cleaned executions.
        rows: one row per execution, with `hour`, `execution_id`, `agent_id` and `agent_id_reported`.
        columns: the columns to add.
    """
    added = rows.select("hour", "execution_id", *columns, claimant=claimant_of(rows))
    keys = ["hour", "execution_id", CLAIMANT]
    return lookup(executions.mutate(claimant=claimant_of(executions)), added, keys).drop(CLAIMANT)


def names_of_runs(runs: ir.Table, *keep: str) -> ir.Table:
    """Every name by which a record may name the agent of an execution: two where the targets map it, and `NOBODY`.

    Args:
        runs: executions, with `agent_id` and `CLAIMANT`.
        keep: columns to keep, among them those that tell the executions apart.

    Returns:
        `keep` and `named`.
    """
    mapped = runs.filter(runs.agent_id != runs[CLAIMANT])
    return ibis.union(
        runs.select(*keep, named=CLAIMANT),
        mapped.select(*keep, named="agent_id"),
        runs.select(*keep, named=ibis.literal(NOBODY)),
    )
