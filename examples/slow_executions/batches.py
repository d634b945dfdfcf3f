"""Batches of slow executions."""

import pandas as pd
from ibis import _, ir

from health_assets.quality.batches import Source, hours, hours_with_windows, rows, with_facts


def hours_of_parts(source: Source) -> pd.DataFrame:
    """One row per hour, with the executions that the parts count, and those that are recorded."""
    in_parts = source.facts("runtime_components", _.executions.sum())
    recorded = source.facts("executions", _.count(where=_.runtime_s.notnull()))
    return with_facts(with_facts(hours(source), ["in_parts"], in_parts), ["recorded"], recorded)


def shares(source: Source) -> ir.Table:
    """Rows of `slow_executions`, with how far the share is off the counts."""
    own = rows(source)
    return own.mutate(share_off=own.slow_share - own.slow / own.executions.nullif(0))


def hours_of_windows(source: Source) -> pd.DataFrame:
    """One row per hour, with the executions of all windows, and those of the hours that the windows are made of."""
    return hours_with_windows(source, "executions", "runtime_components", "executions")
