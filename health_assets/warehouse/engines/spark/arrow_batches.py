"""The rows of a result as they come, so that they never are in memory all at once.

What belongs here: the client's private path to Arrow batches, as of pyspark 4.0 (`pyproject.toml` keeps it below 4.1),
which `toLocalIterator` makes rows of Python of; `test_arrow_batches` fails first when it moves. What does not: what is
asked for (`lake_session`).
"""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.connect.dataframe import DataFrame as ConnectDataFrame


def arrow_batches(frame: DataFrame) -> Iterator[pa.RecordBatch]:
    """The batches of a result, in the types that Spark gives them."""
    assert isinstance(frame, ConnectDataFrame)
    client = frame.sparkSession.client
    for part in client.to_table_as_iterator(frame._plan.to_proto(client), frame._plan.observations):  # noqa: SLF001
        if isinstance(part, pa.Table):
            yield from part.to_batches()
