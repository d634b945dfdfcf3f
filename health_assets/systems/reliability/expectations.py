"""Expectations of the reliability evaluation's tables."""

from health_assets.quality.every_table import OF_EVERY_TABLE
from health_assets.quality.expectations import Check, Suite, at_least, between, equal, unique
from health_assets.systems.reliability import batches
from health_assets.systems.reliability.consistency import AVERAGED, LEAST_RUNS, RESOURCES
from health_assets.systems.reliability.predictability import SCORES
from health_assets.systems.reliability.robustness import RATIOS

WINDOWS_ARE_COVERED = Check("windows_are_covered", at_least("hours_covered", "window_hours"), "warn")

TASK_CONSISTENCY = Suite(
    "task_consistency",
    [
        *OF_EVERY_TABLE,
        Check("task_has_one_row_per_agent_and_hour", unique("hour", "agent_id", "task_id")),
        Check("scores_are_between_0_and_1", between(0, 1, *AVERAGED)),
        Check("variations_are_not_negative", between(0, None, *(f"cv_{name}" for name in RESOURCES))),
        Check("counts_are_possible", [
            *between(LEAST_RUNS, None, "runs"), *between(0, None, "successes", "pairs"), *at_least("runs", "successes"),
        ]),
        Check("pairs_of_trajectories_have_distances", [
            *equal("has_pairs", "has_c_traj_d"), *equal("has_pairs", "has_c_traj_s"),
        ]),
        Check("tasks_hold_no_more_runs_than_there_are", at_least("baseline_runs", "runs_of_tasks"), batch="hours"),
        WINDOWS_ARE_COVERED,
    ],
    {"rows": batches.scored_tasks},
    batches.hours_of_tasks,
)  # fmt: skip

SHARES = (
    *AVERAGED, *SCORES, *RATIOS.values(), "reliability", "r_con", "r_pred", "r_rob", "r_saf", "s_comp", "s_harm",
    "baseline_accuracy",
)  # fmt: skip

AGENT_RELIABILITY = Suite(
    "agent_reliability",
    [
        *OF_EVERY_TABLE,
        Check("agent_has_one_row_per_hour", unique("hour", "agent_id")),
        Check("scores_are_between_0_and_1", between(0, 1, *SHARES)),
        Check("parts_are_within_the_whole", [
            *between(0, None, "tasks", "violated"), *at_least("runs", "baseline_runs"),
            *at_least("baseline_runs", "runs_with_confidence"), *at_least("runs", "judged"),
            *at_least("judged", "violated"),
        ]),
        Check("reliability_stands_on_three_dimensions", equal("has_reliability", "has_dimensions")),
        Check("safety_stands_on_judgements", equal("has_safety", "is_judged")),
        Check("windows_agree_with_the_executions", equal("runs_in_windows", "runs_of_hours"), batch="hours"),
        Check("tasks_agree_with_their_table", equal("tasks_of_agents", "task_rows"), batch="hours"),
        WINDOWS_ARE_COVERED,
    ],
    {"rows": batches.scored_reliability},
    batches.hours_of_reliability,
)  # fmt: skip

SUITES = (TASK_CONSISTENCY, AGENT_RELIABILITY)
