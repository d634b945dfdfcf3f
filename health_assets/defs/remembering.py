"""The place of the late-log sensor's memory: one row beside Dagster's runs.

What belongs here: reading and writing that row. What does not: what it says (`logs.late_memory`).

Dagster stores a sensor's cursor once more with every tick, each minute. So the cursor is no more than a digest of the
memory, and the memory is written where it has changed. Who resets the cursor on the sensor's page lets the next tick
look at everything anew.
"""

import hashlib

import dagster as dg

from health_assets.core.raw_roots import RawRoot, root_name

KEY = "health_assets/pipeline/late_logs"


def recalled(instance: dg.DagsterInstance | None, root: RawRoot, cursor: str | None) -> str | None:
    """The memory that was kept for a raw root; None where there is nothing, no instance, or no cursor."""
    if instance is None or not cursor:
        return None
    key = _key(root)
    return instance.daemon_cursor_storage.get_cursor_values({key}).get(key)


def keep(instance: dg.DagsterInstance | None, root: RawRoot, cursor: str | None, memory: str) -> str | None:
    """Keep a memory for a raw root instead of that which the cursor stands for; gives the new cursor."""
    if instance is None:
        return None
    digest = _digest(memory)
    if digest != cursor:
        instance.daemon_cursor_storage.set_cursor_values({_key(root): memory})
    return digest


def _key(root: RawRoot) -> str:
    return f"{KEY}/{_digest(root_name(root))}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
