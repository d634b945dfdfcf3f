"""The state of every asset's hours, on both engines."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import ibis
import pytest

from health_assets.core.hours import EVER, HOUR, HourGroups, HourRange
from health_assets.schema.catalog import columns_of, schema_of
from health_assets.warehouse.partition_states import AssetInputs, PartitionStates
from health_assets.warehouse.session import Session
from health_assets.warehouse.store import Warehouse
from health_assets_tests.support.constraints import drop_constraints
from health_assets_tests.support.logs_made import START
from health_assets_tests.support.postgres_server import fresh_warehouse


@pytest.fixture(params=["duckdb", "postgres"])
def session(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Session]:
    with Warehouse(str(tmp_path / "w.duckdb") if request.param == "duckdb" else fresh_warehouse()).write() as session:
        for statement in drop_constraints("system_health"):
            session.query(statement)
        yield session


def at(hour: int) -> datetime:
    return START + hour * HOUR


def span(first: int, end: int) -> HourRange:
    return HourRange(at(first), at(end))


def rows(*health: tuple[int, float | None]) -> ibis.Table:
    """An agent's score by hour, as `system_health` has it."""
    types = ibis.schema(schema_of("system_health"))
    made = [dict.fromkeys(types) | {"hour": at(hour), "health_score": score} for hour, score in health]
    return ibis.memtable(made, schema=types).select(*columns_of("system_health"))


def replace(session: Session, hours: HourRange | HourGroups, *health: tuple[int, float | None]) -> None:
    PartitionStates(session).replace_rows("system_health", hours, rows(*health), formula_version="1.0")


def changed(session: Session, hour: int) -> datetime | None:
    sql = "SELECT changed_at FROM partition_states WHERE asset = 'system_health' AND hour = ?"
    [(moment,)] = session.query(sql, [at(hour)])
    return moment


def test_an_asset_that_nobody_made_has_no_hours(session: Session) -> None:
    materialized = PartitionStates(session)
    assert materialized.of("system_health") == set()
    assert materialized.first("system_health") is materialized.newest("system_health") is None
    assert materialized.last_made_at("system_health") is materialized.dropped_until() is None
    assert materialized.dropped_from(but="spans") is materialized.first_of_any(["spans"], at(9)) is None
    assert materialized.newest_of_each(["system_health"], at(9)) == materialized.made_at(EVER) == {}
    assert materialized.assets() == set()


def test_hours_are_there_with_and_without_rows(session: Session) -> None:
    replace(session, span(0, 3), (1, 50.0))
    materialized = PartitionStates(session)
    materialized.note("agent_health", HourRange.of(at(4)), [])
    assert materialized.of("system_health") == {at(0), at(1), at(2)}
    assert materialized.of("system_health", span(1, 9)) == {at(1), at(2)}
    assert materialized.of_any(["system_health", "agent_health"], span(2, 9)) == {at(2), at(4)}
    assert materialized.assets() == {"agent_health", "system_health"}
    assert session.query("SELECT rows FROM partition_states ORDER BY hour") == [(0,), (1,), (0,), (0,)]


def test_the_newest_hour_is_over_by_the_time_that_is_named(session: Session) -> None:
    replace(session, span(0, 3))
    materialized = PartitionStates(session)
    assert materialized.first("system_health") == at(0)
    assert materialized.newest("system_health") == at(2)
    assert materialized.newest("system_health", at(3)) == at(2)
    assert materialized.newest("system_health", at(3) - timedelta(microseconds=1)) == at(1)
    assert materialized.newest("system_health", at(0)) is None


def test_the_newest_hour_of_each_asset_tells_when_it_was_last_written(session: Session) -> None:
    replace(session, span(0, 2), (1, 50.0))
    materialized = PartitionStates(session)
    materialized.note("agent_health", HourRange.of(at(0)), [])
    made_at = materialized.made_at(span(0, 9))
    newest = materialized.newest_of_each(["system_health", "agent_health", "spans"], at(9))
    assert list(newest.items()) == [
        ("agent_health", (at(0), made_at[at(0)]["agent_health"])),
        ("system_health", (at(1), made_at[at(1)]["system_health"])),
    ]
    materialized.correct_rows("system_health", rows((1, 60.0)).select("hour", "health_score"), ["hour"])
    corrected = materialized.newest_of_each(["system_health"], at(9))["system_health"]
    assert corrected.written_at == changed(session, 1) > newest["system_health"].written_at
    assert materialized.last_made_at("system_health") == made_at[at(1)]["system_health"]


def test_hours_before_the_first_event_are_missing_only_if_they_are_asked_for(session: Session) -> None:
    replace(session, span(3, 4))
    missing = PartitionStates(session).missing
    reach = HourGroups((span(0, 6),))
    assert missing(["system_health"], reach, span(5, 6), at(2)) == {at(2), at(4), at(5)}
    assert missing(["system_health"], reach, span(1, 2), at(3)) == {at(1), at(4), at(5)}
    assert missing(["system_health"], reach, span(4, 6), None) == {at(4), at(5)}
    assert missing(["system_health", "spans"], reach, span(5, 6), at(3)) == {at(3), at(4), at(5)}


def test_an_hour_is_covered_if_it_is_there_or_before_the_first_event(session: Session) -> None:
    replace(session, HourGroups((span(2, 3), span(4, 5))))
    assert PartitionStates(session).covered("system_health", span(2, 6), 3, at(2)) == [3, 2, 2, 1]
    assert PartitionStates(session).covered("system_health", span(2, 6), 3, None) == [3, 3, 3, 3]


def test_dropped_hours_are_not_there_and_known_again_by_their_rows(session: Session) -> None:
    replace(session, span(0, 3), (0, 50.0), (1, 60.0))
    was_changed = changed(session, 0)
    materialized = PartitionStates(session)
    assert materialized.drop_rows("system_health", span(0, 2), is_remembered=True) == 2
    assert materialized.drop_rows("system_health", span(0, 2), is_remembered=True) == 0
    assert materialized.of("system_health") == {at(2)}
    assert materialized.dropped("system_health") == {at(0), at(1)}
    assert materialized.dropped("system_health", span(1, 9)) == {at(1)}
    assert materialized.dropped_until() == materialized.dropped_until("system_health") == at(2)
    assert materialized.dropped_until("spans") is materialized.dropped_from(but="system_health") is None
    assert materialized.dropped_from(but="spans") == materialized.first("system_health") == at(0)
    assert materialized.first_of_any(["system_health", "spans"], at(9)) == at(2)
    assert materialized.first_of_any(["system_health"], at(2)) is None

    replace(session, span(0, 2), (0, 50.0), (1, 61.0))
    assert materialized.dropped("system_health") == set()
    assert changed(session, 0) == was_changed  # the same rows came back
    assert changed(session, 1) > was_changed


def stale(session: Session, upstream: list[str], hours: HourRange, reach_hours: int = 1) -> set[datetime]:
    found = PartitionStates(session).statuses("system_health", upstream, hours, reach_hours=reach_hours)
    return {hour for hour, status in found.items() if status.is_stale}


def test_an_hour_is_stale_if_an_input_within_its_reach_changed_since(session: Session) -> None:
    replace(session, span(0, 4))
    states = PartitionStates(session)
    states.note("agent_health", span(0, 4), [at(1)])
    assert stale(session, ["agent_health"], span(0, 9)) == {at(1)}
    assert stale(session, ["agent_health"], span(0, 9), 2) == {at(1), at(2)}
    assert stale(session, ["agent_health"], span(2, 9), 2) == {at(2)}
    assert stale(session, ["spans"], span(0, 9), 9) == set()
    found = states.statuses("system_health", ["agent_health"], span(0, 4), reach_hours=2)
    assert [found[at(hour)].is_stale_by_own_hour for hour in range(4)] == [False, True, False, False]
    found = states.statuses("system_health", [], span(0, 4), reach_hours=4, same_hour_upstream=["agent_health"])
    assert [hour for hour in found if found[hour].is_stale] == [at(1)], "of these its own hour alone counts"


def test_the_hours_of_several_assets_are_told_by_asset(session: Session) -> None:
    states = PartitionStates(session)
    for asset in ("agent_health", "system_health", "error_budget"):
        states.note(asset, span(0, 3), [at(0), at(1), at(2)])
    states.note("agent_health", span(1, 2), [at(1)])
    states.drop_rows("error_budget", span(0, 1), is_remembered=False)
    assets = ["system_health", "error_budget", "spans"]
    assert states.of_each(assets, span(0, 2)) == {
        "system_health": {at(0), at(1)}, "error_budget": {at(1)}, "spans": set(),
    }  # fmt: skip
    assert states.dropped_of_each(assets) == {"system_health": set(), "error_budget": {at(0)}, "spans": set()}
    inputs = {
        "system_health": AssetInputs(["agent_health"]),
        "error_budget": AssetInputs([], ["agent_health"]),
        "spans": AssetInputs([]),
    }
    found = states.statuses_of_each(inputs, span(0, 9), reach_hours=2, only_stale=True)
    assert {asset: {*own} for asset, own in found.items()} == {
        "system_health": {at(1), at(2)}, "error_budget": {at(1)}, "spans": set(),
    }  # fmt: skip
    everything = states.statuses_of_each(inputs, span(0, 9), reach_hours=2)
    assert {asset: len(own) for asset, own in everything.items()} == dict.fromkeys(inputs, 3)
    for asset, own in inputs.items():
        alone = states.statuses(
            asset, own.upstream, span(0, 9), reach_hours=2, same_hour_upstream=own.same_hour_upstream
        )
        assert everything[asset] == alone


def test_an_hour_that_was_never_made_is_stale_once_an_input_has_rows(session: Session) -> None:
    states = PartitionStates(session)
    states.note("agent_health", span(0, 3), [at(1)])
    found = states.statuses("system_health", ["agent_health"], span(0, 3))
    assert {hour: status[:2] for hour, status in found.items()} == dict.fromkeys(span(0, 3), (False, False))
    assert stale(session, ["agent_health"], span(0, 3)) == {at(1)}


def test_a_gap_between_hours_does_not_widen_what_an_hour_looks_back_on(session: Session) -> None:
    replace(session, HourGroups((span(0, 1), span(5, 7))))
    PartitionStates(session).note("agent_health", span(0, 1), [at(0)])
    assert stale(session, ["agent_health"], span(0, 9), 5) == {at(0)}
    assert stale(session, ["agent_health"], span(0, 9), 6) == {at(0), at(5)}


def test_corrected_rows_change_their_hours_alone(session: Session) -> None:
    replace(session, span(0, 3), (0, 50.0), (2, 60.0))
    before = [changed(session, hour) for hour in range(3)]
    corrections = rows((0, 51.0)).select("hour", "health_score")
    PartitionStates(session).correct_rows("system_health", corrections, ["hour"])
    assert session.query("SELECT health_score FROM system_health ORDER BY hour") == [(51.0,), (60.0,)]
    assert changed(session, 0) > before[0]
    assert [changed(session, hour) for hour in (1, 2)] == before[1:]
    PartitionStates(session).correct_rows("system_health", corrections.limit(0), ["hour"])
    assert [changed(session, hour) for hour in (1, 2)] == before[1:]


def test_hours_of_other_versions_are_told_with_these_and_where_none_is_noted_it_is_the_first(session: Session) -> None:
    materialized = PartitionStates(session)
    materialized.note("system_health", span(0, 1), [])
    replace(session, span(1, 2), (1, 50.0))
    materialized.replace_rows(
        "system_health",
        span(2, 4),
        rows((2, 60.0), (3, 70.0)),
        formula_version="2.0",
        other_versions={at(3): "2.0, mixed"},
    )
    assert others(session, "2.0") == {at(0): "1.0", at(1): "1.0", at(3): "2.0, mixed"}
    assert others(session, "1.0") == {at(2): "2.0", at(3): "2.0, mixed"}
    found = session.query("SELECT hour, formula_version, health_score FROM system_health ORDER BY hour")
    assert found == [(at(1), "1.0", 50.0), (at(2), "2.0", 60.0), (at(3), "2.0, mixed", 70.0)]
    materialized.drop_rows("system_health", span(1, 3), is_remembered=True)
    assert others(session, "2.0") == {at(0): "1.0", at(3): "2.0, mixed"}
    statuses = materialized.statuses("system_health", [], span(0, 4))
    dropped = {hour: status.formula_version for hour, status in statuses.items() if status.is_dropped}
    assert dropped == {at(1): "1.0", at(2): "2.0"}


def others(session: Session, version: str) -> dict[datetime, str]:
    return PartitionStates(session).of_other_versions({"system_health": version, "spans": "9"})["system_health"]


def test_the_same_rows_of_another_version_count_as_unchanged(session: Session) -> None:
    replace(session, span(0, 1), (0, 50.0))
    before = changed(session, 0)
    PartitionStates(session).replace_rows("system_health", span(0, 1), rows((0, 50.0)), formula_version="2.0")
    assert changed(session, 0) == before


def test_a_write_after_the_clock_was_set_back_makes_stale_what_was_made_before(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    materialized = PartitionStates(session)
    replace(session, span(0, 2), (0, 1.0), (1, 2.0))
    materialized.note("error_budget", span(0, 2), [])
    by_the_clock = session.now()
    monkeypatch.setattr(type(session), "now", lambda _: by_the_clock - timedelta(minutes=1))
    replace(session, HourRange.of(at(0)), (0, 3.0))
    statuses = materialized.statuses("error_budget", ["system_health"], span(0, 2))
    assert {hour for hour, status in statuses.items() if status.is_stale} == {at(0)}
    materialized.note("error_budget", HourRange.of(at(0)), [])
    assert not materialized.statuses("error_budget", ["system_health"], span(0, 2))[at(0)].is_stale
    materialized.correct_rows("system_health", rows((1, 9.0)).select("hour", "health_score"), ["hour"])
    statuses = materialized.statuses("error_budget", ["system_health"], span(0, 2))
    assert {hour for hour, status in statuses.items() if status.is_stale} == {at(1)}
