"""The Dagster asset of a table that is computed from other tables.

What belongs here: the step that reads, calls the asset's function, replaces its hours and reports. What does not: what
assets are made from (`pipeline.derived`, `systems`).
"""

from collections.abc import Iterator
from datetime import datetime

import dagster as dg

from health_assets.core.hours import EVER
from health_assets.defs.curves import drawn_hours, numbers_by_hour, show_curves
from health_assets.defs.holding import show_held
from health_assets.defs.partitions import log_earlier_hours, run_groups
from health_assets.defs.placement import ALONE, Placement
from health_assets.defs.specs import FIRST, ONLY_STALE_TAG, asset_spec
from health_assets.defs.summaries import summary
from health_assets.pipeline.derived import (
    Derived,
    Inputs,
    hours_to_build,
    older_hours,
    require_sources,
    rows_of,
    statements,
    versions_to_note,
)
from health_assets.pipeline.grounds import Grounds, upstream
from health_assets.systems.declared_assets import DERIVED
from health_assets.warehouse.holds import Holds
from health_assets.warehouse.materialized import MaterializedHours


def derived_asset(
    derived: Derived, system: str, partitions: dg.PartitionsDefinition | None, placement: Placement = ALONE
) -> dg.AssetsDefinition:
    """The Dagster asset: read, call the function, replace the hours, report."""
    key, sources = placement.key(derived.name), (*derived.gates, *derived.deps, *derived.beside)

    @dg.multi_asset(
        name=placement.name(derived.name),
        specs=[
            asset_spec(derived.name, sources, kind="python", system=system, source=derived.rows, placement=placement),
        ],
        partitions_def=partitions,
        required_resource_keys={placement.resource},
        backfill_policy=dg.BackfillPolicy.single_run(),
        op_tags=FIRST if derived.goes_first else None,
    )
    def _derived(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult]:
        pipeline = placement.pipeline(context)
        asked = run_groups(context)
        with pipeline.write() as session:
            targets = pipeline.load_targets()  # those of now, however long it took until this run's turn
            grounds, tables = Grounds.of(pipeline.settings, targets, asked), upstream(derived.name, DERIVED)
            made_with = grounds.of_rows(grounds.account(session, tables), tables)
            build, restored = set(asked), set[datetime]()
            if derived.is_component:
                only_stale = ONLY_STALE_TAG in context.run.tags
                build, restored = hours_to_build(session, derived, asked, pipeline.settings, only_stale=only_stale)
            if derived.is_of_observations:
                build |= older_hours(session, derived, EVER).keys()
            holds = Holds(session).within(asked.span.extended_back(pipeline.settings.reach_hours))
            build -= {hold.hour for hold in holds}
            for hours, own in statements(build, asked):
                require_sources(session, derived, own, pipeline.settings)
                inputs = Inputs(session=session, hours=hours, targets=targets, settings=pipeline.settings)
                MaterializedHours(session).replace_rows(
                    derived.name, own, rows_of(derived, inputs), restored, formula_version=derived.formula_version,
                    other_versions=versions_to_note(session, derived, DERIVED, own, pipeline.settings),
                    made_with=made_with,
                )  # fmt: skip
                derived.after(inputs)
            metadata = summary(
                session, derived.name, asked.span, derived.heading, derived.top, derived.needs, derived.told_with
            )
            curves = numbers_by_hour(session, derived.name, drawn_hours(context, asked), derived.curves)
        show_curves(context, key, curves)
        log_earlier_hours(context, key, build, asked)
        yield dg.MaterializeResult(key, metadata=metadata)
        show_held(context, [key], holds, placement)

    return _derived
