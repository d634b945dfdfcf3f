"""Risks of a trace from its four signals (source 5): inverted, weighted, and composed in two ways.

Risks are kept to 12 decimals. So `1 - 0.9` is 0.1 and not a hair less, a threshold means what it says, and sums over
whole trillionths are exact: the order in which traces are added can never show.
"""

import ibis
from ibis import ir

from health_assets.core.settings import Settings
from health_assets.schema.records import SIGNAL_COLUMNS
from health_assets.scoring.trillionths import to_12_decimals

SIGNALS = tuple(SIGNAL_COLUMNS)
RISKS = ("confidence_risk", "loop_risk", "tool_risk", "coherence_risk")


def with_risks(rows: ir.Table) -> ir.Table:
    """Replace `SIGNALS` by `RISKS` (source 5, "Convert signals to risks"), 0 to 1; null where a signal is missing."""
    inverted = {risk: to_12_decimals(1.0 - rows[signal]) for risk, signal in zip(RISKS, SIGNALS, strict=True)}
    return rows.mutate(**inverted).drop(*SIGNALS)


def with_weighted_risks(rows: ir.Table, settings: Settings) -> ir.Table:
    """Add `step_risk`, `situational_penalty`, `weighted_uncertainty` and `is_flagged` to rows that have `RISKS`.

    Source 5, "Weight and max-compose per trace" (null without any signal), "Compute weighted uncertainty per trace"
    (null without confidence) and "Flagged traces" (false without any signal).
    """
    weights = (
        settings.weight_confidence, settings.weight_loop_detection, settings.weight_tool_correctness,
        settings.weight_coherence,
    )  # fmt: skip
    confidence, *others = (rows[risk] * ibis.literal(weight) for risk, weight in zip(RISKS, weights, strict=True))
    penalty = sum((other.fill_null(0.0) for other in others), ibis.literal(0.0))
    rows = rows.mutate(
        step_risk=to_12_decimals(ibis.greatest(confidence, *others)),
        situational_penalty=confidence.isnull().ifelse(ibis.null("float64"), to_12_decimals(penalty)),
        weighted_uncertainty=to_12_decimals((1.0 + penalty) * confidence),
    )
    return rows.mutate(is_flagged=(rows.step_risk > settings.flag_threshold).fill_null(False))
