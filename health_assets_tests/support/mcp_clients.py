"""The MCP SDK's own client over HTTP and over a process's pipes, as functions that wait for its answers.

What does not belong here: assertions.
"""

import json
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from health_assets.apps.serving.mcp_server.backend import LOADING
from health_assets_tests.support.projects import REPOSITORY, command_environment
from health_assets_tests.support.serving_made import PATIENCE_S, Served

Call = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Told:
    """What a client was told: names of tools, instructions, and an answer to each call."""

    tools: dict[str, Any]
    instructions: str
    answers: list["Answered"]


@dataclass(frozen=True)
class Answered:
    """An answer to a call."""

    text: str
    is_error: bool

    @property
    def json(self) -> Any:
        assert not self.is_error, self.text
        return json.loads(self.text)


def over_http(server: Served, *calls: Call, token: str | None = None, mode: str = "auto") -> Told:
    """Ask a server at `/mcp`."""

    async def ask() -> Told:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        async with create_mcp_http_client(headers=headers) as client:
            return await _told(
                streamable_http_client(f"http://127.0.0.1:{server.port}/mcp", http_client=client), mode, calls
            )

    return anyio.run(ask)


def over_stdio(
    folder: Path, *calls: Call, arguments: Sequence[str] = (), mode: str = "auto", **environment: str
) -> Told:
    """Ask `health-assets mcp`, a process of its own whose working directory is a folder."""
    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "health_assets", "mcp", *arguments],
        env=command_environment() | {"PYTHONPATH": str(REPOSITORY)} | environment, cwd=folder,
    )  # fmt: skip
    return anyio.run(_told, stdio_client(parameters), mode, calls)


async def _told(transport: AbstractAsyncContextManager[Any], mode: str, calls: Sequence[Call]) -> Told:
    async with Client(transport, mode=mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        answers = [await _answer(client, *call) for call in calls]
        return Told(tools, client.instructions or "", answers)


async def _answer(client: Client, name: str, arguments: dict[str, Any]) -> Answered:
    """The answer to a call; as it is said, again where a machine with much else to do has not loaded an hour yet."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        result = await client.call_tool(name, arguments)
        [content] = result.content
        answered = Answered(content.text, bool(result.is_error))  # type: ignore[union-attr]
        if answered.text != LOADING or time.monotonic() > deadline:
            return answered
