"""The page of the data says what is missing, and everything that it says is what the warehouse holds."""

import csv
import io
import json
import re
import shlex
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from typer.main import get_command

from health_assets.apps.serving.access_scope import AccessScope
from health_assets.apps.serving.history import datasets, exporter
from health_assets.apps.serving.history.exporter import fill
from health_assets.apps.serving.history.reading import History
from health_assets.apps.serving.ownership import Ownership
from health_assets.apps.serving.pages import data_checks
from health_assets.apps.serving.pages.data_hours import hours_of, last_days, missing_hours
from health_assets.apps.serving.pages.data_page import NO_AMOUNTS, NO_TEXT, NOT_YOURS, Part, WantedData, data_page
from health_assets.apps.serving.pages.page import Page
from health_assets.apps.serving.pages.scoped_history import ScopedHistory
from health_assets.cli.commands import app
from health_assets.core.hours import HOUR
from health_assets.core.targets import Targets
from health_assets.systems.error_budget import FORMULA_VERSION
from health_assets.systems.suites import SUITES
from health_assets.warehouse.fingerprints import EVERY_LINE_IS_STILL_THERE
from health_assets_tests.support.broken_data_made import (
    AWAITED,
    CHECKS,
    EMPTY,
    HOSTILE_FILE,
    LATE,
    MISSING,
    NOW,
    PARTIAL,
    REJECTED,
    STEPS,
    broken_world,
)
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.pages_made import World, fill_all, world_of
from health_assets_tests.support.projects import Project, hours_from

NEWEST = START + 11 * HOUR
FULL, EVERYBODYS, RED = AccessScope(is_full=True), AccessScope(), AccessScope(is_full=True, teams=frozenset({"red"}))
NOBODY = {"signed_in": None, "csrf": None, "has_tokens": False, "target": "/ui/data", "is_led_here": False}
"""The frame of a page for somebody who has not signed in, and need not."""
PARTS: tuple[Part, ...] = ("checks", "rejected", "files", "hours", "formulas")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return broken_world(tmp_path_factory.mktemp("broken"))


def seen(world: World, view: AccessScope = FULL, **changes: Any) -> ScopedHistory:
    return world.look(view, **{"hour": NEWEST, "now": NOW, "is_newest": True, **changes})


def told(world: World, view: AccessScope = FULL, **wanted: Any) -> dict[str, Any]:
    return dict(data_page(seen(world, view), WantedData(**wanted)).data)


def html(look: ScopedHistory, page: Page) -> str:
    return page.written("html", {**look.frame(), **NOBODY, "missing": 0, "page_name": page.name})[0].decode()


def shown(world: World, view: AccessScope = FULL, **wanted: Any) -> str:
    look = seen(world, view)
    return html(look, data_page(look, WantedData(**wanted)))


def states(world: World, view: AccessScope = FULL) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for one in told(world, view)["hours"]:
        found.setdefault(one["state"], []).append(one["hour"])
    return found


def test_the_first_sentence_names_all_that_is_missing(world: World) -> None:
    said = told(world)
    assert said["answer"] == (
        "No: of the 13 hours to 2026-06-07 13:00 UTC, 2 hours are missing, 1 hour is late, 1 hour lacks some tables, "
        "2 checks failed, 2 logs cannot be read, and 7 lines are lost with logs that are gone."
    )
    assert not said["is_complete"]
    assert [one["text"] for one in said["remarks"]] == ["5 lines were rejected", "2 checks warned"]
    assert "Is the data complete?" in shown(world)


def test_looking_back_the_answer_is_about_the_hours_until_then(world: World) -> None:
    look = seen(world, hour=START + HOUR, is_newest=False)
    said = data_page(look, WantedData()).data
    assert said["answer"].startswith("No: of the 2 hours to 2026-06-07 02:00 UTC, 2 logs cannot be read"), said[
        "answer"
    ]
    assert len(said["hours"]) == 14, "the grid is of the whole history"


def test_complete_data_is_called_so(tmp_path: Path) -> None:
    project = Project(tmp_path)
    hours = hours_from(START, 2)
    project.write_log("a.jsonl", [line(execution(f"{hour:%H}", "a", hour)) for hour in hours])
    project.materialize(hours, only=STEPS)
    world = world_of(project, hours)
    said = data_page(world.look(), WantedData()).data
    assert said["answer"] == "Yes, every hour of the 2 hours to 2026-06-07 02:00 UTC is there, and every check holds."
    assert (said["is_complete"], said["missing"], said["remarks"]) == (True, [], [])


def test_each_hour_has_the_state_that_the_warehouse_tells(world: World) -> None:
    made = {hour: (at, rows) for hour, at, rows in world.project.query(
        "SELECT hour, materialized_at, rows FROM partition_states WHERE asset = 'agent_health'"
    )}  # fmt: skip
    runs = dict(world.project.query("SELECT hour, count(*) FROM executions GROUP BY hour"))
    hours = told(world)["hours"]
    assert [one["hour"] for one in hours] == [START + number * HOUR for number in range(14)]
    for one in hours:
        at, agents = made.get(one["hour"], (None, None))
        assert (one["materialized_at"], one["agents"]) == (at, agents)
        if at is not None:
            assert one["executions"] == runs.get(one["hour"], 0)
    others = {"partial": [PARTIAL], "empty": [EMPTY], "late": [LATE], "awaited": [AWAITED]}
    assert states(world) == {
        "materialized": sorted(made.keys() - {PARTIAL, EMPTY}),
        "missing": MISSING,
        **others,
    }


def test_an_hour_with_lines_of_a_log_that_cannot_be_read_is_there(world: World) -> None:
    [hour] = [hour for (hour,) in world.project.query("SELECT hour FROM executions WHERE source_file = 'shut.jsonl'")]
    [one] = [one for one in told(world)["hours"] if one["hour"] == hour]
    assert (one["state"], one["executions"]) == ("materialized", 4), "it keeps the rows that it had"
    assert str(world.project.raw) not in shown(world), "where the raw root lies is nobody's concern"


def test_the_commands_name_exactly_the_hours_that_lack_something(world: World) -> None:
    ranges = told(world)["to_run"]
    assert [(one["state"], one["hours"]) for one in ranges] == [("late", 1), ("missing", 2), ("partial", 1)]
    assert ranges[2]["lacking"] == ["tool_health"]
    program = get_command(app)
    for one in ranges:
        _, command, *arguments = shlex.split(one["command"])
        context = program.commands[command].make_context(command, arguments)  # type: ignore[attr-defined]
        given = f"{one['from']:%Y-%m-%dT%H}", f"{one['to']:%Y-%m-%dT%H}"
        assert (context.params["start"], context.params["end"]) == given
        assert one["command"] in shown(world)


def test_checks_are_counted_as_the_warehouse_has_them_and_failed_ones_come_first(world: World) -> None:
    expected = {
        (asset, name): (hours, failed, unexpected, looked_at, severity)
        for asset, name, hours, failed, unexpected, looked_at, severity in world.project.query(
            "SELECT asset, expectation, count(*), count(*) FILTER (NOT success), sum(unexpected_count)::BIGINT, "
            "sum(element_count)::BIGINT, any_value(severity) FROM expectation_results GROUP BY 1, 2"
        )
    }
    checks = data_checks.checks_of(seen(world), seen(world).back(2))
    assert {
        (one["asset"], one["expectation"]): (
            one["checked_hours"], one["failed_hours"], one["unexpected_rows"], one["checked_rows"], one["severity"]
        )
        for one in checks
    } == expected  # fmt: skip
    said = told(world)
    assert [one["expectation"] for one in said["failed_checks"]] == [
        "health_score_is_between_0_and_100", "states_are_known", "every_line_is_still_there", "windows_are_covered",
    ]  # fmt: skip
    assert [(one["asset"], len(one["checks"])) for one in said["kept_checks"]] == [("raw_logs", 1), ("executions", 1)]
    assert said["failed_checks"][0]["meaning"] == "health_score is from 0 to 100"


@pytest.mark.parametrize("days", ["2", "7"])
def test_every_cell_of_the_grid_is_what_came_of_that_check_in_that_hour(world: World, days: Any) -> None:
    rows = {
        (row["asset"], row["expectation"], row["hour"]): row for row in told(world, part="checks", days=days)["checks"]
    }
    hours = list(data_checks.checked_hours(seen(world), int(days)))
    assert hours[0] == START, "no hour from before the first check"
    for one in data_checks.checks_of(seen(world), data_checks.checked_hours(seen(world), int(days))):
        for hour, cell in zip(hours, one["cells"], strict=True):
            row = rows.get((one["asset"], one["expectation"], hour))
            failed = "x" if one["severity"] == "error" else "w"
            assert cell == ("." if row is None else "o" if row["success"] else failed)
    assert len(rows) == len(CHECKS) * 10


def test_checks_are_drawn_where_no_list_of_time_zones_is(world: World) -> None:
    """A zone that no machine knows is what UTC is on one without such a list."""
    hours = data_checks.checked_hours(seen(world), 2)
    rows = data_checks._rows(seen(world), hours)
    own = np.zeros(rows.num_rows, np.int64)
    place = rows.column_names.index("hour")
    there = rows.set_column(place, "hour", rows.column("hour").cast(pa.timestamp("us", "No/Where")))
    grid, errors = data_checks._grid(there, own, hours)
    expected, expected_errors = data_checks._grid(rows, own, hours)
    assert (grid.tolist(), errors) == (expected.tolist(), expected_errors)


def test_each_outcome_has_a_shape_of_its_own() -> None:
    drawn = data_checks.paths("ooxw.o", 10)
    assert drawn["o"] == "M0 8h20v3h-20zM50 8h10v3h-10z", "hours in a row are one bar"
    assert len({re.sub(r"[-\d. ]", "", drawn[kind]) for kind in ("x", "w", "cross")}) == 3
    assert drawn.keys() == {"o", "x", "w", ".", "cross"}


def test_every_check_says_in_words_what_must_be_true() -> None:
    for suite in SUITES.values():
        for check in suite.checks:
            assert check.meaning, check.name
    words = {check.name: check.meaning for check in SUITES["executions"].checks}
    assert words["execution_id_is_unique_within_the_hour"] == (
        "no two rows have the same hour, execution_id, agent_id and agent_id_reported"
    )
    sources = "task_source is stated or evaluation"
    assert words["values_are_known"].startswith(f"status is success or failure; {sources}; condition is baseline, ")


def test_the_check_for_lost_lines_is_the_one_that_runs_write() -> None:
    assert data_checks.LINES_ARE_LOST == EVERY_LINE_IS_STILL_THERE


def test_rejected_lines_are_counted_by_reason_with_their_first_lines(world: World) -> None:
    [(lines,)] = world.project.query("SELECT sum(lines)::BIGINT FROM rejected_records")
    reasons = told(world)["rejected"]
    assert sum(one["lines_7d"] for one in reasons) == sum(one["lines_24h"] for one in reasons) == lines == len(REJECTED)
    assert {one["reason"].partition(" ")[0]: one["lines_24h"] for one in reasons} == {
        "not": 2,
        "type": 2,
        "started_at": 1,
    }
    first = world.project.query("SELECT line_number, reason, left(raw, 500) FROM rejected_records ORDER BY line_number")
    samples = [(one["line_number"], one["detail"], one["raw"]) for row in reasons for one in row["samples"]]
    assert sorted(samples) == first


def test_secrets_in_rejected_lines_stay_redacted(world: World) -> None:
    assert "password=[redacted]" in shown(world)
    assert "hunter2" not in shown(world)


@pytest.mark.parametrize(
    ("text", "lines"), [("HEARTBEAT", [4]), ("json", [2, 3]), ("started_at", [6]), ("nothing", [])]
)
def test_search_finds_rejected_lines_by_reason_or_text(world: World, text: str, lines: list[int]) -> None:
    found = told(world, line=text)["rejected"]
    if text == "json":  # which the name of the file holds, too
        found = [one for one in found if "JSON" in one["reason"]]
    assert [sample["line_number"] for one in found for sample in one["samples"]] == lines
    if not lines:
        assert "No rejected line is like that." in shown(world, line=text)


def test_a_log_with_a_reason_for_every_line_gives_few_reasons(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets, "REASONS_PER_HOUR", 2)
    folder = world.project.folder / "few"
    fill_all(world.project, folder, world.hours.end)
    rows = History(folder).between("rejected", world.hours).to_pylist()
    assert {row["reason"]: row["lines"] for row in rows}.keys() >= {"not valid JSON", datasets.OTHER_REASONS}
    assert sum(row["lines"] for row in rows if row["place"] == 0) == len(REJECTED)
    assert {type(row["lines"]) for row in rows} == {int}, "JSON writes no decimals"


def test_files_are_those_of_the_ledger_worst_first(world: World) -> None:
    known = {name: row for name, *row in world.project.query(
        "SELECT source_file, lines, rejected, size_bytes, copy_of, gone_at FROM raw_files"
    )}  # fmt: skip
    files = told(world)["files"]
    names = ("lines", "rejected", "size_bytes", "copy_of", "gone_at")
    assert {one["source_file"]: [one[name] for name in names] for one in files if one["lines"] is not None} == known
    assert {one["source_file"] for one in files} == {*known, "never.jsonl"}
    assert [(one["source_file"], one["state"]) for one in files[:4]] == [
        ("shut.jsonl", "unreadable"), ("never.jsonl", "unreadable"), ("gone.jsonl", "gone"), (HOSTILE_FILE, "rejected"),
    ]  # fmt: skip
    assert (files[-1]["source_file"], files[-1]["state"]) == ("copy.jsonl", "copy")
    assert files[0]["notes"] == ["it is a link that leads nowhere, to nowhere"]


def test_search_finds_files_by_part_of_their_name(world: World) -> None:
    assert {one["source_file"] for one in told(world, log="COPY")["files"]} == {"copy.jsonl", "z/copy.jsonl"}
    assert "No raw log is called so." in shown(world, log="nobody")
    assert told(world, files=2)["files"] == []


def test_hours_of_an_older_formula_are_counted_by_system(world: World) -> None:
    systems = {one["system"]: one for one in told(world)["formulas"]}
    older = systems["error_budget"]
    assert (older["older_hours"], older["older_versions"], older["newest_version"]) == (2, ["0.9"], FORMULA_VERSION)
    assert older["command"] == "health-assets materialize --from 2026-06-07T00 --to 2026-06-07T02"
    assert systems["agent_health_model"]["older_hours"] == 0
    assert systems["survey"]["newest_hour"] is None


def test_who_sees_some_teams_sees_no_logs_and_no_counts_of_all(world: World) -> None:
    said, page = told(world, RED), shown(world, RED)
    assert (said["rejected"], said["files"], said["file_counts"]) == (None, None, None)
    assert "unexpected_rows" not in said["failed_checks"][0]
    assert "executions" not in said["hours"][0]
    assert states(world, RED) == not_empty(states(world))
    assert NOT_YOURS in page.replace("&#39;", "'")
    for word in ("shut.jsonl", "gone.jsonl", "heartbeat", "bold"):
        assert word not in page
        assert word not in json.dumps(said, default=str)
    for part in ("rejected", "files"):
        assert told(world, RED, part=part)[part] == []
    assert "element_count" not in told(world, RED, part="checks")["checks"][0]


def not_empty(known: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """The states of hours as they are told to who must not know whether anybody ran."""
    told_of = {**known, "materialized": sorted(known["materialized"] + known["empty"])}
    del told_of["empty"]
    return told_of


def test_no_count_tells_how_much_a_personal_agent_does(world: World) -> None:
    said, page = told(world, EVERYBODYS), shown(world, EVERYBODYS).replace("&#39;", "'")
    assert all({"executions", "agents", "rejected"}.isdisjoint(one) for one in said["hours"])
    assert all(
        {"checked_rows", "unexpected_rows", "newest_unexpected"}.isdisjoint(one) for one in said["failed_checks"]
    )
    assert {"element_count", "unexpected_count"}.isdisjoint(told(world, EVERYBODYS, part="checks")["checks"][0])
    assert states(world, EVERYBODYS) == not_empty(states(world))
    amounts = ("lines", "rejected", "size_bytes", "plain_bytes", "modified_at", "gone_at")
    for files in (said["files"], told(world, EVERYBODYS, part="files")["files"]):
        assert {one[name] for one in files for name in amounts} == {None}
        assert [one["source_file"] for one in files[:4]] == ["never.jsonl", "shut.jsonl", "gone.jsonl", HOSTILE_FILE]
    names = [one["source_file"] for one in said["files"] if one["state"] == "read"]
    assert "mine.jsonl" in names and names == sorted(names)
    assert all("line_number" not in sample for one in said["rejected"] for sample in one["samples"])
    assert NO_AMOUNTS in page
    assert said["answer"].endswith("2 logs cannot be read, and lines are lost with logs that are gone.")
    assert not said["is_complete"]


def test_counts_are_told_where_nobody_has_an_agent_of_its_own(world: World) -> None:
    look = seen(world, EVERYBODYS, ownership=Ownership(Targets()))
    everybodys, full = data_page(look, WantedData()).data, told(world)
    for name in ("answer", "hours", "failed_checks", "files", "rejected"):
        assert everybodys[name] == full[name], name


def test_the_text_of_lines_is_for_the_full_view_where_any_agent_is_somebody_s_own(world: World) -> None:
    page = shown(world, EVERYBODYS).replace("&#39;", "'")
    assert NO_TEXT in page
    for word in ("heartbeat", "[redacted]", "mine-1"):
        assert word not in page
        assert word not in json.dumps(told(world, EVERYBODYS, line="mine-1"), default=str)
    assert told(world, EVERYBODYS, line="mine-1")["rejected"] == [], "nor is it found by search"
    assert told(world, EVERYBODYS)["rejected"][0]["lines_24h"] == 2
    nobody_s = seen(world, EVERYBODYS, ownership=Ownership(Targets()))
    assert "heartbeat" in html(nobody_s, data_page(nobody_s, WantedData()))


def test_names_and_lines_from_logs_are_shown_as_text(world: World) -> None:
    page = shown(world)
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(&#34;1&#34;)" in page
    assert "<b>bold" not in page
    assert "\u202e" not in page
    assert "\x1b" not in page
    assert "\\u202e\\u001b[31m.jsonl" in page
    assert "x" * 600 not in page
    assert "style=" not in page and "onclick" not in page


@pytest.mark.parametrize("part", PARTS)
def test_each_part_has_a_twin_of_all_its_rows(world: World, part: Part) -> None:
    look = seen(world)
    page = data_page(look, WantedData(part=part))
    body, kind = page.written("csv", look.frame())
    rows = list(csv.DictReader(io.StringIO(body.decode())))
    as_json = json.loads(page.written("json", look.frame())[0])
    assert kind.startswith(b"text/csv")
    assert len(rows) == len(as_json[part]) == len(page.data[part]) > 0
    assert rows[0].keys() == as_json[part][0].keys() or part == "formulas"


def test_the_whole_page_has_a_twin_in_json(world: World) -> None:
    look = seen(world)
    body, _ = data_page(look, WantedData()).written("json", look.frame())
    assert json.loads(body)["answer"].startswith("No: ")


def test_an_empty_history_says_so_in_each_part(tmp_path: Path) -> None:
    look = ScopedHistory(
        history=History(tmp_path),
        hour=START,
        view=FULL,
        ownership=Ownership(Targets()),
        now=NOW,
        late_after=timedelta(minutes=30),
        is_newest=True,
    )
    page = html(look, data_page(look, WantedData()))
    for sentence in (
        "No: no hour has been materialized.", "No hour has been materialized.", "No check has looked at these hours.",
        "No line of these 7 days was rejected.", "No raw log has been read.", "No result has been made.",
    ):  # fmt: skip
        assert sentence in page
    for part in PARTS:
        assert data_page(look, WantedData(part=part)).data[part] == []


def test_hours_that_are_still_to_be_copied_are_not_missing(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert missing_hours(seen(world), 7) == [*MISSING, LATE]
    monkeypatch.setattr(exporter, "HOLD_S", 0.0)
    told = fill(world.project.settings, tmp_path, world.project.warehouse, NOW)
    history = History(tmp_path)
    assert history.missing == told["missing"] > 0
    assert missing_hours(seen(world, history=history), 7) == [*MISSING, LATE]


def test_hours_beyond_the_history_are_not_missing(world: World, tmp_path: Path) -> None:
    settings = world.project.settings.model_copy(update={"history_days": 1})
    now = START + 30 * HOUR
    fill_all(world.project, tmp_path, now, settings)
    assert missing_hours(seen(world, history=History(tmp_path), now=now), 7)[:3] == [*MISSING, LATE]


@pytest.mark.parametrize("back_h", range(0, 12, 3))
@pytest.mark.parametrize("days", [1, 7])
def test_missing_hours_are_those_that_the_page_of_the_data_tells(world: World, back_h: int, days: int) -> None:
    for changes in ({"now": NOW + back_h * HOUR}, {"hour": NEWEST - back_h * HOUR, "is_newest": False}):
        look = seen(world, **changes)
        told = last_days(look, hours_of(look), days)
        assert missing_hours(look, days) == [one["hour"] for one in told if one["materialized_at"] is None]


def test_the_server_answers_with_the_page_its_twins_and_a_refusal(world: World) -> None:
    with world.served(is_ready=False) as server:  # for no agent has a document here
        page = server.ask("/ui/data?hour=2026-06-07T09")
        assert page.status == 200
        assert "hours are missing" in page.body.decode()
        assert "script-src 'self'" in page.headers["content-security-policy"]
        for part in PARTS:
            reply = server.ask(f"/ui/data?hour=2026-06-07T11&part={part}&format=csv")
            assert (reply.status, reply.headers["content-type"]) == (200, "text/csv; charset=utf-8")
            assert reply.body.count(b"\n") > 1
        assert server.ask("/ui/data?part=secrets&format=csv").status == 422
        assert server.ask("/ui/data?hour=2020-01-01T00").status == 404
        assert [fault for fault in server.faults if "agent_health_state" not in fault] == []
