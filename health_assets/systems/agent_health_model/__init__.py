"""The Agent Health Model (source 1): scores and states of agents, and the fleet's."""

FORMULA_VERSION = "1.1"
"""Raise it with every change of a formula after which other values could come out (docs/formula-versions.md)."""
