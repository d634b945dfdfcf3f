"""The work of a cluster, for people who watch it: the name by which it is known there, and how far it has come.

What belongs here: the name of a session, progress and its listeners. What does not: how an engine learns of progress
(`engines`), and how it is shown (`pipeline.resource`, `cli.progress_bar`).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from health_assets.core.formatting import counted


@dataclass(frozen=True, kw_only=True)
class ClusterSession:
    """The name of a session on its cluster.

    Args:
        session_id: the name.
        page: URL of the session in the cluster's own web page; None where nobody said where that is.
    """

    session_id: str
    page: str | None = None


@dataclass(frozen=True, kw_only=True)
class ClusterProgress:
    """The tasks of one statement so far.

    Args:
        tasks: tasks that are known of by now; more may come.
        tasks_done: those that are done. The cluster may find that it needs some not at all, which are never done.
    """

    tasks: int
    tasks_done: int

    def __str__(self) -> str:
        return f"{self.tasks_done:,} of {counted(self.tasks, 'task')}"


Listener = Callable[[ClusterProgress | None], None]
"""Takes the progress of a statement; None once it has ended."""

_listeners: list[Listener] = []


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Call `listener` now and then while a cluster computes in the block, from whatever thread."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def tell(progress: ClusterProgress | None) -> None:
    """Tell all listeners."""
    for listener in [*_listeners]:  # another thread may remove one
        listener(progress)
