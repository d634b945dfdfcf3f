"""A file of views of the published tables, for a DuckDB that is started in their folder."""

from health_assets.core.sql_text import quoted
from health_assets.warehouse.engines.published.manifest import Manifest

VIEWS = "views.sql"


def views_sql(manifest: Manifest) -> str:
    """A view for every table with rows, over the files that count, relative to the folder."""
    head = "-- Views of the published tables, for DuckDB in this folder: duckdb -init views.sql\n"
    return head + "".join(
        f"CREATE OR REPLACE VIEW {name} AS SELECT * FROM read_parquet(["
        + ", ".join(quoted(file.path) for file in table.files.values())
        + "], hive_partitioning = false);\n"
        for name, table in manifest.tables.items()
        if table.files
    )
