"""Unicode: byte order marks at the start of a file, and UTF-16 as UTF-8.

What belongs here: bytes of a file, before they are lines. What does not: lines that are no UTF-8 (`files`).
"""

import codecs
from itertools import chain

from health_assets.logs.formats.foreign_lines import Blocks, Damage

_BYTE_ORDER_MARK = codecs.BOM_UTF8
UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""How a file of UTF-16 begins."""


def without_mark(start: bytes) -> bytes:
    """The first bytes of a file of UTF-8 without the mark that some writers put before them."""
    return start.removeprefix(_BYTE_ORDER_MARK)


def as_utf_8(blocks: Blocks) -> Blocks:
    """The bytes of a file as UTF-8, where its first ones say that it is UTF-16; of any other file as they are.

    Half of a surrogate pair becomes bytes that are not UTF-8, so its line is rejected and no other.
    """
    first = next(blocks, None)
    if first is None:
        return
    if isinstance(first, Damage) or not first.startswith(UTF_16_MARKS):
        yield first
        yield from blocks
        return
    decode = codecs.getincrementaldecoder("utf-16")("surrogatepass").decode
    for block in chain([first], blocks):
        if isinstance(block, Damage):
            yield block
            return
        yield decode(block).encode(errors="surrogatepass")
    try:
        yield decode(b"", final=True).encode(errors="surrogatepass")
    except UnicodeDecodeError:
        yield Damage("the UTF-16 text ends within a character: the file is cut off")
