"""The rules about verdicts: what ends an incident without good executions."""

from datetime import timedelta

import pytest

from health_assets.apps.alerts.now_rules import FailingNow
from health_assets.apps.alerts.state_facts import NowFact
from health_assets.core.hours import HOUR
from health_assets_tests.support.alerts_made import at


def seen_after(*verdicts: str) -> NowFact:
    """The last of these hours of an agent, with those before it; nothing ran in quiet ones."""
    rows = [
        {"hour": at(hour), "verdict": verdict, "executions_1h": 0 if verdict == "quiet" else 12, "failures_1h": 0}
        for hour, verdict in enumerate(verdicts)
    ]
    return NowFact(hour=rows[-1]["hour"], subject_id="a", row=rows[-1], history=rows)


@pytest.mark.parametrize(("quiet_hours", "is_over"), [(1, False), (5, False), (6, True)])
def test_a_failing_agent_is_quiet_from_six_hours_after_the_last_that_was_failing_or_suspect(
    quiet_hours: int, is_over: bool
) -> None:
    seen = seen_after("failing", *["suspect"] * 6, *["quiet"] * quiet_hours)
    told = FailingNow().gives_up(seen, at(0))
    assert (told is not None) is is_over
    if told is not None:
        quiet_since = seen.hour + HOUR - timedelta(hours=6)
        assert told == f"a is quiet: nothing ran in 6 h, since {quiet_since:%Y-%m-%d %H:%M} UTC"
