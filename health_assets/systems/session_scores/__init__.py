"""Session scores (source 5): risks of traces, and what they add up to in a session."""

FORMULA_VERSION = "1.1"
"""Raise it with every change of a formula after which other values could come out (docs/formula-versions.md)."""
