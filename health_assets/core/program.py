"""The program that runs: a digest of its own modules and of the libraries that have a part in results.

A version number says less: a checkout changes without it, and a library is upgraded under it. What does not belong
here: versions of formulas, which are declared (`systems`).
"""

import hashlib
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import health_assets

LIBRARIES = (
    "duckdb", "great-expectations", "ibis-framework", "numpy", "pandas", "pyarrow", "rapidfuzz", "scipy", "sqlglot",
)  # fmt: skip
"""Distributions that have a part in results."""
OPTIONAL = ("genai-prices",)
"""Likewise, where they are installed."""


def digest_of_program() -> str:
    """A digest that is another one as soon as a module of this program, Python or one of the libraries is."""
    libraries = map(_installed, (*LIBRARIES, *OPTIONAL))
    found = hashlib.sha256(" ".join([sys.version, *libraries]).encode())
    folder = Path(health_assets.__file__).parent
    for path in sorted(folder.rglob("*.py")):
        found.update(f"\n{path.relative_to(folder).as_posix()} ".encode())
        found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


def _installed(name: str) -> str:
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return ""


PROGRAM = digest_of_program()
"""The digest when this process began: one that lives long goes on with what it imported, whatever files say by then."""
