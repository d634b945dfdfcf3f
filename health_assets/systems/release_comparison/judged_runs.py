"""Judged executions by version and model, as counts that add up to the verdicts that count in an hour.

A verdict comes in the hour of its judgement, which may be hours after the execution. The execution is counted from the
first one on. A verdict that replaces another one takes the other one's violation away.
"""

import ibis
from ibis import ir

from health_assets.scoring.identities import CLAIMANT
from health_assets.scoring.safety_verdicts import judgements_of, verdicts_on
from health_assets.systems.release_comparison.names import DIMENSIONS

JUDGED = ("judged_runs", "violating_runs")
_RUN = ("execution_id", CLAIMANT, *DIMENSIONS.values())


def judged_runs(runs: ir.Table, judgements: ir.Table, evaluated: ir.Table | None) -> ir.Table:
    """Changes of counts: `hour` of executions, `known_at`, `agent_id`, the columns of `DIMENSIONS`, and `JUDGED`.

    Args:
        runs: executions.
        judgements: judgements of the same hours.
        evaluated: rows of `evaluated_signals` that tell of violations, likewise; None where there are none.
    """
    verdicts = verdicts_on(runs, judgements_of(judgements, evaluated), 0, _RUN)
    first = verdicts.valid_from.min().over(group_by=["run_hour", *_RUN])
    violates = (verdicts.quarters > 0).cast("int64")
    verdicts = verdicts.mutate(is_first=(verdicts.valid_from == first).cast("int64"), violates=violates)
    common = ["run_hour", "agent_id", *DIMENSIONS.values()]
    come = verdicts.select(
        *common, known_at="valid_from", judged_runs=verdicts.is_first, violating_runs=verdicts.violates
    )
    replaced = verdicts.filter(verdicts.valid_until.notnull()).select(
        *common, known_at="valid_until", judged_runs=ibis.literal(0, "int64"), violating_runs=-verdicts.violates
    )
    changes = ibis.union(come, replaced).rename(hour="run_hour")
    return changes.fill_null(dict.fromkeys(DIMENSIONS.values(), ""))
