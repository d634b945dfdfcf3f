"""Settings: where the logs, the targets and the warehouse are, and how long windows last.

Every setting is an environment variable (prefix `HEALTH_`); the commands' flags override it. What a single agent is
expected to do is not a setting but a target (`targets`).
"""

from pathlib import Path

from pydantic import Field, ValidationError, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from health_assets.errors import HealthAssetsError


def load_settings() -> "Settings":
    """The settings of the environment.

    Raises:
        HealthAssetsError: a variable has an impossible value.
    """
    try:
        return Settings()
    except ValidationError as error:
        first = error.errors()[0]
        if not first["loc"]:
            raise HealthAssetsError(f"HEALTH_LOOKBACK_HOURS: {first['msg'].removeprefix('Value error, ')}") from error
        name = f"HEALTH_{first['loc'][0]}".upper()
        raise HealthAssetsError(f"{name}: {first['msg']}, got {first['input']!r}") from error


class Settings(BaseSettings):
    """Read from the environment: `HEALTH_RAW`, `HEALTH_TARGETS`, `HEALTH_WAREHOUSE` and the rest below."""

    model_config = SettingsConfigDict(env_prefix="HEALTH_", extra="ignore")

    raw: Path = Field(Path("data/raw"), description="Folder below which the raw logs lie.")
    targets: Path | None = Field(None, description="targets.yaml; without one, the defaults apply to every agent.")
    warehouse: str = Field("data/health.duckdb", description="The warehouse: a DuckDB file or duckdb:/// URL.")
    window_hours: int = Field(24, ge=1, le=24 * 366, description="Length of the evaluation window.")
    lookback_hours: int = Field(168, ge=1, le=24 * 366, description="How long an agent stays known after an event.")
    lock_timeout_s: float = Field(60.0, gt=0, description="How long to wait for a warehouse that somebody holds.")
    memory_limit: str = Field("2GB", description="Most memory that DuckDB may use before it spills to disk.")
    schedule_minute: int = Field(5, ge=0, le=59, description="Minute past the hour at which it is materialised.")
    late_after_minutes: int = Field(30, ge=1, description="An hour not materialised so long after its end is late.")
    run_history_days: int = Field(90, ge=1, description="How long Dagster's runs and their events are kept.")

    @model_validator(mode="after")
    def _look_back_holds_the_window(self) -> "Settings":
        if self.lookback_hours < self.window_hours:
            raise ValueError(f"the look-back is shorter than the window of {self.window_hours} h")
        return self
