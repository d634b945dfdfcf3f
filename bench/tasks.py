"""What is timed, a fresh process each: `python -m bench.tasks NAME JSON` prints what it cost as one line of JSON.

A task is a function that imports what it needs and returns the work. So interpreter start and imports are reported
apart from the work, and the peak of memory is that of one piece of work.
"""

import json
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

Work = Callable[[], dict[str, Any]]


def make_data(kind: str, **arguments: int) -> Work:
    """Make a data set unless it is there; tells the folder."""
    from bench import data

    return lambda: {"folder": str(getattr(data, kind)(**arguments))}


def read_json(raw: str, select: str, of: str = "headline") -> Work:
    """DuckDB reads the lines with typed columns: into a table in memory, or only into counts of every column."""
    import duckdb

    from bench import coding_sessions, fleet

    columns, options = {
        "headline": (fleet.HEADLINE_COLUMNS, ""),
        "sessions": (coding_sessions.COLUMNS, ", ignore_errors = true"),
    }[of]
    counts = ", ".join(f'count("{name}")' for name in columns)
    sql = {"table": "CREATE TABLE lines AS FROM {}", "aggregate": f"SELECT {counts} FROM {{}}"}[select]
    source = f"read_json('{raw}/*.jsonl', format = 'newline_delimited', columns = {columns}{options})"

    def work() -> dict[str, Any]:
        connection = duckdb.connect()
        connection.execute("SET TimeZone = 'UTC'; SET enable_progress_bar = false")
        connection.execute(sql.format(source)).fetchall()
        return {}

    return work


def read_sessions(raw: str) -> Work:
    """The rows of all records of the files of a folder; tells how many."""
    from pathlib import Path

    from health_assets.core.targets import Targets
    from health_assets.logs.files import list_files
    from health_assets.logs.reader import log_parser

    def work() -> dict[str, Any]:
        with log_parser(list_files(Path(raw))) as parser:
            return {"rows": sum(batch.num_rows for batch in parser.records(Targets()))}

    return work


def product(
    raw: str,
    targets: str,
    warehouse: str,
    start: str,
    end: str,
    systems: list[str],
    cores: int | None = None,
    lake: str | None = None,
    ledger: str | None = None,
) -> Work:
    """One Dagster run with the assets and checks of these systems, or of all.

    It tells of every step the seconds, the processor seconds of this process, and the moments of its begin and its end
    in Unix time.
    """
    _stay_on(cores)
    import great_expectations  # noqa: F401  # a run imports it before its first step; here it counts as an import

    from health_assets.cli.running import run_hours
    from health_assets.core.hours import HourRange, parse_hour
    from health_assets.core.settings import Settings
    from health_assets.pipeline.events import Event, StepFinished, StepStarted

    settings = Settings(raw=raw, targets=targets, warehouse=warehouse, lake=lake, ledger=ledger)
    hours = HourRange(parse_hour(start), parse_hour(end))
    begun: dict[str, tuple[float, float, float]] = {}
    steps: dict[str, float] = {}
    steps_cpu_s: dict[str, float] = {}
    steps_at: dict[str, tuple[float, float]] = {}

    def on_event(event: Event) -> None:
        now_s, cpu_s, at = time.perf_counter(), time.process_time(), time.time()
        if isinstance(event, StepStarted):
            begun[event.step] = now_s, cpu_s, at
        elif isinstance(event, StepFinished):
            began_s, cpu_before_s, began_at = begun[event.step]
            steps[event.step], steps_cpu_s[event.step] = now_s - began_s, cpu_s - cpu_before_s
            steps_at[event.step] = began_at, at

    def work() -> dict[str, Any]:
        outcome = run_hours(settings, hours, on_event, systems)
        if outcome.error or outcome.failed_checks or outcome.lines_rejected:
            raise RuntimeError(f"the run is not what the benchmark is about: {outcome}")
        return {"steps": steps, "steps_cpu_s": steps_cpu_s, "steps_at": steps_at, "lines": outcome.lines_read}

    return work


def ingested(raw: str, warehouse: str, hour: str, cores: int) -> Work:
    """From files to the committed tables of records, on so many cores; tells how many lines were read."""
    _stay_on(cores)
    return _ingested(raw, warehouse, hour)


def ingested_on_spark(raw: str, url: str, lake: str, ledger: str, hour: str) -> Work:
    """From files to the committed tables of records of a lake, read by executors; tells how many lines were read."""
    return _ingested(raw, url, hour, lake=lake, ledger=ledger)


def _stay_on(cores: int | None) -> None:
    """Use no more cores than these; to be called before DuckDB looks how many there are."""
    import os

    if cores is not None:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])


def _ingested(raw: str, warehouse: str, hour: str, **places: str) -> Work:
    from pathlib import Path

    from health_assets.core.hours import HourRange, parse_hour
    from health_assets.core.settings import Settings
    from health_assets.core.targets import Targets
    from health_assets.logs.files import list_files
    from health_assets.pipeline.ingestion import ingest
    from health_assets.warehouse.store import Warehouse

    settings, hours = Settings(), HourRange.of(parse_hour(hour))

    def work() -> dict[str, Any]:
        with Warehouse(warehouse, memory_limit=settings.memory_limit, **places).write() as session:
            report = ingest(session, list_files(Path(raw)), hours, Targets(), settings.lookback_hours)
        if report.rejected:
            raise RuntimeError(f"{report.rejected} lines were rejected")
        return {"lines": report.lines_read}

    return work


def otlp_ingest(raw: str, warehouse: str, hour: str) -> Work:
    """From a file of spans to committed tables; tells what the tables hold."""
    from health_assets.warehouse.store import Warehouse

    ingest = _ingested(raw, warehouse, hour)

    def work() -> dict[str, Any]:
        ingest()
        with Warehouse(warehouse).read() as session:
            [(executions, failures, actions, runtime_us)] = session.query(
                "SELECT count(*), sum(CASE WHEN succeeded THEN 0 ELSE 1 END), sum(action_count), "
                "sum(CAST(round(runtime_s * 1e6) AS BIGINT)) FROM executions"
            )
            [(calls,)] = session.query("SELECT count(*) FROM model_calls")
        found = {"executions": executions, "failures": failures, "calls": calls, "actions": actions}
        return {name: int(value) for name, value in {**found, "runtime_us": runtime_us}.items()}

    return work


def otlp_loop(raw: str) -> Work:
    """The same file in a plain Python loop; tells what it found."""
    from pathlib import Path

    from bench.otlp import loop

    return lambda: loop(Path(raw, "traces.jsonl"))


def window_stage(warehouse: str, hour: str) -> Work:
    """Merge the windows that end with an hour, score them, and replace the hour, as the asset does."""
    from bench.fleet import TARGETS
    from health_assets.core.hours import HourRange, parse_hour
    from health_assets.core.settings import Settings
    from health_assets.core.targets import AgentTargets, Targets
    from health_assets.pipeline.derived import Inputs
    from health_assets.systems.declared_assets import DERIVED
    from health_assets.warehouse.partition_states import PartitionStates
    from health_assets.warehouse.store import Warehouse

    settings = Settings()
    hours = HourRange.of(parse_hour(hour))
    targets = Targets(defaults=AgentTargets.model_validate(TARGETS))

    def work() -> dict[str, Any]:
        with Warehouse(warehouse, memory_limit=settings.memory_limit).write() as session:
            asset = DERIVED["agent_health"]
            rows = asset.rows(Inputs(session=session, hours=hours, targets=targets, settings=settings))
            return {
                "rows": PartitionStates(session).replace_rows(
                    asset.name, hours, rows, formula_version=asset.formula_version
                )
            }

    return work


def reliability(warehouse: str, hour: str) -> Work:
    """Evaluate the runs of the window that ends with an hour and replace the hour, as the two assets do."""
    from health_assets.core.hours import HourRange, parse_hour
    from health_assets.core.settings import Settings
    from health_assets.core.targets import Targets
    from health_assets.pipeline.derived import Inputs
    from health_assets.systems.reliability.assets import ASSETS
    from health_assets.warehouse.partition_states import PartitionStates
    from health_assets.warehouse.store import Warehouse

    hours, settings = HourRange.of(parse_hour(hour)), Settings()

    def work() -> dict[str, Any]:
        with Warehouse(warehouse, memory_limit=settings.memory_limit).write() as session:
            for asset in ASSETS:
                rows = asset.rows(Inputs(session=session, hours=hours, targets=Targets(), settings=settings))
                PartitionStates(session).replace_rows(asset.name, hours, rows, formula_version=asset.formula_version)
            return {"rows": session.count_hours("task_consistency", hours)}

    return work


def reliability_loops(warehouse: str, hour: str) -> Work:
    """The same as plain Python loops over runs in memory; tells how far the product's scores are from these."""
    import duckdb

    from bench.reliability_loops import RESOURCES, evaluate

    connection = duckdb.connect(warehouse, read_only=True)
    names = ("agent_id", "task_id", "condition", "succeeded", "confidence", "actions", "violations", *RESOURCES)
    found = connection.execute(f"SELECT {', '.join(names)} FROM executions WHERE task_id IS NOT NULL").fetchall()
    runs = [dict(zip(names, values, strict=True)) for values in found]
    for run in runs:
        run["violations"] = None if run["violations"] is None else json.loads(run["violations"])

    def work() -> dict[str, Any]:
        agents = evaluate(runs)
        largest, differing = 0.0, 0
        for agent_id, scores in agents.items():
            columns = ", ".join(scores)
            sql = f"SELECT {columns} FROM agent_reliability WHERE hour = ? AND agent_id = ?"
            [own] = connection.execute(sql, [f"{hour}:00:00Z", agent_id]).fetchall()
            for value, expected in zip(own, scores.values(), strict=True):
                differing += (value is None) != (expected is None)
                largest = max(largest, abs((value or 0) - (expected or 0)))
        return {"agents": len(agents), "differing": differing, "largest": largest}

    return work


def pandas_backfill(raw: str, warehouse: str, hours: int) -> Work:
    """The straightforward pandas script over the first so many files."""
    from bench.pandas_backfill import backfill

    return lambda: {"rows": backfill(raw, warehouse, hours)}


def bare_sql(raw: str, warehouse: str) -> Work:
    """The bare SQL statements."""
    from bench.bare_sql import backfill

    return lambda: {"rows": backfill(raw, warehouse)}


def postgres_history(warehouse: str, url: str) -> Work:
    """Make the tables of a PostgreSQL warehouse and fill them with those of a DuckDB file."""
    from health_assets.schema.catalog import ALL_TABLES
    from health_assets.warehouse.migrations import migrate
    from health_assets.warehouse.store import Warehouse

    def work() -> dict[str, Any]:
        migrate(url, 60)
        _copy_tables(Warehouse(warehouse), Warehouse(url))
        with Warehouse(url).write() as new:
            for table in ALL_TABLES:
                new.query(f"ANALYZE {table}")
        return {}

    return work


def spark_history(warehouse: str, url: str, lake: str, ledger: str) -> Work:
    """Fill a new lake and its ledger with the tables of a DuckDB file."""
    from health_assets.warehouse.store import Warehouse

    def work() -> dict[str, Any]:
        _copy_tables(Warehouse(warehouse), Warehouse(url, lake=lake, ledger=ledger))
        return {}

    return work


def _copy_tables(source: Any, target: Any) -> None:
    from health_assets.schema.catalog import ALL_TABLES

    with source.read() as old, target.write() as new:
        for table in ALL_TABLES.keys() - {"warehouse_version"}:
            if old.count(old.table(table)):
                new.insert_arrow(table, old.stream(old.table(table), 100_000))


def _executions_of(url: str, hour: str) -> Any:
    """The executions of an hour."""
    from health_assets.core.hours import HourRange, parse_hour
    from health_assets.warehouse.store import Warehouse

    with Warehouse(url).read() as session:
        return session.arrow(session.hours_of("executions", HourRange.of(parse_hour(hour))))


def postgres_copy(url: str, hour: str) -> Work:
    """A bare COPY of the executions of an hour: in PostgreSQL's binary form, into a table without index or lock."""
    import adbc_driver_postgresql.dbapi as adbc

    from health_assets.schema.catalog import describe
    from health_assets.warehouse.engines.postgres.sql import TYPES, column_definition, load_schema, to_load

    rows = to_load(_executions_of(url, hour), load_schema("executions")).read_all()
    columns = ", ".join(column_definition(name, TYPES[kind]) for name, kind, *_ in describe("executions"))
    connection = adbc.connect(url)
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS bare")
        cursor.execute(f"CREATE TABLE bare ({columns})")
    connection.commit()

    def work() -> dict[str, Any]:
        with connection.cursor() as cursor:
            cursor.adbc_ingest("bare", rows, mode="append")
        connection.commit()
        return {"rows": rows.num_rows}

    return work


def postgres_load(url: str, hour: str) -> Work:
    """The same rows as the product loads them: with its lock, conversions and index, in a transaction that commits."""
    from health_assets.core.hours import HourRange, parse_hour
    from health_assets.warehouse.store import Warehouse

    rows = _executions_of(url, hour)
    with Warehouse(url).write() as session:
        session.delete_hours("executions", HourRange.of(parse_hour(hour)))

    def work() -> dict[str, Any]:
        with Warehouse(url).write() as session:
            session.insert_arrow("executions", rows)
        return {"rows": rows.num_rows}

    return work


def agreement(warehouse: str, other: str) -> Work:
    """Compare the scores in two warehouses for the hours of `other`; tells rows and the largest difference."""
    import duckdb

    def work() -> dict[str, Any]:
        connection = duckdb.connect()
        connection.execute(f"ATTACH '{warehouse}' AS a (READ_ONLY); ATTACH '{other}' AS b (READ_ONLY)")
        [(rows, differing, largest)] = connection.execute(
            """
            SELECT count(*), count(*) FILTER (left_rows.state IS DISTINCT FROM right_rows.state
                    OR (left_rows.health_score IS NULL) <> (right_rows.health_score IS NULL)),
                max(abs(left_rows.health_score - right_rows.health_score))
            FROM (FROM a.agent_health SEMI JOIN b.agent_health USING (hour)) AS left_rows
            FULL JOIN b.agent_health AS right_rows
                ON right_rows.hour = left_rows.hour AND right_rows.agent_id = left_rows.agent_id
            """
        ).fetchall()
        return {"rows": rows, "differing": differing, "largest": largest}

    return work


def main() -> None:
    """Run the task named on the command line."""
    name, arguments, spawned_at = sys.argv[1:]
    work = globals()[name](**json.loads(arguments))
    start_s = time.time() - float(spawned_at)
    wall, cpu = time.perf_counter(), time.process_time()
    details = work()
    cost = {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu, "start_s": start_s}
    unit = 1 if sys.platform == "darwin" else 1024
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    print(json.dumps(cost | {"peak_bytes": peak_bytes, "details": details}))


if __name__ == "__main__":
    main()
