"""Dagster's database, which keeps the lease, is away for a while: a run waits for it, and its end never fails."""

import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import dagster as dg
import psycopg
import pytest
from dagster._core.instance.ref import InstanceRef

from health_assets.core.errors import HealthAssetsError
from health_assets.defs.write_lock.lease_store import LeaseStore
from health_assets.defs.write_lock.write_lock import WriteLock
from health_assets_tests.support import postgres_server
from health_assets_tests.support.holders import settings

AWAY_S = 2.0
SHORT_LEASE_S = 1.0


class Database:
    """Dagster's database on a real server, which can turn everybody away.

    Args:
        url: of the database.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._name = urlsplit(url).path.removeprefix("/")

    def be_away(self) -> None:
        self._change("ALTER DATABASE {} ALLOW_CONNECTIONS false")
        with psycopg.connect(postgres_server.server_url(), autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [self._name]
            )

    def be_back(self) -> None:
        self._change("ALTER DATABASE {} ALLOW_CONNECTIONS true")

    def _change(self, statement: str) -> None:
        with psycopg.connect(postgres_server.server_url(), autocommit=True) as connection:
            connection.execute(psycopg.sql.SQL(statement).format(psycopg.sql.Identifier(self._name)))


@pytest.fixture
def database() -> Database:
    return Database(postgres_server.empty_database())


@pytest.fixture
def instance(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.DagsterInstance]:
    # Dagster itself tries to connect for six seconds, which is too short for a restart and long for a test
    monkeypatch.setattr("dagster_postgres.utils.calculate_delay", lambda **_: 0.01)
    url = database.url.replace("postgresql:", "postgresql+psycopg2:")
    storage = {"postgres": {"postgres_url": url}}
    ref = InstanceRef.from_dir(str(tmp_path), overrides={"storage": storage, "telemetry": {"enabled": False}})
    with dg.DagsterInstance.from_ref(ref) as made:
        yield made


@pytest.mark.parametrize("look", [WriteLock.check, WriteLock.take])
def test_a_run_goes_on_when_the_database_of_the_lease_comes_back(
    instance: dg.DagsterInstance, database: Database, look: Callable[[WriteLock], None]
) -> None:
    with WriteLock(instance, settings(), "own", "a test") as write_lock:
        write_lock.take()
        database.be_away()
        back = threading.Timer(AWAY_S, database.be_back)
        back.start()
        look(write_lock)
        back.join()
    assert LeaseStore(instance.run_storage).read().clients == ()


def test_a_database_that_stays_away_fails_the_step_in_one_sentence_and_the_end_of_a_run_not_at_all(
    instance: dg.DagsterInstance, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        caplog.at_level(logging.WARNING, "health_assets"),
        WriteLock(instance, settings(SHORT_LEASE_S), "own", "x") as write_lock,
    ):
        write_lock.take()
        database.be_away()
        with pytest.raises(HealthAssetsError) as no:
            write_lock.check()
        assert str(no.value).startswith("Dagster's database could not be reached for 1 s, so nothing of this step was")
        assert "\n" not in str(no.value)
    assert "this run could not be taken off the lease, where it expires in 1 s" in caplog.text
    database.be_back()
