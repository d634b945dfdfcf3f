"""Sessions of a warehouse on Spark: a lake and a ledger in a folder, and a cluster."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import pyarrow as pa

from health_assets.schema.catalog import columns_of
from health_assets.warehouse.engines.spark.connect import connected, counts_rows, end
from health_assets.warehouse.engines.spark.lake import Lake
from health_assets.warehouse.engines.spark.lake_place import LakePlace
from health_assets.warehouse.engines.spark.lake_session import LakeSession
from health_assets.warehouse.engines.spark.tables import arrow_schema
from health_assets.warehouse.session import HOUR_TYPE, Session

ROWS_PER_BATCH = 100_000


@contextmanager
def session_on(url: str, folder: Path, ledger: Session) -> Iterator[LakeSession]:
    """A session of a cluster with its lake in a folder."""
    lake = Lake(LakePlace(str(folder / "lake")), ledger)
    lake.make_account()
    spark = connected(url)
    session = LakeSession(spark, lake, ledger, counts_rows=counts_rows(spark, url))
    try:
        yield session
    finally:
        session.close()
        end(spark)


def copy_tables(names: Sequence[str], start: Session, end: Session) -> None:
    """Copy tables from one session to another."""
    for name in names:
        rows = start.table(name).select(*columns_of(name))
        end.insert_arrow(name, start.stream(rows, ROWS_PER_BATCH))


def rows_of_hours(hours: Sequence[datetime], table: str = "system_health") -> pa.Table:
    """A row of each hour, with nothing but that."""
    schema = arrow_schema(table)
    columns = {field.name: pa.nulls(len(hours), field.type) for field in schema}
    return pa.table({**columns, "hour": pa.array(hours, HOUR_TYPE)}, schema=schema)
