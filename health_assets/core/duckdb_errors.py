"""Errors of DuckDB, as they are told to whoever wrote a pattern.

What belongs here: the words of an error, and whether DuckDB can evaluate what follows from a pattern. What does not:
the patterns, and how their errors are told.
"""

from functools import cache

import duckdb


def cause_of(error: duckdb.Error) -> str:
    """The first line of an error, without its kind."""
    return str(error).splitlines()[0].partition("Error: ")[2]


@cache  # every asset reads the targets file, and a connection costs more than the rest of that
def fault_of(expression: str) -> str | None:
    """Why DuckDB cannot evaluate an expression of constants; None if it can."""
    with duckdb.connect() as connection:
        try:
            connection.execute(f"SELECT {expression}")
        except duckdb.Error as error:
            return cause_of(error)
    return None
