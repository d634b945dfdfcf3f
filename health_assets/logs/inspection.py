"""What a file of logs comes to, without a warehouse.

What belongs here: reading a file as a load would, and counting what it comes to. What does not: how it is shown
(`apps.inspecting`).
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

import duckdb
import pyarrow as pa

from health_assets.core.errors import HealthAssetsError
from health_assets.core.targets import Targets
from health_assets.logs.files import Notes, head_of
from health_assets.logs.formats import NATIVE, recognized
from health_assets.logs.formats.format_settings import FormatSettings
from health_assets.logs.formats.opening import Opening
from health_assets.logs.limits import Limits
from health_assets.logs.looks import look_of
from health_assets.logs.plain import plain_blocks
from health_assets.logs.reader import reading
from health_assets.logs.stores import LOG_NAME, NAMES_THAT_COUNT, RawFile, list_files
from health_assets.logs.unicode import as_utf_8

REJECTED = "rejected"
_TIMES = ("ended_at", "fired_at", "given_at", "evaluated_at", "judged_at", "updated_at")
_WHAT = {"execution": "status", "model_call": "status", "tool_call": "status", "trigger": "status", "span": "kind"}
"""The column of each record type whose values are counted one by one."""


@dataclass(frozen=True, kw_only=True)
class Records:
    """The records of one type.

    Args:
        lines: how many.
        values: how many by status, or of spans by kind.
        agents: how many by agent.
        first: time of the earliest.
        last: time of the latest.
    """

    lines: int
    values: Counter[str]
    agents: Counter[str]
    first: datetime | None
    last: datetime | None


@dataclass(frozen=True, kw_only=True)
class Rejection:
    """The records that are rejected for one reason.

    Args:
        reason: the reason.
        lines: how many.
        first_line: number of the first line, or record of a document.
    """

    reason: str
    lines: int
    first_line: int


@dataclass(frozen=True, kw_only=True)
class Inspection:
    """What a file comes to.

    Args:
        name: its name.
        formats: what it was taken for; none or several where nobody knows.
        look: what it looks like where no reader knows it.
        passed_over: why a load does not look at it, for its name.
        records: its records, by type.
        rejections: why records are rejected, the most frequent reasons first.
        notes: what was ignored or mended, and how often.
    """

    name: str
    formats: list[str]
    look: str | None
    passed_over: str | None
    records: dict[str, Records] = field(default_factory=dict)
    rejections: list[Rejection] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)

    @property
    def is_useful(self) -> bool:
        """Whether a load would keep any record of it."""
        return bool(self.records) and self.passed_over is None


def files_at(path: Path, format_settings: FormatSettings | None = None) -> list[RawFile]:
    """The file, or the logs below a folder.

    Args:
        path: the file or the folder.
        format_settings: settings of formats.

    Raises:
        HealthAssetsError: there is none, or it cannot be read.
    """
    if path.is_dir():
        if not (found := list_files(path, format_settings=format_settings)):
            raise HealthAssetsError(f"no file below {path} has a name that counts; {NAMES_THAT_COUNT}")
        return found
    try:
        status = path.stat()
    except OSError as error:
        raise HealthAssetsError(f"cannot look at {path}: {error.strerror}") from error
    if not path.is_file():
        raise HealthAssetsError(f"{path} is neither a file nor a folder")
    own = RawFile(source_file=path.name, path=path, size_bytes=status.st_size, modified_ns=status.st_mtime_ns)
    return [replace(own, format_settings=format_settings)]


def inspected(file: RawFile, targets: Targets, limits: Limits) -> Inspection:
    """What a file comes to.

    Args:
        file: the file.
        targets: the patterns that texts are redacted by, and agents' names mapped.
        limits: limits on what is taken of it.

    Raises:
        HealthAssetsError: it cannot be read.
    """
    head, _ = head_of(file, as_utf_8(plain_blocks(file, limits.unpacking)))
    own = file.format_settings.own if file.format_settings else ()
    formats = list(dict.fromkeys(known.name for known in recognized(Opening(file.source_file, head), own)))
    notes: Notes = {}
    counted: list[tuple] = []
    with reading([file], notes, limits=limits) as parser:
        counted += _counted(parser.records(targets))
        for of_otlp in (parser.spans, parser.evaluations):
            with of_otlp(targets) as rows:
                counted += _counted(rows) if rows is not None else []
    records = dict(_records(counted))
    is_lines = not formats and bool(records)
    return Inspection(
        name=file.source_file,
        formats=[NATIVE] if is_lines else formats,
        look=None if formats or records else str(look_of(head)),
        passed_over=None if LOG_NAME.search(file.source_file) else NAMES_THAT_COUNT,
        records=records,
        rejections=_rejections(counted),
        notes=notes.get(0, Counter()),
    )


def _counted(rows: pa.RecordBatchReader) -> list[tuple]:
    """(record type, agent, status or kind, reason, lines, first line, first time, last time) of groups of rows."""
    columns = rows.schema.names
    value = " ".join(f"WHEN '{kind}' THEN {column}" for kind, column in _WHAT.items() if column in columns)
    time = f"coalesce({', '.join(column for column in _TIMES if column in columns)})"
    reason = f"CASE WHEN record_type = '{REJECTED}' THEN reason END"
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("rows", rows)
        return connection.execute(
            f"SELECT record_type, agent_id, CASE record_type {value} END AS value, {reason} AS reason, count(*), "
            f"min(line_number), min({time}), max({time}) FROM rows GROUP BY ALL ORDER BY ALL"
        ).fetchall()


def _records(counted: list[tuple]) -> Iterator[tuple[str, Records]]:
    for kind in sorted({row[0] for row in counted} - {REJECTED}):
        own = [row for row in counted if row[0] == kind]
        values, agents = Counter[str](), Counter[str]()
        for _, agent, value, _, lines, *_ in own:
            if value is not None:
                values[value] += lines
            if agent is not None:
                agents[agent] += lines
        times = [time for row in own for time in row[6:8] if time is not None]
        yield (
            kind,
            Records(
                lines=sum(row[4] for row in own),
                values=values,
                agents=agents,
                first=min(times, default=None),
                last=max(times, default=None),
            ),
        )


def _rejections(counted: list[tuple]) -> list[Rejection]:
    of_reason: dict[str, list[tuple]] = {}
    for row in counted:
        if row[0] == REJECTED:
            of_reason.setdefault(row[3], []).append(row)
    found = [
        Rejection(reason=reason, lines=sum(row[4] for row in rows), first_line=min(row[5] for row in rows))
        for reason, rows in of_reason.items()
    ]
    return sorted(found, key=lambda one: (-one.lines, one.first_line))
