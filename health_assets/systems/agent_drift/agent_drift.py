"""Drift by agent and measure: the evidence of each hour, and which of it is enough among all agents.

Of many detectors the k with the most evidence are named, for the greatest k with which each has at least c / k (the
e-BH procedure: Wang, Ramdas, "False discovery rate control with e-values", 2022). Then all evidence together is at
least c, and a healthy fleet takes c / detectors hours on average to come to that, however its agents depend on one
another: the mean of e-detectors is one, too. With c = detectors x 168 / alarms, a healthy fleet has its first alarm on
average no earlier than after 168 / alarms hours.
"""

from collections.abc import Iterable, Iterator
from dataclasses import fields

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from health_assets.core.hours import HOUR, HourRange
from health_assets.schema.catalog import describe
from health_assets.schema.column_types import ARROW_TYPES
from health_assets.schema.columns import FORMULA_VERSION, AsOf
from health_assets.systems.agent_drift.causes import CAUSE, HINT
from health_assets.systems.agent_drift.evidence import Bets, Booleans, Floats, bets_of, log_evidence
from health_assets.systems.agent_drift.names import MEASURES, SUMS, VOLUME_DROP
from health_assets.systems.agent_drift.past import Integers, Past

WEEK_HOURS = 168
LEAST_EVIDENCE = 20.0
"""Less has no row, unless fewer than `WEEK_HOURS` / alarms may be enough."""
MOST_CELLS = 60_000
"""Agents x hours that are computed at once."""
ADDED_LATER = {*AsOf.model_fields, *CAUSE, HINT, FORMULA_VERSION} - {"hour"}
SCHEMA = pa.schema([(name, ARROW_TYPES[kind]) for name, kind, *_ in describe("drift") if name not in ADDED_LATER])
"""The columns of the table that are computed here."""
TOLD = tuple(field.name for field in fields(Bets) if field.name in SCHEMA.names)
TIME = SCHEMA.field("hour").type


def drifts(counts: pa.Table, hours: HourRange, open_hours: int, margin: float, alarms_a_week: float) -> pa.Table:
    """The rows of `drift` but the columns of `AsOf`: those with some evidence.

    Args:
        counts: `hourly_counts` of all agents, in the order of its keys.
        hours: the hours that it is of.
        open_hours: how many of them, at the end, are not over; their silence says nothing yet.
        margin: largest difference of success rates that does not matter.
        alarms_a_week: false alarms of the fleet that are allowed.
    """
    return drifts_of(_slices(counts, len(hours)), hours, open_hours, margin, alarms_a_week)


def drifts_of(
    slices: Iterable[tuple[pa.Array, Past]], hours: HourRange, open_hours: int, margin: float, alarms_a_week: float
) -> pa.Table:
    """The same of agents' ids and pasts, some agents at a time."""
    least = np.log(min(LEAST_EVIDENCE, WEEK_HOURS / alarms_a_week))
    detectors = np.zeros(len(hours), np.int64)
    tables = [SCHEMA.empty_table()]
    for agent_ids, past in slices:
        with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
            measured = bets_of(past, margin)
            for measure in MEASURES:
                has_past = np.any([bets.has_past for bets in measured[measure]], axis=0)
                if measure == VOLUME_DROP and open_hours:
                    has_past[-open_hours:] = False
                detectors += has_past.sum(axis=1)
                tables.append(_rows(agent_ids, hours, measure, measured[measure], has_past, least))
    return _judged(pa.concat_tables(tables), hours, detectors, alarms_a_week)


def _slices(counts: pa.Table, hours: int) -> Iterator[tuple[pa.Array, Past]]:
    """Some agents at a time, with their past."""
    encoded = counts["agent_id"].combine_chunks().dictionary_encode()
    agents = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    places = counts["place"].to_numpy()
    columns = {name: counts[name].to_numpy() for name in SUMS}
    step = max(1, MOST_CELLS // hours)
    for first in range(0, len(encoded.dictionary), step):
        low, high = np.searchsorted(agents, [first, first + step])
        own = {name: values[low:high] for name, values in columns.items()}
        past = Past.of(own, agents[low:high] - first, places[low:high], hours)
        yield encoded.dictionary.slice(first, step), past


def _rows(
    agent_ids: pa.Array, hours: HourRange, measure: str, bets: list[Bets], has_past: Booleans, least: float
) -> pa.Table:
    """The rows of a measure whose evidence is at least so much, without what is found among all agents."""
    evidence = np.where(has_past, log_evidence(bets), -np.inf)
    places, agents = np.nonzero(evidence >= least)
    logs = np.stack([np.where(own.has_past, own.log_ratio, -np.inf)[places, agents] for own in bets])
    best = logs.argmax(axis=0)
    told = {
        name: np.stack([getattr(own, name)[places, agents] for own in bets])[best, np.arange(len(best))]
        for name in TOLD
    }
    starts = np.array([hour.replace(tzinfo=None) for hour in hours], "datetime64[us]")[places]
    back = np.array([own.hours - 1 for own in bets])[best] * np.timedelta64(HOUR)
    made = {
        "hour": pa.array(starts).cast(TIME),
        "agent_id": agent_ids.take(pa.array(agents)),
        "measure": pa.array([measure] * len(agents), pa.string()),
        "since": pa.array(starts - back).cast(TIME),
        **{name: pa.array(values.astype(_dtype(name))) for name, values in told.items()},
        "evidence": pa.array(evidence[places, agents]),
        "detectors": pa.array(np.zeros(len(agents), np.int64)),
        "is_drifting": pa.array(np.zeros(len(agents), bool)),
    }
    return pa.table(made, SCHEMA)


def _dtype(name: str) -> type:
    return np.int64 if pa.types.is_integer(SCHEMA.field(name).type) else np.float64


def _judged(rows: pa.Table, hours: HourRange, detectors: Integers, alarms_a_week: float) -> pa.Table:
    """The rows with the number of detectors of their hour, and whether each is among those that are named."""
    first = np.datetime64(hours.start.replace(tzinfo=None), "us")
    starts = rows["hour"].cast(pa.timestamp("us")).to_numpy()
    columns = ((starts - first) // np.timedelta64(HOUR)).astype(np.int64)
    evidence = rows["evidence"].to_numpy()
    is_drifting = np.zeros(len(rows), bool)
    for column in np.unique(columns):
        own = columns == column
        is_drifting[own] = named(evidence[own], int(detectors[column]), alarms_a_week)
    judged = {"detectors": pa.array(detectors[columns]), "is_drifting": pa.array(is_drifting)}
    return pa.table({name: judged.get(name, rows[name]) for name in SCHEMA.names}, SCHEMA)


def named(evidence: Floats, detectors: int, alarms_a_week: float) -> NDArray[np.bool_]:
    """Which detectors of an hour have enough evidence.

    Args:
        evidence: logarithms of the evidence of those with some.
        detectors: how many there are with those without any.
        alarms_a_week: false alarms of the fleet that are allowed.
    """
    ordered = np.sort(evidence)[::-1]
    wanted = np.log(detectors * WEEK_HOURS / alarms_a_week) - np.log(np.arange(1, len(ordered) + 1))
    places = np.flatnonzero(ordered >= wanted)
    return evidence >= (ordered[places[-1]] if len(places) else np.inf)
