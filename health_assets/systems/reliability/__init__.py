"""The reliability evaluation (source 2): consistency, predictability, robustness and safety of evaluation runs.

An evaluation run is an execution that carries a task id; it counts in every window that ends with one of the
`window_hours` hours from its own on. Robustness and safety are counts, so they are ibis expressions. Consistency and
predictability compare runs with each other, so they are NumPy on Arrow: sorted first, and added up in an order that
follows from the runs alone, so that neither the order of arrival nor the range of hours shows in a single bit.

`timeline` finds which runs each window holds, `trajectories` measures distances; neither knows what is scored.
"""

FORMULA_VERSION = "1.2"
"""Raise it with every change of a formula after which other values could come out (docs/formula-versions.md)."""
