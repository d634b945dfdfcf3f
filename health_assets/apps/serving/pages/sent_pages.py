"""Entity tags of pages that were sent lately: a browser that asks again whether its page is new costs no page.

What belongs here: which page was sent, of what, under which tag. What does not: making pages (`page_service`).
"""

import threading
from collections import OrderedDict
from collections.abc import Hashable

MOST_SENT = 512


class SentPages:
    """The last pages that were sent; any thread may use it.

    Args:
        most: how many are known at most.
    """

    def __init__(self, most: int = MOST_SENT) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._sent: OrderedDict[Hashable, tuple[Hashable, bytes]] = OrderedDict()

    def note(self, page: Hashable, made_of: Hashable, tag: bytes) -> None:
        """Note a page that is sent.

        Args:
            page: all that the request decides of it: the address, and who asks.
            made_of: all else that it is made of.
            tag: its entity tag.
        """
        with self._lock:
            self._sent[page] = (made_of, tag)
            self._sent.move_to_end(page)
            while len(self._sent) > self._most:
                self._sent.popitem(last=False)

    def tag_of(self, page: Hashable, made_of: Hashable) -> bytes | None:
        """The tag of a page, where it was sent and would be the same again; else None."""
        with self._lock:
            known, tag = self._sent.get(page, (None, None))
        return tag if known == made_of else None
