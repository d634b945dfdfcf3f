"""The parts of the endpoint that tools ask, and the sentences for what cannot be answered.

What belongs here: asking pages for what a caller sees. What does not: what a tool answers (`fleet_tools`,
`session_tools`, `data_tools`).
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from starlette.concurrency import run_in_threadpool

from health_assets.apps.serving.history.reading import History
from health_assets.apps.serving.history.updater import Updater
from health_assets.apps.serving.pages.changing import Changes
from health_assets.apps.serving.pages.page_service import NothingYetError, Pages
from health_assets.apps.serving.pages.scoped_history import ScopedHistory
from health_assets.apps.serving.service import RequestContext, Service
from health_assets.core.errors import HealthAssetsError
from health_assets.core.formatting import counted
from health_assets.core.settings import Settings

T = TypeVar("T")
FIRST_HOUR_S = 30.0
"""How long a call waits for the newest hour after a start."""
LONGEST_PATH = 2000
NO_SDK = "MCP clients are answered by their SDK: pip install 'health-assets[mcp]'"
NOTHING_YET = "Nothing has been materialized yet; `health-assets materialize` or `health-assets run` does it."
LOADING = "The newest hour is being loaded; ask again in a few seconds."


@dataclass(frozen=True, kw_only=True)
class Backend:
    """The parts of the endpoint that answer calls.

    Args:
        settings: public address of the pages, formats of own logs.
        updater: holds the history.
        pages: what each caller sees of it.
        service: asks the warehouse for runs and suggested targets.
        changes: adds silences.
    """

    settings: Settings
    updater: Updater
    pages: Pages
    service: Service
    changes: Changes

    async def find(self, asked: RequestContext, find: Callable[[ScopedHistory], T], hour: str | None = None) -> T:
        """Something that is found in what the caller sees, in a thread.

        Args:
            asked: the request.
            find: finds it.
            hour: the hour to look at, as text; None for the newest.

        Raises:
            HealthAssetsError: the caller may not read, or there is nothing of that hour, or `find` finds nothing.
        """
        return await run_in_threadpool(self._found, asked, find, hour)

    def _found(self, asked: RequestContext, find: Callable[[ScopedHistory], T], hour: str | None) -> T:
        require_read(asked)
        try:
            return self.pages.seen(asked, find, hour)
        except NothingYetError:
            self.updater.catch_up(self._is_settled, FIRST_HOUR_S)
        try:
            return self.pages.seen(asked, find, hour)
        except NothingYetError:
            raise HealthAssetsError(NOTHING_YET if self.updater.is_empty else LOADING) from None

    def _is_settled(self, history: History) -> bool:
        """Whether there is an hour, or it is known that there is none."""
        return self.updater.is_empty or history.newest("agents") is not None

    def link(self, look: ScopedHistory, path: str) -> str | None:
        """The address of a page at the hour that is looked at; None where it is not known, or too long to be read."""
        if self.settings.pages_url is None or len(path) > LONGEST_PATH:
            return None
        hour = "" if look.is_newest else f"{'&' if '?' in path else '?'}hour={look.hour:%Y-%m-%dT%H}"
        return f"{self.settings.pages_url.rstrip('/')}{path}{hour}"


def require_read(asked: RequestContext) -> None:
    """Refuse a caller who may not read.

    Raises:
        HealthAssetsError: it may not.
    """
    if (refusal := asked.caller.refusal("read")) is not None:
        raise HealthAssetsError(json.loads(refusal.body)["detail"])


def as_of(look: ScopedHistory) -> dict[str, Any]:
    """Facts at the head of every answer: the end of the hour, earlier while it runs, and what makes it doubtful."""
    return {
        "as_of": look.known_until(look.hour),
        "window_hours": look.window_hours,
        "outdated_s": look.outdated_s(),
        "still_loading": _still_loading(look.history.missing),
    }


def _still_loading(hours: int) -> str | None:
    """That lists may lack rows while hours are copied to the history; None where all are there."""
    if not hours:
        return None
    return f"{counted(hours, 'hour')} of history still to be copied: lists may be short or empty; ask again in a minute"
