"""The clock that writers to a DuckDB warehouse go by, set to any time: for hours that run."""

from collections.abc import Callable
from datetime import datetime

import pytest

from health_assets.warehouse.engines.duckdb.store import DuckDBSession

SetClock = Callable[[datetime], None]


def settable_clock(monkeypatch: pytest.MonkeyPatch) -> SetClock:
    """A function that sets it."""

    def set_clock(moment: datetime) -> None:
        monkeypatch.setattr(DuckDBSession, "now", lambda _: moment)

    return set_clock
