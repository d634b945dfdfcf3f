"""Error budgets: how much of its allowed failures each agent has spent, and how fast."""

FORMULA_VERSION = "1.2"
"""Raise it with every change of a formula after which other values could come out (docs/formula-versions.md)."""
