"""OpenLineage events of a run's steps, sent to where the variables of OpenLineage say; without them nothing is sent.

Each step is a run of its own, whose parent is the run. A receiver that fails costs a warning and the events that
follow, never the run.
"""

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from health_assets.pipeline.events import Event
from health_assets.pipeline.plan import Plan
from health_assets.pipeline.resource import Pipeline

if TYPE_CHECKING:
    from health_assets.apps.lineage.run_events import RunEvents

_log = logging.getLogger(__name__)

PLACES = ("OPENLINEAGE_URL", "OPENLINEAGE_CONFIG", "OPENLINEAGE__TRANSPORT")
"""Variables, or beginnings of their names, that say where events go."""
NO_CLIENT = "OpenLineage: the client is not installed, so nothing is sent; install health-assets[lineage]"


def is_wanted(environment: Mapping[str, str]) -> bool:
    """Whether the environment says where events go, and does not switch them off."""
    is_named = any(value and name.startswith(PLACES) for name, value in environment.items())
    return is_named and environment.get("OPENLINEAGE_DISABLED", "").strip().lower() != "true"


@contextmanager
def lineage(pipeline: Pipeline, plan: Plan) -> Iterator[Callable[[Event], None]]:
    """Something to call with each event of a run while the block lasts; it does nothing where nothing is wanted.

    Args:
        pipeline: where logs and tables are, and which run it is.
        plan: what the run makes.
    """
    if not is_wanted(os.environ):
        yield _ignore
        return
    run = _run_events(pipeline, plan)
    if run is None:
        yield _ignore
        return
    try:
        yield run.on_event
    finally:
        run.close()


def _run_events(pipeline: Pipeline, plan: Plan) -> "RunEvents | None":
    """The events of a run; None, with a warning, where they cannot be sent."""
    try:
        from openlineage.client import OpenLineageClient

        from health_assets.apps.lineage.run_events import RunEvents
    except ModuleNotFoundError:
        _log.warning(NO_CLIENT)
        return None
    try:
        return RunEvents(OpenLineageClient(), pipeline, plan)
    except Exception as error:  # each transport that the variables may name has errors of its own
        _log.warning("OpenLineage: the client cannot be set up, so nothing is sent (%s)", error)
        return None


def _ignore(_: Event) -> None:
    """Do nothing."""
