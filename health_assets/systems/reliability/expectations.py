"""Expectations of the reliability evaluation's tables."""

from health_assets.quality.every_table import OF_EVERY_TABLE
from health_assets.quality.expectations import Check, Suite, at_least, between, equal, unique
from health_assets.systems.reliability import batches
from health_assets.systems.reliability.consistency import AVERAGED, RESOURCES
from health_assets.systems.reliability.predictability import SCORES
from health_assets.systems.reliability.robustness import RATIOS
from health_assets.systems.reliability.tasks import LEAST_RUNS

WINDOWS_ARE_COVERED = Check(
    name="windows_are_covered", expectations=at_least("hours_covered", "window_hours"), severity="warn"
)

TASK_CONSISTENCY = Suite(
    asset="task_consistency",
    checks=[
        *OF_EVERY_TABLE,
        Check(name="task_has_one_row_per_agent_and_hour", expectations=unique("hour", "agent_id", "task_id")),
        Check(name="scores_are_between_0_and_1", expectations=between(0, 1, *AVERAGED)),
        Check(name="variations_are_not_negative", expectations=between(0, None, *(f"cv_{name}" for name in RESOURCES))),
        Check(
            name="counts_are_possible",
            expectations=[
                *between(LEAST_RUNS, None, "runs"),
                *between(0, None, "successes", "pairs"),
                *at_least("runs", "successes"),
            ],
        ),
        Check(
            name="pairs_of_trajectories_have_distances",
            expectations=[
                *equal("has_pairs", "has_c_traj_d"),
                *equal("has_pairs", "has_c_traj_s"),
            ],
        ),
        Check(
            name="tasks_hold_no_more_runs_than_there_are",
            expectations=at_least("baseline_runs", "runs_of_tasks"),
            batch="hours",
        ),
        WINDOWS_ARE_COVERED,
    ],
    rows={"rows": batches.scored_tasks},
    hours=batches.hours_of_tasks,
)

SHARES = (
    *AVERAGED,
    *SCORES,
    *RATIOS.values(),
    "reliability",
    "r_con",
    "r_pred",
    "r_rob",
    "r_saf",
    "s_comp",
    "s_harm",
    "baseline_accuracy",
    "repeated_share",
)

AGENT_RELIABILITY = Suite(
    asset="agent_reliability",
    checks=[
        *OF_EVERY_TABLE,
        Check(name="agent_has_one_row_per_hour", expectations=unique("hour", "agent_id")),
        Check(name="scores_are_between_0_and_1", expectations=between(0, 1, *SHARES)),
        Check(
            name="parts_are_within_the_whole",
            expectations=[
                *between(0, None, "tasks", "violated"),
                *at_least("runs", "baseline_runs"),
                *at_least("baseline_runs", "runs_with_confidence"),
                *at_least("runs", "judged"),
                *at_least("runs", "fault_runs"),
                *at_least("judged", "violated"),
            ],
        ),
        Check(name="reliability_stands_on_three_dimensions", expectations=equal("has_reliability", "has_dimensions")),
        Check(name="observed_tasks_tell_their_share", expectations=equal("is_observed", "has_repeated_share")),
        Check(name="safety_stands_on_judgements", expectations=equal("has_safety", "is_judged")),
        Check(
            name="windows_agree_with_the_executions",
            expectations=equal("runs_in_windows", "runs_of_hours"),
            batch="hours",
        ),
        Check(name="tasks_agree_with_their_table", expectations=equal("tasks_of_agents", "task_rows"), batch="hours"),
        WINDOWS_ARE_COVERED,
    ],
    rows={"rows": batches.scored_reliability},
    hours=batches.hours_of_reliability,
)

SUITES = (TASK_CONSISTENCY, AGENT_RELIABILITY)
