"""Expectations of the survey's tables."""

from health_assets.consumer.document import STATUSES
from health_assets.consumer.fetching import OUTCOMES
from health_assets.quality.every_table import OF_EVERY_TABLE
from health_assets.quality.expectations import Check, Suite, at_least, between, equal, greater, one_of, unique
from health_assets.systems.survey import batches

AGENT_PROBES = Suite(
    asset="agent_probes",
    checks=[
        *OF_EVERY_TABLE,
        Check(name="agent_has_one_row_per_hour", expectations=unique("hour", "url")),
        Check(
            name="times_are_within_their_hour",
            expectations=[*at_least("probed_at", "hour"), *greater("next_hour", "probed_at")],
        ),
        Check(name="outcomes_are_known", expectations=[*one_of("outcome", *OUTCOMES), *one_of("status", *STATUSES)]),
        Check(name="http_statuses_are_possible", expectations=between(100, 999, "http_status")),
        Check(name="latencies_are_not_negative", expectations=between(0, None, "latency_ms")),
        Check(name="only_valid_answers_and_warnings_have_a_status", expectations=equal("has_status", "is_believed")),
        Check(name="only_other_answers_have_an_error", expectations=equal("has_error", "is_not_valid")),
    ],
    rows={"rows": batches.probes},
)

SURVEY_SUMMARY = Suite(
    asset="survey_summary",
    checks=[
        *OF_EVERY_TABLE,
        Check(name="platform_has_one_row_per_hour", expectations=unique("hour", "platform")),
        Check(
            name="parts_are_within_the_whole",
            expectations=[*at_least("agents", "responsive"), *at_least("responsive", "healthy")],
        ),
        Check(name="survival_rate_is_between_0_and_1", expectations=between(0, 1, "survival_rate")),
        Check(
            name="every_probe_is_counted_once",
            expectations=[
                *equal("agents_of_all", "probes"),
                *equal("agents_of_platforms", "probes"),
                *equal("responsive_of_all", "valid_probes"),
                *equal("responsive_of_platforms", "valid_probes"),
            ],
            batch="hours",
        ),
    ],
    hours=batches.hours_of_survey,
)

SUITES = (AGENT_PROBES, SURVEY_SUMMARY)
