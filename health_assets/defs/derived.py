"""Assets that are computed from other tables: declared as data, run by one step each.

What belongs here: the shape of such an asset and the step that reads, calls its function, replaces its hours and
reports. What does not: which assets there are (`systems`) and formulas (`scoring`).
"""

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime

import dagster as dg
import ibis
import pyarrow as pa
from ibis import ir

from health_assets.defs.holding import show_held
from health_assets.defs.partitions import log_earlier_hours, run_groups
from health_assets.defs.pipeline import PipelineResource
from health_assets.defs.specs import ONLY_STALE_TAG, asset_spec
from health_assets.defs.summaries import summary
from health_assets.errors import HealthAssetsError
from health_assets.hours import HourGroups, HourRange
from health_assets.planning import hours_covered
from health_assets.settings import Settings
from health_assets.targets import Targets
from health_assets.warehouse.holds import Holds
from health_assets.warehouse.store import Session


@dataclass(frozen=True)
class Inputs:
    """What the rows of some hours are made from.

    Args:
        session: a write session.
        hours: the hours to make rows for.
        targets: what each agent is expected to do.
        settings: lengths of windows, weights, thresholds.
    """

    session: Session
    hours: HourRange
    targets: Targets
    settings: Settings

    def table(self, name: str, *, back_hours: int = 1) -> ir.Table:
        """Rows of another table: of these hours and of as many before as make each hour see `back_hours` of them."""
        return self.session.hours_of(name, self.hours.extended_back(back_hours - 1))

    def with_windows(self, rows: ir.Table, asset: str, window_hours: int) -> ir.Table:
        """Rows with the columns of their hour's window, as `windows` gives them."""
        return rows.inner_join(self.windows(asset, window_hours), "hour")

    def windows(self, asset: str, window_hours: int) -> ir.Table:
        """One row per hour: `hour`, `window_start`, `window_end`, `hours_covered` (hours that `asset` has)."""
        materialized = self.session.materialized_hours(asset, self.hours.extended_back(window_hours - 1))
        covered = hours_covered(self.hours, window_hours, materialized, self.session.first_event_hour())
        hour = pa.array(list(self.hours), pa.timestamp("us", "UTC"))
        rows = ibis.memtable(pa.table({"hour": hour, "hours_covered": pa.array(covered, pa.int64())}))
        return rows.mutate(
            window_start=rows.hour - ibis.interval(hours=window_hours - 1),
            window_end=rows.hour + ibis.interval(hours=1),
        )


def of_newest_hour(rows: ir.Table) -> ir.Table:
    """The rows of the newest hour among them."""
    return rows.filter(rows.hour == rows.hour.max())


@dataclass(frozen=True)
class Derived:
    """An asset that is a function of other assets' hours.

    Args:
        name: name of the asset and its table.
        deps: assets that it is made from.
        rows: the function: every column of the table for the hours asked for.
        heading: heading of the small table in its metadata.
        top: that table, best rows first, from the rows of the hours.
        needs: what hours must hold for it to have rows; said in the metadata where it has none.
        back_hours: of its deps, how many hours that end with its own an hour is made from.
        beside: further assets that it is made from, of which an hour looks at the same hour alone.
        gates: assets whose failing checks stop it, although it is not made from their rows.
        is_component: whether later hours are made from its hours, so that missing and stale ones of the look-back are
            built along with those asked for.
        after: what of the asset's later hours has to follow once hours were replaced, in the same transaction.
    """

    name: str
    deps: Sequence[str]
    rows: Callable[[Inputs], ir.Table]
    heading: str
    top: Callable[[ir.Table], ir.Table]
    needs: str
    back_hours: Callable[[Settings], int] = lambda _: 1
    beside: Sequence[str] = ()
    gates: Sequence[str] = ()
    is_component: bool = False
    after: Callable[[Inputs], None] = lambda _: None


def derived_asset(derived: Derived, system: str, partitions: dg.PartitionsDefinition | None) -> dg.AssetsDefinition:
    """The Dagster asset: read, call the function, replace the hours, report."""

    @dg.multi_asset(
        name=derived.name,
        specs=[
            asset_spec(derived.name, (*derived.gates, *derived.deps, *derived.beside), kind="python", system=system)
        ],
        partitions_def=partitions,
        backfill_policy=dg.BackfillPolicy.single_run(),
    )
    def _derived(context: dg.AssetExecutionContext, pipeline: PipelineResource) -> Iterator[dg.MaterializeResult]:
        asked = run_groups(context)
        with pipeline.write() as session:
            targets = pipeline.load_targets()  # those of now, however long it took until this run's turn
            build, restored = set(asked), set[datetime]()
            if derived.is_component:
                only_stale = ONLY_STALE_TAG in context.run.tags
                build, restored = hours_to_build(session, derived, asked, pipeline.settings, only_stale=only_stale)
            holds = Holds(session).within(asked.span.extended_back(pipeline.settings.reach_hours))
            build -= {hold.hour for hold in holds}
            for hours, own in statements(build, asked):
                require_sources(session, derived, own, pipeline.settings)
                inputs = Inputs(session, hours, targets, pipeline.settings)
                session.replace_hours(derived.name, own, derived.rows(inputs), restored)
                derived.after(inputs)
            metadata = summary(session, derived.name, asked.span, derived.heading, derived.top, derived.needs)
        log_earlier_hours(context, derived.name, build, asked)
        yield dg.MaterializeResult(derived.name, metadata=metadata)
        show_held(context, [derived.name], holds)

    return _derived


def statements(build: AbstractSet[datetime], asked: HourGroups) -> list[tuple[HourRange, HourGroups]]:
    """Hours to compute at once, and those of them that are to be built.

    In a run with holes little happens, so that computing a hole with its neighbours costs less than another statement;
    its rows are left out. In a run without holes, hours that are to be built may lie far apart with much between them.
    """
    if not build:
        return []
    wanted = HourGroups.of(build)
    if asked.has_holes:
        return [(piece, wanted.within(piece)) for piece in wanted.pieces()]
    return [(own, HourGroups((own,))) for own in wanted.ranges]


def require_sources(session: Session, derived: Derived, hours: HourRange | HourGroups, settings: Settings) -> None:
    """Refuse to make rows from hours that retention dropped: they would say less than those that are there.

    Raises:
        HealthAssetsError: a table that the asset is made from has been dropped for hours that these hours look back on.
    """
    reach = HourGroups(hours.ranges).extended_back(derived.back_hours(settings) - 1)
    for source in (*derived.deps, *derived.beside):
        needed = hours if source in derived.beside else reach
        if dropped := {hour for hour in session.dropped_hours(source, reach.span) if hour in needed}:
            raise HealthAssetsError(
                f"{derived.name} of {hours} needs {len(dropped)} hours of {source} that retention dropped, the first "
                f"of them {min(dropped):%Y-%m-%dT%H}; materialize all assets of these hours together"
            )


def hours_to_build(
    session: Session, derived: Derived, asked: HourRange | HourGroups, settings: Settings, *, only_stale: bool
) -> tuple[set[datetime], set[datetime]]:
    """The hours asked for (with `only_stale`, none as such), and those of the look-back that are not up to date.

    Returns:
        The hours, and which of them merely come back after retention dropped them: what was made from them stands, also
        where targets have changed since.
    """
    reach = HourGroups(asked.ranges).extended_back(settings.reach_hours - 1)
    span = reach.span
    built = session.materialized_hours(derived.name, span)
    first = session.first_event_hour() or asked.start
    missing = {hour for hour in reach if hour not in built and (hour >= first or hour in asked)}
    stale = session.hours_older_than(derived.name, derived.deps, span, reach_hours=derived.back_hours(settings))
    wanted = set() if only_stale else set(asked)
    restored = {hour for hour in session.dropped_hours(derived.name, span) if hour in reach}
    return missing | {hour for hour in stale if hour in reach} | wanted, restored - stale - wanted
