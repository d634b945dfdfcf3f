"""The pages of sessions say what the tables say, to those who may see it, also while the warehouse is busy."""

import io
import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from pydantic import SecretStr
from rich.console import Console

from health_assets.apps.serving import session_runs
from health_assets.apps.serving import sessions as asked_sessions
from health_assets.apps.serving.access_scope import EVERYBODYS, AccessScope
from health_assets.apps.serving.client import Reader
from health_assets.apps.serving.pages import sessions_page as sessions
from health_assets.apps.serving.pages.agent_page import WantedOfAgent, agent_page
from health_assets.apps.serving.pages.session_page import Wanted, session_page
from health_assets.apps.serving.pages.session_timeline import GAPS_SHARE, LEAST_WIDTH, WIDTH, Timeline
from health_assets.apps.serving.pages.sessions_page import sessions_page
from health_assets.apps.serving.reader_process import read_session, read_session_runs
from health_assets.apps.serving.sessions import SessionAnswer
from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HOUR, HourRange
from health_assets.systems.session_scores.report import print_block
from health_assets.warehouse.store import Warehouse
from health_assets_tests.support.logs_made import START, cancellation, execution, line
from health_assets_tests.support.pages_made import FULL, World, world_of
from health_assets_tests.support.projects import FLEET, Project
from health_assets_tests.support.serving_made import Served, readers_in_this_process, served
from health_assets_tests.support.session_pages_made import HOSTILE, SECRET, html_of, look_at, made

STEPS = [*FLEET, "computed_signals", "evaluated_signals", "trace_risks", "session_scores"]
"""The steps that make what the pages of sessions show."""
RED, BLUE = AccessScope(teams=frozenset({"red"})), AccessScope(teams=frozenset({"blue"}))
BEARER = {"Authorization": "Bearer secret"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return made(tmp_path_factory.mktemp("sessions"))


def serving(world: World) -> dict[str, Any]:
    return {
        "targets": world.project.targets_path,
        "pages": True,
        "history": world.project.folder / "history",
        "history_days": 400,
        "anonymous_role": "read",
        "token": SecretStr("secret"),
    }


@pytest.fixture(scope="module")
def server(world: World) -> Iterator[Served]:
    with (
        readers_in_this_process(),
        served(world.project.warehouse_path, **serving(world)) as running,
    ):
        yield running


def listed(world: World, view: AccessScope = FULL, **wanted: Any) -> list[dict[str, Any]]:
    return list(sessions_page(look_at(world, view), sessions.Wanted(**wanted)).data["listed"])


def ids(world: World, view: AccessScope = FULL, **wanted: Any) -> list[str]:
    return [one["session_id"] for one in listed(world, view, **wanted)]


def runs(world: World, session_id: str, until: datetime | None = None) -> dict[str, Any]:
    found = read_session_runs(world.project.settings, session_id, until, world.hours.end)
    assert found is not None
    return json.loads(json.dumps(found["answer"]))


def told(world: World, session_id: str, view: AccessScope = FULL) -> dict[str, Any]:
    wanted = Wanted(session_id=session_id, runs=runs(world, session_id))
    return dict(session_page(look_at(world, view), wanted).data)


# -- the list --


def failed_sessions(folder: Path) -> World:
    """13 failed runs of `outage`, one of 14 of `mostly good`, and one good run of `quiet`; none has a signal."""
    project, hours = Project(folder), HourRange(START, START + 2 * HOUR)
    at = [START + timedelta(minutes=4 * number) for number in range(1, 15)]
    failed = {"status": "failure", "input_tokens": 100, "output_tokens": 10, "cost_usd": 0.1}
    project.write_log(
        "a.jsonl",
        [
            *(
                line(execution(f"o{n}", "a", at[n], 30.0, session_id="outage", error=f"refused {n}\nby host", **failed))
                for n in range(13)
            ),
            *(line(execution(f"m{n}", "a", at[n] + HOUR, session_id="mostly good")) for n in range(13)),
            line(execution("m13", "a", at[13] + HOUR, session_id="mostly good", status="failure")),
            line(execution("q", "a", START + HOUR, session_id="quiet")),
        ],
    )
    project.materialize(hours, only=STEPS)
    return world_of(project, hours)


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> World:
    return failed_sessions(tmp_path_factory.mktemp("failed"))


def test_a_session_of_13_failed_runs_comes_first_with_all_that_is_known_of_it(failed: World) -> None:
    """From the start of the first run, 12:03:30, to the end of the last one, 12:52, it is 2,910 s."""
    world = failed
    outage, mostly_good, quiet = listed(world)
    assert [one["session_id"] for one in (outage, mostly_good, quiet)] == ["outage", "mostly good", "quiet"]
    assert (outage["runs"], outage["failures"], outage["duration_s"]) == (13, 13, 2910.0)
    assert (outage["input_tokens"], outage["output_tokens"], outage["cost_usd"]) == (1300, 130, pytest.approx(1.3))
    assert (outage["last_error"], outage["last_error_at"]) == ("refused 12", START + timedelta(minutes=52))
    assert outage["agent_reliability"] is None
    assert (mostly_good["runs"], mostly_good["failures"], mostly_good["last_error"]) == (14, 1, None)
    assert (quiet["failures"], quiet["input_tokens"], quiet["cost_usd"]) == (0, None, None)
    assert ids(world, show="with_failures") == ["outage", "mostly good"]
    assert ids(world, sort="newest")[0] == "mostly good"
    assert ids(world, sort="cost")[0] == ids(world, sort="tokens")[0] == "outage"
    assert ids(world, sort="duration")[0] == "mostly good"
    page = html_of(sessions_page(look_at(world), sessions.Wanted()), look_at(world))
    assert "refused 12" in page and "the log states none" in page and "1,300" in page
    own = session_page(look_at(world), Wanted(session_id="outage"))
    assert (own.data["runs"]["failures"], own.data["runs"]["duration_s"]) == (13, 2910.0)
    assert "refused 12" in html_of(own, look_at(world))


@pytest.fixture(scope="module")
def cancelled(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A session with cancelled runs, one of nothing else, and one of whose runs a personal agent's was cancelled."""
    project = Project(tmp_path_factory.mktemp("cancelled"), {"agents": {"mine": {"personal": True}}})
    hours, at = HourRange.of(START), START + timedelta(minutes=30)
    records = [
        execution("e", "a", at, session_id="mixed", status="failure"),
        *(cancellation(f"x{n}", "a", at, session_id="mixed") for n in range(3)),
        cancellation("alone", "a", at, session_id="alone"),
        execution("s", "a", at, session_id="of two owners"),
        cancellation("s", "mine", at, session_id="of two owners"),
    ]
    project.write_log("a.jsonl", map(line, records))
    project.materialize(hours, only=STEPS)
    return world_of(project, hours)


def test_cancelled_runs_stand_beside_the_runs_of_their_session_and_one_of_nothing_else_says_so(
    cancelled: World,
) -> None:
    world = cancelled
    by_id = {one["session_id"]: one for one in listed(world)}
    mixed, alone = by_id["mixed"], by_id["alone"]
    assert (mixed["runs"], mixed["failures"], mixed["cancelled_runs"]) == (1, 1, 3)
    assert (alone["runs"], alone["cancelled_runs"], alone["agent_reliability"]) == (0, 1, None)
    assert "cancelled</th>" in html_of(sessions_page(look_at(world), sessions.Wanted()), look_at(world))
    answer = read_session(world.project.settings, "alone", world.hours.end)
    assert answer is not None and json.loads(json.dumps(answer["answer"]))["cancelled_runs"] == 1
    for session_id, told in (
        ("mixed", "beside these 3 that the user cancelled"),
        ("alone", "all its runs were cancelled"),
    ):
        page = session_page(look_at(world), Wanted(session_id=session_id, runs=runs(world, session_id)))
        assert told in html_of(page, look_at(world))


def test_a_session_is_also_of_the_owner_of_a_run_that_was_cancelled(cancelled: World) -> None:
    assert "of two owners" in ids(cancelled)
    assert set(ids(cancelled, EVERYBODYS)) == {"mixed", "alone"}
    answer = read_session(cancelled.project.settings, "of two owners", cancelled.hours.end)
    assert answer is not None and answer["is_personal"]


def test_a_page_without_cancelled_runs_has_no_column_of_them(failed: World) -> None:
    assert "cancelled" not in html_of(sessions_page(look_at(failed), sessions.Wanted()), look_at(failed))


def test_the_last_error_of_a_session_is_withheld_from_who_may_not_read_errors(failed: World) -> None:
    look = look_at(failed, EVERYBODYS)
    for page in (sessions_page(look, sessions.Wanted()), session_page(look, Wanted(session_id="outage"))):
        assert "refused" not in html_of(page, look) and "withheld" in html_of(page, look)
        assert "refused" not in json.dumps(page.data, default=str)


def test_a_report_begins_its_sessions_with_the_most_failed_runs(failed: World) -> None:
    project = failed.project
    console = Console(record=True, width=200, file=io.StringIO())
    with project.warehouse.read() as session:
        print_block(console, session, HourRange(START, START + 2 * HOUR))
    title, heading, first, second, *_ = [row for row in console.export_text().splitlines() if row.strip()]
    assert "2 with failed runs" in title and "3 without signals, not evaluated" in title
    assert "failed" in heading
    assert first.split() == ["outage", "13", "13", "48.5", "min", "1,430", "$1.30", "refused", "12"]
    assert second.split()[:4] == ["mostly", "good", "14", "1"]


def test_dagsters_preview_begins_with_the_sessions_that_failed_most(failed: World, tmp_path: Path) -> None:
    project = failed.project.copied(tmp_path / "copy")
    metadata = project.materialize(HourRange(START, START + 2 * HOUR), only=["session_scores"])["session_scores"]
    heading, _, *rows = metadata["worst sessions"].text.splitlines()
    names = [cell.strip() for cell in heading.split("|")]
    found = [dict(zip(names, (cell.strip() for cell in row.split("|")), strict=True)) for row in rows]
    assert [(one["session_id"], one["failures"], one["last_error"]) for one in found] == [
        ("outage", "13", "refused 12"), ("mostly good", "1", "nan"),
    ]  # fmt: skip
    assert {one["agent_reliability"] for one in found} == {"nan"}


def test_sessions_stand_by_reliability_with_the_newest_scores_of_the_warehouse(world: World) -> None:
    expected = world.project.query(
        """
        SELECT session_id, agent_id, agent_reliability, agent_consistency, total_traces, flagged FROM (
            SELECT *, len(flagged_traces) AS flagged, row_number() OVER (PARTITION BY session_id ORDER BY hour DESC) AS p
            FROM session_scores
        ) WHERE p = 1 AND traces_evaluated > 0 ORDER BY agent_reliability, agent_consistency, session_id
        """
    )
    names = ("session_id", "agent_id", "agent_reliability", "agent_consistency", "total_traces", "flagged")
    *evaluated, last = listed(world, sort="reliability")
    assert [tuple(one[name] for name in names) for one in evaluated] == expected
    assert len(expected) == 5
    assert last["session_id"] == "silent"


def test_a_session_without_a_signal_has_no_score_and_no_band(world: World) -> None:
    [silent] = listed(world, show="unevaluated")
    assert silent["session_id"] == "silent"
    for name in ("agent_reliability", "reliability_band", "reliability_passed", "agent_consistency"):
        assert silent[name] is None
    page = sessions_page(look_at(world), sessions.Wanted())
    assert page.data["counts"]["unevaluated"] == 1
    assert sum(page.data["bands"].values()) == 5


def test_sessions_are_found_by_part_of_an_id_or_an_agent(world: World) -> None:
    assert ids(world, text="ALM") == ["calm"]
    assert ids(world, text="beta") == ["silent"]
    assert ids(world, text="nobody") == []
    assert HOSTILE in ids(world, show="flagged")
    assert set(ids(world, show="failed")) == {HOSTILE, "of mine"}


def test_a_list_holds_the_sessions_that_the_api_shows(world: World) -> None:
    everything = {"calm", HOSTILE, "silent", "of mine", "mixed", "of two teams"}
    answers = {}
    for session_id in everything:
        found = read_session(world.project.settings, session_id, world.hours.end)
        assert found is not None
        teams = frozenset(found["teams"])
        answers[session_id] = SessionAnswer(
            body=b"", is_personal=found["is_personal"], teams=teams, read_at=world.hours.end
        )
    red = frozenset({"red"})
    seen = [
        (FULL, everything),
        (EVERYBODYS, everything - {"of mine", "mixed"}),
        (RED, {HOSTILE}),  # a trace of `calm` names no agent
        (AccessScope(is_full=True, teams=red), {HOSTILE, "of mine", "mixed"}),
    ]
    for view, expected in seen:
        assert set(ids(world, view)) == expected
        assert {session_id for session_id, answer in answers.items() if answer.is_visible(view)} == expected


def test_nobody_is_told_how_many_sessions_are_kept_from_it(world: World) -> None:
    for view in (EVERYBODYS, RED):
        page = sessions_page(look_at(world, view), sessions.Wanted())
        assert "hidden" not in page.data
        assert "not yours to see" not in html_of(page, look_at(world, view))


@pytest.mark.parametrize(
    ("view", "agent_id", "expected"),
    [
        (FULL, "alpha", {"calm", HOSTILE, "mixed", "of two teams"}),
        (FULL, "beta", {"silent", "of two teams"}),
        (EVERYBODYS, "alpha", {"calm", HOSTILE, "of two teams"}),
        (RED, "alpha", {HOSTILE}),
        (AccessScope(is_full=True, teams=frozenset({"red"})), "alpha", {HOSTILE, "mixed"}),
        (AccessScope(is_full=True, teams=frozenset({"red"})), "mine", {"of mine", "mixed"}),
        (BLUE, "beta", {"silent"}),  # of two teams was of this one alone, an hour before
    ],
)  # fmt: skip
def test_an_agents_page_lists_the_sessions_that_have_a_page(
    world: World, view: AccessScope, agent_id: str, expected: set[str]
) -> None:
    page = agent_page(look_at(world, view), agent_id, WantedOfAgent()).data["sessions"]
    assert {one["session_id"] for one in page["listed"]} == expected
    assert page["count"] == len(expected)
    assert all("other_agents" not in one for one in page["listed"])
    for session_id in expected:
        assert session_page(look_at(world, view), Wanted(session_id=session_id)).status == 200


def test_evidence_names_no_session_that_has_no_page(world: World) -> None:
    def named(view: AccessScope) -> set[str | None]:
        return {
            one["session_id"] for one in agent_page(look_at(world, view), "alpha", WantedOfAgent()).data["evidence"]
        }

    in_full = named(FULL)
    assert {"mixed", HOSTILE} <= in_full
    for view in (EVERYBODYS, RED):
        assert named(view) - {None} == in_full & set(ids(world, view))


def test_a_session_that_another_team_joined_is_not_found_by_what_it_was_before(world: World) -> None:
    assert "of two teams" not in ids(world, BLUE)
    with pytest.raises(HealthAssetsError, match="not yours to see"):
        session_page(look_at(world, BLUE), Wanted(session_id="of two teams"))
    before = session_page(look_at(world, BLUE, hour=START), Wanted(session_id="of two teams"))
    assert before.data["agent_id"] == "beta"


def test_a_list_of_more_sessions_than_are_looked_at_goes_less_far_back(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "MOST_ROWS", 2)
    page = sessions_page(look_at(world), sessions.Wanted())
    assert page.data["hours"] == 2
    assert "silent" in [one["session_id"] for one in page.data["listed"]]
    assert "calm" not in [one["session_id"] for one in page.data["listed"]]


def test_an_hour_whose_sessions_all_go_on_in_the_next_one_adds_none(tmp_path: Path) -> None:
    project = Project(tmp_path)
    hours = HourRange(START, START + 3 * HOUR)
    sessions_of = {0: ["early"], 1: ["long"], 2: ["long", "late"]}
    project.write_log(
        "a.jsonl",
        [
            line(execution(f"{name}-{number}", "blue", START + number * HOUR, session_id=name))
            for number, names in sessions_of.items()
            for name in names
        ],
    )
    project.materialize(hours, only=STEPS)
    found = sessions_page(world_of(project, hours).look(), sessions.Wanted()).data["listed"]
    assert {one["session_id"]: one["hour"] for one in found} == {
        "early": START,
        "long": START + 2 * HOUR,
        "late": START + 2 * HOUR,
    }


def test_an_hour_that_is_looked_back_to_knows_nothing_of_later_ones(world: World) -> None:
    then = sessions_page(look_at(world, hour=START), sessions.Wanted()).data["listed"]
    assert {one["session_id"]: one["total_traces"] for one in then}[HOSTILE] == 5
    assert "silent" not in [one["session_id"] for one in then]


# -- a session --


def test_what_the_traces_of_the_tail_cost_is_what_the_score_lacks(world: World) -> None:
    of = told(world, HOSTILE)
    tail = [one for one in of["traces"] if one["in_tail"]]
    assert (of["reliability"]["tail"], len(tail)) == (2, 2)
    assert sum(one["taken"] for one in tail) == pytest.approx(of["reliability"]["raw_risk"])
    assert of["reliability"]["score"] == pytest.approx(1 - sum(one["taken"] for one in tail))
    [worst] = [one for one in of["traces"] if one["is_flagged"]]
    assert (worst["driver"], worst["tool_risk"], worst["step_risk"]) == ("tool", 0.9, 0.72)
    assert worst["taken"] == max(one["taken"] for one in tail)


def test_a_trace_has_the_times_and_the_line_of_its_execution(world: World) -> None:
    names = ("trace_id", "started_at", "ended_at", "runtime_s", "status", "source_file", "line_number")
    expected = world.project.query(
        f"SELECT execution_id, {', '.join(names[1:])} FROM executions WHERE session_id = ? ORDER BY ended_at", [HOSTILE]
    )
    assert [tuple(one[name] for name in names) for one in told(world, HOSTILE)["traces"]] == expected
    assert len(expected) == 10


def test_calls_inside_a_run_are_drawn_there_without_those_of_another_agent(world: World) -> None:
    wanted = Wanted(session_id=HOSTILE, runs=runs(world, HOSTILE))
    page = session_page(look_at(world), wanted)
    assert [(one["kind"], one["name"], one["is_failed"]) for one in page.data["calls"]] == [
        ("tool", "search", True),
        ("model", "open", False),
    ]
    drawn = page.shown["drawn"]
    [(run, inside)] = drawn["calls"].items()
    x, width = drawn["runs"][run]
    assert [x <= at and at + wide <= x + width + LEAST_WIDTH for _, at, wide in inside] == [True, True]
    assert {one["place"]: one["calls"] for one in page.data["traces"]}[run] == 2


def test_a_trace_known_from_its_signals_alone_has_no_run(world: World) -> None:
    traces = {one["trace_id"]: one for one in told(world, "calm")["traces"]}
    assert len(traces) == 4
    assert traces["unseen"]["started_at"] is None
    assert traces["unseen"]["confidence_risk"] == 0.5
    page = session_page(look_at(world), Wanted(session_id="calm", runs=runs(world, "calm")))
    assert "known from its signals alone" in html_of(page, look_at(world))


def test_a_session_without_a_signal_says_so_in_place_of_scores(world: World) -> None:
    of = told(world, "silent")
    assert of["reliability"]["score"] is None
    assert of["consistency"]["score"] is None
    assert of["reliability"]["reason"].startswith("No trace carries a signal")
    assert [point["reliability"] for point in of["curve"]] == [None]


def test_texts_of_errors_are_for_the_full_view(world: World) -> None:
    def texts(view: AccessScope) -> set[str | None]:
        of = told(world, HOSTILE, view)
        return {one["error"] for one in (*of["traces"], *of["calls"])}

    assert texts(FULL) == {SECRET, None}
    assert texts(EVERYBODYS) == {None}


def test_runs_by_an_earlier_hour_are_those_of_then(world: World) -> None:
    then = runs(world, HOSTILE, START)
    assert (len(then["traces"]), then["score"]["total_traces"]) == (5, 5)
    assert read_session_runs(world.project.settings, "silent", START, world.hours.end) is None


def test_of_many_traces_the_riskiest_are_listed_and_the_rest_counted(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_runs, "MOST_TRACES", 3)
    monkeypatch.setattr(session_runs, "MOST_CALLS", 1)
    of = told(world, HOSTILE)
    assert (len(of["traces"]), of["traces_not_listed"]) == (3, 7)
    assert any(one["is_flagged"] for one in of["traces"])
    assert (len(of["calls"]), of["calls_not_listed"]) == (1, 1)


def test_weights_of_the_score_weigh_its_traces_whatever_the_settings_are_now(world: World) -> None:
    found = read_session_runs(
        world.project.settings.model_copy(update={"weight_tool_correctness": 0.1}), HOSTILE, None, world.hours.end
    )
    assert found is not None
    assert max(one["step_risk"] for one in found["answer"]["traces"]) == 0.72


def test_without_the_warehouse_the_scores_are_those_of_the_history(world: World) -> None:
    page = session_page(look_at(world), Wanted(session_id=HOSTILE, why_not="the warehouse is busy"))
    assert page.status == 200
    assert page.data["reliability"]["score"] == told(world, HOSTILE)["reliability"]["score"]
    assert page.data["flagged_traces"] == told(world, HOSTILE)["flagged_traces"]
    assert page.data["traces"] == []


@pytest.mark.parametrize("session_id", ["never", "of mine", "mixed"])
def test_a_session_that_is_not_yours_looks_like_one_that_is_not_there(world: World, session_id: str) -> None:
    with pytest.raises(HealthAssetsError, match="No session of this id is known here, or it is not yours to see"):
        session_page(look_at(world, EVERYBODYS), Wanted(session_id=session_id))


# -- the line of time --

moments = st.integers(0, 10**7).map(lambda seconds: START + timedelta(seconds=seconds))
spans = st.lists(st.tuples(moments, st.integers(0, 10**5)), min_size=1, max_size=20).map(
    lambda made_of: [(start, start + timedelta(seconds=lasted)) for start, lasted in made_of]
)


@given(spans)
@examples(max_examples=60, deadline=None)
def test_places_on_the_line_keep_the_order_of_time_and_runs_their_share(made_of: list[tuple]) -> None:
    line = Timeline(made_of)
    ends = sorted(moment for span in made_of for moment in span)
    places = [line.place(moment) for moment in ends]
    assert places == sorted(places)
    assert places[0] >= 0 and places[-1] <= WIDTH + 1e-6
    for start, end in made_of:
        x, width = line.span(start, end)
        assert width >= LEAST_WIDTH and x >= 0 and x + width <= WIDTH + 0.02


def test_a_long_gap_is_folded_and_runs_keep_their_widths_to_scale() -> None:
    later = START + timedelta(days=3)
    line = Timeline([(START, START + timedelta(seconds=10)), (later, later + timedelta(seconds=20))])
    (_, first), (_, second) = line.span(START, START + timedelta(seconds=10)), line.span(later, line.end)
    assert second == pytest.approx(2 * first, rel=1e-3)
    assert first + second == pytest.approx(WIDTH * (1 - GAPS_SHARE), rel=1e-3)
    [fold] = line.folds
    assert fold.seconds == 3 * 86400 - 10
    assert first < fold.x < WIDTH - second


# -- as they are served --


def address(session_id: str, more: str = "") -> str:
    return f"/ui/sessions/{quote(session_id, safe='')}{more}"


def test_names_of_logs_are_shown_as_text(server: Served) -> None:
    for path in ("/ui/sessions", address(HOSTILE), "/ui/sessions?q=%3Cscript%3E"):
        reply = server.ask(path)
        text = reply.body.decode()
        assert reply.status == 200
        assert "<script>" not in text and "‮" not in text and "\x1b" not in text
        assert "style=" not in text
    assert "\\u202e" in server.ask("/ui/sessions").body.decode()
    assert address(HOSTILE) in server.ask("/ui/sessions").body.decode()


def test_the_twins_of_a_session_tell_its_traces(server: Served, world: World) -> None:
    twin = server.ask(address(HOSTILE, "?format=json"), headers=BEARER).json
    assert [one["trace_id"] for one in twin["traces"]] == [one["trace_id"] for one in told(world, HOSTILE)["traces"]]
    assert SECRET in {one["error"] for one in twin["traces"]}
    table = server.ask(address(HOSTILE, "?format=csv")).body.decode()
    assert len(table.splitlines()) == 11
    assert SECRET not in table
    assert server.ask(address("mixed")).status == 404
    assert server.ask(address("mixed"), headers=BEARER).status == 200
    assert server.ask(address("never")).status == 404
    assert server.ask(address("calm", "?hour=nonsense")).status == 404


def test_while_the_warehouse_is_busy_the_page_says_so_and_shows_the_scores(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    score = told(world, "of two teams")["reliability"]["score"]
    with readers_in_this_process():
        monkeypatch.setattr(asked_sessions, "Reader", Reader)  # another process, which a lock keeps out
        monkeypatch.setattr(asked_sessions, "TIMEOUT_S", 300.0)  # a slow machine needs long to start it
        with served(world.project.warehouse_path, **serving(world)) as server:
            with Warehouse(str(world.project.warehouse_path)).write():
                reply = server.ask(address("of two teams"))
                text = reply.body.decode()
                assert reply.status == 200
                assert "the warehouse is busy" in text and "Try again" in text
                assert f"{score:.3f}" in text
                assert server.ask(address("of mine")).status == 404
            assert "the warehouse is busy" not in server.ask(address("of two teams")).body.decode()


def test_hours_without_sessions_say_so(world: World) -> None:
    look = look_at(world, hour=START - HOUR)
    page = sessions_page(look, sessions.Wanted())
    assert "No session had a trace or a signal in these hours." in html_of(page, look)
