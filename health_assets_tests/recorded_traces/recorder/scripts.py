"""The script that a program sends with its prompt: what the fake model is to answer, turn by turn.

A script stands in a message, between `[[` and `]]` on lines of their own, a turn a line:

    What is the weather in Oslo?
    [[
    call get_weather {"city": "Oslo"}
    say It is sunny in Oslo.
    ]]

| turn | the model |
|---|---|
| `say TEXT` | answers this text |
| `call TOOL JSON` | calls this tool with these arguments |
| `+ call TOOL JSON` | calls it in the same turn as the line before |
| `error STATUS TEXT` | answers this HTTP status, however often it is asked |
| `cut TEXT` | begins to answer this text and then loses the connection |

A script may hold another one, as the JSON of an argument: so an agent that is a tool gets a script of its own.
What a dialect of HTTP makes of a turn is told in `dialects/`.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

SCRIPT = re.compile(r"\[\[\s*\n(.*)\n\s*\]\]", re.DOTALL)
"""Greedy: the script within a script belongs to the outer one."""


REPEATING = (
    'call get_weather {"city": "Atlantis"}',
    *(f'call get_weather {{"city": "{city}"}}' for city in ("Oslo", "Oslo")),
    "say It is sunny in Oslo.",
)
"""A run with a failure that a later call repairs, and a call that it has made before."""


class ScriptError(Exception):
    """The program sent a script that cannot be followed: the program is wrong, not the framework."""


@dataclass(frozen=True)
class Message:
    """A message of the conversation so far; what the assistant says in one turn is one message."""

    role: Literal["system", "user", "assistant", "tool"]
    text: str = ""


@dataclass(frozen=True)
class Call:
    """A call of a tool that the model asks for."""

    tool: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Turn:
    """What the model does in one turn."""

    number: int
    text: str | None = None
    calls: tuple[Call, ...] = ()
    status: int = 200
    is_cut: bool = False

    @property
    def input_tokens(self) -> int:
        """The tokens that the model says it read."""
        return 20 + 10 * self.number

    @property
    def output_tokens(self) -> int:
        """The tokens that the model says it wrote."""
        return 5 + self.number


def next_turn(conversation: Sequence[Message]) -> Turn:
    """Find the script of the conversation and the turn that is due.

    The script of the system's message counts, else that of the last user's message that has one. The turns taken since
    then are the assistant's messages after it.

    Raises:
        ScriptError: There is no script, it has come to its end, or a line of it cannot be read.
    """
    found = [number for number, message in enumerate(conversation) if SCRIPT.search(message.text)]
    by_system = [number for number in found if conversation[number].role == "system"]
    by_user = [number for number in found if conversation[number].role == "user"]
    if not found:
        raise ScriptError(f"no message carries a script: {conversation}")
    at = (by_system or by_user or found)[-1]
    turns = turns_of(conversation[at].text)
    taken = sum(message.role == "assistant" for message in conversation[at + 1 :])
    if taken >= len(turns):
        raise ScriptError(f"the script has {len(turns)} turns, and all are taken: {conversation[at].text}")
    return turns[taken]


def turns_of(text: str) -> list[Turn]:
    """Read the script that this text carries."""
    match = SCRIPT.search(text)
    if match is None:
        raise ScriptError(f"no script: {text}")
    turns: list[Turn] = []
    for line in filter(None, map(str.strip, match[1].splitlines())):
        if line.startswith("+ "):
            before = turns.pop()
            joined = _turn(before.number, line[2:])
            turns.append(Turn(before.number, before.text, before.calls + joined.calls))
        else:
            turns.append(_turn(len(turns), line))
    return turns


def _turn(number: int, line: str) -> Turn:
    verb, _, rest = line.partition(" ")
    match verb:
        case "say":
            return Turn(number, text=rest)
        case "cut":
            return Turn(number, text=rest, is_cut=True)
        case "call":
            tool, _, arguments = rest.partition(" ")
            return Turn(number, calls=(Call(tool, json.loads(arguments or "{}")),))
        case "error":
            status, _, message = rest.partition(" ")
            return Turn(number, text=message, status=int(status))
    raise ScriptError(f"no such turn: {line}")


def script(*turns: str) -> str:
    """Write a script, to stand at the end of a prompt."""
    return "\n[[\n" + "\n".join(turns) + "\n]]"
