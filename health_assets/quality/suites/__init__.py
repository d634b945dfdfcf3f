"""What must be true of every table, one module per system, in the order of the lineage.

A check's name says what is true when it passes; its severity says whether a failure stops what follows (`error`) or
asks a person to look (`warn`).
"""

from health_assets.quality.suites import (
    agent_health_model,
    agent_health_state,
    agent_usage,
    error_budget,
    explanations,
    model_health,
    records,
    reliability,
    session_scores,
    survey,
    tool_health,
)

SUITES = {
    suite.asset: suite
    for suite in (
        *records.SUITES,
        *agent_health_model.SUITES,
        *explanations.SUITES,
        *agent_health_state.SUITES,
        *model_health.SUITES,
        *session_scores.SUITES,
        *reliability.SUITES,
        *error_budget.SUITES,
        *tool_health.SUITES,
        *agent_usage.SUITES,
        *survey.SUITES,
    )
}
