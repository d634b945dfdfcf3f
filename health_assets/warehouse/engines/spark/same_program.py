"""The program that executors have: rows follow from it, so it has to be that of the machine that gives the orders.

What belongs here: which distributions count, and refusing others. What does not: what executors do (`executors`,
`groups`).
"""

from functools import cache
from importlib.metadata import version

from health_assets.core.errors import HealthAssetsError

PARTS = ("health-assets", "duckdb", "numpy", "pyarrow", "rapidfuzz", "scipy")
"""Distributions that rows of executors and their digests follow from."""


@cache
def program() -> str:
    """The versions of all that rows follow from, as this machine has them."""
    return ", ".join(f"{name} {version(name)}" for name in PARTS)


def require_same(executors: str, orders: str) -> None:
    """Refuse an executor with another program.

    Args:
        executors: the program of the executor.
        orders: that of the machine that gives the orders.

    Raises:
        HealthAssetsError: they differ.
    """
    if executors != orders:
        raise HealthAssetsError(
            f"an executor has {executors}, and the machine that gives the orders {orders}; install the same on both"
        )
