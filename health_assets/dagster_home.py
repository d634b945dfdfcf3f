"""How Dagster keeps its records: the configuration of an instance, for a folder that it is told by DAGSTER_HOME.

What belongs here: the same configuration as in `dagster.yaml`, which is for the project's own folder, with paths in
another one. What does not: which folder a run uses (`running`).
"""

from pathlib import Path
from typing import Any

import yaml

EVENT_STORAGE = {"module": "health_assets.defs.event_storage", "class": "BatchingSqliteEventLogStorage"}
HEADER = "# Dagster's instance of the demo; `health-assets demo` writes this file anew whenever it runs.\n"


def configuration(home: Path) -> dict[str, Any]:
    """The settings in a folder's `dagster.yaml`; runs and schedules are kept there by default."""
    return {
        "event_log_storage": {**EVENT_STORAGE, "config": {"base_dir": str(home.resolve() / "history" / "runs")}},
        "concurrency": {
            "runs": {"max_concurrent_runs": 4, "tag_concurrency_limits": [{"key": "dagster/backfill", "limit": 1}]}
        },
        "run_retries": {"enabled": True, "max_retries": 2, "retry_on_asset_or_op_failure": False},
        "run_monitoring": {
            "enabled": True,
            "start_timeout_seconds": 180,
        },
        "retention": {
            "schedule": {"purge_after_days": {"skipped": 3, "success": 30, "failure": 90, "started": 90}},
            "sensor": {"purge_after_days": {"skipped": 1, "success": 30, "failure": 90, "started": 90}},
        },
        "python_logs": {"python_log_level": "INFO"},  # of the console: a line a partition is at DEBUG
        "telemetry": {"enabled": False},
        "nux": {"enabled": False},
    }


def write_home(home: Path) -> None:
    """Make a folder Dagster's home, or bring its configuration up to this program's.

    Raises:
        OSError: the folder cannot be written.
    """
    home.mkdir(parents=True, exist_ok=True)
    text = HEADER + yaml.safe_dump(configuration(home), sort_keys=False)
    (home / "dagster.yaml").write_text(text, encoding="utf-8")
