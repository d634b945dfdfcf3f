"""Limits of texts, for logs and for programs that write them."""

MOST_NAME_BYTES = 1 << 10
"""Most bytes of UTF-8 that an id or a name may have; a longer one is rejected."""
