"""The backfill as a straightforward pandas script: what a person would write who knows pandas well.

Reads every file, sums per hour and agent, slides the window hour by hour, scores with NumPy, and writes all tables to a
new DuckDB file at the end.
"""

from pathlib import Path

import duckdb
import numpy as np
import pandas as pd

from bench.fleet import TARGETS

WINDOW = pd.Timedelta(hours=24)
LOOKBACK = pd.Timedelta(hours=168)
HOUR = pd.Timedelta(hours=1)
SUMS = ["executions", "successes", "failures", "runtime_s_sum", "long_running", "sla_breaches"]


def backfill(raw: str, warehouse: str, hours: int) -> int:
    """Fill a new file from the first `hours` logs of a folder; returns the rows of `agent_health`."""
    executions = pd.concat([read(path) for path in sorted(Path(raw).glob("*.jsonl"))[:hours]], ignore_index=True)
    components = components_of(executions)
    agents = pd.concat(scores_by_hour(components), ignore_index=True)
    tables = {
        "executions": executions,
        "health_components": components,
        "agent_health": agents,
        "system_health": fleet(agents),
    }
    with duckdb.connect(warehouse) as connection:
        for name, frame in tables.items():
            connection.register("frame", frame)
            connection.execute(f"CREATE TABLE {name} AS FROM frame")
    return len(agents)


def read(path: Path) -> pd.DataFrame:
    """The executions of a file, with what follows from each alone."""
    frame = pd.read_json(path, lines=True, convert_dates=["started_at", "ended_at"]).drop(columns="type")
    frame["source_file"] = path.name
    frame["hour"] = frame["ended_at"].dt.floor("h")
    frame["succeeded"] = frame["status"] == "success"
    frame["runtime_s"] = (frame["ended_at"] - frame["started_at"]).dt.total_seconds()
    frame["sla_breached"] = frame["runtime_s"] > TARGETS["sla_s"]
    return frame


def components_of(executions: pd.DataFrame) -> pd.DataFrame:
    """Sums per hour and agent."""
    rows = executions.assign(
        failed=~executions["succeeded"], is_long=executions["runtime_s"] > 5 * TARGETS["expected_runtime_s"]
    )
    return rows.groupby(["hour", "agent_id"], as_index=False).agg(
        executions=("execution_id", "size"),
        successes=("succeeded", "sum"),
        failures=("failed", "sum"),
        runtime_s_sum=("runtime_s", "sum"),
        long_running=("is_long", "sum"),
        sla_breaches=("sla_breached", "sum"),
    )


def scores_by_hour(components: pd.DataFrame) -> list[pd.DataFrame]:
    """The scores of every agent known at each hour."""
    by_hour = {hour: rows.set_index("agent_id") for hour, rows in components.groupby("hour")}
    last_seen = pd.Series(dtype="datetime64[us, UTC]")
    scored = []
    for hour in pd.date_range(min(by_hour), max(by_hour), freq="h"):
        if hour in by_hour:
            seen = pd.Series(hour, index=by_hour[hour].index)
            last_seen = seen.combine_first(last_seen) if len(last_seen) else seen
        known = last_seen.index[last_seen > hour - LOOKBACK]
        window = [by_hour[past] for past in pd.date_range(hour - WINDOW + HOUR, hour, freq="h") if past in by_hour]
        sums = pd.concat(window)[SUMS].groupby(level="agent_id").sum().reindex(known, fill_value=0)
        scored.append(score(sums, hour))
    return scored


def score(sums: pd.DataFrame, hour: pd.Timestamp) -> pd.DataFrame:
    """The Agent Health Model over the sums of a window."""
    rows = sums.rename(columns={"executions": "n"}).drop(columns="runtime_s_sum").rename_axis("agent_id").reset_index()
    rows.insert(0, "hour", hour)
    rows["window_start"], rows["window_end"], rows["hours_covered"] = hour + HOUR - WINDOW, hour + HOUR, 24
    n = rows["n"].where(rows["n"] > 0).to_numpy(float)  # nan, so that inactive agents have no scores
    rows["trigger_failures"] = 0
    rows["asr"] = rows["successes"] / n
    rows["afh"] = rows["failures"] / 24
    rows["ar_s"] = sums["runtime_s_sum"].to_numpy() / n
    active = np.where(np.isnan(n), np.nan, 1.0)
    rows["success_score"] = np.minimum(1, rows["asr"] / 0.95)
    rows["failure_score"] = active * np.minimum(1, 1 / np.maximum(rows["afh"], 1e-12))
    rows["reliability_raw"] = 0.7 * rows["success_score"] + 0.3 * rows["failure_score"]
    rows["confidence_factor"] = np.minimum(1, rows["n"] / 20)
    rows["reliability_score"] = rows["confidence_factor"] * rows["reliability_raw"] + 1 - rows["confidence_factor"]
    rows["deviation"] = rows["ar_s"] / TARGETS["expected_runtime_s"] - 1
    rows["performance_score"] = 1 - np.clip(rows["deviation"] / 0.2, 0, 1)
    rows["stability_score"] = active * (1 - np.minimum(1, np.log2(rows["long_running"] + 1) / np.log2(16)))
    rows["sla_score"] = active * (1 - np.minimum(1, rows["sla_breaches"] / 5))
    rows["trigger_score"] = active * (1 - np.minimum(1, rows["trigger_failures"] / 5))
    rows["operational_score"] = 0.6 * rows["sla_score"] + 0.4 * rows["trigger_score"]
    rows["health_score"] = (
        40 * rows["reliability_score"] + 20 * rows["performance_score"]
        + 20 * rows["stability_score"] + 20 * rows["operational_score"]
    )  # fmt: skip
    states = [rows["n"] == 0, rows["health_score"] >= 85, rows["health_score"] >= 65]
    rows["state"] = np.select(states, ["inactive", "healthy", "degraded"], "unhealthy")
    return rows.assign(
        expected_success_rate=0.95, expected_failures_per_hour=1.0, expected_runtime_s=TARGETS["expected_runtime_s"],
        deviation_allowed=0.2, n_full=20, long_running_factor=5.0, stability_threshold=15.0, sla_breach_threshold=5.0,
        trigger_failure_threshold=5.0, sla_s=TARGETS["sla_s"], healthy_at=85.0, degraded_at=65.0,
    )  # fmt: skip


def fleet(agents: pd.DataFrame) -> pd.DataFrame:
    """The fleet's health per hour."""
    states = agents.pivot_table(index="hour", columns="state", values="agent_id", aggfunc="count", fill_value=0)
    means = agents.groupby("hour").agg(health_score=("health_score", "mean"), agents=("agent_id", "size"))
    return means.join(states).reset_index()
