"""What the readers of other tools' logs made of a file: the lines, and the spans among them."""

import json
from collections import Counter
from datetime import datetime
from typing import Any

from health_assets.logs.files import Notes, line_batches, list_files
from health_assets_tests.support.projects import Project

Row = dict[str, Any]


def lines_of(project: Project) -> tuple[list[Row], Counter[str]]:
    """All lines that the raw logs come to, and what was noted."""
    notes: Notes = {}
    batches = line_batches(enumerate(list_files(project.raw)), notes)
    lines = [row for batch in batches for row in batch.to_pylist()]
    return lines, sum(notes.values(), Counter())


def spans_of(row: Row, zero: datetime) -> list[Row]:
    """Spans of an OTLP line, their attributes as a dictionary and their times in seconds after a moment."""
    [resource] = json.loads(row["line"])["resourceSpans"]
    [scope] = resource["scopeSpans"]
    zero_ns = int(zero.timestamp()) * 10**9
    return [
        span | {
            "attributes": {item["key"]: next(iter(item["value"].values())) for item in span["attributes"]},
            "times": tuple((int(span[f"{name}TimeUnixNano"]) - zero_ns) / 1e9 for name in ("start", "end")),
        }
        for span in scope["spans"]
    ]  # fmt: skip
