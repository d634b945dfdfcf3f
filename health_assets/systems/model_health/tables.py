"""Model health (source 4): last calls, the rolling health of every model, and what a fallback might have avoided."""

from datetime import datetime

from health_assets.schema.columns import AsOf, Hourly, Windowed, at, count, flag, number, text


class ModelComponent(Hourly, table=True):
    """The last calls of each model and hour, as many as a rolling window holds; windows take the last of these."""

    __tablename__ = "model_components"

    model: str = text("Model that was asked for.", key=True)
    call_id: str = text("Id of the call.", key=True)
    ended_at: datetime = at("When the call ended.")
    succeeded: bool = flag("Whether the call succeeded.")
    latency_ms: float | None = number("Latency in milliseconds.")
    error: str | None = text("Error as the log states it; null where it states an empty one.")
    response_model: str | None = text("Model that answered, where the log names it.")
    source_file: str = text("Raw log that holds the call; orders calls that ended at the same moment.", key=True)
    line_number: int = count("Line in that file, likewise.", key=True)
    window_calls: int = count("Setting used: most calls that the hour has of a model.")


class ModelHealth(AsOf, table=True):
    """Rolling health of every model called in the look-back, over its last calls before the end of the hour."""

    __tablename__ = "model_health"

    model: str = text("Model that was asked for.", key=True)
    health_score: float = number("Share of the calls that succeeded, 0 to 1.")
    success_count: int = count("Calls that succeeded.")
    failure_count: int = count("Calls that failed.")
    p50_latency_ms: float | None = number("Median latency in milliseconds (nearest rank); null without latencies.")
    p95_latency_ms: float | None = number("95th percentile of latency in milliseconds (nearest rank).")
    is_degraded: bool = flag("Whether the score is below the threshold.")
    last_error: str | None = text("Error of the latest failed call that states one; null where none does.")
    last_call_at: datetime = at("When the latest call ended.")
    last_response_model: str | None = text("Model that answered the latest successful call that names one.")
    previous_response_model: str | None = text("Another model that answered before it; null where none did.")
    response_model_changed_at: datetime | None = at(
        "When the first call after the last one of the previous model ended.", nullable=True
    )
    window_calls: int = count("Setting used: calls that the rolling window holds.")
    degraded_threshold: float = number("Setting used: scores below it are degraded.")
    formula_version: str = text("Version of the formulas that made it; says so where it rests on older components.")


class FallbackComponent(Hourly, table=True):
    """Calls of the hour to each model that was degraded before it, and those to the best model known then."""

    __tablename__ = "fallback_components"

    model: str = text("Model that was called, degraded by its calls before the hour.", key=True)
    alternative: str = text("Healthiest model by the calls before the hour; empty where none was healthy.", key=True)
    calls: int = count("Calls to the model in the hour.")
    failures: int = count("Calls among them that failed.")
    alternative_calls: int = count("Calls to the alternative in the hour, of all agents.")
    alternative_failures: int = count("Calls among them that failed.")
    health_score: float = number("Score of the model before the hour, 0 to 1.")
    alternative_health_score: float | None = number("Score of the alternative before the hour; null without one.")
    window_calls: int = count("Setting used: calls that the rolling window of the scores holds.")
    degraded_threshold: float = number("Setting used: scores below it are degraded.")


class ModelFallback(Windowed, table=True):
    """Calls of the window to degraded models, and how many of them the best model known might have answered."""

    __tablename__ = "model_fallback"

    model: str = text("Model that was called while degraded.", key=True)
    alternative: str = text("Healthiest model known before each of the hours; empty where none was healthy.", key=True)
    calls: int = count("Calls to the model in the hours in which this was its alternative.")
    failures: int = count("Calls among them that failed.")
    compared_calls: int = count("Calls among them in hours in which the alternative was called.")
    compared_failures: int = count("Calls among those that failed.")
    compared_alternative_calls: int = count("Calls to the alternative in these hours, of all agents.")
    compared_alternative_failures: int = count("Calls among them that failed.")
    avoided_failures: float | None = number(
        "Failed calls that would have succeeded at the alternative's success rate of the same hour; null where it was "
        "not called."
    )
    avoided_failures_low: float | None = number("Low end of its 95 % interval.")
    avoided_failures_high: float | None = number("High end of it.")
    added_failures: float | None = number(
        "Calls that succeeded and would have failed at the alternative's success rate of the same hour; null likewise."
    )
    added_failures_low: float | None = number("Low end of its 95 % interval.")
    added_failures_high: float | None = number("High end of it.")
    formula_version: str = text("Version of the formulas that made it; says so where it rests on older components.")


TABLES = (ModelComponent, ModelHealth, FallbackComponent, ModelFallback)
