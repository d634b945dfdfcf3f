"""Names of columns of session scores.

What belongs here: plain names, so that programs without an engine can import them. What does not: formulas.
"""

CALL_COUNTS = ("tool_calls", "tool_failures", "steps", "repeated_steps")
"""What traces and sessions tell of the calls of their executions."""
