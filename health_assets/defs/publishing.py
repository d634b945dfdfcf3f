"""The asset of the published tables: the last step of a run where tables are published.

What belongs here: the asset and its metadata. What does not: publishing (`pipeline.publishing`).
"""

from collections.abc import Iterable

import dagster as dg

from health_assets.defs.naming import STANDALONE, Naming
from health_assets.defs.pipeline import readable_failures
from health_assets.pipeline.publishing import publish_if_configured

NAME = "published_tables"


def published_tables(
    tables: Iterable[str], partitions: dg.PartitionsDefinition, naming: Naming = STANDALONE
) -> dg.AssetsDefinition:
    """The asset that publishes whatever changed, once every other asset of the run is made.

    Args:
        tables: the assets that it waits for.
        partitions: the partitions.
        naming: key and names.
    """
    spec = dg.AssetSpec(
        naming.key(NAME),
        deps=naming.keys(tables),
        group_name=naming.group or "publishing",
        kinds={"parquet"},
        owners=list(naming.owners),
        description="The tables of the warehouse as Parquet files, for readers that do not open the warehouse. "
        "Docs: `docs/published-tables.md`.",
    )

    @dg.multi_asset(
        name=naming.name(NAME),
        specs=[spec],
        partitions_def=partitions,
        required_resource_keys={naming.resource},
        backfill_policy=dg.BackfillPolicy.single_run(),
    )
    def _published_tables(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
        with readable_failures():
            done = publish_if_configured(naming.pipeline(context).settings)
        if done is None:
            raise dg.Failure("no folder is set to publish in; set HEALTH_PUBLISHED", allow_retries=False)
        return dg.MaterializeResult(
            metadata={
                "folder": dg.MetadataValue.path(str(done.folder)),
                "version": done.version,
                "files": done.files,
                "dagster/row_count": done.rows,
                "size_bytes": done.size_bytes,
            }
        )

    return _published_tables
