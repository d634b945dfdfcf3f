"""Reasons why systems differ on one agent: a degraded score, a healthy document, a spent budget.

What belongs here: in which cases two verdicts on one agent need a word, and that word. What does not: the verdicts
(`systems`) and how they are shown (`differences`). It imports no engine.

Three things make systems differ. They ask different questions (a document asks whether runs succeed, a score also how
fast they are and whether they were triggered), over different windows (a burn rate looks at 6 hours), with different
thresholds (the document's are fixed, those of score and budget are targets). Which of these it is follows from the
numbers of the row.
"""

from collections.abc import Mapping
from typing import Any

from ibis import ir

from health_assets.core.formatting import counted, duration, share
from health_assets.scoring.explanation import COLUMNS as COLUMNS_OF_SCORE
from health_assets.scoring.explanation import LEAST_LOSS, costliest, explain
from health_assets.systems.error_budget import error_budget as budgets

Row = Mapping[str, Any]

LEVELS = ("healthy", "degraded", "unhealthy")
FEWEST_SAMPLES, HEALTHY_SHARE, DEGRADED_SHARE, BASELINE_FACTOR = 10, 0.95, 0.5, 3
"""Thresholds of the document (source 3, section 4.3); tests hold them to what `scoring.agent_health_state` uses."""

_WANTED = share(HEALTHY_SHARE)

COLUMNS = {
    "score": (
        "agent_id", "state", "is_provisional", "health_score", "points_at_stake", "reliability_score",
        *COLUMNS_OF_SCORE,
    ),
    "document": (
        "status", "response_ratio", "sample_count", "latency_p99_ms", "baseline_latency_ms",
        "measurement_window_seconds",
    ),
    "budget": ("budget_spent", "allowed_failures", "burn_rate_1h", "burn_rate_6h", "failures_6h", "n_6h"),
}  # fmt: skip
"""Columns that are needed of `agent_health`, `agent_health_state` and `error_budget`; those of the last two may be
null, where a system has no row of the agent."""


def do_differ(agents: ir.Table) -> ir.BooleanValue:
    """Whether systems differ on an agent: true, false or null, the last two alike.

    A budget that is spent does not differ from a verdict that is not good.

    Args:
        agents: `COLUMNS` of the three tables, a row per agent.
    """
    is_unknown = agents.status == "unknown"
    is_called_healthy = (agents.state == "healthy") | (agents.status == "healthy")
    return (agents.state != "inactive") & (
        (~is_unknown & (agents.status != agents.state))
        | (is_unknown & ~agents.is_provisional)
        | ((budgets.is_spent(agents) | budgets.burns_too_fast(agents)) & is_called_healthy)
    )


def why(row: Row) -> str:
    """Say in a clause or two why the systems differ on an agent of which `do_differ` is true.

    Args:
        row: `COLUMNS` of the three tables, of one agent and hour.
    """
    return "; ".join(dict.fromkeys([*_score_and_document(row), *_budget(row)]))  # both may name one cost


def is_spent(row: Row) -> bool:
    """Whether the error budget is spent."""
    return row["budget_spent"] is not None and row["budget_spent"] >= 1


def is_burning(row: Row) -> bool:
    """Whether it is being spent faster than it may, over 6 hours and in the last one."""
    rates = (row["burn_rate_1h"], row["burn_rate_6h"])
    return None not in rates and min(rates) > 1


def _score_and_document(row: Row) -> list[str]:
    if row["status"] == "unknown" and not row["is_provisional"]:
        wanted = f"the document wants {FEWEST_SAMPLES} runs, the score {row['n_full']:,}"
        return [f"{counted(row['n'], 'run')}: {wanted}"]
    if row["status"] not in LEVELS or row["status"] == row["state"]:
        return []
    if LEVELS.index(row["state"]) > LEVELS.index(row["status"]):
        return [_score_is_worse(row)]
    return _document_is_worse(row)


def _score_is_worse(row: Row) -> str:
    """The score lost points to what the document does not ask, or counts less."""
    loss = costliest(explain(row))
    if loss is None:  # no point is lost: the agent's own limits are above 100, or as good as that
        return f"{row['health_score']:.1f} is below its own limit, healthy_at {row['healthy_at']:g}"
    cost = f"{loss.sentence} (-{loss.lost:.1f})"
    asks = "" if loss.component.dimension == "reliability" or _is_slow(row) else " asks for success alone"
    return f"{cost}; the document{asks}: {_of_document(row)}"


def _document_is_worse(row: Row) -> list[str]:
    if _is_slow(row):
        mean = "" if row["ar_s"] is None else f", {row['ar_s']:,.1f} s"
        expected = row["expected_runtime_s"]
        against = "expects none" if expected is None else f"expects {expected:g} s"
        return [f"the document: {_of_document(row)}", f"the score looks at the mean runtime{mean}, and {against}"]
    return [f"the document: {_of_document(row)}", _cost_of_failures(row)]


def _is_slow(row: Row) -> bool:
    """Whether the document is degraded for its latency: enough succeeded."""
    return row["status"] == "degraded" and row["response_ratio"] >= HEALTHY_SHARE


def _of_document(row: Row) -> str:
    """Say what decided the document's status, against its fixed threshold."""
    if _is_slow(row):
        p99, declared = (duration(row[name] / 1e3) for name in ("latency_p99_ms", "baseline_latency_ms"))
        return f"p99 of {p99} is above {BASELINE_FACTOR} times the declared {declared}"
    limit = f"unhealthy below {share(DEGRADED_SHARE)}" if row["status"] == "unhealthy" else f"{_WANTED} wanted"
    return f"{share(row['response_ratio'], beside=HEALTHY_SHARE)} succeeded, {limit}"


def _cost_of_failures(row: Row) -> str:
    """Say what the failures cost the score, and why it is no more."""
    lost = 40 * (1 - row["reliability_score"])
    if row["is_provisional"]:
        return f"the score needs {row['n_full']:,} runs and leans to 100"
    if lost <= LEAST_LOSS:
        return f"the score expects {share(row['expected_success_rate'])}"
    return f"that costs the score {lost:.1f} points of 40"


def _budget(row: Row) -> list[str]:
    """The reason why the budget of an agent that another system calls healthy is spent, or is being spent too fast."""
    is_called_healthy = "healthy" in (row["state"], row["status"])
    if not is_called_healthy:
        return []
    if is_spent(row):
        spent = f"{row['failures']:,} of {row['n']:,} failed, {_few(row['allowed_failures'])} allowed"
        if row["state"] == "healthy":
            return [spent, _cost_of_failures(row)]
        return [f"{spent} by a target of {share(row['expected_success_rate'])}"]
    if is_burning(row):
        whole = f"{row['failures']:,} of {row['n']:,} in the whole window"
        return [f"{row['failures_6h']:,} of {row['n_6h']:,} failed in the last 6 h, {whole}"]
    return []


def _few(number: float) -> str:
    return f"{number:,.1f}" if number >= 1 else f"{number:.2g}"
