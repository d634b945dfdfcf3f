"""Formats that an installation declares for logs of its own (`HEALTH_FORMATS`).

What belongs here: finding the declarations, and whether they are others than before. What does not: what one says
(`declaration`).
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from health_assets.core.errors import HealthAssetsError
from health_assets.logs.formats.declaration import Declaration, load_declaration

PATTERNS = ("*.yaml", "*.yml")


def own_formats(path: Path | None) -> tuple[Declaration, ...]:
    """The declarations in a file, or in the files of a folder; none where nothing is named.

    Raises:
        HealthAssetsError: there is no such file, or one is no declaration, or two have one name.
    """
    if path is None:
        return ()
    files = sorted(found for pattern in PATTERNS for found in path.glob(pattern)) if path.is_dir() else [path]
    found: dict[str, Path] = {}
    declared = [load_declaration(file) for file in files]
    for file, declaration in zip(files, declared, strict=True):
        if (other := found.setdefault(declaration.name, file)) != file:
            raise HealthAssetsError(f"{file}: {other} declares a format of the name {declaration.name!r}, too")
    return tuple(declared)


def digest_of(formats: Sequence[Declaration]) -> str | None:
    """A digest of declarations, by which others are told from them; None of none."""
    if not formats:
        return None
    return hashlib.sha256("\n".join(one.model_dump_json() for one in formats).encode()).hexdigest()[:32]
