"""Names of the counts that usage adds up.

What belongs here: plain names, so that programs without an engine can import them. What does not: formulas.
"""

BY_AGENT = ("agent_id",)
BY_PART = ("agent_id", "agent_version", "model", "user_id")
"""Columns that rows of a breakdown are told apart by."""
COUNTS = (
    "executions", "successes", "executions_with_tokens", "executions_with_cost", "executions_with_computed_cost",
    "positive_feedback", "negative_feedback",
)  # fmt: skip
CANCELLED_AMOUNTS = ("input_tokens", "output_tokens", "cost_usd")
CANCELLED = ("cancelled_runs", *(f"cancelled_{name}" for name in CANCELLED_AMOUNTS))
"""What is added up of cancelled runs, which are no executions."""
