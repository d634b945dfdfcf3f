"""The survey (source 3, appendix B): what the agents of the registry answered, and the sums by platform."""

from datetime import datetime

from health_assets.schema.columns import Hourly, at, count, number, text


class AgentProbe(Hourly, table=True):
    """Answers of the registry's agents to the question for their health, the latest of each hour."""

    __tablename__ = "agent_probes"

    url: str = text("Address of the agent, as the registry has it.", key=True)
    name: str = text("Name of the agent in the registry.")
    platform: str = text("Platform that the registry names.")
    probed_at: datetime = at("When it was asked; decides the hour.")
    outcome: str = text(
        "`valid` document, `invalid` one, `http_error` (a status other than 200), `timeout`, `unreachable` (no "
        "connection, or it broke), `refused` (a redirect that we do not follow), or `private` (no public address)."
    )
    status: str | None = text(
        "health.status of a valid document; of one with faults, where it is degraded or unhealthy."
    )
    http_status: int | None = count("HTTP status; null where none arrived.")
    latency_ms: float | None = number("Time to the whole answer in milliseconds; null without one.")
    error: str | None = text("What was wrong, in one sentence; null when valid.")


class SurveySummary(Hourly, table=True):
    """The survey by platform: how many agents answer with a valid document, and how many are healthy."""

    __tablename__ = "survey_summary"

    platform: str = text("Platform; `all` for the whole registry.", key=True)
    agents: int = count("Agents probed.")
    healthy: int = count("Agents whose valid document says healthy.")
    responsive: int = count("Agents that answered with a valid document, whatever it says.")
    survival_rate: float = number("Share of agents that are responsive, 0 to 1.")
    formula_version: str = text("Version of the formulas that made it; says so where it rests on older components.")


TABLES = (AgentProbe, SurveySummary)
