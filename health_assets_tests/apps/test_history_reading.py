"""Keys that are looked up in the history together have the rows that a search through all rows finds."""

import random
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pytest

from health_assets.apps.serving.history.layout import Account, Kept, KeyedFile, Part, write_account, write_rows
from health_assets.apps.serving.history.reading import History
from health_assets.core.hours import HOUR, HourRange
from health_assets.warehouse.session import HOUR_TYPE
from health_assets_tests.support.logs_made import START

HOURS = HourRange(START, START + 30 * HOUR)
FILES: list[Sequence[datetime]] = [
    list(HOURS)[:24],
    list(HOURS)[24:26] + list(HOURS)[28:29],
    list(HOURS)[26:28],
    list(HOURS)[29:],
]
"""The hours of each file: one of a day that is over, and of the next day some whose hours lie between each other's."""
SCHEMA = pa.schema([("session_id", pa.string()), ("hour", HOUR_TYPE), ("score", pa.float64())])
COLUMNS = ("hour", "session_id")
ROWS_PER_BATCH = 7


Row = tuple[str, datetime, float]


@pytest.fixture
def rows() -> list[Row]:
    """Sessions of which some have a row of one hour and others of most, and one of which no file that counts knows."""
    dice = random.Random(7)
    found = []
    for number in range(60):
        share = dice.choice([0.02, 0.2, 0.9])
        found += [(f"s-{number:02d}", hour, dice.random()) for hour in HOURS if dice.random() < share]
    return found


@pytest.fixture
def history(tmp_path: Path, rows: list[Row]) -> History:
    kept = Kept("session_id")
    for number, hours in enumerate(FILES):
        own = sorted(row for row in rows if row[1] in hours)
        own += [("t-late", hours[-1] + HOUR, 0.5)]  # of an hour that the account does not name for this file
        columns = [pa.array(values, field.type) for values, field in zip(zip(*own, strict=True), SCHEMA, strict=True)]
        table = pa.Table.from_arrays(columns, schema=SCHEMA)
        path = f"sessions/{number}.1.arrow"
        write_rows(tmp_path / path, table.to_reader(max_chunksize=ROWS_PER_BATCH), "session_id")
        kept.days.setdefault(hours[0].isoformat()[:10], []).append(
            Part(path, {hour.isoformat(): "x" for hour in hours})
        )
    write_account(tmp_path, Account(source="x", version=1, series={"sessions": kept}))
    return History(tmp_path)


def _newest(rows: list[Row], keys: Sequence[str], hours: HourRange) -> dict[str, datetime]:
    return {
        key: max(hour for one, hour, _ in rows if one == key and hour in hours)
        for key in keys
        if any(one == key and hour in hours for one, hour, _ in rows)
    }


@pytest.mark.parametrize(
    "hours",
    [
        HOURS,
        HourRange(START, START + HOUR),
        HourRange(START + 22 * HOUR, START + 28 * HOUR),
        HourRange.of(START - HOUR),
    ],
    ids=["all", "one", "over midnight", "none"],
)
@pytest.mark.parametrize("most", [0, 1, 9, 60])
def test_the_newest_row_of_each_key_is_the_one_that_a_search_through_all_finds(
    history: History, rows: list[Row], hours: HourRange, most: int
) -> None:
    keys = [*sorted({row[0] for row in rows})[:most], "s-", "s-05x", "t-late", "zzz"]
    found = history.newest_of("sessions", keys, hours, COLUMNS)
    expected = _newest(rows, keys, hours)
    told = found.select(["session_id", "hour"]).to_pylist() if found.num_rows else []
    assert sorted((one["session_id"], one["hour"]) for one in told) == sorted(expected.items())


def test_a_batch_is_unpacked_once_for_all_keys_in_it(
    history: History, rows: list[Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    unpacked: list[int] = []
    real = KeyedFile._batch

    def batch(self: KeyedFile, number: int) -> pa.RecordBatch:
        unpacked.append(number)
        return real(self, number)

    monkeypatch.setattr(KeyedFile, "_batch", batch)
    day = HourRange(START, START + 24 * HOUR)
    history.newest_of("sessions", sorted({row[0] for row in rows if row[1] in day})[:9], day, COLUMNS)
    assert len(unpacked) == len(set(unpacked)) > 0
    unpacked.clear()
    history.newest_of("sessions", [], HOURS, COLUMNS)
    assert unpacked == []
