"""Pieces of work that executors do: a function of this program, its rows in the lake, and what it tells.

What belongs here: sending work out, and what an executor does with it. What does not: what the work is (`pipeline`),
and who asks for it (`lake_session`, and `store` for work without rows).

An executor writes the files itself, to a folder that nobody else has. It tells of that folder only in its answer, and
the driver publishes the folders of the answers that it got. So a piece that is done twice, because its machine was
lost or slow, counts once. What comes back is JSON: a driver takes no code from its cluster.
"""

import os
import pickle
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import pyarrow as pa
from pydantic import TypeAdapter
from pyspark.sql.connect.session import SparkSession

from health_assets.core.errors import HealthAssetsError
from health_assets.warehouse.engines.spark.executor_versions import require_same
from health_assets.warehouse.engines.spark.lake_files import write_rows
from health_assets.warehouse.engines.spark.lake_place import FOLDER_NAME, ID_FILE, LakePlace, WrittenFolder
from health_assets.warehouse.engines.spark.tables import LAKE_TABLES
from health_assets.warehouse.session import InsertArrow, Work

Told = TypeVar("Told")
NUMBER, ANSWER = "number", "answer"
BYTES_AT_ONCE = 8 << 20
"""Most bytes of pieces that are sent with one statement, of which each task gets all."""
_turns = threading.BoundedSemaphore(os.cpu_count() or 1)
"""As many as the machine has cores: Sail begins all pieces at once in one process; of Spark a process has one."""


@dataclass(frozen=True, kw_only=True)
class Answer(Generic[Told]):
    """The answer of an executor.

    Args:
        told: what the function told.
        written: the folders with its rows.
    """

    told: Told
    written: list[WrittenFolder]


@dataclass(frozen=True, kw_only=True)
class Fault:
    """The answer of an executor whose function failed with what a user can mend.

    Args:
        sentence: what it says.
    """

    sentence: str


def answers(spark: SparkSession, works: Sequence[Work], do: Callable[[Work], bytes]) -> list[bytes]:
    """The answers of executors to pieces of work, in their order.

    Args:
        spark: a session on the cluster.
        works: the pieces.
        do: what executors do with each.

    Raises:
        RuntimeError: the cluster did not answer for each piece once.
    """
    found: list[bytes] = []
    for sent in _at_once([pickle.dumps(work) for work in works]):
        found += _answered(spark, sent, do)
    return found


def _at_once(pieces: Sequence[bytes]) -> Iterator[list[bytes]]:
    """Pieces in their order, as many together as are sent with one statement."""
    some: list[bytes] = []
    size_bytes = 0
    for piece in pieces:
        if some and size_bytes + len(piece) > BYTES_AT_ONCE:
            yield some
            some, size_bytes = [], 0
        some.append(piece)
        size_bytes += len(piece)
    if some:
        yield some


def _answered(spark: SparkSession, sent: Sequence[bytes], do: Callable[[Any], bytes]) -> list[bytes]:
    """The answers to the pieces of one statement."""

    def done(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        for batch in batches:
            for number in batch["id"].to_pylist():
                yield pa.record_batch({NUMBER: [number], ANSWER: [do(pickle.loads(sent[number]))]})

    # a range is cut evenly, so that each piece has a task of its own; rows that are dealt out may meet in one
    numbers = spark.range(0, len(sent), 1, len(sent))
    found = numbers.mapInArrow(done, f"{NUMBER} bigint, {ANSWER} binary").toArrow().sort_by(NUMBER)
    answered = found[NUMBER].to_pylist()
    if answered != [*range(len(sent))]:
        raise RuntimeError(f"the cluster answered {answered} of {len(sent)} pieces of work")
    return found[ANSWER].to_pylist()


def inserted(
    work: Any, make: Callable[[Any, InsertArrow], Any], place: LakePlace, lake_id: str, ordered: Mapping[str, str]
) -> bytes:
    """Do one piece of work on an executor.

    Args:
        work: the piece.
        make: what makes rows of it.
        place: the lake, to which they are written.
        lake_id: what the lake is known by.
        ordered: the program of the machine that gives the orders.

    Returns:
        An `Answer` or a `Fault`, as JSON.
    """
    written: list[WrittenFolder] = []

    def told() -> Any:
        if place.text_of(ID_FILE) != lake_id:
            raise HealthAssetsError(
                f"an executor does not see the lake {place.shown} that other machines see; name a place that all reach"
            )
        return make(work, insert)

    def insert(table: str, rows: pa.Table | pa.RecordBatchReader) -> None:
        written.append(write_rows(place, table, rows))

    return _answer(told, written, ordered)


def computed(work: Any, do: Callable[[Any], Any], ordered: Mapping[str, str]) -> bytes:
    """Do one piece of work without rows on an executor.

    Args:
        work: the piece.
        do: what is done with it.
        ordered: the program of the machine that gives the orders.

    Returns:
        An `Answer` or a `Fault`, as JSON.
    """
    return _answer(lambda: do(work), [], ordered)


def _answer(tell: Callable[[], Any], written: list[WrittenFolder], ordered: Mapping[str, str]) -> bytes:
    """Let a function tell, and name the folders that it has written to meanwhile."""
    try:
        require_same(ordered)
        with _turns:
            answer: Answer[Any] | Fault = Answer(told=tell(), written=written)
    except HealthAssetsError as error:
        answer = Fault(sentence=str(error))
    return TypeAdapter(Answer[Any] | Fault).dump_json(answer)


def understood(answer: bytes, told: type[Told]) -> Answer[Told]:
    """An answer that came back.

    Raises:
        HealthAssetsError: the function failed with what a user can mend, or could not be called.
        ValueError: it names a folder that is none of a table's.
    """
    found: Answer[Told] | Fault = TypeAdapter(Answer[told] | Fault).validate_json(answer)  # type: ignore[valid-type, arg-type]
    if isinstance(found, Fault):
        raise HealthAssetsError(found.sentence)
    for one in found.written:
        if one.table not in LAKE_TABLES or not FOLDER_NAME.fullmatch(one.folder.removeprefix(f"{one.table}/")):
            raise ValueError(f"an executor names the folder {one.folder!r} of {one.table!r}")
    return found
