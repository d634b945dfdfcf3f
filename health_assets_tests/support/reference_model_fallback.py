"""The independent reference of the fallback replay: plain Python loops over records."""

from collections import defaultdict
from datetime import datetime, timedelta
from math import sqrt

from health_assets_tests.support.reference import ONE_HOUR, Record

Z = 1.96


def model_fallback(
    records: list[Record], hours: list[datetime], window_hours: int, known_hours: int, window_calls: int,
    threshold: float = 0.7,
) -> list[Record]:  # fmt: skip
    """Of each hour's window, the calls to degraded models and what their alternatives did in the same hours."""
    calls = sorted(
        (record for record in records if record["type"] == "model_call"),
        key=lambda call: (call["_at"], call["_source_file"], call["_line_number"]),
    )
    rows = []
    for hour in hours:
        replayed = defaultdict(list)
        for back in range(window_hours):
            for key, part in of_hour(calls, hour - back * ONE_HOUR, known_hours, window_calls, threshold).items():
                replayed[key].append(part)
        made = {"hour": hour, "as_of": hour + ONE_HOUR, "is_final": True, "hours_covered": window_hours,
                "window_start": hour - (window_hours - 1) * ONE_HOUR, "window_end": hour + ONE_HOUR}  # fmt: skip
        rows += [
            made | {"model": model, "alternative": alternative} | summary(parts)
            for (model, alternative), parts in replayed.items()
        ]
    return rows


def of_hour(
    calls: list[Record], hour: datetime, known_hours: int, window_calls: int, threshold: float
) -> dict[tuple[str, str], tuple[list[bool], list[bool]]]:
    """By degraded model and alternative, which calls of the hour to each of them succeeded."""
    known = {}
    for model in {call["model"] for call in calls} - {"unknown"}:
        before = outcomes(calls, model, hour - timedelta(hours=known_hours), hour)[-window_calls:]
        if before:
            known[model] = (sum(before) / len(before), len(before))
    healthy = sorted((-score, -number, model) for model, (score, number) in known.items() if score >= threshold)
    best = healthy[0][2] if healthy else ""
    found = {}
    for model, (score, _) in known.items():
        own = outcomes(calls, model, hour, hour + ONE_HOUR)
        if score < threshold and own:
            found[model, best] = (own, outcomes(calls, best, hour, hour + ONE_HOUR))
    return found


def outcomes(calls: list[Record], model: str, start: datetime, end: datetime) -> list[bool]:
    """Whether each call to a model that ended in a time succeeded, in order."""
    return [call["status"] == "success" for call in calls if call["model"] == model and start <= call["_at"] < end]


def summary(parts: list[tuple[list[bool], list[bool]]]) -> Record:
    """Counts of some hours and, of those in which the alternative was called, the estimates."""
    compared = [(own, others) for own, others in parts if others]
    return {
        "calls": sum(len(own) for own, _ in parts),
        "failures": sum(own.count(False) for own, _ in parts),
        "compared_calls": sum(len(own) for own, _ in compared),
        "compared_failures": sum(own.count(False) for own, _ in compared),
        "compared_alternative_calls": sum(len(others) for _, others in compared),
        "compared_alternative_failures": sum(others.count(False) for _, others in compared),
        **estimate("avoided_failures", [(own.count(False), others, True) for own, others in compared]),
        **estimate("added_failures", [(own.count(True), others, False) for own, others in compared]),
    }


def estimate(name: str, hours: list[tuple[int, list[bool], bool]]) -> Record:
    """How many calls would end as asked, with its interval: weight, outcomes of the alternative, which end is asked."""
    if not hours:
        return dict.fromkeys((name, f"{name}_low", f"{name}_high"))
    total = sum(weight * others.count(asked) / len(others) for weight, others, asked in hours)
    most = sum(weight for weight, _, _ in hours)
    if not most:
        return dict.fromkeys((name, f"{name}_low", f"{name}_high"), 0.0)
    effective_calls = most**2 / (sum(weight**2 / len(others) for weight, others, _ in hours) + most)
    low, high = (most * end_of(total / most, effective_calls, outermost) for outermost in (0.0, 1.0))
    return {name: total, f"{name}_low": low, f"{name}_high": high}


def end_of(share: float, cases: float, outermost: float) -> float:
    """Wilson's end towards 0 or 1: the farthest probability that does not reject the share, found by halving."""
    near, far = share, outermost
    for _ in range(100):
        middle = (near + far) / 2
        if abs(share - middle) <= Z * sqrt(middle * (1 - middle) / cases):
            near = middle
        else:
            far = middle
    return near
