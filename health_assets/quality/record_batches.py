"""Batches of `raw_logs` and the record tables."""

import pandas as pd
from ibis import _, ir

from health_assets.core.hours import HOUR, HourRange
from health_assets.quality.batches import Source, hours, with_fact, with_facts
from health_assets.schema.catalog import ID_OF_TABLE, RECORD_OF_TABLE
from health_assets.warehouse.log_hours import LogHours
from health_assets.warehouse.materialized import MaterializedHours

NEARBY_ROWS = 1_000_000


def ids_in_several_hours(source: Source) -> ir.Table:
    """Rows whose id also stands in another of the hours checked, the hour after them, or nearby hours before them."""
    key, _ = ID_OF_TABLE[source.asset]
    nearby = source.session.hours_of(source.asset, _with_nearby_hours(source).extended_forward(1))
    ends = nearby.group_by(key).aggregate(first=nearby.hour.min(), last=nearby.hour.max())
    several = ends.filter(ends.first < ends.last)  # mostly none; to tell hours of all ids apart would mean to sort them
    found = nearby.semi_join(several, key)
    repeated = found.group_by(key).aggregate(hours_with_id=found.hour.nunique())
    return source.rows().inner_join(repeated, key).select("hour", "source_file", "line_number", key, "hours_with_id")


def _with_nearby_hours(source: Source) -> HourRange:
    """The hours checked and as much of the look-back before them as has no more than `NEARBY_ROWS` rows.

    Comparing each row with a week of rows would cost more than all else where an hour has millions.
    """
    span = source.hours.extended_back(source.settings.reach_hours)
    rows = MaterializedHours(source.session).rows_by_hour(source.asset, span)
    start, total = source.hours.start, 0
    while start > span.start:
        total += rows.get(start - HOUR, 0)
        if total > NEARBY_ROWS:
            break
        start -= HOUR
    return HourRange(start, source.hours.end)


def hours_of_records(source: Source) -> pd.DataFrame:
    """`hours`, with the lines that `raw_logs` counts for the asset and the rows that it has."""
    lines = LogHours(source.session).kept_by_hour(RECORD_OF_TABLE[source.asset], source.hours)
    frame = with_fact(hours(source), "lines_kept", lines)
    return with_fact(frame, "rows_kept", source.row_counts)


def hours_of_rejections(source: Source) -> pd.DataFrame:
    """`hours_of_records` by the lines that rows stand for, with the share of lines that were rejected, 0 to 1."""
    lines = source.facts("rejected_records", _.lines.sum())
    frame = with_facts(hours_of_records(source).drop(columns="rows_kept"), ["rows_kept"], lines)
    return with_fact(frame, "rejected_share", LogHours(source.session).rejected_share_by_hour(source.hours))


def files(source: Source) -> ir.Table:
    """One row per file with lines in these hours.

    It has the file's lines, those that `raw_logs` counts over all its hours, and the share of them that was rejected,
    0 to 1.
    """
    parts, read = source.session.table("raw_logs"), source.session.table("raw_files")
    first = source.rows().group_by("source_file").aggregate(hour=lambda part: part.hour.min())
    counted = parts.group_by("source_file").aggregate(lines_counted=lambda part: part.lines.sum().cast("int64"))
    joined = first.inner_join(counted, "source_file").inner_join(
        read.select("source_file", "rejected", lines_read="lines"), "source_file"
    )
    share = joined.rejected.cast("float64") / joined.lines_read.nullif(0)
    return joined.select("hour", "source_file", "lines_read", "lines_counted", rejected_share=share.fill_null(0.0))
