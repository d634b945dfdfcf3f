"""The HTTP dialects that the fake model speaks, one module each.

A dialect knows how a conversation, an answer, its events when streamed, and an error look on the wire. What is answered is
the script's (`scripts`); sockets are the server's (`fake_models`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from health_assets_tests.recorded_traces.recorder.scripts import Message, Turn

Json = dict[str, Any]
CREATED = 1_700_000_000
"""The moment at which every answer says it was made, in seconds since 1970."""


@dataclass(frozen=True)
class Exchange:
    """A question to the model and the turn that answers it; `number` counts the questions since the server began."""

    number: int
    model: str
    turn: Turn
    asked: Json = field(default_factory=dict)
    """The body of the request."""

    def id(self, prefix: str, part: int = 0) -> str:
        """Make the id that the answer, or a part of it, goes by."""
        return f"{prefix}{self.number:06d}{part:02d}"

    @property
    def dated_model(self) -> str:
        """The model as the answer names it: services answer with the dated name of what was asked for."""
        return DATED.get(self.model, self.model)

    @property
    def words(self) -> list[str]:
        """The text in the pieces in which it is streamed."""
        text = self.turn.text or ""
        words = text.split(" ")
        return [word if number == 0 else f" {word}" for number, word in enumerate(words)] if text else []


DATED = {
    "gpt-4o-mini": "gpt-4o-mini-2024-07-18",
    "gpt-4o": "gpt-4o-2024-08-06",
    "gpt-4.1-mini": "gpt-4.1-mini-2025-04-14",
    "claude-sonnet-4-5": "claude-sonnet-4-5-20250929",
    "claude-haiku-4-5": "claude-haiku-4-5-20251001",
}


class Dialect(Protocol):
    """One way to ask a model over HTTP."""

    @staticmethod
    def model(path: str, body: Json) -> str:
        """Find the model that is asked."""

    @staticmethod
    def is_streamed(path: str, body: Json) -> bool:
        """Tell whether the answer is wanted in events."""

    @staticmethod
    def conversation(body: Json) -> list[Message]:
        """Read the conversation so far."""

    @staticmethod
    def answer(exchange: Exchange) -> Json:
        """Write the whole answer."""

    @staticmethod
    def events(exchange: Exchange) -> Iterator[str]:
        """Write the answer as server-sent events, each with its blank line."""

    @staticmethod
    def error(turn: Turn) -> Json:
        """Write the body of an error."""


def text_of(content: Any) -> str:
    """Read the text of a message's content, which is a string or a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        return str(content.get("text") or "") or text_of(content.get("content"))
    return "\n".join(filter(None, map(text_of, content or [])))
