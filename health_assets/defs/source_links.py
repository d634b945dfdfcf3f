"""Links from an asset's page to the function that makes its rows.

What belongs here: Dagster's code references, which are in beta in 1.13, so that this is the one place to mend when they
change (`test_every_asset_links_to_the_function_that_makes_its_rows`). What does not: which function that is.
"""

import inspect
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg

import health_assets

PACKAGE = Path(health_assets.__file__).resolve().parent
CODE_REFERENCES = "dagster/code_references"


def source_link(function: Callable[..., Any]) -> dict[str, dg.MetadataValue]:
    """Metadata that links to a function of this package, labelled with the path from the package's folder."""
    file = Path(inspect.getsourcefile(function) or "").resolve()
    line = inspect.getsourcelines(function)[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)  # nothing that whoever loads the definitions could act on
        label = file.relative_to(PACKAGE.parent).as_posix()
        reference = dg.LocalFileCodeReference(file_path=str(file), line_number=line, label=label)
        return {CODE_REFERENCES: dg.CodeReferencesMetadataValue(code_references=[reference])}
