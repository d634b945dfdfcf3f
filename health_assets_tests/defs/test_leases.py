"""The lease as all hosts see it: who holds it, who is dead, and that it is never held twice. No process takes part."""

import os
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from health_assets.core.processes import Process
from health_assets.defs.write_lock.leases import Lease, LockClient

START = datetime(2026, 6, 7, 12, tzinfo=UTC)
ELSEWHERE = Process(host="elsewhere", space="", pid=1, started="1")
LEASE_S = 60.0


def after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def client(name: str, priority: int = 0, since_s: float = 0, process: Process = ELSEWHERE) -> LockClient:
    return LockClient(
        id=name, process=process, command=f"the run {name}", run_id=name, priority=priority, lease_s=LEASE_S,
        since=after(since_s), beat_at=after(since_s),
    )  # fmt: skip


def registered(*clients: LockClient) -> Lease:
    return Lease(clients=clients)


def test_the_most_urgent_client_acquires_a_free_lease_and_of_equal_ones_the_oldest() -> None:
    lease = registered(client("early"), client("a late one"), client("urgent", priority=10))
    order = []
    while lease.clients:
        takers = [own.id for own in lease.clients if lease.acquired(own.id).holder == own.id]
        assert len(takers) == 1
        order += takers
        lease = lease.acquired(takers[0]).unregistered(takers[0])
    assert order == ["urgent", "early", "a late one"]


def test_who_holds_it_goes_on_until_it_releases_it_and_sees_who_is_more_urgent() -> None:
    lease = registered(client("backfill"), client("late logs", since_s=1)).acquired("backfill")
    assert not lease.is_wanted_sooner("backfill")
    lease = lease.registered(client("newest hour", priority=10, since_s=2))
    assert lease.is_wanted_sooner("backfill")
    assert lease.acquired("newest hour").holder == "backfill"
    lease = lease.released("backfill").acquired("backfill")
    assert lease.holder is None
    assert lease.acquired("newest hour").holder == "newest hour"


def test_a_client_is_dead_after_its_lease_without_a_heartbeat_and_stays_dead() -> None:
    lease = registered(client("silent"), client("alive", since_s=1)).acquired("silent")
    lease = lease.heard("alive", after(50))
    assert lease.without_the_dead(after(LEASE_S)) == lease
    late = lease.without_the_dead(after(LEASE_S + 1))
    assert [own.id for own in late.clients] == ["alive"]
    assert [own.id for own in late.dead] == ["silent"]
    assert late.heard("silent", after(70)) == late
    assert late.acquired("alive").holder == "alive"
    assert late.without_the_dead(after(70)) == late, "nobody dies twice"
    assert late.settled(late.dead).dead == ()


def test_a_dead_holder_no_longer_holds_it() -> None:
    lease = registered(client("holder")).acquired("holder")
    assert lease.without_the_dead(after(LEASE_S + 1)).holder is None


def test_a_process_that_ended_here_is_dead_at_once_and_one_elsewhere_is_not() -> None:
    own = Process.current()
    assert not own.is_known_to_be_gone
    number_used_again = own.model_copy(update={"started": "1"})
    assert number_used_again.is_known_to_be_gone
    for other in ({"host": "elsewhere"}, {"space": "another boot"}):
        assert not number_used_again.model_copy(update=other).is_known_to_be_gone
    assert [client("a", process=process).is_dead(START) for process in (own, number_used_again)] == [False, True]


def test_a_process_that_has_ended_is_gone_also_while_its_parent_has_not_heard_of_it() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
        process = Process.here(child.pid)
        assert not process.is_known_to_be_gone
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert process.is_known_to_be_gone
    assert process.is_known_to_be_gone


@pytest.fixture
def hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `/proc` tell what it does with `hidepid=2`: all of the system, and nothing of processes of others."""
    for name in ("sys", "self"):
        (tmp_path / name).symlink_to(Path("/proc") / name)
    monkeypatch.setattr("health_assets.core.processes._PROC", tmp_path)


@pytest.mark.usefixtures("hidden")
def test_a_process_that_proc_hides_is_alive_for_as_long_as_its_number_is_in_use() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
        for started in ("12345", ""):  # as it said of itself, or as somebody who does not see it
            process = Process.here(child.pid).model_copy(update={"started": started})
            assert not process.is_known_to_be_gone
        child.kill()
        child.wait()
        assert process.is_known_to_be_gone
    first = process.model_copy(update={"pid": 1})
    assert not first.is_known_to_be_gone, "also where it may get no signal"


def test_a_process_whose_start_nobody_could_see_is_not_gone() -> None:
    assert not Process.current().model_copy(update={"started": ""}).is_known_to_be_gone


def test_a_client_that_does_not_want_the_lock_lets_everybody_go_first_and_later_stands_behind_those_that_did_before() -> (
    None
):
    reads = client("reads", priority=10).model_copy(update={"wants_lock": False})
    lease = registered(reads, client("writes"))
    assert lease.first == lease.client("writes")
    assert lease.acquired("reads").holder is None
    lease = lease.acquired("writes")
    assert not lease.is_wanted_sooner("writes")
    assert lease.requested("reads", after(5)).is_wanted_sooner("writes")
    equal = registered(reads.model_copy(update={"priority": 0}), client("writes")).requested("reads", after(5))
    assert [own.id for own in equal.clients] == ["writes", "reads"]
    assert equal.clients[1].since == after(5)
    assert equal.requested("writes", after(6)) == equal
    dead = registered(reads).without_the_dead(after(LEASE_S + 1)).dead
    assert [own.id for own in dead] == ["reads"]


NAMES = ["a", "b", "c"]
CHANGES: dict[str, Callable[[Lease, str, float], Lease]] = {
    "registered": lambda lease, name, at: (
        lease if lease.client(name) else lease.registered(client(name, priority=ord(name) % 2 * 10, since_s=at))
    ),
    "announced": lambda lease, name, at: (
        lease
        if lease.client(name)
        else lease.registered(client(name, since_s=at).model_copy(update={"wants_lock": False}))
    ),
    "requested": lambda lease, name, at: lease.requested(name, after(at)),
    "acquired": lambda lease, name, _: lease.acquired(name),
    "released": lambda lease, name, _: lease.released(name),
    "unregistered": lambda lease, name, _: lease.unregistered(name),
    "heard": lambda lease, name, at: lease.heard(name, after(at)),
    "looked after": lambda lease, _, at: lease.without_the_dead(after(at)),
}


@given(st.lists(st.tuples(st.sampled_from(list(CHANGES)), st.sampled_from(NAMES), st.integers(0, 40))))
def test_whatever_happens_the_holder_is_a_client_changes_only_by_releasing_and_survives_being_stored(
    steps: list[tuple[str, str, int]],
) -> None:
    lease, at = Lease(), 0.0
    for change, name, seconds in steps:
        at += seconds
        before, lease = lease, CHANGES[change](lease, name, at)
        assert lease.holder is None or lease.client(lease.holder) is not None
        if before.holder and lease.holder != before.holder:
            assert lease.holder is None, "it passes from one to another only through nobody"
            assert change in ("released", "unregistered", "looked after")
        assert Lease.model_validate_json(lease.model_dump_json()) == lease


def test_a_client_says_what_where_and_since_when() -> None:
    assert str(client("x")) == "the run x (host elsewhere, process 1, since 2026-06-07 12:00:00 UTC)"


@pytest.mark.parametrize("lease", [Lease(), registered(client("a"), client("b")).acquired("a")])
def test_who_is_no_client_changes_nothing(lease: Lease) -> None:
    for change in ("acquired", "released", "unregistered", "heard"):
        assert CHANGES[change](lease, "stranger", 1.0) == lease
