"""Texts of an Arrow column as bytes, without a Python object for each."""

import pyarrow as pa


class Texts:
    """A column of texts as their UTF-8 bytes, without a Python object for each.

    Args:
        column: strings without nulls.
    """

    def __init__(self, column: pa.StringArray) -> None:
        _, offsets, data = column.buffers()
        self._offsets = memoryview(offsets).cast("i")[column.offset : column.offset + len(column) + 1]
        self._data = memoryview(data or b"")

    def __getitem__(self, row: int) -> bytes:
        return bytes(self._data[self._offsets[row] : self._offsets[row + 1]])

    def __len__(self) -> int:
        return len(self._offsets) - 1
