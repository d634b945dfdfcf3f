"""Names, a link and progress: our work as people find it on a cluster's own page, and the cluster as a run shows it."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

pytest.importorskip("pysail", reason="the extra `spark` is not installed")

from pyspark.sql.connect.session import SparkSession

from health_assets.cli.running import run_hours
from health_assets.core.hours import HourRange
from health_assets.pipeline.events import Event, Link, Materialized
from health_assets.pipeline.summaries import SPARK_SESSION
from health_assets.warehouse import cluster_work
from health_assets.warehouse.engines.spark import connect, store
from health_assets.warehouse.store import Warehouse
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.ports import free_port
from health_assets_tests.support.projects import Project
from health_assets_tests.support.spark_servers import apache_spark_process, needs_apache_spark, sail

HOURS = HourRange.of(START)
LABELS = ("agent_health", "run 7c9e6679, by hand")
TIMEOUT_S = 60.0
SLOW = "SELECT sum(hash(a.id, b.id)) FROM range(30000) AS a, range(30000) AS b"


class OnApache(NamedTuple):
    """A warehouse on a cluster that has a page."""

    url: str
    page: str
    warehouse: Warehouse


@pytest.fixture(scope="module")
def on_apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OnApache]:
    folder, port = tmp_path_factory.mktemp("spark"), free_port()
    page = f"http://127.0.0.1:{port}"
    with apache_spark_process(folder, page_port=port) as (url, _):
        places = {"lake": str(folder / "lake"), "ledger": str(folder / "ledger.duckdb")}
        yield OnApache(url, page, Warehouse(url, **places, labels=LABELS, spark_ui=f"{page}/"))


@pytest.mark.nightly  # by day a step on Sail has the names and the link
@needs_apache_spark
def test_jobs_are_named_on_the_clusters_page_and_a_session_has_a_link(on_apache: OnApache) -> None:
    page = on_apache.page
    with on_apache.warehouse.write() as session:
        assert session.query("SELECT count(*) FROM executions") == [(0,)]
        cluster = session.cluster
        assert cluster is not None
        assert cluster.page is not None
        shown = httpx.get(cluster.page, timeout=TIMEOUT_S)
    assert shown.status_code == 200
    assert cluster.session_id in shown.text
    assert "Request Statistics (0)" not in shown.text
    assert "run 7c9e6679  by hand" in shown.text  # a comma parts tags
    [application] = httpx.get(f"{page}/api/v1/applications", timeout=TIMEOUT_S).json()
    jobs = httpx.get(f"{page}/api/v1/applications/{application['id']}/jobs", timeout=TIMEOUT_S).json()
    assert jobs
    assert {job["description"] for job in jobs} <= {"health-assets", "health-assets · " + " · ".join(LABELS)}
    assert {job["jobGroup"] for job in jobs} == {job["description"] for job in jobs}


@pytest.mark.nightly  # by day `test_progress` has what a run shows of tasks
@needs_apache_spark
def test_a_long_statement_tells_of_its_tasks_until_it_ends(on_apache: OnApache) -> None:
    told: list[cluster_work.ClusterProgress | None] = []
    spark = connect.connected(on_apache.url)
    with cluster_work.listening(told.append):
        spark.sql(SLOW).toArrow()
    connect.end(spark)
    known = [one for one in told if one is not None]
    assert known
    assert all(0 <= one.tasks_done <= one.tasks for one in known)
    assert max(one.tasks for one in known) > 1
    assert told[-1] is None


def test_a_step_names_itself_and_its_run_and_links_to_what_it_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[Sequence[str]] = []
    made: list[Materialized] = []
    connected = store.connected

    def noted(url: str, labels: Sequence[str]) -> SparkSession:
        begun.append(labels)
        return connected(url, labels)

    def on_event(event: Event) -> None:
        if isinstance(event, Materialized):
            made.append(event)

    monkeypatch.setattr(store, "connected", noted)
    monkeypatch.setenv("HEALTH_SPARK_UI", "http://spark.example.com:4040")
    with sail() as url:
        project = Project(tmp_path / "spark", engine="spark", url=url)
        project.write_log("a.jsonl", [line(execution("e", "a", START))])
        run_hours(project.settings, HOURS, on_event, ["agent_health_model"])
    tables = ("executions", "health_components", "agent_health")
    found = {event.asset: event.metadata[SPARK_SESSION] for event in made}
    links = {asset: link.url for asset, link in found.items() if isinstance(link, Link)}
    session = re.compile(r"http://spark\.example\.com:4040/connect/session/\?id=[0-9a-f-]{36}")
    assert all(session.fullmatch(links[table]) for table in tables)
    assert len({links[table] for table in tables}) == 3
    [run_id] = {labels[1] for labels in begun if labels}
    assert re.fullmatch("run [0-9a-f-]{36}", run_id)
    assert {"ingest", "health_components", "agent_health"} <= {labels[0] for labels in begun if labels}
