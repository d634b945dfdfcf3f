"""Files without any event: for people who wonder why, what each looks like and why its first lines are rejected."""

from collections.abc import Sequence
from dataclasses import replace

from health_assets.core.errors import HealthAssetsError
from health_assets.core.formatting import counted
from health_assets.core.targets import Targets
from health_assets.logs.decompression import decompressed_blocks
from health_assets.logs.files import RawFile
from health_assets.logs.limits import Limits, Unpacking
from health_assets.logs.reader import log_parser
from health_assets.logs.unicode import as_utf_8
from health_assets.logs.unknown_formats import hint_of

FILES_SHOWN = 5
REASONS_SHOWN = 2
MOST_LOOKED_AT = 256 << 10
"""Bytes of a file that is read line by line; any other is read up to `MOST_DOCUMENT`."""
MOST_DOCUMENT = 8 << 20


def sentences_about(files: Sequence[RawFile], targets: Targets, limits: Limits) -> list[str]:
    """A sentence for each of the first files of which no line is an event.

    Args:
        files: files of which no line is known to be good.
        targets: the patterns that texts are redacted by.
        limits: limits on what is taken of files.
    """
    shown = [_sentence(file, targets, limits) for file in files[:FILES_SHOWN]]
    if len(files) > FILES_SHOWN:
        shown.append(f"and {counted(len(files) - FILES_SHOWN, 'more file')}")
    return shown


def _sentence(file: RawFile, targets: Targets, limits: Limits) -> str:
    try:
        beginning = replace(file, size_bytes=min(file.size_bytes, MOST_LOOKED_AT))
        head = next(as_utf_8(decompressed_blocks(beginning, Unpacking(1 << 20))), b"")
        reasons = _reasons(file, targets, limits)
    except HealthAssetsError as error:
        return str(error)
    if not file.size_bytes:
        return f"{file.source_file} is empty"
    look = f"{file.source_file} {hint_of(head)}" if isinstance(head, bytes) else f"{file.source_file}: {head.reason}"
    return f"{look} ({'; '.join(reasons)})" if reasons else look


def _reasons(file: RawFile, targets: Targets, limits: Limits) -> list[str]:
    """The reasons of its first lines, each once."""
    most = MOST_LOOKED_AT if file.source_file.lower().endswith(("jsonl", "ndjson")) else MOST_DOCUMENT
    beginning = replace(file, size_bytes=min(file.size_bytes, most))
    rows: list[tuple[int, str]] = []
    with log_parser([beginning], limits=limits, single_threaded=True) as parser:
        for batch in parser.records(targets):
            rows += zip(batch["line_number"].to_pylist(), batch["reason"].to_pylist(), strict=True)
        for of_otlp in (parser.spans, parser.evaluations):
            with of_otlp(targets) as stream:
                for batch in stream or ():
                    rows += zip(batch["line_number"].to_pylist(), batch["reason"].to_pylist(), strict=True)
    first: dict[str, int] = {}
    for number, reason in sorted((number, reason) for number, reason in rows if reason):
        first.setdefault(reason, number)
    return [f"line {number:,}: {reason}" for reason, number in [*first.items()][:REASONS_SHOWN]]
