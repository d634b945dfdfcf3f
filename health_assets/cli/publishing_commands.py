"""The command that publishes the tables, and what `serve` and `mcp` publish before they begin to read."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from health_assets.cli.speaking import WarehouseOption, console, readable_errors, say, settings_of
from health_assets.core.errors import HealthAssetsError
from health_assets.core.importing import without_collections

if TYPE_CHECKING:
    from health_assets.core.settings import Settings


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


def publish_first(settings: "Settings") -> None:
    """Publish for a server that is about to start, where nothing was published yet; tells why that cannot be done."""
    from health_assets.warehouse.location import MANIFEST, published_folder

    folder = published_folder(settings)
    if folder is None or (folder / MANIFEST).exists():
        return
    try:
        with without_collections():
            from health_assets.pipeline.publishing import READERS_PATIENCE_S
            from health_assets.pipeline.publishing import publish as publish_tables
            from health_assets.warehouse.store import Warehouse

            if not Warehouse.of(settings, lock_timeout_s=READERS_PATIENCE_S).exists:
                return
            say(f"publishing the tables in {folder}, which no run did yet")
            publish_tables(settings, folder, READERS_PATIENCE_S)
    except HealthAssetsError as error:  # a run that is under way publishes
        say(str(error))
