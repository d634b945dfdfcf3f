"""Outcomes of executions by the results of evaluators: which status an execution has, and where it is from.

What belongs here: what several results say together. What does not: what a result is about (`evaluated_results`).

A result only judges an execution that its log states as a success: an error that happened stays one. Of each evaluator
the latest result counts, of equally late ones the worse, and one failure among the evaluators is a failure. Its error
names the first evaluator that told of it, where the log states none.
"""

import ibis
from ibis import ir

from health_assets.scoring.evaluated_results import OUTCOME
from health_assets.scoring.identities import CLAIMANT, claimant_of
from health_assets.scoring.prices import STATED
from health_assets.scoring.usage import RUN

EVALUATED = "evaluated"
OUTCOME_SOURCES = (STATED, EVALUATED)
JUDGED_BY = "judged a failure by "
"""How an error begins that names an evaluator."""
_STATUS = ("status", "succeeded", "outcome_source", "error")


def with_outcomes(executions: ir.Table, results: ir.Table, lookback_hours: int) -> ir.Table:
    """The executions whose outcome is another than it should be: `RUN` and `_STATUS`.

    Args:
        executions: cleaned executions.
        results: rows of `evaluated_results` about these executions.
        lookback_hours: how many hours apart an execution and its results may be.
    """
    runs = executions.select(*RUN, *_STATUS, claimant=claimant_of(executions))
    runs = runs.filter((runs.status == "success") | (runs.outcome_source == EVALUATED))
    joined = runs.left_join(_verdicts(runs, results, lookback_hours), RUN)
    own_error = _own_error(joined)
    failed = joined.is_failure.fill_null(False)
    wanted = {
        "status": failed.ifelse("failure", "success"),
        "succeeded": failed.ifelse(False, True),
        "outcome_source": joined.is_failure.isnull().ifelse(STATED, EVALUATED),
        "error": ibis.coalesce(own_error, JUDGED_BY + joined.failed_by),
    }
    differs = ibis.or_(*(~joined[name].identical_to(value) for name, value in wanted.items()))
    return joined.filter(differs).select(*RUN, **wanted)


def as_stated(executions: ir.Table) -> ir.Table:
    """The executions whose outcome is an evaluator's, with the one that their log states: `RUN` and `_STATUS`."""
    judged = executions.filter(executions.outcome_source == EVALUATED)
    status, succeeded, source = map(ibis.literal, ("success", True, STATED))
    return judged.select(*RUN, status=status, succeeded=succeeded, outcome_source=source, error=_own_error(judged))


def _own_error(executions: ir.Table) -> ir.StringValue:
    """The error that the log states."""
    is_judged = (executions.outcome_source == EVALUATED) & executions.error.startswith(JUDGED_BY)
    return is_judged.fill_null(False).ifelse(ibis.null("string"), executions.error)


def _verdicts(runs: ir.Table, results: ir.Table, lookback_hours: int) -> ir.Table:
    """Whether evaluators say that a run failed: `RUN`, `is_failure` and the first that does (`failed_by`).

    Runs that none of them judged are left out.
    """
    results = results.filter(results.signal == OUTCOME)
    columns = ("execution_id", "evaluator", "evaluated_at", "is_failure")
    judged = results.select(*columns, known_in=results.hour, claimant=claimant_of(results))
    near = ibis.interval(hours=lookback_hours)
    pairs = runs.inner_join(
        judged, ["execution_id", CLAIMANT, runs.hour <= judged.known_in, judged.known_in < runs.hour + near]
    )
    latest_first = [ibis.desc(name) for name in ("evaluated_at", "is_failure")]
    pairs = pairs.mutate(place=ibis.row_number().over(group_by=[*RUN, "evaluator"], order_by=latest_first))
    latest = pairs.filter(pairs.place == 0)
    failed_by = latest.evaluator.min(where=latest.is_failure)
    return latest.group_by(RUN).aggregate(is_failure=latest.is_failure.any(), failed_by=failed_by)
