"""The process that changes the warehouse for the pages: `python -m health_assets.apps.serving.writer_process`.

`process_loop` says how it is asked; it is started for one change. Requests, each with `patience_s`, how long to wait
while somebody else holds the warehouse:

- `{"silence": {...}}`: add a silence; what `alerts.silences.new_silence` takes, moments in ISO 8601.
- `{"end": ID}`: end one.

The reply is the id of the silence.
"""

from typing import Any

from health_assets.apps.alerts.silencing import Silences
from health_assets.apps.serving.process_loop import answer_requests
from health_assets.apps.serving.reader_process import warehouse_of
from health_assets.core.settings import Settings


def write(settings: Settings, request: dict[str, Any]) -> str:
    """Make the change that a request asks for.

    Raises:
        HealthAssetsError: it cannot be made, or the warehouse is held.
    """
    silences = Silences(warehouse_of(settings, request["patience_s"]))
    if "end" in request:
        return silences.end(request["end"]).silence_id
    return silences.add(**request["silence"]).silence_id


if __name__ == "__main__":
    answer_requests(write)
