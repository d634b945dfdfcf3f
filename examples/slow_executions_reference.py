"""Slow executions in plain Python, which the metric must agree with."""

from collections import defaultdict
from datetime import timedelta


def reference(executions, hour, window_hours):
    """By agent: executions, slow ones and the median runtime of the window that ends with an hour."""
    runtimes_us = defaultdict(list)
    for execution in executions:
        runtime = execution["ended_at"] - execution["started_at"]
        if hour - timedelta(hours=window_hours - 1) <= execution["ended_at"] < hour + timedelta(hours=1):
            runtimes_us[execution["agent_id"]].append(runtime // timedelta(microseconds=1))
    found = {}
    for agent_id, own in runtimes_us.items():
        median_us = sorted(own)[(len(own) - 1) // 2]
        found[agent_id] = (len(own), sum(runtime_us > 2 * median_us for runtime_us in own), median_us / 1e6)
    return found
