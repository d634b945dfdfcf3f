"""Sentences about agents of which no runtime is expected."""

import pytest

from health_assets.scoring.slowdowns import Slowdown, sentence_of_agent, sentence_of_fleet, slowdown


def test_the_median_is_compared_with_the_shortest_of_the_earlier_ones() -> None:
    found = slowdown("a", 25_000, {1: 20_000, 2: 6_000})
    assert found is not None and (found.before_ms, found.days, found.ratio) == (6_000, 2, 25 / 6)
    assert found.words == "median runtime 25.0 s, was 6.0 s two days ago"


def test_without_an_earlier_median_there_is_no_slowdown() -> None:
    assert slowdown("a", 25_000, {1: None, 2: None}) is None
    found = slowdown("a", 25_000, {1: 6_000, 2: None})
    assert found is not None and found.words.endswith("was 6.0 s a day ago")


@pytest.mark.parametrize(("now_ms", "ratio"), [(0.0, 1.0), (1.0, float("inf"))])
def test_a_median_of_nothing_is_compared_too(now_ms: float, ratio: float) -> None:
    assert Slowdown(agent_id="a", now_ms=now_ms, before_ms=0.0, days=1).ratio == ratio


def test_an_agent_is_told_with_its_median_and_where_it_is_known_the_one_before() -> None:
    found = Slowdown(agent_id="a", now_ms=25_000, before_ms=6_000, days=2)
    start = "performance is not judged: no target; median runtime 25.0 s"
    assert sentence_of_agent(25_000, None) == start
    assert sentence_of_agent(25_000, found) == f"{start}, was 6.0 s two days ago"


def test_a_fleet_is_told_with_its_greatest_slowdown_from_a_fifth_on() -> None:
    start = "performance is not judged for 2 of 3 agents: no target"
    slow, steady = (Slowdown(agent_id="a", now_ms=now_ms, before_ms=10_000, days=1) for now_ms in (12_000, 11_900))
    told = "; slowed most: a, median runtime 12.0 s, was 10.0 s a day ago (1.2 times)"
    assert sentence_of_fleet(2, 3, slow, "a") == start + told
    assert sentence_of_fleet(2, 3, steady, "a") == sentence_of_fleet(2, 3, None, "") == start
    assert sentence_of_fleet(0, 3, None, "") is None
