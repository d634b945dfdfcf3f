"""The clock that writers to a warehouse go by, set to any time: for running hours."""

from collections.abc import Callable
from datetime import datetime

import pytest

from health_assets.warehouse.engines.duckdb.store import DuckDBSession
from health_assets.warehouse.engines.postgres.store import PostgresSession

SetClock = Callable[[datetime], None]


def settable_clock(monkeypatch: pytest.MonkeyPatch) -> SetClock:
    """A function that sets it."""

    def set_clock(moment: datetime) -> None:
        for session in (DuckDBSession, PostgresSession):  # that of a lake is its ledger's
            monkeypatch.setattr(session, "now", lambda _: moment)

    return set_clock
