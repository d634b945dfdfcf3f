"""An agent now: the verdict on its last hours, what failed, with which error, since when, and where.

What belongs here: one agent's last hour. What does not: the score of the window (`agent_causes`) and the rule of who is
to blame (`scoring.failure_causes`).
"""

from collections.abc import Mapping
from typing import Any

from health_assets.apps.serving.pages.agent_causes import errors_by_class
from health_assets.apps.serving.pages.scoped_history import ScopedHistory
from health_assets.core.hours import HOUR, HourRange
from health_assets.scoring.failure_causes import causes, error_sentence
from health_assets.scoring.verdict import FAILING, SUSPECT, now_evidence, now_word

Row = Mapping[str, Any]


def commonest_error(look: ScopedHistory, agent_id: str, hours: HourRange) -> tuple[int, dict[str, Any]]:
    """The failures of some hours, and the most frequent error among them as `errors_by_class` tells it."""
    errors = errors_by_class(look, agent_id, hours)
    nothing = {"error": None, "failures": 0, "last_at": None, "last_run": None}
    return sum(one["failures"] for one in errors), errors[0] if errors else nothing


def error_of_last_hour(look: ScopedHistory, agent_id: str) -> tuple[int, dict[str, Any]]:
    """The same of the hour that is looked at; of the one before where that runs and has no failure so far."""
    failures, worst = commonest_error(look, agent_id, HourRange.of(look.hour))
    if not failures and look.is_running:
        return commonest_error(look, agent_id, HourRange.of(look.hour - HOUR))
    return failures, worst


def _good_before(look: ScopedHistory, row: Row) -> set[tuple[str, str | None]]:
    """Versions and models of runs that succeeded in the day before the trouble began."""
    before = HourRange(row["now_since"] - 24 * HOUR, row["now_since"])
    columns = ("hour", "agent_id", "agent_version", "model", "successes")
    runs = [run for run in look.of("runs", row["agent_id"], before, columns) if run["successes"]]
    names = {"version": "agent_version", "model": "model"}
    return {(dimension, run[column]) for run in runs for dimension, column in names.items()}


def agent_now(look: ScopedHistory, row: Row) -> dict[str, Any]:
    """Tell what an agent does now, and why where it is failing or suspect.

    Args:
        look: the part of the history that the caller sees.
        row: the agent's row of `agents` at the hour that is looked at.

    Returns:
        `verdict`, `word`, `evidence` and `since`; `error`, a sentence, null where none is needed; `error_run` and
        `error_at`, the latest run that has it; `causes`, where the failures lie, each with its share of the excess.
    """
    data: dict[str, Any] = {
        "verdict": row["now"],
        "word": now_word(row, is_present=look.is_present),
        "evidence": now_evidence(row),
        "since": row["now_since"],
        "error": None,
        "error_run": None,
        "error_at": None,
        "causes": [],
    }
    if row["now"] not in (FAILING, SUSPECT):
        return data
    hour = HourRange.of(look.hour)
    failures, worst = error_of_last_hour(look, row["agent_id"])
    if failures:
        sentence = error_sentence(failures, worst["error"], worst["failures"], is_withheld=not look.view.shows_texts)
        data |= {"error": sentence, "error_run": worst["last_run"], "error_at": worst["last_at"]}
    values = look.of("causes", row["agent_id"], hour)
    data["causes"] = [
        {
            "dimension": cause.dimension, "value": cause.value, "executions": cause.executions,
            "failures": cause.failures, "share_of_excess": cause.share_of_excess, "words": cause.words,
        }
        for cause in causes(row, values, _good_before(look, row))
    ]  # fmt: skip
    return data
