"""Limits: how much is taken of what logs say, since anybody may have written them.

What belongs here: the limits and the sentences that name them. What does not: applying them (`files`, `native`, `otlp`,
`routing`).

Ids and names are short, texts may be long. An event is not later than now: a later one is rejected until its time has
come, and its file is read again then. Of a file with very many bad lines the first are kept with their text, and the
others are one rejected record with their number; good lines are loaded wherever they stand. Of a file that unpacks to
more than anybody writes, the beginning is read, and the rest is one rejected record.
"""

import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from health_assets.core.settings import Settings, load_settings
from health_assets.core.text_limits import MOST_NAME_BYTES

BLOCK_BYTES = 8 << 20
"""Most bytes of a file that are read at once; the first of them tell what it is."""
MOST_TEXT_BYTES = 64 << 10
"""Most bytes of UTF-8 that a text may have; of a longer one the beginning is kept, with its length behind."""
MOST_LIST_BYTES = 1 << 20
"""Most bytes of JSON that a list of names may have; sequences of actions are compared with each other."""
_SAID_BYTES = 64
"""Room for what is said of a cut behind a text, within its most bytes."""

NAME = "text that is not empty, of at most 1 KiB"
NAME_OR_NOTHING = "text of at most 1 KiB"
IN_THE_FUTURE = "is in the future; it must be no later than now"


class Unpacking(NamedTuple):
    """Limits of the bytes of one file.

    Args:
        most_bytes: most that is read of it, once it is unpacked.
        ratio: most bytes for each packed one; does not count before `UNPACKED_ANYWAY` bytes.
    """

    most_bytes: int
    ratio: int = sys.maxsize


WITHOUT_LIMIT = Unpacking(sys.maxsize)
UNPACKED_ANYWAY = 256 << 20
"""Bytes of any packed file that are read, however small it is."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of what one run takes of logs.

    Args:
        until: the latest time of an event: that of the run, with as much as clocks may differ.
        rejected_lines: rejected lines of one file that are kept with their text; at least 1.
        unpacked_bytes: most bytes of one file that are read, once it is unpacked.
        packing_ratio: most bytes of a packed file for each packed byte, once it is large.
        lines: most lines of one file that are read.
        keeps_user_ids: whether ids of users are kept, and not only their digests.
    """

    until: datetime
    rejected_lines: int
    unpacked_bytes: int
    packing_ratio: int = sys.maxsize
    lines: int = sys.maxsize
    keeps_user_ids: bool = False

    @classmethod
    def of(cls, settings: Settings, now: datetime) -> "Limits":
        """The limits of a run.

        Args:
            settings: the settings.
            now: the time of the run, aware.
        """
        return cls(
            until=now.astimezone(UTC) + timedelta(seconds=settings.clock_skew_s),
            rejected_lines=settings.max_rejected_lines,
            unpacked_bytes=settings.max_unpacked_gib << 30,
            packing_ratio=settings.max_packing_ratio,
            lines=settings.max_lines,
            keeps_user_ids=settings.user_ids == "plain",
        )

    @property
    def unpacking(self) -> Unpacking:
        """The limits of the bytes of one file."""
        return Unpacking(self.unpacked_bytes, self.packing_ratio)

    @property
    def until_sql(self) -> str:
        """`until` as DuckDB writes it."""
        return f"TIMESTAMPTZ '{self.until:%Y-%m-%d %H:%M:%S.%f}+00'"


def current_limits() -> Limits:
    """The limits of the environment, now."""
    return Limits.of(load_settings(), datetime.now(UTC))


def is_name(value: str) -> str:
    """SQL for whether a text is a name: not empty, and not too long."""
    return f"strlen({value}) BETWEEN 1 AND {MOST_NAME_BYTES}"


def is_short(value: str) -> str:
    """SQL for whether a text is as short as a name, or empty."""
    return f"strlen({value}) <= {MOST_NAME_BYTES}"


def cut_text(text: str, most_bytes: int = MOST_TEXT_BYTES) -> str:
    """SQL for a text, or for its beginning with its length behind where it is too long.

    Args:
        text: SQL for the text.
        most_bytes: most bytes of the result.
    """
    said = f"' … (cut, ' || printf('%,d', strlen({text})) || ' bytes)'"
    cut = f"{beginning(text, most_bytes - _SAID_BYTES)} || {said}"
    return f"CASE WHEN strlen({text}) <= {most_bytes} THEN {text} ELSE {cut} END"


def beginning(text: str, most_bytes: int) -> str:
    """SQL for the first bytes of a text in UTF-8, cut between two characters."""
    cuts = ", ".join(f"TRY(decode(encode({text})[1:{most_bytes - shorter}]))" for shorter in range(4))
    return f"coalesce({cuts})"
