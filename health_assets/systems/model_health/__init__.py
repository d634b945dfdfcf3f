"""Rolling model health (source 4), and the model to fall back to."""

FORMULA_VERSION = "1.1"
"""Raise it with every change of a formula after which other values could come out (docs/formula-versions.md)."""
