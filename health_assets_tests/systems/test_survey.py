"""The survey: asking politely, keeping what was answered, summing it up, by command and by Dagster, with real servers."""

import asyncio
import re
import resource
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import dagster as dg
import pytest
import yaml
from typer.testing import CliRunner

from health_assets.cli.commands import app
from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HOUR, HourRange, floor_hour
from health_assets.defs.build import JOB, SURVEY_JOB, build_definitions
from health_assets.defs.partitions import hours_tags
from health_assets.pipeline.resource import Pipeline
from health_assets.systems.suites import SUITES
from health_assets.systems.survey import FORMULA_VERSION
from health_assets.systems.survey.probing import TRIES, Manners, Probe, probe_agents
from health_assets.systems.survey.surveyed_agents import RegisteredAgent
from health_assets.systems.survey.surveying import Survey, keep_probes, summarise, survey
from health_assets_tests.support.dagster_world import QUIET, requested_hours
from health_assets_tests.support.health_servers import (
    Behaviour,
    Host,
    answers,
    closed_port,
    current_document,
    document,
    hangs,
    redirects,
    resets,
    says,
)
from health_assets_tests.support.projects import ENGINES, SURVEY_TABLES, Project, Row, forked_command, hours_from
from health_assets_tests.support.reference_survey import summary
from health_assets_tests.support.surveys_made import made_agent, made_probe

START = datetime(2026, 6, 7, tzinfo=UTC)
HURRIED = {"survey_pause_s": 0, "survey_per_host": 16, "survey_concurrency": 16, "survey_timeout_s": 5.0}


def this_hour() -> datetime:
    """The running hour, with enough of it left to be surveyed on a slow machine."""
    while (left := floor_hour(datetime.now(UTC)) + HOUR - datetime.now(UTC)) < timedelta(seconds=60):
        time.sleep(left.total_seconds() + 0.1)
    return floor_hour(datetime.now(UTC))


def ask(agents: Sequence[RegisteredAgent], manners: Manners, until: datetime | None = None) -> tuple[list[Probe], int]:
    """Probes in the order in which they came in, and how many agents were not asked."""
    probes: list[Probe] = []
    manners = replace(manners, allow_private=True)  # the servers are on this machine
    too_late = asyncio.run(probe_agents(agents, manners, probes.append, until=until))
    return probes, too_late


def registered(host: Host, *names: str, platform: str = "p") -> list[RegisteredAgent]:
    return [RegisteredAgent(name=name, platform=platform, url=f"{host.url}/{name}") for name in names]


# -- asking ------------------------------------------------------------------------------------------------------------


def test_every_outcome_is_kept_with_what_came_of_it() -> None:
    behaviours: dict[str, tuple[Behaviour, str]] = {
        "good": (answers(document()), "valid"),
        "ill": (answers(document("unhealthy")), "valid"),
        "bad": (answers(b"[]"), "invalid"),
        "gone": (answers(b"", "404 Not Found"), "http_error"),
        "slow": (hangs(), "timeout"),
        "broken": (resets(), "unreachable"),
        "moved": (redirects("http://192.0.2.1/"), "refused"),
        "faulty": (answers(document("unhealthy", agent_id=...)), "invalid"),
        "failing": (answers(document("degraded"), "503 Service Unavailable"), "http_error"),
        "praising": (answers(document("healthy", agent_id=...)), "invalid"),
    }
    with Host({f"/{name}": behaviour for name, (behaviour, _) in behaviours.items()}) as host:
        probes, too_late = ask(
            registered(host, *behaviours), Manners(concurrency=8, per_host=8, pause_s=0, timeout_s=4)
        )
    assert too_late == 0
    by_name = {probe.agent.name: probe for probe in probes}
    assert {name: probe.answer.outcome for name, probe in by_name.items()} == {
        name: outcome for name, (_, outcome) in behaviours.items()
    }
    assert (by_name["good"].status, by_name["good"].error) == ("healthy", None)
    assert by_name["ill"].status == "unhealthy"
    assert (by_name["bad"].status, by_name["bad"].error) == (
        None,
        "its document is not valid: the document: must be an object, not a list.",
    )
    fault = "its document is not valid: agent_id: is missing."
    assert (by_name["faulty"].status, by_name["faulty"].error) == ("unhealthy", fault)
    assert (by_name["praising"].status, by_name["praising"].error) == (None, fault)
    assert by_name["failing"].status == "degraded"


@pytest.mark.parametrize(("concurrency", "per_host", "most"), [(3, 8, 3), (8, 2, 2), (1, 1, 1), (8, 8, 8)])
def test_no_more_than_so_many_are_asked_at_a_time(concurrency: int, per_host: int, most: int) -> None:
    names = [f"a{n}" for n in range(16)]
    with Host(lambda exchange: host.gathers(most)(exchange)) as host:
        probes, _ = ask(
            registered(host, *names),
            Manners(concurrency=concurrency, per_host=per_host, pause_s=0, timeout_s=60, waiting=0),
        )
        assert sorted(request.path.split("/")[1] for request in host.requests) == sorted(names), "each once"
    assert {probe.answer.outcome for probe in probes} == {"valid"}
    assert host.most_under_way == most, "and no fewer"


def test_a_host_rests_between_two_requests() -> None:
    with Host(answers(document())) as host:
        ask(registered(host, *"abcd"), Manners(concurrency=8, per_host=1, pause_s=0.2, timeout_s=30))
    times = [request.at for request in host.requests]
    rests = [later - earlier for earlier, later in zip(times, times[1:], strict=False)]
    assert min(rests) >= 0.1
    assert max(rests) - min(rests) > 1e-4, "the rests differ"


def test_a_slow_host_does_not_hold_up_the_others() -> None:
    """Twelve agents of a host that hangs, six of one that answers: these are through before the second four time out."""
    with Host(hangs()) as slow, Host(answers(document())) as quick:
        other_name = quick.url.replace("127.0.0.1", "localhost")
        agents = registered(slow, *(f"s{n}" for n in range(12)))
        agents += [RegisteredAgent(name=f"q{n}", platform="p", url=f"{other_name}/q{n}") for n in range(6)]
        probes, _ = ask(agents, Manners(concurrency=6, per_host=4, pause_s=0, timeout_s=2))
    place = {probe.agent.name: index for index, probe in enumerate(probes)}
    assert {probe.answer.outcome for probe in probes if probe.agent.name.startswith("q")} == {"valid"}
    assert max(place[f"q{n}"] for n in range(6)) < 4 + 6


def test_names_that_nobody_serves_do_not_make_live_agents_look_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name service that takes its time over dead names, as real ones do; a few threads for it would not do."""
    look_up = socket.getaddrinfo

    def slow_look_up(host: Any, *arguments: Any, **options: Any) -> Any:
        if b".invalid" in (host if isinstance(host, bytes) else host.encode()):
            time.sleep(1)
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return look_up(host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", slow_look_up)
    dead = [made_agent(f"d{n}", host=f"gone-{n}.invalid") for n in range(60)]
    with Host(answers(document())) as host:
        live = [RegisteredAgent(name=name, platform="p", url=f"http://localhost:{host.port}/{name}") for name in "abc"]
        probes, _ = ask([*dead, *live], Manners(concurrency=64, per_host=4, pause_s=0, timeout_s=8))
    outcomes = {probe.agent.name: probe.answer.outcome for probe in probes}
    assert {outcomes[name] for name in "abc"} == {"valid"}
    assert {outcomes[f"d{n}"] for n in range(60)} == {"unreachable"}


def test_a_request_that_nobody_answers_gives_its_place_to_another_one() -> None:
    """Twelve requests to a server that says nothing, and one place: all wait at once, not one after another."""
    with Host(hangs()) as host:
        probes, _ = ask(
            registered(host, *(f"s{n}" for n in range(12))),
            Manners(concurrency=1, per_host=12, pause_s=0, timeout_s=4, silent_after_s=0.05),
        )
    assert [probe.answer.outcome for probe in probes] == ["timeout"] * 12
    times = [request.at for request in host.requests]
    assert max(times) - min(times) < 4, "the last one did not wait for the first one's end"


def test_a_host_without_connections_is_given_up_and_its_other_agents_are_told_so() -> None:
    with closed_port() as gone, Host(answers(document())) as host:
        agents = [RegisteredAgent(name=f"g{n}", platform="p", url=f"{gone}/{n}") for n in range(40)]
        other = RegisteredAgent(name="alive", platform="p", url=host.url.replace("127.0.0.1", "localhost"))
        probes, too_late = ask([*agents, other], Manners(concurrency=4, per_host=1, pause_s=0, timeout_s=10))
    assert too_late == 0
    assert len(probes) == 41
    lost = [probe for probe in probes if not probe.was_asked]
    assert len(lost) == 40 - TRIES
    assert {(probe.answer.outcome, probe.answer.http_status) for probe in lost} == {("unreachable", None)}
    assert {probe.error for probe in lost} == {
        "it was not asked, since its host gave 8 agents before it no connection: no connection (All connection attempts failed)."
    }
    assert [probe.answer.outcome for probe in probes if probe.agent.name == "alive"] == ["valid"]


def test_a_host_that_answers_nonsense_or_nothing_is_not_given_up() -> None:
    """A connection is a sign of life: of many agents that fail, one may live."""
    behaviours: dict[str, Behaviour] = {f"/{n}": resets() if n % 2 else says(b"") for n in range(2 * TRIES)}
    with Host(behaviours | {"/alive": answers(document())}) as host:
        probes, _ = ask(
            registered(host, *(str(n) for n in range(2 * TRIES)), "alive"),
            Manners(concurrency=2, per_host=1, pause_s=0, timeout_s=20),
        )
        assert len(host.requests) == 2 * TRIES + 1
    assert all(probe.was_asked for probe in probes)
    assert probes[-1].answer.outcome == "valid"


def test_a_host_that_hangs_for_all_its_agents_gets_less_time_until_it_answers() -> None:
    names = [f"h{n}" for n in range(9)]
    behaviours: dict[str, Behaviour] = {f"/{name}": hangs() for name in names}
    with Host(behaviours | {"/alive": answers(document())}) as host:
        probes, _ = ask(
            registered(host, *names, "alive", *names[:1]), Manners(concurrency=1, per_host=1, pause_s=0, timeout_s=1)
        )
    told = [float(re.findall(r"within ([\d.]+) s", probe.error or "1 within 0 s")[0]) for probe in probes]
    assert told == [1, 1, 1, 1, 0.5, 0.25, 0.125, 0.1, 0.1, 0, 1]
    assert [probe.answer.outcome for probe in probes].index("valid") == 9


def test_no_more_requests_are_open_than_files_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a file to open, each live agent would be kept as one that cannot be reached."""
    for files, most in [(1024, 1024 - 256), (300, 44), (100, 1), (20_000, 1056), (resource.RLIM_INFINITY, 1056)]:
        monkeypatch.setattr(resource, "getrlimit", lambda _, files=files: (files, files))
        assert Manners().most_open == most


def test_nobody_is_asked_when_the_time_is_over() -> None:
    with Host(answers(document(), after_s=0.1)) as host:
        probes, too_late = ask(registered(host, *(f"a{n}" for n in range(50))), Manners(concurrency=1, per_host=1, pause_s=0, timeout_s=30),
                               until=datetime.now(UTC) + timedelta(seconds=3))  # fmt: skip
        assert len(host.requests) == len(probes)
        assert ask(registered(host, "x"), Manners(), until=datetime.now(UTC)) == ([], 1)
    assert 1 <= len(probes) < 50
    assert len(probes) + too_late == 50


# -- keeping -----------------------------------------------------------------------------------------------------------


def kept(project: Project, probes: Sequence[Probe]) -> list[Row]:
    with project.warehouse.write() as session:
        keep_probes(session, probes)
    return project.rows("agent_probes")


def test_a_probe_stands_in_the_hour_in_which_it_was_asked(project: Project) -> None:
    rows = kept(
        project, [made_probe("a", "p", START, status="degraded"), made_probe("b", "q", START + HOUR, "timeout")]
    )
    assert [(row["hour"], row["probed_at"], row["name"], row["outcome"]) for row in rows] == [
        (START, START + HOUR / 2, "a", "valid"), (START + HOUR, START + HOUR * 1.5, "b", "timeout"),
    ]  # fmt: skip
    assert [(row["status"], row["http_status"], row["latency_ms"], row["error"]) for row in rows] == [
        ("degraded", 200, 12.5, None), (None, None, None, "it gave timeout."),
    ]  # fmt: skip
    assert project.built_hours("agent_probes") == {START, START + HOUR}


@pytest.mark.parametrize("engine", ENGINES)
def test_of_one_agent_and_hour_the_latest_probe_stays_in_whatever_order_they_come(tmp_path: Path, engine: str) -> None:
    probes = [made_probe("a", "p", START, minute=minute, status="healthy") for minute in (10, 20, 40)]
    probes += [made_probe("a", "p", START + HOUR, "timeout"), made_probe("b", "p", START, "invalid")]
    found = []
    for place in range(6):
        shuffled = Random(place).sample(probes, len(probes))
        project = Project(tmp_path / str(place), engine=engine)
        for batch in (shuffled[:2], shuffled[2:], shuffled[:1]):  # and one comes twice
            rows = kept(project, batch)
        found.append(rows)
    assert all(rows == found[0] for rows in found)
    assert [(row["name"], row["hour"], row["probed_at"].minute) for row in found[0]] == [
        ("a", START, 40), ("b", START, 30), ("a", START + HOUR, 30),
    ]  # fmt: skip


def test_the_summary_of_a_worked_example(project: Project) -> None:
    """Four agents of p: one healthy, one degraded, two without a document. One of q: unhealthy, so responsive."""
    probes = [
        made_probe("a", "p", START, status="healthy"), made_probe("b", "p", START, status="degraded"),
        made_probe("c", "p", START, "http_error", http_status=500, latency_ms=2), made_probe("d", "p", START, "unreachable"),
        made_probe("e", "q", START, status="unhealthy"), made_probe("a", "p", START + HOUR, "refused"),
    ]  # fmt: skip
    with project.warehouse.write() as session:
        keep_probes(session, probes)
        summarise(session, [START, START + HOUR])
    rows = {(row["hour"], row["platform"]): row for row in project.rows("survey_summary")}
    counts = {
        key: tuple(row[name] for name in ("agents", "responsive", "healthy", "survival_rate"))
        for key, row in rows.items()
    }
    assert counts == {
        (START, "p"): (4, 2, 1, 0.5), (START, "q"): (1, 1, 0, 1.0), (START, "all"): (5, 3, 1, 0.6),
        (START + HOUR, "p"): (1, 0, 0, 0.0), (START + HOUR, "all"): (1, 0, 0, 0.0),
    }  # fmt: skip
    assert {row["formula_version"] for row in rows.values()} == {FORMULA_VERSION}


def random_probes(random: Random) -> list[Probe]:
    outcomes = ["valid", "invalid", "http_error", "timeout", "unreachable", "refused"]
    probes = []
    for _ in range(random.randrange(1, 60)):
        outcome = random.choice(outcomes)
        name = random.choice("abcdefghij")
        status = random.choice(["healthy", "degraded", "unhealthy", "unknown"]) if outcome == "valid" else None
        hour = START + random.randrange(4) * HOUR
        probes.append(made_probe(name, f"p{ord(name) % 3}", hour, outcome, status=status, minute=random.random() * 60))
    return probes


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in (1, 2, 3))])
def test_the_summary_equals_the_reference_for_one_hour_and_for_many(tmp_path: Path, seed: int) -> None:
    probes = random_probes(Random(seed))
    hours = sorted({floor_hour(probe.answer.asked_at) for probe in probes})
    as_rows = [
        {"hour": floor_hour(probe.answer.asked_at), "url": probe.agent.url, "platform": probe.agent.platform,
         "probed_at": probe.answer.asked_at, "outcome": probe.answer.outcome, "status": probe.status}
        for probe in probes
    ]  # fmt: skip
    expected = {(row["hour"], row["platform"]): row for row in summary(as_rows)}
    for place, steps in enumerate([[hours], [[hour] for hour in hours]]):
        project = Project(tmp_path / str(place))
        with project.warehouse.write() as session:
            for probe in probes:
                keep_probes(session, [probe])
            for step in steps:
                summarise(session, step)
        found = {(row["hour"], row["platform"]): row for row in project.rows("survey_summary")}
        assert {key: {name: row[name] for name in expected[key]} for key, row in found.items()} == expected


# -- a whole survey ----------------------------------------------------------------------------------------------------


@contextmanager
def fleet_of_appendix_b() -> Iterator[list[dict[str, str]]]:
    """The platforms of the draft's table: 49 GPTs that do not respond, 8 Meyo that are healthy, 20 others with 3 alive."""
    dead: list[Behaviour] = [
        answers(b"", "404 Not Found"), answers(b"<html>", content_type="text/html"), answers(b"", "500 Internal Server Error"),
        redirects("https://chat.example/"), says(b""), answers(b"{}"), resets(),
    ]  # fmt: skip
    alive = [answers(current_document(status)) for status in ("healthy", "degraded", "unknown")]
    with ExitStack() as stack:
        behaviours: dict[str, Behaviour] = {f"/g/{n}": dead[n % len(dead)] for n in range(46)}
        behaviours |= {f"/m/{n}": answers(current_document()) for n in range(8)}
        behaviours |= {f"/o/{n}": alive[n] if n < 3 else dead[n % len(dead)] for n in range(20)}
        behaviours |= {"/g/hangs": hangs()}
        host = stack.enter_context(Host(behaviours))
        urls = {name: f"{host.url}{name}" for name in behaviours}
        urls |= {f"/g/closed {n}": stack.enter_context(closed_port()) for n in range(2)}
        platforms = {"g": "GPTs", "m": "Meyo", "o": "Other"}
        yield [{"name": name, "platform": platforms[name[1]], "url": url} for name, url in urls.items()]


def write_registry(project: Project, entries: Sequence[dict[str, str]]) -> Path:
    path = project.folder / "registry.yaml"
    path.write_text(yaml.safe_dump(list(entries)), encoding="utf-8")
    return path


ENVIRONMENT = {f"HEALTH_{name.upper()}": str(value) for name, value in HURRIED.items()}


def test_the_table_of_appendix_b_comes_out_for_a_fleet_like_it(project: Project) -> None:
    hour = this_hour()
    with fleet_of_appendix_b() as entries:
        arguments = [
            "survey",
            "--allow-private",
            "--registry",
            str(write_registry(project, entries)),
            "--warehouse",
            str(project.warehouse_path),
        ]
        done = forked_command(*arguments, environment=ENVIRONMENT)
        again = forked_command(*arguments, environment=ENVIRONMENT)
    assert (done.returncode, done.stderr) == (0, "")
    rows = {row["platform"]: row for row in project.rows("survey_summary")}
    assert {name: (row["agents"], row["responsive"], row["healthy"]) for name, row in rows.items()} == {
        "GPTs": (49, 0, 0), "Meyo": (8, 8, 8), "Other": (20, 3, 1), "all": (77, 11, 9),
    }  # fmt: skip
    assert {name: row["survival_rate"] for name, row in rows.items()} == {
        "GPTs": 0,
        "Meyo": 1,
        "Other": 0.15,
        "all": 11 / 77,
    }
    assert {row["hour"] for row in rows.values()} == {hour}
    outcomes = {row["outcome"] for row in project.rows("agent_probes")}
    assert outcomes == {"valid", "invalid", "http_error", "timeout", "unreachable", "refused"}
    printed = [line.split() for line in done.stdout.splitlines()]
    assert "77 of 77 agents were asked." in done.stdout
    assert "14.3% survive  77 agents: 11 responsive, 9 healthy" in done.stdout
    assert ["GPTs", "49", "0", "0", "0.0%"] in [words[:5] for words in printed]
    assert ["Meyo", "8", "8", "8", "100.0%"] in printed
    assert ["Other", "20", "3", "1", "15.0%"] in [words[:5] for words in printed]
    assert "\x1b" not in done.stdout
    # within five minutes nobody is asked again, and what was answered stands
    assert (
        "0 of 77 agents were asked; 77 had been asked too short a time before, and their answers stand." in again.stdout
    )
    assert "14.3% survive  77 agents: 11 responsive, 9 healthy" in again.stdout
    assert {row["platform"]: row for row in project.rows("survey_summary")} == rows


def settings_of(project: Project, **changes: Any) -> Any:
    return project.settings.model_copy(update={**HURRIED, **changes})


def test_an_agent_is_polled_every_5_minutes_at_most_however_its_address_is_written(project: Project) -> None:
    this_hour()
    with Host(answers(document())) as host:
        agents = registered(host, "a", "b")
        assert survey(settings_of(project, allow_private_addresses=True), agents).probed == 2
        same = [RegisteredAgent(name="a", platform="p", url=f"{host.url}/a/.well-known/agent-health")]
        assert survey(settings_of(project, allow_private_addresses=True), [*same, *registered(host, "c")]) == Survey(
            agents=2, probed=1, too_soon=1, too_late=0, hours=(this_hour(),)
        )
        for minutes, probed in [(4, 0), (2, 3)]:  # 4, then 6 minutes pass
            project.change(f"UPDATE agent_probes SET probed_at = probed_at - INTERVAL {minutes} MINUTE")
            assert (
                survey(settings_of(project, allow_private_addresses=True), registered(host, "a", "b", "c")).probed
                == probed
            )
        assert len(host.requests) == 6


@pytest.mark.parametrize("name", ["survey_interval_s", "survey_concurrency", "survey_per_host", "survey_timeout_s"])
def test_a_survey_cannot_be_told_to_be_rude(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    from health_assets.core.settings import load_settings

    monkeypatch.setenv(f"HEALTH_{name.upper()}", "0" if name != "survey_interval_s" else "299")
    with pytest.raises(HealthAssetsError, match=f"HEALTH_{name.upper()}"):
        load_settings()


def test_those_asked_longest_ago_come_first(project: Project) -> None:
    now = datetime.now(UTC)
    with Host(answers(document())) as host:
        agents = registered(host, *"abcd")
        with project.warehouse.write() as session:
            for agent, minutes in zip(agents, [20, 40, 30, None], strict=True):
                if minutes is not None:
                    probe = made_probe(agent.name, "p", now - timedelta(minutes=minutes), "timeout", minute=0)
                    keep_probes(session, [Probe(agent, probe.answer)])
        survey(settings_of(project, allow_private_addresses=True, survey_per_host=1), agents)
    assert [request.path.split("/")[1] for request in host.requests] == ["d", "b", "c", "a"]


def test_agents_of_a_lost_host_are_kept_as_unreachable_and_told_apart_from_those_asked(project: Project) -> None:
    with closed_port() as gone:
        agents = [RegisteredAgent(name=f"g{n}", platform="p", url=f"{gone}/{n}") for n in range(20)]
        done = survey(settings_of(project, survey_per_host=1, allow_private_addresses=True), agents)
    assert (done.probed, done.host_lost) == (20, 20 - TRIES)
    assert str(done) == (
        "8 of 20 agents were asked; 12 were not, since their hosts gave no connection to others, and are unreachable"
    )
    assert [row["outcome"] for row in project.rows("agent_probes")] == ["unreachable"] * 20


def test_the_warehouse_is_free_while_agents_are_asked(project: Project) -> None:
    seen = []

    def look(_: Probe) -> None:
        with project.warehouse.write() as session:
            seen.append(session.query("SELECT count(*) FROM agent_probes"))

    with Host(answers(document())) as host:
        survey(
            settings_of(project, allow_private_addresses=True, lock_timeout_s=0.1),
            registered(host, *"abc"),
            on_probe=look,
        )
    assert seen == [[(0,)]] * 3
    assert len(project.rows("agent_probes")) == 3


def test_a_warehouse_that_cannot_be_written_is_an_error_of_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    project = Project(tmp_path / "project")
    with Host(answers(document())) as host, pytest.raises(HealthAssetsError, match="cannot make the folder"):
        survey(
            settings_of(project, allow_private_addresses=True, warehouse=str(tmp_path / "file" / "w.duckdb")),
            registered(host, "a"),
        )


def test_a_survey_without_a_registry_is_an_error_of_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["survey"])
    assert done.exit_code == 1
    assert done.stderr == "health-assets: no registry is named; use --registry or HEALTH_REGISTRY\n"
    assert list(tmp_path.iterdir()) == []


# -- in Dagster --------------------------------------------------------------------------------------------------------


def run_survey(project: Project, hours: HourRange, registry: Path | None) -> dict[str, dict[str, Any]]:
    """Run the survey's job for some hours; metadata by asset. Its checks pass."""
    definitions = build_definitions(settings_of(project, registry=registry, allow_private_addresses=True), hours)
    with dg.instance_for_test() as instance:
        result = definitions.resolve_job_def(SURVEY_JOB).execute_in_process(
            instance=instance, tags=hours_tags(hours), run_config=QUIET
        )
    evaluations = result.get_asset_check_evaluations()
    assert {(one.asset_key.to_user_string(), one.check_name) for one in evaluations} == {
        (asset, check.name) for asset in SURVEY_TABLES for check in SUITES[asset].checks
    }
    assert all(one.passed for one in evaluations)
    events = (event.step_materialization_data.materialization for event in result.get_asset_materialization_events())
    return {
        event.asset_key.to_user_string(): {name: value.value for name, value in event.metadata.items()}
        for event in events
    }


def test_the_job_surveys_the_hour_that_runs_and_sums_it_up(project: Project) -> None:
    hour = this_hour()
    with Host({"/a": answers(document())}) as host:
        entries = [{"name": name, "platform": "p", "url": f"{host.url}/{name}"} for name in "ab"]
        metadata = run_survey(project, HourRange.of(hour), write_registry(project, entries))
    assert [(row["hour"], row["name"], row["outcome"]) for row in project.rows("agent_probes")] == [
        (hour, "a", "valid"), (hour, "b", "http_error"),
    ]  # fmt: skip
    assert metadata["agent_probes"]["survey"] == "2 of 2 agents were asked"
    assert metadata["agent_probes"]["dagster/row_count"] == 2
    assert "| p " in metadata["survey_summary"]["platforms"]
    assert {row["survival_rate"] for row in project.rows("survey_summary")} == {0.5}


def test_an_hour_that_is_over_keeps_what_is_stored_and_nobody_is_asked(project: Project) -> None:
    with project.warehouse.write() as session:
        keep_probes(session, [made_probe("a", "p", START, status="healthy")])
    before = project.rows("agent_probes")
    with Host(answers(document())) as host:
        registry = write_registry(project, [{"name": "a", "platform": "p", "url": host.url}])
        metadata = run_survey(project, hours_from(START, 3), registry)
        assert host.requests == []
    assert project.rows("agent_probes") == before
    assert metadata["agent_probes"]["survey"] == "these hours are over, so nobody was asked; what is stored was kept"
    assert [(row["hour"], row["platform"]) for row in project.rows("survey_summary")] == [(START, "all"), (START, "p")]


def test_a_range_that_holds_the_hour_that_runs_surveys_it_and_keeps_the_others(project: Project) -> None:
    hour = this_hour()
    with project.warehouse.write() as session:
        keep_probes(session, [made_probe("old", "p", hour - HOUR, "timeout", minute=0)])
    with Host(answers(document())) as host:
        registry = write_registry(project, [{"name": "a", "platform": "p", "url": host.url}])
        run_survey(project, HourRange(hour - 2 * HOUR, hour + HOUR), registry)
    assert [(row["hour"], row["name"]) for row in project.rows("agent_probes")] == [(hour - HOUR, "old"), (hour, "a")]
    assert {row["hour"] for row in project.rows("survey_summary")} == {hour - HOUR, hour}


def test_without_a_registry_there_is_nothing_and_the_reason_is_told(project: Project) -> None:
    metadata = run_survey(project, HourRange.of(this_hour()), None)
    assert metadata["agent_probes"]["survey"] == "no registry is configured; name its file in HEALTH_REGISTRY"
    assert metadata["agent_probes"]["no rows"] == "these hours do not hold a probe"
    assert project.rows("survey_summary") == []


def tick(project: Project, registry: Path | None, at: datetime) -> Any:
    definitions = build_definitions(settings_of(project, registry=registry))
    resources = {"pipeline": Pipeline(settings=project.settings)}
    with dg.build_schedule_context(
        scheduled_execution_time=at, resources=resources, repository_def=definitions.get_repository_def()
    ) as context:
        return definitions.resolve_schedule_def("survey").evaluate_tick(context)


def test_the_schedule_surveys_the_hour_that_runs_and_skips_without_a_registry(project: Project) -> None:
    at = this_hour() + timedelta(minutes=30)
    (request,) = tick(project, Path("registry.yaml"), at).run_requests
    assert requested_hours(request.tags) == HourRange.of(floor_hour(at))
    skipped = tick(project, None, at)
    assert not skipped.run_requests
    assert skipped.skip_message == "no registry is configured; name its file in HEALTH_REGISTRY"


def test_the_hourly_job_and_the_late_logs_leave_the_survey_alone(project: Project) -> None:
    from health_assets.systems.declared_assets import DERIVED

    definitions = build_definitions(project.settings)
    keys = {key.to_user_string() for key in definitions.resolve_job_def(JOB).asset_layer.selected_asset_keys}
    assert keys and not keys & set(SURVEY_TABLES)
    assert not DERIVED.keys() & set(SURVEY_TABLES)
    schedule = definitions.resolve_schedule_def("survey")
    assert (schedule.cron_schedule, schedule.execution_timezone, schedule.job_name) == ("30 * * * *", "UTC", SURVEY_JOB)
    assert schedule.default_status == dg.DefaultScheduleStatus.RUNNING


def test_a_registry_with_a_fault_fails_the_run_with_its_sentence(project: Project) -> None:
    path = project.folder / "registry.yaml"
    path.write_text("- {name: a}\n")
    hours = HourRange.of(this_hour())
    definitions = build_definitions(settings_of(project, registry=path), hours)
    with dg.instance_for_test() as instance:
        result = definitions.resolve_job_def(SURVEY_JOB).execute_in_process(
            instance=instance, tags=hours_tags(hours), run_config=QUIET, raise_on_error=False
        )
    assert not result.success
    (failure,) = [
        event.step_failure_data
        for event in result.get_step_failure_events()
        if event.step_failure_data.user_failure_data
    ]
    assert "entry 1 ('a'): platform: is missing" in failure.user_failure_data.description
