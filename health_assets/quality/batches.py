"""Parts of every asset's batches: their source, its rows, and facts by hour."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache

import ibis
import pandas as pd
from ibis import Deferred, _, ir

from health_assets.core.hours import HourGroups, HourRange
from health_assets.core.settings import Settings
from health_assets.core.targets import Targets
from health_assets.schema.catalog import describe
from health_assets.scoring.relations import within
from health_assets.warehouse.session import Session


@dataclass(frozen=True, kw_only=True)
class Source:
    """The source of a batch: the asset, a session, the hours that are checked, and the settings that made them.

    Where only `some` of the hours were asked for, the others are looked at with them, and nothing is said of them.
    """

    asset: str
    session: Session
    hours: HourRange
    targets: Targets
    settings: Settings
    some: HourGroups | None = None

    @property
    def asked(self) -> HourGroups:
        """The hours that the checks are about."""
        return self.some or HourGroups((self.hours,))

    def rows(self) -> ir.Table:
        """The asset's rows for the hours checked."""
        return self.session.hours_of(self.asset, self.hours)

    @cached_property
    def row_counts(self) -> dict[datetime, int]:
        """The number of rows of the asset in each hour checked, counted once; hours without any are left out."""
        return self.counts(self.asset)

    def facts(self, rows: str | ir.Table, *values: Deferred, hours: HourRange | None = None) -> dict[datetime, tuple]:
        """Values by hour, of the hours checked or given; hours without rows are left out.

        Args:
            rows: a table, or an expression that has an `hour`.
            values: aggregates of each hour's rows, as `_.count()`.
            hours: the hours, where they are others than those checked.
        """
        table = self.session.table(rows) if isinstance(rows, str) else rows
        inside = within(table, hours or self.hours)
        named = {f"value_{place}": value for place, value in enumerate(values)}
        found = self.session.dicts(inside.group_by("hour").aggregate(**named))
        return {row["hour"]: tuple(row[name] for name in named) for row in found}

    def counts(self, table: str) -> dict[datetime, int]:
        """The number of rows of a table in each hour checked; hours without any are left out."""
        return self.session.counts_by_hour(table, self.hours)


OF_ROWS = ("missing_values", "missing_columns", "next_hour")
"""The columns that `rows` adds to those of the table."""
OF_HOURS = ("hour", "columns_of_other_type", "changed_columns")
"""The columns of `hours`."""


def rows(source: Source) -> ir.Table:
    """The asset's own rows, with how many and which required values are missing, and the end of their hour."""
    return within(_with_missing_values(source.session.table(source.asset), source.asset), source.hours)


@lru_cache(256)
def _with_missing_values(own: ir.Table, asset: str) -> ir.Table:
    """All rows of an asset with the columns of `OF_ROWS`; made once, since it takes longer than to look at few rows."""
    required = [name for name, _, is_nullable, _ in describe(asset) if not is_nullable]
    missing = {name: own[name].isnull() for name in required}
    return own.mutate(
        missing_values=sum((is_missing.cast("int64") for is_missing in missing.values()), ibis.literal(0)),
        missing_columns=ibis.literal("").concat(
            *(is_missing.ifelse(f"{name} ", "") for name, is_missing in missing.items())
        ),
        next_hour=own.hour + ibis.interval(hours=1),
    )


def hours(source: Source) -> pd.DataFrame:
    """One row per hour, with the number of columns whose type in the warehouse is not the declared one."""
    actual = source.session.column_types(source.asset)
    changed = [name for name, kind, _, _ in describe(source.asset) if actual.get(name) != kind]
    return pd.DataFrame(
        {"hour": list(source.hours), "columns_of_other_type": len(changed), "changed_columns": ", ".join(changed)}
    )


def with_facts(frame: pd.DataFrame, names: Sequence[str], values: dict[datetime, tuple]) -> pd.DataFrame:
    """Add values by hour as columns; 0 in an hour that has none."""
    none = (0,) * len(names)
    columns = zip(*(values.get(hour, none) for hour in frame["hour"]), strict=True)
    return frame.assign(**dict(zip(names, map(list, columns), strict=True)))


def with_fact(frame: pd.DataFrame, name: str, values: Mapping[datetime, float]) -> pd.DataFrame:
    """Add one value by hour as a column; 0 in an hour that has none."""
    return with_facts(frame, [name], {hour: (value,) for hour, value in values.items()})


def hours_with_windows(
    source: Source,
    count_column: str,
    components: str = "health_components",
    component: str = "executions",
    always: str | None = None,
    window_hours: int | None = None,
) -> pd.DataFrame:
    """`hours`, with what the windows of all agents that are not retired count, and what their hours' components do.

    Args:
        source: the asset with the windows.
        count_column: its column of counts, by window.
        components: the table that its windows are made of.
        component: what of it is counted; the columns are called `<component>_in_windows` and `<component>_of_hours`.
        always: an `agent_id` that stands for nobody, whom no target retires.
        window_hours: length of the windows; that of the evaluation window where none is given.
    """
    exceptions = [name for name, own in source.targets.agents.items() if own.retired != source.targets.defaults.retired]
    parts = source.session.table(components)
    is_excepted = parts.agent_id.isin(exceptions)
    is_counted = is_excepted if source.targets.defaults.retired else ~is_excepted
    if always is not None:
        is_counted |= parts.agent_id == always
    length = window_hours or source.settings.window_hours
    span = source.hours.extended_back(length - 1)
    by_hour = source.facts(parts.filter(is_counted), _[component].sum(), hours=span)
    counts = [by_hour.get(hour, (0,))[0] for hour in span]
    of_hours = [sum(counts[place : place + length]) for place in range(len(source.hours))]
    frame = hours(source).assign(**{f"{component}_of_hours": of_hours})
    in_windows = source.facts(source.asset, _[count_column].sum())
    return with_facts(frame, [f"{component}_in_windows"], in_windows)
