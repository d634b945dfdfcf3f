"""Batches of the survey."""

import pandas as pd
from ibis import ir

from health_assets.quality.batches import Source, hours, rows, with_facts
from health_assets.systems.survey.survey_summary import ALL_PLATFORMS


def probes(source: Source) -> ir.Table:
    """Rows of `agent_probes`, with whether they have a status and an error, and whether they should."""
    own = rows(source)
    is_valid = own.outcome == "valid"
    return own.mutate(
        has_status=own.status.notnull().cast("int64"),
        is_valid=is_valid.cast("int64"),
        has_error=own.error.notnull().cast("int64"),
        is_not_valid=(~is_valid).cast("int64"),
    )


def hours_of_survey(source: Source) -> pd.DataFrame:
    """`hours`, with the agents and the responsive ones of `all` and of the platforms, and the probes and valid ones."""
    is_all = f"platform = '{ALL_PLATFORMS}'"
    counts = ", ".join(
        f"coalesce(sum({column}::BIGINT) FILTER (WHERE {condition}), 0)::BIGINT"
        for column in ("agents", "responsive")
        for condition in (is_all, f"NOT {is_all}")
    )
    names = ["agents_of_all", "agents_of_platforms", "responsive_of_all", "responsive_of_platforms"]
    frame = with_facts(hours(source), names, source.by_hour(f"SELECT hour, {counts} FROM survey_summary"))
    probed = source.by_hour("SELECT hour, count(*), count(*) FILTER (WHERE outcome = 'valid') FROM agent_probes")
    return with_facts(frame, ["probes", "valid_probes"], probed)
