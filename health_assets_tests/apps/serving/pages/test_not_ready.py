"""Pages of a server that has nothing to show yet: 503, when to ask again, and the reason."""

import re
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from health_assets.apps.serving.access_scope import EVERYBODYS
from health_assets.apps.serving.auth import Caller
from health_assets.apps.serving.history.updater import Updater
from health_assets.apps.serving.pages.fleet_page import Wanted, fleet_page
from health_assets.apps.serving.pages.page_service import LOADING, NOTHING_YET, Pages
from health_assets.apps.serving.service import RequestContext
from health_assets.core.settings import Settings
from health_assets_tests.support.serving_made import readers_in_this_process, served

READER = Caller(name=None, standing="read", view=EVERYBODYS)


@pytest.mark.parametrize("path", ["/", "/ui/agents/a", "/ui/data", "/ui/incidents", "/ui/line?file=a&number=1"])
def test_before_there_is_data_a_page_is_not_missing_but_not_ready(tmp_path: Path, path: str) -> None:
    with readers_in_this_process(), served(tmp_path / "none.duckdb", pages=True, is_ready=False) as running:
        reply = running.ask(path)
    assert (reply.status, reply.headers["retry-after"]) == (503, "5")
    assert re.search('<meta http-equiv="refresh" content="5">', reply.body.decode()), "a browser asks again by itself"


@pytest.mark.parametrize(("is_empty", "sentence"), [(False, LOADING), (True, NOTHING_YET)])
def test_a_page_says_whether_it_loads_or_there_is_nothing(tmp_path: Path, is_empty: bool, sentence: str) -> None:
    settings = Settings(warehouse=str(tmp_path / "none.duckdb"))
    updater = Updater(settings, lambda _: None)
    updater.is_empty = is_empty
    asked = RequestContext(headers=[], caller=READER)
    answer = Pages(settings, updater).answer(asked, lambda look: fleet_page(look, Wanted()), hour=None, how="html")
    assert answer.status == 503 and sentence in answer.body.decode()


def test_an_agent_that_nobody_knows_stays_missing(tmp_path: Path) -> None:
    updater = SimpleNamespace(
        history=SimpleNamespace(
            newest=lambda _: datetime(2026, 6, 7, tzinfo=UTC), hours=lambda _: [], missing=0, version=1
        )
    )
    pages = Pages(Settings(warehouse=str(tmp_path / "none.duckdb")), updater)  # type: ignore[arg-type]
    asked = RequestContext(headers=[], caller=READER)
    answer = pages.answer(asked, lambda look: fleet_page(look, Wanted()), hour="2026-06-07T01", how="html")
    assert answer.status == 404 and b"retry-after" not in dict(answer.headers)
