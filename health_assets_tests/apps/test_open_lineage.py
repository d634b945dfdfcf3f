"""Events of OpenLineage, as a receiver on the loopback gets them from runs on the command line and in Dagster."""

import logging
import os
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from openlineage.client.transport.console import ConsoleTransport

from health_assets.apps.lineage.dataset_names import logs_name, table_name
from health_assets.apps.lineage.open_lineage import NO_CLIENT, is_wanted, lineage
from health_assets.cli.running import plan_of, run_hours
from health_assets.core.hours import HOUR, HourGroups, HourRange
from health_assets.core.settings import Settings
from health_assets.pipeline import engine
from health_assets.pipeline.resource import Pipeline
from health_assets.schema.catalog import columns_of
from health_assets.systems.graph import declared_graph
from health_assets_tests.support.dagster_world import FLEET_ASSETS, NOON, World
from health_assets_tests.support.health_servers import closed_port
from health_assets_tests.support.receivers import Receiver, receiver

HOURS = HourRange(NOON, NOON + 2 * HOUR)
STEPS = ["ingest", "agent_health_model"]


@pytest.fixture(autouse=True)
def _without_variables_of_openlineage(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)  # where the client looks for a file of its own
    monkeypatch.setenv("HOME", str(tmp_path))
    yield
    for name in [name for name in os.environ if name.startswith("OPENLINEAGE")]:
        del os.environ[name]  # the client sets some, which would make later tests of this process send events


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World.at(tmp_path / "world")
    made.write_hours(HOURS)
    return made


def sent_to(kept: Receiver) -> list[dict[str, Any]]:
    assert set(kept.paths) <= {"/api/v1/lineage"}
    return kept.bodies


def states(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(event["job"]["name"].removeprefix("health_assets."), event["eventType"]) for event in events]


def assert_a_whole_run_is_told(world: World, events: list[dict[str, Any]], run_id: str | None) -> None:
    assert states(events) == [(step, state) for step in STEPS for state in ("START", "COMPLETE")]
    assert len({event["run"]["runId"] for event in events}) == len(STEPS)
    parents = {event["run"]["facets"]["parent"]["run"]["runId"] for event in events}
    assert parents == {run_id} if run_id else len(parents) == 1
    for event in events:
        assert event["run"]["facets"]["nominalTime"]["nominalStartTime"] == HOURS.start.isoformat()
        assert event["producer"].startswith("urn:health-assets:")
    place = f"duckdb://{world.settings.warehouse}"
    ingest, scores = events[1], events[3]
    assert ingest["inputs"] == [{"namespace": "file", "name": str(world.settings.raw), "facets": {}, "inputFacets": {}}]
    assert {one["namespace"] for one in ingest["outputs"]} == {place}
    assert {"main.executions", "main.trigger_events"} <= {one["name"] for one in scores["inputs"]}
    made = {one["name"]: one for one in scores["outputs"]}
    assert made.keys() >= {"main.health_components", "main.agent_health", "main.system_health"}
    assert not made.keys() & {one["name"] for one in scores["inputs"]}
    fields = made["main.agent_health"]["facets"]["schema"]["fields"]
    assert [field["name"] for field in fields] == columns_of("agent_health")
    [(rows,)] = world.query("SELECT count(*) FROM agent_health")
    assert rows and made["main.agent_health"]["outputFacets"]["outputStatistics"]["rowCount"] == rows


def test_a_run_on_the_command_line_tells_each_step_with_its_tables_and_rows(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with receiver() as kept:
        monkeypatch.setenv("OPENLINEAGE_URL", kept.origin)
        assert run_hours(world.settings, HOURS, lambda _: None, ["agent_health_model"]).error is None
    assert_a_whole_run_is_told(world, sent_to(kept), None)


def test_a_run_in_dagster_tells_the_same_under_its_own_id(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with receiver() as kept, dg.DagsterInstance.ephemeral() as instance:
        monkeypatch.setenv("OPENLINEAGE_URL", kept.origin)
        monkeypatch.setenv("OPENLINEAGE_NAMESPACE", "of my own")
        result = world.run(instance, HOURS, assets=FLEET_ASSETS)
    assert result.success
    events = sent_to(kept)
    assert_a_whole_run_is_told(world, events, result.run_id)
    assert {event["job"]["namespace"] for event in events} == {"of my own"}


@pytest.mark.parametrize("is_in_dagster", [False, True])
def test_a_step_that_fails_is_told(world: World, monkeypatch: pytest.MonkeyPatch, is_in_dagster: bool) -> None:
    lost = World(world.settings.model_copy(update={"raw": world.settings.raw / "nowhere"}))
    with receiver() as kept, dg.DagsterInstance.ephemeral() as instance:
        monkeypatch.setenv("OPENLINEAGE_URL", kept.origin)
        if is_in_dagster:
            assert not lost.run(instance, HOURS, assets=FLEET_ASSETS).success
        else:
            assert run_hours(lost.settings, HOURS, lambda _: None, ["agent_health_model"]).error
    assert states(sent_to(kept))[:2] == [("ingest", "START"), ("ingest", "FAIL")]


def test_a_step_that_is_stopped_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(_: object) -> None:
        raise KeyboardInterrupt

    with receiver() as kept:
        monkeypatch.setenv("OPENLINEAGE_URL", kept.origin)
        assert run_hours(world.settings, HOURS, stop, ["agent_health_model"]).was_stopped
    assert states(sent_to(kept)) == [("ingest", "START"), ("ingest", "ABORT")]


def test_a_receiver_that_is_away_costs_one_warning_and_never_the_run(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with closed_port() as url, caplog.at_level(logging.WARNING, "health_assets"):
        monkeypatch.setenv("OPENLINEAGE_URL", url)
        assert run_hours(world.settings, HOURS, lambda _: None, ["agent_health_model"]).error is None
    [told] = [record.message for record in caplog.records if record.name.startswith("health_assets")]
    assert told.startswith("OpenLineage: an event could not be sent")


def test_a_run_whose_id_is_no_uuid_is_told_under_one_made_of_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = Pipeline(settings=world.settings, run="run of my own")
    with receiver() as kept:
        monkeypatch.setenv("OPENLINEAGE_URL", kept.origin)
        plan = plan_of(HourGroups((HOURS,)), ["agent_health_model"])
        with lineage(pipeline, plan) as tell_lineage:
            for event in engine.run(pipeline, declared_graph(), plan):
                tell_lineage(event)
    made = uuid.uuid5(uuid.NAMESPACE_URL, "urn:health-assets:run:of my own")
    assert_a_whole_run_is_told(world, sent_to(kept), str(made))


class UnclosableTransport(ConsoleTransport):
    """A transport whose end fails, as a broker's does that is gone by then."""

    def close(self, timeout: float = -1) -> bool:  # noqa: ARG002 its name is the client's
        raise OSError("the broker is gone")


def use_unclosable_transport(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__TYPE", f"{__name__}.{UnclosableTransport.__name__}")


def test_a_transport_that_cannot_be_closed_costs_a_warning_and_never_the_run(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    use_unclosable_transport(monkeypatch)
    with caplog.at_level(logging.WARNING, "health_assets"):
        assert run_hours(world.settings, HOURS, lambda _: None, ["agent_health_model"]).error is None
    [told] = [record.message for record in caplog.records if record.name.startswith("health_assets")]
    assert told.startswith("OpenLineage: the transport could not be closed") and "the broker is gone" in told


def test_a_transport_that_cannot_be_closed_does_not_hide_why_a_run_failed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = World(world.settings.model_copy(update={"raw": world.settings.raw / "nowhere"}))
    use_unclosable_transport(monkeypatch)
    error = run_hours(lost.settings, HOURS, lambda _: None, ["agent_health_model"]).error
    assert error is not None and "nowhere" in error and "broker" not in error


def test_events_that_cannot_be_set_up_cost_a_warning_and_never_the_run(
    world: World, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__TYPE", "no.such.transport")
    with caplog.at_level(logging.WARNING, "health_assets"):
        assert run_hours(world.settings, HOURS, lambda _: None, ["agent_health_model"]).error is None
    [told] = [record.message for record in caplog.records if record.name.startswith("health_assets")]
    assert told.startswith("OpenLineage: the client cannot be set up, so nothing is sent")


def test_without_the_client_a_sentence_says_what_to_install(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OPENLINEAGE_URL", "http://127.0.0.1:9")
    monkeypatch.setitem(sys.modules, "openlineage.client", None)
    with caplog.at_level(logging.WARNING, "health_assets"):
        assert run_hours(world.settings, HOURS, lambda _: None, ["agent_health_model"]).error is None
    assert [record.message for record in caplog.records if "OpenLineage" in record.message] == [NO_CLIENT]


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, False),
        ({"OPENLINEAGE_NAMESPACE": "n"}, False),
        ({"OPENLINEAGE_URL": ""}, False),
        ({"OPENLINEAGE_URL": "http://a"}, True),
        ({"OPENLINEAGE_CONFIG": "openlineage.yml"}, True),
        ({"OPENLINEAGE__TRANSPORT__TYPE": "console"}, True),
        ({"OPENLINEAGE_URL": "http://a", "OPENLINEAGE_DISABLED": "True"}, False),
    ],
    ids=str,
)
def test_events_are_sent_where_a_variable_names_a_place_alone(environment: dict[str, str], expected: bool) -> None:
    assert is_wanted(environment) is expected


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"warehouse": "/data/health.duckdb"}, ("duckdb:///data/health.duckdb", "main.t")),
        ({"warehouse": "postgresql+psycopg://u:secret@db.example/health"}, ("postgres://db.example:5432", "health.public.t")),
        ({"warehouse": "postgresql://u@db.example:6000/health"}, ("postgres://db.example:6000", "health.public.t")),
        ({"warehouse": "sc://h:15002", "lake": "s3://bucket/lake", "ledger": "postgresql://u@h/l"}, ("s3://bucket", "lake/t")),
    ],
    ids=str,
)  # fmt: skip
def test_a_table_has_the_name_that_openlineage_gives_it_without_a_password(
    settings: dict[str, Any], name: tuple[str, str]
) -> None:
    assert table_name(Settings(**settings), "t") == name


def test_raw_logs_are_a_folder_or_a_place_in_an_object_store() -> None:
    assert logs_name(Settings(raw="s3://bucket/logs/agents")) == ("s3://bucket", "logs/agents")
    assert logs_name(Settings(raw="/var/log/agents")) == ("file", "/var/log/agents")


@pytest.mark.parametrize("scheme", ["abfs", "abfss", "adl", "az", "wasb", "wasbs"])
def test_a_container_of_azure_is_part_of_its_place(scheme: str) -> None:
    account = "account.dfs.core.windows.net"
    for container in ("one", "Two"):
        url = f"{scheme}://{container}@{account}/logs/agents"
        assert logs_name(Settings(raw=url)) == (f"{scheme}://{container}@{account}", "logs/agents")
    assert logs_name(Settings(raw=f"{scheme}://container/logs")) == (f"{scheme}://container", "logs")


@pytest.mark.parametrize(("scheme", "place"), [("abfss", "abfss://user@host"), ("sftp", "sftp://host")])
def test_a_place_of_raw_logs_has_no_password(scheme: str, place: str) -> None:
    assert logs_name(Settings(raw=f"{scheme}://user:secret@host/logs")) == (place, "logs")
