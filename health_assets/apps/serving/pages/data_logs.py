"""Raw logs for the page of the data: the files, and the lines of them that were rejected.

What belongs here: finding files and reasons, worst first. What does not: who may see them (`data_page`), and how they
look, of which the templates take care.
"""

from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from health_assets.apps.serving.pages.data_hours import without_path
from health_assets.apps.serving.pages.scoped_history import ScopedHistory
from health_assets.core.hours import HOUR

SAMPLES_SHOWN = 3
WORST_FIRST = [
    ("badness", "ascending"), ("rejected", "descending"), ("modified_ns", "descending"), ("source_file", "ascending"),
]  # fmt: skip
STATES = ("unreadable", "gone", "rejected", "odd", "read", "copy")
"""States of files, the worst first."""


def rejected_of(look: ScopedHistory, text: str) -> list[dict[str, Any]]:
    """The reasons for which lines of the last 7 days were rejected, the most frequent ones of the last day first.

    Args:
        look: the part of the history that the caller sees.
        text: part of the reason, the file's name or the line, in any case; all reasons for none.

    Returns:
        For each `reason`, `lines_24h`, `lines_7d`, `last_hour`, and `samples`, the newest first: `hour`,
        `source_file`, and for callers from whom nothing is hidden `line_number`, `detail` and `raw`: the text may be
        of an agent that is somebody's own, and the number tells how much its log holds.
    """
    rows = look.history.between("rejected", look.back(7))
    if not rows.num_rows:
        return []
    day = look.hour - 24 * HOUR
    found: dict[str, dict[str, Any]] = {}
    samples: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows.sort_by([("hour", "descending"), ("reason", "ascending"), ("place", "ascending")]).to_pylist():
        one = found.setdefault(row["reason"], {"reason": row["reason"], "lines_24h": 0, "lines_7d": 0, "samples": []})
        one.setdefault("last_hour", row["hour"])
        if row["place"] == 0:
            one["lines_7d"] += row["lines"]
            one["lines_24h"] += row["lines"] if row["hour"] > day else 0
        shown = ("hour", "source_file", *(("line_number", "detail", "raw") if look.hides_nothing else ()))
        sample = {name: row[name] for name in shown}
        if _is_found(text, row["reason"], *(sample[name] for name in shown if name not in ("hour", "line_number"))):
            samples[row["reason"]].append(sample)
    for reason, own in samples.items():
        found[reason]["samples"] = own[:SAMPLES_SHOWN]
    kept = [found[reason] for reason in samples]
    return sorted(kept, key=lambda one: (-one["lines_24h"], -one["lines_7d"], one["reason"]))


def _is_found(text: str, *among: str) -> bool:
    return not text or any(text.casefold() in one.casefold() for one in among)


def samples_of(look: ScopedHistory, text: str) -> list[dict[str, Any]]:
    """The samples of rejected lines, a sample a dict with the counts of its reason."""
    return [
        {**{name: value for name, value in one.items() if name != "samples"}, **sample}
        for one in rejected_of(look, text)
        for sample in one["samples"]
    ]


def lines_of(look: ScopedHistory, days: int) -> int:
    """The lines of so many days that were rejected."""
    rows = look.history.between("rejected", look.back(days))
    if not rows.num_rows:
        return 0
    return pc.sum(rows.filter(pc.equal(rows.column("place"), 0)).column("lines")).as_py() or 0


def files_of(look: ScopedHistory) -> pa.Table:
    """The raw logs, worst first: those that cannot be read, are gone, or hold rejected lines; then the newest.

    Where something is hidden from the caller those of a state are in the order of their names: any other would tell
    which log somebody wrote to.
    """
    files, notes = look.history.whole("files"), look.history.whole("file_notes")
    if files is None or notes is None:
        return pa.table({})
    names = {kind: notes.filter(pc.equal(notes.column("kind"), kind)).column("source_file") for kind in NOTED}
    known = files.column("source_file")
    unread = names["unreadable"].filter(pc.invert(pc.is_in(names["unreadable"], value_set=known.combine_chunks())))
    if len(unread):  # nobody has read them yet, so they have a note and no row
        files = pa.concat_tables([files, pa.table({"source_file": unread})], promote_options="default")
    own = files.column("source_file")
    is_noted = {kind: pc.is_in(own, value_set=names[kind].combine_chunks()) for kind in NOTED}
    conditions = {
        "unreadable": is_noted["unreadable"],
        "gone": pc.is_valid(files.column("gone_at")),
        "rejected": pc.fill_null(pc.greater(files.column("rejected"), 0), False),
        "odd": is_noted["odd"],
        "copy": pc.is_valid(files.column("copy_of")),
    }
    badness = pc.if_else(pc.is_valid(own), STATES.index("read"), 0)
    for state in reversed(STATES):
        if state in conditions:
            badness = pc.if_else(conditions[state], STATES.index(state), badness)
    order = WORST_FIRST if look.hides_nothing else [("badness", "ascending"), ("source_file", "ascending")]
    return files.append_column("badness", badness).sort_by(order)


NOTED = ("unreadable", "odd")


def of_name(files: pa.Table, text: str) -> pa.Table:
    """The files of which a part of the name is this text, in any case."""
    if not text or not files.num_rows:
        return files
    return files.filter(pc.match_substring(files.column("source_file"), text, ignore_case=True))


def told_files(look: ScopedHistory, files: pa.Table) -> list[dict[str, Any]]:
    """Some files, a file a dict.

    Returns:
        For each `source_file`, `state`, `lines`, `rejected`, `size_bytes`, `plain_bytes` (unpacked), `modified_at`,
        `copy_of`, `gone_at`, and `notes`: why it is not read, what is odd about it, what else was counted. Numbers,
        times and what was counted are for callers from whom nothing is hidden: a log may be a personal agent's.
    """
    if not files.column_names:
        return []
    notes = look.history.whole("file_notes")
    own: dict[str, list[str]] = defaultdict(list)
    if notes is not None:
        for note in notes.filter(pc.is_in(notes.column("source_file"), value_set=_names(files))).to_pylist():
            if note["kind"] == "counted" and not look.hides_nothing:
                continue
            text = without_path(note["note"], note["source_file"])
            own[note["source_file"]].append(text if note["kind"] != "counted" else f"{note['records']:,} {text}")
    return [
        {
            "source_file": one["source_file"],
            "state": STATES[one["badness"]],
            **(_amounts(one) if look.hides_nothing else NO_AMOUNTS),
            "copy_of": one["copy_of"],
            "notes": own[one["source_file"]],
        }
        for one in files.to_pylist()
    ]


def _amounts(file: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of a file that tell how much was written to it, and when."""
    amounts = {name: file[name] for name in ("lines", "rejected", "size_bytes", "plain_bytes")}
    return amounts | {"modified_at": _moment(file["modified_ns"]), "gone_at": file["gone_at"]}


NO_AMOUNTS = dict.fromkeys(("lines", "rejected", "size_bytes", "plain_bytes", "modified_at", "gone_at"))


def _names(files: pa.Table) -> pa.Array:
    return files.column("source_file").combine_chunks()


def _moment(nanoseconds: int | None) -> datetime | None:
    """The second of a file's time."""
    return None if nanoseconds is None else datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=nanoseconds // 10**9)


def counts_of_files(files: pa.Table) -> dict[str, int]:
    """Counts the files in each state."""
    counts = dict.fromkeys(STATES, 0)
    if files.num_rows:
        for one in pc.value_counts(files.column("badness")).to_pylist():
            counts[STATES[one["values"]]] = one["counts"]
    return counts
