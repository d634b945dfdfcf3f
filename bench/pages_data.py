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
import mmap
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.data import _signals, _write_lines, executions, model_calls
from bench.fleet import LINE_COLUMNS, ROOT, TARGETS
from health_assets.apps.serving.history.filling import fill
from health_assets.apps.serving.history.layout import (
    AS_A_WHOLE,
    BY_KEY,
    ROWS_PER_BATCH,
    Account,
    Part,
    index_of,
    read_account,
    read_rows,
    write_account,
    write_rows,
)
from health_assets.apps.serving.history.series import COPY
from health_assets.core.hours import HOUR, HourRange, floor_hour
from health_assets.core.settings import Settings
from health_assets.warehouse.session import HOUR_TYPE
from health_assets.warehouse.store import Warehouse

ROWS_AT_ONCE = 100_000
ROWS_OF_A_FACE = 1 << 16
SHIFT = 7919
"""By so many rows further the numbers of the next hour are taken."""
TOOLS = 12
PERSONAL_EVERY = 5_000
TEAMS = ("payments", "search", "support")
AGENTS_OF_A_TEAM = 200
SESSION_PLACES = 8
"""Characters of a session's name before the number of its two hours: `s-00001-`."""
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
    packed = ", ".join(f"{signal} := {value}" for signal, value in _signals().items())
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
        _write_lines(connection, Path(f"{name}.jsonl"), told, [*LINE_COLUMNS, *MORE_COLUMNS])
        _write_lines(connection, Path(f"{name}-models.jsonl"), model_calls(rows), (*of_calls, "model"))
        _write_lines(connection, Path(f"{name}-tools.jsonl"), tools, (*of_calls, "tool"))
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
        for table in ("materialized_hours", "expectation_results"):
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

    def _part(self, template: "Template", day: datetime, name: str, hours: Sequence[datetime]) -> Part:
        path = f"{self.name}/{name}.{self.version}.arrow"
        template.write(self.data.history / path, day)
        return Part(path, {hour.isoformat(): self.stamp for hour in hours})

    def _faces(self, templates: Mapping[int, "Template"], hours: Sequence[datetime]) -> dict[str, str]:
        paths = {}
        for hour in hours:
            if hour.hour in templates:
                paths[hour.isoformat()] = f"{self.name}/{hour:%Y-%m-%dT%H}.face.{self.version}.arrow"
                templates[hour.hour].write(self.data.history / paths[hour.isoformat()], hour.replace(hour=0))
        return paths


# -- files that are written once and told for every day --------------------------------------------------------------

HOLDERS = np.random.default_rng(13).integers(1 << 60, 1 << 62, ROWS_PER_BATCH)
"""Numbers that stand for hours in a template; they cannot be packed, so that enough of them need more than hours do."""
ROOM = 16
"""So many more of these stand there than the hours of any day need."""
BUFFER = struct.Struct("<qq")
"""Place and length of a column's values in a batch, as its head tells them."""
LENGTH = struct.Struct("<q")
MESSAGE = b"\xff\xff\xff\xff"
"""Begin of the head of a batch; its length follows in 4 bytes."""


@dataclass(frozen=True)
class Place:
    """Where the packed hours of a batch stand in a file.

    Args:
        begin: the first byte.
        length_begin: the first byte of their length in the head of the batch.
        room: the bytes that there are for them.
        at: the hour of the day of each row.
    """

    begin: int
    length_begin: int
    room: int
    at: bytes


@dataclass(frozen=True)
class Template:
    """A file as the product writes it, but for the hours, and where these stand.

    Packing is what takes the time. So a day is packed once. For each day the file is copied, and the packed hours in
    it are replaced by others, which need less room.

    Args:
        path: the file.
        codec: by which it is packed.
        places: where the hours of each batch stand.
    """

    path: Path
    codec: pa.Codec
    places: list[Place]

    @classmethod
    def of_rows(
        cls,
        path: Path,
        rows: pa.Table,
        key: str | None,
        at: Sequence[int],
        days: Collection[datetime],
        rows_per_batch: int,
    ) -> "Template":
        """Write rows of the real hour for some hours of a day, by key and hour.

        Args:
            path: the file.
            rows: the rows.
            key: the key; None for a file that is read as a whole.
            at: the hours of the day.
            days: the days that it is for.
            rows_per_batch: how many rows a batch has at most.
        """
        told: list[tuple[bytes, bytes]] = []
        codec = pa.Codec(AS_A_WHOLE if key is None else BY_KEY)

        @cache
        def room(of_batch: bytes) -> int:
            return max(len(_packed(codec, _hours_of(day), of_batch)) for day in days)

        def batches() -> Iterator[pa.RecordBatch]:
            for own, hours in _told(rows, key, np.array(at)):
                for batch in own.to_batches(max_chunksize=rows_per_batch):
                    of_batch, hours = hours[: batch.num_rows].astype(np.int8).tobytes(), hours[batch.num_rows :]
                    holders = np.resize(HOLDERS[: room(of_batch) // 8 + ROOM], batch.num_rows)
                    told.append((codec.compress(holders.tobytes(), asbytes=True), of_batch))
                    place = batch.schema.get_field_index("hour")
                    column = pa.array(holders).cast(batch.schema.field(place).type)
                    yield batch.set_column(place, batch.schema.field(place), column)

        write_rows(path, pa.RecordBatchReader.from_batches(rows.schema, batches()), key)
        return cls(path, codec, list(_places(path, told)))

    def write(self, path: Path, day: datetime) -> None:
        """Write the file as it is on a day, and its index."""
        shutil.copyfile(self.path, path)
        if index_of(self.path).exists():
            shutil.copyfile(index_of(self.path), index_of(path))
        hours = _hours_of(day)
        with path.open("r+b") as file:
            for place in self.places:
                packed = _packed(self.codec, hours, place.at)
                assert len(packed) <= place.room, "hours take more room than what stands for them"
                file.seek(place.begin)
                file.write(packed)
                file.seek(place.length_begin)
                file.write(LENGTH.pack(LENGTH.size + len(packed)))


def _hours_of(day: datetime) -> np.ndarray:
    return np.array([int((day + at * HOUR).timestamp() * 1e6) for at in range(24)])


def _places(path: Path, told: Sequence[tuple[bytes, bytes]]) -> Iterator[Place]:
    """Where what stands for the hours of each batch lies in a file."""
    if not told:
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        end = 0
        for packed, at in told:
            if (begin := content.find(packed, end)) < 0:
                raise RuntimeError(f"the hours of a batch are not in {path} as they were packed")
            yield Place(begin, _length_begin(content, begin, len(packed)), len(packed), at)
            end = begin + len(packed)


def _length_begin(content: mmap.mmap, begin: int, length: int) -> int:
    """Where the head of a batch tells the length of values; their length unpacked stands before them."""
    head = begin
    while (head := content.rfind(MESSAGE, 0, head)) >= 0:
        body = head + 8 + int.from_bytes(content[head + 4 : head + 8], "little")
        told = BUFFER.pack(begin - LENGTH.size - body, LENGTH.size + length)
        if body <= begin and (place := content.find(told, head, body)) >= 0:
            return place + LENGTH.size
    raise RuntimeError("no head of a batch tells of its hours")


def _packed(codec: pa.Codec, hours: np.ndarray, at: bytes) -> bytes:
    return codec.compress(hours[np.frombuffer(at, np.int8)].tobytes(), asbytes=True)


def _told(rows: pa.Table, key: str | None, at: np.ndarray) -> Iterator[tuple[pa.Table, np.ndarray]]:
    """The rows told for some hours of a day, by key and hour, a little at a time, with the hour of each row.

    Args:
        rows: the rows of the real hour, by key.
        key: the key; None for rows that are in the order of hours alone.
        at: the hours of the day, ascending.
    """
    groups = np.zeros(rows.num_rows, np.int64) if key is None else _groups(rows.column(key))
    start = 0
    while start < rows.num_rows:
        end = min(rows.num_rows, start + max(1, ROWS_AT_ONCE // len(at)) // ROWS_PER_BATCH * ROWS_PER_BATCH)
        while end < rows.num_rows and groups[end] == groups[end - 1]:
            end += 1
        place, hour = (one.ravel() for one in np.meshgrid(np.arange(start, end), at, indexing="ij"))
        order = np.lexsort((place, hour, groups[place]))
        yield _of(rows, place[order], hour[order]), hour[order]
        start = end


def _groups(keys: pa.ChunkedArray) -> np.ndarray:
    """The number of each row's key, ascending with the rows."""
    codes = keys.combine_chunks().dictionary_encode().indices.to_numpy()
    return np.concatenate([[0], np.cumsum(codes[1:] != codes[:-1])]) if len(codes) else codes


def _of(rows: pa.Table, place: np.ndarray, at: np.ndarray) -> pa.Table:
    """Rows told for hours of a day: names are their own, numbers those of another row, which the hour decides."""
    other = pa.array((place + SHIFT * (at + 1)) % rows.num_rows)
    own = pa.array(place)
    columns: list[pa.Array] = []
    for field in rows.schema:
        column = rows.column(field.name).chunk(0)
        if field.name == "session_id":
            columns.append(_renamed(column.take(own), pa.array(at // 2)))
        elif pa.types.is_floating(field.type) or pa.types.is_integer(field.type):
            columns.append(column.take(other))
        else:
            columns.append(column.take(own))
    return pa.Table.from_arrays(columns, schema=rows.schema)


def _renamed(sessions: pa.Array, numbers: pa.Array) -> pa.Array:
    """Names of sessions with the number of their two hours."""
    short = pc.utf8_slice_codeunits(sessions, 0, SESSION_PLACES)
    return pc.binary_join_element_wise(short, pc.utf8_lpad(pc.cast(numbers, pa.string()), 3, "0"), "")


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
