"""Agent drift as plain loops over executions, hour by hour and start by start: slow, and plain to read."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from statistics import median

from health_assets.core.hours import HOUR

Counts = dict[datetime, list[int]]
Row = dict[str, object]


def agent_drift(records: Sequence[Row], hours: Sequence[datetime], margin: float, alarms_a_week: float) -> list[Row]:
    """Every row without a cause; `records` are records of executions and calls of tools."""
    agents: dict[str, Agent] = {}
    failed_calls: dict[str, list[bool]] = {}
    for record in records:
        agent = agents.setdefault(record["agent_id"], Agent())
        if record["type"] == "tool_call":
            agent.calls.setdefault(record["_hour"], []).append(record["tool"])
            failed_calls.setdefault(record["execution_id"], []).append(record["status"] != "success")
        else:
            agent.runs.setdefault(record["_hour"], []).append(record)
    for agent in agents.values():
        for run in (run for runs in agent.runs.values() for run in runs):
            run["_failed_calls"] = failed_calls.get(run["execution_id"], [])
    return [row for hour in hours for row in _of_hour(agents, hour, margin, alarms_a_week)]


@dataclass
class Agent:
    runs: dict[datetime, list[Row]] = field(default_factory=dict)
    calls: dict[datetime, list[str]] = field(default_factory=dict)

    def counts(self, is_counted: Callable[[Row], bool], is_event: Callable[[Row], bool]) -> Counts:
        told = {hour: [run for run in runs if is_counted(run)] for hour, runs in self.runs.items()}
        return {hour: [len(runs), sum(map(is_event, runs))] for hour, runs in told.items()}


def _of_hour(agents: dict[str, Agent], hour: datetime, margin: float, alarms_a_week: float) -> list[Row]:
    detectors, rows = 0, []
    for agent_id, agent in agents.items():
        for measure, (evidence, bets) in _measures(agent, hour, margin).items():
            detectors += 1
            best = max(bets, key=lambda bet: (bet["log_ratio"], bet["since"]))
            told = {name: value for name, value in best.items() if name != "log_ratio"}
            if measure == "success_rate":
                told |= {
                    name: 1 - told[name] for name in ("value", "baseline", "limit_value") if told[name] is not None
                }
            rows.append({
                "hour": hour, "agent_id": agent_id, "measure": measure, "threshold": None, "evidence": evidence, **told,
            })  # fmt: skip
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


def _measures(agent: Agent, hour: datetime, margin: float) -> dict[str, tuple[float, list[Row]]]:
    """By measure with a past: the logarithm of the evidence, and the bets."""
    if sum(len(runs) for at, runs in agent.runs.items() if hour - 168 * HOUR < at <= hour) < 100:
        return {}
    successes = agent.counts(lambda _: True, lambda run: run["status"] != "success")
    calls = agent.counts(lambda run: bool(run["_failed_calls"]), lambda run: any(run["_failed_calls"]))
    volumes = [_volume(_hours_back(successes, hour), back, hour) for back in (1, 2, 4, 8, 12, 24)]
    found = {
        "success_rate": _shares(successes, hour, margin),
        "tool_failure_share": _shares(calls, hour, margin),
        "volume_drop": [pair[0] for pair in volumes if pair],
        "volume_rise": [pair[1] for pair in volumes if pair],
    }
    for measure in AMOUNTS:
        found[measure] = _amounts(agent, measure, hour, margin)
    evidence = {measure: (_log_sum(bets), bets) for measure, bets in found.items() if bets}
    mix = _tool_mix(agent, hour)
    return {**evidence, "tool_mix": mix} if mix else evidence


def _log_sum(bets: list[Row]) -> float:
    return math.log(sum(math.exp(bet["log_ratio"]) for bet in bets))


def _hours_back(counts: Counts, hour: datetime):
    def hours_back(newer: int, older: int) -> list[list[int]]:
        return [counts.get(hour - back * HOUR, [0, 0]) for back in range(newer, older)]

    return hours_back


def _shares(counts: Counts, hour: datetime, margin: float, *, by_time_of_day: bool = False) -> list[Row]:
    bets = [
        _share(_hours_back(counts, hour), back, hour, margin, by_time_of_day) for back in (1, 2, 4, 8, 12, 24, 48, 72)
    ]
    return [bet for bet in bets if bet]


# -- what a run takes --------------------------------------------------------------------------------------------------


def _runtime(run: Row) -> float | None:
    return round(run["_runtime_s"] * 1e6) if run["status"] == "success" else None


def _tokens(run: Row) -> float | None:
    told = [run[name] for name in ("input_tokens", "output_tokens") if run.get(name) is not None]
    return sum(told) if told else None


def _cost(run: Row) -> float | None:
    return None if run.get("cost_usd") is None else run["cost_usd"] * 1e6


THRESHOLD_HOURS_BACK = [144 - 24 * day - hour for day in range(3) for hour in range(day, 24, 3)]
AMOUNTS = {"latency": (_runtime, 1e6), "tokens": (_tokens, 1), "cost": (_cost, 1e6)}


def _bucket(amount: float) -> int:
    return math.floor(math.log(amount) / math.log(1.02)) + 1 if amount >= 1 else 0


def _amounts(agent: Agent, measure: str, hour: datetime, margin: float) -> list[Row]:
    amount, unit = AMOUNTS[measure]
    midnight = hour.replace(hour=0)
    total = count = 0
    for back in THRESHOLD_HOURS_BACK:
        amounts = [amount(run) for run in agent.runs.get(midnight - back * HOUR, [])]
        of_versions = {}
        for run, one in zip(agent.runs.get(midnight - back * HOUR, []), amounts, strict=True):
            if one is not None:
                of_versions.setdefault((run.get("agent_version"), run.get("model")), []).append(_bucket(one))
        for buckets in of_versions.values():
            total += len(buckets) * sorted(buckets)[math.ceil(len(buckets) * 9 / 10) - 1]
            count += len(buckets)
    if not count:
        return []
    threshold = total // count + math.ceil(math.log(1.1) / math.log(1.02))
    counts = agent.counts(lambda run: amount(run) is not None, lambda run: _bucket(amount(run)) > threshold)
    bets = _shares(counts, hour, margin, by_time_of_day=True)
    return [{**bet, "threshold": 1.02**threshold / unit} for bet in bets]


# -- the tool mix ------------------------------------------------------------------------------------------------------


def _tool_mix(agent: Agent, hour: datetime) -> tuple[float, list[Row]] | None:
    if sum(len(tools) for at, tools in agent.calls.items() if hour - 168 * HOUR < at <= hour) < 100:
        return None
    midnight = hour.replace(hour=0)
    usual: dict[str, int] = {}
    for back in THRESHOLD_HOURS_BACK:
        for tool in agent.calls.get(midnight - back * HOUR, []):
            usual[tool] = usual.get(tool, 0) + 1
    kept = sorted(usual, key=lambda tool: (-usual[tool], tool))[:15]
    parts = [*([tool] for tool in kept), None]
    total, bets = 0.0, []
    for part in parts:
        counts = {
            at: [len(tools), sum(tool in part if part else tool not in kept for tool in tools)]
            for at, tools in agent.calls.items()
        }
        own = _shares(counts, hour, 0.1, by_time_of_day=True)
        total += math.exp(_log_sum(own)) if own else 0.0
        bets += own
    return (math.log(total / len(parts)), bets) if bets else None


# -- shares ------------------------------------------------------------------------------------------------------------


def _share(hours_back, back: int, hour: datetime, margin: float, by_time_of_day: bool) -> Row | None:
    days = [hours_back(back + 24 * day, back + 24 * day + 24) for day in range(4)]
    shares = [sum(f for _, f in day) / sum(n for n, _ in day) for day in days if sum(n for n, _ in day)]
    is_kept = [not _is_incident(day, median(shares) if shares else 0) for day in days]
    kept = [cell for day, is_own in zip(days, is_kept, strict=True) if is_own for cell in day if cell[0]]
    runs, events = sum(n for n, _ in kept), sum(f for _, f in kept)
    if runs < 100:
        return None
    share = events / runs
    phi = 1.0
    if len(kept) > 1 and 0 < events < runs:
        squares = sum(round(f * f / n * 1e6) for n, f in kept) / 1e6 - runs * share**2
        phi = max(1.0, squares / (share * (1 - share) * (len(kept) - 1)))
    if events < 10:
        phi = max(phi, min(5.0, runs / len(kept)))
    worst = _upper(share, runs / phi)
    if by_time_of_day and back < 24:
        same = [cell for day in range(1, 5) if is_kept[day - 1] for cell in hours_back(24 * day, 24 * day + back)]
        same_runs = sum(n for n, _ in same)
        if same_runs >= 20:
            worst = max(worst, _upper(sum(f for _, f in same) / same_runs, same_runs / phi))
    worst += margin
    if worst >= 1:
        return None
    now = hours_back(0, back)
    runs_now, events_now = sum(n for n, _ in now), sum(f for _, f in now)
    ratios = []
    for part in (0.05, 0.2, 0.6):
        other = worst + (1 - worst) * part
        log = events_now * math.log(other / worst)
        log += (runs_now - events_now) * math.log((1 - other) / (1 - worst))
        ratios.append(log / phi)
    greatest = max(ratios)
    return {
        "since": hour - (back - 1) * HOUR, "runs": runs_now, "value": events_now / runs_now if runs_now else None,
        "baseline_runs": runs, "baseline": share, "limit_value": worst,
        "log_ratio": greatest + math.log(sum(math.exp(one - greatest) for one in ratios) / 3),
    }  # fmt: skip


def _upper(share: float, n: float) -> float:
    z = 2.0
    return (share + z * z / (2 * n) + z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))) / (1 + z * z / n)


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
