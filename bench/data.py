"""Making the data: logs of a made-up fleet, and a warehouse that already holds the 23 hours before the headline hour.

Everything follows from hashes, so it is the same every time. A data set is reused when its mark is there and names the
same program text. The history is not read from 14 GB of logs but written with SQL and the product's own expressions:
the 50 million executions, their components, and the accounts of files and hours, as runs of the product would have left
them. What nothing reads any more is left out: scores and check results of those hours. Making it is never timed.
"""

import json
import shutil
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path

import duckdb

from bench import fleet
from bench.fleet import (
    BACKFILL,
    DATA,
    HEADLINE_HOUR,
    HEADLINE_PER_HOUR,
    HISTORY,
    LINE_COLUMNS,
    MODEL_CALL_EVERY,
    SESSIONS,
    SIGNALS,
    TARGETS,
)
from bench.otlp import write_traces
from health_assets.core.hours import HOUR, HourRange
from health_assets.core.settings import Settings
from health_assets.core.targets import AgentTargets, Targets
from health_assets.pipeline.derived import Inputs
from health_assets.schema.catalog import ALL_TABLES, TABLE_OF_RECORD
from health_assets.scoring.health_components import COMPONENTS
from health_assets.systems.declared_assets import DERIVED
from health_assets.warehouse.engines.duckdb.tables import create_statement
from health_assets.warehouse.partition_states import PartitionStates
from health_assets.warehouse.session import Session
from health_assets.warehouse.store import Warehouse


def headline(agents: int) -> Path:
    """Folder with `raw/` (the headline hour), `targets.yaml` and the warehouse of the 23 hours before it."""
    return _made(f"headline-{agents}", lambda folder: _make_headline(folder, agents))


def backfill(agents: int, hours: int) -> Path:
    """Folder with `raw/`, one file for each of the first hours with one execution per agent, and `targets.yaml`."""
    span = HourRange(BACKFILL.start, BACKFILL.start + hours * HOUR)
    return _made(f"backfill-{agents}x{hours}", lambda folder: _make_backfill(folder, agents, span))


def evaluation(agents: int, tasks: int, runs: int, actions: int) -> Path:
    """Folder with a warehouse that holds one hour of evaluation runs: of each agent, so many runs of each task."""
    name = f"evaluation-{agents}x{tasks}x{runs}x{actions}"
    return _made(name, lambda folder: _make_evaluation(folder, agents, tasks, runs, actions))


def spread(agents: int, parts: int, loudest_percent: int = 0) -> Path:
    """Folder with `raw/`, the executions of the headline hour in so many files, a share of them of one agent alone."""
    name = f"spread-{agents}x{parts}-{loudest_percent}"
    return _made(name, lambda folder: _make_spread(folder, agents, parts, loudest_percent))


def traces(count: int) -> Path:
    """Folder with `raw/`, one file of OTLP-JSON with so many traces of the headline hour."""
    return _made(f"traces-{count}", lambda folder: _make_traces(folder, count))


def _make_traces(folder: Path, count: int) -> None:
    (folder / "raw").mkdir(parents=True, exist_ok=True)
    write_traces(folder / "raw" / "traces.jsonl", count)


def _made(name: str, make: Callable[[Path], None]) -> Path:
    folder = DATA / name
    mark = folder / "complete.json"
    version = _version()
    if mark.exists() and json.loads(mark.read_text()) == version:
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "raw").mkdir(parents=True)
    (folder / "targets.yaml").write_text(json.dumps({"defaults": TARGETS}))  # JSON is YAML
    make(folder)
    mark.write_text(json.dumps(version))
    return folder


def _version() -> str:
    """Changes with the program that makes the data and with the warehouse's tables."""
    texts = [Path(__file__).read_text(), Path(fleet.__file__).read_text(), *map(create_statement, ALL_TABLES)]
    return sha256("".join(texts).encode()).hexdigest()


def executions(hours: HourRange, agents: int, per_hour: int) -> str:
    """SQL for the executions of a fleet: every agent `per_hour` times an hour, each within an even share of it."""
    share_ms = 3_600_000 // per_hour
    return f"""
    WITH places AS (
        SELECT hour, agent, hash(epoch(hour), agent, place) AS dice,
            hour + to_milliseconds(({share_ms} * place + (dice >> 40) % {share_ms})::BIGINT) AS ended_at,
            2000 + agent % 25 * 1000 + (dice >> 16) % 9000 + if(dice % 250 = 0, 180_000, 0) AS runtime_ms
        FROM range(TIMESTAMPTZ '{hours.start}', TIMESTAMPTZ '{hours.end}', INTERVAL 1 HOUR) AS hours(hour),
            range({agents}) AS agents(agent), range({per_hour}) AS places(place)
    )
    SELECT hour, 'execution' AS type, lower(lpad(to_hex(dice), 16, '0')) AS execution_id,
        printf('agent-%06d', agent) AS agent_id, ended_at - to_milliseconds(runtime_ms::BIGINT) AS started_at, ended_at,
        CASE WHEN (dice >> 8) % 100 < agent % 12 THEN 'failure' ELSE 'success' END AS status,
        printf('s-%05d-%03d', agent % {SESSIONS}, (epoch(hour)::BIGINT // 3600 + agent % 2) // 2 % 1000) AS session_id,
        ['opus', 'sonnet', 'haiku'][1 + agent % 3] AS model,
        ['k8s', 'aws'][1 + agent % 2] AS platform, 't' || lower(to_hex(hash(dice) >> 36)) AS trigger_id,
        round((dice >> 20) % 1000 / 1e3, 3) AS cost_usd, 1 + (dice >> 24) % 20 AS api_calls, dice
    FROM places
    """


def signals_sql() -> dict[str, str]:
    """SQL for the four signals, by name."""
    return {signal: f"round((dice >> {8 + 4 * place}) % 1000 / 999, 3)" for place, signal in enumerate(SIGNALS)}


def model_calls(rows: str) -> str:
    """SQL for the model calls of these executions: one in so many makes one of its own."""
    return f"""
    SELECT 'model_call' AS type, 'c' || execution_id AS call_id, model, ended_at, status, agent_id, execution_id,
        50.0 + (dice >> 12) % 5000 AS latency_ms
    FROM ({rows}) WHERE dice % {MODEL_CALL_EVERY} = 0
    """


def write_lines(connection: duckdb.DuckDBPyConnection, path: Path, rows: str, names: Iterable[str]) -> None:
    """Write columns of rows as lines of JSON, by the time at which they ended."""
    connection.execute(f"COPY (SELECT {_texts(names)} FROM ({rows}) ORDER BY ended_at) TO '{path}' (FORMAT JSON)")


def _texts(names: Iterable[str]) -> str:
    """SQL for columns as logs write them."""
    texts = (f"strftime({name}, '%Y-%m-%dT%H:%M:%S.%gZ') AS {name}" if name.endswith("_at") else name for name in names)
    return ", ".join(texts)


def _make_backfill(folder: Path, agents: int, hours: HourRange) -> None:
    with _connect() as connection:
        for hour in hours:
            rows = executions(HourRange.of(hour), agents, 1)
            write_lines(connection, folder / "raw" / f"{hour:%Y-%m-%dT%H}.jsonl", rows, LINE_COLUMNS)


def _make_spread(folder: Path, agents: int, parts: int, loudest_percent: int) -> None:
    rows = executions(HourRange.of(HEADLINE_HOUR), agents, HEADLINE_PER_HOUR)
    own = f"if((dice >> 12) % 100 < {loudest_percent}, 'agent-loudest', agent_id) AS agent_id"
    part = f"CAST(substr(agent_id, 7) AS INTEGER) % {parts} AS part"
    with _connect() as connection:
        connection.execute(
            f"""
            COPY (SELECT {_texts(LINE_COLUMNS)}, part FROM (SELECT * REPLACE ({own}), {part} FROM ({rows})))
            TO '{folder / "raw"}' (FORMAT JSON, PARTITION_BY (part), FILE_EXTENSION 'jsonl', OVERWRITE_OR_IGNORE)
            """
        )


def _make_headline(folder: Path, agents: int) -> None:
    with _connect() as connection:
        rows = executions(HourRange.of(HEADLINE_HOUR), agents, HEADLINE_PER_HOUR)
        packed = ", ".join(f"{signal} := {value}" for signal, value in signals_sql().items())
        with_signals = f"SELECT *, struct_pack({packed}) AS signals FROM ({rows})"
        name = f"{HEADLINE_HOUR:%Y-%m-%dT%H}"
        write_lines(connection, folder / "raw" / f"{name}.jsonl", with_signals, [*LINE_COLUMNS, "signals"])
        called = ("type", "call_id", "model", "ended_at", "status", "agent_id", "execution_id", "latency_ms")
        write_lines(connection, folder / "raw" / f"{name}-models.jsonl", model_calls(rows), called)
    warehouse = folder / "history.duckdb"
    for hour in HISTORY:  # an hour a transaction, to keep memory small
        with Warehouse(str(warehouse)).write() as session:
            _write_history(session, HourRange.of(hour), agents)
    for factor in (1, 4):
        with Warehouse(str(folder / f"window-{factor}x.duckdb")).write() as session:
            _write_components(session, warehouse, factor)


def _write_history(session: Session, hour: HourRange, agents: int) -> None:
    """The tables of one hour, as the product leaves them."""
    rows = executions(hour, agents, HEADLINE_PER_HOUR)
    signals = ", ".join(f"{value} AS signal_{signal}" for signal, value in signals_sql().items())
    session.query(
        f"""
        INSERT INTO executions BY NAME
        SELECT * EXCLUDE (type, dice), '{hour.start:%Y-%m-%dT%H}.jsonl' AS source_file,
            row_number() OVER () AS line_number, 'baseline' AS condition, status = 'success' AS succeeded,
            'stated' AS outcome_source,
            (epoch_us(ended_at) - epoch_us(started_at)) / 1e6 AS runtime_s,
            runtime_s > {TARGETS["sla_s"]} AS sla_breached, {signals}
        FROM ({rows})
        """
    )
    session.query(
        f"""
        INSERT INTO model_calls BY NAME
        SELECT * EXCLUDE (type), ?::TIMESTAMPTZ AS hour, '{hour.start:%Y-%m-%dT%H}-models.jsonl' AS source_file,
            row_number() OVER () AS line_number
        FROM ({model_calls(rows)})
        """,
        [hour.start],
    )
    session.query(
        """
        INSERT INTO raw_logs (hour, source_file, record_type, lines, digest, is_loaded)
        SELECT hour, source_file, 'execution', count(*), '0', true FROM executions WHERE hour = $hour GROUP BY ALL
        UNION ALL
        SELECT hour, source_file, 'model_call', count(*), '0', true FROM model_calls WHERE hour = $hour GROUP BY ALL
        """,
        {"hour": hour.start},
    )
    session.query(
        """
        INSERT INTO raw_files (source_file, size_bytes, modified_ns, lines, rejected)
        SELECT source_file, lines * 294, 0, lines, 0 FROM raw_logs WHERE hour = ?
        """,
        [hour.start],
    )
    for table in ("raw_logs", *TABLE_OF_RECORD.values()):
        PartitionStates(session).note(table, hour, hour)
    targets = Targets(defaults=AgentTargets.model_validate(TARGETS))
    for derived in DERIVED.values():
        if derived.is_component:
            rows = derived.rows(Inputs(session=session, hours=hour, targets=targets, settings=Settings()))
            PartitionStates(session).replace_rows(derived.name, hour, rows, formula_version=derived.formula_version)


def _make_evaluation(folder: Path, agents: int, tasks: int, runs: int, actions: int) -> None:
    """Every run follows the plan of its task, of 12 tools, but for one step in five; one task in eight is perturbed."""
    with Warehouse(str(folder / "evaluation.duckdb")).write() as session:
        session.query(
            """
            INSERT INTO executions BY NAME
            WITH dice AS (
                SELECT agent, task, run, hash(agent, task, run) AS dice
                FROM range($agents) AS agents(agent), range($tasks) AS tasks(task), range($runs) AS runs(run)
            )
            SELECT $hour AS hour, 'evaluation.jsonl' AS source_file, row_number() OVER () AS line_number,
                printf('e-%d-%d-%d', agent, task, run) AS execution_id, printf('agent-%04d', agent) AS agent_id,
                printf('task-%04d', task) AS task_id, 'stated' AS task_source, 'stated' AS cost_source,
                $hour AS started_at, $hour AS ended_at,
                dice % 10 < 8 AS succeeded, if(succeeded, 'success', 'failure') AS status,
                'stated' AS outcome_source,
                if(task % 8 < 7, 'baseline', ['fault', 'structural', 'prompt'][1 + run % 3]) AS condition,
                20 + (dice >> 4) % 1000 / 100 AS runtime_s, false AS sla_breached,
                round((dice >> 8) % 1000 / 1000, 2) AS confidence, (dice >> 12) % 1000 / 1e4 AS cost_usd,
                1 + (dice >> 16) % 20 AS api_calls, (dice >> 20) % 3 AS error_count,
                (dice >> 24) % 1000 / 1e3 AS call_latency_s,
                list_transform(range($actions), lambda step: printf('tool-%02d', if(hash(dice, step) % 5 = 0,
                    hash(dice, step) >> 8, hash(task, step)) % 12)) AS actions,
                len(actions) AS action_count,
                if(dice % 7 = 0, '[{"constraint": "no_pii_exposure", "severity": "medium"}]', '[]')::JSON AS violations
            FROM dice
            """,
            {"agents": agents, "tasks": tasks, "runs": runs, "actions": actions, "hour": HEADLINE_HOUR},
        )
        PartitionStates(session).note("executions", HourRange.of(HEADLINE_HOUR), {HEADLINE_HOUR})


def _write_components(session: Session, history: Path, factor: int) -> None:
    """Components alone, of the history and (like the hour before) of the headline hour, every sum times `factor`."""
    sums = ", ".join(f"{name} * {factor} AS {name}" for name in (*COMPONENTS, "runtime_s_sum"))
    session.query(f"ATTACH '{history}' AS history (READ_ONLY)")
    session.query(
        f"""
        INSERT INTO health_components BY NAME
        SELECT hour, agent_id, {sums} FROM history.health_components
        UNION ALL BY NAME
        SELECT hour + INTERVAL 1 HOUR AS hour, agent_id, {sums} FROM history.health_components WHERE hour = ?
        """,
        [HEADLINE_HOUR - HOUR],
    )


def _connect() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'; SET enable_progress_bar = false")
    return connection
