"""The resource `pipeline` as Dagster provides it: each run that Dagster starts has its own write lock and DuckDB.

What belongs here: its life within a run, and turning user errors into short failures. What does not: what the resource
can do (`pipeline.resource`).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import dagster as dg

from health_assets.core.errors import HealthAssetsError
from health_assets.core.sql_memory import keep_compiled_sql
from health_assets.defs.write_lock.write_lock import WriteLock
from health_assets.pipeline.resource import Pipeline
from health_assets.warehouse.engines.duckdb.shared import SharedDuckDB


@contextmanager
def readable_failures() -> Iterator[None]:
    """Show an error that a user can mend as its sentence alone; retrying would not help, so it is not retried."""
    try:
        yield
    except HealthAssetsError as error:
        raise dg.Failure(str(error), allow_retries=False) from error


def pipeline_resource(pipeline: Pipeline) -> dg.ResourceDefinition:
    """The resource; a run that Dagster has started gets a write lock and a DuckDB of its own with it, until it ends.

    Every job needs it, also one that writes nothing: Dagster itself does not notice that the process of a run that it
    started has died, and such a run would keep a place of the queue for ever.
    """

    @dg.resource(description="Where logs, targets and warehouse are, and the run's write lock.")
    def _pipeline(context: dg.InitResourceContext) -> Iterator[Pipeline]:
        if pipeline.write_lock is not None or context.run is None or context.instance is None or context.log is None:
            yield pipeline
            return
        with (
            SharedDuckDB() as shared_duckdb,
            WriteLock.of_run(context.instance, pipeline.settings, context.run, context.log.info) as write_lock,
        ):
            with readable_failures():
                write_lock.announce()
            yield replace(pipeline, shared_duckdb=shared_duckdb, write_lock=write_lock)
        keep_compiled_sql()

    return _pipeline
