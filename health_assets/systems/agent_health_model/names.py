"""States of agents, the targets that a score is made with, and claims of logs that evidence contradicts.

What belongs here: plain names, so that programs without an engine can import them. What does not: formulas.
"""

INACTIVE = "inactive"
STATES = ("healthy", "degraded", "unhealthy", INACTIVE)
TARGETS_USED = (
    "expected_success_rate", "expected_failures_per_hour", "expected_runtime_s", "deviation_allowed", "n_full",
    "long_running_factor", "stability_threshold", "sla_breach_threshold", "trigger_failure_threshold", "sla_s",
    "healthy_at", "degraded_at",
)  # fmt: skip
CLAIMS = {
    "successes_with_an_error": "succeeded, and state an error",
    "successes_with_many_errors": "succeeded, and met as many errors as they made calls",
    "successes_without_a_good_call": "succeeded, and every call of theirs failed",
    "replaced_failures": "failed, before a later line of the same id said that it succeeded",
    "unflagged_breaches": "state that they kept their time limit, and took longer",
    "untimed_long_runs": "state that nobody knows how long they took, and times that are too long",
    "failing_runs_without_end": "ended with a failed call, and no line says how",
}
"""Claims by name, with what executions say and what speaks against it."""
