"""uvicorn's protocol still has all that `protocol` takes from it and says anew; how that works is tested elsewhere."""

import asyncio
import inspect
from http import HTTPStatus
from typing import Any

import pytest
import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from health_assets.apps.serving import protocol
from health_assets.apps.serving.protocol import LimitedProtocol
from health_assets.apps.serving.quotas import ConnectionQuota

OWN = {"__init__", "_address", "_count", "_expect_head", "_limit_sending", "_refuse", "_stop_send_timer", "_stop_timer", "_take_host_of_target"}  # fmt: skip
SAID_ANEW = sorted(
    name for name, member in vars(LimitedProtocol).items() if inspect.isfunction(member) and name not in OWN
)


@pytest.mark.parametrize("name", SAID_ANEW)
def test_a_method_that_is_said_anew_is_one_of_uvicorns_and_takes_the_same(name: str) -> None:
    stock, own = getattr(HttpToolsProtocol, name), getattr(LimitedProtocol, name)
    assert list(inspect.signature(own).parameters) == list(inspect.signature(stock).parameters)


def test_no_helper_of_ours_hides_one_of_uvicorns() -> None:
    assert {name for name in OWN - {"__init__"} if hasattr(HttpToolsProtocol, name)} == set()


async def _made() -> tuple[LimitedProtocol, HttpToolsProtocol]:
    async def app(_scope: Any, _receive: Any, _send: Any) -> None: ...

    config = uvicorn.Config(app, limit_concurrency=7)
    config.load()
    given = {"config": config, "server_state": ServerState(), "app_state": {}}
    return LimitedProtocol(quota=ConnectionQuota(1), **given), HttpToolsProtocol(**given)


def test_a_connection_has_the_fields_that_are_read_and_no_others_are_overwritten() -> None:
    own, stock = asyncio.run(_made())
    read = {
        "client",
        "connections",
        "headers",
        "limit_concurrency",
        "loop",
        "pipeline",
        "server_state",
        "transport",
        "url",
    }
    assert read - vars(stock).keys() - {"url", "headers"} == set()
    assert vars(stock)["limit_concurrency"] == 7
    assert (own.limit_concurrency, own._most_connections) == (None, 7)
    ours = {name for name in vars(own) if name not in vars(stock)}
    assert all(name.startswith("_") for name in ours)
    assert list(own.server_state.default_headers) == []


def test_a_cycle_can_be_told_that_its_client_is_gone() -> None:
    source = inspect.getsource(RequestResponseCycle.__init__)
    for field in ("disconnected", "message_event", "response_complete"):
        assert f"self.{field} = " in source


def test_status_lines_are_bytes_that_end_their_line() -> None:
    for status, _ in (
        protocol.NOT_HTTP,
        protocol.LARGE_HEAD,
        protocol.TOO_SLOW,
        protocol.TOO_MANY,
        protocol.TOO_MANY_OF_ONE,
    ):
        assert STATUS_LINE[status] == f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n".encode()
