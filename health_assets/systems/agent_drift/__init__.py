"""Agent drift: whether an agent became worse than its own past."""

FORMULA_VERSION = "1.0"
"""Raise it with every change of a formula after which other values could come out (docs/formula-versions.md)."""
