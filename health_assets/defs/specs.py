"""Specs of all assets, made from the tables' classes, and the names that others refer to."""

from collections.abc import Iterable, Sequence

import dagster as dg

from health_assets.schema.catalog import ALL_TABLES, describe
from health_assets.schema.documentation import SQL_NAMES
from health_assets.warehouse.location import is_postgres

GROUP = "health_assets"
OWNERS = ["team:agent-platform"]
ONLY_STALE_TAG = "health-assets/only-stale"
"""A run with this tag leaves hours alone whose inputs have not changed since they were built."""


def asset_spec(name: str, deps: Sequence[str] = (), *, kind: str, system: str) -> dg.AssetSpec:
    """Spec of the asset that makes a table: description and columns come from the table's class.

    Args:
        name: the table.
        deps: assets that it is made from.
        kind: what it is made of; `shown_as_stored_in` adds the warehouse's kind.
        system: scoring system that it belongs to, as a tag; one group holds all, so that the lineage opens whole.
    """
    model = ALL_TABLES[name]
    columns = [
        dg.TableColumn(column, SQL_NAMES[kind], meaning, dg.TableColumnConstraints(nullable=is_nullable))
        for column, kind, is_nullable, meaning in describe(name)
    ]
    return dg.AssetSpec(
        name,
        deps=list(deps),
        description=model.__doc__,
        group_name=GROUP,
        kinds={kind},
        owners=OWNERS,
        tags={"system": system},
        metadata={"dagster/column_schema": dg.TableSchema(columns), "dagster/table_name": name},
    )


def shown_as_stored_in(warehouse: str, assets: Iterable[dg.AssetsDefinition]) -> list[dg.AssetsDefinition]:
    """The assets with the kind of the warehouse that a URL names, beside what they are made of."""
    kind = "postgresql" if is_postgres(warehouse) else "duckdb"
    return [asset.map_asset_specs(lambda spec: spec.merge_attributes(kinds={kind})) for asset in assets]
