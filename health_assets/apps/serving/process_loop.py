"""A process beside the server, as it is asked: one request a line, one reply a line.

What belongs here: settings, requests and replies, and the kinds of faults. What does not: what is read
(`reader_process`) and written (`writer_process`), and the server's end (`client`).

The first line on standard input are the settings. Then there is one request a line, and one reply a line on standard
output, all JSON. A process ends when its input ends or nobody reads its replies, so it never outlives the server.
A reply is `{"ok": ...}`, or `{"fault": KIND, "sentence": TEXT}`: the kind is for the world, the sentence for the
operator.
"""

import json
import os
import sys
import traceback
from collections.abc import Callable, Iterable
from typing import Any, TextIO

import duckdb

from health_assets.core.errors import HealthAssetsError, NoWarehouseError, RefusedError, WarehouseBusyError
from health_assets.core.private_files import FOLDER_MODE
from health_assets.core.settings import Settings

NICENESS = 10


class EmptyWarehouseError(HealthAssetsError):
    """The warehouse holds no hour of health states yet."""


class TargetsError(HealthAssetsError):
    """The targets file cannot be used."""


FAULTS: tuple[tuple[type[Exception], str], ...] = (
    (NoWarehouseError, "missing"),
    (EmptyWarehouseError, "empty"),
    (WarehouseBusyError, "busy"),
    (TargetsError, "targets"),
    (RefusedError, "refused"),
    (HealthAssetsError, "unreadable"),
    (duckdb.Error, "unreadable"),
    (OSError, "unreadable"),
)


Do = Callable[[Settings, dict[str, Any]], Any]
"""Does what a request asks for; what it gives is the reply."""


def answer_requests(do: Do) -> None:
    """Answer requests until the input ends."""
    os.umask(0o777 & ~FOLDER_MODE)  # this process is ours alone
    settings = Settings.model_validate_json(sys.stdin.readline())
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints must not look like a reply
    os.nice(NICENESS)
    try:
        serve(settings, sys.stdin, replies, do)
    except BrokenPipeError:  # the server was killed, and nobody reads the reply
        os.dup2(os.open(os.devnull, os.O_WRONLY), replies.fileno())


def serve(settings: Settings, requests: Iterable[str], replies: TextIO, do: Do) -> None:
    """Reply to every request; no fault of the warehouse ends the process."""
    for line in requests:
        print(json.dumps(reply_to(settings, json.loads(line), do)), file=replies, flush=True)


def reply_to(settings: Settings, request: dict[str, Any], do: Do) -> dict[str, Any]:
    """The reply to a request, whatever goes wrong."""
    try:
        return {"ok": do(settings, request)}
    except Exception as error:  # told to the operator, with its traceback where it is ours
        kind = next((kind for known, kind in FAULTS if isinstance(error, known)), None)
        return {"fault": kind or "unreadable", "sentence": str(error) if kind else traceback.format_exc()}
