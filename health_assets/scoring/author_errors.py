"""Mistakes in formulas and checks, as one sentence for their author.

What belongs here: errors of ibis expressions, such as a column that is not there. What does not: names of assets, which
are looked at when they are declared (`systems.declarations`).
"""

import traceback
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import ibis
from ibis import ir

from health_assets.core.errors import HealthAssetsError
from health_assets.core.formatting import nearest

_IBIS = Path(ibis.__file__).parent


@contextmanager
def written_by_an_author(what: str) -> Iterator[None]:
    """Tell the place of an expression that cannot be made in the block; any other error stays as it is.

    Args:
        what: the thing that is made, for the sentence.

    Raises:
        HealthAssetsError: an expression asks for a column that is not there, or is wrong in another way.
    """
    try:
        yield
    except AttributeError as error:
        if not isinstance(error.obj, ir.Expr):
            raise
        raise HealthAssetsError(f"{what}, {_place(error)}: {_lack(error)}") from error
    except ibis.IbisError as error:
        raise HealthAssetsError(f"{what}, {_place(error)}: {' '.join(str(error).split())}") from error


def require_columns(what: str, wanted: Collection[str], there: Collection[str]) -> None:
    """Make sure that a table has the columns that somebody declared of it.

    Raises:
        HealthAssetsError: one is not there.
    """
    lacking = sorted({*wanted} - {*there})
    if lacking:
        raise HealthAssetsError(
            f"{what} has no column {lacking[0]!r}{nearest(lacking[0], {*there} - {*wanted}, there)}"
        )


def _lack(error: AttributeError) -> str:
    if isinstance(error.obj, ir.Table) and error.name is not None:
        return f"the table has no column {error.name!r}{nearest(error.name, error.obj.columns)}"
    return str(error)


def _place(error: Exception) -> str:
    """The line that the author wrote: the last one outside of ibis."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not Path(frame.filename).is_relative_to(_IBIS)]
    return f"line {own[-1].lineno} of {Path(own[-1].filename).name}"
