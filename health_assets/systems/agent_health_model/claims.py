"""Claims that evidence contradicts: what the logs say of an execution, against what else they say of it.

What belongs here: finding such executions. What does not: scores, which stay what the sources make of the claims.

Calls of an execution are looked for in its hour and the one before it. An execution without an end is counted in the
hour in which its last call, a failed one, is `OVERDUE_HOURS` old; only agents that tell of executions at all can leave
one out. A call that names no agent belongs to every execution of its id.
"""

from dataclasses import dataclass
from datetime import timedelta

import ibis
from ibis import ir

from health_assets.core.hours import HourRange
from health_assets.scoring.decimal_limits import is_longer
from health_assets.scoring.identities import CLAIMANT, NOBODY, claimant_of, names_of_runs
from health_assets.scoring.relations import first_line, lookup
from health_assets.systems.agent_health_model.names import CLAIMS
from health_assets.warehouse.session import Session
from health_assets.warehouse.superseded_executions import SupersededExecutions

OVERDUE_HOURS = 6
REACH_HOURS = OVERDUE_HOURS + 2
"""Hours that claims of an hour are looked for in: those until a call is overdue, and one before it."""
MOST_ERRORS = 3
"""Errors that a success may meet where it does not say how many calls it made; it may have tried again."""
LEAST_CALLS = 2
"""Calls from which on a success is doubted when all of them failed; one that failed it may have done without."""
NO_ERROR = ("none", "null", "nil", "nan", "ok", "no error")
"""Texts that programs write where there was no error."""

_FOUND = ("hour", "agent_id", "event_id", "happened_at", "source_file", "line_number", "times")
COLUMNS = ("hour", "agent_id", "claim", "runs", *_FOUND[2:6])
_RUN = ("hour", "agent_id", "execution_id", CLAIMANT)


@dataclass(frozen=True, kw_only=True)
class Records:
    """The records that claims are looked for in.

    Args:
        executions: `executions` of the hours and of `REACH_HOURS` - 1 before them.
        tool_calls: `tool_calls` of the same hours.
        model_calls: `model_calls` of the same hours.
        replaced: failures that a later line replaced, as `SupersededExecutions.failures` gives them.
        components: `health_components` of the same hours.
        scores: `agent_health` of the hours, which has the limits that were used.
    """

    executions: ir.Table
    tool_calls: ir.Table
    model_calls: ir.Table
    replaced: ir.Table
    components: ir.Table
    scores: ir.Table


def claims_of(session: Session, hours: HourRange, agent_id: str | None = None) -> ir.Table:
    """The claims of some hours that evidence contradicts, of all agents or one: see `contradicted_claims`."""
    reach = hours.extended_back(REACH_HOURS - 1)

    def of_agent(name: str, of_hours: HourRange) -> ir.Table:
        rows = session.hours_of(name, of_hours)
        return rows if agent_id is None else rows.filter((rows.agent_id == agent_id) | rows.agent_id.isnull())

    records = Records(
        executions=of_agent("executions", reach),
        tool_calls=of_agent("tool_calls", reach),
        model_calls=of_agent("model_calls", reach),
        replaced=ibis.memtable(SupersededExecutions(session).failures(hours)),
        components=of_agent("health_components", reach),
        scores=of_agent("agent_health", hours),
    )
    return contradicted_claims(records, hours)


def contradicted_claims(records: Records, hours: HourRange) -> ir.Table:
    """Rows of `COLUMNS`: by hour, agent and claim, how many executions make it, and the latest of them.

    Args:
        records: what the logs say.
        hours: the hours to give rows for.
    """
    own = records.executions.filter(records.executions.hour >= hours.start)
    calls = ibis.union(*(_calls(table) for table in (records.tool_calls, records.model_calls)))
    near = calls.filter(calls.hour >= hours.start - timedelta(hours=1))
    found = {
        "successes_with_an_error": _runs(_with_an_error(own)),
        "successes_with_many_errors": _runs(_with_many_errors(own)),
        "successes_without_a_good_call": _runs(_without_a_good_call(own, near)),
        "replaced_failures": _replaced(own, records.replaced),
        "unflagged_breaches": _runs(_unflagged_breaches(own, records.scores)),
        "untimed_long_runs": _runs(_untimed_long_runs(own, records.scores)),
        "failing_runs_without_end": _without_end(records, calls, hours),
    }
    all_claims = ibis.union(*(rows.mutate(claim=ibis.literal(claim)) for claim, rows in found.items()))
    known = all_claims.semi_join(records.scores, ["hour", "agent_id"])
    group = ["hour", "agent_id", "claim"]
    latest = [ibis.desc("happened_at"), known.event_id, known.source_file, known.line_number]
    placed = known.mutate(
        place=ibis.row_number().over(group_by=group, order_by=latest),
        runs=known.times.sum().over(group_by=group).cast("int64"),
    )
    return placed.filter(placed.place == 0).select(*COLUMNS)


def by_agent(claims: ir.Table) -> ir.Table:
    """One row per (hour, agent_id): how many executions make each of `CLAIMS`."""
    counts = {claim: claims.runs.sum(where=claims.claim == claim).fill_null(0).cast("int64") for claim in CLAIMS}
    return claims.group_by("hour", "agent_id").aggregate(**counts)


def _runs(executions: ir.Table) -> ir.Table:
    once = executions.mutate(times=ibis.literal(1, "int64"))
    return once.rename(event_id="execution_id", happened_at="ended_at").select(*_FOUND)


def _with_an_error(runs: ir.Table) -> ir.Table:
    stated = runs.filter(runs.succeeded, runs.error.notnull())
    line = first_line(stated.error)
    return stated.filter(line.notnull() & line.lower().notin(NO_ERROR))


def _with_many_errors(runs: ir.Table) -> ir.Table:
    calls = ibis.greatest(runs.api_calls.fill_null(0), runs.action_count.fill_null(0)).nullif(0)
    return runs.filter(runs.succeeded, runs.error_count > 0, runs.error_count >= calls.fill_null(MOST_ERRORS))


def _calls(calls: ir.Table) -> ir.Table:
    """Calls that name an execution, with who is named as the agent and whether they succeeded."""
    named = calls.filter(calls.execution_id.notnull())
    return named.select(
        "hour", "agent_id", "execution_id", "ended_at", "source_file", "line_number",
        caller=claimant_of(named), is_good=(named.status == "success").cast("int64"),
    )  # fmt: skip


def _without_a_good_call(runs: ir.Table, calls: ir.Table) -> ir.Table:
    """Successes of which several calls failed and none succeeded, of those whose calls are all looked at."""
    an_hour = ibis.interval(hours=1)
    runs = runs.mutate(claimant=claimant_of(runs))
    failed = calls.filter(calls.is_good == 0)
    is_seen = runs.started_at.isnull() | (runs.started_at >= runs.hour - an_hour)
    suspects = runs.filter(runs.succeeded, is_seen).semi_join(failed, "execution_id")
    known = calls.semi_join(suspects, "execution_id")
    known = known.select("caller", "is_good", call_of="execution_id", called_in="hour")
    named = names_of_runs(suspects, *_RUN)
    own = named.inner_join(
        known,
        [named.execution_id == known.call_of, named.named == known.caller, known.called_in <= named.hour,
         known.called_in >= named.hour - an_hour],
    )  # fmt: skip
    judged = own.group_by(_RUN).aggregate(good=own.is_good.sum(), calls=own.count())
    none_is_good = judged.filter(judged.good == 0, judged.calls >= LEAST_CALLS)
    return suspects.semi_join(none_is_good, list(_RUN))


def _replaced(runs: ir.Table, replaced: ir.Table) -> ir.Table:
    """Successes whose line replaced failures, as many times as it did."""
    failures = replaced.select("hour", "execution_id", times="lines", claimant="agent_id")
    keys = ["hour", "execution_id", CLAIMANT]
    succeeded = runs.filter(runs.succeeded)
    joined = succeeded.mutate(claimant=claimant_of(succeeded)).inner_join(failures, keys)
    return joined.rename(event_id="execution_id", happened_at="ended_at").select(*_FOUND)


def _with_limits(runs: ir.Table, scores: ir.Table) -> ir.Table:
    """Add `limit_s`, the time limit of each execution, and `long_s`, above which it is a long run."""
    limits = scores.select(
        "hour", "agent_id", target_sla_s="sla_s", long_s=scores.long_running_factor * scores.expected_runtime_s
    )
    rows = lookup(runs, limits, ["hour", "agent_id"])
    return rows.mutate(limit_s=ibis.coalesce(rows.sla_s, rows.target_sla_s))


def _unflagged_breaches(runs: ir.Table, scores: ir.Table) -> ir.Table:
    flagged = runs.filter(runs.sla_breached_reported.notnull(), ~runs.sla_breached_reported)
    rows = _with_limits(flagged, scores)
    return rows.filter(is_longer(rows.runtime_s, rows.limit_s))


def _untimed_long_runs(runs: ir.Table, scores: ir.Table) -> ir.Table:
    rows = _with_limits(runs.filter(runs.untimed_s.notnull()), scores)
    is_too_long = [is_longer(rows.untimed_s, limit).fill_null(False) for limit in (rows.limit_s, rows.long_s)]
    return rows.filter(ibis.or_(*is_too_long))


def _without_end(records: Records, calls: ir.Table, hours: HourRange) -> ir.Table:
    """The last call of each execution that nothing was heard of for `OVERDUE_HOURS` after it failed."""
    executions, components = records.executions, records.components
    wait, an_hour = ibis.interval(hours=OVERDUE_HOURS), ibis.interval(hours=1)
    keys = ["hour", "execution_id", "caller"]
    start, end = (moment - timedelta(hours=OVERDUE_HOURS) for moment in (hours.start, hours.end))
    failed = calls.filter(calls.is_good == 0, calls.caller != NOBODY, calls.hour >= start, calls.hour < end)
    latest = [ibis.desc("ended_at"), failed.source_file, failed.line_number]
    placed = failed.mutate(place=ibis.row_number().over(group_by=keys, order_by=latest))
    last = placed.filter(placed.place == 0).drop("place", "is_good")

    # most of these runs have ended, so that hardly any call is to be looked for
    runs = executions.semi_join(last, "execution_id")
    runs = names_of_runs(runs.mutate(claimant=claimant_of(runs)), "hour", "execution_id")
    runs = runs.select("named", ran="execution_id", ran_in="hour")
    ended = last.inner_join(
        runs,
        [last.execution_id == runs.ran, last.caller == runs.named, runs.ran_in >= last.hour - an_hour,
         runs.ran_in <= last.hour + wait],
    ).select(*keys)  # fmt: skip
    open_ones = last.anti_join(ended, keys)

    others = calls.semi_join(open_ones, "execution_id")
    others = others.select("is_good", call_of="execution_id", by="caller", called_in="hour", called_at="ended_at")
    is_later = (others.called_at > open_ones.ended_at) | (
        (others.called_at == open_ones.ended_at) & (others.is_good == 1)
    )
    is_of_run = (others.by == NOBODY) | (others.by == open_ones.caller)
    heard = open_ones.inner_join(
        others,
        [open_ones.execution_id == others.call_of, is_of_run, is_later, others.called_in <= open_ones.hour + wait],
    ).select(*keys)
    silent = open_ones.anti_join(heard, keys)

    tellers = components.filter(components.executions > 0).select("agent_id", told_in="hour")
    telling = silent.inner_join(
        tellers,
        [silent.agent_id == tellers.agent_id, tellers.told_in >= silent.hour - an_hour,
         tellers.told_in <= silent.hour + wait],
    ).select(*keys)  # fmt: skip
    told = silent.semi_join(telling, keys)
    return _runs(told.mutate(hour=told.hour + wait))
