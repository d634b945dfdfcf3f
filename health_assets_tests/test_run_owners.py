"""What a killed command leaves in a Dagster instance that others use, too: the slot of the pool, which the next run frees."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from dagster_world import batching_instance
from projects import command_environment

from health_assets.defs.specs import POOL
from health_assets.run_owners import OWNER_TAG, free_what_the_dead_hold, owner_tags

OWNER = """
import os, signal
from health_assets.run_owners import owner_tags
with owner_tags() as tags:
    print(tags["health_assets/owner"], flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@dg.job
def work() -> None: ...


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    with batching_instance(tmp_path) as made:
        made.event_log_storage.set_concurrency_slots(POOL, 1)
        yield made


def run_at(instance: dg.DagsterInstance, tags: dict[str, str]) -> str:
    """A run under way that has the slot of the pool, or waits for it."""
    run = instance.create_run_for_job(work, tags=tags, status=dg.DagsterRunStatus.STARTED)
    instance.event_log_storage.claim_concurrency_slot(POOL, run.run_id, "ingest")
    return run.run_id


def slots(instance: dg.DagsterInstance) -> tuple[set[str], set[str]]:
    """Runs that hold the slot, and that hold it or wait for it."""
    info = instance.event_log_storage.get_concurrency_info(POOL)
    return {slot.run_id for slot in info.claimed_slots}, {step.run_id for step in info.pending_steps}


def test_what_a_killed_process_held_and_waited_for_is_free_and_its_run_has_failed(instance: dg.DagsterInstance) -> None:
    arguments = [sys.executable, "-c", OWNER]
    killed = subprocess.run(arguments, env=command_environment(), capture_output=True, text=True, check=False)
    tags = {OWNER_TAG: killed.stdout.strip()}
    left = Path(tags[OWNER_TAG].partition(":")[2])
    assert left.exists()
    first, second = run_at(instance, tags), run_at(instance, tags)
    assert slots(instance) == ({first}, {first, second})
    free_what_the_dead_hold(instance)
    assert slots(instance) == (set(), set())
    assert {instance.get_run_by_id(run_id).status for run_id in (first, second)} == {dg.DagsterRunStatus.FAILURE}
    assert not left.exists()


def test_who_is_alive_or_not_known_keeps_the_slot(instance: dg.DagsterInstance) -> None:
    with owner_tags() as alive:
        runs = {run_at(instance, tags) for tags in (alive, {}, {OWNER_TAG: "another-machine:/tmp/gone"})}
        free_what_the_dead_hold(instance)
        held, waiting = slots(instance)
    assert len(held) == 1
    assert waiting == runs
    assert {instance.get_run_by_id(run_id).status for run_id in runs} == {dg.DagsterRunStatus.STARTED}
