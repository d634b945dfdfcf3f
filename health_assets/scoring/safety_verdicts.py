"""Verdicts on the safety of runs: whose judgement counts, and in which hours.

A run is judged by its own `violations`, by `judgements` that come later, or by results of evaluators that the targets
take for violations (`evaluated_signals`), which count as what agents say. A judgement that names an agent is about
that agent's run of the id, one that names none about every run of it. A judgement counts from its hour on. Of those
that count, a person's is believed before a model's, and a model's before what agents say. Of equal ones of people
or models the latest is; of what agents say the worst, since whoever writes a log can say it: it may add violations, and
clears none. So a run has a row of verdicts, each true for a while.
"""

from collections.abc import Sequence

import ibis
from ibis import ir

from health_assets.scoring.identities import claimant_of, names_of_runs

RANKS = {"agent": 0, "model": 1, "person": 2}
"""Whose judgement is believed: the greatest one's. What an execution says of itself is an agent's."""

QUARTERS = {"high": 4, "medium": 2, "low": 1}
"""Severity weights 1, 0.5 and 0.25 in whole quarters, which add up to the same in any order."""


def judgements_of(judgements: ir.Table, evaluated: ir.Table | None) -> ir.Table:
    """What others than the executions say of their safety.

    Args:
        judgements: judgements, and whose each counts as (`judged_by`).
        evaluated: rows of `evaluated_signals` that tell of violations; None where there are none.
    """
    said = _said(judgements, _worst(judgements.violations))
    return said if evaluated is None else ibis.union(said, _said(*_as_judgements(evaluated)))


def _said(judgements: ir.Table, quarters: ir.IntegerValue) -> ir.Table:
    """Judgements with the worst severity that each names."""
    return judgements.select(
        "execution_id", "judged_at", "judged_by", "source_file", "line_number", judged_hour="hour",
        named=claimant_of(judgements), quarters=quarters,
    )  # fmt: skip


def _as_judgements(evaluated: ir.Table) -> tuple[ir.Table, ir.IntegerValue]:
    """Results of evaluators as judgements of agents, since any log may hold them, and the severity of each."""
    judgements = evaluated.mutate(judged_at=evaluated.evaluated_at, judged_by=ibis.literal("agent"))
    cases = [(judgements.severity == severity, quarters) for severity, quarters in QUARTERS.items()]
    quarters = judgements.is_violation.ifelse(ibis.cases(*cases, else_=0), 0).cast("int64")
    return judgements, quarters


def verdicts_on(runs: ir.Table, judged: ir.Table, early_hours: int, names: Sequence[str]) -> ir.Table:
    """Every verdict on a run and the hours in which it is the one that counts: `valid_from` to before `valid_until`.

    Args:
        runs: executions, with `hour`, `agent_id`, `agent_id_reported`, `violations` and `names`.
        judged: rows of `judgements_of`.
        early_hours: how many hours before a run's own a judgement may be, where clocks differ.
        names: columns that tell the runs of an hour apart, `execution_id` and `CLAIMANT` among them.

    Returns:
        `names`, `agent_id`, `run_hour`, `valid_from`, `valid_until` (null where nothing replaces it) and `quarters`,
        the severity of the worst violation in quarters, 0 for none.
    """
    runs = runs.mutate(claimant=claimant_of(runs))
    own = runs.filter(runs.violations.notnull()).select(
        "agent_id", *names, run_hour=runs.hour, rank=ibis.literal(RANKS["agent"], "int8"),
        judged_at=ibis.null("timestamp('UTC')"), source_file=ibis.literal(""),
        line_number=ibis.literal(0, "int64"), valid_from=runs.hour, quarters=_worst(runs.violations),
    )  # fmt: skip
    named = names_of_runs(runs, "agent_id", *names, "hour").rename(run_hour="hour")
    joined = named.inner_join(judged, ["execution_id", "named"])
    joined = joined.filter(joined.judged_hour >= joined.run_hour - ibis.interval(hours=early_hours))
    later = joined.select(
        "agent_id", *names, "run_hour", "judged_at", "source_file", "line_number",
        rank=_rank(joined.judged_by), valid_from=ibis.greatest(joined.judged_hour, joined.run_hour),
        quarters="quarters",
    )  # fmt: skip
    verdicts = ibis.union(own, later.select(own.columns))
    untrusted_quarters = ibis.ifelse(verdicts["rank"] == RANKS["agent"], verdicts.quarters, 0)
    stronger = ibis.window(
        group_by=["run_hour", *names],
        order_by=[
            verdicts["rank"].desc(), untrusted_quarters.desc(), verdicts.judged_at.desc(nulls_first=False),
            verdicts.source_file.desc(), verdicts.line_number.desc(),
        ],
        preceding=(None, 1),
    )  # fmt: skip
    verdicts = verdicts.mutate(valid_until=verdicts.valid_from.min().over(stronger))
    return verdicts.filter(verdicts.valid_until.isnull() | (verdicts.valid_until > verdicts.valid_from))


def _rank(judged_by: ir.StringValue) -> ir.IntegerValue:
    """The rank of a judge: how much it is believed. An unknown judge ranks as low as an agent."""
    cases = [(judged_by == kind, rank) for kind, rank in RANKS.items()]
    return ibis.cases(*cases, else_=RANKS["agent"]).cast("int8")


def _worst(violations: ir.Value) -> ir.IntegerValue:
    """The worst severity among violations, in quarters; 0 without any."""
    severities = _json_extract_string(violations, "$[*].severity")
    cases = [(severities.contains(severity), quarters) for severity, quarters in QUARTERS.items()]
    return ibis.cases(*cases, else_=0).cast("int64")


@ibis.udf.scalar.builtin(name="json_extract_string", signature=(("json", "string"), "array<string>"))
def _json_extract_string(document: ir.JSONValue, path: str) -> ir.ArrayValue:  # type: ignore[empty-body]
    """Every value at a path with a wildcard, as text; DuckDB's function, for which each engine has one of its own."""
