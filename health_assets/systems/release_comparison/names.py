"""Plain names of the release comparison, for programs that use no engine."""

BASELINE, CANDIDATE = "baseline", "candidate"
"""The sides of a comparison: what ran before, and the new one."""

VERSION, MODEL = "version", "model"
DIMENSIONS = {VERSION: "agent_version", MODEL: "model"}
"""What may be compared, and the column of executions that tells it."""

SUCCESS_RATE, SAME_TASKS = "success_rate", "success_rate_same_tasks"
TOOL_FAILURES, LOOPS, VIOLATIONS = "tool_failure_share", "loop_share", "violation_share"
SUCCESS_RATES = (SUCCESS_RATE, SAME_TASKS)
"""Measures of which more is better."""
SHARES = (*SUCCESS_RATES, TOOL_FAILURES, LOOPS, VIOLATIONS)
"""Measures that are shares of executions."""
RUNTIME, TOKENS, COST_PER_SUCCESS = "runtime", "tokens", "cost_per_success_usd"
RUNTIME_P50, RUNTIME_P95 = "latency_p50_ms", "latency_p95_ms"
PERCENTS = {RUNTIME_P50: 50, RUNTIME_P95: 95}
"""Measures that are quantiles of the runtime, each with its percentile."""
MEASURES = (*SHARES, RUNTIME, *PERCENTS, TOKENS, COST_PER_SUCCESS)
"""Measures, the most important first."""

MIX = ("mix_shift", "is_mix_changed")
"""Columns about the tasks of both versions, which are the same in each measure."""

BETTER, WORSE, SAME, UNDECIDED = "better", "worse", "no_difference", "not_enough"
VERDICTS = (WORSE, BETTER, SAME, UNDECIDED)
"""Verdicts, in the order in which people look for them."""

BUCKETS = {"latency_buckets": "timed_runs", "token_buckets": "runs_with_tokens", "cost_buckets": "runs_with_cost"}
"""Lists of buckets in the hourly components, and the counts of the runs that they are of."""
