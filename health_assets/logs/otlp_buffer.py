"""A buffer on the disk for lines of OTLP-JSON, until all other lines were read."""

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from health_assets.logs.files import LINES_SCHEMA
from health_assets.logs.otlp_lines import EVALUATION_EVENT, LOGS_START, START, USUAL_START


class OtlpBuffer:
    """Keeps lines of OTLP-JSON in files while all others are read.

    Args:
        folder: for the files, of which there is one only once there is a line for it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writers: dict[str, pa.ipc.RecordBatchFileWriter] = {}

    def others(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Keep the lines of OTLP-JSON, and yield all others."""
        for batch in batches:
            if pc.all(pc.starts_with(batch["line"], USUAL_START)).as_py():
                yield batch
                continue
            is_otlp = pc.match_substring_regex(batch["line"], START)
            count = is_otlp.true_count
            if not count:
                yield batch
            elif count == batch.num_rows:
                self._keep(batch)
            else:
                self._keep(batch.filter(is_otlp))
                yield batch.filter(pc.invert(is_otlp))

    def _keep(self, batch: pa.RecordBatch) -> None:
        """Write the lines by what they may hold: spans may hold results of evaluators, and logs nothing else."""
        # a regular expression finds a plain text much faster than `match_substring`
        has_evaluations = pc.match_substring_regex(batch["line"], re.escape(EVALUATION_EVENT))
        if has_evaluations.true_count:
            self._write("evaluations", batch.filter(has_evaluations))
            is_log = pc.and_(has_evaluations, pc.match_substring_regex(batch["line"], LOGS_START))
            batch = batch.filter(pc.invert(is_log))
        if batch.num_rows:
            self._write("spans", batch)

    def _write(self, name: str, batch: pa.RecordBatch) -> None:
        if name not in self._writers:
            self._writers[name] = pa.ipc.new_file(str(self._folder / f"otlp_{name}"), LINES_SCHEMA)
        self._writers[name].write_batch(batch)

    def spans(self) -> pa.RecordBatchReader | None:
        """The lines that may hold spans, once all were read; None if there are none."""
        return self._lines("spans")

    def evaluations(self) -> pa.RecordBatchReader | None:
        """The lines that hold results of evaluators, likewise."""
        return self._lines("evaluations")

    def _lines(self, name: str) -> pa.RecordBatchReader | None:
        if name not in self._writers:
            return None
        self._writers[name].close()
        file = pa.ipc.open_file(pa.memory_map(str(self._folder / f"otlp_{name}")))
        batches = (file.get_batch(number) for number in range(file.num_record_batches))
        return pa.RecordBatchReader.from_batches(LINES_SCHEMA, batches)
