"""One Dagster multi-asset per step of the engine: the record tables, and each scoring system, with their checks.

What belongs here: which of its assets and checks a run asks for, and handing the engine's events to Dagster. What does
not: the work (`pipeline.engine`), and how an event looks in Dagster (`results`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

import dagster as dg

from health_assets.apps.lineage.open_lineage import lineage
from health_assets.core.hours import HourGroups
from health_assets.defs.checks import suite_specs
from health_assets.defs.naming import STANDALONE, Naming, table_of
from health_assets.defs.partitions import is_told_of_partitions, run_groups
from health_assets.defs.pipeline import readable_failures
from health_assets.defs.results import Result, result_of
from health_assets.defs.specs import FIRST, FULL_REFRESH_TAG, ONLY_STALE_TAG, asset_spec, records_of
from health_assets.pipeline.derived import Derived
from health_assets.pipeline.events import Checked, Event, Materialized, StepFailed, StepFinished, StepStarted
from health_assets.pipeline.fingerprints import RECORDS
from health_assets.pipeline.ingestion import ingest
from health_assets.pipeline.plan import INGEST, Graph, Plan
from health_assets.pipeline.record_step import record_step
from health_assets.pipeline.resource import Pipeline
from health_assets.pipeline.system_step import system_step
from health_assets.schema.catalog import FROM_SPANS
from health_assets.schema.records import RECORD_TABLES

RECORD_GROUP = "raw_records"
MOST_METADATA_HOURS = 168
"""Of a longer run, the newest hours that get curves: Dagster takes longer for each, the more there are."""


def record_specs(naming: Naming = STANDALONE) -> list[dg.AssetSpec]:
    """The specs of `raw_logs` and the record tables."""
    sources = {name: ["raw_logs", *(["spans"] if name in FROM_SPANS else [])] for name in RECORD_TABLES}
    return [
        asset_spec(name, deps, kind="json", system=RECORD_GROUP, source=ingest, naming=naming)
        for name, deps in {"raw_logs": [], **sources}.items()
    ]


def multi_assets(
    step: str,
    specs: Sequence[dg.AssetSpec],
    checks: Sequence[dg.AssetCheckSpec],
    events_of: Callable[[Pipeline, Plan], Iterator[Event]],
    partitions: dg.PartitionsDefinition,
    naming: Naming = STANDALONE,
    op_tags: Mapping[str, str] | None = None,
) -> dg.AssetsDefinition:
    """The multi-asset of a step.

    Args:
        step: its name.
        specs: its assets.
        checks: their checks.
        events_of: runs the step.
        partitions: the partitions.
        naming: keys and names.
        op_tags: tags of the step.
    """

    @dg.multi_asset(
        name=naming.name(step),
        specs=specs,
        check_specs=checks,
        partitions_def=partitions,
        required_resource_keys={naming.resource},
        can_subset=True,
        backfill_policy=dg.BackfillPolicy.single_run(),
        op_tags=op_tags,
    )
    def _step(context: dg.AssetExecutionContext) -> Iterator[Result]:
        pipeline, plan = naming.pipeline(context), _plan_of(context)
        with lineage(pipeline, plan) as tell_lineage:

            def on_event(event: Event) -> None:
                tell_lineage(event)
                pipeline.on_event(event)

            yield from _results(context, step, events_of(pipeline, plan), on_event, naming)

    return _step


def record_assets(
    graph: Graph, partitions: dg.PartitionsDefinition, naming: Naming = STANDALONE
) -> dg.AssetsDefinition:
    """`raw_logs` and the record tables, which are made together because each file is read only once."""
    checks = suite_specs(graph, RECORDS, naming)
    return multi_assets(
        INGEST, record_specs(naming), checks, lambda pipeline, plan: record_step(pipeline, graph, plan),
        partitions, naming,
    )  # fmt: skip


def system_assets(
    graph: Graph,
    step: str,
    derived: Sequence[Derived],
    partitions: dg.PartitionsDefinition,
    naming: Naming = STANDALONE,
) -> dg.AssetsDefinition:
    """The assets of a scoring system's step.

    Args:
        graph: all assets.
        step: the step, one of `Graph.system_steps`.
        derived: its assets, or those of them that are defined.
        partitions: the partitions.
        naming: keys and names.
    """
    specs = [derived_spec(graph, one, naming) for one in derived]
    checks = suite_specs(graph, [one.name for one in derived], naming)
    return multi_assets(
        step, specs, checks, lambda pipeline, plan: system_step(pipeline, graph, step, plan), partitions, naming,
        FIRST if any(one.has_priority for one in derived) else None,
    )  # fmt: skip


def derived_spec(graph: Graph, derived: Derived, naming: Naming = STANDALONE) -> dg.AssetSpec:
    """The spec of a computed asset."""
    return asset_spec(
        derived.name, graph.sources(derived.name), kind="python", system=graph.system_of[derived.name],
        source=derived.rows, naming=naming,
    )  # fmt: skip


def _plan_of(context: dg.AssetExecutionContext) -> Plan:
    """What a run asks of a step."""
    hours = run_groups(context)
    checks: dict[str, list[str]] = {}
    for key in context.selected_asset_check_keys:
        checks.setdefault(table_of(key.asset_key), []).append(key.name)
    return Plan(
        hours=hours,
        assets={table_of(key) for key in context.selected_asset_keys},
        checks=checks,
        only_stale=ONLY_STALE_TAG in context.run.tags,
        full_refresh=FULL_REFRESH_TAG in context.run.tags,
        metadata_hours=metadata_hours(context, hours),
        records_in=records_of(context.run),
    )


def metadata_hours(context: dg.AssetExecutionContext, hours: HourGroups) -> Sequence[datetime]:
    """The newest hours of a run, for which there are curves; none where Dagster is told of no partitions."""
    return [*hours][-MOST_METADATA_HOURS:] if is_told_of_partitions(context) else []


def _results(
    context: dg.AssetExecutionContext,
    step: str,
    events: Iterable[Event],
    on_event: Callable[[Event], None],
    naming: Naming,
) -> Iterator[Result]:
    """Hand the events of a step to Dagster.

    Raises:
        dagster.Failure: the step failed for a reason that a user can mend.
        RuntimeError: an asset was not made, although no check of the step fails.
    """
    is_blocked = False
    missing = {table_of(key) for key in context.selected_asset_keys}
    on_event(StepStarted(step))
    try:
        with readable_failures():
            for event in events:
                on_event(event)
                if (result := result_of(context, event, naming)) is not None:
                    yield result
                if isinstance(event, Materialized):
                    missing.discard(event.asset)
                is_blocked |= isinstance(event, Checked) and event.blocks
        if missing and not is_blocked:  # the outputs are optional, so that Dagster would call this a success
            raise RuntimeError(f"{', '.join(sorted(missing))} of the step {step} were not made")
    except Exception:
        on_event(StepFailed(step))
        raise
    on_event(StepFinished(step))
