"""Health of tools: calls, errors and latencies by agent and tool."""
