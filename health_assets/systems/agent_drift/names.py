"""Plain names of agent drift, for programs that use no engine."""

SUCCESS_RATE, VOLUME_DROP, VOLUME_RISE = "success_rate", "volume_drop", "volume_rise"
MEASURES = (SUCCESS_RATE, VOLUME_DROP, VOLUME_RISE)
"""Measures, the most important first."""

LOOK_BACK_HOURS = 168
"""Hours that end with an hour whose results follow from them."""
DIMENSIONS = {"version": "agent_version", "model": "model"}
"""What a drift may be concentrated in, and the column of executions that tells it."""
