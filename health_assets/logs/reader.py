"""The reader of raw files: a stream of typed rows of cleaned records, and a count of what every file holds.

What belongs here: running the parser over files and shaping its rows like the tables. What does not: the log format
itself (`native`) and what has been loaded before (`pipeline.ingestion`).
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cache

import duckdb
import ibis
import pyarrow as pa

from health_assets.core.agent_names import mapped, reported
from health_assets.core.duckdb_sql import duckdb_sql
from health_assets.core.errors import HealthAssetsError
from health_assets.core.judges import KINDS, TRUSTED, Trust, among, judged_by
from health_assets.core.private_files import private_files
from health_assets.core.targets import Targets
from health_assets.core.temporary import temporary_folder
from health_assets.logs.append_proof import Beginning
from health_assets.logs.digests import PLAIN_USERS, SALT
from health_assets.logs.files import LINES_SCHEMA, Identities, Notes, RawFile, line_batches
from health_assets.logs.limits import Limits, current_limits
from health_assets.logs.native import parsed_lines
from health_assets.logs.native_line_types import RECORD_TYPES
from health_assets.logs.otlp import parsed_spans
from health_assets.logs.otlp_buffer import OtlpBuffer
from health_assets.logs.otlp_evaluations import parsed_evaluations
from health_assets.logs.otlp_lines import is_evaluation_log, is_otlp
from health_assets.logs.progress import Meter
from health_assets.logs.redacting import redacted_evaluations, redacted_lines, redacted_spans
from health_assets.logs.stores import is_trusted
from health_assets.logs.tally import COUNTED_COLUMNS, Content, Tally
from health_assets.schema.catalog import RECORD_OF_TABLE, schema_of
from health_assets.schema.records import SIGNAL_COLUMNS
from health_assets.scoring.prices import STATED
from health_assets.scoring.target_columns import resolve_sla
from health_assets.scoring.usage import AMOUNTS

ROWS_PER_BATCH = 100_000

SINGLE_THREAD_MEMORY = "1GB"
"""Most memory of a DuckDB beside others, before it spills to disk."""

IS_TIMED = "coalesce(is_timed, true)"
"""SQL: whether an execution's line tells when it started; formats without times say that they do not."""
STATED_S = "(epoch_us(ended_at) - epoch_us(started_at)) / 1e6"
"""SQL: an execution's seconds from its start to its end."""


class LogParser:
    """Parses files, once: a stream of rows for each kind of lines.

    Args:
        files: the files.
        connection: the parser of native lines.
        otlp: the buffer of lines of OTLP-JSON.
        limits: what is taken of them.
        notes: is filled as lines are read.
        beginnings: by name of a file that only grew, what is not read of it again.
        single_threaded: as of `log_parser`.
        salt: likewise.
    """

    def __init__(
        self,
        files: Sequence[RawFile],
        connection: duckdb.DuckDBPyConnection,
        otlp: OtlpBuffer,
        limits: Limits,
        notes: Notes,
        beginnings: Mapping[str, Beginning],
        *,
        single_threaded: bool,
        salt: str,
    ) -> None:
        self._files = files
        self._connection = connection
        self._otlp = otlp
        self._limits = limits
        self._notes = notes
        self._beginnings = beginnings
        self._single_threaded = single_threaded
        self._salt = salt

    def tally(self) -> Tally:
        """A tally of the rows of these files."""
        return Tally(self._files, cache(self._hour_before))

    @property
    def converted(self) -> Collection[int]:
        """Ids of the files read so far that a reader of a foreign format made lines of."""
        return self._notes.keys()

    def _hour_before(self, file_id: int) -> datetime | None:
        begun = self._beginnings.get(self._files[file_id].source_file)
        if begun is None or begun.last_line is None:
            return None
        return hour_of_line(begun.last_line, self._limits)

    def count(self) -> list[Content]:
        """Count the records of the files, without keeping their rows."""
        tally = self.tally()
        for batch in _counted(self._connection, parsed_lines("lines", self._limits)):
            tally.add(batch, self.converted)
        for lines, parsed in ((self._otlp.spans, parsed_spans), (self._otlp.evaluations, parsed_evaluations)):
            with self._parser_of(lines()) as parser:
                if parser:
                    for batch in _counted(parser, parsed("lines", self._limits)):
                        tally.add(batch, multi_row_files=None)
        return tally.contents()

    def records(self, targets: Targets, trusted: Trust = TRUSTED) -> pa.RecordBatchReader:
        """Stream every native line that is not blank as one row, cleaned for the table of its kind.

        The rows have the columns of all record tables together, so that a table's rows are a selection of rows and
        columns. Besides, they have `file_id` in place of `source_file`, `record_type` and `fingerprint`. Rejected lines
        have an hour only where their own time can be read.

        Args:
            targets: what rows are made with.
            trusted: the logs whose judgements count as whose they say they are.
        """
        believed = [place for place, file in enumerate(self._files) if is_trusted(file, trusted)]
        self._connection.execute(f"CREATE TEMP VIEW shaped AS {_shaped(targets, believed, self._limits)}")
        rows = resolve_sla(ibis.table(_shaped_schema(), name="shaped"), targets)
        return self._connection.sql(duckdb_sql(self._connection, rows)).to_arrow_reader(ROWS_PER_BATCH)

    @contextmanager
    def spans(self, targets: Targets) -> Iterator[pa.RecordBatchReader | None]:
        """Stream every span as one row, and what cannot be used as another, once `records` was read to its end.

        The rows are like those of `records`, with the columns of `spans`. None where there is no line of spans.
        """
        with self._parser_of(self._otlp.spans()) as parser:
            spans = redacted_spans(parsed_spans("lines", self._limits), targets.redact)
            yield parser and parser.sql(spans).to_arrow_reader(ROWS_PER_BATCH)

    @contextmanager
    def evaluations(self, targets: Targets) -> Iterator[pa.RecordBatchReader | None]:
        """Stream every result of an evaluator that OTLP-JSON holds, as `spans` does spans."""
        with self._parser_of(self._otlp.evaluations()) as parser:
            results = redacted_evaluations(parsed_evaluations("lines", self._limits), targets.redact)
            yield parser and parser.sql(results).to_arrow_reader(ROWS_PER_BATCH)

    @contextmanager
    def _parser_of(self, lines: pa.RecordBatchReader | None) -> Iterator[duckdb.DuckDBPyConnection | None]:
        if lines is None:
            yield None
            return
        own = parser_connection(
            single_threaded=self._single_threaded, salt=self._salt, keeps_user_ids=self._limits.keeps_user_ids
        )
        with own as connection:
            connection.register("lines", lines)
            yield connection


def contents(
    files: Sequence[RawFile],
    limits: Limits | None = None,
    beginnings: Mapping[str, Beginning] = {},
    *,
    single_threaded: bool = False,
) -> list[Content]:
    """Count what the files hold behind what was read of them, without keeping rows; arguments as of `log_parser`."""
    with log_parser(files, limits=limits, beginnings=beginnings, single_threaded=single_threaded) as parser:
        return parser.count()


def hour_of_line(line: str, limits: Limits) -> datetime | None:
    """The hour of a line's record, or the latest of its spans; None where it is rejected or holds none."""
    of_otlp = parsed_evaluations if is_evaluation_log(line) else parsed_spans
    parsed = of_otlp if is_otlp(line) else parsed_lines
    sql = f"SELECT max(hour) FROM ({parsed('lines', limits)}) WHERE record_type <> 'rejected'"
    with parser_connection(single_threaded=True) as connection:
        connection.register("lines", pa.record_batch([[0], [0], [line], [None]], schema=LINES_SCHEMA))
        [(hour,)] = connection.execute(sql).fetchall()
    return hour


@contextmanager
def log_parser(
    files: Sequence[RawFile],
    notes: Notes | None = None,
    identities: Identities | None = None,
    limits: Limits | None = None,
    beginnings: Mapping[str, Beginning] = {},
    *,
    single_threaded: bool = False,
    salt: str = "",
) -> Iterator[LogParser]:
    """Read the lines of these files, once.

    Args:
        files: the files.
        notes: is filled; complete when `records` was read to its end.
        identities: likewise.
        limits: what is taken of them; by default the limits of now.
        beginnings: by name of a file that only grew, what is not read of it again.
        single_threaded: as of `parser_connection`.
        salt: salt of the digests of contents, which are null without one.
    """
    limits, notes = limits or current_limits(), {} if notes is None else notes
    with (
        private_files(),
        temporary_folder() as folder,
        parser_connection(
            single_threaded=single_threaded, salt=salt, keeps_user_ids=limits.keeps_user_ids
        ) as connection,
    ):
        # pushing a condition on a parsed value down into the parser would parse every line once more for it
        connection.execute("SET disabled_optimizers = 'filter_pushdown'")
        otlp = OtlpBuffer(folder)
        told: list[HealthAssetsError] = []
        batches = line_batches(
            enumerate(files), notes, Meter(files), identities, limits.unpacking, beginnings, limits.lines
        )
        lines = otlp.others(_noted(batches, told))
        connection.register("lines", pa.RecordBatchReader.from_batches(LINES_SCHEMA, lines))
        try:
            yield LogParser(
                files, connection, otlp, limits, notes, beginnings, single_threaded=single_threaded, salt=salt
            )
        except Exception:
            if told:  # a file could not be read: what DuckDB makes of that is no sentence
                raise told[0] from None
            raise


def _noted(batches: Iterator[pa.RecordBatch], told: list[HealthAssetsError]) -> Iterator[pa.RecordBatch]:
    """The batches; an error that a user can mend is noted on its way through DuckDB and Arrow."""
    try:
        yield from batches
    except HealthAssetsError as error:
        told.append(error)
        raise


@contextmanager
def parser_connection(
    *, single_threaded: bool = False, salt: str = "", keeps_user_ids: bool = False
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB without a file, which parses and computes whatever the warehouse is.

    Args:
        single_threaded: whether it gets one core and `SINGLE_THREAD_MEMORY`, as where others work beside it.
        salt: salt of the digests of contents, which are null without one.
        keeps_user_ids: whether ids of users are kept, and not only their digests.
    """
    with temporary_folder() as folder:
        config: dict[str, str | bool | int | float | list[str]] = {
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "temp_directory": str(folder),  # without one it would spill into the working directory
        }
        with duckdb.connect(config=config) as connection:
            connection.execute("SET TimeZone = 'UTC'; SET preserve_insertion_order = false")
            if salt:
                connection.execute(f"SET VARIABLE {SALT} = ?", [salt])
            connection.execute(f"SET VARIABLE {PLAIN_USERS} = ?", [keeps_user_ids])
            if single_threaded:
                connection.execute(f"SET threads = 1; SET memory_limit = '{SINGLE_THREAD_MEMORY}'")
            yield connection


def _counted(connection: duckdb.DuckDBPyConnection, rows: str) -> pa.RecordBatchReader:
    return connection.sql(f"SELECT {', '.join(COUNTED_COLUMNS)} FROM ({rows})").to_arrow_reader(ROWS_PER_BATCH)


def _shaped_schema() -> dict[str, str]:
    """Columns of `_shaped`: those of all record tables that need neither targets nor names of files, and its own."""
    columns = {"file_id": "int32", "record_type": "string", "fingerprint": "uint64", "secrets": "int64"}
    columns["future_at"] = "timestamp('UTC')"
    for table in RECORD_OF_TABLE:  # in one order in every process, so that the SQL is the same and stays remembered
        if table != "spans":
            columns |= schema_of(table)
    others = ("sla_breached", "source_file", "lines")
    return {name: column_type for name, column_type in columns.items() if name not in others}


def _shaped(targets: Targets, believed: Sequence[int], limits: Limits) -> str:
    own = ["file_id", "record_type", "fingerprint", "hour", "future_at", "line_number", "raw", "secrets"]
    columns = _columns_as_read() | _columns_made(targets, believed)
    made = ", ".join(f'{sql} AS "{column}"' for column, sql in columns.items())
    lines = redacted_lines(parsed_lines("lines", limits), targets.redact)
    return f"SELECT {', '.join(own)}, {made} FROM ({lines})"


def _columns_as_read() -> dict[str, str]:
    """By column of the record tables, the value that the lines of its table hold for it."""
    values: dict[str, dict[str, str]] = {}
    for record, kind in RECORD_TYPES.items():
        for column, value in kind.columns.items():
            values.setdefault(column, {})[record] = value
    return {column: _by_record_type(own) for column, own in values.items()}


def _by_record_type(values: Mapping[str, str]) -> str:
    if len({*values.values()}) == 1:
        return f'"{next(iter(values.values()))}"'
    branches = " ".join(f"""WHEN '{record}' THEN "{value}\"""" for record, value in values.items())
    return f"CASE record_type {branches} END"


def _columns_made(targets: Targets, believed: Sequence[int]) -> dict[str, str]:
    """SQL of the columns that are not a field of their lines as it is, but follow from fields, targets or files."""
    kinds = ", ".join(f"'{kind}'" for kind in KINDS)
    states_kind = f"judged_by IN ({kinds})"
    reported_judge = f"CASE WHEN {states_kind} THEN judged_by END"
    signals = {
        column: f"CASE record_type WHEN 'signals' THEN {name} ELSE signals.{name} END"
        for column, name in SIGNAL_COLUMNS.items()
    }
    return {
        "agent_id": mapped("agent_id", targets.names),
        "agent_id_reported": reported("agent_id", targets.names),
        "reason": "coalesce(rejection, reason)",
        "started_at": f"CASE WHEN {IS_TIMED} THEN started_at END",
        "runtime_s": f"CASE WHEN {IS_TIMED} THEN {STATED_S} END",
        "untimed_s": f"CASE WHEN NOT {IS_TIMED} THEN {STATED_S} END",
        "succeeded": "status = 'success'",
        "outcome_source": f"'{STATED}'",
        "feedback": "NULL::VARCHAR",
        "task_source": "CASE WHEN task_id IS NOT NULL THEN coalesce(task_source, 'stated') END",
        "condition": "coalesce(condition, 'baseline')",
        **{f"{amount}_reported": amount for amount in AMOUNTS},
        "cost_source": f"CASE WHEN cost_usd IS NOT NULL THEN '{STATED}' END",
        "action_count": "len(actions)",
        **signals,
        "violations": "violations::VARCHAR",
        "violations_reported": "NULL::VARCHAR",
        "judged_by": judged_by(among("file_id", believed), reported_judge),
        "judged_by_reported": reported_judge,
        "judge": f"coalesce(judge, CASE WHEN NOT {states_kind} THEN judged_by END)",
        "span_id": "NULL::VARCHAR",
        "place_in_line": "NULL::VARCHAR",
    }
