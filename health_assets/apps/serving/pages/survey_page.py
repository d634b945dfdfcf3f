"""The page of the survey: who of the registry answers with a health document, by platform, now and over the last weeks.

What belongs here: choosing rows of `survey_summary`. What does not: asking agents (`systems.survey`).

The registry holds other people's agents, which are of no team: a caller who sees some teams alone sees nothing here.
"""

from typing import Any

import pyarrow.compute as pc

from health_assets.apps.serving.pages.page import Page
from health_assets.apps.serving.pages.rendering import part
from health_assets.apps.serving.pages.scoped_history import ScopedHistory
from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HOUR, HourRange
from health_assets.systems.survey.names import ALL_PLATFORMS, COUNTS, WITHOUT_DOCUMENT

PLATFORMS_SHOWN = 500


def survey_page(look: ScopedHistory, platform: str = ALL_PLATFORMS) -> Page:
    """The newest survey up to the hour that is looked at, and the last 30 days of a platform.

    Raises:
        HealthAssetsError: the platform is in no survey of these days.
    """
    # a survey belongs to the running hour, so the newest one may be newer than the newest scores
    at = look.history.newest("survey", None if look.is_newest else look.hour) if look.sees_all else None
    rows = [] if at is None else look.at("survey", at).to_pylist()
    platforms = sorted((row for row in rows if row["platform"] != ALL_PLATFORMS), key=lambda row: -row["agents"])
    everyone = next((row for row in rows if row["platform"] == ALL_PLATFORMS), None)
    curve = [] if at is None else _curve(look, HourRange(look.back(30).start, max(at, look.hour) + HOUR), platform)
    if rows and not curve:
        raise HealthAssetsError("No survey of these days has this platform; /ui/survey lists the platforms.")
    data: dict[str, Any] = {
        "hour": look.hour,
        "surveyed": at,
        "platform": platform,
        "everyone": everyone and _told(everyone) | _of_all(platforms),
        "platforms": [_told(row) for row in platforms[:PLATFORMS_SHOWN]],
        "count": len(platforms),
        "curve": curve,
    }
    shown = {"reasons": WITHOUT_DOCUMENT, "sees_all": look.sees_all, "query": [f"platform={part(platform)}"]}
    return Page(name="survey", title="Survey", data=data, listing="platforms", shown=shown)


def _told(row: dict[str, Any]) -> dict[str, Any]:
    """A platform: its counts, its survival rate, and how many did what else."""
    names = ("platform", *COUNTS, "survival_rate", *WITHOUT_DOCUMENT)
    return {name: row[name] for name in names}


def _of_all(platforms: list[dict[str, Any]]) -> dict[str, int | None]:
    """Counts agents without a document by reason, over all platforms; None where no probes are kept any more."""
    known = [row for row in platforms if row["invalid"] is not None]
    return {name: sum(row[name] for row in known) if known else None for name in WITHOUT_DOCUMENT}


def _curve(look: ScopedHistory, hours: HourRange, platform: str) -> list[dict[str, Any]]:
    """The surveys of a platform in these hours; shares are of its agents."""
    rows = look.history.between("survey", hours)
    if not rows.num_rows:
        return []
    own = rows.filter(pc.equal(rows.column("platform"), platform)).sort_by("hour").to_pylist()
    return [
        {
            **{name: row[name] for name in ("hour", *COUNTS, "survival_rate")},
            "healthy_share": row["healthy"] / row["agents"] if row["agents"] else None,
        }
        for row in own
    ]
