"""Plain names of the release comparison, for programs that use no engine."""

VERSION, MODEL = "version", "model"
DIMENSIONS = {VERSION: "agent_version", MODEL: "model"}
"""What may be compared, and the column of executions that tells it."""

SUCCESS_RATE, RUNTIME, TOKENS, COST = "success_rate", "runtime", "tokens", "cost"
MEASURES = (SUCCESS_RATE, RUNTIME, TOKENS, COST)
"""Measures, the most important first. More is better of the first, and worse of the others."""

BETTER, WORSE, SAME, UNDECIDED = "better", "worse", "no_difference", "not_enough_yet"
VERDICTS = (WORSE, BETTER, SAME, UNDECIDED)
"""Verdicts, in the order in which people look for them."""
