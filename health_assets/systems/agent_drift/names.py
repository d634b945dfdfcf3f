"""Plain names of agent drift, for programs that use no engine."""

SUCCESS_RATE, LATENCY, TOOL_FAILURES, TOOL_MIX = "success_rate", "latency", "tool_failure_share", "tool_mix"
TOKENS, COST = "tokens", "cost"
VOLUME_DROP, VOLUME_RISE = "volume_drop", "volume_rise"
MEASURES = (SUCCESS_RATE, LATENCY, TOOL_FAILURES, TOOL_MIX, TOKENS, COST, VOLUME_DROP, VOLUME_RISE)
"""Measures, the most important first."""
SHARES = {
    SUCCESS_RATE: ("executions", "failures"),
    LATENCY: ("timed_runs", "slow_runs"),
    TOOL_FAILURES: ("runs_with_tool_calls", "runs_with_tool_failures"),
    TOKENS: ("runs_with_tokens", "large_runs"),
    COST: ("runs_with_cost", "costly_runs"),
}
"""Measures that are shares of runs: the hourly counts of runs, and of those of them that count against the agent."""
BUCKETS = {LATENCY: "latency_buckets", TOKENS: "token_buckets", COST: "cost_buckets"}
"""Measures of how much a run takes: a run counts against the agent if it takes more than a threshold, from the past."""
BY_TIME_OF_DAY = (LATENCY, TOKENS, COST, TOOL_MIX)
"""Shares that may differ between times of the day while nothing changes."""

WEEK_HOURS = 168
LOOK_BACK_HOURS = 168
"""Hours that end with an hour whose results follow from them."""
DIMENSIONS = {"version": "agent_version", "model": "model"}
"""What a drift may be concentrated in, and the column of executions that tells it."""
TOOL = "tool"
"""What a drift of the tool mix is about."""
DAY_HOURS = 24
PARTS = (0, 1, 2, 4, 8, 12, DAY_HOURS)
"""Of a day back, the hours back at which a part begins, and the end of the last."""
SPREAD_UNIT = 1e-6
FEWEST_RUNS = 100
"""Runs that a past must hold."""
