"""Signals, violations and outcomes that results of other tools' evaluators state, by the targets' `evaluators:`.

What belongs here: which value a result gives to which signal, whether it states a violation or a failure, and of which
execution. What does not: the entries (`core.evaluators`), which of several signals of a trace counts
(`systems.session_scores.merged_traces`), and what a violation means for safety (`systems.reliability.safety`).

A result that names a span is about the execution that the span is part of: the agent span itself, the execution of a
model or tool call, else the only execution of its trace. It counts from the hour in which both are known, so that a
result that was given while its execution still ran adds nothing to an earlier hour. Whatever hours are made at once, a
row is what its own hour and its look-back say.
"""

from collections.abc import Iterable, Sequence

import ibis
import pyarrow as pa
from ibis import ir

from health_assets.core.evaluators import Evaluator, evaluators_of
from health_assets.core.hours import HourRange
from health_assets.scoring.identities import CLAIMANT, claimant_of, names_of_runs
from health_assets.scoring.trillionths import to_12_decimals

VIOLATION = "violation"
"""What stands in place of a signal where a result tells whether its execution violates a constraint."""
OUTCOME = "outcome"
"""What stands there where a result tells whether its execution succeeded."""
FEEDBACK = "feedback"
"""Likewise where a result is what people said of it."""
TRACE_ID = r"^[0-9a-f]{32}(:[0-9a-f]{16})?$"
_ASKED = ("given_in", "evaluated", "named")
"""Columns that tell apart what results are about."""
_RUN = ("execution_id", CLAIMANT)


def evaluated_results(
    evaluations: ir.Table,
    executions: ir.Table,
    calls: Sequence[ir.Table],
    rules: tuple[ir.Table, ir.Table],
    hours: HourRange,
    lookback_hours: int,
) -> ir.Table:
    """One row per result and execution: every column of `evaluated_signals` but the formula's version.

    Args:
        evaluations: cleaned results of `hours` and the look-back before them.
        executions: cleaned executions of the same hours.
        calls: cleaned model calls and tool calls of the same hours.
        rules: results of `rules_of`.
        hours: the hours to make rows for.
        lookback_hours: how many hours apart a result and its execution may be.
    """
    results = _with_whole_ids(_valued(evaluations, *rules), executions, calls)
    results = results.mutate(given_in=results.hour, evaluated=results.execution_id, named=claimant_of(results))
    results = results.drop("hour", "execution_id", "agent_id", "agent_id_reported")
    asked = results.filter(results.evaluated.notnull()).select(*_ASKED).distinct()
    runs = executions.mutate(claimant=claimant_of(executions))
    about = _executions_of(asked, runs, calls, lookback_hours)
    rows = about.filter(about.hour >= hours.start).inner_join(results, [*_ASKED]).rename(evaluator="name")
    keys = (
        "hour", "source_file", "line_number", "place_in_line", "execution_id", "agent_id", "agent_id_reported",
        "session_id", "evaluated_at", "signal", "evaluator", "severity",
    )  # fmt: skip
    worst = rows.group_by([*keys, "least_allowed"]).aggregate(value=rows.share.min())
    is_worse, null = worst.value < worst.least_allowed, ibis.null("boolean")
    return worst.mutate(
        is_violation=ibis.ifelse(worst.signal == VIOLATION, is_worse, null),
        is_failure=ibis.ifelse(worst.signal == OUTCOME, is_worse, null),
        is_negative=ibis.ifelse(worst.signal == FEEDBACK, is_worse, null),
    ).drop("least_allowed")


def _stated_by(evaluator: Evaluator) -> str:
    return evaluator.signal or (OUTCOME if evaluator.outcome else FEEDBACK if evaluator.feedback else VIOLATION)


def rules_of(names: Iterable[str], evaluators: Sequence[Evaluator]) -> tuple[ir.Table, ir.Table]:
    """The entries for evaluators of some names, and the categories of each."""
    found = evaluators_of(names, evaluators)
    rules = [
        {
            "name": name, "signal": _stated_by(one), "severity": one.violation, "least": one.limits[0],
            "greatest": one.limits[1], "worst_allowed": one.worst_allowed, "is_inverted": one.is_inverted,
            "has_categories": one.categories is not None,
        }
        for name, one in sorted(found.items())
    ]  # fmt: skip
    categories = [
        {"name": name, "label": label, "share": share}
        for name, one in sorted(found.items())
        for label, share in (one.categories or {}).items()
    ]
    texts = [(column, pa.string()) for column in ("name", "signal", "severity")]
    scores = [(column, pa.float64()) for column in ("least", "greatest", "worst_allowed")]
    return (
        ibis.memtable(pa.Table.from_pylist(rules, pa.schema([
            *texts, *scores, ("is_inverted", pa.bool_()), ("has_categories", pa.bool_())
        ]))),
        ibis.memtable(pa.Table.from_pylist(categories, pa.schema([
            ("name", pa.string()), ("label", pa.string()), ("share", pa.float64())
        ]))),
    )  # fmt: skip


def _valued(evaluations: ir.Table, rules: ir.Table, categories: ir.Table) -> ir.Table:
    """The results that an entry takes, with what it says of them; those outside of its scale are none.

    `share` is the result from 0 (risk) to 1, and `least_allowed` the least share that is no violation.
    """
    mapped = evaluations.inner_join(rules, "name")
    mapped = mapped.select(*evaluations.columns, *(name for name in rules.columns if name != "name"))
    of_label = categories.rename(category="name")
    labelled = mapped.left_join(of_label, [mapped["name"] == of_label.category, mapped.label == of_label.label])
    labelled = labelled.select(*(mapped[name] for name in mapped.columns), category_share=of_label.share)

    def of_scale(score: ir.FloatingValue) -> ir.FloatingValue:
        upwards = (score - labelled.least) / (labelled.greatest - labelled.least)
        near = upwards.between(-1.0, 2.0).ifelse(upwards, None)  # any other is no result, and may be too great to round
        return labelled.is_inverted.ifelse(1.0 - near, near)

    share = labelled.has_categories.ifelse(labelled.category_share, of_scale(labelled.value))
    valued = labelled.mutate(
        share=to_12_decimals(share.nullif(float("nan"))), least_allowed=to_12_decimals(of_scale(labelled.worst_allowed))
    )
    return valued.filter(valued.share.notnull(), valued.share.between(0.0, 1.0))


def _with_whole_ids(results: ir.Table, executions: ir.Table, calls: Sequence[ir.Table]) -> ir.Table:
    """Results that name a span by its id alone, as Phoenix does, with the id of the execution or call made of it."""
    named = results.select(span_id="execution_id").distinct()
    made = [executions.select("span_id", whole_id="execution_id")]
    made += [one.select("span_id", whole_id="call_id") for one in calls]
    spans = ibis.union(*(one.semi_join(named, "span_id") for one in made)).distinct()
    joined = results.left_join(spans, results.execution_id == spans.span_id)
    columns = {name: results[name] for name in results.columns}
    return joined.select(**columns | {"execution_id": ibis.coalesce(spans.whole_id, results.execution_id)})


def _executions_of(asked: ir.Table, runs: ir.Table, calls: Sequence[ir.Table], lookback_hours: int) -> ir.Table:
    """What results are about, with the execution and the `hour` from which on it is known: `_ASKED`, `_RUN`, agent."""
    reach = ibis.interval(hours=lookback_hours)
    named = names_of_runs(runs, "hour", *_RUN, "agent_id", "agent_id_reported").rename(ran_in="hour")

    def joined(ids: ir.Table, on: str) -> ir.Table:
        """Each execution beside what is asked; `ids` has `_ASKED`, and in `on` the value to compare its id with."""
        pairs = ids.inner_join(named, [ids[on] == named.execution_id, ids.named == named.named])
        pairs = pairs.select(*(ids[name] for name in ids.columns), *(named[name] for name in named.columns[:-1]))
        return _known(pairs, reach)

    exact = joined(asked, "evaluated")
    made = ibis.union(*(one.select("hour", "call_id", "execution_id", "span_id") for one in calls))
    made = made.filter(made.span_id.notnull()).rename(called_in="hour", caller="execution_id")
    of_calls = asked.inner_join(made, asked.evaluated == made.call_id)
    of_calls = of_calls.select(*_ASKED, "called_in", "caller")
    by_call = joined(of_calls.filter(of_calls.caller.notnull()), "caller")
    by_call = by_call.filter(by_call.called_in <= by_call.hour, by_call.called_in > by_call.hour - reach)
    direct = ibis.union(
        exact.select(*_ASKED, seen_in=exact.ran_in), of_calls.select(*_ASKED, seen_in=of_calls.called_in), distinct=True
    )
    columns = [*_ASKED, "hour", *_RUN, "agent_id", "agent_id_reported"]
    of_trace = _only_ones(asked, named, direct, reach)
    return ibis.union(exact.select(*columns), by_call.select(*columns), of_trace.select(*columns), distinct=True)


def _known(pairs: ir.Table, reach: ir.IntervalScalar) -> ir.Table:
    """Pairs no more than the look-back apart, with the `hour` from which on both are known."""
    near = pairs.filter(pairs.ran_in > pairs.given_in - reach, pairs.given_in > pairs.ran_in - reach)
    return near.mutate(hour=ibis.greatest(near.given_in, near.ran_in))


def _only_ones(asked: ir.Table, named: ir.Table, direct: ir.Table, reach: ir.IntervalScalar) -> ir.Table:
    """What is about a trace, or a span of it that no record was made of, with the trace's only execution."""
    of_traces = asked.filter(asked.evaluated.re_search(TRACE_ID)).mutate(trace=lambda rows: rows.evaluated.left(32))
    runs = named.filter(named.execution_id.re_search(TRACE_ID)).mutate(trace=lambda rows: rows.execution_id.left(32))
    pairs = of_traces.inner_join(runs, ["trace", "named"]).drop("trace")
    pairs = _known(pairs, reach)
    found = direct.rename({f"found_{name}": name for name in _ASKED})
    pairs = pairs.anti_join(
        found,
        [
            *(pairs[name] == found[f"found_{name}"] for name in _ASKED),
            found.seen_in <= pairs.hour,
            found.seen_in > pairs.hour - reach,
        ],
    )
    others = pairs.select(*(pairs[name].name(f"other_{name}") for name in (*_ASKED, *_RUN, "ran_in"))).distinct()
    return pairs.anti_join(
        others,
        [
            *(pairs[name] == others[f"other_{name}"] for name in _ASKED),
            (pairs.execution_id != others.other_execution_id) | (pairs[CLAIMANT] != others[f"other_{CLAIMANT}"]),
            others.other_ran_in <= pairs.hour,
            others.other_ran_in > pairs.hour - reach,
        ],
    )
