"""Session scores (source 5): Agent Reliability and Agent Consistency of the sessions that something happened in.

A session is scored over its traces in the look-back that ends with the hour, each by the newest of its rows in
`trace_risks`. Such a row may rest on events from before the look-back (signals given days after their execution);
these few traces are merged again from what the look-back holds, so that nothing before it can show.
"""

from collections.abc import Mapping
from datetime import datetime
from fractions import Fraction

import ibis
from ibis import ir

from health_assets.core.hours import HOUR, HourRange
from health_assets.core.settings import Settings
from health_assets.scoring.identities import CLAIMANT, NOBODY, claimant_of, names_of_runs, with_columns_of_runs
from health_assets.scoring.relations import lookup, spine
from health_assets.scoring.trillionths import TRILLION, to_12_decimals, trillionths
from health_assets.scoring.usage import source_of_sum, summed
from health_assets.systems.session_scores.merged_traces import (
    AMOUNTS,
    OF_RUN,
    TRACE,
    known_traces,
)
from health_assets.systems.session_scores.names import CALL_COUNTS
from health_assets.systems.session_scores.signal_risks import RISKS, with_risks, with_weighted_risks

RELIABILITY_BANDS = {
    "highly_reliable": 0.9, "generally_reliable": 0.7, "moderate_risk": 0.5, "elevated_risk": 0.3, "high_risk": 0.0,
}  # fmt: skip
CONSISTENCY_BANDS = {
    "highly_consistent": 0.9, "generally_consistent": 0.7, "moderate_instability": 0.5, "high_instability": 0.3,
    "unstable": 0.0,
}  # fmt: skip
"""Source 5, "Interpreting the score": each band from its lower limit, included, up to the next."""

SETTINGS_USED = (
    "weight_confidence", "weight_loop_detection", "weight_tool_correctness", "weight_coherence", "flag_threshold",
    "pass_threshold", "top_k_share", "ensemble_weight",
)  # fmt: skip

_OF_TRACE = (*TRACE, "session_id", "agent_id", "traced_at", *RISKS, *OF_RUN)


def session_scores(
    versions: ir.Table,
    executions: ir.Table,
    signals: ir.Table,
    computed: ir.Table,
    hours: HourRange,
    settings: Settings,
    since: datetime | None = None,
    cancellations: ir.Table | None = None,
) -> ir.Table:
    """One row per hour and session with an execution, a signal or a cancelled run in the hour.

    It has every column of `session_scores`.

    Args:
        versions: rows of `trace_risks` of `hours` and the look-back before them.
        executions: cleaned executions of the same hours.
        signals: cleaned signals records of the same hours.
        computed: rows of `computed_signals` of the same hours.
        hours: the hours to score.
        settings: look-back, weights, thresholds, share of the tail and weight of the worst trace.
        since: the first hour with a trace of one of the sessions, where that is known, to leave out what is before.
        cancellations: cleaned cancellations of the same hours; None where there are none.
    """
    versions = versions.mutate(claimant=claimant_of(versions))
    touched = _touched(versions, hours, cancellations)
    reached = versions if since is None else versions.filter(versions.hour >= since)
    if len(hours) == 1:
        later = reached if since is None else reached.filter(reached.hour > since)  # mostly the hour alone
        newest = _newest_of_one_hour(reached, later, touched, hours.start)
    else:
        newest = _newest_of_many_hours(reached, touched, settings.lookback_hours)
    # also of traces that were other sessions' while an execution from before the look-back said so
    outlived = _outlived(versions, hours, settings.lookback_hours)
    traces = ibis.union(
        newest.anti_join(outlived, ["hour", *TRACE]),
        _merged_again(executions, signals, computed, outlived, settings.lookback_hours).semi_join(
            touched, ["hour", "session_id"]
        ),
    )
    sums = _sums(with_weighted_risks(traces, settings))
    if cancellations is None:
        sums = sums.mutate(cancelled_runs=ibis.literal(0, "int64"))
    else:
        sums = _with_cancelled_runs(sums, _cancelled_runs(cancellations, touched, settings.lookback_hours))
    return _scores(sums, settings)


def reach_of_sessions(versions: ir.Table, hours: HourRange, cancellations: ir.Table | None = None) -> ir.Table:
    """The reach of sessions: how far back `session_scores` must look, and how much it must sum.

    Args:
        versions: as of `session_scores`.
        hours: the hours to score.
        cancellations: as of `session_scores`.

    Returns:
        One row per hour with a trace of a session: `hour`, `since` (the first hour with a trace of one of its
        sessions), and `traces` (about as many as will be summed up).
    """
    touched = _touched(versions, hours, cancellations)
    own = versions.semi_join(touched, "session_id")  # of all that there are, mostly few
    of_session = own.group_by("session_id").aggregate(since=own.hour.min(), traces=own.count())
    touched = touched.inner_join(of_session, "session_id")
    return touched.group_by("hour").aggregate(since=touched.since.min(), traces=touched.traces.sum().cast("int64"))


def _touched(versions: ir.Table, hours: HourRange, cancellations: ir.Table | None) -> ir.Table:
    """(hour, session_id) of the sessions that something happened in."""
    happened = [
        rows.filter(rows.hour >= hours.start, rows.session_id.notnull()).select("hour", "session_id").distinct()
        for rows in (versions, cancellations)
        if rows is not None
    ]
    return ibis.union(*happened, distinct=True) if len(happened) > 1 else happened[0]


# -- the traces of a session -------------------------------------------------------------------------------------------


def _newest_of_one_hour(versions: ir.Table, later: ir.Table, touched: ir.Table, hour: datetime) -> ir.Table:
    """The newest version of every trace of the hour's sessions. A version of the hour itself is newest anyway.

    `later` are the versions that may replace others: all but those of the first hour.
    """
    own = versions.filter(versions.hour == hour, versions.session_id.notnull())
    before = versions.filter(versions.hour < hour).semi_join(touched, "session_id")
    later = later.semi_join(before, "trace_id")  # also in other sessions
    replaced = _replaced(before, later).select("hour", *TRACE)
    current = ibis.union(own, before.anti_join(replaced, ["hour", *TRACE]))
    return current.select(*_OF_TRACE, hour=ibis.literal(hour, "timestamp('UTC')")).select("hour", *_OF_TRACE)


def _newest_of_many_hours(versions: ir.Table, touched: ir.Table, lookback_hours: int) -> ir.Table:
    """The same for many hours: a version is newest from its hour until that of the next."""
    traces = versions.group_by("trace_id").aggregate(versions=versions.count())
    several = traces.filter(traces.versions > 1)  # mostly few, and only these need to be put in order
    once, repeated = versions.anti_join(several, "trace_id"), versions.semi_join(several, "trace_id")
    repeated = lookup(repeated, _replaced(repeated, repeated), ["hour", *TRACE])
    dated = ibis.union(
        once.select(*_OF_TRACE, since=once.hour, until=ibis.null("timestamp('UTC')")),
        repeated.select(*_OF_TRACE, since=repeated.hour, until=repeated.until),
    )
    return touched.inner_join(
        dated,
        [
            touched.session_id == dated.session_id,
            dated.since <= touched.hour,
            dated.since > touched.hour - ibis.interval(hours=lookback_hours),
            dated.until.isnull() | (dated.until > touched.hour),
        ],
    ).select(touched.hour, *(dated[name] for name in _OF_TRACE))


def newest_traces(versions: ir.Table) -> ir.Table:
    """The newest version of every trace, with its `CLAIMANT`."""
    versions = versions.mutate(claimant=claimant_of(versions))
    return versions.anti_join(_replaced(versions, versions), ["hour", *TRACE])


def _replaced(versions: ir.Table, later: ir.Table) -> ir.Table:
    """The versions that one of `later` replaces: `hour`, `TRACE` and `until`, the hour of the next one.

    A later version replaces those of its claimant, under each name that it goes by, and what was known of the trace
    before anybody claimed it. One that nobody claims any more rests on signals alone and replaces all before it.
    """
    later = later.select("trace_id", "agent_id", CLAIMANT, later_hour="hour")
    claimed = names_of_runs(later.filter(later[CLAIMANT] != NOBODY), "trace_id", "later_hour").distinct()
    unclaimed = later.filter(later[CLAIMANT] == NOBODY).select("trace_id", "later_hour")
    own = versions.select("hour", *TRACE)
    pairs = ibis.union(
        own.inner_join(
            claimed,
            [own.trace_id == claimed.trace_id, own[CLAIMANT] == claimed.named, own.hour < claimed.later_hour],
        ).select(own.hour, *(own[name] for name in TRACE), "later_hour"),
        own.inner_join(unclaimed, [own.trace_id == unclaimed.trace_id, own.hour < unclaimed.later_hour]).select(
            own.hour, *(own[name] for name in TRACE), "later_hour"
        ),
    )
    return pairs.group_by(["hour", *TRACE]).aggregate(until=pairs.later_hour.min())


def _outlived(versions: ir.Table, hours: HourRange, lookback_hours: int) -> ir.Table:
    """(hour, trace) of the versions in the look-back that rest on events from before it; mostly none.

    Without its execution nobody claims a trace, so each is there under its claimant and under `NOBODY`.
    """
    each = spine(hours)
    late = versions.filter(versions.oldest_event_at < versions.hour)
    late = late.filter(late.oldest_event_at < hours.end - lookback_hours * HOUR)
    late = late.select(*TRACE, "oldest_event_at", since=late.hour)
    lookback, all_but_own = ibis.interval(hours=lookback_hours), ibis.interval(hours=lookback_hours - 1)
    outlived = (
        each.inner_join(
            late,
            [
                late.since <= each.hour,
                late.since > each.hour - lookback,
                late.oldest_event_at < each.hour - all_but_own,
            ],
        )
        .select(each.hour, *(late[name] for name in TRACE))
        .distinct()
    )
    unclaimed = outlived.select("hour", "trace_id").distinct().mutate(claimant=ibis.literal(NOBODY))
    return ibis.union(outlived, unclaimed, distinct=True)


def _merged_again(
    executions: ir.Table, signals: ir.Table, computed: ir.Table, wanted: ir.Table, lookback_hours: int
) -> ir.Table:
    about = executions.mutate(trace_id=executions.execution_id).semi_join(wanted, "trace_id")
    about = with_columns_of_runs(about, computed, CALL_COUNTS)
    ids = wanted.select("hour", "trace_id").distinct()
    merged = with_risks(known_traces(about, signals, ids, lookback_hours)).select("hour", *_OF_TRACE)
    return merged.semi_join(wanted, ["hour", *TRACE])


def worst_first(scores: ir.Table) -> ir.Table:
    """Sessions with failed runs or a score: most failed runs first, then lowest reliability."""
    found = scores.filter((scores.traces_evaluated > 0) | (scores.failures > 0))
    share = found.failures / found.runs.nullif(0)
    return found.order_by(
        found.failures.desc(), share.desc(nulls_first=False), "agent_reliability", "agent_consistency", "session_id",
        found.hour.desc(),
    )  # fmt: skip


# -- the scores --------------------------------------------------------------------------------------------------------


def _scores(sums: ir.Table, settings: Settings) -> ir.Table:
    rows = _with_tail(sums, settings.top_k_share)
    weight = settings.ensemble_weight
    raw_risk = to_12_decimals((1 - weight) * rows.mean_top_k_risk + weight * rows.max_risk)
    rows = rows.mutate(
        raw_risk=raw_risk,
        agent_reliability=_inverted(raw_risk),
        agent_consistency=_inverted(rows.raw_instability),
    )
    return rows.mutate(
        reliability_passed=rows.agent_reliability >= settings.pass_threshold,
        consistency_passed=rows.agent_consistency >= settings.pass_threshold,
        reliability_band=_band(rows.agent_reliability, RELIABILITY_BANDS),
        consistency_band=_band(rows.agent_consistency, CONSISTENCY_BANDS),
        **{name: ibis.literal(float(getattr(settings, name))) for name in SETTINGS_USED},
    )


def _sums(traces: ir.Table) -> ir.Table:
    """The sums of each session (source 5, "RMS aggregation"), and its step risks in ascending order."""
    uncertainty = trillionths(traces.weighted_uncertainty).cast("decimal(19, 0)")
    uncertain = traces.weighted_uncertainty.count()
    mean_square = (uncertainty * uncertainty).sum().cast("float64") / uncertain.nullif(0)
    latest = ibis.struct({name: traces[name] for name in ("traced_at", *TRACE)})
    riskiest_first = [ibis.desc("step_risk"), "trace_id"]
    flagged = traces.trace_id.collect(where=traces.is_flagged, order_by=riskiest_first)
    return traces.group_by(["hour", "session_id"]).aggregate(
        agent_id=traces.agent_id.argmax(latest, where=traces.agent_id.notnull()),
        total_traces=traces.count(),
        traces_evaluated=traces.step_risk.count(),
        step_risks=trillionths(traces.step_risk).collect().sort(),
        max_risk=traces.step_risk.max(),
        flagged_traces=flagged.fill_null(ibis.literal([], "array<string>")),
        consistency_traces_evaluated=uncertain,
        raw_instability=to_12_decimals(mean_square.sqrt() / TRILLION),
        **_sums_of_runs(traces, latest),
    )


def _sums_of_runs(traces: ir.Table, latest: ir.Value) -> dict[str, ir.Value]:
    """What is known of the session's executions and their calls without any signal."""
    is_run, failed = traces.status.notnull(), traces.status == "failure"
    has_error = failed & traces.error.notnull()
    return {
        "runs": is_run.sum().cast("int64"),
        "failures": failed.fill_null(False).sum().cast("int64"),
        "first_started_at": traces.started_at.min(),
        "last_ended_at": traces.traced_at.max(where=is_run),
        **{name: summed(traces, name) for name in AMOUNTS},
        **{name: traces[name].sum().cast("int64") for name in CALL_COUNTS},
        "cost_source": source_of_sum(traces),
        "last_error": traces.error.argmax(latest, where=has_error),
        "last_error_at": traces.traced_at.max(where=has_error),
    }


def _cancelled_runs(cancellations: ir.Table, touched: ir.Table, lookback_hours: int) -> ir.Table:
    """One row per hour and session with a cancelled run in the look-back, with the agent of the latest one."""
    own = cancellations.rename(cancelled_in="hour").filter(cancellations.session_id.notnull())
    found = touched.inner_join(
        own,
        [
            touched.session_id == own.session_id,
            own.cancelled_in <= touched.hour,
            own.cancelled_in > touched.hour - ibis.interval(hours=lookback_hours),
        ],
    ).select(touched.hour, touched.session_id, own.agent_id, own.ended_at, own.execution_id)
    latest = ibis.struct({name: found[name] for name in ("ended_at", "execution_id", "agent_id")})
    return found.group_by(["hour", "session_id"]).aggregate(
        cancelled_runs=found.count(), agent_of_cancelled=found.agent_id.argmax(latest)
    )


def _with_cancelled_runs(sums: ir.Table, cancelled: ir.Table) -> ir.Table:
    """The sums with `cancelled_runs`, and those of sessions that have nothing but cancelled runs."""
    counted = lookup(sums, cancelled.drop("agent_of_cancelled"), ["hour", "session_id"])
    counted = counted.mutate(cancelled_runs=counted.cancelled_runs.fill_null(0))
    alone = cancelled.anti_join(sums, ["hour", "session_id"])
    zeros = ("total_traces", "runs", "failures", "traces_evaluated", "consistency_traces_evaluated")
    known = {
        **{name: alone[name] for name in ("hour", "session_id", "cancelled_runs")},
        "agent_id": alone.agent_of_cancelled,
        **{name: ibis.literal(0, "int64") for name in zeros},
        "flagged_traces": ibis.literal([], "array<string>"),
    }
    columns = {name: known.get(name, ibis.null(kind)) for name, kind in counted.schema().items()}
    return ibis.union(counted, alone.select(**columns))


def _with_tail(sums: ir.Table, top_k_share: float) -> ir.Table:
    """Replace `step_risks` by `mean_top_k_risk`: source 5, "Top-k tail risk aggregation".

    k = max(1, ceil(n share)) of the n traces with any signal, in whole numbers, since 0.15 times 20 is 3 and no more.
    """
    share = Fraction(str(top_k_share)).limit_denominator(10**9)
    k = (sums.traces_evaluated * share.numerator + share.denominator - 1) // share.denominator  # at least 1 where n is
    tail = sums.step_risks[sums.traces_evaluated - k :].sums()
    return sums.mutate(mean_top_k_risk=to_12_decimals(tail.cast("float64") / k / TRILLION)).drop("step_risks")


def _inverted(risk: ir.NumericValue) -> ir.FloatingValue:
    """1 - risk within 0 and 1; 1 where nothing could be evaluated (source 5, "Edge cases")."""
    return to_12_decimals(1.0 - risk).clip(0.0, 1.0).fill_null(1.0)


def _band(score: ir.NumericValue, bands: Mapping[str, float]) -> ir.StringValue:
    *upper, (lowest, _) = bands.items()
    return ibis.cases(*((score >= limit, name) for name, limit in upper), else_=lowest)
