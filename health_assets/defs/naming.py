"""Names of what we define in Dagster: keys and groups of assets, names of jobs, schedules and the resource.

What belongs here: what a project that embeds us may choose (`component`), and the default names. What does not: what is
defined (`build`).

At run time names do not matter: the last part of an asset's key is always the name of its table.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import dagster as dg

from health_assets.pipeline.resource import Pipeline

RESOURCE = "pipeline"
OWNERS = ("team:agent-platform",)


@dataclass(frozen=True, kw_only=True)
class Naming:
    """Keys and names of what is defined.

    Args:
        key_prefix: what the key of every asset begins with.
        group: the one group of all assets; None makes a group of each scoring system.
        names: what the name of every job, schedule, sensor and resource begins with; lower-case letters, digits, `_`.
        owners: owners of every asset, as Dagster writes them.
        is_embedded: whether the definitions are part of another project's, with an executor and loggers of its own.
    """

    key_prefix: tuple[str, ...] = ()
    group: str | None = None
    names: str = ""
    owners: tuple[str, ...] = OWNERS
    is_embedded: bool = False

    def key(self, table: str) -> dg.AssetKey:
        """The key of the asset that makes a table."""
        return dg.AssetKey([*self.key_prefix, table])

    def keys(self, tables: Iterable[str]) -> list[dg.AssetKey]:
        """The keys of several."""
        return [self.key(table) for table in tables]

    def name(self, own: str) -> str:
        """The name of a job, schedule, sensor or op that is no asset's."""
        return f"{self.names}_{own}" if self.names else own

    @property
    def resource(self) -> str:
        """The key of the resource that the steps ask for."""
        return self.name(RESOURCE)

    def pipeline(self, context: object) -> Pipeline:
        """The pipeline, from the context of a step, whose progress it tells, of a schedule or a sensor."""
        resources = context.resources  # type: ignore[attr-defined]  # every context of Dagster's has them
        pipeline: Pipeline = getattr(resources, self.resource)
        step = getattr(context, "op_execution_context", None)
        return (
            pipeline
            if step is None
            else replace(pipeline, step=step.op_def.name, run=f"run {step.run_id}", say=step.log.info)
        )


STANDALONE = Naming()
"""The project of its own: plain keys and names."""


def table_of(key: dg.AssetKey) -> str:
    """The table that an asset makes."""
    return key.path[-1]
