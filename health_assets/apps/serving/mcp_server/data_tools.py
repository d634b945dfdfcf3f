"""Tools about the data and the setup: whether the data is complete, formats of logs, targets, silences.

What belongs here: which parts of pages and commands an answer has. What does not: the pages (`apps.serving.pages`).
"""

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field
from starlette.concurrency import run_in_threadpool

from health_assets.apps.serving.mcp_server.arguments import Arguments, Hour, Limit, OnlyAgent
from health_assets.apps.serving.mcp_server.backend import Backend, as_of, require_read
from health_assets.apps.serving.mcp_server.bounded import only
from health_assets.apps.serving.mcp_server.fleet_tools import known_agents, no_agent
from health_assets.apps.serving.pages.data_page import WantedData, data_page
from health_assets.apps.serving.pages.scoped_history import ScopedHistory
from health_assets.apps.serving.pages.silences_page import Draft
from health_assets.apps.serving.service import RequestContext
from health_assets.core.errors import HealthAssetsError
from health_assets.logs.formats import DESCRIPTIONS
from health_assets.logs.formats.format_settings import FormatSettings

OF_CHECK = (
    "asset", "expectation", "severity", "meaning", "failed_hours", "checked_hours", "last_failed", "is_failing",
    "unexpected_rows", "checked_rows",
)  # fmt: skip
OF_SAMPLE = ("hour", "source_file", "line_number")
"""Where a rejected line is; its text may hold anything."""
NOTHING_TO_SUGGEST = "Nothing is suggested for this agent: it did not run in these days, or it is retired."


class DataQualityArguments(Arguments):
    """Arguments of `data_quality`."""

    limit: Limit = 20
    hour: Hour = None


class FormatsArguments(Arguments):
    """Arguments of `formats`: none."""


class SuggestTargetsArguments(Arguments):
    """Arguments of `suggest_targets`."""

    agent_id: OnlyAgent = None
    days: int = Field(14, ge=3, le=400, description="UTC days to look at, up to the newest complete hour.")
    limit: Limit = 20


class SilenceArguments(Arguments):
    """Arguments of `silence`."""

    agents: list[Annotated[str, Field(min_length=1, max_length=1024)]] = Field(
        default_factory=list, max_length=100, description="Ids of agents, or patterns like crawler*."
    )
    rules: list[str] = Field(default_factory=list, max_length=50, description="Names of rules; all if omitted.")
    until: str = Field(max_length=500, description="Until when, like 2h, 3d or 2026-06-07T13:00Z.")
    start: str = Field("", max_length=500, description="From when on; at once if omitted.")
    reason: str = Field(max_length=500, description="Why, for people who look at the list of silences.")


async def data_quality(backend: Backend, asked: RequestContext, wanted: DataQualityArguments) -> dict[str, Any]:
    """Whether the data is complete: failed checks, rejected lines, missing and late hours."""

    def found(look: ScopedHistory) -> dict[str, Any]:
        data = data_page(look, WantedData(days="7")).data
        failed, rejected = data["failed_checks"], data["rejected"]
        names = ("is_complete", "answer", "hour_counts", "to_run", "file_counts")
        return {
            **as_of(look),
            "page": backend.link(look, "/ui/data"),
            **only(data, names),
            "late_s": look.late_s(),
            "failed_checks": [only(check, OF_CHECK) for check in failed[: wanted.limit]],
            "rejected_lines": None if rejected is None else [_reason(one) for one in rejected[: wanted.limit]],
            "older_formulas": [one for one in data["formulas"] if one["older_hours"]] or None,
            "left_out": {
                "failed_checks": max(0, len(failed) - wanted.limit),
                "rejected_lines": max(0, len(rejected or ()) - wanted.limit),
            },
        }

    return await backend.find(asked, found, wanted.hour)


def _reason(one: dict[str, Any]) -> dict[str, Any]:
    """A reason for which lines were rejected, and where some of these lines are."""
    counts = only(one, ("reason", "lines_24h", "lines_7d", "last_hour"))
    return {**counts, "samples": [only(sample, OF_SAMPLE) for sample in one["samples"]]}


async def formats(backend: Backend, asked: RequestContext, _: FormatsArguments) -> dict[str, Any]:
    """The formats of logs that are read, and what becomes of each."""
    require_read(asked)
    own = await run_in_threadpool(lambda: FormatSettings.of(backend.settings).own)
    known = DESCRIPTIONS | {one.name: ("HEALTH_FORMATS", one.becomes) for one in own}
    return {
        "formats": [{"format": name, "files": files, "becomes": becomes} for name, (files, becomes) in known.items()]
    }


async def suggest_targets(backend: Backend, asked: RequestContext, wanted: SuggestTargetsArguments) -> dict[str, Any]:
    """Targets that follow from what was usual, to review."""

    def require_agent(look: ScopedHistory) -> None:
        if wanted.agent_id is not None and wanted.agent_id not in known_agents(look):
            raise no_agent(look, wanted.agent_id)

    await backend.find(asked, require_agent)
    result = await backend.service.suggestions(wanted.agent_id, wanted.days, asked)
    if result.data is None:
        raise HealthAssetsError(f"Targets cannot be suggested now: {result.why_not}.")
    suggested = result.data

    def seen(look: ScopedHistory) -> dict[str, Any]:
        found, lacking = (
            [one for one in suggested[name] if look.sees(one["agent_id"])] for name in ("found", "lacking")
        )
        if wanted.agent_id is not None and not found and not lacking:
            raise HealthAssetsError(NOTHING_TO_SUGGEST)
        return {
            "as_of": datetime.fromisoformat(suggested["as_of"]),
            **only(suggested, ("first_day",)),
            "listed": found[: wanted.limit],
            "nothing_for": lacking[: wanted.limit],
            "left_out": {
                "listed": max(0, len(found) - wanted.limit),
                "nothing_for": max(0, len(lacking) - wanted.limit),
            },
        }

    return await backend.find(asked, seen)


async def silence(backend: Backend, asked: RequestContext, wanted: SilenceArguments) -> dict[str, Any]:
    """Add a silence."""
    draft = Draft(
        agents="\n".join(wanted.agents), rules=tuple(wanted.rules), start=wanted.start, until=wanted.until,
        reason=wanted.reason,
    )  # fmt: skip
    require_read(asked)
    added = await run_in_threadpool(backend.changes.silence, asked, draft)
    names = ("silence_id", "starts_at", "ends_at", "reason", "added_by")
    return {name: getattr(added, name) for name in names} | {"agents": wanted.agents, "rules": wanted.rules}
