"""Which evidence of drift is enough, among all agents and measures of an hour.

Of many detectors the k with the most evidence are named, for the greatest k with which each has at least c / k (the
e-BH procedure: Wang, Ramdas, "False discovery rate control with e-values", 2022). Then all evidence together is at
least c, and a healthy fleet takes c / detectors hours on average to come to that, however its agents depend on one
another: the mean of e-detectors is one, too. With c = detectors x 168 / alarms, a healthy fleet has its first alarm on
average no earlier than after 168 / alarms hours.
"""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from health_assets.systems.agent_drift.detectors import EVIDENCE_SCHEMA, OF_NO_AGENT
from health_assets.systems.agent_drift.evidence import Floats
from health_assets.systems.agent_drift.names import WEEK_HOURS

JUDGED = EVIDENCE_SCHEMA.append(pa.field("is_drifting", pa.bool_()))


def judged(rows: pa.Table, alarms_a_week: float) -> pa.Table:
    """The rows of agents with the number of detectors of their hour, and whether each is among those that are named.

    Args:
        rows: rows of `detectors.EVIDENCE_SCHEMA` of whole hours.
        alarms_a_week: false alarms of the fleet that are allowed.
    """
    is_of_agent = rows["number"].to_numpy() != OF_NO_AGENT
    hours, places = np.unique(rows["hour"].cast(pa.int64()).to_numpy(), return_inverse=True)
    detectors = np.zeros(len(hours), np.int64)
    np.add.at(detectors, places, rows["detectors"].to_numpy())
    evidence = rows["evidence"].to_numpy()
    is_drifting = np.zeros(len(rows), bool)
    for place, count in enumerate(detectors):
        own = is_of_agent & (places == place)
        is_drifting[own] = named(evidence[own], int(count), alarms_a_week)
    made = rows.set_column(EVIDENCE_SCHEMA.get_field_index("detectors"), "detectors", pa.array(detectors[places]))
    return made.append_column("is_drifting", pa.array(is_drifting)).filter(pa.array(is_of_agent)).cast(JUDGED)


def named(evidence: Floats, detectors: int, alarms_a_week: float) -> NDArray[np.bool_]:
    """Which detectors of an hour have enough evidence.

    Args:
        evidence: logarithms of the evidence of those with some.
        detectors: how many there are with those without any.
        alarms_a_week: false alarms of the fleet that are allowed.
    """
    if not len(evidence):
        return np.zeros(0, bool)
    ordered = np.sort(evidence)[::-1]
    wanted = np.log(detectors * WEEK_HOURS / alarms_a_week) - np.log(np.arange(1, len(ordered) + 1))
    places = np.flatnonzero(ordered >= wanted)
    return evidence >= (ordered[places[-1]] if len(places) else np.inf)
