"""Expectations of the evidence behind scores."""

from health_assets.quality.every_table import OF_EVERY_TABLE
from health_assets.quality.expectations import Check, Suite, at_least, between, equal, greater, one_of, unique
from health_assets.systems.explanations import batches
from health_assets.systems.explanations.names import KINDS, MOST

KEY = ("hour", "agent_id", "kind", "rank")
OF_EVIDENCE = (
    Check(name="every_rank_is_taken_once", expectations=unique(*KEY)),
    Check(name="kinds_are_known", expectations=one_of("kind", *KINDS)),
    Check(name="ranks_are_possible", expectations=between(1, MOST, "rank")),
    Check(name="runtimes_are_not_negative", expectations=between(0, None, "runtime_s")),
)

EVIDENCE_COMPONENTS = Suite(
    asset="evidence_components",
    checks=[
        *OF_EVERY_TABLE,
        *OF_EVIDENCE,
        Check(
            name="times_are_within_their_hour",
            expectations=[*at_least("happened_at", "hour"), *greater("next_hour", "happened_at")],
        ),
        Check(name="every_failure_has_its_place", expectations=equal("kept_failures", "failures_due"), batch="hours"),
    ],
    hours=batches.hours_of_evidence,
)

SCORE_EVIDENCE = Suite(
    asset="score_evidence",
    checks=[
        *OF_EVERY_TABLE,
        *OF_EVIDENCE,
        Check(
            name="times_are_within_the_window",
            expectations=[*at_least("happened_at", "window_start"), *greater("window_end", "happened_at")],
        ),
        Check(name="only_agents_that_lost_points_have_evidence", expectations=equal("has_lost", "is_evidence")),
    ],
    rows={"rows": batches.evidence_of_scores},
)

SUITES = (EVIDENCE_COMPONENTS, SCORE_EVIDENCE)
