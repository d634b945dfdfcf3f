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
from health_assets.defs.write_lock.leases import Claim, Lease

START = datetime(2026, 6, 7, 12, tzinfo=UTC)
ELSEWHERE = Process(host="elsewhere", space="", pid=1, started="1")
LEASE_S = 60.0


def after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def claim(name: str, priority: int = 0, since_s: float = 0, process: Process = ELSEWHERE) -> Claim:
    return Claim(
        id=name, process=process, command=f"the run {name}", run_id=name, priority=priority, lease_s=LEASE_S,
        since=after(since_s), beat_at=after(since_s),
    )  # fmt: skip


def claimed(*claims: Claim) -> Lease:
    return Lease(claims=claims)


def test_the_most_urgent_claim_takes_a_free_lease_and_of_equal_ones_the_oldest() -> None:
    lease = claimed(claim("early"), claim("a late one"), claim("urgent", priority=10))
    order = []
    while lease.claims:
        takers = [own.id for own in lease.claims if lease.taken(own.id).holder == own.id]
        assert len(takers) == 1
        order += takers
        lease = lease.taken(takers[0]).withdrawn(takers[0])
    assert order == ["urgent", "early", "a late one"]


def test_who_holds_it_goes_on_until_it_lets_go_and_sees_who_is_more_urgent() -> None:
    lease = claimed(claim("backfill"), claim("late logs", since_s=1)).taken("backfill")
    assert not lease.is_wanted_sooner("backfill")
    lease = lease.claimed(claim("newest hour", priority=10, since_s=2))
    assert lease.is_wanted_sooner("backfill")
    assert lease.taken("newest hour").holder == "backfill"
    lease = lease.let_go("backfill").taken("backfill")
    assert lease.holder is None
    assert lease.taken("newest hour").holder == "newest hour"


def test_a_claim_is_dead_after_its_lease_without_a_heartbeat_and_stays_dead() -> None:
    lease = claimed(claim("silent"), claim("alive", since_s=1)).taken("silent")
    lease = lease.heard("alive", after(50))
    assert lease.without_the_dead(after(LEASE_S)) == lease
    late = lease.without_the_dead(after(LEASE_S + 1))
    assert [own.id for own in late.claims] == ["alive"]
    assert [own.id for own in late.dead] == ["silent"]
    assert late.heard("silent", after(70)) == late
    assert late.taken("alive").holder == "alive"
    assert late.without_the_dead(after(70)) == late, "nobody dies twice"
    assert late.settled(late.dead).dead == ()


def test_a_dead_holder_no_longer_holds_it() -> None:
    lease = claimed(claim("holder")).taken("holder")
    assert lease.without_the_dead(after(LEASE_S + 1)).holder is None


def test_a_process_that_ended_here_is_dead_at_once_and_one_elsewhere_is_not() -> None:
    own = Process.current()
    assert not own.is_known_to_be_gone
    number_used_again = own.model_copy(update={"started": "1"})
    assert number_used_again.is_known_to_be_gone
    for other in ({"host": "elsewhere"}, {"space": "another boot"}):
        assert not number_used_again.model_copy(update=other).is_known_to_be_gone
    assert [claim("a", process=process).is_dead(START) for process in (own, number_used_again)] == [False, True]


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


def test_a_claim_that_does_not_contend_lets_everybody_go_first_and_later_stands_behind_those_that_did_before() -> None:
    reads = claim("reads", priority=10).model_copy(update={"contends": False})
    lease = claimed(reads, claim("writes"))
    assert lease.first == lease.claim("writes")
    assert lease.taken("reads").holder is None
    lease = lease.taken("writes")
    assert not lease.is_wanted_sooner("writes")
    assert lease.contended("reads", after(5)).is_wanted_sooner("writes")
    equal = claimed(reads.model_copy(update={"priority": 0}), claim("writes")).contended("reads", after(5))
    assert [own.id for own in equal.claims] == ["writes", "reads"]
    assert equal.claims[1].since == after(5)
    assert equal.contended("writes", after(6)) == equal
    dead = claimed(reads).without_the_dead(after(LEASE_S + 1)).dead
    assert [own.id for own in dead] == ["reads"]


NAMES = ["a", "b", "c"]
CHANGES: dict[str, Callable[[Lease, str, float], Lease]] = {
    "claimed": lambda lease, name, at: (
        lease if lease.claim(name) else lease.claimed(claim(name, priority=ord(name) % 2 * 10, since_s=at))
    ),
    "announced": lambda lease, name, at: (
        lease if lease.claim(name) else lease.claimed(claim(name, since_s=at).model_copy(update={"contends": False}))
    ),
    "contended": lambda lease, name, at: lease.contended(name, after(at)),
    "taken": lambda lease, name, _: lease.taken(name),
    "let go": lambda lease, name, _: lease.let_go(name),
    "withdrawn": lambda lease, name, _: lease.withdrawn(name),
    "heard": lambda lease, name, at: lease.heard(name, after(at)),
    "looked after": lambda lease, _, at: lease.without_the_dead(after(at)),
}


@given(st.lists(st.tuples(st.sampled_from(list(CHANGES)), st.sampled_from(NAMES), st.integers(0, 40))))
def test_whatever_happens_the_holder_has_a_claim_changes_only_by_letting_go_and_survives_being_stored(
    steps: list[tuple[str, str, int]],
) -> None:
    lease, at = Lease(), 0.0
    for change, name, seconds in steps:
        at += seconds
        before, lease = lease, CHANGES[change](lease, name, at)
        assert lease.holder is None or lease.claim(lease.holder) is not None
        if before.holder and lease.holder != before.holder:
            assert lease.holder is None, "it passes from one to another only through nobody"
            assert change in ("let go", "withdrawn", "looked after")
        assert Lease.model_validate_json(lease.model_dump_json()) == lease


def test_a_claim_says_what_where_and_since_when() -> None:
    assert str(claim("x")) == "the run x (host elsewhere, process 1, since 2026-06-07 12:00:00 UTC)"


@pytest.mark.parametrize("lease", [Lease(), claimed(claim("a"), claim("b")).taken("a")])
def test_who_has_no_claim_changes_nothing(lease: Lease) -> None:
    for change in ("taken", "let go", "withdrawn", "heard"):
        assert CHANGES[change](lease, "stranger", 1.0) == lease
