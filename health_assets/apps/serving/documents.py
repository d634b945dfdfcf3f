"""The JSON of an agent: its health document, and its item in a list.

What belongs here: members and what they are made of, as expressions over rows of agents, and those rows. What does not:
how JSON is written (`json_texts`), and names that the server knows, too (`vocabulary`).
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import ibis
from ibis import ir

from health_assets.apps.serving.json_texts import UNKNOWN, known, moment, number, whole
from health_assets.apps.serving.vocabulary import (
    DIMENSIONS,
    EXTENSION,
    EXTENSION_NOW,
    NOW_COUNTS,
    SCHEMA_VERSION,
    SCORE_COLUMNS,
    SHORT_WINDOWS,
)
from health_assets.core.hours import HourRange
from health_assets.scoring.relations import lookup
from health_assets.scoring.tested_parts import tested_parts
from health_assets.systems.agent_health_model.last_runs import LAST_RUNS, with_last_runs
from health_assets.systems.agent_health_model.severity_order import with_now, with_verdict
from health_assets.warehouse.session import Session

Members = Mapping[str, Any]
"""Member names to expressions, in the order in which they are written."""


def agents_of(session: Session, hour: datetime) -> ir.Table:
    """One row per agent of an hour, ascending by the bytes of its id.

    It has the columns of `agent_health_state`; `state` and the other columns of `agent_health` that explain a score,
    null where the agent has none; `LAST_RUNS`; `urgency`; what `agent_now` says of the agent; and the events
    that weigh most in what it lost, by kind and rank:
    `evidence_ids`, and what kind each of them is (`evidence_kinds`), null without any. Its scores over short windows
    are lists, `short_` and each of `SHORT_WINDOWS`, null without any.

    Args:
        session: a session.
        hour: the hour.
    """
    hours = HourRange.of(hour)
    states = session.hours_of("agent_health_state", hours).drop("hour", "formula_version", "hours_covered")
    scores = session.hours_of("agent_health", hours)
    scores = with_verdict(with_now(with_last_runs(scores, session, hours), session, hours))
    told = scores.select("agent_id", "state", "urgency", "now", "now_since", *NOW_COUNTS, *SCORE_COLUMNS, *LAST_RUNS)
    rows = lookup(states, told, "agent_id")
    events = session.hours_of("score_evidence", hours)
    order = [events.kind, events.rank]
    evidence = events.group_by("agent_id").aggregate(
        evidence_kinds=events.kind.collect(order_by=order), evidence_ids=events.event_id.collect(order_by=order)
    )
    short = session.hours_of("agent_health_short", hours)
    lists = {f"short_{name}": short[name].collect(order_by=short.window_hours) for name in SHORT_WINDOWS}
    scores_short = short.group_by("agent_id").aggregate(**lists)
    return lookup(lookup(rows, evidence, "agent_id"), scores_short, "agent_id").order_by("agent_id")


def with_texts(agents: ir.Table) -> ir.Table:
    """Rows of agents, which say whether each `is_personal` and its `team`, with their JSON and what orders them.

    A personal agent's `document` and `item` are coarse, and the full ones stand beside them; of the others these are
    null. `shown_state` is the state that everybody may see.
    """

    def coarse_or_full(coarse: Members, full: Members) -> tuple[ir.Value, ir.Value]:
        for_everybody = ibis.ifelse(agents.is_personal, whole(coarse), whole(full))
        return for_everybody.cast(str), ibis.ifelse(agents.is_personal, whole(full), UNKNOWN).cast(str)

    document, full_document = coarse_or_full(_coarse_document(agents), _document(agents))
    item, full_item = coarse_or_full(_coarse_item(agents), _item(agents))
    return agents.select(
        *("agent_id", "is_personal", "team", "status", "state", "window_start", "window_end", *SCORE_COLUMNS),
        *("evidence_kinds", "evidence_ids", "urgency", "now", "now_since", *NOW_COUNTS),
        *(f"short_{name}" for name in SHORT_WINDOWS),
        document=document,
        full_document=full_document,
        item=item,
        full_item=full_item,
        shown_state=ibis.ifelse(agents.is_personal, _coarse_status(agents), agents.state),
    )


def _coarse_status(agents: ir.Table) -> ir.Value:
    """The status that a personal agent shows (source 3, section 8): unhealthy on evidence of failure, else healthy.

    An agent that is too little used to be judged is not set apart, since how much it is used is just what must not
    show.
    """
    return ibis.ifelse(agents.status == "unhealthy", "unhealthy", "healthy")


def _head(agents: ir.Table) -> Members:
    return {"schema_version": SCHEMA_VERSION, "agent_id": agents.agent_id, "timestamp": moment(agents.window_end)}


def _document(agents: ir.Table) -> Members:
    """Source 3, section 4.2."""
    health = {
        "status": agents.status,
        "last_healthy_at": moment(agents.last_healthy_at),
        "uptime_seconds": number(agents.uptime_seconds),
    }
    calibration = (
        "response_ratio", "error_ratio", "latency_p50_ms", "latency_p99_ms", "measurement_window_seconds",
        "sample_count",
    )  # fmt: skip
    decay = {
        "calibration_trend": agents.calibration_trend,
        "days_since_model_change": number(agents.days_since_model_change),  # null where it is unknown
    }
    update = agents.last_capability_update
    return {
        **_head(agents),
        "health": known(health),
        "calibration": known({name: number(agents[name]) for name in calibration}),
        "decay": ibis.ifelse(update.isnull(), whole(decay), whole({**decay, "last_capability_update": moment(update)})),
        "extensions": known(
            {
                EXTENSION: ibis.ifelse(agents.state.isnull(), UNKNOWN, whole(_model_score(agents))),
                EXTENSION_NOW: ibis.ifelse(agents.now.isnull(), UNKNOWN, whole(_now(agents))),
            }
        ),
    }


def _coarse_document(agents: ir.Table) -> Members:
    """The same of a personal agent, for those without the token (section 8)."""
    return {**_head(agents), "health": whole({"status": _coarse_status(agents)})}


def _basis(agents: ir.Table) -> Members:
    """The number of executions that a score rests on, of those that it needs not to be provisional."""
    return {"is_provisional": agents.is_provisional.fill_null(False), "n": agents.n, "n_full": agents.n_full}


def _model_score(agents: ir.Table) -> Members:
    """The extension: the Agent Health Model's score of the same window, and its dimensions from 0 to 1 (source 1).

    A caller who reads a provisional score must not take it for knowledge, so the extension says that it is one. A
    dimension that nobody could evaluate is left out.
    """
    is_evaluated = _is_evaluated(agents)
    components = whole(
        {
            name: ibis.ifelse(is_evaluated.get(name, True), number(agents[column]), UNKNOWN)
            for name, (column, _) in DIMENSIONS.items()
        }
    )
    return {
        "state": agents.state,
        **_basis(agents),
        "score": number(agents.health_score),
        "points_at_stake": number(agents.points_at_stake),
        "components": ibis.ifelse(agents.health_score.isnull(), UNKNOWN, components),
        "last_runs": ibis.ifelse(agents.last_runs.isnull(), UNKNOWN, whole(_last_runs(agents))),
        "formula_version": agents.formula_version,
    }


def _is_evaluated(agents: ir.Table) -> Mapping[str, ir.BooleanValue]:
    """Whether each dimension that may have nothing to compare has any: `explanation.unmeasured` as expressions."""
    counts = {name: agents[name].fill_null(0) for name in ("n", "untimed", "long_running", "sla_checked", "triggers")}
    is_tested = tested_parts({**counts, "expected_runtime_s": agents.expected_runtime_s})
    return {
        "performance": is_tested["performance"],
        "stability": is_tested["stability"],
        "operation": is_tested["slas"] | is_tested["triggers"],
    }


def _last_runs(agents: ir.Table) -> Members:
    """The same formula over the last runs of an agent whose window holds too few."""
    return {
        "state": agents.last_runs_state,
        "n": agents.last_runs,
        "failures": agents.last_runs_failures,
        "score": number(agents.last_runs_score),
        "points_at_stake": number(agents.last_runs_points_at_stake),
        "since": moment(agents.last_runs_since),
    }


def _now(agents: ir.Table) -> Members:
    """The extension beside it: the verdict on the last hours, which the window's 24 dilute."""
    return {"verdict": agents.now, "since": moment(agents.now_since)}


def _item(agents: ir.Table) -> Members:
    """An agent in a list; one that has no row of `agent_health` has neither state nor score."""
    return {
        "agent_id": agents.agent_id,
        "now": ibis.ifelse(agents.now.isnull(), UNKNOWN, agents.now),
        "now_since": ibis.ifelse(agents.now.isnull(), UNKNOWN, moment(agents.now_since)),
        "state": agents.state,
        "status": agents.status,
        "health_score": number(agents.health_score),
        "points_at_stake": number(agents.points_at_stake),
        **{name: ibis.ifelse(agents.state.isnull(), UNKNOWN, value) for name, value in _basis(agents).items()},
        "is_personal": agents.is_personal,
    }


def _coarse_item(agents: ir.Table) -> Members:
    """A personal agent in a list, for those without the token: how much it is used is nobody's business."""
    status = _coarse_status(agents)
    told = {"agent_id": agents.agent_id, "state": status, "status": status, "is_personal": agents.is_personal}
    return {name: told.get(name, UNKNOWN) for name in _item(agents)}
