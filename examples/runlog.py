"""Run logs: a header that names the agent, and a run a line as `key=value`."""

import re
from collections.abc import Iterator
from urllib.parse import unquote

from health_assets.logs.formats.foreign_lines import (
    Line,
    Record,
    Source,
    UnusableRecordError,
    line_of,
    present,
    rejected,
)
from health_assets.logs.formats.lines import texts
from health_assets.logs.formats.opening import Opening

HEADER = re.compile(r"#runlog 1 agent=(\S+)")
PAIR = re.compile(r"(\w+)=(\S*)")
STATUS = {"ok": "success", "error": "failure"}
HEADERS = "run log header"


def recognizes(opening: Opening) -> bool:
    """Whether a file that begins so is a run log: its first line is the header."""
    return HEADER.fullmatch(opening.first_line.decode(errors="replace")) is not None


def read(source: Source) -> Iterator[Line]:
    """An execution for each line below a header."""
    agent_id = ""
    for item in texts(source.blocks):
        if isinstance(item, Line):  # damaged
            yield item
            continue
        number, line = item
        if header := HEADER.fullmatch(line):
            agent_id = header[1]
            source.notes[HEADERS] += 1
            continue
        try:
            yield line_of(number, _execution(agent_id, line))
        except UnusableRecordError as error:
            yield rejected(number, line, str(error))


def _execution(agent_id: str, line: str) -> Record:
    pairs = [PAIR.fullmatch(word) for word in line.split()]
    found = {pair[1]: unquote(pair[2]) for pair in pairs if pair}
    if len(found) < len(pairs):
        raise UnusableRecordError("a word is no key=value, or a key stands twice")
    for name in ("id", "start", "end", "result"):
        if not found.get(name):
            raise UnusableRecordError(f"{name} is missing")
    if found["result"] not in STATUS:
        raise UnusableRecordError(f"result must be ok or error, not {found['result']}")
    return present(
        {
            "type": "execution",
            "execution_id": f"{agent_id}:{found['id']}",
            "agent_id": agent_id,
            "started_at": found["start"],
            "ended_at": found["end"],
            "status": STATUS[found["result"]],
            "error": found.get("message"),
        }
    )
