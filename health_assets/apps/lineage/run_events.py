"""Events of OpenLineage for the steps of one run, and sending them; imported only where its client is."""

import logging
import os
import uuid
from datetime import UTC, datetime
from typing import Any

from openlineage.client import OpenLineageClient, event_v2, facet_v2
from openlineage.client.event_v2 import InputDataset, OutputDataset, RunEvent, RunState

from health_assets import __version__
from health_assets.apps.lineage.dataset_names import logs_name, table_name
from health_assets.pipeline.events import ROWS, Event, Materialized, StepFailed, StepFinished, StepStarted
from health_assets.pipeline.plan import INGEST, Plan
from health_assets.pipeline.resource import Pipeline
from health_assets.schema.catalog import ALL_TABLES, describe, description_of
from health_assets.schema.column_types import SQL_NAMES
from health_assets.systems.graph import declared_graph

_log = logging.getLogger(__name__)

NAMESPACE = "health-assets"
"""That of our jobs, where OPENLINEAGE_NAMESPACE names no other."""
PRODUCER = f"urn:health-assets:{__version__}"
CLOSE_S = 10.0


class RunEvents:
    """The events of one run.

    Args:
        client: sends them.
        pipeline: where logs and tables are, and which run it is.
        plan: what the run makes.
    """

    def __init__(self, client: OpenLineageClient, pipeline: Pipeline, plan: Plan) -> None:
        self._client = client
        self._is_sending = True
        self._settings = pipeline.settings
        self._plan = plan
        self._run_id = _run_id_of(pipeline)
        self._namespace = os.environ.get("OPENLINEAGE_NAMESPACE") or NAMESPACE
        self._step: str | None = None
        self._made: list[Materialized] = []
        event_v2.set_producer(PRODUCER)

    def on_event(self, event: Event) -> None:
        """Take an event of the run."""
        match event:
            case StepStarted(step):
                self._step, self._made = step, []
                self._send(step, RunState.START)
            case Materialized():
                self._made.append(event)
            case StepFinished():
                self._end(RunState.COMPLETE)
            case StepFailed():
                self._end(RunState.FAIL)

    def close(self) -> None:
        """Tell that the step that is under way was stopped, and wait for what is not sent yet."""
        self._end(RunState.ABORT)
        try:
            self._client.close(CLOSE_S)
        except Exception as error:  # as of `_send`
            _log.warning("OpenLineage: the transport could not be closed, so events may be lost (%s)", error)

    def _end(self, state: RunState) -> None:
        if self._step is not None:
            self._send(self._step, state)
        self._step = None

    def _send(self, step: str, state: RunState) -> None:
        """Send an event; after one that cannot be sent there are no others, since each would take as long."""
        if not self._is_sending:
            return
        try:
            self._client.emit(self._event(step, state))
        except Exception as error:  # each transport that the variables may name has errors of its own
            _log.warning("OpenLineage: an event could not be sent, so the rest of this run is not (%s)", error)
            self._is_sending = False

    def _event(self, step: str, state: RunState) -> RunEvent:
        return RunEvent(
            eventTime=datetime.now(UTC).isoformat(),
            eventType=state,
            run=event_v2.Run(runId=str(uuid.uuid5(self._run_id, step)), facets=self._run_facets()),
            job=event_v2.Job(namespace=self._namespace, name=f"health_assets.{step}"),
            inputs=self._inputs(step),
            outputs=[self._output(made) for made in self._made],
        )

    def _run_facets(self) -> dict[str, Any]:
        of_parent, of_hours = facet_v2.parent_run, facet_v2.nominal_time_run
        hours = self._plan.hours
        return {
            "parent": of_parent.ParentRunFacet(
                run=of_parent.Run(runId=str(self._run_id)),
                job=of_parent.Job(namespace=self._namespace, name="health_assets"),
            ),
            "nominalTime": of_hours.NominalTimeRunFacet(
                nominalStartTime=hours.start.isoformat(), nominalEndTime=hours.end.isoformat()
            ),
        }

    def _inputs(self, step: str) -> list[InputDataset]:
        """Inputs of a step: the raw logs, or the tables of other steps that its assets read."""
        if step == INGEST:
            names = [logs_name(self._settings)]
        else:
            graph = declared_graph()
            own = [asset for asset in graph.steps.get(step, ()) if asset in self._plan.assets]
            sources = dict.fromkeys(source for asset in own for source in graph.sources(asset))
            names = [table_name(self._settings, source) for source in sources if source not in own]
        return [InputDataset(namespace=name.namespace, name=name.name) for name in names]

    def _output(self, made: Materialized) -> OutputDataset:
        name = table_name(self._settings, made.asset)
        return OutputDataset(
            namespace=name.namespace,
            name=name.name,
            facets=_table_facets(made.asset) if made.asset in ALL_TABLES else {},
            outputFacets=_row_facets(made.metadata.get(ROWS)),
        )


def _table_facets(table: str) -> dict[str, Any]:
    of_schema, of_documentation = facet_v2.schema_dataset, facet_v2.documentation_dataset
    fields = [
        of_schema.SchemaDatasetFacetFields(name=column, type=SQL_NAMES[kind], description=meaning)
        for column, kind, _, meaning in describe(table)
    ]
    return {
        "schema": of_schema.SchemaDatasetFacet(fields=fields),
        "documentation": of_documentation.DocumentationDatasetFacet(description=description_of(table)),
    }


def _row_facets(rows: object) -> dict[str, Any]:
    if not isinstance(rows, int):
        return {}
    of_rows = facet_v2.output_statistics_output_dataset
    return {"outputStatistics": of_rows.OutputStatisticsOutputDatasetFacet(rowCount=rows)}


def _run_id_of(pipeline: Pipeline) -> uuid.UUID:
    """The id of the run, which is Dagster's where it is one of Dagster's; made of it where that is no UUID."""
    run_id = pipeline.run.removeprefix("run ")
    try:
        return uuid.UUID(run_id)
    except ValueError:
        return uuid.uuid5(uuid.NAMESPACE_URL, f"urn:health-assets:run:{run_id}")
