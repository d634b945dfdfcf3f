"""The server of the Model Context Protocol, as its SDK has it: which tools there are, and calls of them.

What belongs here: all that is the SDK's but transports. What does not: answers (`calls`), HTTP (`over_http`) and
standard input (`over_stdio`).
"""

from collections.abc import Callable
from typing import Any

from mcp import types
from mcp.server import Server, ServerRequestContext

from health_assets import __version__
from health_assets.apps.serving.mcp_server.backend import Backend
from health_assets.apps.serving.mcp_server.calls import call
from health_assets.apps.serving.mcp_server.tools import INSTRUCTIONS, TOOLS, Tool
from health_assets.apps.serving.service import RequestContext

Context = ServerRequestContext[Any, Any]


def mcp_server(
    backend: Backend, asked_of: Callable[[Context], RequestContext], on_fault: Callable[[str], None]
) -> Server[dict[str, Any]]:
    """The server.

    Args:
        backend: answers.
        asked_of: who sends a message.
        on_fault: told, for the operator, of a fault of ours.
    """

    async def list_tools(context: Context, _: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        caller = asked_of(context).caller
        offered = [_declared(tool) for tool in TOOLS.values() if tool.is_offered(caller)]
        return types.ListToolsResult(tools=offered)

    async def call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        called = await call(backend, asked_of(context), params.name, params.arguments or {}, on_fault)
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=called.text)], is_error=called.is_error
        )

    return Server(
        "health-assets",
        version=__version__,
        title="Health Assets",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _declared(tool: Tool) -> types.Tool:
    """A tool as clients read it."""
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=_without_titles(tool.arguments.model_json_schema()),
        annotations=types.ToolAnnotations(
            read_only_hint=not tool.is_change,
            destructive_hint=False,
            idempotent_hint=not tool.is_change,
            open_world_hint=False,
        ),
    )


def _without_titles(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema without titles and descriptions that repeat the names of classes."""
    properties = {
        name: {key: value for key, value in one.items() if key != "title"}
        for name, one in schema.get("properties", {}).items()
    }
    kept = {key: value for key, value in schema.items() if key not in ("title", "description")}
    return kept | {"properties": properties}
