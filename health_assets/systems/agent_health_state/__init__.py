"""The Agent Health State (source 3): the quantities of an agent's health document."""

FORMULA_VERSION = "1.1"
"""Raise it with every change of a formula after which other values could come out (docs/formula-versions.md)."""
