"""Times in columns of Arrow, for arithmetic on days and hours in UTC."""

import pyarrow as pa


def without_zone(times: pa.ChunkedArray) -> pa.ChunkedArray:
    """The times in UTC, without a zone: of times with one, Arrow wants the machine's list of time zones."""
    return times.cast(pa.timestamp("us"))
