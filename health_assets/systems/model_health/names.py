"""Names of model health, for programs without an engine."""

NO_ALTERNATIVE = ""
"""The alternative of a degraded model where no model was healthy."""
