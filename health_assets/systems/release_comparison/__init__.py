"""Release comparison: whether a new version or model of an agent is better or worse than the one before it."""

FORMULA_VERSION = "1.3"
"""Raise it with every change of a formula after which other values could come out (docs/formula-versions.md)."""
