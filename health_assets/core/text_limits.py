"""Limits of texts, for logs and for programs that write them."""

MOST_NAME_BYTES = 1 << 10
"""Most bytes of UTF-8 that an id or a name may have; a longer one is rejected."""

MAX_LINE_BYTES = 64 << 20
"""Most bytes of a line of a raw log; of a longer one the beginning is kept as rejected."""
