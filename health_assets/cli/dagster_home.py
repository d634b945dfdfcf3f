"""Dagster's home: which folder keeps its records for whoever works in this one, and the configuration in it.

What belongs here: the one decision for the page and the commands, who else would not see each other's runs and locks;
the same configuration as in `dagster.yaml`, which is for the project's own folder, with paths in another one. What does
not: making a home where `dev` needs one (`dev`), and opening it (`dagster_run`).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from dotenv import dotenv_values

from health_assets.core.settings import Settings, load_settings

EVENT_STORAGE = {"module": "health_assets.defs.event_storage", "class": "BatchingSqliteEventLogStorage"}
CONFIGURATION = "dagster.yaml"
HOME = Path("data/dagster")
"""The home that `dev` makes where nothing says another; the configuration keeps Dagster's records there."""
HEADER = "# Dagster's instance of the demo; `health-assets demo` writes this file anew whenever it runs.\n"


def home_here(environment: Mapping[str, str]) -> str | None:
    """The folder that is Dagster's home for a program that is started in this folder.

    DAGSTER_HOME says it, in the environment or in the file `.env` (which Dagster reads, too); else it is `data/dagster`
    where `dev` has made one, unless this folder has a `dagster.yaml` of its own.

    Args:
        environment: the environment's variables; what is empty is not set.

    Returns:
        The home as it is named; None where there is none, or this folder's `dagster.yaml` says where records are.
    """
    if named := environment.get("DAGSTER_HOME") or dotenv_values(".env").get("DAGSTER_HOME"):
        return named
    is_made = (HOME / CONFIGURATION).exists() and not Path(CONFIGURATION).exists()
    return str(HOME.resolve()) if is_made else None


def records_in(settings: Settings, environment: Mapping[str, str]) -> str:
    """The place where Dagster keeps its records of a command's run; empty where they go with the command.

    Only runs about the warehouse that the environment names are kept, since that is the one that Dagster's page shows.

    Args:
        settings: which warehouse the command is about.
        environment: the environment's variables.
    """
    if settings.warehouse != load_settings().warehouse:
        return ""
    if home := home_here(environment):
        return str(Path(home).resolve())
    return str(Path(CONFIGURATION).resolve()) if Path(CONFIGURATION).exists() else ""


def configuration(home: Path) -> dict[str, Any]:
    """The settings in a folder's `dagster.yaml`; runs and schedules are kept there by default."""
    return {
        "event_log_storage": {**EVENT_STORAGE, "config": {"base_dir": str(home.resolve() / "history" / "runs")}},
        "concurrency": {
            "runs": {
                "max_concurrent_runs": 4,
                "tag_concurrency_limits": [
                    {"key": key, "limit": 1} for key in ("dagster/backfill", "health-assets/only-stale")
                ],
            }
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
    (home / CONFIGURATION).write_text(text, encoding="utf-8")
