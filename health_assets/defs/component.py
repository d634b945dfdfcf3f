"""The Dagster component by which another project embeds the assets, with a `defs.yaml`; see `docs/embedding.md`.

What belongs here: its attributes, and what they mean for settings and naming. What does not: what is defined
(`build`), and what the settings are (`core.settings`).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import dagster as dg
from pydantic import Field, ValidationError

from health_assets.core.errors import HealthAssetsError
from health_assets.core.settings import Settings
from health_assets.core.yaml_files import NO_FLAG, flag_for_something_else, refuse_misread_numbers
from health_assets.defs.naming import OWNERS, Naming
from health_assets.warehouse.location import is_postgres

NAMES = "health"
"""Names of jobs and schedules begin with it where there is no key prefix."""
FILE = "defs.yaml"
OWN_ATTRIBUTES = {"raw", "targets", "warehouse", "schedules"}
"""Settings that have an attribute of their own."""


class HealthAssetsComponent(dg.Component, dg.Model, dg.Resolvable):
    """The health of AI agents from their logs: hourly, checked assets of all scoring systems, or of chosen ones."""

    raw: Annotated[str, Field(description="Folder of the raw logs, or a URL of an object store.")]
    warehouse: Annotated[str, Field(description="A DuckDB file, or a duckdb:/// or postgresql:// URL.")]
    targets: Annotated[str | None, Field(description="targets.yaml; without one, the defaults.")] = None
    systems: Annotated[
        Sequence[str], Field(description="Scoring systems, with whatever they are made from; all where none is named.")
    ] = ()
    key_prefix: Annotated[str | Sequence[str], Field(description="What the keys of the assets begin with.")] = ()
    group: Annotated[str | None, Field(description="One group of all assets; else one of each scoring system.")] = None
    owners: Annotated[Sequence[str], Field(description="Owners of the assets.")] = OWNERS
    schedules: Annotated[bool, Field(description="Whether schedules and sensors start by themselves.")] = False
    settings: Annotated[
        Mapping[str, Any] | None,
        Field(description="Further settings by name, in small letters and without HEALTH_."),
    ] = None

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """All definitions of the chosen systems: assets, checks, jobs, schedules, sensors and one resource.

        Raises:
            HealthAssetsError: an attribute has an impossible value.
        """
        from health_assets.defs.build import build_definitions  # whoever merely lists components need not wait for it

        file = context.path / FILE
        if file.is_file():
            refuse_misread_numbers(file, type(self).__name__)
        prefix = (self.key_prefix,) if isinstance(self.key_prefix, str) else tuple(self.key_prefix)
        naming = Naming(
            key_prefix=prefix,
            group=self.group,
            names="_".join([*prefix, NAMES]),
            owners=tuple(self.owners),
            is_embedded=True,
        )
        return build_definitions(self._settings(context.project_root), defined=self.systems, naming=naming)

    def _settings(self, root: Path) -> Settings:
        """The settings: attributes, then `settings`, then the environment's; paths are from the project's root."""
        further = dict(self.settings or {})
        if twice := sorted(OWN_ATTRIBUTES & further.keys()):
            raise HealthAssetsError(f"settings: {twice[0]} is an attribute of the component")
        if unknown := sorted(further.keys() - Settings.model_fields.keys()):
            raise HealthAssetsError(f"settings: there is no setting {unknown[0]!r}")
        if flag := flag_for_something_else(Settings, further):
            raise HealthAssetsError(f"settings: {flag}: {NO_FLAG}")
        own = {"raw": _from(root, self.raw), "warehouse": _warehouse(root, self.warehouse), "schedules": self.schedules}
        own["targets"] = _from(root, self.targets) if self.targets else None
        try:
            return Settings(**{**further, **own})
        except ValidationError as error:
            first = error.errors(include_context=False)[0]
        name = ".".join(str(part) for part in first["loc"])
        raise HealthAssetsError(f"{name}: {first['msg'].removeprefix('Value error, ')}")


def _from(root: Path, place: str) -> str:
    """A path from the project's root; a URL as it is."""
    return place if "://" in place else str(root / Path(place).expanduser())


def _warehouse(root: Path, url: str) -> str:
    """A DuckDB file as `_from` has it."""
    return url if is_postgres(url) else _from(root, url)
