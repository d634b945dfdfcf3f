"""Hours and ranges of hours, and the arithmetic of which hours need work."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HOUR, KEY_FORMAT, HourRange, contiguous, floor_hour, parse_hour
from health_assets.pipeline.hour_arithmetic import catch_up, late_ranges, newest_finished_hour, newest_stretch
from health_assets.warehouse.partition_states import hours_covered

START = datetime(2026, 6, 7, 13, tzinfo=UTC)


def hour(number: int) -> datetime:
    return START + number * HOUR


def hours(first: int, end: int) -> HourRange:
    return HourRange(hour(first), hour(end))


NUMBERS = st.integers(-30, 30)
RANGES = st.builds(lambda first, count: hours(first, first + count), NUMBERS, st.integers(0, 30))
SETS = st.sets(NUMBERS.map(hour))


# -- hours ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "2026-06-07T13", "2026-06-07T13:00", "2026-06-07T13:00:00", "2026-06-07T13:00:00Z", "2026-06-07 13", "2026-06-07-13:00",
        "2026-06-07T15:00+02:00", "2026-06-07T13:00:00.000000",
    ],
)  # fmt: skip
def test_an_hour_may_be_written_in_many_ways(text: str) -> None:
    parsed = parse_hour(text)
    assert parsed == START
    assert parsed.utcoffset() == timedelta(0)


def test_a_day_is_its_first_hour() -> None:
    assert parse_hour("2026-06-07") == datetime(2026, 6, 7, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "now", "yesterday", "2026-06-07T13:30", "2026-06-07T13:00:01", "2026-06-07T13:00:00.000001", "2026-06-07-13:30",
        "2026-13-01T00", "2026-02-29T00", "2026-06-07T25", "2026-06-07T13:30+00:30:01", "1780837200", "2026-06", "13:00",
        "2026-06-07T13:00+05:30", "2026-06-07T13;00", "0001-01-01T00:00+01:00", "9999-12-31T23:00-01:00",
    ],
)  # fmt: skip
def test_what_is_not_a_whole_hour_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(HealthAssetsError, match="2026-06-07T13") as caught:
        parse_hour(text)
    assert repr(text) in str(caught.value)


def test_the_key_of_an_hour_reads_back_as_the_hour() -> None:
    assert f"{START:{KEY_FORMAT}}" == "2026-06-07-13:00"
    assert parse_hour(f"{START:{KEY_FORMAT}}") == START


@given(st.datetimes(datetime(2000, 1, 2), datetime(2099, 12, 30), timezones=st.timezones()))
def test_the_floor_of_a_moment_is_the_start_of_its_utc_hour(moment: datetime) -> None:
    floor = floor_hour(moment)
    assert floor.tzinfo is UTC
    assert floor <= moment.astimezone(UTC) < floor + HOUR
    assert (floor.minute, floor.second, floor.microsecond) == (0, 0, 0)


# -- ranges --------------------------------------------------------------------------------------------------------------


def test_a_range_is_half_open() -> None:
    span = hours(0, 3)
    assert list(span) == [hour(0), hour(1), hour(2)]
    assert len(span) == 3
    assert hour(0) in span
    assert hour(3) not in span
    assert hour(0) - timedelta(microseconds=1) not in span
    assert hour(3) - timedelta(microseconds=1) in span


@pytest.mark.parametrize("moment", [START.replace(tzinfo=None), START.replace(minute=1), START.replace(microsecond=1),
                                    START.astimezone(timezone(timedelta(hours=5, minutes=30))).replace(minute=0)])  # fmt: skip
def test_a_range_has_only_whole_hours_with_a_zone(moment: datetime) -> None:
    with pytest.raises(ValueError, match="whole UTC hour"):
        HourRange(moment, hour(5))
    with pytest.raises(ValueError, match="whole UTC hour"):
        HourRange(hour(-5), moment)


def test_a_range_does_not_end_before_it_starts() -> None:
    assert len(HourRange(START, START)) == 0
    with pytest.raises(ValueError, match="before it starts"):
        HourRange(START, START - HOUR)


def test_a_range_says_what_it_is() -> None:
    assert str(hours(0, 24)) == "2026-06-07T13 to 2026-06-08T13 (24 h)"


@given(RANGES, RANGES)
def test_the_intersection_has_exactly_the_hours_in_both(one: HourRange, other: HourRange) -> None:
    assert set(one.intersection(other)) == set(one) & set(other)


@given(RANGES, st.integers(0, 50))
def test_extending_adds_hours_on_one_side_only(span: HourRange, count: int) -> None:
    back, forward = span.extended_back(count), span.extended_forward(count)
    assert (back.end, forward.start) == (span.end, span.start)
    assert len(back) == len(forward) == len(span) + count


@given(SETS)
def test_contiguous_ranges_hold_exactly_these_hours_and_never_touch(some: set[datetime]) -> None:
    ranges = contiguous(some)
    assert [one for span in ranges for one in span] == sorted(some)
    assert all(left.end < right.start for left, right in zip(ranges, ranges[1:], strict=False))
    assert contiguous(list(some) * 2) == ranges


# -- planning ------------------------------------------------------------------------------------------------------------


@given(RANGES, st.integers(1, 12), SETS, st.none() | NUMBERS.map(hour))
def test_hours_covered_counts_the_windows_hours_that_were_built_or_lie_before_the_first_log(
    span: HourRange, window_hours: int, built: set[datetime], first: datetime | None
) -> None:
    expected = []
    for end in span:
        window = [end - back * HOUR for back in range(window_hours)]
        expected.append(sum(first is None or one < first or one in built for one in window))
    assert hours_covered(span, window_hours, built, first) == expected


@given(SETS, st.integers(1, 8), NUMBERS.map(hour))
def test_late_ranges_hold_exactly_the_touched_hours_and_those_that_look_back_on_them(
    touched: set[datetime], lookback_hours: int, until: datetime
) -> None:
    ranges = late_ranges(touched, lookback_hours, until)
    dependent = {one + ahead * HOUR for one in touched for ahead in range(lookback_hours)}
    assert [one for span in ranges for one in span] == sorted(one for one in dependent if one < until)
    assert contiguous([one for span in ranges for one in span]) == ranges


def test_nothing_touched_needs_no_range() -> None:
    assert late_ranges(set(), 168, START) == []


@pytest.mark.parametrize(
    ("now", "grace", "newest"),
    [
        (hour(0), 0, hour(-1)),
        (hour(0) + timedelta(minutes=59, seconds=59), 0, hour(-1)),
        (hour(0) + timedelta(minutes=4), 5, hour(-2)),
        (hour(0) + timedelta(minutes=5), 5, hour(-1)),
        (hour(0) + timedelta(minutes=30), 90, hour(-2)),
    ],
)
def test_the_newest_finished_hour_ended_long_enough_ago(now: datetime, grace: int, newest: datetime) -> None:
    assert newest_finished_hour(now, timedelta(minutes=grace)) == newest


@given(NUMBERS.map(hour), SETS, st.none() | NUMBERS.map(hour), st.integers(1, 10))
def test_catching_up_starts_at_the_earliest_missed_hour_of_the_look_back(
    newest: datetime, materialized: set[datetime], first: datetime | None, lookback_hours: int
) -> None:
    span = catch_up(newest, materialized, first, lookback_hours)
    assert span.end == newest + HOUR
    assert 1 <= len(span) <= lookback_hours
    back = HourRange(newest - (lookback_hours - 1) * HOUR, newest + HOUR)
    missed = [one for one in back if first is not None and one > first and one not in materialized]
    assert span.start == (missed[0] if missed else newest)


# -- the stretch that leads up to now ------------------------------------------------------------------------------------


@given(SETS, st.integers(1, 20))
def test_the_newest_stretch_has_no_longer_gap_and_nothing_near_before_it(found: set[datetime], apart: int) -> None:
    first = newest_stretch(found, apart)
    if first is None:
        assert not found
        return
    stretch = sorted(hour for hour in found if hour >= first)
    assert all(after - before <= apart * HOUR for before, after in zip(stretch, stretch[1:], strict=False))
    assert all(first - hour > apart * HOUR for hour in found if hour < first)
