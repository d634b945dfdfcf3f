"""Importing much at once without the collector of garbage, which otherwise takes a quarter of the time.

What belongs here: when it rests. What does not: what is imported. This imports nothing of its own, for it comes first.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collections() -> Iterator[None]:
    """Let the collector rest; what is made meanwhile mostly stays, so that it is looked at as seldom as what is old."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if not gc.get_freeze_count():  # else what is frozen would be given back with it
            gc.freeze()
            gc.unfreeze()  # to the oldest generation
        gc.enable()
