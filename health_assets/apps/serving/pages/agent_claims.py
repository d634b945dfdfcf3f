"""Claims of an agent's logs that evidence contradicts, over the window of its score.

What belongs here: adding hours up. What does not: finding such claims (`systems.agent_health_model.claims`).
"""

from typing import Any

from health_assets.apps.serving.pages.scoped_history import ScopedHistory
from health_assets.core.formatting import counted
from health_assets.core.hours import HourRange
from health_assets.systems.agent_health_model.names import CLAIMS

EXAMPLE = ("event_id", "happened_at", "source_file", "line_number")


def claims_against_evidence(look: ScopedHistory, agent_id: str, window: HourRange) -> list[dict[str, Any]]:
    """The claims of the window, the most frequent first.

    Returns:
        For each `claim`: what is said and what speaks against it in `words`, `runs`, and of the latest of them
        `event_id`, `happened_at`, `source_file` and `line_number`.
    """
    runs: dict[str, int] = {}
    latest: dict[str, dict[str, Any]] = {}
    for row in look.of("claims", agent_id, window):  # by hour, so that the latest comes last
        runs[row["claim"]] = runs.get(row["claim"], 0) + row["runs"]
        latest[row["claim"]] = row
    order = sorted(runs, key=lambda claim: (-runs[claim], list(CLAIMS).index(claim)))
    return [
        {"claim": claim, "words": CLAIMS[claim], "runs": runs[claim], **{name: latest[claim][name] for name in EXAMPLE}}
        for claim in order
    ]


def doubt_of_claims(claims: list[dict[str, Any]]) -> list[str]:
    """A sentence on why to trust the score less; none without such claims."""
    if not claims:
        return []
    worst = claims[0]
    runs = counted(worst["runs"], "execution")
    more = f", and {counted(len(claims) - 1, 'more claim')} do not hold" if len(claims) > 2 else ""
    more = ", and one more claim does not hold" if len(claims) == 2 else more
    return [f"Its logs contradict themselves: {runs} {worst['words']}{more}. The score believes what is claimed."]
