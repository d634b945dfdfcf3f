"""States of agents, and the targets that a score is made with, as the tables name them.

What belongs here: plain names, so that programs without an engine can import them. What does not: formulas.
"""

INACTIVE = "inactive"
STATES = ("healthy", "degraded", "unhealthy", INACTIVE)
TARGETS_USED = (
    "expected_success_rate", "expected_failures_per_hour", "expected_runtime_s", "deviation_allowed", "n_full",
    "long_running_factor", "stability_threshold", "sla_breach_threshold", "trigger_failure_threshold", "sla_s",
    "healthy_at", "degraded_at",
)  # fmt: skip
