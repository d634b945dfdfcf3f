"""Losses of a health score: the points by component, the value seen and expected, and the events.

What belongs here: taking one row of `agent_health` apart. The endpoint, the alerts and the terminal all say it in these
words. What does not: the formulas (`systems.agent_health_model`) and finding the events
(`systems.explanations.evidence`). It imports no engine.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from health_assets.core.wording import counted, share
from health_assets.scoring.weights import (
    FAILURE_SHARE,
    OPERATIONAL_POINTS,
    PERFORMANCE_POINTS,
    RELIABILITY_POINTS,
    SLA_SHARE,
    STABILITY_POINTS,
    SUCCESS_SHARE,
    TRIGGER_SHARE,
)

Row = Mapping[str, Any]
Evidence = Mapping[str, Sequence[str]]
"""Ids of events by kind (`scoring.evidence.KINDS`), the heaviest first."""

LEAST_LOSS = 1e-9
"""Smaller losses are rounding."""


@dataclass(frozen=True)
class Component:
    """A part of the score that points can be lost to.

    Args:
        name: its name.
        dimension: the dimension that it belongs to.
        points: the most that it can cost.
        score: column of its own score, 0 to 1.
        inputs: columns of what was seen.
        targets: columns of what was expected.
        evidence: kind of the events that weigh most.
        said: what was seen against what was expected, in a few words.
    """

    name: str
    dimension: str
    points: float
    score: str
    inputs: tuple[str, ...]
    targets: tuple[str, ...]
    evidence: str
    said: Callable[[Row], str]


@dataclass(frozen=True)
class Loss:
    """The points that a component cost an agent.

    Args:
        component: the component.
        lost: points lost.
        sentence: why, in a few words.
        inputs: what was seen.
        targets: what was expected.
        evidence: ids of the events that weigh most, the heaviest first.
    """

    component: Component
    lost: float
    sentence: str
    inputs: dict[str, Any]
    targets: dict[str, Any]
    evidence: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """The loss as JSON writes it."""
        return {
            "component": self.component.name,
            "dimension": self.component.dimension,
            "points": self.component.points,
            "lost": self.lost,
            "sentence": self.sentence,
            "inputs": self.inputs,
            "targets": self.targets,
            "evidence_kind": self.component.evidence,
            "evidence": list(self.evidence),
        }


def _succeeded(row: Row) -> str:
    """The success as a share; few executions are named as they are, since a share of four would say too much."""
    expected = row["expected_success_rate"]
    seen = f"{row['successes']:,} of {row['n']:,}" if row["n"] < row["n_full"] else share(row["asr"], beside=expected)
    return f"{seen} succeeded, {share(expected)} expected"


def _failed(row: Row) -> str:
    return f"{row['afh']:.1f} failures an hour, {row['expected_failures_per_hour']:g} expected"


COMPONENTS = (
    Component(
        "success", "reliability", RELIABILITY_POINTS * SUCCESS_SHARE, "success_score",
        ("n", "successes", "asr", "confidence_factor"), ("expected_success_rate", "n_full"), "failure",
        _succeeded,
    ),
    Component(
        "failures", "reliability", RELIABILITY_POINTS * FAILURE_SHARE, "failure_score",
        ("n", "failures", "afh", "confidence_factor"), ("expected_failures_per_hour", "n_full"), "failure", _failed,
    ),
    Component(
        "performance", "performance", PERFORMANCE_POINTS, "performance_score",
        ("n", "ar_s", "deviation"), ("expected_runtime_s", "deviation_allowed"), "slow_run",
        lambda row: f"{row['ar_s'] or 0:,.1f} s a run, {row['expected_runtime_s'] or 0:g} s expected",
    ),
    Component(
        "stability", "stability", STABILITY_POINTS, "stability_score",
        ("n", "long_running"), ("expected_runtime_s", "long_running_factor", "stability_threshold"), "long_run",
        lambda row: counted(row["long_running"], "long run"),
    ),
    Component(
        "sla", "operation", OPERATIONAL_POINTS * SLA_SHARE, "sla_score",
        ("n", "sla_breaches"), ("sla_breach_threshold", "sla_s"), "sla_breach",
        lambda row: counted(row["sla_breaches"], "SLA breach", "SLA breaches"),
    ),
    Component(
        "triggers", "operation", OPERATIONAL_POINTS * TRIGGER_SHARE, "trigger_score",
        ("trigger_failures",), ("trigger_failure_threshold",), "trigger_failure",
        lambda row: counted(row["trigger_failures"], "failed trigger"),
    ),
)  # fmt: skip

OF_RUNTIMES = frozenset({"performance", "stability"})
"""Dimensions that are about how long executions take."""

COLUMNS = tuple(
    dict.fromkeys(
        [
            *(name for component in COMPONENTS for name in (component.score, *component.inputs, *component.targets)),
            "untimed",
        ]
    )
)
"""Columns of `agent_health` that an explanation is made from."""


def explain(row: Row, evidence: Evidence | None = None) -> list[Loss]:
    """The losses by component, in the order in which a person should read them, without those that cost nothing.

    The dimension that cost most comes first, and in it the component that cost most: so the first loss is the one that
    a single sentence tells (`costliest`). The losses add up to 100 less the health score. An inactive agent has no
    score, so it has lost nothing.

    Args:
        row: a row of `agent_health`, at least its `COLUMNS`.
        evidence: ids of the events that weigh most in its window, where they are known.
    """
    losses = [_loss(component, row, evidence or {}) for component in COMPONENTS]
    of_dimension: defaultdict[str, float] = defaultdict(float)
    for loss in losses:
        of_dimension[loss.component.dimension] += loss.lost
    return sorted(
        (loss for loss in losses if loss.lost > LEAST_LOSS),
        key=lambda loss: (-of_dimension[loss.component.dimension], loss.component.dimension, -loss.lost),
    )


def points_lost(component: Component, row: Row) -> float:
    """Points that a component cost; while few executions are known, reliability costs but a part."""
    score = row[component.score]
    if score is None:
        return 0.0
    share = (row["confidence_factor"] or 0.0) if component.dimension == "reliability" else 1.0
    return component.points * share * (1 - score)


def _loss(component: Component, row: Row, evidence: Evidence) -> Loss:
    lost = points_lost(component, row)
    return Loss(
        component,
        lost,
        component.said(row) if lost > LEAST_LOSS else "",
        {name: row[name] for name in component.inputs},
        {name: row[name] for name in component.targets},
        tuple(evidence.get(component.evidence, ())) if lost > LEAST_LOSS else (),
    )


def costliest(losses: Sequence[Loss]) -> Loss | None:
    """The loss to name where there is room for one: the greatest of the dimension that cost most; None without any.

    Its sentence and its evidence belong together: whoever shows the one shows the other.

    Args:
        losses: as `explain` gives them.
    """
    return losses[0] if losses else None


def unmeasured(row: Row) -> frozenset[str]:
    """Dimensions in which an agent cannot lose points, since there is nothing to compare: no runtime, or none expected.

    Such a dimension counts in full, as the source has it; whoever shows it says that it was not evaluated.

    Args:
        row: a row of `agent_health`, at least `n`, `untimed` and `expected_runtime_s`.
    """
    is_timed = row["n"] > (row["untimed"] or 0)
    return frozenset() if is_timed and row["expected_runtime_s"] is not None else OF_RUNTIMES
