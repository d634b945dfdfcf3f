"""Slow executions: the share of each agent's runs that take more than twice as long as its median run."""

FORMULA_VERSION = "1.0"
"""Raise it with every change of a formula after which other values could come out (docs/formula-versions.md)."""
