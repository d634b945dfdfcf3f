"""The independent reference of model health: source 4 and the contract in plain Python loops over records."""

from datetime import datetime, timedelta

from health_assets_tests.support.reference import ONE_HOUR, Record


def model_health(
    records: list[Record], hours: list[datetime], lookback_hours: int, window_calls: int = 50, threshold: float = 0.7
) -> list[Record]:
    """Contract section 4: the last calls of each model that ended before H+1h and within the look-back."""
    calls = sorted(
        (record for record in records if record["type"] == "model_call"),
        key=lambda call: (call["_at"], call["_source_file"], call["_line_number"]),
    )
    rows = []
    for hour in hours:
        end = hour + ONE_HOUR
        start = end - timedelta(hours=lookback_hours)
        for model in sorted({call["model"] for call in calls}):
            window = [call for call in calls if call["model"] == model and start <= call["_at"] < end][-window_calls:]
            if window:
                made = {"hour": hour, "as_of": end, "is_final": True, "model": model}
                rows.append(made | summary(window, threshold))
    return rows


def summary(window: list[Record], threshold: float) -> Record:
    """Source 4, "Health Score" and "ModelHealthSummary" of the calls in a window, oldest first."""
    successes = sum(call["status"] == "success" for call in window)
    errors = [call["error"] for call in window if call["status"] == "failure" and call.get("error")]
    latencies = sorted(float(call["latency_ms"]) for call in window if call.get("latency_ms") is not None)
    answers = [call for call in window if call["status"] == "success" and call.get("response_model")]
    others = [place for place, call in enumerate(answers) if call["response_model"] != answers[-1]["response_model"]]
    return {
        "last_response_model": answers[-1]["response_model"] if answers else None,
        "previous_response_model": answers[others[-1]]["response_model"] if others else None,
        "response_model_changed_at": answers[others[-1] + 1]["_at"] if others else None,
        "health_score": successes / len(window),
        "success_count": successes,
        "failure_count": len(window) - successes,
        "p50_latency_ms": nearest_rank(latencies, 50),
        "p95_latency_ms": nearest_rank(latencies, 95),
        "is_degraded": successes / len(window) < threshold,
        "last_error": errors[-1] if errors else None,
        "last_call_at": window[-1]["_at"],
    }


def nearest_rank(ordered: list[float], percent: int) -> float | None:
    """The least value that at least so many percent of the values do not exceed."""
    for place, value in enumerate(ordered, start=1):
        if place * 100 >= percent * len(ordered):
            return value
    return None
