"""The survey by platform (source 3, section 3.3 and appendix B): who answers, and who is healthy."""

import ibis
from ibis import ir

from health_assets.systems.survey.names import ALL_PLATFORMS


def survey_summary(probes: ir.Table) -> ir.Table:
    """One row per hour and platform, and one per hour for `all`: every column of `survey_summary` but the version.

    An agent is responsive when it answered with a valid health document, whatever its status, and healthy when that
    document says so; the survival rate is responsive / agents, from 0 to 1. Hours without probes have no rows.

    Args:
        probes: rows of `agent_probes`; one per agent and hour.
    """
    judged = probes.select(
        "hour",
        "platform",
        is_responsive=probes.outcome == "valid",
        is_healthy=(probes.outcome == "valid") & (probes.status.fill_null("") == "healthy"),
    )
    everywhere = judged.mutate(platform=ibis.literal(ALL_PLATFORMS))
    rows = ibis.union(judged, everywhere)
    counted = rows.group_by(["hour", "platform"]).aggregate(
        agents=rows.count(),
        healthy=rows.is_healthy.cast("int64").sum().cast("int64"),
        responsive=rows.is_responsive.cast("int64").sum().cast("int64"),
    )
    return counted.mutate(
        survival_rate=counted.responsive / counted.agents.cast("float64"),
    )
