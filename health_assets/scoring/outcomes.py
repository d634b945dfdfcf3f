"""Outcomes of executions by the results of evaluators: which status an execution has, where it is from, and feedback.

What belongs here: what several results say together. What does not: what a result is about (`evaluated_results`).

A result only judges an execution that its log states as a success: an error that happened stays one. Of each evaluator
the latest result counts, of equally late ones the worse, and one failure among the evaluators is a failure. Its error
names the first evaluator that told of it, where the log states none. Feedback of people adds up likewise, of any
execution, and changes no outcome.
"""

import ibis
from ibis import ir

from health_assets.scoring.evaluated_results import FEEDBACK, OUTCOME
from health_assets.scoring.identities import CLAIMANT, claimant_of
from health_assets.scoring.prices import STATED
from health_assets.scoring.relations import lookup
from health_assets.scoring.usage import RUN

EVALUATED = "evaluated"
OUTCOME_SOURCES = (STATED, EVALUATED)
POSITIVE, NEGATIVE = "positive", "negative"
JUDGED_BY = "judged a failure by "
"""How an error begins that names an evaluator."""
_JUDGED = ("status", "succeeded", "outcome_source", "error", "feedback")


def with_outcomes(executions: ir.Table, results: ir.Table, lookback_hours: int) -> ir.Table:
    """The executions of which evaluators say something else than their rows: `RUN` and `_JUDGED`.

    Args:
        executions: cleaned executions.
        results: rows of `evaluated_results` about these executions.
        lookback_hours: how many hours apart an execution and its results may be.
    """
    runs = executions.select(*RUN, *_JUDGED, claimant=claimant_of(executions))
    joined = runs
    for signal, is_bad in ((OUTCOME, "is_failure"), (FEEDBACK, "is_negative")):
        of_signal = results.filter(results.signal == signal)
        joined = lookup(joined, _verdicts(runs, of_signal, is_bad, lookback_hours), RUN)
    is_judged = (joined.status == "success") | (joined.outcome_source == EVALUATED)
    failed = joined.is_failure.fill_null(False)
    wanted = {
        "status": (failed | ~is_judged).ifelse("failure", "success"),
        "succeeded": (failed | ~is_judged).ifelse(False, True),
        "outcome_source": (is_judged & joined.is_failure.notnull()).ifelse(EVALUATED, STATED),
        "error": ibis.coalesce(_own_error(joined), is_judged.ifelse(JUDGED_BY + joined.by_is_failure, None)),
        "feedback": joined.is_negative.ifelse(NEGATIVE, POSITIVE),
    }
    wanted["feedback"] = joined.is_negative.notnull().ifelse(wanted["feedback"], None)
    differs = ibis.or_(*(~joined[name].identical_to(value) for name, value in wanted.items()))
    return joined.filter(differs).select(*RUN, **wanted)


def as_stated(executions: ir.Table) -> ir.Table:
    """The executions of which evaluators say something, as their logs state them: `RUN` and `_JUDGED`."""
    judged = executions.filter((executions.outcome_source == EVALUATED) | executions.feedback.notnull())
    is_evaluated = judged.outcome_source == EVALUATED
    return judged.select(
        *RUN, status=is_evaluated.ifelse("success", judged.status), succeeded=is_evaluated | judged.succeeded,
        outcome_source=ibis.literal(STATED), error=_own_error(judged), feedback=ibis.null("string"),
    )  # fmt: skip


def _own_error(executions: ir.Table) -> ir.StringValue:
    """The error that the log states."""
    is_judged = (executions.outcome_source == EVALUATED) & executions.error.startswith(JUDGED_BY)
    return is_judged.fill_null(False).ifelse(ibis.null("string"), executions.error)


def _verdicts(runs: ir.Table, results: ir.Table, is_bad: str, lookback_hours: int) -> ir.Table:
    """Whether evaluators say that a run is bad: `RUN`, `is_bad` and the first that does, named `by_…`.

    Runs of which none says anything are left out.
    """
    columns = ("execution_id", "evaluator", "evaluated_at", is_bad)
    judged = results.select(*columns, known_in=results.hour, claimant=claimant_of(results))
    near = ibis.interval(hours=lookback_hours)
    pairs = runs.inner_join(
        judged, ["execution_id", CLAIMANT, runs.hour <= judged.known_in, judged.known_in < runs.hour + near]
    )
    latest_first = [ibis.desc(name) for name in ("evaluated_at", is_bad)]
    pairs = pairs.mutate(place=ibis.row_number().over(group_by=[*RUN, "evaluator"], order_by=latest_first))
    latest = pairs.filter(pairs.place == 0)
    first = latest.evaluator.min(where=latest[is_bad])
    return latest.group_by(RUN).aggregate(**{is_bad: latest[is_bad].any(), f"by_{is_bad}": first})
