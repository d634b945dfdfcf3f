"""`python -m bench.coding_sessions FOLDER`: CPU of reading sessions of Claude Code, over DuckDB's typed read of them.

The sessions below the folder, `~/.claude/projects` for example, are repeated with other ids in one file of 500 MB.
Reading gives the rows of all records, as a run loads them; DuckDB reads the fields that the reader looks at.
"""

import argparse
import re
import tempfile
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.measure import by_turns, run

COLUMNS = {
    **dict.fromkeys(
        ("type", "subtype", "uuid", "sessionId", "promptId", "requestId", "timestamp", "cwd", "version"), "VARCHAR"
    ),
    **dict.fromkeys(("isSidechain", "isMeta", "isCompactSummary", "isApiErrorMessage"), "BOOLEAN"),
    **dict.fromkeys(("durationMs", "costUSD"), "DOUBLE"),
    **dict.fromkeys(("error", "apiErrorStatus", "forkedFrom", "toolUseResult"), "JSON"),
    "message": "STRUCT(id VARCHAR, model VARCHAR, content JSON, stop_reason VARCHAR, usage STRUCT(input_tokens BIGINT, "
    "output_tokens BIGINT, cache_read_input_tokens BIGINT, cache_creation_input_tokens BIGINT))",
}
IDS = re.compile(
    rb'("(?:uuid|parentUuid|sessionId|promptId|requestId|id|tool_use_id|messageId|leafUuid)"\s*:\s*"[^"]{4,})[^"]{4}"'
)
"""An id, but for its last four characters."""


def main() -> None:
    """Read the flags, write the file, and print what was measured."""
    parser = argparse.ArgumentParser(prog="python -m bench.coding_sessions", description=__doc__)
    parser.add_argument("sessions", type=Path, help="a folder with sessions of Claude Code")
    parser.add_argument("--mb", type=int, default=500, help="size of the file")
    parser.add_argument("--repeats", type=int, default=3, help="how often each piece of work is timed")
    flags = parser.parse_args()
    sessions = [path.read_bytes() for path in sorted(flags.sessions.rglob("*.jsonl"))]
    if not any(sessions):
        parser.error(f"there are no sessions in {flags.sessions}")
    with tempfile.TemporaryDirectory(prefix="health-assets-bench-") as raw:
        size = write_sessions(Path(raw, "sessions.jsonl"), sessions, flags.mb * 10**6)
        ours, table, counts = by_turns(
            flags.repeats,
            {
                "rows of all records": lambda: run("read_sessions", raw=raw),
                "read_json into a table": lambda: run("read_json", raw=raw, select="table", of="sessions"),
                "read_json, counts only": lambda: run("read_json", raw=raw, select="aggregate", of="sessions"),
            },
        )
    shown = Table("", "CPU s", "MB a CPU s", "peak GiB", "our CPU over it")
    for timing in (ours, table, counts):
        figures = (timing.cpu_s, size / 1e6 / timing.cpu_s, timing.peak_gib, ours.cpu_s / timing.cpu_s)
        shown.add_row(timing.name, *(f"{figure:.2f}" for figure in figures))
    Console().print(shown)


def write_sessions(path: Path, sessions: Sequence[bytes], size: int) -> int:
    """Write sessions again and again, each time with other ids, until there are so many bytes; tells how many."""
    with path.open("wb") as file:
        for copy in count():
            for session in sessions:
                lines = session if session.endswith(b"\n") else session + b"\n"
                file.write(IDS.sub(rb'\g<1>%04d"' % copy, lines))
                if file.tell() >= size:
                    return file.tell()
    raise AssertionError("it ends within the loop")


if __name__ == "__main__":
    main()
