"""SQL of expressions that differ in nothing but times and names of temporary tables, compiled once.

To compile the expressions of a small run takes ibis a third of the run's CPU, and each run asks for the same ones over
other hours. So SQL is remembered by an expression's key, within a process and, in a file of the user's cache, from one
process to the next. The remembered text is the one that ibis writes, which `test_sql_memory` holds against it.

A file is of one state of the program: it begins with a digest, which covers the versions of the libraries that compile
and the text of our own modules that do. What else SQL follows from is in the key of the expression
(`expression_keys`). Without such a file, SQL is compiled.

What belongs here: remembering, and the file. What does not: which compilers there are (`duckdb_sql`,
`warehouse.engines`).
"""

import hashlib
import json
import logging
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import lru_cache, wraps
from pathlib import Path
from uuid import uuid4

import ibis
import ibis.expr.operations as ops
import sqlglot
from ibis import ir

from health_assets.core import expression_keys
from health_assets.core.expression_keys import ExpressionKey, NoExpressionKeyError
from health_assets.core.hours import HOUR
from health_assets.core.user_cache import cache_folder, own_content, put

Compile = Callable[[ir.Table], str]
Pieces = Sequence[str]
"""SQL in pieces; at odd places stand the numbers of times, and after them of tables, whose SQL belongs there."""
STAND_INS_FROM = datetime(9000, 1, 1, tzinfo=UTC)
"""Times from here on stand for those of an expression while ibis compiles it."""
MOST_TIMES = 1_000
MOST_EXPRESSIONS = 1_000
MOST_BYTES = 32_000_000
GAP = uuid4().hex  # which no literal holds
SEAL_BYTES = hashlib.sha256().digest_size

_log = logging.getLogger(__name__)
_memories: list["SqlMemory"] = []


class SqlMemory:
    """The SQL of one compiler, by the key of expressions.

    Args:
        compiled: the compiler.
        name: a name for it, which no other one has.
        modules: files of the modules, besides those of this memory, that say how it compiles.
    """

    def __init__(self, compiled: Compile, name: str, modules: Sequence[str]) -> None:
        self._compiled = compiled
        self._name = name
        self._state = _state(
            [__file__, expression_keys.__file__, *modules]
        )  # now, for a module may be changed meanwhile
        self._lock = threading.Lock()
        self._pieces: OrderedDict[str, Pieces] = OrderedDict()
        self._is_loaded = False
        self._has_news = False
        self._sql_of = lru_cache(MOST_EXPRESSIONS)(self._sql_of_time)

    def sql(self, rows: ir.Table) -> str:
        """The SQL of an expression."""
        try:
            expression = ExpressionKey(rows.op())
        except NoExpressionKeyError:
            return self._compiled(rows)
        if len(expression.times) > MOST_TIMES or str(STAND_INS_FROM.year) in expression.text:
            return self._compiled(rows)
        pieces = self._known(expression.key)
        if pieces is None:
            pieces = self._text_with_gaps(expression)
            self._remember(expression.key, pieces)
        filled = [*map(self._sql_of, expression.times), *(table.name for table in expression.tables)]
        return "".join(filled[int(piece)] if place % 2 else piece for place, piece in enumerate(pieces))

    def _sql_of_time(self, time: ops.Literal) -> str:
        """The SQL of a time: what stands between the first word of a query for it and the name that it has there."""
        key = f"{time.value!r} as {time.dtype}"
        if (known := self._known(key)) is not None:
            return known[0]
        query = self._compiled(time.to_expr().name("time").as_table())
        sql = query.partition(" ")[2].removesuffix(' AS "time"')
        self._remember(key, [sql])
        return sql

    def _text_with_gaps(self, expression: ExpressionKey) -> Pieces:
        stand_ins = {
            time: ops.Literal(STAND_INS_FROM + place * HOUR, time.dtype) for place, time in enumerate(expression.times)
        }
        text = self._compiled(expression.root.replace(stand_ins).to_expr())
        filled = [*map(self._sql_of, stand_ins.values()), *(table.name for table in expression.tables)]
        for place, filling in enumerate(filled):
            text = text.replace(filling, f"{GAP}{place}{GAP}")
        return text.split(GAP)

    def _known(self, key: str) -> Pieces | None:
        with self._lock:
            if not self._is_loaded:
                self._pieces.update(self._read())
                self._is_loaded = True
            if key in self._pieces:
                self._pieces.move_to_end(key)
            return self._pieces.get(key)

    def _remember(self, key: str, pieces: Pieces) -> None:
        with self._lock:
            self._pieces[key] = pieces
            self._has_news = True
            while len(self._pieces) > MOST_EXPRESSIONS:
                self._pieces.popitem(last=False)

    # -- the file --

    def keep(self) -> None:
        """Write what is remembered to the file, where there is anything new; without a file nothing is kept."""
        with self._lock:
            if not self._has_news:
                return
            self._has_news = False
            content = json.dumps(self._pieces).encode()
        folder = cache_folder()
        if folder is None or len(content) > MOST_BYTES:
            return
        try:
            put(self._path(folder), self._sealed(content))
        except OSError as error:
            _log.debug("compiled SQL is not kept in %s: %s", folder, error.strerror)

    def _read(self) -> dict[str, Pieces]:
        """The SQL that an earlier process has kept; nothing where that was another state of the program."""
        folder = cache_folder()
        if folder is None:
            return {}
        try:
            kept = own_content(self._path(folder), MOST_BYTES)
        except OSError as error:
            _log.debug("no compiled SQL is read from %s: %s", folder, error.strerror)
            return {}
        content = kept[SEAL_BYTES:]
        pieces: dict[str, Pieces] = json.loads(content) if kept == self._sealed(content) else {}
        return pieces

    def _sealed(self, content: bytes) -> bytes:
        """A file's content behind a digest of it and of all, besides the keys, that the SQL follows from."""
        return hashlib.sha256(self._state + content).digest() + content

    def _path(self, folder: Path) -> Path:
        return folder / f"sql-{self._name}.json"


def remembered(name: str, *modules: str) -> Callable[[Compile], Compile]:
    """A decorator of a compiler, which lets it compile expressions of one key once; arguments as of `SqlMemory`."""

    def remembering(compiled: Compile) -> Compile:
        memory = SqlMemory(compiled, name, modules)
        _memories.append(memory)

        @wraps(compiled)
        def sql(rows: ir.Table) -> str:
            return memory.sql(rows)

        return sql

    return remembering


def keep_compiled_sql() -> None:
    """Write down what was compiled, so that the next process need not; to be called where work ends."""
    for memory in _memories:
        memory.keep()


def _state(modules: Sequence[str]) -> bytes:
    """A digest of the libraries that compile and of our own modules that do, as this process has them."""
    said = [sys.version, ibis.__version__, sqlglot.__version__]
    texts = [Path(module).read_bytes() for module in modules]
    return hashlib.sha256(b"\0".join([*map(str.encode, said), *texts])).digest()
