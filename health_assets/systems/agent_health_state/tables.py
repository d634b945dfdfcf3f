"""The Agent Health State (source 3): hourly parts, and the health document as columns."""

from datetime import datetime

import sqlalchemy as sa
from sqlmodel import Field

from health_assets.schema.columns import Hourly, Windowed, at, count, number, text


class StateComponent(Hourly, table=True):
    """Parts of the health document, by agent and hour; they merge by concatenation, minimum and maximum."""

    __tablename__ = "state_components"

    agent_id: str = text("Agent with any event in the hour.", key=True)
    latency_buckets: list[int] | None = Field(
        description="Bucket of every known runtime, ascending; `scoring.latency_buckets` says what a bucket is.",
        sa_type=sa.ARRAY(sa.SmallInteger),
    )
    first_event_at: datetime = at("Earliest event of the agent in the hour.")
    last_restart_at: datetime | None = at("Latest restart.", nullable=True)
    last_model_update_at: datetime | None = at("Latest `model_change` update.", nullable=True)
    last_capability_update_at: datetime | None = at("Latest `capability_update`.", nullable=True)
    first_model: str | None = text("Model of the earliest execution that names one.")
    last_model: str | None = text("Model of the latest execution that names one.")
    first_model_at: datetime | None = at("When the earliest execution that names a model ended.", nullable=True)
    last_model_switch_at: datetime | None = at(
        "When the latest execution ended whose model differs from that of the one before it in the hour.", nullable=True
    )


class AgentChange(Hourly, table=True):
    """Restarts, models and capability updates, by agent and hour; an hour in which nothing changed has no row."""

    __tablename__ = "agent_changes"

    agent_id: str = text("Agent that changed, or that shows a model for the first time in the look-back.", key=True)
    last_restart_at: datetime | None = at("Latest restart in the hour.", nullable=True)
    last_model_update_at: datetime | None = at("Latest `model_change` update in the hour.", nullable=True)
    last_capability_update_at: datetime | None = at("Latest `capability_update` in the hour.", nullable=True)
    first_model: str | None = text("Model of the hour's earliest execution that names one; null where it is as before.")
    last_model: str | None = text("Model of the hour's latest execution that names one; null where it is as before.")
    first_model_at: datetime | None = at("When the earliest execution that names a model ended.", nullable=True)
    last_model_switch_at: datetime | None = at(
        "When the latest execution ended whose model differs from that of the one before it in the hour.", nullable=True
    )


class AgentHealthState(Windowed, table=True):
    """The Agent Health State document of every known agent, as columns, over the window that ends with the hour."""

    __tablename__ = "agent_health_state"

    agent_id: str = text("Agent, known from an event of the look-back or from the targets.", key=True)
    status: str = text("`healthy`, `degraded`, `unhealthy` or `unknown`.")
    last_healthy_at: datetime | None = at(
        "Latest window end up to this one with status `healthy`, of the hours that are materialized.", nullable=True
    )
    uptime_seconds: float | None = number("Seconds since the last restart; null where no materialized hour tells one.")
    response_ratio: float | None = number("Share of executions that succeeded, 0 to 1; null without any.")
    error_ratio: float | None = number("Share of executions that failed, 0 to 1; null without any.")
    latency_p50_ms: float | None = number(
        "Median runtime in milliseconds, within 1% of the nearest rank; null where no runtime is known."
    )
    latency_p99_ms: float | None = number("99th percentile of runtime in milliseconds, within 1% of the nearest rank.")
    measurement_window_seconds: int = count("Length of the window in seconds.")
    sample_count: int = count("Executions in the window.")
    latency_sample_count: int = count("Executions in the window whose runtime is known.")
    calibration_trend: str = text("`stable`, `declining` or `improving` against the window just before.")
    previous_response_ratio: float | None = number("response_ratio of the window just before; null without samples.")
    days_since_model_change: float | None = number(
        "Days since the model changed, in any materialized hour; null when none was seen to."
    )
    last_capability_update: datetime | None = at("Latest `capability_update` of any materialized hour.", nullable=True)
    baseline_latency_ms: float | None = number("Target used: declared latency; a p99 above 3 times of it is degraded.")
    formula_version: str = text("Version of the formulas that made it; says so where it rests on older components.")


TABLES = (StateComponent, AgentChange, AgentHealthState)
