"""Plain names of the release comparison, for programs that use no engine."""

BASELINE, CANDIDATE = "baseline", "candidate"
"""The sides of a comparison: what ran before, and the new one."""

VERSION, MODEL = "version", "model"
DIMENSIONS = {VERSION: "agent_version", MODEL: "model"}
"""What may be compared, and the column of executions that tells it."""

SUCCESS_RATE, TOOL_FAILURES, LOOPS = "success_rate", "tool_failures", "loops"
SHARES = (SUCCESS_RATE, TOOL_FAILURES, LOOPS)
"""Measures that are shares of executions."""
RUNTIME, TOKENS, COST = "runtime", "tokens", "cost"
RUNTIME_P50, RUNTIME_P95 = "runtime_p50", "runtime_p95"
PERCENTS = {RUNTIME_P50: 50, RUNTIME_P95: 95}
"""Measures that are quantiles of the runtime, each with its percentile."""
MEASURES = (*SHARES, RUNTIME, *PERCENTS, TOKENS, COST)
"""Measures, the most important first. More is better of the first, and worse of the others."""

BETTER, WORSE, SAME, UNDECIDED = "better", "worse", "no_difference", "not_enough_yet"
VERDICTS = (WORSE, BETTER, SAME, UNDECIDED)
"""Verdicts, in the order in which people look for them."""
