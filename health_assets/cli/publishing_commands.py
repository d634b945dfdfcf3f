"""The command that publishes the tables."""

from pathlib import Path
from typing import Annotated

import typer

from health_assets.cli.console import WarehouseOption, console, readable_errors, settings_of
from health_assets.core.errors import HealthAssetsError
from health_assets.core.importing import without_collections


def publish(
    folder: Annotated[Path | None, typer.Option(help="Where to publish (HEALTH_PUBLISHED).")] = None,
    warehouse: WarehouseOption = None,
) -> None:
    """Publish what has changed of the tables as Parquet files, as every run does."""
    with readable_errors():
        from health_assets.warehouse.location import published_folder

        settings = settings_of(None, None, warehouse)
        place = folder or published_folder(settings)
        if place is None:
            raise HealthAssetsError("nothing says where to publish; use --folder or HEALTH_PUBLISHED")
        with console.status("publishing"), without_collections():
            from health_assets.pipeline.publishing import publish as publish_tables

            done = publish_tables(settings, place)
        console.print(str(done), markup=False, highlight=False, soft_wrap=True)
