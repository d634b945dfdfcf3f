"""Enriched columns: rows whose columns are no longer what follows from targets, settings and other records.

What belongs here: finding such rows of some hours, cheaply where there are none, as is mostly the case; an expression
would take longer to compile than these take to run. What does not: what the columns should be (`pipeline.enrichment`).
"""

from collections.abc import Collection, Sequence
from datetime import datetime

from health_assets.core.hours import HourRange
from health_assets.core.judges import judged_by
from health_assets.scoring.outcomes import EVALUATED
from health_assets.scoring.prices import COMPUTED
from health_assets.warehouse.session import Session

_INSIDE = "hour >= $start AND hour < $end"
_REPORTED = "coalesce(agent_id_reported, agent_id)"


class EnrichedColumns:
    """The columns of some hours' rows that follow from other rows or from targets.

    Args:
        session: a session; a write session to change anything.
        hours: the hours.
    """

    def __init__(self, session: Session, hours: HourRange) -> None:
        self._session = session
        self._hours = {"start": hours.start, "end": hours.end}

    # -- agents' names --

    def has_folded_names(self, table: str) -> bool:
        """Whether an agent of a record table has another name than its log gives it."""
        sql = (
            f"SELECT 1 FROM {table} WHERE agent_id IS NOT NULL AND {_INSIDE} AND agent_id_reported IS NOT NULL LIMIT 1"
        )
        return bool(self._session.query(sql, self._hours))

    def names(self, table: str) -> list[tuple[str, str]]:
        """Every name that logs give, with every agent that it stands for now."""
        sql = f"SELECT DISTINCT {_REPORTED}, agent_id FROM {table} WHERE agent_id IS NOT NULL AND {_INSIDE}"
        return self._session.query(sql, self._hours)

    def hours_of_names(self, table: str, reported: Sequence[str]) -> set[datetime]:
        """Hours with rows of agents whom logs give one of these names."""
        rows = self._session.query(
            f"SELECT DISTINCT hour FROM {table} "
            f"WHERE agent_id IS NOT NULL AND {_INSIDE} AND {_REPORTED} IN (SELECT unnest($names))",
            {**self._hours, "names": list(reported)},
        )
        return {hour for (hour,) in rows}

    # -- whom judgements count as --

    def logs_of_judgements(self) -> set[str]:
        """The logs that hold judgements."""
        rows = self._session.query(f"SELECT DISTINCT source_file FROM judgements WHERE {_INSIDE}", self._hours)
        return {name for (name,) in rows}

    def trust(self, logs: Collection[str], kept: Collection[str] = ()) -> set[datetime]:
        """Believe the judgements of these logs, and no others, to be whose they say; gives the hours that change.

        Args:
            logs: the logs that are believed.
            kept: logs whose judgements stay as they are.
        """
        parameters = {**self._hours, "kept": list(kept)} | ({"believed": list(logs)} if logs else {})
        is_believed = "source_file IN (SELECT unnest($believed))" if logs else "false"
        counts_as = judged_by(is_believed, "judged_by_reported")
        is_kept = "source_file IN (SELECT unnest($kept))"
        differs = f"{_INSIDE} AND NOT {is_kept} AND judged_by IS DISTINCT FROM {counts_as}"
        rows = self._session.query(f"SELECT DISTINCT hour FROM judgements WHERE {differs}", parameters)
        if rows:
            self._session.query(f"UPDATE judgements SET judged_by = {counts_as} WHERE {differs}", parameters)
        return {hour for (hour,) in rows}

    # -- outcomes of executions --

    def evaluators(self) -> list[str]:
        """The names of evaluators with a result."""
        rows = self._session.query(f"SELECT DISTINCT name FROM evaluations WHERE {_INSIDE}", self._hours)
        return [name for (name,) in rows]

    def has_evaluations(self, table: str) -> bool:
        """Whether an execution has an outcome or feedback by an evaluator."""
        is_evaluated = f"outcome_source = '{EVALUATED}' OR feedback IS NOT NULL"
        sql = f"SELECT 1 FROM {table} WHERE ({is_evaluated}) AND {_INSIDE} LIMIT 1"
        return bool(self._session.query(sql, self._hours))

    # -- amounts of executions --

    def has_amounts_of_calls(self, amounts: Sequence[str]) -> bool:
        """Whether a model call of an execution states any of these amounts."""
        told = " OR ".join(f"{name} IS NOT NULL" for name in amounts)
        sql = f"SELECT 1 FROM model_calls WHERE execution_id IS NOT NULL AND ({told}) AND {_INSIDE} LIMIT 1"
        return bool(self._session.query(sql, self._hours))

    def has_summed_amounts(self, amounts: Sequence[str]) -> bool:
        """Whether an execution of a line has any of these amounts that the line does not state."""
        summed = " OR ".join(f"{name} IS NOT NULL AND {name}_reported IS NULL" for name in amounts)
        sql = f"SELECT 1 FROM executions WHERE span_id IS NULL AND ({summed}) AND {_INSIDE} LIMIT 1"
        return bool(self._session.query(sql, self._hours))

    def models_without_cost(self) -> list[tuple[str, str | None]]:
        """The models asked for and answering, of calls that tell their tokens and state no cost."""
        return self._session.query(
            "SELECT DISTINCT model, response_model FROM model_calls WHERE input_tokens IS NOT NULL "
            f"AND output_tokens IS NOT NULL AND (cost_source IS NULL OR cost_source = '{COMPUTED}') AND {_INSIDE}",
            self._hours,
        )

    def has_computed_costs(self, table: str) -> bool:
        """Whether a row has a cost that was computed."""
        sql = f"SELECT 1 FROM {table} WHERE cost_source = '{COMPUTED}' AND {_INSIDE} LIMIT 1"
        return bool(self._session.query(sql, self._hours))
