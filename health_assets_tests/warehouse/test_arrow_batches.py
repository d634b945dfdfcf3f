"""A result comes from Spark in batches, by the private path that `arrow_batches` takes."""

import pytest

pytest.importorskip("pysail", reason="the extra `spark` is not installed")

from health_assets.warehouse.engines.spark.arrow_batches import arrow_batches
from health_assets.warehouse.engines.spark.connect import connected, end
from health_assets_tests.support.spark_servers import sail


def test_all_rows_of_a_result_come_and_in_more_than_one_batch() -> None:
    with sail() as url:
        spark = connected(url)
        batches = list(arrow_batches(spark.range(0, 100_000, 1, 4)))
        end(spark)
    assert sorted(number for batch in batches for number in batch["id"].to_pylist()) == list(range(100_000))
    assert len(batches) > 1
