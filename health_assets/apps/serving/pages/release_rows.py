"""Comparisons of releases as pages show them: the measures of a release together, its verdict, its pictures.

What belongs here: what the page of releases and an agent's page share. What does not: which releases a page shows.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from health_assets.apps.serving.pages.scoped_history import ScopedHistory
from health_assets.core.hours import HourRange
from health_assets.systems.release_comparison.comparison_rows import Comparison, by_pair
from health_assets.systems.release_comparison.names import (
    MEASURES,
    MIX,
    SHARES,
    SUCCESS_RATE,
    SUCCESS_RATES,
    VERDICTS,
    VERSION,
)
from health_assets.systems.release_comparison.texts import (
    NAMES,
    difference_text,
    margins_text,
    mix_text,
    summary,
    value_text,
    verdict_text,
)

RELEASES_SHOWN = 6
"""Releases of an agent's page."""
OF_MEASURE = (
    "measure", "verdict", "estimate_from", "estimate_to", "difference", "low", "high",
    "margin", "n_from", "n_to", "more_runs",
)  # fmt: skip
WIDTH, HEIGHT = 200.0, 60.0
"""Of a picture, in its own units."""
LEAST_RATIO = -0.999
"""A ratio of 0 has no logarithm."""


def releases_of(look: ScopedHistory, agent_id: str, hours: HourRange) -> list[dict[str, Any]]:
    """The last word on each new version and model of an agent, the newest first, with its success rate by hour.

    Args:
        look: the part of the history that the caller sees, the agent among it.
        agent_id: the agent.
        hours: hours in which the releases were compared.
    """
    data = []
    for rows in by_pair(look.of("releases", agent_id, hours)):
        last = max(row["hour"] for row in rows)
        by_hour = [_of_hour(row) for row in rows if row["measure"] == SUCCESS_RATE]
        data.append({**release_of([row for row in rows if row["hour"] == last]), "hours": by_hour})
    return with_repeats(sorted(with_changed_together(data), key=_newest_first))


def _newest_first(release: Mapping[str, Any]) -> tuple[float, bool, str]:
    return -release["released_at"].timestamp(), release["dimension"] != VERSION, release["to_version"]


def _of_hour(row: Comparison) -> dict[str, Any]:
    return {name: row[name] for name in ("hour", "difference", "low", "high", "verdict")}


def release_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One release: what ran before it, and each measure. Its verdict is the one that people look for first.

    Args:
        rows: its rows of one hour.
    """
    first = rows[0]
    measures = sorted(rows, key=lambda row: MEASURES.index(row["measure"]))
    verdict = min((row["verdict"] for row in rows), key=VERDICTS.index)
    names = ("agent_id", "dimension", "from_version", "to_version", "released_at", "baseline_starts_at")
    return {
        **{name: first[name] for name in names},
        **{name: first.get(name) for name in MIX},  # which rows of an earlier version do not have
        "hour": first["hour"],
        "verdict": verdict,
        "measures": [{name: row[name] for name in OF_MEASURE} for row in measures],
    }


def with_changed_together(releases: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Releases with `changed_with`, what else of the agent is new since the same hour: nobody can tell which it was."""
    return [
        one
        | {
            "changed_with": [
                {"dimension": other["dimension"], "to_version": other["to_version"]}
                for other in releases
                if (other["agent_id"], other["released_at"]) == (one["agent_id"], one["released_at"])
                and other["dimension"] != one["dimension"]
            ]
        }
        for one in releases
    ]


def with_repeats(releases: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Releases with `same_as`, the one before it in the list that has the same numbers; None where there is none.

    A version and a model that change together, alone of their agent in that hour, are compared by the same executions.
    """
    found: list[dict[str, Any]] = []
    for one in releases:
        same = None
        if len(one["changed_with"]) == 1:
            same = next((earlier for earlier in found if _are_same(earlier, one)), None)
        names = ("dimension", "from_version", "to_version")
        found.append(one | {"same_as": None if same is None else {name: same[name] for name in names}})
    return found


def _are_same(earlier: Mapping[str, Any], one: Mapping[str, Any]) -> bool:
    [other] = one["changed_with"]
    is_other = all(earlier[name] == other[name] for name in ("dimension", "to_version"))
    shared = ("agent_id", "released_at", "measures")
    return is_other and len(earlier["changed_with"]) == 1 and all(earlier[name] == one[name] for name in shared)


# -- texts and pictures ------------------------------------------------------------------------------------------------


def words(measure: Mapping[str, Any]) -> dict[str, str]:
    """A measure of a release in words: `name`, `before`, `now`, `difference`, `verdict`."""
    row = dict(measure)
    return {
        "name": NAMES[row["measure"]],
        "before": value_text(row["measure"], row["estimate_from"]),
        "now": value_text(row["measure"], row["estimate_to"]),
        "difference": difference_text(row),
        "verdict": verdict_text(row),
    }


@dataclass(frozen=True, kw_only=True)
class Interval:
    """An interval as places from 0 to `WIDTH`, better to the right.

    Args:
        zero: no difference.
        margin: from where to where no difference matters.
        ends: the interval.
        value: the estimate.
    """

    zero: float
    margin: tuple[float, float]
    ends: tuple[float, float]
    value: float


def interval(measure: Mapping[str, Any]) -> Interval | None:
    """The picture of a measure; None where there is no interval yet."""
    if measure["low"] is None:
        return None
    ends = sorted(_better(measure, measure[end]) for end in ("low", "high"))
    margin = abs(_better(measure, measure["margin"]))
    most = 1.1 * max(*map(abs, ends), margin)

    def place(better: float) -> float:
        return WIDTH / 2 * (1 + better / most)

    return Interval(
        zero=place(0.0),
        margin=(place(-margin), place(margin)),
        ends=(place(ends[0]), place(ends[1])),
        value=place(_better(measure, measure["difference"])),
    )


def _better(measure: Mapping[str, Any], difference: float) -> float:
    """How much better a difference is: of success rates themselves, of other shares and logarithms of ratios less."""
    if measure["measure"] in SHARES:
        return difference if measure["measure"] in SUCCESS_RATES else -difference
    return -math.log1p(max(difference, LEAST_RATIO))


@dataclass(frozen=True, kw_only=True)
class Band:
    """The interval of a success rate over time: points of a polygon and of a line, better upwards.

    Args:
        outline: points of the interval, along its upper end and back along its lower one.
        line: points of the estimate.
        zero: height of no difference.
    """

    outline: str
    line: str
    zero: float


def band(hours: Iterable[Mapping[str, Any]]) -> Band | None:
    """The picture of a success rate over time; None where fewer than two hours have an interval."""
    known = [one for one in hours if one["low"] is not None]
    if len(known) < 2:
        return None
    low = min(0.0, *(one["low"] for one in known))
    high = max(0.0, *(one["high"] for one in known))
    first, last = known[0]["hour"].timestamp(), known[-1]["hour"].timestamp()

    def height(difference: float) -> float:
        return HEIGHT * (high - difference) / (high - low)

    def point(one: Mapping[str, Any], name: str) -> str:
        x = WIDTH * (one["hour"].timestamp() - first) / (last - first)
        return f"{x:.1f},{height(one[name]):.1f}"

    upper = [point(one, "high") for one in known]
    lower = [point(one, "low") for one in reversed(known)]
    return Band(
        outline=" ".join([*upper, *lower]),
        line=" ".join(point(one, "difference") for one in known),
        zero=height(0.0),
    )


FOR_TEMPLATES = {
    "summary": summary, "mix_text": mix_text, "margins_text": margins_text, "words": words, "interval": interval,
    "band": band,
}  # fmt: skip
