"""What a file of logs comes to, without a warehouse.

What belongs here: reading a file as a load would, and counting what it comes to. What does not: how it is shown
(`apps.inspecting`).
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import duckdb
import pyarrow as pa

from health_assets.core.errors import HealthAssetsError
from health_assets.core.targets import Targets
from health_assets.logs.decompression import decompressed_blocks
from health_assets.logs.files import Notes, head_of
from health_assets.logs.formats import NATIVE, taken_for
from health_assets.logs.formats.foreign_lines import Blocks, Damage
from health_assets.logs.formats.format_settings import FormatSettings
from health_assets.logs.limits import Limits
from health_assets.logs.reader import log_parser
from health_assets.logs.stores import LOG_NAME, NAMES_THAT_COUNT, RawFile, list_files
from health_assets.logs.unicode import as_utf_8
from health_assets.logs.unknown_formats import hint_of

REJECTED = "rejected"
FILES_AT_ONCE = 100
_TIMES = ("ended_at", "fired_at", "given_at", "evaluated_at", "judged_at", "updated_at")
_WHAT = {"execution": "status", "model_call": "status", "tool_call": "status", "trigger": "status", "span": "kind"}
"""The column of each record type whose values are counted one by one."""


class _Group(NamedTuple):
    """Rows of a file that have the same type, agent, status or kind, and reason."""

    file_id: int
    record_type: str
    agent_id: str | None
    value: str | None
    reason: str | None
    lines: int
    first_line: int
    first: datetime | None
    last: datetime | None


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
        """Whether a load would keep any record of it, or knows that it has none."""
        is_known = bool(self.records) or (bool(self.notes) and not self.rejections)
        return is_known and self.passed_over is None


def files_at(
    path: Path,
    format_settings: FormatSettings | None = None,
    file_warnings: dict[str, str] | None = None,
    unreadable: dict[str, str] | None = None,
) -> list[RawFile]:
    """The file, or the logs below a folder.

    Args:
        path: the file or the folder.
        format_settings: settings of formats.
        file_warnings: is filled as by `list_files`, but by path; a folder with such needs no log.
        unreadable: is filled as by `list_files`; a folder with such needs no log, either.

    Raises:
        HealthAssetsError: there is none, or it cannot be read.
    """
    if path.is_dir():
        odd: dict[str, str] = {}
        found = list_files(path, unreadable, odd, format_settings)
        if not found and not unreadable and (file_warnings is None or not odd):
            raise HealthAssetsError(f"no file below {path} has a name that counts; {NAMES_THAT_COUNT}")
        if file_warnings is not None:
            file_warnings |= {str(path / name): file_warning for name, file_warning in odd.items()}
        return found
    try:
        status = path.stat()
    except OSError as error:
        raise HealthAssetsError(f"cannot look at {path}: {error.strerror}") from error
    if not path.is_file():
        raise HealthAssetsError(f"{path} is neither a file nor a folder")
    own = RawFile(source_file=path.name, path=path, size_bytes=status.st_size, modified_ns=status.st_mtime_ns)
    return [replace(own, format_settings=format_settings)]


def inspected(files: Sequence[RawFile], targets: Targets, limits: Limits) -> Iterator[Inspection]:
    """What each file comes to; some are read at once, since a reading costs more than a small file.

    Args:
        files: the files.
        targets: the patterns that texts are redacted by, and agents' names mapped.
        limits: limits on what is taken of them.

    Raises:
        HealthAssetsError: one cannot be read.
    """
    waiting = iter(files)
    while some := list(islice(waiting, FILES_AT_ONCE)):
        notes: Notes = {}
        counted: dict[int, list[_Group]] = defaultdict(list)
        with log_parser(some, notes, limits=limits) as parser:
            for group in _counted(parser.records(targets)):
                counted[group.file_id].append(group)
            for of_otlp in (parser.spans, parser.evaluations):
                with of_otlp(targets) as rows:
                    for group in _counted(rows) if rows is not None else ():
                        counted[group.file_id].append(group)
        for file_id, file in enumerate(some):
            yield _inspection(file, counted[file_id], notes.get(file_id, Counter()), limits)


def _inspection(file: RawFile, counted: Sequence[_Group], notes: Counter[str], limits: Limits) -> Inspection:
    head, blocks = head_of(file, as_utf_8(decompressed_blocks(file, limits.unpacking)))
    taken, records = taken_for(file, head), dict(_records(counted))
    return Inspection(
        name=file.source_file,
        formats=taken.names or ([NATIVE] if records else []),
        look=None if taken.names or taken.is_private or records else _look(head, blocks),
        passed_over=None if LOG_NAME.search(file.source_file) else NAMES_THAT_COUNT,
        records=records,
        rejections=_rejections(counted),
        notes=notes,
    )


def _look(head: bytes, blocks: Blocks) -> str:
    first = next(blocks, None)
    return f"cannot be read: {first.reason}" if isinstance(first, Damage) else str(hint_of(head))


def _counted(rows: pa.RecordBatchReader) -> list[_Group]:
    columns = rows.schema.names
    value = " ".join(f"WHEN '{kind}' THEN {column}" for kind, column in _WHAT.items() if column in columns)
    time = f"coalesce({', '.join(column for column in _TIMES if column in columns)})"
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("rows", rows)
        found = connection.execute(
            f"SELECT file_id, record_type, agent_id, CASE record_type {value} END AS value, "
            f"CASE WHEN record_type = '{REJECTED}' THEN reason END AS reason, count(*), min(line_number), "
            f"min({time}), max({time}) FROM rows GROUP BY ALL ORDER BY ALL"
        ).fetchall()
    return [_Group(*row) for row in found]


def _records(counted: Sequence[_Group]) -> Iterator[tuple[str, Records]]:
    for kind in sorted({group.record_type for group in counted} - {REJECTED}):
        own = [group for group in counted if group.record_type == kind]
        values, agents = Counter[str](), Counter[str]()
        for group in own:
            if group.value is not None:
                values[group.value] += group.lines
            if group.agent_id is not None:
                agents[group.agent_id] += group.lines
        yield (
            kind,
            Records(
                lines=sum(group.lines for group in own),
                values=values,
                agents=agents,
                first=min((group.first for group in own if group.first is not None), default=None),
                last=max((group.last for group in own if group.last is not None), default=None),
            ),
        )


def _rejections(counted: Sequence[_Group]) -> list[Rejection]:
    of_reason: dict[str, list[_Group]] = defaultdict(list)
    for group in counted:
        if group.record_type == REJECTED:
            of_reason[group.reason or ""].append(group)
    found = [
        Rejection(
            reason=reason,
            lines=sum(group.lines for group in groups),
            first_line=min(group.first_line for group in groups),
        )
        for reason, groups in of_reason.items()
    ]
    return sorted(found, key=lambda one: (-one.lines, one.first_line))
