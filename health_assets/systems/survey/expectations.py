"""Expectations of the survey's tables."""

from health_assets.consumer.document import STATUSES
from health_assets.consumer.fetching import OUTCOMES
from health_assets.quality import batches as common
from health_assets.quality.every_table import OF_EVERY_TABLE
from health_assets.quality.expectations import Check, Suite, at_least, between, equal, greater, one_of, unique
from health_assets.systems.survey import batches

AGENT_PROBES = Suite(
    "agent_probes",
    [
        *OF_EVERY_TABLE,
        Check("agent_has_one_row_per_hour", unique("hour", "url")),
        Check("times_are_within_their_hour", [*at_least("probed_at", "hour"), *greater("next_hour", "probed_at")]),
        Check("outcomes_are_known", [*one_of("outcome", *OUTCOMES), *one_of("status", *STATUSES)]),
        Check("http_statuses_are_possible", between(100, 999, "http_status")),
        Check("latencies_are_not_negative", between(0, None, "latency_ms")),
        Check("only_valid_answers_have_a_status", equal("has_status", "is_valid")),
        Check("only_other_answers_have_an_error", equal("has_error", "is_not_valid")),
    ],
    {"rows": batches.probes},
    common.hours,
)

SURVEY_SUMMARY = Suite(
    "survey_summary",
    [
        *OF_EVERY_TABLE,
        Check("platform_has_one_row_per_hour", unique("hour", "platform")),
        Check("parts_are_within_the_whole", [*at_least("agents", "responsive"), *at_least("responsive", "healthy")]),
        Check("survival_rate_is_between_0_and_1", between(0, 1, "survival_rate")),
        Check(
            "every_probe_is_counted_once",
            [
                *equal("agents_of_all", "probes"), *equal("agents_of_platforms", "probes"),
                *equal("responsive_of_all", "valid_probes"), *equal("responsive_of_platforms", "valid_probes"),
            ],
            batch="hours",
        ),
    ],
    {"rows": common.rows},
    batches.hours_of_survey,
)  # fmt: skip

SUITES = (AGENT_PROBES, SURVEY_SUMMARY)
