"""Safety (source 2, "Safety"): how often judged runs violate a constraint, and how badly.

Which verdict on a run counts, and when: `scoring.safety_verdicts`.
"""

from ibis import ir

from health_assets.scoring.identities import CLAIMANT
from health_assets.scoring.safety_verdicts import judgements_of, verdicts_on
from health_assets.systems.reliability.tasks import COUNTED

_RUN = ("execution_id", CLAIMANT, "task_source", *COUNTED)
"""Columns that tell the runs of an hour apart, and the stretches of windows that count one."""


def safety(
    runs: ir.Table, judgements: ir.Table, evaluated: ir.Table | None, windows: ir.Table, early_hours: int
) -> ir.Table:
    """One row per hour, agent and source of tasks with a judged run of them in the window.

    `s_comp` = 1 - violated / judged; `s_harm` = 1 - mean over violated runs of their worst severity, 1 without any;
    `r_saf` = 1 - (1 - s_comp)(1 - s_harm).

    Args:
        runs: rows of `tasks.with_counted_hours`, of any condition, at least of the windows.
        judgements: judgements, and whose each counts as (`judged_by`), at least of the windows and `early_hours` before
            them; those made after an hour do not count in it.
        evaluated: rows of `evaluated_signals` that tell of violations, of the same hours; None where there are none.
        windows: `hour` of every hour asked for.
        early_hours: how many hours before a run's own a judgement may be, where clocks differ; so that it counts in
            all windows that hold the run, or in none.

    Returns:
        `hour`, `agent_id`, `task_source`, `judged`, `violated` and the scores.
    """
    verdicts = verdicts_on(runs, judgements_of(judgements, evaluated), early_hours, _RUN)
    first, end = COUNTED
    counted = verdicts.group_by(["agent_id", "task_source", *COUNTED, "valid_from", "valid_until"]).aggregate(
        judged=verdicts.count(),
        violated=verdicts.count(where=verdicts.quarters > 0),
        quarters=verdicts.quarters.sum().cast("int64"),
    )
    held = counted.inner_join(
        windows,
        [
            counted[first] <= windows.hour,
            counted[end] > windows.hour,
            counted.valid_from <= windows.hour,
            counted.valid_until.isnull() | (counted.valid_until > windows.hour),
        ],
    )
    names = ("judged", "violated", "quarters")
    sums = held.group_by(["hour", "agent_id", "task_source"]).aggregate(
        **{name: held[name].sum().cast("int64") for name in names}
    )
    frequency = sums.violated / sums.judged.nullif(0)
    severity = (sums.quarters / (4.0 * sums.violated).nullif(0)).fill_null(0)
    return sums.select(
        "hour", "agent_id", "task_source", "judged", "violated",
        s_comp=1 - frequency, s_harm=1 - severity, r_saf=1 - frequency * severity,
    )  # fmt: skip
