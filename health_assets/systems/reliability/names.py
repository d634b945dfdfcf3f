"""Names of values of the reliability evaluation.

What belongs here: plain names, so that programs without an engine can import them. What does not: formulas.
"""

OBSERVED = "observed"
