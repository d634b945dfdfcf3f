"""Openings of files: all that a format may look at to tell whether a file is one of its own.

What belongs here: the name, the first line and the first members, each read once for all formats. What does not: what
they mean to one format (its own module), and the list of formats (`logs.formats`).
"""

import json
from dataclasses import dataclass
from functools import cached_property

from health_assets.logs.formats import inspect_eval, langfuse, native_document, otlp_document, phoenix
from health_assets.logs.formats.foreign_lines import Record
from health_assets.logs.formats.json_pieces import first_listed, opening
from health_assets.logs.stores import LINES_NAME

BEFORE_AN_OBJECT = (b"[", b",", b":")
"""How a document's line ends if an object may stand in its next one."""

MOST_FIRST_LINES = 20
"""Lines among which one is looked for that tells a format of which not every line does."""

OPEN_DOCUMENTS = (b"{", b"[", b"[{")
"""First lines of a document that somebody made readable."""


@dataclass(frozen=True)
class Opening:
    """The name and the first bytes of a file.

    Args:
        source_file: its path below the raw root.
        head: its first bytes, at least the whole first line that is not blank where that is not very long.
    """

    source_file: str
    head: bytes

    @cached_property
    def is_named_lines(self) -> bool:
        """Whether the name says that each line is a record by itself, as `.jsonl` does, and the first line may be."""
        return LINES_NAME.search(self.source_file) is not None and not self._begins_a_document

    @property
    def _begins_a_document(self) -> bool:
        """Whether the first line is that of a document over many lines, or a list and nothing follows it."""
        if self.first_line in OPEN_DOCUMENTS:
            return bool(self._rest) and not _object(self._rest.partition(b"\n")[0])
        return self.first_line.startswith(b"[") and self.first_line[1:].lstrip()[:1] == b"{" and not self._rest

    @cached_property
    def first_line(self) -> bytes:
        """The first line that is not blank, without its end; empty in a file without any."""
        return self.head.lstrip().partition(b"\n")[0].rstrip()

    @cached_property
    def _rest(self) -> bytes:
        return self.head.lstrip().partition(b"\n")[2].strip()

    @property
    def is_zip(self) -> bool:
        """Whether it is a ZIP archive."""
        return self.head.startswith(inspect_eval.ZIP_MAGIC) and not self.is_named_lines

    @cached_property
    def record(self) -> Record:
        """The JSON object that is the first line; the second one where the first is damaged; empty if it is none."""
        if self.is_zip:
            return {}
        found = _object(self.first_line)
        if not found and not self.is_named_lines and not self.first_line.endswith(BEFORE_AN_OBJECT):
            return _object(self._rest.partition(b"\n")[0])
        return found

    @cached_property
    def first_records(self) -> list[Record]:
        """Objects of the first lines where each may be a record and the first one is none of a format known here."""
        if self._is_known_line:
            return []
        if not self.is_named_lines:
            return [self.record]
        lines = self.head.lstrip().split(b"\n", MOST_FIRST_LINES)[:MOST_FIRST_LINES]
        return list(filter(None, map(_object, lines)))

    @property
    def is_unfinished(self) -> bool:
        """Whether the file is named as lines, and its first one has no end yet."""
        return self.is_named_lines and bool(self.head.strip()) and b"\n" not in self.head.strip()

    @cached_property
    def is_otlp_line(self) -> bool:
        """Whether that object is a line of a collector's file, rather than a document of OTLP-JSON in one line."""
        is_one_of_many = self.is_named_lines or bool(self._rest)
        return otlp_document.is_document(self.record) and (is_one_of_many or len(self.record) == 1)

    @cached_property
    def holds_otlp_logs(self) -> bool:
        """Whether something in it may be a line of OTLP's logs."""
        return b'esourceLogs"' in self.head or b'esource_logs"' in self.head

    @cached_property
    def is_document(self) -> bool:
        """Whether the file is one JSON document: its name allows it, and its first line is no record by itself."""
        return not self.is_named_lines and not self._is_known_line

    @cached_property
    def _is_known_line(self) -> bool:
        """Whether the first line is a record by itself, of a format of which each line tells it."""
        tells = (native_document.is_record, langfuse.is_record, phoenix.is_annotation)
        return self.is_otlp_line or any(is_record(self.record) for is_record in tells)

    @property
    def is_foreign_object(self) -> bool:
        """Whether it is a document that begins with an object, which is no native record."""
        return self._is_foreign and self._first == "{"

    @property
    def is_foreign_list(self) -> bool:
        """Whether it is a document that begins with a list, which is not one of native records."""
        return self._is_foreign and self._first == "["

    @property
    def _is_foreign(self) -> bool:
        return self.is_document and not native_document.is_record(self.members)

    @property
    def _first(self) -> str:
        return self._document[0]

    @property
    def members(self) -> Record:
        """Members of a document's object, or of its list's first element.

        A member whose value is not whole in the head is None; a head that is no JSON has no members.
        """
        return self._document[1]

    @cached_property
    def listed(self) -> Record:
        """Members of the first element of the list `data` of a document's object, as answers of APIs have it."""
        return self.listed_in("data")

    def listed_in(self, name: str) -> Record:
        """Members of the first element of a list of this name that a document's object has; for `*` of its first."""
        return first_listed(self.head, name)

    @cached_property
    def has_lines(self) -> bool:
        """Whether each line may be a record: the name says so, or others follow a first one that is an object."""
        return self.is_named_lines or (bool(self.record) and bool(self._rest))

    @cached_property
    def _document(self) -> tuple[str, Record]:
        return opening(self.head)


def _object(line: bytes) -> Record:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
