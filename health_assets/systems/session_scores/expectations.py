"""Expectations of the tables of session scores."""

from health_assets.core.evaluators import SEVERITIES
from health_assets.quality.every_table import OF_EVERY_TABLE
from health_assets.quality.expectations import Check, Suite, at_least, between, equal, greater, one_of, unique
from health_assets.schema.log_fields import SIGNALS
from health_assets.scoring.evaluated_results import FEEDBACK, OUTCOME, VIOLATION
from health_assets.scoring.prices import SOURCES
from health_assets.systems.session_scores import batches
from health_assets.systems.session_scores.session_scores import CONSISTENCY_BANDS, RELIABILITY_BANDS
from health_assets.systems.session_scores.signal_risks import RISKS

COMPUTED_SIGNALS = Suite(
    asset="computed_signals",
    checks=[
        *OF_EVERY_TABLE,
        Check(
            name="execution_has_one_row_per_hour",
            expectations=unique("hour", "execution_id", "agent_id", "agent_id_reported"),
        ),
        Check(
            name="signals_are_between_0_and_1",
            expectations=between(0, 1, "signal_tool_correctness", "signal_loop_detection"),
        ),
        Check(
            name="parts_are_within_the_whole",
            expectations=[
                *at_least("tool_calls", "tool_failures"),
                *at_least("tool_failures", "repaired_failures"),
                *at_least("tool_failures", "tool_faults"),
                *at_least("steps", "repeated_steps"),
                *between(0, None, "repaired_failures", "tool_faults", "repeated_steps"),
            ],
        ),
        Check(
            name="no_more_executions_than_there_are",
            expectations=at_least("executions", "executions_with_signals"),
            batch="hours",
        ),
    ],
    hours=batches.hours_of_computed_signals,
)

EVALUATED_SIGNALS = Suite(
    asset="evaluated_signals",
    checks=[
        *OF_EVERY_TABLE,
        Check(
            name="result_has_one_row_per_execution_and_hour",
            expectations=unique(
                "hour",
                "source_file",
                "line_number",
                "place_in_line",
                "evaluator",
                "execution_id",
                "agent_id",
                "agent_id_reported",
                "session_id",
                "evaluated_at",
            ),
        ),
        Check(name="signals_are_known", expectations=one_of("signal", *SIGNALS, VIOLATION, OUTCOME, FEEDBACK)),
        Check(name="signals_are_between_0_and_1", expectations=between(0, 1, "value")),
        Check(name="severities_are_known", expectations=one_of("severity", *SEVERITIES)),
        Check(name="results_are_given_before_they_count", expectations=greater("next_hour", "evaluated_at")),
    ],
)

TRACE_RISKS = Suite(
    asset="trace_risks",
    checks=[
        *OF_EVERY_TABLE,
        Check(
            name="trace_has_one_row_per_hour", expectations=unique("hour", "trace_id", "agent_id", "agent_id_reported")
        ),
        Check(
            name="times_are_in_order",
            expectations=[
                *greater("next_hour", "traced_at"),
                *at_least("traced_at", "oldest_event_at"),
            ],
        ),
        Check(name="sources_of_costs_are_known", expectations=one_of("cost_source", *SOURCES)),
        Check(name="risks_are_between_0_and_1", expectations=between(0, 1, *RISKS, "step_risk")),
        Check(
            name="uncertainties_are_possible",
            expectations=[
                *between(0, 3, "situational_penalty"),
                *between(0, 4, "weighted_uncertainty"),
            ],
        ),
        Check(
            name="every_execution_in_a_session_is_a_trace",
            expectations=at_least("traces", "executions_in_sessions"),
            batch="hours",
        ),
    ],
    hours=batches.hours_of_traces,
)

SESSION_SCORES = Suite(
    asset="session_scores",
    checks=[
        *OF_EVERY_TABLE,
        Check(name="session_has_one_row_per_hour", expectations=unique("hour", "session_id")),
        Check(
            name="scores_and_risks_are_between_0_and_1",
            expectations=between(
                0,
                1,
                "agent_reliability",
                "agent_consistency",
                "raw_risk",
                "mean_top_k_risk",
                "max_risk",
            ),
        ),
        Check(name="instabilities_are_possible", expectations=between(0, 4, "raw_instability")),
        Check(name="the_worst_trace_is_in_the_tail", expectations=at_least("max_risk", "mean_top_k_risk")),
        Check(
            name="parts_are_within_the_whole",
            expectations=[
                *between(0, None, "total_traces", "cancelled_runs"),
                *at_least("total_traces", "traces_evaluated"),
                *at_least("traces_evaluated", "consistency_traces_evaluated"),
                *at_least("total_traces", "runs"),
                *at_least("runs", "failures"),
                *between(0, None, "failures", "tool_failures", "repeated_steps"),
                *at_least("tool_calls", "tool_failures"),
                *at_least("steps", "repeated_steps"),
            ],
        ),
        Check(
            name="every_session_has_a_trace_or_a_cancelled_run",
            expectations=between(1, None, "traces_and_cancelled_runs"),
        ),
        Check(name="sources_of_costs_are_known", expectations=one_of("cost_source", *SOURCES)),
        Check(
            name="bands_are_known",
            expectations=[
                *one_of("reliability_band", *RELIABILITY_BANDS),
                *one_of("consistency_band", *CONSISTENCY_BANDS),
            ],
        ),
        Check(
            name="only_sessions_without_signals_have_no_risk",
            expectations=[
                *equal("has_risk", "is_evaluated"),
                *equal("has_instability", "is_uncertain"),
            ],
        ),
        Check(
            name="every_session_of_the_hour_is_scored",
            expectations=equal("scored_sessions", "touched_sessions"),
            batch="hours",
        ),
    ],
    rows={"rows": batches.scored_sessions},
    hours=batches.hours_of_sessions,
)

SUITES = (COMPUTED_SIGNALS, EVALUATED_SIGNALS, TRACE_RISKS, SESSION_SCORES)
