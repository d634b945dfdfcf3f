"""The data of `bench.pages`: one real hour of a large fleet, and a history in which weeks of hours are told like it.

The logs of the hour that ended last are made and materialized with everything; the product copies it into its history.
Then the hour is told again for every hour before it, as the product would have left it: a file a day and series, one an
hour for today, a face an hour, and in the warehouse the accounts of hours and checks, so that the server takes all of
it for its own.

What is told again has the size and variety of real hours. No file is a link to another one. Numbers of an hour are
those of other agents, another choice for each hour of the day, so that curves move and nothing packs better than real
rows do. Sessions have other names every two hours. Days are like each other, and the newest hour is like no other one.
Not told again are the tables of the warehouse behind the copies, which no page reads but that of one session, and the
list of logs.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from bench.data import executions, model_calls, signals_sql, write_lines
from bench.fleet import LINE_COLUMNS, ROOT, TARGETS
from bench.pages_templates import Template
from health_assets.apps.serving.history.datasets import COPY
from health_assets.apps.serving.history.exporter import fill
from health_assets.apps.serving.history.layout import (
    ROWS_PER_BATCH,
    Account,
    Part,
    read_account,
    read_rows,
    write_account,
)
from health_assets.core.hours import HOUR, HourRange, floor_hour
from health_assets.core.settings import Settings
from health_assets.warehouse.session import HOUR_TYPE
from health_assets.warehouse.store import Warehouse

ROWS_OF_A_FACE = 1 << 16
TOOLS = 12
PERSONAL_EVERY = 5_000
TEAMS = ("payments", "search", "support")
AGENTS_OF_A_TEAM = 200
MORE_COLUMNS = ("signals", "error", "agent_version", "input_tokens", "output_tokens")
ERRORS = ("timeout after 30 s", "tool refused", "rate limit", "out of context")
BAD_LINES = ('{"type": "execution", "execution_id": 7}', "no line of a log", '{"type": "surprise"}') * 20


@dataclass(frozen=True)
class Data:
    """Data that is there to serve.

    Args:
        folder: holds all of it.
        newest: the newest hour, which is the real one.
        days: how many days the history goes back.
    """

    folder: Path
    newest: datetime
    days: int

    @property
    def warehouse(self) -> Path:
        """The warehouse."""
        return self.folder / "health.duckdb"

    @property
    def history(self) -> Path:
        """The folder of the history."""
        return self.folder / "history"

    @property
    def environment(self) -> dict[str, str]:
        """Settings of every process that works on it."""
        return {
            "HEALTH_RAW": str(self.folder / "raw"), "HEALTH_TARGETS": str(self.folder / "targets.yaml"),
            "HEALTH_WAREHOUSE": str(self.warehouse), "HEALTH_HISTORY": str(self.history),
            "HEALTH_HISTORY_DAYS": "400",
        }  # fmt: skip

    @property
    def settings(self) -> Settings:
        """The same for this process."""
        return Settings(warehouse=str(self.warehouse), targets=self.folder / "targets.yaml", history_days=400)

    def materialize(self) -> subprocess.Popen[bytes]:
        """Begin to materialize the newest hour, in a process of its own."""
        hours = ["--from", f"{self.newest:%Y-%m-%dT%H}", "--to", f"{self.newest + HOUR:%Y-%m-%dT%H}"]
        command = [sys.executable, "-m", "health_assets", "materialize", *hours]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), **self.environment}
        return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)


def made(folder: Path, agents: int, days: int) -> Data:
    """The data in a folder: what is there, or made now where that is of another size or of another program."""
    mark = folder / "complete.json"
    size = {"agents": agents, "days": days, "copy": COPY}
    if mark.exists() and (told := json.loads(mark.read_text()))["size"] == size:
        return Data(folder, datetime.fromisoformat(told["newest"]), days)
    for name in ("raw", "history"):
        shutil.rmtree(folder / name, ignore_errors=True)
    for path in folder.glob("health.duckdb*"):
        path.unlink()
    data = Data(folder, floor_hour(datetime.now(UTC)) - HOUR, days)
    _write_logs(data, agents)
    if data.materialize().wait():
        raise RuntimeError("the hour could not be materialized")
    _fill(data)
    start = time.perf_counter()
    _tell_accounts(data)
    _tell_again(data)
    _fill(data)
    size_gib = sum(path.stat().st_size for path in data.history.rglob("*.arrow")) / 2**30
    per_hour_kib = size_gib * 2**20 / agents / days / 24
    print(
        f"{days} days of history in {size_gib:.1f} GiB ({per_hour_kib:.2f} KiB an agent's hour), "
        f"told in {time.perf_counter() - start:.0f} s",
        flush=True,
    )
    mark.write_text(json.dumps({"size": size, "newest": data.newest.isoformat()}))
    return data


# -- the real hour ---------------------------------------------------------------------------------------------------


def _write_logs(data: Data, agents: int) -> None:
    """Logs of an hour in which every agent executes once, and the targets: some agents are personal, some of teams."""
    raw = data.folder / "raw"
    raw.mkdir(parents=True)
    names = [f"agent-{number:06d}" for number in range(agents)]
    owned = {name: {"personal": True} for name in names[7::PERSONAL_EVERY]}
    for place, team in enumerate(TEAMS):
        owned |= {name: {"team": team} for name in names[10 + place :: max(1, agents // AGENTS_OF_A_TEAM)]}
    (data.folder / "targets.yaml").write_text(json.dumps({"defaults": TARGETS, "agents": owned}))  # JSON is YAML
    rows = executions(HourRange.of(data.newest), agents, 1)
    packed = ", ".join(f"{signal} := {value}" for signal, value in signals_sql().items())
    told = f"""
    SELECT *, struct_pack({packed}) AS signals, printf('1.%d', (dice >> 12) % 3) AS agent_version,
        500 + (dice >> 14) % 4000 AS input_tokens, 50 + (dice >> 18) % 900 AS output_tokens,
        if(status = 'failure', {list(ERRORS)}[1 + (dice % {len(ERRORS)})::BIGINT], NULL) AS error
    FROM ({rows})
    """
    tools = f"""
    SELECT 'tool_call' AS type, printf('t-%s-%d', execution_id, place) AS call_id,
        printf('tool-%02d', (dice >> (4 * place)) % {TOOLS}) AS tool, ended_at, agent_id, execution_id,
        if((dice >> (8 + place)) % 20 = 0, 'failure', 'success') AS status, 5.0 + (dice >> place) % 2000 AS latency_ms
    FROM ({rows}), range(2) AS places(place)
    """
    of_calls = ("type", "call_id", "ended_at", "status", "agent_id", "execution_id", "latency_ms")
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'; SET enable_progress_bar = false")
        name = raw / f"{data.newest:%Y-%m-%dT%H}"
        write_lines(connection, Path(f"{name}.jsonl"), told, [*LINE_COLUMNS, *MORE_COLUMNS])
        write_lines(connection, Path(f"{name}-models.jsonl"), model_calls(rows), (*of_calls, "model"))
        write_lines(connection, Path(f"{name}-tools.jsonl"), tools, (*of_calls, "tool"))
    with Path(f"{name}.jsonl").open("a") as file:
        file.write("\n".join(BAD_LINES) + "\n")


def _fill(data: Data) -> None:
    """Let the product copy what it finds, until it has all."""
    while fill(data.settings, data.history, Warehouse(str(data.warehouse)), data.newest + HOUR)["missing"]:
        pass


# -- the hours before it ---------------------------------------------------------------------------------------------


def _tell_accounts(data: Data) -> None:
    """Tell the warehouse's accounts of hours and checks again, by which server and pages know what there is."""
    with Warehouse(str(data.warehouse)).write() as session:
        for table in ("partition_states", "expectation_results"):
            session.query(
                f"""
                INSERT INTO {table} BY NAME
                SELECT * EXCLUDE (back) REPLACE (hour - to_hours(back::BIGINT) AS hour)
                FROM {table}, range(1, $hours) AS told(back) WHERE hour = $newest
                """,
                {"newest": data.newest, "hours": 24 * data.days},
            )


def _tell_again(data: Data) -> None:
    """Write the files of every hour before the newest, and the account that names them."""
    account = read_account(data.history)
    assert account is not None
    before = sorted(data.newest - back * HOUR for back in range(1, 24 * data.days))
    names = [name for name, kept in account.series.items() if data.newest.isoformat() in kept.stamps()]
    for name in names:
        start = time.perf_counter()
        telling = Telling.of(data, account, name)
        with tempfile.TemporaryDirectory(dir=data.folder) as templates:
            for part, faces in telling.all_of(before, Path(templates)):
                account.series[name].add(part)
                account.series[name].faces |= faces
        print(f"  {name} told in {time.perf_counter() - start:.0f} s", flush=True)
    write_account(data.history, account)


def _by_day(hours: Sequence[datetime]) -> dict[datetime, list[datetime]]:
    by_day: dict[datetime, list[datetime]] = {}
    for hour in hours:
        by_day.setdefault(hour.replace(hour=0), []).append(hour)
    return by_day


@dataclass(frozen=True, kw_only=True)
class Telling:
    """A series that is told again.

    Args:
        data: the data.
        name: of the series.
        key: its key.
        version: of the files to write.
        stamp: what the real hour was made from, which is said of the others, too.
        rows: those of the real hour.
        shown: those of its face; None where it has none.
    """

    data: Data
    name: str
    key: str | None
    version: int
    stamp: str
    rows: pa.Table
    shown: pa.Table | None

    @classmethod
    def of(cls, data: Data, account: Account, name: str) -> "Telling":
        """The telling of a series by the account that the product has left."""
        kept, hour = account.series[name], data.newest.isoformat()
        [part] = [part for part in kept.parts() if hour in part.stamps]
        rows = read_rows(data.history / part.path)
        own = rows.filter(pc.equal(rows.column("hour"), pa.scalar(data.newest, HOUR_TYPE))).combine_chunks()
        shown = read_rows(data.history / kept.faces[hour]).combine_chunks() if hour in kept.faces else None
        return cls(
            data=data, name=name, key=kept.key, version=account.version + 1, stamp=part.stamps[hour], rows=own,
            shown=shown,
        )  # fmt: skip

    def all_of(self, hours: Sequence[datetime], templates: Path) -> Iterator[tuple[Part, dict[str, str]]]:
        """The files of these hours, each written, with the faces of its hours."""
        days = _by_day(hours)
        day = Template.of_rows(templates / "day", self.rows, self.key, range(24), days, ROWS_PER_BATCH)
        single = {
            at: Template.of_rows(templates / f"{at}", self.rows, self.key, [at], days, ROWS_PER_BATCH)
            for at in range(self.data.newest.hour)
        }
        faces = {
            at: Template.of_rows(templates / f"{at}.face", self.shown, None, [at], days, ROWS_OF_A_FACE)
            for at in range(24 if self.shown is not None else 0)
        }
        for start, own in days.items():
            if start < self.data.newest.replace(hour=0):
                yield self._part(day, start, f"{start:%Y-%m-%d}", own), self._faces(faces, own)
                continue
            for hour in own:
                name = f"{hour:%Y-%m-%dT%H}"
                yield self._part(single[hour.hour], start, name, [hour]), self._faces(faces, [hour])

    def _part(self, template: Template, day: datetime, name: str, hours: Sequence[datetime]) -> Part:
        path = f"{self.name}/{name}.{self.version}.arrow"
        template.write(self.data.history / path, day)
        return Part(path, {hour.isoformat(): self.stamp for hour in hours})

    def _faces(self, templates: Mapping[int, Template], hours: Sequence[datetime]) -> dict[str, str]:
        paths = {}
        for hour in hours:
            if hour.hour in templates:
                paths[hour.isoformat()] = f"{self.name}/{hour:%Y-%m-%dT%H}.face.{self.version}.arrow"
                templates[hour.hour].write(self.data.history / paths[hour.isoformat()], hour.replace(hour=0))
        return paths


def main() -> None:
    """Make the data alone: `python -m bench.pages_data FOLDER`."""
    parser = argparse.ArgumentParser(prog="python -m bench.pages_data", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--agents", type=int, required=True)
    parser.add_argument("--days", type=int, default=30)
    flags = parser.parse_args()
    made(flags.folder, flags.agents, flags.days)


if __name__ == "__main__":
    main()
