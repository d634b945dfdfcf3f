"""Order in which a person looks at agents: that of verdicts (`health_assets.scoring.verdict`), as an expression."""

from ibis import ir

from health_assets.scoring.verdict import ORDER, PROVISIONAL_MARK


def with_verdict(agents: ir.Table) -> ir.Table:
    """Add `verdict`, one of `ORDER`, and `urgency`, its place there from 0, to rows of `agent_health`."""
    mark = agents.is_provisional.fill_null(False).ifelse(PROVISIONAL_MARK, "")
    rows = agents.mutate(verdict=agents.state + mark)
    return rows.mutate(urgency=rows.verdict.cases(*((one, place) for place, one in enumerate(ORDER))))
