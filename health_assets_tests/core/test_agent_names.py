"""Agents' names by pattern: UUIDs, versions and environments fold into one agent, wherever a log names one."""

import re
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from health_assets.cli.run_summary import print_twins
from health_assets.core.agent_names import AgentName, agents_of, alike_but_for_uuids, twins
from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HOUR, HourRange
from health_assets.core.targets import load_targets
from health_assets_tests.logs.test_opentelemetry import AT, FIRST
from health_assets_tests.support.commands_here import command_here
from health_assets_tests.support.logs_made import START, cancellation, execution, line
from health_assets_tests.support.projects import ENGINES, Project, assert_same_tables
from health_assets_tests.support.traces_made import agent, chat, otlp_line, tool

UUID = "01a20214-610d-747c-ae77-4c63cf525548"
NAMES = [
    {"match": r"(.+)-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "agent": r"\1"},
    {"match": "crm.*", "agent": "crm"},
]


def every_kind_of_line(name: str) -> list[str]:
    at = {"at": AT.isoformat()}
    return [
        line(execution("e", name, AT)),
        line({"type": "trigger", "trigger_id": "t", "agent_id": name, "fired_at": AT.isoformat(), "status": "fired"}),
        line(
            {
                "type": "model_call",
                "call_id": "m",
                "model": "m",
                "agent_id": name,
                "ended_at": AT.isoformat(),
                "status": "success",
            }
        ),
        line(
            {
                "type": "tool_call",
                "call_id": "c",
                "tool": "t",
                "agent_id": name,
                "ended_at": AT.isoformat(),
                "status": "success",
            }
        ),
        line({"type": "signals", "execution_id": "e", "agent_id": name, "confidence": 1, **at}),
        line({"type": "judgement", "execution_id": "e", "agent_id": name, "violations": [], **at}),
        line({"type": "agent_update", "agent_id": name, "kind": "restart", **at}),
        line(cancellation("x", name, AT)),
        otlp_line(agent(1, 1, AT, gen_ai__agent__name=name), chat(1, 2, AT, 1), tool(1, 3, AT, 1)),
    ]


TABLES = (
    "executions", "cancellations", "trigger_events", "model_calls", "tool_calls", "signals", "judgements",
    "agent_updates",
)  # fmt: skip


def agents_in(project: Project) -> set[tuple[str, str, str | None]]:
    return {(table, row["agent_id"], row["agent_id_reported"]) for table in TABLES for row in project.rows(table)}


def test_names_are_folded_in_every_table_and_the_name_of_the_log_stays_beside_it(project: Project) -> None:
    project.write_targets({"names": NAMES})
    reported = f"weather-agent-{UUID}"
    project.write_log("a.jsonl", every_kind_of_line(reported))
    project.ingest(FIRST)
    assert agents_in(project) == {(table, "weather-agent", reported) for table in TABLES}


def test_a_name_that_no_pattern_matches_as_a_whole_stays_and_the_first_pattern_counts() -> None:
    names = [
        AgentName(match="a.", agent="first"),
        AgentName(match="ab|c", agent="second"),
        AgentName(match="d(x?)", agent=r"\1"),
    ]
    assert agents_of(["ab", "abc", "c", "d", "dx", ""], names) == {
        "ab": "first", "abc": "abc", "c": "second", "d": "d", "dx": "x", "": "",
    }  # fmt: skip


@given(
    names=st.lists(st.text("abc-1", min_size=1, max_size=6), min_size=1),
    pattern=st.sampled_from(["a+", "(a|b)-?1?", "[a-c]{2}.*", "(.*)-1"]),
)
def test_patterns_mean_what_the_standard_library_takes_them_for(names: list[str], pattern: str) -> None:
    agent = r"\1x" if "(" in pattern else "x"
    expected = {
        name: re.fullmatch(pattern, name).expand(agent) if re.fullmatch(pattern, name) else name for name in names
    }
    assert agents_of(names, [AgentName(match=pattern, agent=agent)]) == expected


@pytest.mark.parametrize("engine", ENGINES)
def test_changed_patterns_hold_for_hours_that_are_materialized_again_and_for_no_others(
    tmp_path: Path, engine: str
) -> None:
    project = Project(tmp_path / "project", {}, 1, 3, engine=engine)
    random, hours = Random(1), HourRange(START, START + 2 * HOUR)
    for place in range(2):
        at = AT + place * HOUR
        spans = [agent(place, 1, at, gen_ai__agent__name=f"crm-{random.randrange(2)}"), chat(place, 2, at, 1)]
        project.write_log(f"{place}.jsonl", [line(execution(f"e{place}", f"crm-{place}", at)), otlp_line(*spans)])
    project.ingest(hours)
    project.write_targets({"names": NAMES})
    project.ingest(HourRange.of(START))
    by_hour = {hour: {row["agent_id"] for row in project.rows("executions", HourRange.of(hour))} for hour in hours}
    assert by_hour[START] == {"crm"}
    assert "crm" not in by_hour[START + HOUR]
    project.ingest(hours)
    assert_same_tables(project.tables(names=TABLES), project.clean_rebuild(hours, only=["ingest"]).tables(names=TABLES))
    project.write_targets({})
    project.ingest(hours)
    assert {row["agent_id_reported"] for row in project.rows("executions")} == {None}
    assert_same_tables(project.tables(names=TABLES), project.clean_rebuild(hours, only=["ingest"]).tables(names=TABLES))


def test_changed_patterns_hold_for_the_hours_that_a_window_looks_back_on(project: Project) -> None:
    for place in range(2):
        project.write_log(f"{place}.jsonl", [line(execution(f"e{place}", f"crm-{place}", AT + place * HOUR))])
    steps = ["ingest", "health_components", "agent_health"]
    both, last = HourRange(START, START + 2 * HOUR), HourRange.of(START + HOUR)
    project.materialize(both, only=steps)
    project.write_targets({"names": NAMES})
    project.materialize(last, only=steps)
    assert {(row["agent_id"], row["n"]) for row in project.rows("agent_health", last)} == {("crm", 2)}


def test_a_hour_is_scored_by_the_folded_agents(project: Project) -> None:
    project.write_targets({"names": NAMES, "agents": {"crm": {"expected_success_rate": 0.5}}})
    project.write_log("a.jsonl", [line(execution(f"e{place}", f"crm-{place}", AT)) for place in range(3)])
    project.materialize(FIRST, only=["ingest", "health_components", "agent_health"])
    [row] = project.rows("agent_health", FIRST)
    assert (row["agent_id"], row["n"], row["expected_success_rate"]) == ("crm", 3, 0.5)


def test_names_that_differ_by_a_uuid_alone_are_told_until_they_are_folded(project: Project) -> None:
    project.write_targets({})
    uuids = [UUID, UUID.upper().replace("1", "2"), UUID.replace("c", "d")]
    names = [*(f"weather-{one}" for one in uuids), f"other-{UUID}", "crm-1", "crm-2"]
    project.write_log("a.jsonl", [line(execution(name, name, AT)) for name in names])
    assert alike_but_for_uuids(names) == sorted(names[:3])
    arguments = (
        "materialize",
        "--raw",
        str(project.raw),
        "--targets",
        str(project.targets_path),
        "--system",
        "tool_health",
    )
    told = command_here(*arguments, folder=project.folder).stdout
    assert "3 agents differ only by a UUID in their names, like weather-" in told
    project.write_targets({"names": [{"match": "(.+)-[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}", "agent": r"\1"}]})
    assert "UUID" not in command_here(*arguments, folder=project.folder).stdout


@pytest.mark.parametrize(
    "other",
    [
        "Caf\u00e9-Planner",  # case
        "cafe\u0301-planner",  # NFD
        "caf\u00e9-pl\u0430nner",  # Cyrillic a
        "caf\u00e9-planner\u200b",  # zero width space
        "caf\u00e9\u2011planner",  # hyphen that does not break
        "\uff43af\u00e9-planner",  # full width
    ],
)
def test_names_that_look_alike_are_twins(other: str) -> None:
    assert twins(["caf\u00e9-planner", other, "cafe-planner", "crm-1", "crm-2"]) == [
        tuple(sorted(["caf\u00e9-planner", other]))
    ]


@pytest.mark.parametrize("alike", [("planner", "Planner"), ("p\u03bfet", "poet"), ("\u0455\u0443nc", "SYNC")])
def test_twins_are_told_by_two_of_their_names(project: Project, alike: tuple[str, str]) -> None:
    project.write_log("a.jsonl", [line(execution(name, name, START)) for name in (*alike, "other")])
    project.ingest(HourRange.of(START))
    printed = Console(record=True, width=200)
    with project.warehouse.read() as session:
        print_twins(printed, session, HourRange.of(START))
        told = printed.export_text()
        assert "2 agents have names that differ only by case, encoding or letters that look alike, like " in told
        assert all(name in told and (name.isascii() or ascii(name) in told) for name in alike)
        print_twins(printed, session, HourRange.of(START + HOUR))
    assert printed.export_text() == ""


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ("crm", "names must be a list of {match: pattern, agent: name}"),
        (["crm"], "names, entry 1 must be a mapping of keys to values"),
        ([{"match": "crm"}], "names, entry 1: agent: must be given"),
        (
            [NAMES[0], {"match": "crm(", "agent": "crm"}],
            r"names, entry 2: 'crm\(' cannot make 'crm' of a name: missing \): crm\(",
        ),
        (
            [{"match": "crm", "agent": r"\1"}],
            r"names, entry 1: 'crm' cannot make .* of a name: Invalid replacement string",
        ),
        ([{"match": "crm", "agent": ""}], "names, entry 1: agent: String should have at least 1 character"),
        ([{"match": "crm", "agent": "c", "as": "x"}], "names, entry 1: as: unknown key"),
        ([{"match": 7, "agent": "c"}], "names, entry 1: match: Input should be a valid string"),
    ],
)
def test_a_bad_pattern_is_an_error_that_names_it(project: Project, names: object, told: str) -> None:
    project.write_targets({"names": names})
    with pytest.raises(HealthAssetsError, match=told):
        load_targets(project.targets_path)
