"""Tools about agents: the fleet, one agent, why its score is what it is, releases, tools, usage and alerts.

What belongs here: which parts of these pages an answer has. What does not: the pages (`apps.serving.pages`).
"""

from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import quote, urlencode

from pydantic import Field

from health_assets.apps.alerts.rules import Severity
from health_assets.apps.serving.mcp_server.arguments import AgentId, Arguments, Hour, Limit, OnlyAgent, Text
from health_assets.apps.serving.mcp_server.backend import Backend, as_of
from health_assets.apps.serving.mcp_server.bounded import only
from health_assets.apps.serving.pages import fleet_page, incidents_page, releases_page, tools_page, usage_page
from health_assets.apps.serving.pages.agent_page import NoAgentError, WantedOfAgent, agent_page
from health_assets.apps.serving.pages.scoped_history import ScopedHistory
from health_assets.apps.serving.pages.usage_sums import SUMS
from health_assets.apps.serving.service import RequestContext
from health_assets.core.errors import HealthAssetsError
from health_assets.core.formatting import nearest
from health_assets.core.hours import HOUR, HourRange
from health_assets.systems.agent_drift.texts import sentence as drift_sentence
from health_assets.systems.release_comparison.texts import mix_text
from health_assets.systems.release_comparison.texts import sentence as release_sentence

CHANGES_SHOWN = 10
NO_AGENT = "No agent of this name is known here"
OF_FLEET = (
    "agent_id", "standing", "now", "now_since", "now_executions", "now_failures", "state", "is_provisional",
    "health_score", "points_at_stake", "n", "failures", "budget_spent", "latency_p50_ms", "latency_p99_ms",
    "hour_platform", "hour_version", "team",
)  # fmt: skip
OF_LOSS = ("component", "dimension", "points", "lost", "sentence")
OF_EVIDENCE = (
    "kind", "happened_at", "source_file", "line_number", "event_id", "runtime_s", "error", "session_id",
    "agent_version",
)  # fmt: skip
OF_USAGE = ("agent_id", "agent_version", "model", "user_id", "hour", *SUMS, "cost_per_success_usd")
OF_INCIDENT = (
    "incident_id", "rule", "severity", "subject_kind", "subject_id", "is_open", "opened_at", "closed_at", "reason",
    "recovery", "silenced_by", "unsilenced_at",
)  # fmt: skip


class FleetArguments(Arguments):
    """Arguments of `fleet`."""

    state: (
        Literal["failing", "suspect", "recovering", "unhealthy", "degraded", "provisional", "inactive", "healthy"]
        | None
    ) = Field(None, description="Only agents that stand so.")
    text: Text = ""
    sort: fleet_page.Sort = Field("urgency", description="Order of the agents, by default the most urgent first.")
    limit: Limit = 20
    hour: Hour = None


class AgentArguments(Arguments):
    """Arguments of `agent` and `why`."""

    agent_id: AgentId
    hour: Hour = None


class ReleasesArguments(Arguments):
    """Arguments of `releases`."""

    text: Text = ""
    show: releases_page.Show = Field("all", description="All, or only those that are worse or better in something.")
    of: releases_page.Of = Field("all", description="New versions, new models or both.")
    limit: Limit = 20
    hour: Hour = None


class ToolsArguments(Arguments):
    """Arguments of `tools`."""

    agent_id: OnlyAgent = None
    text: Text = ""
    by: tools_page.By = Field("agent", description="A row for each agent and tool, or for each tool of all agents.")
    limit: Limit = 20
    hour: Hour = None


class UsageArguments(Arguments):
    """Arguments of `usage`."""

    by: Literal["agent", "model", "version", "user", "day"] = Field("agent", description="What a row is of.")
    text: Text = ""
    sort: usage_page.Sort = Field("cost", description="Order of agents; other lists are by cost, days by date.")
    limit: Limit = 20
    hour: Hour = None


class AlertsArguments(Arguments):
    """Arguments of `alerts`."""

    agent_id: OnlyAgent = None
    rule: str | None = Field(None, max_length=200, description="Only those of this rule.")
    severity: Severity | None = Field(None, description="Only those of this severity.")
    days: incidents_page.Days = Field(7, description="How far back incidents that are over are listed.")
    limit: Limit = 20
    hour: Hour = None


async def fleet(backend: Backend, asked: RequestContext, wanted: FleetArguments) -> dict[str, Any]:
    """The agents, the most urgent first, and counts of all of them."""

    def found(look: ScopedHistory) -> dict[str, Any]:
        question = fleet_page.Wanted(text=wanted.text, state=wanted.state, sort=wanted.sort, most=wanted.limit)
        data = fleet_page.fleet_page(look, question).data
        trust = data["trust"]
        return {
            **as_of(look),
            "page": backend.link(look, "/"),
            "agents": data["agents"],
            "found": data["found"],
            "hidden_agents": data["hidden"] or None,
            "in_words": data["now"]["sentence"] or None,
            "standings": data["states"],
            "mean_score": data["fleet"]["score"],
            "score_change_by_days": data["fleet"]["changes"],
            "budgets_spent": data["now"]["budgets_spent"],
            "open_incidents": trust["open_incidents"],
            "missing_hours_7d": len(trust["missing_hours"]),
            "late_s": trust["late_s"],
            "rejected_lines_24h": trust["rejected_lines"],
            "failed_checks_24h": trust["failed_checks"],
            "listed": [only(row, OF_FLEET) for row in data["listed"]],
            "left_out": {"listed": data["found"] - len(data["listed"])},
        }

    return await backend.find(asked, found, wanted.hour)


async def agent(backend: Backend, asked: RequestContext, wanted: AgentArguments) -> dict[str, Any]:
    """One agent: its health document, its scores, what it does now and what changed."""

    def found(look: ScopedHistory) -> dict[str, Any]:
        data = _agent(look, wanted.agent_id)
        changes = data["marks"]
        return {
            **as_of(look),
            "page": backend.link(look, _agent_path(wanted.agent_id)),
            "agent": data["agent"],
            "verdict": data["verdict"],
            "now": data["now"],
            "doubts": data["doubts"],
            "untested": data["untested"] or None,
            "fell": data["fall"],
            "changes_7d": changes[:CHANGES_SHOWN],
            "worse_than_its_past": [drift_sentence(one) for one in data["drifts"]],
            "releases_7d": [_release(one) for one in data["releases"]],
            "losses": [only(loss, OF_LOSS) for loss in data["losses"]],
            "errors": data["errors"]["listed"],
            "error_budget": data["budget"]["sentence"],
            "open_incidents": [one for one in data["incidents"] if one["closed_at"] is None],
            "versions_7d": data["versions"],
            "targets": data["targets"],
            "health_document": data["document"],
            "incomplete": data["incomplete"] or None,
            "left_out": {
                "changes_7d": max(0, len(changes) - CHANGES_SHOWN),
                "errors": data["errors"]["classes"] - len(data["errors"]["listed"]),
            },
        }

    return await backend.find(asked, found, wanted.hour)


async def why(backend: Backend, asked: RequestContext, wanted: AgentArguments) -> dict[str, Any]:
    """The points that an agent lost, and the lines of its logs behind them."""

    def found(look: ScopedHistory) -> dict[str, Any]:
        data = _agent(look, wanted.agent_id)
        facts = data["agent"]
        return {
            **as_of(look),
            "page": backend.link(look, _agent_path(wanted.agent_id)),
            "agent_id": facts["agent_id"],
            "state": facts["state"],
            "health_score": facts["health_score"],
            "verdict": data["verdict"],
            "now": data["now"],
            "doubts": data["doubts"],
            "losses": [only(loss, (*OF_LOSS, "inputs", "targets", "evidence_kind")) for loss in data["losses"]],
            "evidence": [only(event, OF_EVIDENCE) for event in data["evidence"]],
            "shows_errors": data["shows_errors"],
        }

    return await backend.find(asked, found, wanted.hour)


async def releases(backend: Backend, asked: RequestContext, wanted: ReleasesArguments) -> dict[str, Any]:
    """New versions and models beside what ran before them, the worst first."""

    def found(look: ScopedHistory) -> dict[str, Any]:
        question = releases_page.Wanted(text=wanted.text, show=wanted.show, of=wanted.of, most=wanted.limit)
        data = releases_page.releases_page(look, question).data
        return {
            **as_of(look),
            "page": backend.link(look, f"/ui/releases?{urlencode({'show': wanted.show, 'of': wanted.of})}"),
            "compared": data["compared"],
            "by_verdict": data["counts"],
            "found": data["found"],
            "listed": [{"agent_id": one["agent_id"], **_release(one)} for one in data["listed"]],
            "left_out": {"listed": data["found"] - len(data["listed"])},
        }

    return await backend.find(asked, found, wanted.hour)


def _release(data: Mapping[str, Any]) -> dict[str, Any]:
    """A release with a sentence for each measure."""
    return {
        **only(data, ("dimension", "from_version", "to_version", "released_at", "verdict")),
        "tasks": mix_text(dict(data), [one["measure"] for one in data["measures"]]),
        "measures": [release_sentence(dict(one)) for one in data["measures"]],
    }


async def tools(backend: Backend, asked: RequestContext, wanted: ToolsArguments) -> dict[str, Any]:
    """Tools by their share of failures, the worst first."""

    def found(look: ScopedHistory) -> dict[str, Any]:
        if wanted.agent_id:
            _require_agent(look, wanted.agent_id)
        question = tools_page.Wanted(text=wanted.text, agent=wanted.agent_id, by=wanted.by, most=wanted.limit)
        data = tools_page.tools_page(look, question).data
        query = {"by": wanted.by} | ({"agent": wanted.agent_id} if wanted.agent_id else {})
        return {
            **as_of(look),
            "page": backend.link(look, f"/ui/tools?{urlencode(query)}"),
            "totals": data["totals"],
            "found": data["found"],
            "listed": data["listed"],
            "left_out": {"listed": data["found"] - len(data["listed"])},
        }

    return await backend.find(asked, found, wanted.hour)


async def usage(backend: Backend, asked: RequestContext, wanted: UsageArguments) -> dict[str, Any]:
    """Tokens and cost of the window, or of the last 30 days by day."""

    def found(look: ScopedHistory) -> dict[str, Any]:
        question = usage_page.Wanted(text=wanted.text, sort=wanted.sort, by=wanted.by, most=wanted.limit)
        data = usage_page.usage_page(look, question).data
        rows = data[usage_page.LISTINGS[wanted.by]]
        if wanted.by == "agent":
            count, shown = data["found"], rows
        else:
            rows = [row for row in rows if wanted.text.casefold() in _names(row)] if wanted.text else rows
            count, shown = len(rows), rows[-wanted.limit :] if wanted.by == "day" else rows[: wanted.limit]
        return {
            **as_of(look),
            "page": backend.link(look, f"/ui/usage?by={wanted.by}"),
            "whole_window": only(data["fleet"], OF_USAGE),
            "window_a_day_before": only(data["before"]["1"] or {}, ("executions", "successes", "cost_usd")) or None,
            "found": count,
            "listed": [only(row, (*OF_USAGE, "hours", "hours_due")) for row in shown],
            "left_out": {"listed": count - len(shown)},
        }

    return await backend.find(asked, found, wanted.hour)


async def alerts(backend: Backend, asked: RequestContext, wanted: AlertsArguments) -> dict[str, Any]:
    """Open and recently closed incidents."""

    def found(look: ScopedHistory) -> dict[str, Any]:
        if wanted.agent_id:
            _require_agent(look, wanted.agent_id)
        question = incidents_page.Wanted(
            rule=wanted.rule, severity=wanted.severity, agent=wanted.agent_id, days=wanted.days, most=wanted.limit
        )
        data = incidents_page.incidents_page(look, question).data
        rows = [
            only(one, OF_INCIDENT) | {"losses": [loss["sentence"] for loss in one["losses"]]} for one in data["listed"]
        ]
        for row in rows:
            row["page"] = backend.link(look, f"/ui/incidents/{quote(row['incident_id'], safe='')}")
        return {
            **as_of(look),
            "page": backend.link(look, "/ui/incidents"),
            "are_watched": backend.settings.alerts is not None,
            "judged_to": data["judged_to"],
            "open": data["open"],
            "open_by_severity": data["open_by_severity"],
            "over": data["over"],
            "listed": rows,
            "left_out": {"listed": data["open"] + data["over"] - len(rows)},
        }

    return await backend.find(asked, found, wanted.hour)


def known_agents(look: ScopedHistory) -> list[str]:
    """The agents of the hour that the caller sees."""
    rows = look.at("agents")
    return rows.column("agent_id").to_pylist() if rows.num_rows else []


def no_agent(look: ScopedHistory, agent_id: str) -> HealthAssetsError:
    """The error that says that the caller sees no such agent, with the name that was probably meant."""
    hint = nearest(agent_id, known_agents(look))
    return HealthAssetsError(f"{NO_AGENT}{hint or '; the tool fleet lists those that are.'}")


def _agent(look: ScopedHistory, agent_id: str) -> Mapping[str, Any]:
    """What an agent's page tells.

    Raises:
        HealthAssetsError: the caller sees no agent of this name at that hour.
    """
    try:
        return agent_page(look, agent_id, WantedOfAgent()).data
    except NoAgentError:
        raise no_agent(look, agent_id) from None


def _require_agent(look: ScopedHistory, agent_id: str) -> None:
    """Refuse an agent that the caller does not see at any hour that is kept.

    Raises:
        HealthAssetsError: there is none.
    """
    hours = look.history.hours("agents")
    kept = HourRange(hours[0], hours[-1] + HOUR)
    if not look.sees(agent_id) or not look.history.of("agents", agent_id, kept, ("hour", "agent_id")).num_rows:
        raise no_agent(look, agent_id)


def _names(row: Mapping[str, Any]) -> str:
    """The names of a row of usage, in one case."""
    return " ".join(str(row.get(name) or "") for name in ("agent_id", "agent_version", "model", "user_id")).casefold()


def _agent_path(agent_id: str) -> str:
    return f"/ui/agents/{quote(agent_id, safe='')}"
