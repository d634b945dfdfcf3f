"""Batches of the survey."""

import pandas as pd
from ibis import _, ir

from health_assets.consumer.advice import WARNINGS
from health_assets.quality.batches import Source, hours, rows, with_facts
from health_assets.systems.survey.names import ALL_PLATFORMS


def probes(source: Source) -> ir.Table:
    """Rows of `agent_probes`, with whether they have a status and an error, and whether they should.

    An answer that is not valid has one where it is a warning, which is believed all the same.
    """
    own = rows(source)
    is_valid = own.outcome == "valid"
    return own.mutate(
        has_status=own.status.notnull().cast("int64"),
        is_believed=(is_valid | own.status.isin(WARNINGS).fill_null(False)).cast("int64"),
        has_error=own.error.notnull().cast("int64"),
        is_not_valid=(~is_valid).cast("int64"),
    )


def hours_of_survey(source: Source) -> pd.DataFrame:
    """`hours`, with the agents and the responsive ones of `all` and of the platforms, and the probes and valid ones."""
    is_all, is_platform = _.platform == ALL_PLATFORMS, _.platform != ALL_PLATFORMS
    sums = [
        # cast, so that a column of another type fails the check of types alone
        _[name].cast("float64").sum(where=which).fill_null(0).cast("int64")
        for name in ("agents", "responsive")
        for which in (is_all, is_platform)
    ]
    names = ["agents_of_all", "agents_of_platforms", "responsive_of_all", "responsive_of_platforms"]
    frame = with_facts(hours(source), names, source.facts("survey_summary", *sums))
    probed = source.facts("agent_probes", _.count(), _.count(where=_.outcome == "valid"))
    return with_facts(frame, ["probes", "valid_probes"], probed)
