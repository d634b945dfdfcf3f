"""Errors of DuckDB, as they are told to whoever wrote a pattern.

What belongs here: the words of an error. What does not: when it is raised, and what was tried.
"""

import duckdb


def cause_of(error: duckdb.Error) -> str:
    """The first line of an error, without its kind."""
    return str(error).splitlines()[0].partition("Error: ")[2]
