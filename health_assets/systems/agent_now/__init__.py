"""Agents now: whether the last hours' failures are more than chance at the expected success rate."""

FORMULA_VERSION = "1.0"
"""Raise it with every change of a formula after which other values could come out (docs/formula-versions.md)."""
