"""Specs of all assets, made from the tables' classes, and the names that others refer to."""

import os
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import dagster as dg

from health_assets.core.settings import Settings
from health_assets.defs.naming import STANDALONE, Naming
from health_assets.defs.source_links import source_link
from health_assets.schema.catalog import ALL_TABLES, describe
from health_assets.schema.documentation import SQL_NAMES
from health_assets.warehouse.location import is_postgres, is_spark

ONLY_STALE_TAG = "health-assets/only-stale"
"""A run with this tag leaves components alone that are up to date, and applies no new targets."""
FULL_REFRESH_TAG = "health-assets/full-refresh"
"""A run with this tag compares every raw log with what was read of it, whatever its size and times say."""
FIRST = {"dagster/priority": "1"}
"""Tags of a step that goes before others which may begin by then."""
RECORDS_TAG = "health-assets/records-in"
"""Where Dagster keeps its records of a run of the command line; empty where nobody will see them again."""


def records_of(run: dg.DagsterRun) -> str:
    """The place where Dagster keeps its records of a run, as `cli.dagster_home.records_in` names it."""
    home = run.tags.get(RECORDS_TAG, os.environ.get("DAGSTER_HOME", ""))
    return str(Path(home).resolve()) if home else ""


def asset_spec(
    name: str,
    deps: Sequence[str] = (),
    *,
    kind: str,
    system: str,
    source: Callable[..., Any],
    naming: Naming = STANDALONE,
) -> dg.AssetSpec:
    """Spec of the asset that makes a table: description and columns come from the table's class.

    Args:
        name: the table.
        deps: assets that it is made from.
        kind: what it is made of; `shown_as_stored_in` adds the warehouse's kind.
        system: scoring system that it belongs to, as a tag and, unless the naming has another, as its group.
        source: the function that makes its rows, to which the asset's page links.
        naming: its key, group and owners.
    """
    model = ALL_TABLES[name]
    columns = [
        dg.TableColumn(column, SQL_NAMES[kind], meaning, dg.TableColumnConstraints(nullable=is_nullable))
        for column, kind, is_nullable, meaning in describe(name)
    ]
    return dg.AssetSpec(
        naming.key(name),
        deps=naming.keys(deps),
        description=model.__doc__,
        group_name=naming.group or system,
        kinds={kind},
        owners=list(naming.owners),
        tags={"system": system},
        metadata={
            "dagster/column_schema": dg.TableSchema(columns),
            "dagster/table_name": name,
            **source_link(source),
        },
    )


def shown_as_stored_in(warehouse: str, assets: Iterable[dg.AssetsDefinition]) -> list[dg.AssetsDefinition]:
    """The assets with the kind of the warehouse that a URL names, beside what they are made of."""
    kind = "postgresql" if is_postgres(warehouse) else "spark" if is_spark(warehouse) else "duckdb"
    return [asset.map_asset_specs(lambda spec: spec.merge_attributes(kinds={kind})) for asset in assets]


def due_every_hour(assets: Iterable[dg.AssetsDefinition], settings: Settings) -> list[dg.AssetsDefinition]:
    """The assets with a freshness policy: red on the page where no run made them in the hour before it counts as late.

    It cannot tell a backfill of old hours from the newest one, which is what `newest_hour_is_in_time` is for. Where
    schedules do not start by themselves nothing is due, and there is no policy.
    """
    if not settings.schedules:
        return list(assets)
    cron = f"{settings.late_after_minutes % 60} * * * *"
    policy = dg.FreshnessPolicy.cron(deadline_cron=cron, lower_bound_delta=timedelta(hours=1))
    return [asset.map_asset_specs(lambda spec: spec.replace_attributes(freshness_policy=policy)) for asset in assets]
