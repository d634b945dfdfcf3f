"""Where a warehouse is, as its URL says; apart from the store, so that asking costs no import of an engine."""

from pathlib import Path

from health_assets.errors import HealthAssetsError


def path_of(url: str) -> Path:
    """The file that a warehouse's URL (`duckdb:///path`) or plain path names.

    Raises:
        HealthAssetsError: the URL names an engine that is not supported, or no file.
    """
    scheme, separator, rest = url.partition("://")
    if separator and scheme != "duckdb":
        raise HealthAssetsError(
            f"a warehouse of {scheme}:// is not supported yet; name a DuckDB file or duckdb:///path"
        )
    path = Path(rest.removeprefix("/") if separator else url)
    if path.name == ":memory:":
        raise HealthAssetsError("a warehouse in memory would be forgotten between two steps; name a file")
    return path
