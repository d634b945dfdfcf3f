"""Evaluators whose results no score uses, since the targets file does not say what they mean."""

from collections.abc import Sequence

import ibis
from ibis import ir

from health_assets.core.evaluators import Evaluator, evaluators_of
from health_assets.core.formatting import counted
from health_assets.core.hours import HourRange
from health_assets.warehouse.session import Session

NAMES_SHOWN = 5


def results_by_name(session: Session, evaluations: ir.Table) -> dict[str, int]:
    """By name of an evaluator, the number of its results, the most first."""
    counts = evaluations.group_by("name").aggregate(results=evaluations.count())
    rows = session.dicts(counts.order_by(ibis.desc("results"), "name"))
    return {row["name"]: row["results"] for row in rows}


def unmapped_evaluators(session: Session, hours: HourRange, evaluators: Sequence[Evaluator]) -> str | None:
    """A sentence that names evaluators with results in these hours that no entry matches; None where there are none."""
    results = results_by_name(session, session.hours_of("evaluations", hours))
    known = evaluators_of(results, evaluators)
    unmapped = {name: count for name, count in results.items() if name not in known}
    if not unmapped:
        return None
    named = ", ".join(f"{name} ({count:,})" for name, count in [*unmapped.items()][:NAMES_SHOWN])
    more = f", and {len(unmapped) - NAMES_SHOWN:,} more" if len(unmapped) > NAMES_SHOWN else ""
    are = f"{counted(len(unmapped), 'evaluator')} {'is' if len(unmapped) == 1 else 'are'}"
    return f"{are} not mapped: {named}{more}; see `evaluators:` in the targets file"
