"""Names that stand in answers, and the columns behind them.

What belongs here: what reader and server both must know. It imports no engine, since the server has none. What does
not: what a document says (`documents`) and how a score is explained (`snapshot`).
"""

from health_assets.scoring.agent_health_weights import (
    OPERATIONAL_POINTS,
    PERFORMANCE_POINTS,
    RELIABILITY_POINTS,
    STABILITY_POINTS,
)
from health_assets.systems.agent_health_model.names import TARGETS_USED

SCHEMA_VERSION = "0.1.0"
EXTENSION = "org.health-assets.agent-health-model"
EXTENSION_NOW = "org.health-assets.agent-now"
DATA_EXTENSION = "org.health-assets.data"
"""Says of a document that its data is outdated; left out while it is not."""

DIMENSIONS = {
    "reliability": ("reliability_score", RELIABILITY_POINTS),
    "performance": ("performance_score", PERFORMANCE_POINTS),
    "stability": ("stability_score", STABILITY_POINTS),
    "operation": ("operational_score", OPERATIONAL_POINTS),
}
"""The dimensions of the Agent Health Model: their column and how many points they are worth (source 1)."""

FACTORS = (
    "success_score", "failure_score", "reliability_raw", "confidence_factor", "deviation", "sla_score", "trigger_score",
)  # fmt: skip
INPUTS = (
    "n", "untimed", "successes", "failures", "asr", "afh", "ar_s", "long_running", "sla_checked", "sla_breaches",
    "triggers", "trigger_failures", "hours_covered",
)  # fmt: skip
SCORE_COLUMNS = (
    "health_score", "points_at_stake", "is_provisional",
    *(column for column, _ in DIMENSIONS.values()), *FACTORS, *INPUTS, *TARGETS_USED,
    "formula_version",
)  # fmt: skip
"""Columns of `agent_health` that explain a score."""

SHORT_WINDOWS = {
    "window_hours": "int64", "health_score": "float64", "points_at_stake": "float64", "state": "string", "n": "int64",
}  # fmt: skip
"""What is told of each of an agent's short windows, by columns of `agent_health_short`."""

NOW_COUNTS = (
    "now_executions", "now_failures", "now_executions_6h", "now_failures_6h", "now_failed_in_a_row", "now_good_hours",
    "now_is_by_6h",
)  # fmt: skip
"""Columns of `agent_now`, as `urgency.with_now` names them, that say what was seen."""
