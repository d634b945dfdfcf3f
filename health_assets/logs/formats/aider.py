"""Analytics logs of aider (`--analytics-log`): an event a line.

What belongs here: what an event says. What does not: aider's histories of chats, which tell neither outcomes nor exact
counts. The mapping: docs/formats.md.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from health_assets.logs.conventions import UNKNOWN_MODEL
from health_assets.logs.formats.foreign_lines import (
    Line,
    Record,
    Source,
    UnusableRecordError,
    as_epoch,
    dumped,
    hex_id,
    line_of,
    present,
    rejected,
)
from health_assets.logs.formats.lines import private_objects
from health_assets.logs.formats.opening import Opening
from health_assets.logs.json_values import as_count, as_name, as_number, as_object

FIELDS = {"event", "properties", "user_id", "time"}
ASKED, ANSWERED, FAILED = "message_send_starting", "message_send", "message_send_exception"
TELLING = (ASKED, ANSWERED, "auto_commits", "cli session", "model warning", "repo", "no-repo")
"""Events that aider alone has; others, such as `launched`, any program may have."""
TEXT = re.compile(rb'"event"\s*:\s*"(message_send\w*|auto_commits|cli session|model warning)"')
"""A part of a log, also of one that is damaged."""
NO_MESSAGE = "event of aider that is no message: a start, a command, an end and the like"
NO_ANSWER = "message of aider without an answer: the model failed or its user interrupted, which nothing tells apart"
EMPTY, EXCEPTION = "the model gave no answer", "the message failed with an exception"


def is_line(record: Record) -> bool:
    """Whether a line with this record tells that it is of an analytics log."""
    return record.keys() == FIELDS and record["event"] in TELLING and isinstance(record["properties"], dict)


def recognizes(opening: Opening) -> bool:
    """Whether a file that begins so is an analytics log."""
    return opening.has_lines and any(map(is_line, opening.first_records))


def read(source: Source) -> Iterator[Line]:
    """An execution and its model call for each message that was answered."""
    log = _Log()
    for item in private_objects(source.blocks):
        if isinstance(item, Line):
            yield item
            continue
        number, record = item
        try:
            at, event = as_epoch(record.get("time"), "time", "seconds"), record.get("event")
            if event in (ANSWERED, FAILED):
                for made in _records(record, at, log.asked_at):
                    yield line_of(number, made)
            elif event != ASKED:
                source.notes[NO_MESSAGE] += 1
            log.follow(event, at)
        except UnusableRecordError as error:
            yield rejected(number, "", str(error))
    source.notes[NO_ANSWER] += max(log.without_answer, 0)


@dataclass
class _Log:
    """What is known after some events; several aiders may write one log, and no event says of which it is.

    Args:
        asked_at: when the message was sent whose answer comes now, if that is certain.
        asked: messages since the last answer.
        without_answer: messages that have none so far.
    """

    asked_at: datetime | None = None
    asked: int = 0
    without_answer: int = 0

    def follow(self, event: Any, at: datetime) -> None:
        """Note an event."""
        self.asked_at = None
        if event == ASKED:
            self.asked += 1
            self.without_answer += 1
            self.asked_at = at if self.asked == 1 else None
        elif event in (ANSWERED, FAILED):
            self.asked, self.without_answer = 0, self.without_answer - 1


def _records(record: Record, at: datetime, asked_at: datetime | None) -> Iterator[Record]:
    """The run of a message and the model call that it is.

    Raises:
        UnusableRecordError: nothing tells whether it was answered.
    """
    told = as_object(record.get("properties"))
    model, output = as_name(told.get("main_model")), as_count(told.get("completion_tokens"))
    if record.get("event") == FAILED:
        error: str | None = EXCEPTION
    elif output is None:
        raise UnusableRecordError("completion_tokens is missing")
    else:
        error = None if output else EMPTY
    common = {
        "agent_id": "aider",
        "execution_id": hex_id(32, "aider", dumped(record, is_sorted=True)),
        "model": model if model != "None" else None,
        "ended_at": at.isoformat(),
        "status": "success" if error is None else "failure",
        "error": error,
        "input_tokens": as_count(told.get("prompt_tokens")),
        "output_tokens": output,
        "cost_usd": as_number(told.get("cost")) or None,  # 0 is also a price that is not known
    }
    started_at = asked_at if asked_at is not None and asked_at <= at else None
    yield present(
        {
            "type": "execution",
            "started_at": (started_at or at).isoformat(),
            "is_timed": started_at is not None,
            "user_id": as_name(record.get("user_id")),
            **common,
        }
    )
    latency = None if started_at is None else (at - started_at).total_seconds() * 1000
    call = {"type": "model_call", "call_id": common["execution_id"], "latency_ms": latency}
    yield present(common | call | {"model": common["model"] or UNKNOWN_MODEL})
