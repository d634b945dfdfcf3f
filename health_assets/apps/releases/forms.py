"""Comparisons and the gate in the forms of other programs: JSON, Markdown and JUnit."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from xml.etree import ElementTree as ET

from health_assets.apps.releases.gate import PASSED, REFUSED, Judged
from health_assets.core.terminal import printable
from health_assets.systems.release_comparison.comparison_rows import Comparison, by_pair
from health_assets.systems.release_comparison.report import mixes_told
from health_assets.systems.release_comparison.texts import (
    NAMES,
    difference_text,
    margin_text,
    runs_text,
    value_text,
    verdict_text,
)

HEADINGS = ("agent", "release", "measure", "before", "now", "difference (95%)", "margin", "runs", "verdict")


def as_json(rows: Sequence[Comparison]) -> str:
    """The rows with the names of their columns."""
    return json.dumps([{name: _plain(value) for name, value in row.items()} for row in rows], indent=2)


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def as_markdown(rows: Sequence[Comparison]) -> str:
    """A table for a pull request."""
    lines = [_line(HEADINGS), _line(["---"] * len(HEADINGS))]
    for row in rows:
        values = [value_text(row["measure"], row[name]) for name in ("estimate_from", "estimate_to")]
        release = f"{row['dimension']} {row['from_version']} → {row['to_version']}"
        cells = [row["agent_id"], release, NAMES[row["measure"]], *values, difference_text(row)]
        lines.append(_line([*cells, margin_text(row), runs_text(row), f"**{verdict_text(row)}**"]))
    notes = [f"\n{_escaped(told)}" for told in mixes_told(by_pair(rows))]
    return "\n".join([*lines, *notes])


def _line(cells: Sequence[str]) -> str:
    """A line of a table; text from logs can neither end a cell nor begin a tag or a link."""
    return f"| {' | '.join(_escaped(cell) for cell in cells)} |"


def _escaped(text: str) -> str:
    return printable(text, 1000).translate({ord(one): f"\\{one}" for one in "\\|<>[]`"})


def as_junit(name: str, reasons: Sequence[Judged]) -> str:
    """A test suite with a test for each reason: failed where it is against the release, skipped where it is open."""
    failures = sum(reason.exit_code == REFUSED for reason in reasons)
    skipped = sum(reason.exit_code not in (REFUSED, PASSED) for reason in reasons)
    counts = {"tests": str(len(reasons)), "failures": str(failures), "skipped": str(skipped)}
    suite = ET.Element("testsuite", {"name": printable(name), **counts})
    for reason in reasons:
        case = ET.SubElement(suite, "testcase", {"classname": printable(name), "name": reason.name})
        if reason.exit_code != PASSED:
            kind = "failure" if reason.exit_code == REFUSED else "skipped"
            ET.SubElement(case, kind, {"message": printable(reason.sentence, 1000)})
    ET.indent(suite)
    return ET.tostring(suite, encoding="unicode", xml_declaration=True)
