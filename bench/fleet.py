"""What the benchmark's data is about: the fleet, its hours, its targets, the fields of its lines."""

import os
from datetime import UTC, datetime
from pathlib import Path

from health_assets.core.hours import HOUR, HourRange

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.getenv("BENCH_DATA", ROOT / "data" / "bench"))

HEADLINE_HOUR = datetime(2026, 6, 7, 13, tzinfo=UTC)
HEADLINE_AGENTS = 181_666
HEADLINE_PER_HOUR = 12
SESSIONS = 50_000
MODEL_CALL_EVERY = 10
HISTORY = HourRange(HEADLINE_HOUR - 23 * HOUR, HEADLINE_HOUR)

BACKFILL = HourRange(datetime(2026, 5, 8, tzinfo=UTC), datetime(2026, 6, 7, tzinfo=UTC))
BACKFILL_AGENTS = 5_000

TARGETS = {"expected_runtime_s": 30.0, "sla_s": 60.0}
"""Defaults in `targets.yaml`, so that runtimes, long-running executions and SLA breaches all matter."""

LINE_COLUMNS = {
    "type": "VARCHAR",
    "execution_id": "VARCHAR",
    "agent_id": "VARCHAR",
    "started_at": "TIMESTAMPTZ",
    "ended_at": "TIMESTAMPTZ",
    "status": "VARCHAR",
    "session_id": "VARCHAR",
    "model": "VARCHAR",
    "platform": "VARCHAR",
    "trigger_id": "VARCHAR",
    "cost_usd": "DOUBLE",
    "api_calls": "BIGINT",
}
"""Every field of an execution's line and the type that a reader would give it."""

SIGNALS = ("confidence", "loop_detection", "tool_correctness", "coherence")
HEADLINE_COLUMNS = LINE_COLUMNS | {
    "signals": f"STRUCT({', '.join(f'{signal} DOUBLE' for signal in SIGNALS)})",
    "call_id": "VARCHAR",
    "latency_ms": "DOUBLE",
}
"""The same of the headline hour, whose executions carry signals and whose models are called."""
