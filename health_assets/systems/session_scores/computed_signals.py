"""Signals computed from the calls of a run, which no score rests on: tool correctness and loop detection.

What belongs here: what they are, and which runs have them. What does not: signals that are stated (`merged_traces`),
which alone make scores, since computed ones hardly tell failures (docs/session-scores.md).

`tool_correctness` is the share of a run's tool calls that succeeded, where a failure that a later successful call of
the same tool repaired counts half. `loop_detection` is 1 minus the share of its steps that repeat. A step is a tool
call of known arguments or a model call of known answer. It repeats

- where the run had the same before: the same tool, arguments, status and result, or the same answer of a model, unless
  the run ends with it, which may pass on what another agent said;
- where it is of a cycle: two or three tool calls, not all alike, that follow the same two or three, whatever they gave.
"""

import ibis
from ibis import _, ir

from health_assets.scoring.identities import CLAIMANT, claimant_of, names_of_runs
from health_assets.scoring.relations import lookup
from health_assets.scoring.tool_faults import is_fault
from health_assets.scoring.trillionths import to_12_decimals

_RUN = ("hour", "execution_id", CLAIMANT)
_OF_STEP = ("tool", "is_success", "error", "call_key", "whole_key")
_FAILURE = "failure"
_BETWEEN = "\x1f"


def computed_signals(
    executions: ir.Table, tool_calls: ir.Table, model_calls: ir.Table, lookback_hours: int
) -> ir.Table:
    """One row per execution with a tool call or a step: every column of `computed_signals` but the formula's version.

    Args:
        executions: cleaned executions of the hours to make rows for.
        tool_calls: cleaned tool calls of these hours and the look-back before them.
        model_calls: cleaned model calls of the same hours.
        lookback_hours: how many hours, ending with the execution's own, its calls may have ended in.
    """
    steps = _steps_of_runs(executions, _steps(tool_calls, model_calls), lookback_hours)
    # of the steps of these runs alone: the look-back has many more errors
    steps = _with_repetitions(steps.mutate(is_fault=~steps.is_success & is_fault(steps.error)).drop("error"))
    is_call, is_step = steps.tool.notnull(), steps.whole_key.notnull() | steps.call_key.notnull()
    counts = steps.group_by(_RUN).aggregate(
        tool_calls=is_call.sum(),
        tool_failures=(is_call & ~steps.is_success).sum(),
        repaired_failures=(is_call & ~steps.is_success & steps.is_repaired).sum(),
        tool_faults=steps.is_fault.sum(),
        steps=is_step.sum(),
        repeated_steps=(is_step & steps.is_repeated).sum(),
    )
    counts = counts.filter((counts.tool_calls > 0) | (counts.steps > 0))
    successes = counts.tool_calls - counts.tool_failures
    of_calls = (2 * successes + counts.repaired_failures) / (2 * counts.tool_calls).nullif(0)
    of_steps = (counts.steps - counts.repeated_steps) / counts.steps.nullif(0)
    counts = counts.mutate(
        signal_tool_correctness=to_12_decimals(of_calls), signal_loop_detection=to_12_decimals(of_steps)
    )
    own = executions.select("hour", "execution_id", "agent_id", "agent_id_reported", claimant=claimant_of(executions))
    return lookup(counts, own, [*_RUN]).drop(CLAIMANT)


def repeated_calls(executions: ir.Table, tool_calls: ir.Table, model_calls: ir.Table, lookback_hours: int) -> ir.Table:
    """The calls that are counted in `repeated_steps`, by execution; arguments as of `computed_signals`."""
    steps = _steps_of_runs(executions, _steps(tool_calls, model_calls), lookback_hours).drop("error")
    steps = _with_repetitions(steps)
    is_step = steps.whole_key.notnull() | steps.call_key.notnull()
    return steps.filter(is_step & steps.is_repeated).select(*_RUN, "call_id")


def _steps(tool_calls: ir.Table, model_calls: ir.Table) -> ir.Table:
    """Calls of runs. `call_key` says what a tool was asked, `whole_key` also what came of it; null where not known."""
    is_success = tool_calls.status != _FAILURE
    # of a failure the error says what came of it; of a success without a result nobody knows
    result = ibis.coalesce(tool_calls.result_digest, is_success.ifelse(ibis.null("string"), tool_calls.error), "")
    result = (is_success & tool_calls.result_digest.isnull()).ifelse(ibis.null("string"), result)
    call_key = _joined(tool_calls.tool, tool_calls.arguments_digest)
    of_tools = tool_calls.select(
        "execution_id", "ended_at", "call_id", "tool", named=claimant_of(tool_calls), called_in=tool_calls.hour,
        is_success=is_success, error=tool_calls.error, call_key=call_key,
        whole_key=_joined(call_key, tool_calls.status, result),
    )  # fmt: skip
    answers = model_calls.filter(model_calls.output_digest.notnull())
    of_models = answers.select(
        "execution_id", "ended_at", "call_id", tool=ibis.null("string"), named=claimant_of(answers),
        called_in=answers.hour, is_success=ibis.literal(True), error=ibis.null("string"),
        call_key=ibis.null("string"), whole_key=answers.output_digest,
    )  # fmt: skip
    steps = ibis.union(of_tools, of_models)
    return steps.filter(steps.execution_id.notnull())


def _joined(first: ir.StringValue, *others: ir.StringValue) -> ir.StringValue:
    """Texts as one; null where one of them is."""
    for other in others:
        first = first + _BETWEEN + other
    return first


def _steps_of_runs(executions: ir.Table, steps: ir.Table, lookback_hours: int) -> ir.Table:
    """Each run with each of its steps."""
    runs = executions.semi_join(steps, "execution_id")
    runs = runs.mutate(claimant=claimant_of(runs))
    own = names_of_runs(runs, *_RUN)
    return own.inner_join(
        steps,
        [
            own.execution_id == steps.execution_id,
            own.named == steps.named,
            steps.called_in <= own.hour,
            steps.called_in > own.hour - ibis.interval(hours=lookback_hours),
        ],
    ).select(*(own[name] for name in _RUN), *(steps[name] for name in ("ended_at", "call_id", *_OF_STEP)))


def _with_repetitions(steps: ir.Table) -> ir.Table:
    """Steps with `is_repeated`, and with `is_repaired` where a later call of the same tool succeeded."""
    in_order = [steps.ended_at, steps.call_id.length(), steps.call_id]  # `c:2` before `c:10`
    steps = steps.mutate(place=ibis.row_number().over(group_by=_RUN, order_by=in_order))
    of_tool = steps.group_by([*_RUN, "tool"])
    steps = of_tool.mutate(last_success=lambda rows: rows.place.max(where=rows.is_success))
    steps = steps.group_by(_RUN).mutate(last_place=_.place.max())
    is_last_answer = steps.tool.isnull() & (steps.place == steps.last_place)
    is_new = ibis.row_number().over(group_by=[*_RUN, "whole_key"], order_by="place") == 0
    steps = steps.mutate(
        is_repaired=(steps.place < steps.last_success).fill_null(False),
        is_again=steps.whole_key.notnull() & ~is_new & ~is_last_answer,
    )
    calls = _with_cycles(steps.filter(steps.tool.notnull()))
    answers = steps.filter(steps.tool.isnull()).mutate(is_of_cycle=ibis.literal(False))
    steps = ibis.union(calls, answers.select(*calls.columns))
    return steps.mutate(is_repeated=steps.is_again | steps.is_of_cycle)


def _with_cycles(calls: ir.Table) -> ir.Table:
    """Tool calls with `is_of_cycle`."""
    in_order = ibis.window(group_by=_RUN, order_by="place")

    def before(name: str, calls_back: int) -> ir.Value:
        return calls[name].lag(calls_back).over(in_order)

    def is_same(first: ir.Value, second: ir.Value) -> ir.BooleanValue:
        return (first == second).fill_null(False)

    key = calls.call_key
    columns = calls.columns
    calls = calls.mutate(
        as_2_before=is_same(key, before("call_key", 2)),
        as_3_before=is_same(key, before("call_key", 3)),
        as_1_before=is_same(key, before("call_key", 1)),
    )

    def all_of(name: str, count: int) -> ir.BooleanValue:
        return ibis.and_(calls[name], *(before(name, back).fill_null(False) for back in range(1, count)))

    calls = calls.mutate(
        ends_2=all_of("as_2_before", 2) & ~calls.as_1_before,
        ends_3=all_of("as_3_before", 3) & ~all_of("as_1_before", 2),
    )

    def is_within(name: str, count: int) -> ir.BooleanValue:
        later = (calls[name].lead(ahead).over(in_order).fill_null(False) for ahead in range(1, count))
        return ibis.or_(calls[name], *later)

    calls = calls.mutate(is_of_cycle=is_within("ends_2", 2) | is_within("ends_3", 3))
    return calls.select(*columns, "is_of_cycle")
