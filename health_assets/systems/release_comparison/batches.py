"""Batches of the release comparison."""

import pandas as pd
from ibis import _, ir

from health_assets.quality.batches import Source, hours, rows, with_facts
from health_assets.systems.release_comparison.names import BUCKETS, SHARES, UNDECIDED


def parts(source: Source) -> ir.Table:
    """Rows of `release_components`, with the number and order of their buckets: of each list by its name."""
    own = rows(source)
    facts = {}
    for name in BUCKETS:
        buckets = own[name]
        facts[f"{name}_count"] = buckets.length().fill_null(0)
        facts[f"has_{name}"] = buckets.notnull().cast("int64")
        facts[f"has_ascending_{name}"] = (buckets == buckets.sort()).fill_null(False).cast("int64")
    return own.mutate(**facts)


def comparisons(source: Source) -> ir.Table:
    """Rows of `release_comparison`, with whether each has an interval, a verdict, and a number of further runs."""
    own = rows(source)
    is_share = own.measure.isin(SHARES)
    expected = is_share.ifelse(own.estimate_to - own.estimate_from, own.estimate_to / own.estimate_from.nullif(0) - 1)
    return own.mutate(
        has_low=own.low.notnull().cast("int64"),
        has_high=own.high.notnull().cast("int64"),
        is_share=is_share.cast("int64"),
        is_open=(own.verdict == UNDECIDED).cast("int64"),
        has_more_runs=own.more_runs.notnull().cast("int64"),
        has_mix_shift=own.mix_shift.notnull().cast("int64"),
        has_mix_verdict=own.is_mix_changed.notnull().cast("int64"),
        difference_off=(own["difference"] - expected).fill_null(0),
    )


def hours_of_parts(source: Source) -> pd.DataFrame:
    """`hours`, with the executions and successes in the components and in the records."""
    sums = source.facts("release_components", _.executions.sum(), _.successes.sum())
    frame = with_facts(hours(source), ["executions_in_parts", "successes_in_parts"], sums)
    counts = source.facts("executions", _.count(), _.count(where=_.succeeded))
    return with_facts(frame, ["executions_recorded", "successes_recorded"], counts)
