"""Sessions of coding agents that are known by their OpenTelemetry logs: the events of a file, session by session.

What belongs here: reading such a file. What does not: how events are written (`agent_logs`), and what those of a
session come to (`agent_log_turns`). The mapping: docs/opentelemetry.md.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import groupby

from health_assets.logs.formats.agent_log_turns import LoggedSession
from health_assets.logs.formats.agent_logs import Event, Events, events_of_document, events_of_lines
from health_assets.logs.formats.claude_code_otel import ClaudeCodeSession
from health_assets.logs.formats.codex_otel import CodexSession
from health_assets.logs.formats.foreign_lines import Line, Source, rejected
from health_assets.logs.formats.gemini_cli_otel import GeminiCliSession
from health_assets.logs.json_values import as_name

SESSIONS: dict[str, type[LoggedSession]] = {
    "claude_code": ClaudeCodeSession,
    "codex": CodexSession,
    "gemini_cli": GeminiCliSession,
}


def read_lines(source: Source) -> Iterator[Line]:
    """An execution for each turn that ended, the model calls and tool calls; other lines as they are."""
    events = Events(source)
    yield from events_of_lines(source, events)
    yield from _lines_of_sessions(source, events.events)


def read_document(source: Source) -> Iterator[Line]:
    """The same of a document."""
    events = Events(source)
    yield from events_of_document(source, events)
    yield from _lines_of_sessions(source, events.events)


def _lines_of_sessions(source: Source, events: Iterable[Event]) -> Iterator[Line]:
    """Lines of all sessions, in the order of the lines that they are from."""
    lines: list[Line] = []
    sessions: dict[tuple[str, str], list[Event]] = defaultdict(list)
    for event in events:
        session_id = _session_id(event)
        if session_id is None:
            lines.append(rejected(event.line, "", "id of an event's session is missing"))
        else:
            sessions[event.prefix, session_id].append(event)
    for prefix, session_id in sorted(sessions):
        session = SESSIONS[prefix](source=source, session_id=session_id)
        lines += session.lines(_in_order(sessions[prefix, session_id], session.event_order))
    yield from sorted(dict.fromkeys(lines), key=lambda line: line.number)


def _in_order(events: Iterable[Event], names: tuple[str, ...]) -> Iterator[Event]:
    """The events of a session by time, whatever lines they stand in.

    Args:
        events: all of them.
        names: of events, in the order in which those of one moment follow one another.
    """
    ranks = {name: rank for rank, name in enumerate(names)}

    def order(event: Event) -> tuple[datetime, int, int, int]:
        return *event.order, ranks.get(event.name, len(ranks))

    for _, group in groupby(sorted(events, key=order), key=order):
        yield from sorted(group, key=lambda event: sorted((name, str(value)) for name, value in event.values.items()))


def _session_id(event: Event) -> str | None:
    return as_name(event.values.get("session.id")) or as_name(event.values.get("conversation.id"))
