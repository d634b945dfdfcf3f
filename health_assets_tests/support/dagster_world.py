"""A small world for tests of the Dagster layer: synthetic logs, a warehouse, and runs of the real definitions.

What belongs here: making logs, running hours, reading tables back. What does not: assertions.
"""

import gzip
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import duckdb

from health_assets.cli.dagster_home import EVENT_STORAGE
from health_assets.core.hours import HOUR, HourRange
from health_assets.core.settings import Settings
from health_assets.defs.build import JOB, build_definitions
from health_assets.defs.partitions import hours_tags
from health_assets.defs.specs import ONLY_STALE_TAG
from health_assets.pipeline.events import Event
from health_assets.pipeline.resource import Pipeline
from health_assets_tests.support.projects import RECORD_TABLES, begin_with_empty_tables, run_steps, shared_duckdb

ASSETS = (
    "raw_logs", "spans", "executions", "cancellations", "trigger_events", "model_calls", "tool_calls", "signals", "evaluations", "judgements", "agent_updates",
    "rejected_records", "health_components", "agent_health", "agent_health_short", "system_health", "now_components", "agent_now", "evidence_components", "score_evidence",
    "state_components", "agent_changes", "agent_health_state",
    "model_components", "model_health", "fallback_components", "model_fallback", "computed_signals", "evaluated_signals", "trace_risks", "session_scores", "task_consistency", "agent_reliability",
    "error_budget", "tool_components", "tool_health", "usage_components", "agent_usage", "usage_breakdown",
    "release_components", "release_comparison", "drift",
)  # fmt: skip
FLEET_ASSETS = (*RECORD_TABLES, "raw_logs", "health_components", "agent_health", "system_health")
"""What the steps `FLEET` materialize."""
ONE_RUN_TAGS = ("dagster/partition", "dagster/asset_partition_range_start", "dagster/asset_partition_range_end")
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
NOON = datetime(2026, 6, 7, 12, tzinfo=UTC)


def stamp(moment: datetime) -> str:
    """A time as the logs write it."""
    return moment.astimezone(UTC).isoformat()


def execution(hour: datetime, name: str, *, agent: str = "ada", status: str = "success", minute: int = 30) -> dict:
    """An execution of 20 seconds that ended in `hour`."""
    ended = hour + timedelta(minutes=minute)
    return {
        "type": "execution", "execution_id": name, "agent_id": agent, "status": status, "confidence": 0.9, "task_id": "t",
        "session_id": f"session of {agent}",
        "started_at": stamp(ended - timedelta(seconds=20)), "ended_at": stamp(ended), "sla_s": 30,
    }  # fmt: skip


def lines_of_hour(hour: datetime) -> list[dict]:
    """One record of every kind, from three agents."""
    at = stamp(hour + timedelta(minutes=40))
    key = f"{hour:%d%H}"
    return [
        execution(hour, f"e1-{key}"),
        execution(hour, f"e2-{key}", agent="bob", status="failure" if hour.hour % 3 == 0 else "success"),
        execution(hour, f"e3-{key}", agent="cy", minute=50),
        {"type": "trigger", "trigger_id": f"t-{key}", "agent_id": "bob", "fired_at": at, "status": "failed"},
        {"type": "model_call", "call_id": f"c-{key}", "model": "m1", "ended_at": at, "status": "success"},
        {
            "type": "tool_call",
            "call_id": f"k-{key}",
            "tool": "search",
            "agent_id": "ada",
            "ended_at": at,
            "status": "failure",
        },
        {"type": "signals", "execution_id": f"e1-{key}", "agent_id": "ada", "at": at, "coherence": 0.8},
        {"type": "judgement", "execution_id": f"e1-{key}", "agent_id": "ada", "at": at, "violations": []},
        {"type": "agent_update", "agent_id": "dot", "at": at, "kind": "restart"},
    ]


@dataclass(frozen=True)
class World:
    """Raw logs and a warehouse of its own.

    Args:
        settings: points to both.
    """

    settings: Settings

    @classmethod
    def at(cls, folder: Path, **settings: object) -> "World":
        """A world in a folder of its own, which may exist."""
        raw = folder / "raw"
        raw.mkdir(parents=True, exist_ok=True)
        return cls(Settings(raw=raw, targets=None, warehouse=str(folder / "health.duckdb"), **settings))

    def copied(self, folder: Path, **settings: object) -> "World":
        """A copy of the logs and of the warehouse, so that a test may change both."""
        shutil.copytree(self.settings.raw, folder / "raw")
        shutil.copy2(self.settings.warehouse, folder / "health.duckdb")
        changed = {"raw": folder / "raw", "warehouse": str(folder / "health.duckdb"), **settings}
        return World(self.settings.model_copy(update=changed))

    def rebuilt(self, folder: Path, hours: HourRange, *, only: Sequence[str] | None = None) -> "World":
        """The same logs in a new warehouse, with these hours materialized from nothing and without checks; all steps, or these."""
        folder.mkdir(parents=True, exist_ok=True)
        world = World(self.settings.model_copy(update={"warehouse": str(folder / "health.duckdb")}))
        world.materialize(hours, only=only)
        return world

    def materialize(
        self,
        hours: HourRange | None = None,
        *,
        tags: Mapping[str, str] | None = None,
        only: Sequence[str] | None = None,
    ) -> None:
        """Materialize hours, or those of a run request, by the engine: without Dagster and without checks."""
        chosen = dict(tags) if hours is None else hours_tags(hours)
        is_stale = ONLY_STALE_TAG in chosen
        begin_with_empty_tables(Path(self.settings.warehouse))
        with shared_duckdb(self.settings) as duckdb:  # as a run in one process has it
            pipeline = Pipeline(settings=self.settings, shared_duckdb=duckdb)
            run_steps(pipeline, requested_hours(chosen), only_stale=is_stale, only=only)

    def write(self, name: str, records: Sequence[Mapping | str]) -> Path:
        """Write a raw log; a text stands for a line as it is."""
        path = self.settings.raw / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = "".join((record if isinstance(record, str) else json.dumps(record)) + "\n" for record in records)
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
        return path

    def write_hours(self, hours: HourRange) -> None:
        """One raw log per hour, with a rejected line in the first."""
        for place, hour in enumerate(hours):
            self.write(
                f"{hour:%Y-%m-%d}/{hour:%H}.jsonl", [*lines_of_hour(hour), *(["{not json"] if place == 0 else [])]
            )

    def resources(self) -> dict[str, Pipeline]:
        """The resource that assets, checks, schedules and sensors ask for."""
        return {"pipeline": Pipeline(settings=self.settings)}

    def definitions(self, pipeline: Pipeline | None = None) -> dg.Definitions:
        """The real definitions for this world, for a few weeks around noon: Dagster lists all hours for every check."""
        return build_definitions(self.settings, HourRange(NOON - 500 * HOUR, NOON + 500 * HOUR), pipeline=pipeline)

    def run(
        self,
        instance: dg.DagsterInstance,
        hours: HourRange | None = None,
        *,
        tags: Mapping[str, str] | None = None,
        assets: Sequence[str] = ASSETS,
        on_event: Callable[[Event], None] = lambda _: None,
    ) -> dg.ExecuteInProcessResult:
        """Run all assets, or some, and their checks for some hours, or with the tags of a run request."""
        begin_with_empty_tables(Path(self.settings.warehouse))
        job = self.definitions(Pipeline(settings=self.settings, on_event=on_event)).resolve_job_def(JOB)
        chosen = dict(tags) if hours is None else hours_tags(hours)
        selection = None if assets == ASSETS else [dg.AssetKey(name) for name in assets]
        return job.execute_in_process(
            instance=instance, tags=chosen, run_config=QUIET, raise_on_error=False, asset_selection=selection
        )

    def query(self, sql: str) -> list[tuple]:
        """Read from the warehouse, or change it behind the product's back."""
        with duckdb.connect(self.settings.warehouse) as connection:
            connection.execute("SET TimeZone = 'UTC'")
            return connection.execute(sql).fetchall()

    def tables(self, assets: Sequence[str] = ASSETS) -> dict[str, list[tuple]]:
        """All rows of these assets' tables in a fixed order, and which hours of which of them there are."""
        noted = self.query("SELECT asset, hour, rows FROM partition_states ORDER BY ALL")
        rows = {asset: self.query(f"SELECT * FROM {asset} ORDER BY ALL") for asset in assets}
        return {**rows, "partition_states": [hour for hour in noted if assets == ASSETS or hour[0] in assets]}


@contextmanager
def batching_instance(folder: Path, **kinds: bool) -> Iterator[dg.DagsterInstance]:
    """A persistent instance with the project's event storage, in a folder that must exist.

    Args:
        folder: where it keeps its files.
        kinds: further arguments of `dagster.instance_for_test`.
    """
    storage = {**EVENT_STORAGE, "config": {"base_dir": str(folder / "history" / "runs")}}
    with dg.instance_for_test(overrides={"event_log_storage": storage}, temp_dir=str(folder), **kinds) as instance:
        yield instance


def requested_hours(tags: Mapping[str, str]) -> HourRange:
    """The hours that a run with these tags is about."""
    one, first, last = (tags.get(name) for name in ONE_RUN_TAGS)
    bounds = [datetime.strptime(key, "%Y-%m-%d-%H:%M").replace(tzinfo=UTC) for key in (first or one, last or one)]
    return HourRange(bounds[0], bounds[1] + HOUR)
