"""Upgrades: what an older warehouse needs besides the tables and columns that it does not have.

What belongs here: statements by the version that they lead to, valid on DuckDB and PostgreSQL alike. What does not:
tables and columns, which each engine adds its own way (`engines.duckdb.store`, `migrations`).
"""

from collections.abc import Iterator

_READ_AGAIN = "UPDATE raw_files SET modified_ns = -1"
"""Lets every file count as changed: version 3 makes more of traces, foreign files and lines that were rejected, and
version 4 knows files by what they hold, and rejects events of the future, names that are too long and keys that stand
twice, and version 5 rejects lists above 1 MiB and attributes that stand twice with different values."""

_READ_REJECTED_AGAIN = "UPDATE raw_files SET modified_ns = -1 WHERE rejected > 0"
"""Version 9 places rejected lines by their own times and neighbors, and reads more formats."""

_LOAD_SUPERSEDED_AGAIN = """
    UPDATE raw_logs SET is_loaded = false
    WHERE superseded > 0 AND source_file IN (SELECT source_file FROM raw_files WHERE gone_at IS NULL)
"""
"""Until version 9 one row of an id stayed in an hour, whichever agents claimed it. What is gone stays as it was."""

_PROVISIONAL = (
    "UPDATE health_components SET untimed = 0 WHERE untimed IS NULL",
    "UPDATE agent_health SET untimed = 0, is_provisional = (n > 0 AND n < n_full) WHERE is_provisional IS NULL",
    """
    UPDATE system_health SET provisional = (
        SELECT count(*) FROM agent_health WHERE agent_health.hour = system_health.hour AND agent_health.is_provisional
    ) WHERE provisional IS NULL
    """,
    "UPDATE agent_health_state SET latency_sample_count = sample_count WHERE latency_sample_count IS NULL",
)
"""What older rows say of how much they rest on."""

_WHO_JUDGED = """
    UPDATE judgements SET judged_by = CASE WHEN source_file LIKE 'judgements/%' THEN 'model' ELSE 'agent' END
    WHERE judged_by IS NULL
"""
"""Only logs below `judgements/` were written by a judge of ours, and who judged was not yet told."""

_ONE_LINE_EACH = "UPDATE rejected_records SET lines = 1 WHERE lines IS NULL"

STATEMENTS = {
    3: (_READ_AGAIN, *_PROVISIONAL),
    4: (_READ_AGAIN, _ONE_LINE_EACH, _WHO_JUDGED),
    5: (_READ_AGAIN, *_PROVISIONAL, _ONE_LINE_EACH, _WHO_JUDGED),
    9: (_READ_REJECTED_AGAIN, _LOAD_SUPERSEDED_AGAIN),
}
"""Version 5 repeats the statements of before, each for rows that lack a value alone: until then tables changed without
the version, so a warehouse that calls itself 3 or 4 may not have seen them."""


def statements_since(version: int) -> Iterator[str]:
    """The statements that lead from a version to this program's, in order."""
    for newer in sorted(STATEMENTS):
        if newer > version:
            yield from STATEMENTS[newer]
