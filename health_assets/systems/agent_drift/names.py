"""Plain names of agent drift, for programs that use no engine."""

SUCCESS_RATE, VOLUME_DROP, VOLUME_RISE = "success_rate", "volume_drop", "volume_rise"
MEASURES = (SUCCESS_RATE, VOLUME_DROP, VOLUME_RISE)
"""Measures, the most important first."""
SHARES = {SUCCESS_RATE: ("executions", "failures")}
"""Measures that are shares of runs: the hourly counts of runs, and of those of them that count against the agent."""

WEEK_HOURS = 168
LOOK_BACK_HOURS = 168
"""Hours that end with an hour whose results follow from them."""
DIMENSIONS = {"version": "agent_version", "model": "model"}
"""What a drift may be concentrated in, and the column of executions that tells it."""
DAY_HOURS = 24
PARTS = (0, 1, 2, 4, 8, 12, DAY_HOURS)
"""Of a day back, the hours back at which a part begins, and the end of the last."""
SPREAD_UNIT = 1e-6
FEWEST_RUNS = 100
"""Runs that a past must hold."""
