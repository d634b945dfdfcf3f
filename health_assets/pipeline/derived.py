"""Assets that are computed from other tables, declared as data.

What belongs here: the shape of such an asset and what its rows are made from. What does not: which assets there are
(`systems`), formulas, which hours are built (`build_selection`) and building them (`system_step`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

import ibis
import pyarrow as pa
from ibis import ir

from health_assets.core.hours import HOUR, HourRange
from health_assets.core.settings import Settings
from health_assets.core.targets import Targets
from health_assets.schema.catalog import columns_of
from health_assets.schema.columns import FORMULA_VERSION
from health_assets.scoring.author_errors import require_columns, written_by_an_author
from health_assets.scoring.trailing_counts import LONGEST_HOURS, Trailing
from health_assets.scoring.windows import ends_of_hours
from health_assets.warehouse.log_coverage import LogCoverage
from health_assets.warehouse.partition_states import PartitionStates
from health_assets.warehouse.store import Session


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """The inputs from which the rows of some hours are made.

    Args:
        session: a write session.
        hours: the hours to make rows for.
        targets: expectations of each agent.
        settings: lengths of windows, weights, thresholds.
    """

    session: Session
    hours: HourRange
    targets: Targets
    settings: Settings

    def table(self, name: str, *, back_hours: int = 1) -> ir.Table:
        """Rows of another table: of these hours and of as many before as make each hour see `back_hours` of them."""
        return self.session.hours_of(name, self.hours.extended_back(back_hours - 1))

    def table_if_any(self, name: str, *, back_hours: int = 1) -> ir.Table | None:
        """Rows as `table` gives them; None where there are none, so that nothing need be joined."""
        hours = self.hours.extended_back(back_hours - 1)
        return self.session.hours_of(name, hours) if self.session.count_hours(name, hours) else None

    @cached_property
    def as_of(self) -> Mapping[datetime, datetime]:
        """Up to when hours count that were not over when their logs were last loaded; no others."""
        return PartitionStates(self.session).as_of("raw_logs", self.hours)

    @property
    def trailing(self) -> Trailing | None:
        """The executions of the last hours before the time up to which the last of these hours is known, if it runs."""
        hour = self.hours.end - HOUR
        if hour not in self.as_of:
            return None
        longest_hours = min(LONGEST_HOURS, self.settings.lookback_hours)
        executions = self.session.hours_of("executions", HourRange.of(hour).extended_back(longest_hours))
        return Trailing(executions=executions, hour=hour, until=self.as_of[hour], longest_hours=longest_hours)

    def with_windows(self, rows: ir.Table, asset: str, window_hours: int) -> ir.Table:
        """Rows with the columns of their hour's window, as `windows` gives them."""
        return rows.inner_join(self.windows(asset, window_hours), "hour")

    def windows(self, asset: str, window_hours: int) -> ir.Table:
        """One row per hour: the columns of `Windowed`, with as `hours_covered` the hours that `asset` has."""
        first_event_hour = LogCoverage(self.session).first_event_hour()
        covered = PartitionStates(self.session).covered(asset, self.hours, window_hours, first_event_hour)
        hour = pa.array(list(self.hours), pa.timestamp("us", "UTC"))
        rows = ibis.memtable(pa.table({"hour": hour, "hours_covered": pa.array(covered, pa.int64())}))
        rows = self.with_as_of(rows)
        return rows.mutate(window_start=rows.hour - ibis.interval(hours=window_hours - 1), window_end=rows.as_of)

    def with_as_of(self, rows: ir.Table) -> ir.Table:
        """Rows with the columns of `AsOf`."""
        is_final = ~rows.hour.isin([*self.as_of]) if self.as_of else ibis.literal(True)
        return rows.mutate(as_of=ends_of_hours(rows.hour, self.as_of), is_final=is_final)


def of_newest_hour(rows: ir.Table) -> ir.Table:
    """The rows of the newest hour among them."""
    return rows.filter(rows.hour == rows.hour.max())


@dataclass(frozen=True, kw_only=True)
class Derived:
    """An asset that is a function of other assets' hours.

    Args:
        name: name of the asset and its table.
        upstream: assets that it is made from.
        rows: the function: every column of the table, but the formula's version, for the hours asked for.
        preview_title: heading of the preview, a small table in its metadata.
        preview_rows: the rows of the preview, best first, from the rows of the hours.
        preview_join: adds columns of other tables to the rows of the preview.
        empty_without: what hours must hold for it to have rows; said in the metadata where it has none.
        back_hours: of `upstream`, how many hours that end with its own an hour is made from.
        same_hour_upstream: further assets that it is made from, of which an hour looks at the same hour alone.
        blocked_by: assets whose failing checks stop it, although it is not made from their rows.
        is_component: whether later hours are made from its hours, so that missing and stale ones of the look-back are
            built along with those asked for.
        is_exempt_from_retention: of a component, whether retention leaves its rows; it is made also where the hours
            before were dropped.
        curves: what Dagster's page draws of the asset hour by hour, besides the number of rows: aggregates of the rows
            of an hour, by name.
        post_write: what of the asset's later hours has to follow once hours were replaced, in the same transaction.
        is_self_dependent: whether an hour is made from hours of the asset itself, too, however far back.
        has_priority: whether it is made before others that could be made by then, whose metadata tell of its rows, too.
        is_external: whether it is made from what was observed rather than read from logs; no run is asked for
            its old hours, so that those of an older version of the formula are built along with any.
        formula_version: version of the formulas of its scoring system.
    """

    name: str
    upstream: Sequence[str]
    rows: Callable[[Inputs], ir.Table]
    preview_title: str
    preview_rows: Callable[[ir.Table], ir.Table]
    empty_without: str
    preview_join: Callable[[ir.Table, Session, HourRange], ir.Table] = lambda rows, *_: rows
    back_hours: Callable[[Settings], int] = lambda _: 1
    same_hour_upstream: Sequence[str] = ()
    blocked_by: Sequence[str] = ()
    is_component: bool = False
    is_exempt_from_retention: bool = False
    curves: Callable[[ir.Table], Mapping[str, ir.Value]] = lambda _: {}
    post_write: Callable[[Inputs], None] = lambda _: None
    is_self_dependent: bool = False
    has_priority: bool = False
    is_external: bool = False
    formula_version: str = field(kw_only=True)

    @property
    def sources(self) -> tuple[str, ...]:
        """The assets that it is made from, and those whose failing checks stop it."""
        return (*self.upstream, *self.same_hour_upstream, *self.blocked_by)


def rows_of(derived: Derived, inputs: Inputs) -> ir.Table:
    """The rows of an asset, which have every column of its table.

    Raises:
        HealthAssetsError: its formula asks for a column that is not there, or leaves one out.
    """
    with written_by_an_author(f"the formula of {derived.name}"):
        rows = derived.rows(inputs)
    wanted = [name for name in columns_of(derived.name) if name != FORMULA_VERSION]
    require_columns(f"what the formula of {derived.name} gives", wanted, rows.columns)
    return rows
