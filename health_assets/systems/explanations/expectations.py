"""Expectations of the evidence behind scores."""

from health_assets.quality import batches as common
from health_assets.quality.every_table import OF_EVERY_TABLE
from health_assets.quality.expectations import Check, Suite, at_least, between, equal, greater, one_of, unique
from health_assets.systems.explanations import batches
from health_assets.systems.explanations.evidence import KINDS, MOST

KEY = ("hour", "agent_id", "kind", "rank")
OF_EVIDENCE = (
    Check("every_rank_is_taken_once", unique(*KEY)),
    Check("kinds_are_known", one_of("kind", *KINDS)),
    Check("ranks_are_possible", between(1, MOST, "rank")),
    Check("runtimes_are_not_negative", between(0, None, "runtime_s")),
)

EVIDENCE_COMPONENTS = Suite(
    "evidence_components",
    [
        *OF_EVERY_TABLE,
        *OF_EVIDENCE,
        Check("times_are_within_their_hour", [*at_least("happened_at", "hour"), *greater("next_hour", "happened_at")]),
        Check("every_failure_has_its_place", equal("kept_failures", "failures_due"), batch="hours"),
    ],
    {"rows": common.rows},
    batches.hours_of_evidence,
)

SCORE_EVIDENCE = Suite(
    "score_evidence",
    [
        *OF_EVERY_TABLE,
        *OF_EVIDENCE,
        Check(
            "times_are_within_the_window",
            [*at_least("happened_at", "window_start"), *greater("window_end", "happened_at")],
        ),
        Check("only_agents_that_lost_points_have_evidence", equal("has_lost", "is_evidence")),
    ],
    {"rows": batches.evidence_of_scores},
    common.hours,
)

SUITES = (EVIDENCE_COMPONENTS, SCORE_EVIDENCE)
