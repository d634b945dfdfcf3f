"""Common values of the runs of an hour, of agents that are failing or suspect: counts by version, model and tool.

What belongs here: counting the runs of the hour, and those of them that failed, by each value. What does not: which of
the values is to blame (`health_assets.scoring.failure_causes`).

A run has the value of a tool, or of a called model, where one of its calls of it failed. A call that names no agent
belongs to every run of its id. Calls of the hour and of the one before it are looked at.
"""

import ibis
from ibis import ir

from health_assets.scoring.identities import CLAIMANT, claimant_of, names_of_runs
from health_assets.scoring.verdict import FAILING, SUSPECT

COLUMNS = ("hour", "agent_id", "dimension", "value", "executions", "failures")


def common_values(executions: ir.Table, tool_calls: ir.Table, model_calls: ir.Table, now: ir.Table) -> ir.Table:
    """Rows of `COLUMNS`: executions of an hour by agent and by value of a dimension, and how many of them failed.

    Args:
        executions: `executions` of the hours.
        tool_calls: `tool_calls` of the hours and of the one before them.
        model_calls: `model_calls` of the same hours.
        now: `agent_now` of the hours.
    """
    troubled = now.filter(now.verdict.isin([FAILING, SUSPECT])).select("hour", "agent_id")
    runs = executions.semi_join(troubled, ["hour", "agent_id"])
    runs = runs.select(
        "hour", "agent_id", "execution_id", "agent_version", "model",
        claimant=claimant_of(runs), is_failed=(runs.status == "failure").cast("int64"),
    )  # fmt: skip
    return ibis.union(
        _by(runs, "version", runs.agent_version),
        _by(runs, "model", runs.model),
        _by_failed_calls(runs, "tool", tool_calls, "tool"),
        _by_failed_calls(runs, "called_model", model_calls, "model"),
    )


def _by(runs: ir.Table, dimension: str, value: ir.StringValue) -> ir.Table:
    named = runs.mutate(dimension=ibis.literal(dimension), value=value)
    return _counts(named.filter(named.value.notnull()))


def _by_failed_calls(runs: ir.Table, dimension: str, calls: ir.Table, column: str) -> ir.Table:
    failed = calls.filter(calls.status != "success", calls.execution_id.notnull())
    failed = failed.select(call_of="execution_id", caller=claimant_of(failed), value=column).distinct()
    keys = ("hour", "agent_id", "execution_id", CLAIMANT)
    named = names_of_runs(runs, *keys, "is_failed")
    same = [named.execution_id == failed.call_of, named.named == failed.caller]
    hit = named.inner_join(failed, same).select(*keys, "is_failed", "value").distinct()
    return _counts(hit.mutate(dimension=ibis.literal(dimension)))


def _counts(runs: ir.Table) -> ir.Table:
    found = runs.group_by("hour", "agent_id", "dimension", "value").aggregate(
        executions=runs.count(), failures=runs.is_failed.sum().cast("int64")
    )
    return found.select(*COLUMNS)
