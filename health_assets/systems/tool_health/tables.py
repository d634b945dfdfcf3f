"""Tool health: hourly parts of the calls of tools, and how often and how slowly each tool answered an agent."""

from datetime import datetime

import sqlalchemy as sa
from sqlmodel import Field

from health_assets.schema.columns import Hourly, Windowed, at, count, number, text

OF_NOBODY = "Agent that called; empty for calls of no known agent."


class ToolComponent(Hourly, table=True):
    """Calls of each tool by each agent in the hour, in a form that merges: sums, buckets and the latest error."""

    __tablename__ = "tool_components"

    agent_id: str = text(OF_NOBODY, key=True)
    tool: str = text("Tool that was called.", key=True)
    calls: int = count("Calls that ended in the hour.")
    failures: int = count("Calls that failed.")
    latency_buckets: list[int] | None = Field(
        description="Bucket of every latency, ascending; `scoring.latency_buckets` says what a bucket is. Null where "
        "no call tells its latency.",
        sa_type=sa.ARRAY(sa.SmallInteger),
    )
    last_error: str | None = text("Error of the latest failed call that states one; null where none does.")
    last_error_at: datetime | None = at("When that call ended.", nullable=True)


class ToolHealth(Windowed, table=True):
    """Calls, failures and latencies of every tool an agent called in the window; a failed call fails no execution."""

    __tablename__ = "tool_health"

    agent_id: str = text(OF_NOBODY, key=True)
    tool: str = text("Tool that was called.", key=True)
    calls: int = count("Calls in the window.")
    failures: int = count("Calls that failed.")
    failure_share: float = number("failures / calls, 0 to 1.")
    failure_share_at_least: float = number(
        "Lower end of its Wilson interval at 95%; orders tools, so that 1 failure of 1 call does not lead."
    )
    p50_latency_ms: float | None = number("Median latency in milliseconds, within 1% of the nearest rank.")
    p95_latency_ms: float | None = number("95th percentile of latency in milliseconds, likewise; null without any.")
    last_error: str | None = text("Error of the latest failed call that states one; null where none does.")
    last_error_at: datetime | None = at("When that call ended.", nullable=True)
    formula_version: str = text("Version of the formulas that made it; says so where it rests on older components.")


TABLES = (ToolComponent, ToolHealth)
