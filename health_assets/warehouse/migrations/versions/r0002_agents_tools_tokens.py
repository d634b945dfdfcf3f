"""Traces tell agents, tools, tokens and versions; what rests on few executions says so."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Traces tell agents, tools, tokens and versions; what rests on few executions says so."""
    op.create_table(
        "agent_usage",
        sa.Column("hour", sa.DateTime(timezone=True), nullable=True),
        sa.Column("window_start", sa.DateTime(timezone=True), nullable=True),
        sa.Column("window_end", sa.DateTime(timezone=True), nullable=True),
        sa.Column("hours_covered", sa.BigInteger(), nullable=True),
        sa.Column("agent_id", sa.String(collation="C"), nullable=True),
        sa.Column("executions", sa.BigInteger(), nullable=True),
        sa.Column("successes", sa.BigInteger(), nullable=True),
        sa.Column("executions_with_tokens", sa.BigInteger(), nullable=True),
        sa.Column("executions_with_cost", sa.BigInteger(), nullable=True),
        sa.Column("input_tokens", sa.BigInteger(), nullable=True),
        sa.Column("output_tokens", sa.BigInteger(), nullable=True),
        sa.Column("cost_usd", sa.Double(), nullable=True),
        sa.Column("cost_per_success_usd", sa.Double(), nullable=True),
        sa.Column("formula_version", sa.String(collation="C"), nullable=True),
        if_not_exists=True,
    )
    op.create_index("agent_usage_by_hour", "agent_usage", ["hour"], unique=False, if_not_exists=True)
    op.create_table(
        "tool_calls",
        sa.Column("hour", sa.DateTime(timezone=True), nullable=True),
        sa.Column("source_file", sa.String(collation="C"), nullable=True),
        sa.Column("line_number", sa.BigInteger(), nullable=True),
        sa.Column("call_id", sa.String(collation="C"), nullable=True),
        sa.Column("tool", sa.String(collation="C"), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("status", sa.String(collation="C"), nullable=True),
        sa.Column("agent_id", sa.String(collation="C"), nullable=True),
        sa.Column("agent_id_reported", sa.String(collation="C"), nullable=True),
        sa.Column("execution_id", sa.String(collation="C"), nullable=True),
        sa.Column("latency_ms", sa.Double(), nullable=True),
        sa.Column("error", sa.String(collation="C"), nullable=True),
        sa.Column("span_id", sa.String(collation="C"), nullable=True),
        if_not_exists=True,
    )
    op.create_index("tool_calls_by_hour", "tool_calls", ["hour"], unique=False, if_not_exists=True)
    op.create_table(
        "tool_components",
        sa.Column("hour", sa.DateTime(timezone=True), nullable=True),
        sa.Column("agent_id", sa.String(collation="C"), nullable=True),
        sa.Column("tool", sa.String(collation="C"), nullable=True),
        sa.Column("calls", sa.BigInteger(), nullable=True),
        sa.Column("failures", sa.BigInteger(), nullable=True),
        sa.Column("latency_buckets", sa.ARRAY(sa.SmallInteger()), nullable=True),
        sa.Column("last_error", sa.String(collation="C"), nullable=True),
        sa.Column("last_error_at", sa.DateTime(timezone=True), nullable=True),
        if_not_exists=True,
    )
    op.create_index("tool_components_by_hour", "tool_components", ["hour"], unique=False, if_not_exists=True)
    op.create_table(
        "tool_health",
        sa.Column("hour", sa.DateTime(timezone=True), nullable=True),
        sa.Column("window_start", sa.DateTime(timezone=True), nullable=True),
        sa.Column("window_end", sa.DateTime(timezone=True), nullable=True),
        sa.Column("hours_covered", sa.BigInteger(), nullable=True),
        sa.Column("agent_id", sa.String(collation="C"), nullable=True),
        sa.Column("tool", sa.String(collation="C"), nullable=True),
        sa.Column("calls", sa.BigInteger(), nullable=True),
        sa.Column("failures", sa.BigInteger(), nullable=True),
        sa.Column("failure_share", sa.Double(), nullable=True),
        sa.Column("failure_share_at_least", sa.Double(), nullable=True),
        sa.Column("p50_latency_ms", sa.Double(), nullable=True),
        sa.Column("p95_latency_ms", sa.Double(), nullable=True),
        sa.Column("last_error", sa.String(collation="C"), nullable=True),
        sa.Column("last_error_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("formula_version", sa.String(collation="C"), nullable=True),
        if_not_exists=True,
    )
    op.create_index("tool_health_by_hour", "tool_health", ["hour"], unique=False, if_not_exists=True)
    op.create_table(
        "usage_components",
        sa.Column("hour", sa.DateTime(timezone=True), nullable=True),
        sa.Column("agent_id", sa.String(collation="C"), nullable=True),
        sa.Column("executions", sa.BigInteger(), nullable=True),
        sa.Column("successes", sa.BigInteger(), nullable=True),
        sa.Column("executions_with_tokens", sa.BigInteger(), nullable=True),
        sa.Column("executions_with_cost", sa.BigInteger(), nullable=True),
        sa.Column("input_tokens", sa.BigInteger(), nullable=True),
        sa.Column("output_tokens", sa.BigInteger(), nullable=True),
        sa.Column("cost_usd", sa.Double(), nullable=True),
        if_not_exists=True,
    )
    op.create_index("usage_components_by_hour", "usage_components", ["hour"], unique=False, if_not_exists=True)
    op.add_column("agent_health", sa.Column("is_provisional", sa.Boolean(), nullable=True), if_not_exists=True)
    op.add_column("agent_health", sa.Column("untimed", sa.BigInteger(), nullable=True), if_not_exists=True)
    op.add_column(
        "agent_health_state", sa.Column("latency_sample_count", sa.BigInteger(), nullable=True), if_not_exists=True
    )
    op.add_column(
        "agent_updates", sa.Column("agent_id_reported", sa.String(collation="C"), nullable=True), if_not_exists=True
    )
    op.add_column(
        "executions", sa.Column("agent_id_reported", sa.String(collation="C"), nullable=True), if_not_exists=True
    )
    op.add_column("executions", sa.Column("agent_version", sa.String(collation="C"), nullable=True), if_not_exists=True)
    op.add_column("executions", sa.Column("cost_usd_reported", sa.Double(), nullable=True), if_not_exists=True)
    op.add_column("executions", sa.Column("input_tokens", sa.BigInteger(), nullable=True), if_not_exists=True)
    op.add_column("executions", sa.Column("input_tokens_reported", sa.BigInteger(), nullable=True), if_not_exists=True)
    op.add_column("executions", sa.Column("output_tokens", sa.BigInteger(), nullable=True), if_not_exists=True)
    op.add_column("executions", sa.Column("output_tokens_reported", sa.BigInteger(), nullable=True), if_not_exists=True)
    op.add_column("health_components", sa.Column("untimed", sa.BigInteger(), nullable=True), if_not_exists=True)
    op.add_column(
        "judgements", sa.Column("agent_id_reported", sa.String(collation="C"), nullable=True), if_not_exists=True
    )
    op.add_column(
        "model_calls", sa.Column("agent_id_reported", sa.String(collation="C"), nullable=True), if_not_exists=True
    )
    op.add_column("model_calls", sa.Column("input_tokens", sa.BigInteger(), nullable=True), if_not_exists=True)
    op.add_column("model_calls", sa.Column("output_tokens", sa.BigInteger(), nullable=True), if_not_exists=True)
    op.add_column("model_calls", sa.Column("cost_usd", sa.Double(), nullable=True), if_not_exists=True)
    op.add_column(
        "signals", sa.Column("agent_id_reported", sa.String(collation="C"), nullable=True), if_not_exists=True
    )
    op.add_column("spans", sa.Column("operation", sa.String(collation="C"), nullable=True), if_not_exists=True)
    op.add_column("spans", sa.Column("agent_version", sa.String(collation="C"), nullable=True), if_not_exists=True)
    op.add_column("spans", sa.Column("service_version", sa.String(collation="C"), nullable=True), if_not_exists=True)
    op.add_column("system_health", sa.Column("provisional", sa.BigInteger(), nullable=True), if_not_exists=True)
    op.add_column(
        "trigger_events", sa.Column("agent_id_reported", sa.String(collation="C"), nullable=True), if_not_exists=True
    )
