"""The evidence of lost points: which executions cost what, of the Agent Health Model (source 1)."""

FORMULA_VERSION = "1.1"
"""Raise it with every change of a formula after which other values could come out (docs/formula-versions.md)."""
