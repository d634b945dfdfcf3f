"""Evidence: the few events that weigh most in what a score lost, by hour and by window.

What belongs here: which events count against an agent, and which of them weigh most. What does not: how many points
they cost (`health_assets.scoring.explanation`).

An hour keeps the `MOST` events of each agent and kind; the first of any number of hours are among the first of each, so
hours merge by ranking again, and no window looks at executions. The longest runs weigh most, of equally long ones the
later, and of failures, breaches and failed triggers the latest; what remains equal is told apart by id.
"""

from datetime import timedelta

import ibis
from ibis import ir

from health_assets.core.hours import HourRange
from health_assets.core.targets import Targets
from health_assets.scoring.decimal_limits import is_longer, whole_us
from health_assets.scoring.health_components import with_long_running
from health_assets.scoring.relations import lookup, spine
from health_assets.scoring.target_columns import with_targets
from health_assets.systems.explanations.names import LONGEST_FIRST, MOST, SCORE_OF_KIND

_EVENT = ("kind", "event_id", "happened_at", "runtime_s")


def evidence_components(executions: ir.Table, trigger_events: ir.Table, targets: Targets) -> ir.Table:
    """The events of each hour, agent and kind that weigh most: every column of `evidence_components`.

    A slow run is one above the expected runtime in an hour whose mean runtime was above it; a long run exceeds
    `long_running_factor` times the expected runtime, and an SLA breach is what the execution's row says.

    Args:
        executions: cleaned executions.
        trigger_events: cleaned triggers.
        targets: for the expected runtime.
    """
    runs = with_targets(with_long_running(executions, targets), targets, ["expected_runtime_s"])
    failed_triggers = trigger_events.filter(trigger_events.status == "failed")
    return _heaviest(
        ibis.union(
            _runs("failure", runs.filter(~runs.succeeded)),
            _runs("slow_run", _slow(runs)),
            _runs("long_run", runs.filter(runs.is_long_running)),
            _runs("sla_breach", runs.filter(runs.sla_breached)),
            failed_triggers.select(
                "hour",
                "agent_id",
                kind=ibis.literal("trigger_failure"),
                event_id="trigger_id",
                happened_at="fired_at",
                runtime_s=ibis.null("float64"),
            ),
        )
    )


def score_evidence(components: ir.Table, scores: ir.Table, hours: HourRange, window_hours: int) -> ir.Table:
    """The events of each window that weigh most in what its score lost: every column but those of the window.

    Args:
        components: `evidence_components` of `hours` and as many before as make each window whole.
        scores: `agent_health` of `hours`.
        hours: the hours to give rows for.
        window_hours: length of the evaluation window.
    """
    lost = ibis.union(
        *(
            scores.filter(scores[column] < 1).select("hour", "agent_id", kind=ibis.literal(kind))
            for kind, column in SCORE_OF_KIND.items()
        )
    )
    of_windows = _of_one_window if len(hours) == 1 else _of_many_windows
    return of_windows(components, lost, hours, window_hours)


def _runs(kind: str, executions: ir.Table) -> ir.Table:
    return executions.select(
        "hour",
        "agent_id",
        kind=ibis.literal(kind),
        event_id="execution_id",
        happened_at="ended_at",
        runtime_s="runtime_s",
    )


def _slow(runs: ir.Table) -> ir.Table:
    """Runs above the expected runtime, of the hours whose mean was above it."""
    expecting = runs.filter(runs.target_expected_runtime_s.notnull())
    hourly = expecting.group_by(["hour", "agent_id"]).aggregate(
        total_us=whole_us(expecting.runtime_s).cast("int64").sum(), timed=expecting.runtime_s.count()
    )
    joined = lookup(expecting, hourly, ["hour", "agent_id"])
    expected_s = joined.target_expected_runtime_s
    return joined.filter(
        is_longer(joined.runtime_s, expected_s), joined.total_us > whole_us(joined.timed * expected_s)
    ).drop("total_us", "timed")


def _heaviest(events: ir.Table) -> ir.Table:
    """The first `MOST` events of each hour, agent and kind, with their `rank` from 1."""
    length_s = events.kind.isin(LONGEST_FIRST).ifelse(events.runtime_s, 0.0)
    place = ibis.row_number().over(
        group_by=["hour", "agent_id", "kind"],
        order_by=[length_s.desc(), events.happened_at.desc(), events.event_id],
    )
    ranked = events.mutate(rank=(place + 1).cast("int64"))
    return ranked.filter(ranked["rank"] <= MOST).select("hour", "agent_id", "kind", "rank", *_EVENT[1:])


def _in_windows(components: ir.Table, lost: ir.Table, hours: HourRange, window_hours: int) -> ir.Table:
    """Every event with each of `hours` in whose window it lies and whose score it counts against."""
    events = components.rename(happened_in="hour").drop("rank")
    each = spine(hours)
    inside = each.inner_join(
        events, [events.happened_in <= each.hour, events.happened_in > each.hour - ibis.interval(hours=window_hours)]
    ).select("hour", "agent_id", *_EVENT)
    return inside.semi_join(lost, ["hour", "agent_id", "kind"])


def _of_one_window(components: ir.Table, lost: ir.Table, hours: HourRange, window_hours: int) -> ir.Table:
    """The heaviest events of one window, ranked in one go: of the latest first, hour and rank say the order."""
    inside = components.filter(
        components.hour >= hours.end - timedelta(hours=window_hours), components.hour < hours.end
    )
    events = inside.semi_join(lost, ["agent_id", "kind"])
    is_by_length = events.kind.isin(LONGEST_FIRST)
    recency = (events.hour.epoch_seconds() * (MOST + 1) - events["rank"]).cast("float64")
    place = ibis.row_number().over(
        group_by=["agent_id", "kind"],
        order_by=[is_by_length.ifelse(events.runtime_s, recency).desc(), events.happened_at.desc(),
                  is_by_length.ifelse(events.event_id, "")],
    )  # fmt: skip
    first = events.mutate(place=place).filter(lambda rows: rows.place < MOST)
    return first.select(
        "agent_id", "kind", *_EVENT[1:], hour=ibis.literal(hours.start, "timestamp('UTC')"),
        rank=(first.place + 1).cast("int64"),
    ).select("hour", "agent_id", "kind", "rank", *_EVENT[1:])  # fmt: skip


def _of_many_windows(components: ir.Table, lost: ir.Table, hours: HourRange, window_hours: int) -> ir.Table:
    """The heaviest events of each window, ranked."""
    is_by_length, is_lost_by_length = components.kind.isin(LONGEST_FIRST), lost.kind.isin(LONGEST_FIRST)
    by_length = _in_windows(components.filter(is_by_length), lost.filter(is_lost_by_length), hours, window_hours)
    by_time = _latest(components.filter(~is_by_length), lost.filter(~is_lost_by_length), window_hours)
    return ibis.union(_heaviest(by_length), by_time)


def _latest(components: ir.Table, lost: ir.Table, window_hours: int) -> ir.Table:
    """The latest events of each window, ranked.

    Events are numbered by time; the last `MOST` numbers up to an hour are its latest events, and no window has to be
    spelled out.
    """
    in_order = [components.happened_at, components.event_id.desc()]
    numbered = components.mutate(
        number=ibis.row_number().over(group_by=["agent_id", "kind"], order_by=in_order), happened_in=components.hour
    ).drop("hour", "rank")
    parts = numbered.group_by(["agent_id", "kind", "happened_in"]).aggregate(last_number=numbered.number.max())
    line = ibis.union(
        lost.mutate(last_number=ibis.null("int64"), is_lost=ibis.literal(True)),
        parts.select("agent_id", "kind", "last_number", hour="happened_in", is_lost=ibis.literal(False)).select(
            "hour", "agent_id", "kind", "last_number", "is_lost"
        ),
    )
    so_far = ibis.range_window(preceding=None, following=0, group_by=["agent_id", "kind"], order_by="hour")
    marked = line.mutate(last_number=line.last_number.max().over(so_far))
    places = marked.filter(marked.is_lost).mutate(back=ibis.range(MOST).unnest())
    wanted = places.select(
        "hour", "agent_id", "kind", number=places.last_number - places.back, rank=(places.back + 1).cast("int64")
    )
    found = wanted.inner_join(numbered, ["agent_id", "kind", "number"])
    recent = found.filter(found.happened_in > found.hour - ibis.interval(hours=window_hours))
    return recent.select("hour", "agent_id", "kind", "rank", *_EVENT[1:])
