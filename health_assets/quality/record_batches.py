"""Batches of `raw_logs` and the record tables."""

import pandas as pd
from ibis import ir

from health_assets.core.hours import HOUR, HourRange
from health_assets.quality.batches import Source, hours, with_facts
from health_assets.schema.catalog import ID_OF_TABLE, RECORD_OF_TABLE
from health_assets.warehouse.ledger import TRACES

NEARBY_ROWS = 1_000_000


def ids_in_several_hours(source: Source) -> ir.Table:
    """Rows whose id also stands in another of the hours checked, the hour after them, or nearby hours before them."""
    key, _ = ID_OF_TABLE[source.asset]
    nearby = source.session.hours_of(source.asset, _with_nearby_hours(source).extended_forward(1))
    counted = nearby.group_by(key).aggregate(hours_with_id=lambda row: row.hour.nunique())
    repeated = counted.filter(counted.hours_with_id > 1)
    return source.rows().inner_join(repeated, key).select("hour", "source_file", "line_number", key, "hours_with_id")


def _with_nearby_hours(source: Source) -> HourRange:
    """The hours checked and as much of the look-back before them as has no more than `NEARBY_ROWS` rows.

    Comparing each row with a week of rows would cost more than all else where an hour has millions.
    """
    span = source.hours.extended_back(source.settings.reach_hours)
    rows = source.by_hour(f"SELECT hour, count(*) FROM {source.asset}", hours=span)
    start, total = source.hours.start, 0
    while start > span.start:
        total += rows.get(start - HOUR, (0,))[0]
        if total > NEARBY_ROWS:
            break
        start -= HOUR
    return HourRange(start, source.hours.end)


def hours_of_records(source: Source) -> pd.DataFrame:
    """`hours`, with the lines that `raw_logs` counts for the asset and the rows that it has."""
    is_own = "record_type = ?"
    lines = source.by_hour(
        "SELECT hour, sum(lines - superseded - coalesce(lost, 0))::BIGINT FROM raw_logs",
        is_own,
        [RECORD_OF_TABLE[source.asset]],
    )
    frame = with_facts(hours(source), ["lines_kept"], lines)
    return with_facts(frame, ["rows_kept"], {hour: (count,) for hour, count in source.row_counts.items()})


def hours_of_rejections(source: Source) -> pd.DataFrame:
    """`hours_of_records` by the lines that rows stand for, with the share of lines that were rejected, 0 to 1."""
    there = "lines - coalesce(lost, 0)"
    rejected = f"sum(CASE record_type WHEN 'rejected' THEN {there} ELSE 0 END)"
    share = source.by_hour(
        f"SELECT hour, CAST({rejected} AS DOUBLE PRECISION) / greatest(sum({there}), 1) FROM raw_logs",
        "source_file <> ?",
        [TRACES],
    )
    lines = source.by_hour("SELECT hour, CAST(sum(lines) AS BIGINT) FROM rejected_records")
    frame = with_facts(hours_of_records(source).drop(columns="rows_kept"), ["rows_kept"], lines)
    return with_facts(frame, ["rejected_share"], share)


def files(source: Source) -> ir.Table:
    """One row per file with lines in these hours: its lines, and those that `raw_logs` counts over all its hours."""
    parts, read = source.session.table("raw_logs"), source.session.table("raw_files")
    first = source.rows().group_by("source_file").aggregate(hour=lambda part: part.hour.min())
    counted = parts.group_by("source_file").aggregate(lines_counted=lambda part: part.lines.sum().cast("int64"))
    joined = first.inner_join(counted, "source_file").inner_join(
        read.select("source_file", lines_read="lines"), "source_file"
    )
    return joined.select("hour", "source_file", "lines_read", "lines_counted")
