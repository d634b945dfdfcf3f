"""The raw root: the place below which raw logs lie, as a setting names it and as people may see it.

What belongs here: the name alone. What does not: looking into it (`logs.stores`).
"""

import os
import re
from pathlib import Path

from health_assets.core.errors import HealthAssetsError

URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://|memory:")
PASSWORD = re.compile(r"://[^/:@]*:(?P<password>[^/]+)@")

RawRoot = Path | str
"""A folder, or the URL of a place in an object store."""


def as_text(path: Path | str) -> str:
    """A path as text: bytes in it that are not UTF-8 are written as a backslash, an x and two digits."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def raw_root(value: RawRoot) -> RawRoot:
    """A folder's path, or the URL as it is."""
    if isinstance(value, Path) or not URL.match(value):
        return Path(value)
    return Path(value.removeprefix("file://")) if value.startswith("file://") else value.rstrip("/")


def shown(root: RawRoot) -> str:
    """The root as people may see it: a URL without the password that may stand in it."""
    return as_text(root) if isinstance(root, Path) else without_password(root, root)


def without_password(text: str, url: str) -> str:
    """A text about a URL, without the password that may stand in both."""
    found = PASSWORD.search(url)
    return text.replace(found["password"], "…") if found else text


def local_root(root: RawRoot, what: str) -> Path:
    """The root as a folder, for whoever writes logs.

    Raises:
        HealthAssetsError: it is an object store.
    """
    if isinstance(root, Path):
        return root
    raise HealthAssetsError(
        f"{what} writes its log below the raw root, which must be a local folder, not {shown(root)}"
    )


def is_inside(place: str, root: RawRoot) -> bool:
    """Whether a folder or bucket is a raw root, or lies in it."""
    other = raw_root(place)
    if isinstance(other, Path) and isinstance(root, Path):
        return other.expanduser().resolve().is_relative_to(root.resolve())
    return isinstance(other, str) and isinstance(root, str) and f"{other}/".startswith(f"{root}/")


def root_name(root: RawRoot) -> str:
    """The name by which the root is remembered."""
    return as_text(root.resolve()) if isinstance(root, Path) else shown(root)
