"""The process that changes the warehouse for the pages: `python -m health_assets.apps.serving.writer_process`.

`process_loop` says how it is asked; it is started for one change. Requests, those about silences with
`patience_s`, how long to wait while somebody else holds the warehouse:

- `{"silence": {...}}`: add a silence; what `alerts.silences.new_silence` takes, moments in ISO 8601.
- `{"end": ID}`: end one;
- `{"publish": true}`: publish the tables.

The reply is the id of the silence, and of a publication what was published.
"""

from typing import Any

from health_assets.apps.alerts.silencing import Silences
from health_assets.apps.serving.process_loop import answer_requests
from health_assets.apps.serving.reader_process import MEMORY_LIMIT, warehouse_of
from health_assets.core.settings import Settings
from health_assets.pipeline.publishing import SHORT_PATIENCE_S, publish_if_configured, publish_or_warn


def write(settings: Settings, request: dict[str, Any]) -> str:
    """Do what a request asks for.

    Raises:
        HealthAssetsError: it cannot be made, or the warehouse is held.
    """
    if "publish" in request:
        small = settings.model_copy(update={"memory_limit": MEMORY_LIMIT})
        return str(publish_if_configured(small, SHORT_PATIENCE_S))
    silences = Silences(warehouse_of(settings, request["patience_s"]))
    changed = silences.end(request["end"]) if "end" in request else silences.add(**request["silence"])
    publish_or_warn(settings)
    return changed.silence_id


if __name__ == "__main__":
    answer_requests(write)
