"""The page of the data: whether it is complete, and else what is missing; for trust in the scores.

What belongs here: the answer in one sentence, and who sees which part. What does not: the parts (`data_hours`,
`data_checks`, `data_logs`, `data_formulas`).

Files and rejected lines are of all agents, so callers who see only some teams see none of them, nor counts of rows.
Where an agent is somebody's own, callers without the full view see what is wrong and with which log, and no count of
rows or lines but that of rejected ones: less what they see of other agents it would tell how much that one does.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from health_assets.apps.serving.pages import data_checks, data_formulas, data_hours, data_logs
from health_assets.apps.serving.pages.lists import ROWS_PER_PAGE, pages_of
from health_assets.apps.serving.pages.page import Page
from health_assets.apps.serving.pages.scoped_history import ScopedHistory
from health_assets.core.formatting import counted
from health_assets.core.hours import HOUR

Part = Literal["checks", "rejected", "files", "hours", "formulas"]
Days = Literal["2", "7"]
ANSWER_DAYS = 7
"""Days that the answer is about: as far as scores look back."""
NOT_YOURS = "Raw logs hold lines of all teams, so only callers who see all agents see them."
NO_TEXT = (
    "The text of rejected lines may be of agents that are somebody's own, so only callers with the full view see it."
)
NO_AMOUNTS = (
    "How much logs hold, and when they were written, may tell of agents that are somebody's own, so only callers with "
    "the full view see it."
)


@dataclass(frozen=True, kw_only=True)
class WantedData:
    """The parts of the data's page that are asked for.

    Args:
        days: how many the grid of checks shows.
        line: part of a rejected line, its reason or file, in any case.
        log: part of a file's name, in any case.
        checks: page of the failed checks, from 1.
        reasons: page of the reasons.
        files: page of the files.
        part: the one part to tell, whole; None for all, by pages.
    """

    days: Days = "2"
    line: str = ""
    log: str = ""
    checks: int = 1
    reasons: int = 1
    files: int = 1
    part: Part | None = None


def data_page(look: ScopedHistory, wanted: WantedData) -> Page:
    """Whether the data is complete at one hour, and what speaks against it."""
    if wanted.part is not None:
        rows = _whole(look, wanted)[wanted.part]()
        return Page(name="data", title="Data", data={"hour": look.hour, wanted.part: rows}, listing=wanted.part)
    hours = data_hours.hours_of(look)
    checked = data_checks.checked_hours(look, int(wanted.days))
    checks = data_checks.checks_of(look, checked)
    failed = [one for one in checks if one["failed_hours"]]
    answer = _answer(look, hours)
    pieces = answer.pop("answer_pieces")
    data = {
        "hour": look.hour,
        **answer,
        "hours": hours,
        "hour_counts": data_hours.counts_of(hours),
        "to_run": data_hours.to_run(hours),
        "checks_since": checked.start,
        "failed_checks": _paged(failed, wanted.checks),
        "kept_checks": data_checks.kept_ones(checks),
        "formulas": data_formulas.formulas_of(look),
        "without_agents": look.history.facts.get("without_agents") if look.sees_all and look.is_newest else None,
        "rejected": None,
        "files": None,
        "file_counts": None,
    }
    sizes = {"checks": len(failed), "reasons": 0, "files": 0}
    if look.sees_all:
        reasons = data_logs.rejected_of(look, wanted.line)
        files = data_logs.files_of(look)
        found = data_logs.of_name(files, wanted.log)
        page = found.slice((wanted.files - 1) * ROWS_PER_PAGE, ROWS_PER_PAGE)
        data |= {
            "rejected": _paged(reasons, wanted.reasons),
            "files": data_logs.told_files(look, page),
            "file_counts": data_logs.counts_of_files(files),
        }
        sizes |= {"reasons": len(reasons), "files": found.num_rows}
    shown = {
        "wanted": wanted,
        "answer": pieces,
        "days": data_hours.by_day(hours),
        "paths": data_checks.paths,
        "hides_nothing": look.hides_nothing,
        "not_yours": NOT_YOURS,
        "no_text": NO_TEXT,
        "no_amounts": NO_AMOUNTS,
        "sizes": sizes,
        "pages": {name: pages_of(size, ROWS_PER_PAGE) for name, size in sizes.items()},
    }
    return Page(name="data", title="Data", data=data, listing="hours", shown=shown)


def _whole(look: ScopedHistory, wanted: WantedData) -> dict[Part, Callable[[], list[dict[str, Any]]]]:
    """Every part as a list of dicts, not by pages; what is not the caller's to see has no rows."""
    hours = data_checks.checked_hours(look, int(wanted.days))
    return {
        "checks": lambda: data_checks.by_hour(look, hours),
        "rejected": lambda: data_logs.samples_of(look, wanted.line) if look.sees_all else [],
        "files": lambda: (
            data_logs.told_files(look, data_logs.of_name(data_logs.files_of(look), wanted.log)) if look.sees_all else []
        ),
        "hours": lambda: data_hours.hours_of(look),
        "formulas": lambda: data_formulas.formulas_of(look),
    }


def _paged(rows: Sequence[dict[str, Any]], page: int) -> list[dict[str, Any]]:
    return list(rows[(page - 1) * ROWS_PER_PAGE : page * ROWS_PER_PAGE])


def _answer(look: ScopedHistory, hours: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Whether the data is complete, in a sentence, with what is missing, and what else speaks against it."""
    recent = data_hours.last_days(look, hours, ANSWER_DAYS)
    counts = data_hours.counts_of(recent)
    checks = data_checks.checks_of(look, data_checks.checked_hours(look, ANSWER_DAYS))
    errors = [one for one in checks if one["failed_hours"] and one["severity"] == "error"]
    missing = [
        _point("hours", counts["missing"], "hour is missing", "hours are missing"),
        _point("hours", counts["late"], "hour is late", "hours are late"),
        _point("hours", counts["partial"], "hour lacks some tables", "hours lack some tables"),
        _point("checks", len(errors), "check failed", "checks failed"),
    ]
    remarks = []
    if look.sees_all:
        files = data_logs.counts_of_files(data_logs.files_of(look))
        missing += [
            _point("files", files["unreadable"], "log cannot be read", "logs cannot be read"),
            _lost(checks),
        ]
        rejected = data_logs.lines_of(look, ANSWER_DAYS)
        remarks += [_point("rejected", rejected, "line was rejected", "lines were rejected")]
    warned = [one for one in checks if one["failed_hours"] and one["severity"] != "error"]
    remarks += [_point("checks", len(warned), "check warned", "checks warned")]
    missing, remarks = ([one for one in points if one["count"] != 0] for points in (missing, remarks))
    before, points, after = _sentence(recent, missing, remarks)
    return {
        "is_complete": bool(recent) and not missing,
        "answer": f"{before}{_and([one['text'] for one in points])}{after}",
        "answer_pieces": [before, points, after],
        "missing": missing,
        "remarks": remarks,
    }


def _point(part: Part, count: int, one: str, many: str) -> dict[str, Any]:
    return {"part": part, "count": count, "text": counted(count, one, many)}


def _lost(checks: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Lines that are lost for good, as of the newest hour in which that was checked; how many, where that is told."""
    failing = [one for one in checks if one["expectation"] == data_checks.LINES_ARE_LOST and one["is_failing"]]
    if failing and "newest_unexpected" not in failing[0]:
        return {"part": "files", "count": None, "text": "lines are lost with logs that are gone"}
    lost = sum(one["newest_unexpected"] for one in failing)
    return _point("files", lost, "line is lost with a log that is gone", "lines are lost with logs that are gone")


def _sentence(
    hours: Sequence[dict[str, Any]], missing: list[dict[str, Any]], remarks: list[dict[str, Any]]
) -> tuple[str, list[dict[str, Any]], str]:
    """The answer: yes, or what is missing; what stands before the points, the points, and what stands behind them."""
    if not hours:
        return "No: no hour has been materialized.", [], ""
    span = f"of the {counted(len(hours), 'hour')} to {hours[-1]['hour'] + HOUR:%Y-%m-%d %H:%M} UTC"
    if missing:
        return f"No: {span}, ", missing, "."
    if remarks:
        return f"Yes, every hour {span} is there, but ", remarks, "."
    return f"Yes, every hour {span} is there, and every check holds.", [], ""


def _and(texts: Sequence[str]) -> str:
    return f"{', '.join(texts[:-1])}, and {texts[-1]}" if len(texts) > 1 else "".join(texts)
