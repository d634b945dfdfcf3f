"""A call of a tool: from its name and arguments to a text, or to a sentence that says why there is none.

What belongs here: what is the same for every call. What does not: the protocol (`protocol`).
"""

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from health_assets.apps.serving.mcp_server.backend import Backend, require_read
from health_assets.apps.serving.mcp_server.bounded import bounded
from health_assets.apps.serving.mcp_server.tools import TOOLS
from health_assets.apps.serving.service import RequestContext
from health_assets.core.errors import HealthAssetsError
from health_assets.core.formatting import nearest

BROKEN = "Something went wrong here; the operator is told."


@dataclass(frozen=True, slots=True)
class Called:
    """What came of a call.

    Args:
        text: the answer in JSON, or a sentence.
        is_error: whether it is a sentence that says why there is no answer.
    """

    text: str
    is_error: bool = False


async def call(
    backend: Backend, asked: RequestContext, name: str, arguments: Mapping[str, Any], on_fault: Callable[[str], None]
) -> Called:
    """Call a tool.

    Args:
        backend: answers.
        asked: the request.
        name: the tool.
        arguments: as they were sent.
        on_fault: told, for the operator, of a fault of ours.
    """
    try:
        require_read(asked)
        tool = TOOLS.get(name)
        if tool is None:
            raise HealthAssetsError(f"There is no tool {name!r}{nearest(name, TOOLS)}")
        wanted = tool.arguments.model_validate(dict(arguments))
        return Called(bounded(await tool.run(backend, asked, wanted)))
    except ValidationError as error:
        return Called(_first_fault(error), is_error=True)
    except HealthAssetsError as error:
        return Called(_sentence(str(error)), is_error=True)
    except Exception:  # a fault of ours: the operator gets the traceback, the client a sentence
        on_fault(f"MCP tool {name!r}: {traceback.format_exc()}")
        return Called(BROKEN, is_error=True)


def _first_fault(error: ValidationError) -> str:
    """The first fault of some arguments, as a sentence."""
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(map(str, first["loc"]))
    return _sentence(f"{place}: {first['msg'].removeprefix('Value error, ')}" if place else first["msg"])


def _sentence(text: str) -> str:
    """The text on one line, with a stop at its end."""
    line = " ".join(text.split())
    return line if line.endswith((".", "?", "!")) else f"{line}."
