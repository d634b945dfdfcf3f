"""Losses of a health score: the points by component, the value seen and expected, and the events.

What belongs here: taking one row of `agent_health` apart. The endpoint, the alerts and the terminal all say it in these
words. What does not: the formulas (`systems.agent_health_model`) and finding the events
(`systems.explanations.evidence`). It imports no engine.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from health_assets.core.formatting import counted, few_digits, share
from health_assets.scoring.agent_health_weights import (
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

MOST_POINTS = 100.0
LEAST_LOSS = 1e-9
"""Smaller losses are rounding."""


@dataclass(frozen=True, kw_only=True)
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
        said: the observed against the expected, in a few words.
    """

    name: str
    dimension: str
    points: float
    score: str
    inputs: tuple[str, ...]
    targets: tuple[str, ...]
    evidence: str
    said: Callable[[Row], str]


@dataclass(frozen=True, kw_only=True)
class Loss:
    """The points that a component cost an agent.

    Args:
        component: the component.
        lost: points lost.
        sentence: why, in a few words.
        inputs: observed values.
        targets: expected values.
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
        name="success",
        dimension="reliability",
        points=RELIABILITY_POINTS * SUCCESS_SHARE,
        score="success_score",
        inputs=("n", "successes", "asr", "confidence_factor"),
        targets=("expected_success_rate", "n_full"),
        evidence="failure",
        said=_succeeded,
    ),
    Component(
        name="failures",
        dimension="reliability",
        points=RELIABILITY_POINTS * FAILURE_SHARE,
        score="failure_score",
        inputs=("n", "failures", "afh", "confidence_factor"),
        targets=("expected_failures_per_hour", "n_full"),
        evidence="failure",
        said=_failed,
    ),
    Component(
        name="performance",
        dimension="performance",
        points=PERFORMANCE_POINTS,
        score="performance_score",
        inputs=("n", "ar_s", "deviation"),
        targets=("expected_runtime_s", "deviation_allowed"),
        evidence="slow_run",
        said=lambda row: f"{row['ar_s'] or 0:,.1f} s a run, {row['expected_runtime_s'] or 0:g} s expected",
    ),
    Component(
        name="stability",
        dimension="stability",
        points=STABILITY_POINTS,
        score="stability_score",
        inputs=("n", "long_running"),
        targets=("expected_runtime_s", "long_running_factor", "stability_threshold"),
        evidence="long_run",
        said=lambda row: counted(row["long_running"], "long run"),
    ),
    Component(
        name="sla",
        dimension="operation",
        points=OPERATIONAL_POINTS * SLA_SHARE,
        score="sla_score",
        inputs=("n", "sla_breaches"),
        targets=("sla_breach_threshold", "sla_s"),
        evidence="sla_breach",
        said=lambda row: counted(row["sla_breaches"], "SLA breach", "SLA breaches"),
    ),
    Component(
        name="triggers",
        dimension="operation",
        points=OPERATIONAL_POINTS * TRIGGER_SHARE,
        score="trigger_score",
        inputs=("trigger_failures",),
        targets=("trigger_failure_threshold",),
        evidence="trigger_failure",
        said=lambda row: counted(row["trigger_failures"], "failed trigger"),
    ),
)

COLUMNS = tuple(
    dict.fromkeys(
        [
            *(name for component in COMPONENTS for name in (component.score, *component.inputs, *component.targets)),
            *("untimed", "sla_checked", "triggers"),
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
        component=component,
        lost=lost,
        sentence=component.said(row) if lost > LEAST_LOSS else "",
        inputs={name: row[name] for name in component.inputs},
        targets={name: row[name] for name in component.targets},
        evidence=tuple(evidence.get(component.evidence, ())) if lost > LEAST_LOSS else (),
    )


def costliest(losses: Sequence[Loss]) -> Loss | None:
    """The loss to name where there is room for one: the greatest of the dimension that cost most; None without any.

    Its sentence and its evidence belong together: whoever shows the one shows the other.

    Args:
        losses: as `explain` gives them.
    """
    return losses[0] if losses else None


def unmeasured(row: Row) -> frozenset[str]:
    """Dimensions in which an agent cannot lose points: nothing in the window can be compared with an expectation.

    Such a dimension counts in full, as the source has it; whoever shows it says that it was not evaluated.

    Args:
        row: a row of `agent_health`, at least its `COLUMNS`.
    """
    without_runtimes = () if _has_runtimes(row) else ("performance", *(() if row["long_running"] else ("stability",)))
    return frozenset(without_runtimes + (() if row["sla_checked"] or row["triggers"] else ("operation",)))


def untested(row: Row) -> list[str]:
    """The points that could not be lost, by what lacks to test them; they add up to 100 less `points_at_stake`.

    Args:
        row: a row of `agent_health` with a score, at least its `COLUMNS`.
    """
    parts: list[tuple[float, str, str]] = []
    if not _has_runtimes(row):
        why = "no runtime is expected" if row["expected_runtime_s"] is None else "the logs tell no runtime"
        points, of = PERFORMANCE_POINTS, "performance"
        if not row["long_running"]:
            points, of = points + STABILITY_POINTS, "performance and stability"
        parts.append((points, of, why))
    if not row["sla_checked"]:
        parts.append((OPERATIONAL_POINTS * SLA_SHARE, "SLAs", "no execution has a limit and a runtime"))
    if not row["triggers"]:
        parts.append((OPERATIONAL_POINTS * TRIGGER_SHARE, "triggers", "the logs tell of none"))
    if row["n"] < row["n_full"]:
        points = RELIABILITY_POINTS * (1 - row["confidence_factor"])
        parts.append((points, "reliability", f"{row['n']:,} of {counted(row['n_full'], 'run')}"))
    return [f"{shown_points(points)} of {of} ({why})" for points, of, why in parts]


def shown_points(points: float) -> str:
    """Points as they are written: whole ones without a decimal; what is not all is never written as 100."""
    return few_digits(points if points >= MOST_POINTS else min(points, MOST_POINTS - 0.1)).removesuffix(".0")


def _has_runtimes(row: Row) -> bool:
    return row["n"] > (row["untimed"] or 0) and row["expected_runtime_s"] is not None
