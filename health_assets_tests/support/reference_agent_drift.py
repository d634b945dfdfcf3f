"""Agent drift as plain loops over executions, hour by hour and start by start: slow, and plain to read."""

import math
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from statistics import median

from health_assets.core.hours import HOUR

Counts = dict[datetime, list[int]]
Row = dict[str, object]


def agent_drift(executions: Sequence[Row], hours: Sequence[datetime], margin: float, alarms_a_week: float) -> list[Row]:
    """Every row without a cause; `executions` are records of executions."""
    agents: dict[str, Counts] = {}
    for execution in executions:
        counts = agents.setdefault(execution["agent_id"], {}).setdefault(execution["_hour"], [0, 0])
        counts[0] += 1
        counts[1] += execution["status"] != "success"
    return [row for hour in hours for row in _of_hour(agents, hour, margin, alarms_a_week)]


def _of_hour(agents: dict[str, Counts], hour: datetime, margin: float, alarms_a_week: float) -> list[Row]:
    detectors, rows = 0, []
    for agent_id, counts in agents.items():
        for measure, bets in _bets(counts, hour, margin).items():
            if not bets:
                continue
            detectors += 1
            evidence = math.log(sum(math.exp(bet["log_ratio"]) for bet in bets))
            best = max(bets, key=lambda bet: (bet["log_ratio"], bet["since"]))
            told = {name: value for name, value in best.items() if name != "log_ratio"}
            rows.append({"hour": hour, "agent_id": agent_id, "measure": measure, "evidence": evidence, **told})
    ranked = sorted(rows, key=lambda row: -row["evidence"])
    enough = [
        place for place, row in enumerate(ranked, 1)
        if row["evidence"] >= math.log(detectors * 168 / alarms_a_week / place)
    ]  # fmt: skip
    for place, row in enumerate(ranked, 1):
        row.update(
            detectors=detectors, is_drifting=bool(enough) and place <= enough[-1], as_of=hour + HOUR, is_final=True
        )
    return [row for row in rows if math.exp(row["evidence"]) >= min(20, 168 / alarms_a_week)]


def _bets(counts: Counts, hour: datetime, margin: float) -> dict[str, list[Row]]:
    def hours_back(newer: int, older: int) -> list[list[int]]:
        return [counts.get(hour - back * HOUR, [0, 0]) for back in range(newer, older)]

    rates = [_success_rate(hours_back, back, hour, margin) for back in (1, 2, 4, 8, 12, 24, 48, 72)]
    volumes = [_volume(hours_back, back, hour) for back in (1, 2, 4, 8, 12, 24)]
    return {
        "success_rate": [bet for bet in rates if bet],
        "volume_drop": [pair[0] for pair in volumes if pair],
        "volume_rise": [pair[1] for pair in volumes if pair],
    }


def _success_rate(hours_back, back: int, hour: datetime, margin: float) -> Row | None:
    days = [hours_back(back + 24 * day, back + 24 * day + 24) for day in range(4)]
    shares = [sum(f for _, f in day) / sum(n for n, _ in day) for day in days if sum(n for n, _ in day)]
    kept = [cell for day in days if not _is_incident(day, median(shares) if shares else 0) for cell in day if cell[0]]
    runs, failures = sum(n for n, _ in kept), sum(f for _, f in kept)
    if runs < 100:
        return None
    share = failures / runs
    phi = 1.0
    if len(kept) > 1 and 0 < failures < runs:
        squares = sum(round(f * f / n * 1e6) for n, f in kept) / 1e6 - runs * share**2
        phi = max(1.0, squares / (share * (1 - share) * (len(kept) - 1)))
    if failures < 10:
        phi = max(phi, min(5.0, runs / len(kept)))
    n, z = runs / phi, 2.0
    upper = (share + z * z / (2 * n) + z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))) / (1 + z * z / n)
    worst = upper + margin
    if worst >= 1:
        return None
    now = hours_back(0, back)
    runs_now, failures_now = sum(n for n, _ in now), sum(f for _, f in now)
    ratios = []
    for part in (0.05, 0.2, 0.6):
        other = worst + (1 - worst) * part
        log = failures_now * math.log(other / worst)
        log += (runs_now - failures_now) * math.log((1 - other) / (1 - worst))
        ratios.append(math.exp(log / phi))
    return {
        "since": hour - (back - 1) * HOUR, "runs": runs_now,
        "value": 1 - failures_now / runs_now if runs_now else None, "baseline_runs": runs, "baseline": 1 - share,
        "limit_value": 1 - worst, "log_ratio": math.log(sum(ratios) / 3),
    }  # fmt: skip


def _is_incident(day: list[list[int]], middle: float) -> bool:
    runs, failures = sum(n for n, _ in day), sum(f for _, f in day)
    expected = min(middle + 0.05, 0.5)
    few = runs * expected + 4 * math.sqrt(runs * expected * (1 - expected))
    return failures > runs * (middle + 0.1) and failures > few


def _volume(hours_back, back: int, hour: datetime) -> tuple[Row, Row] | None:
    if sum(n for n, _ in hours_back(24, 168)) < 100:
        return None
    days = [sum(n for n, _ in hours_back(24 * day, 24 * day + back)) for day in range(7)]
    runs, before = days[0], days[1:]
    phi = _dispersion(hours_back)
    edges = [edge for edge in (0, 1, 2, 4, 8, 12, 24) if edge <= back]
    least = sum(
        min(sum(n for n, _ in hours_back(24 * day + start, 24 * day + end)) for day in range(1, 7))
        for start, end in pairwise(edges)
    )
    fewest = max(0.0, least - math.sqrt(phi * least) / 2) * 0.75
    most = (max(before) + math.sqrt(phi * max(before)) / 2 + 1.1 * phi) * 1.25
    told = {
        "since": hour - (back - 1) * HOUR, "runs": runs, "value": runs / back, "baseline_runs": sum(before),
        "baseline": sum(before) / 6 / back,
    }  # fmt: skip

    def bet(worst: float, factors: tuple[float, float]) -> Row:
        logs = [(runs * math.log(factor) - (factor - 1) * worst) / phi for factor in factors]
        return {**told, "limit_value": worst / back, "log_ratio": math.log(sum(map(math.exp, logs)) / 2)}

    return bet(fewest, (0.5, 0.1)), bet(most, (2.0, 5.0))


def _dispersion(hours_back) -> float:
    def parts(day: int) -> list[int]:
        edges = (0, 1, 2, 4, 8, 12, 24)
        return [
            sum(n for n, _ in hours_back(24 * day + start, 24 * day + end))
            for start, end in zip(edges, edges[1:], strict=False)
        ]

    means = []
    for day in range(1, 6):
        squares = [(a - b) ** 2 / (a + b) for a, b in zip(parts(day), parts(day + 1), strict=True) if a + b]
        means.append(sum(squares) / max(1, len(squares)))
    return max(1.0, median(means))
