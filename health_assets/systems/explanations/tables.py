"""Tables of the evidence behind scores: the events that weigh most, of each hour and of each window."""

from datetime import datetime

from sqlmodel import SQLModel

from health_assets.schema.columns import Hourly, Windowed, at, count, number, text


class WeighingEvent(SQLModel):
    """An event that weighs against an agent, and its place among those of its kind."""

    agent_id: str = text("Agent that ran, or was to be triggered.", key=True)
    kind: str = text("`failure`, `slow_run`, `long_run`, `sla_breach` or `trigger_failure`.", key=True)
    rank: int = count("Place among the agent's events of that kind, from 1: longest runs, else latest first.", key=True)
    event_id: str = text("Id of the execution, or of the trigger.")
    happened_at: datetime = at("When the execution ended or the trigger failed.")
    runtime_s: float | None = number("Runtime of the execution in seconds; null for a trigger.")


class EvidenceComponent(WeighingEvent, Hourly, table=True):
    """The few events of each agent, hour and kind that weigh most against a score; windows take the first of these."""

    __tablename__ = "evidence_components"


class ScoreEvidence(WeighingEvent, Windowed, table=True):
    """The few events of the window that weigh most, of agents that lost points to events of that kind."""

    __tablename__ = "score_evidence"

    formula_version: str = text("Version of the formulas that made it; says so where it rests on older components.")


TABLES = (EvidenceComponent, ScoreEvidence)
