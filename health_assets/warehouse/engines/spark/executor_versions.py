"""The program that executors have: rows follow from it, so it has to be that of the machine that gives the orders.

What belongs here: which distributions count, and refusing others. What does not: what executors do (`executors`,
`groups`).
"""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import version

from health_assets.core.errors import HealthAssetsError

PARTS = ("health-assets", "duckdb", "numpy", "pyarrow", "rapidfuzz", "scipy")
"""Distributions that rows of executors and their digests follow from."""


@cache
def program() -> Mapping[str, str]:
    """The versions of all that rows follow from, as this machine has them."""
    return {name: version(name) for name in PARTS}


def require_same(ordered: Mapping[str, str]) -> None:
    """Refuse orders of a machine with another program; called on an executor.

    Args:
        ordered: the program of the machine that gives the orders.

    Raises:
        HealthAssetsError: this machine has another one.
    """
    own = program()
    differing = [name for name in PARTS if own[name] != ordered.get(name)]
    if differing:
        here, there = (", ".join(f"{name} {one.get(name)}" for name in differing) for one in (own, ordered))
        raise HealthAssetsError(
            f"an executor has {here}, and the machine that gives the orders {there}; install the same on both"
        )
