"""Model health (source 4): success share, latencies and last error over a model's last calls.

The part of an hour is the last calls of each model in it, as many as the rolling window holds; the last calls of any
number of hours are among the last calls of each, so parts merge by taking the last again. Calls are ordered by
(ended_at, source_file, line_number, call_id), since one line may hold several.
"""

import ibis
from ibis import ir

from health_assets.core.hours import HourRange
from health_assets.scoring.relations import spine

IN_ORDER = ("ended_at", "source_file", "line_number", "call_id")


def model_components(model_calls: ir.Table, window_calls: int) -> ir.Table:
    """The last `window_calls` calls of each model and hour: every column of `model_components`."""
    latest_first = [ibis.desc(name) for name in IN_ORDER]
    ranked = model_calls.mutate(place=ibis.row_number().over(group_by=["hour", "model"], order_by=latest_first))
    last = ranked.filter(ranked.place < window_calls)
    return last.mutate(
        succeeded=last.status == "success",
        error=last.error.nullif(""),
        response_model=last.response_model.nullif(""),
        window_calls=ibis.literal(window_calls, "int64"),
    )


def model_health(
    components: ir.Table, model_calls: ir.Table, hours: HourRange, lookback_hours: int, window_calls: int,
    degraded_threshold: float,
) -> ir.Table:  # fmt: skip
    """One row per hour and model with a call in the look-back: every column of `model_health`.

    Args:
        components: the last calls of `hours` and the look-back before them.
        model_calls: all calls of the same hours; read only where a part was built for a smaller window.
        hours: the hours to give rows for.
        lookback_hours: length of the look-back.
        window_calls: length N of the rolling window.
        degraded_threshold: a model whose score is below it is degraded.
    """
    calls = window_calls_of(components, model_calls, hours, lookback_hours, window_calls)
    return _summaries(calls).mutate(
        is_degraded=lambda rows: rows.health_score < degraded_threshold,
        window_calls=ibis.literal(window_calls, "int64"),
        degraded_threshold=ibis.literal(float(degraded_threshold)),
    )


def window_calls_of(
    components: ir.Table, model_calls: ir.Table, hours: HourRange, lookback_hours: int, window_calls: int
) -> ir.Table:
    """The calls of each model's window at each of `hours`, with that hour as `hour`; arguments as of `model_health`."""
    numbered = _numbered(_with_calls_left_out(components, model_calls, window_calls))
    return _last_calls(numbered, hours, lookback_hours, window_calls)


def _with_calls_left_out(components: ir.Table, model_calls: ir.Table, window_calls: int) -> ir.Table:
    """The parts, those anew that were cut to a window shorter than the one asked for."""
    cut = components.group_by(["hour", "model"]).aggregate(calls=components.count(), most=components.window_calls.max())
    cut = cut.filter(cut.calls == cut.most, cut.most < window_calls).select("hour", "model")
    anew = model_components(model_calls.semi_join(cut, ["hour", "model"]), window_calls)
    columns = ("hour", "model", *IN_ORDER, "succeeded", "latency_ms", "error", "response_model")
    return ibis.union(components.anti_join(cut, ["hour", "model"]).select(*columns), anew.select(*columns))


def _numbered(calls: ir.Table) -> ir.Table:
    """Add `number`: each model's calls in order, without a gap within the last `window_calls` of any hour."""
    return calls.mutate(number=ibis.row_number().over(group_by="model", order_by=list(IN_ORDER)))


def _last_calls(numbered: ir.Table, hours: HourRange, lookback_hours: int, window_calls: int) -> ir.Table:
    """For every hour, each model's last calls before its end and in its look-back, with `hour` as that hour."""
    each = spine(hours)
    parts = numbered.group_by(["model", "hour"]).aggregate(last_number=numbered.number.max())
    parts = parts.rename(called_in="hour")
    reached = each.inner_join(
        parts, [parts.called_in <= each.hour, parts.called_in > each.hour - ibis.interval(hours=lookback_hours)]
    )
    newest = reached.group_by(["hour", "model"]).aggregate(last_number=reached.last_number.max())
    places = newest.mutate(back=ibis.range(window_calls).unnest())
    wanted = places.select("hour", "model", number=places.last_number - places.back)
    calls = numbered.rename(called_in="hour")
    found = wanted.inner_join(calls, ["model", "number"])
    return found.filter(found.called_in > found.hour - ibis.interval(hours=lookback_hours))


def _summaries(calls: ir.Table) -> ir.Table:
    """One row per hour and model: shares, nearest-rank latencies, the last error, the models that answered."""
    by_window = {"group_by": ["hour", "model"]}
    ranked = _with_answers(calls).mutate(
        place=ibis.row_number().over(order_by=[calls.latency_ms.isnull(), "latency_ms", "number"], **by_window),
        latencies=calls.latency_ms.count().over(**by_window),
    )

    def nearest_rank(percent: int) -> ir.NumericValue:
        rank = (ranked.latencies * percent + 99) // 100
        return ranked.latency_ms.max(where=(ranked.place == rank - 1) & ranked.latency_ms.notnull())

    failed = ~ranked.succeeded
    successes = ranked.count(where=ranked.succeeded)
    return ranked.group_by(["hour", "model"]).aggregate(
        health_score=successes / ranked.count(),
        success_count=successes,
        failure_count=ranked.count(where=failed),
        p50_latency_ms=nearest_rank(50),
        p95_latency_ms=nearest_rank(95),
        last_error=ranked.error.argmax(ranked.number, where=failed & ranked.error.notnull()),
        last_call_at=ranked.ended_at.max(),
        last_response_model=ranked.answered_last.max(),
        previous_response_model=ranked.response_model.max(where=ranked.number == ranked.number_before),
        response_model_changed_at=ranked.answered_at.min(),
    )


def _with_answers(calls: ir.Table) -> ir.Table:
    """The calls of each window with the model that answered the last of them, and the last call that another answered.

    The numbers of calls that say nothing of the model that answered, or failed, are null.
    """
    by_window = ibis.window(group_by=["hour", "model"])
    says = calls.succeeded & calls.response_model.notnull()
    said = calls.mutate(said=ibis.ifelse(says, calls.number, ibis.null(calls.number.type())))
    said = said.mutate(said_last=said.said.max().over(by_window))
    is_last = said.said.notnull() & (said.said == said.said_last)
    answer = ibis.ifelse(is_last, said.response_model, ibis.null("string"))
    said = said.mutate(answered_last=answer.max().over(by_window))
    is_other = said.said.notnull() & (said.response_model != said.answered_last)
    before = ibis.ifelse(is_other, said.said, ibis.null(said.said.type()))
    said = said.mutate(number_before=before.max().over(by_window))
    is_after = said.said.notnull() & (said.said > said.number_before)
    return said.mutate(answered_at=ibis.ifelse(is_after, said.ended_at, ibis.null(said.ended_at.type())))
