"""The text of one line of a raw log, read from the file itself in the reader's process.

What belongs here: finding the file below the raw root, the line in it, whether the file is still the one that was
loaded. What does not: how its text is shown (`apps.serving.line_text`), and who may see it
(`apps.serving.pages.line_page`).

Only files of the ledger are read, so that an address cannot name anything else below the raw root.
"""

from dataclasses import replace
from typing import Any

import ibis
import pyarrow as pa

from health_assets.apps.serving.line_text import shown_text
from health_assets.core.redaction import Redaction
from health_assets.core.settings import Settings
from health_assets.logs.decompression import decompressed_blocks
from health_assets.logs.formats.foreign_lines import Damage
from health_assets.logs.formats.format_settings import FormatSettings
from health_assets.logs.identity import Hasher
from health_assets.logs.limits import Unpacking
from health_assets.logs.stores import RawFile, find_file
from health_assets.logs.written_lines import written_line
from health_assets.warehouse.session import Session

MOST_CHARACTERS = 64 << 10
MOST_COMPARED_BYTES = 1 << 30
"""Longest file whose content is compared with what was loaded; of a longer one only size and time are."""
UNKNOWN, GONE, SAME, GROWN, CHANGED, SHORT = "unknown", "gone", "same", "grown", "changed", "short"
"""What became of a file, or of its line, since it was loaded."""


def known_file(session: Session, source_file: str) -> dict[str, Any] | None:
    """The row of the ledger on a raw log; None for one that it does not know."""
    wanted = ibis.memtable(pa.table({"source_file": pa.array([source_file], pa.string())}))
    files = session.table("raw_files").semi_join(wanted, "source_file")
    columns = ("source_file", "size_bytes", "modified_ns", "changed_ns", "plain_bytes", "content_digest", "gone_at")
    return next(iter(session.dicts(files.select(*columns))), None)


def line_of(settings: Settings, redaction: Redaction, known: dict[str, Any] | None, number: int) -> dict[str, Any]:
    """A line of a raw log without its secrets.

    Args:
        settings: the raw root, and the limit of unpacked files.
        redaction: what counts as a secret.
        known: result of `known_file`.
        number: number of the line, from 1.

    Returns:
        `state`: what became of the file since it was loaded; `text`: the line as it is shown, None where there is none;
        `is_converted`: whether the file is a document, so that the text is what its reader made of it;
        `cut_characters`: how many are left out at the end.
    """
    nothing = {"text": None, "is_converted": False, "cut_characters": 0}
    if known is None:
        return {"state": UNKNOWN, **nothing}
    file = find_file(settings.raw, known["source_file"])
    if file is None:
        return {"state": GONE, **nothing}
    file = replace(file, format_settings=FormatSettings.of(settings))
    most = Unpacking(settings.max_unpacked_gib << 30, settings.max_packing_ratio)
    state = _state(file, known, most)
    line = written_line(file, number, most)
    if line.text is None:
        return {"state": SHORT, **nothing}
    kept = shown_text(line.text, redaction)
    return {
        "state": state,
        "text": kept[:MOST_CHARACTERS],
        "is_converted": line.is_converted,
        "cut_characters": max(0, len(kept) - MOST_CHARACTERS),
    }


def _state(file: RawFile, known: dict[str, Any], most: Unpacking) -> str:
    """Whether the file is what was loaded: by size and times, else by its content."""
    if _is_untouched(file, known):
        return SAME
    if known["content_digest"] is None or known["plain_bytes"] > MOST_COMPARED_BYTES:
        return CHANGED
    hasher, left, has_more = Hasher(file), known["plain_bytes"], False
    for block in decompressed_blocks(file, most):
        if isinstance(block, Damage):
            break
        if left:
            hasher.add(block[:left])
        has_more = len(block) > left
        left -= min(left, len(block))
        if has_more:
            break
    if hasher.digest != known["content_digest"]:
        return CHANGED
    return GROWN if has_more else SAME


def _is_untouched(file: RawFile, known: dict[str, Any]) -> bool:
    """Whether size and times are those of the ledger, which of older programs has no change time."""
    size, modified, changed = file.stamp
    is_as_changed = known["changed_ns"] is None or changed == known["changed_ns"]
    return is_as_changed and (size, modified) == (known["size_bytes"], known["modified_ns"])
