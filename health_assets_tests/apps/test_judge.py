"""The safety judge, against a real server on this machine that speaks the chat completions protocol, well and badly."""

import json
import logging
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from pydantic import ValidationError

from health_assets.apps.judge.judge_client import MOST_ANSWER_BYTES
from health_assets.apps.judge.judge_evidence import MOST_SENT_CHARACTERS, Run, evidence
from health_assets.apps.judge.judge_verdict import Constraint, Judge
from health_assets.apps.judge.judging import Report, judge
from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HOUR, HourRange
from health_assets.core.judges import FOLDER
from health_assets.core.redaction import REDACTION
from health_assets.core.settings import Settings
from health_assets.defs.build import build_definitions
from health_assets.defs.judge_job import JOB, judge_due_runs
from health_assets.pipeline.resource import Pipeline
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.projects import ENGINES, Project, hours_from, lasting_folder

KEY = "sk-very-secret"
NOW = datetime(2026, 6, 7, 3, 4, 5, tzinfo=UTC)
LOW = {"constraint": "data_minimization", "severity": "low"}

Answer = tuple[int, str]
"""HTTP status and body."""


def completion(content: str | None, finish_reason: str | None = "stop", **message: Any) -> Answer:
    """A chat completion as the protocol has it."""
    choice = {
        "index": 0,
        "finish_reason": finish_reason,
        "message": {"role": "assistant", "content": content, **message},
    }
    body = {"id": "c", "object": "chat.completion", "created": 0, "model": "judge-1", "choices": [choice]}
    return 200, json.dumps(body)


def verdict(*violations: dict[str, str]) -> Answer:
    return completion(json.dumps({"violations": list(violations)}))


class Endpoint:
    """A server that answers what it is told to, and remembers what it was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, list[Answer]] = {}
        """By task, the answers to its requests; the last one for all that follow."""
        self.otherwise = verdict()
        self.more_headers: dict[str, str] = {}
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.wait: Callable[[], Any] = lambda: None
        self._asked: dict[str, int] = {}
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                status, text = endpoint.answer(
                    self.path, body, {name.lower(): text for name, text in self.headers.items()}
                )
                try:
                    self.send_response(status)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(text.encode())))
                    self.send_header("retry-after-ms", "1")
                    for header in endpoint.more_headers.items():
                        self.send_header(*header)
                    self.end_headers()
                    self.wfile.write(text.encode())
                except ConnectionError:
                    pass  # the client no longer waits

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def answer(self, path: str, body: dict[str, Any], headers: dict[str, str]) -> Answer:
        assert path == "/v1/chat/completions"
        self.requests.append(body)
        self.headers.append(headers)
        self.wait()
        task = json.loads(body["messages"][-1]["content"])["task"]
        answers = self.answers.get(task, [self.otherwise])
        place = self._asked.get(task, 0)
        self._asked[task] = place + 1
        return answers[min(place, len(answers) - 1)]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    made = Endpoint()
    yield made
    made.close()


def project_with(folder: Path, runs: int, engine: str = "duckdb") -> Project:
    """A project with so many unjudged evaluation runs, of tasks `t0`, `t1`, …, materialized for one hour."""
    return made_once(runs, engine).copied(folder / "project")


@cache
def made_once(runs: int, engine: str) -> Project:
    project = Project(lasting_folder() / "project", engine=engine)
    records = [execution(f"e{n}", "a", START, task_id=f"t{n}", actions=["read", "delete"]) for n in range(runs)]
    project.write_log("a.jsonl", map(line, records))
    project.materialize(HourRange.of(START), only=["ingest"])
    return project


def pipeline_of(project: Project, endpoint: Endpoint, **settings: Any) -> Pipeline:
    given = {"judge_url": endpoint.url, "judge_model": "judge-1", "judge_key": KEY, "judge_timeout_s": 60.0} | settings
    return Pipeline(settings=Settings(raw=project.raw, warehouse=project.warehouse_url, **given))


def judgements_of(project: Project) -> dict[str, list[dict[str, str]]]:
    """What the judge has written, by execution."""
    files = sorted((project.raw / FOLDER).glob("*"))
    assert all(file.suffix == ".jsonl" for file in files)
    records = [json.loads(text) for file in files for text in file.read_text().splitlines()]
    assert len({record["execution_id"] for record in records}) == len(records), "judged twice"
    return {record["execution_id"]: record["violations"] for record in records}


# -- a judge that answers well -----------------------------------------------------------------------------------------


def test_verdicts_become_judgements_that_the_pipeline_reads_like_any_other_log(
    tmp_path: Path, endpoint: Endpoint
) -> None:
    project = project_with(tmp_path, 4)
    endpoint.answers = {"t1": [verdict(LOW, {"constraint": "no_pii_exposure", "severity": "high"})]}
    report = judge_due_runs(pipeline_of(project, endpoint), NOW)
    assert (report.found, report.judged, report.violated, report.failures.total()) == (4, 4, 1, 0)
    assert report.file is not None and (project.raw / report.file).is_file()
    project.materialize(hours_from(START, 2), only=["ingest", "task_consistency", "agent_reliability"])
    rows = project.rows("agent_reliability")
    assert [(row["judged"], row["violated"], row["r_saf"]) for row in rows] == [(4, 1, 0.75)] * 2
    assert project.rows("rejected_records") == []


def test_runs_of_two_agents_with_one_id_are_judged_apart(project: Project, endpoint: Endpoint) -> None:
    endpoint.answers["harmful"] = [verdict({"constraint": "no_pii_exposure", "severity": "high"})]
    records = [
        execution("run-1", "a", START, task_id="harmful"),
        execution("run-1", "b", START, task_id="harmless"),
        execution("run-1", "c", START, task_id="judged"),
    ]
    project.write_log("a.jsonl", map(line, records))
    by_hand = {"type": "judgement", "execution_id": "run-1", "agent_id": "c", "at": START.isoformat(), "violations": []}
    project.write_log(f"{FOLDER}/by hand.jsonl", [line(by_hand | {"judged_by": "person"})])
    project.ingest(HourRange.of(START))
    report = judge_due_runs(pipeline_of(project, endpoint), NOW)
    assert (report.judged, report.violated) == (2, 1)
    assert judge_due_runs(pipeline_of(project, endpoint), NOW).found == 0
    project.ingest(HourRange.of(START))
    assert {row["agent_id"]: json.loads(row["violations"]) for row in project.rows("judgements")} == {
        "a": [{"constraint": "no_pii_exposure", "severity": "high"}], "b": [], "c": [],
    }  # fmt: skip
    assert judge_due_runs(pipeline_of(project, endpoint), NOW).found == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_judged_is_never_sent_again(tmp_path: Path, endpoint: Endpoint, engine: str) -> None:
    project = project_with(tmp_path, 3, engine)
    pipeline = pipeline_of(project, endpoint)
    assert judge_due_runs(pipeline, NOW).judged == 3
    again = judge_due_runs(pipeline, NOW)  # before the warehouse has them
    assert (again.found, again.file) == (0, None)
    project.materialize(HourRange.of(START), only=["ingest"])
    assert judge_due_runs(pipeline, NOW).found == 0
    for file in (project.raw / FOLDER).iterdir():
        file.unlink()
    assert judge_due_runs(pipeline, NOW).found == 0  # the warehouse has them
    assert len(endpoint.requests) == 3


def test_only_unjudged_evaluation_runs_are_sent(project: Project, endpoint: Endpoint) -> None:
    records = [
        execution("no task", "a", START),
        execution("judged later", "a", START, task_id="t"),
        execution("twice", "a", START, task_id="t"),
        execution("twice", "a", START.replace(hour=1), task_id="t"),
    ]
    project.write_log("a.jsonl", map(line, records))
    judgement = {"type": "judgement", "execution_id": "judged later", "at": START.isoformat(), "violations": []}
    project.write_log(f"{FOLDER}/by hand.jsonl", [line(judgement | {"judged_by": "person", "judge": "Ada"})])
    project.materialize(hours_from(START, 2), only=["ingest"])
    assert judge_due_runs(pipeline_of(project, endpoint), NOW).judged == 1
    assert len(endpoint.requests) == 2, "one verdict on both runs of the id"


@pytest.mark.parametrize(
    ("is_judged_between", "harmful_hour"),
    [(True, 0), (False, 1), *(pytest.param(*pair, marks=pytest.mark.nightly) for pair in [(True, 1), (False, 0)])],
)
def test_no_harmless_run_of_the_same_id_clears_a_harmful_one(
    project: Project, endpoint: Endpoint, harmful_hour: int, is_judged_between: bool
) -> None:
    endpoint.answers["harmful"] = [verdict({"constraint": "no_pii_exposure", "severity": "high"})]
    steps = ["ingest", "task_consistency", "agent_reliability"]
    for hour in range(2):
        task = "harmful" if hour == harmful_hour else "harmless"
        project.write_log(f"{hour}.jsonl", [line(execution("e", "a", START + hour * HOUR, task_id=task))])
        if hour or is_judged_between:
            project.materialize(hours_from(START, 2), only=["ingest"])
            assert judge_due_runs(pipeline_of(project, endpoint), NOW + hour * HOUR).judged == 1
    project.materialize(hours_from(START, 2), only=steps)
    assert [row["r_saf"] for row in project.rows("agent_reliability")][-1] == 0
    assert judge_due_runs(pipeline_of(project, endpoint), NOW + 2 * HOUR).found == 0


def test_what_an_agent_says_of_itself_keeps_nobody_from_judging_it(project: Project, endpoint: Endpoint) -> None:
    clean = {"type": "judgement", "at": START.isoformat(), "violations": []}
    records = [
        execution("itself", "a", START, task_id="itself", violations=[]),
        execution("claimed", "a", START, task_id="claimed"),
        clean | {"execution_id": "claimed", "judged_by": "person"},
        execution("agent", "a", START, task_id="agent"),
    ]
    project.write_log("a.jsonl", map(line, records))
    project.write_log(f"{FOLDER}/1.jsonl", [line(clean | {"execution_id": "agent", "judged_by": "agent"})])
    project.materialize(HourRange.of(START), only=["ingest"])
    severe = {"constraint": "no_pii_exposure", "severity": "high"}
    endpoint.otherwise = verdict(severe)
    report = judge_due_runs(pipeline_of(project, endpoint), NOW)
    assert (report.found, report.judged) == (3, 3)
    project.materialize(HourRange.of(START), only=["ingest", "task_consistency", "agent_reliability"])
    assert [row["r_saf"] for row in project.rows("agent_reliability")] == [0]
    assert judge_due_runs(pipeline_of(project, endpoint), NOW).found == 0


DEEP = "[" * 100_000


@pytest.mark.parametrize(
    "texts",
    [
        [
            "not JSON",
            "[]",
            '{"execution_id": "e0"}',
            '{"type": "judgement", "execution_id": "e0"}',
            '{"type": "judgement", "execution_id": "e0", "at": "2026-06-07T00:00:00Z", "violations": [{"severity": "none"}]}',
            '{"type": "judgement", "execution_id": "e0", "at": "2026-06-07T00:00:00Z", "violations": [], "judged_by": "agent"}',
        ],
        [
            f'{{"type": "judgement", "execution_id": "e0", "violations": {DEEP}',
            f'{{"execution_id": "e0", "more": {DEEP}{"]" * 100_000}}}',
        ],
    ],
    ids=["none", "deep"],
)
def test_only_a_judgement_that_would_be_loaded_keeps_a_run_from_being_judged(
    tmp_path: Path, endpoint: Endpoint, texts: list[str]
) -> None:
    project = project_with(tmp_path, 1)
    for number, text in enumerate(texts):
        project.write_log(f"{FOLDER}/forged {number}.jsonl", [text])
    pipeline = pipeline_of(project, endpoint)
    assert judge_due_runs(pipeline, NOW).judged == 1
    assert judge_due_runs(pipeline, NOW).found == 0


def test_the_budget_of_a_run_holds_and_the_rest_comes_later(tmp_path: Path, endpoint: Endpoint) -> None:
    project = project_with(tmp_path, 5)
    pipeline = pipeline_of(project, endpoint, judge_max_runs=2)
    found = [(report.found, report.judged) for report in (judge_due_runs(pipeline, NOW) for _ in range(4))]
    assert found == [(5, 2), (3, 2), (1, 1), (0, 0)]
    assert len(judgements_of(project)) == 5


def test_the_request_follows_the_protocol_and_the_key_is_only_in_its_header(
    tmp_path: Path, endpoint: Endpoint, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "another key")
    monkeypatch.setenv("OPENAI_ORG_ID", "an organisation")
    caplog.set_level(logging.DEBUG)
    project = project_with(tmp_path, 1)
    pipeline = pipeline_of(project, endpoint)
    judge_due_runs(pipeline, NOW)
    (request,), (headers,) = endpoint.requests, endpoint.headers
    assert request["model"] == "judge-1"
    assert [message["role"] for message in request["messages"]] == ["system", "user"]
    assert json.loads(request["messages"][1]["content"]) == {
        "task": "t0", "outcome": "success", "error": "", "actions": ["read", "delete"]
    }  # fmt: skip
    schema = request["response_format"]["json_schema"]
    assert schema["strict"] is True
    assert schema["schema"]["additionalProperties"] is False
    for constraint in Constraint.__args__:
        assert constraint in request["messages"][0]["content"]
        assert constraint in json.dumps(schema)
    assert headers["authorization"] == f"Bearer {KEY}"
    assert "an organisation" not in headers.values()
    assert KEY not in json.dumps(request) + caplog.text + repr(pipeline)
    assert all(KEY not in file.read_text() for file in (project.raw / FOLDER).iterdir())


def test_without_a_key_no_key_of_the_environment_is_sent(
    tmp_path: Path, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a key for somebody else")
    judge_due_runs(pipeline_of(project_with(tmp_path, 1), endpoint, judge_key=None), NOW)
    assert "somebody else" not in json.dumps(endpoint.headers)


@pytest.mark.parametrize("size", [0, 1, 100, 10_000])
@pytest.mark.parametrize(("length", "character"), [(1, "x"), (50, "é"), (10_000, '"'), (10_000, "\0")])
def test_no_more_is_sent_than_the_limit(size: int, length: int, character: str) -> None:
    long = character * length
    actions = [f"{number} {long}" for number in range(size)]
    actions = actions[: 10**6 // length]
    sent = evidence(
        [
            Run(
                execution_id="e",
                agent_id="a",
                ended_at=START,
                task_id=long,
                status="failure",
                error=long,
                actions=actions,
            )
        ],
        REDACTION,
        10**6,
    )
    documents = [json.loads(part) for part in sent.parts]
    assert max(map(len, sent.parts)) <= MOST_SENT_CHARACTERS
    assert sent.cut == (2 if length > 1000 else 0)
    assert ("left out" in documents[0]["error"]) == (length > 1000)
    seen = [entry for document in documents for entry in document["actions"]]
    assert "".join(seen).replace("……", "") == "".join(actions)


def test_of_a_long_run_every_action_is_seen_and_the_worst_of_all_parts_is_the_verdict(
    tmp_path: Path, endpoint: Endpoint
) -> None:
    actions = [f"read the file number {number} of the archive and go on to the next one" for number in range(3001)]
    actions[1500] = "DELETE everything"
    harm = {"constraint": "no_destructive_operations", "severity": "high"}

    def answer(_path: str, body: dict[str, Any], _headers: dict[str, str]) -> Answer:
        document = json.loads(body["messages"][-1]["content"])
        endpoint.requests.append(document)
        is_harmful = "DELETE everything" in document["actions"]
        return verdict(LOW, *([harm] if is_harmful else [harm | {"severity": "low"}]))

    endpoint.answer = answer  # type: ignore[method-assign]
    project = Project(tmp_path / "project")
    run = Run(
        execution_id="e", agent_id="a", ended_at=START, task_id="t", status="success", error=None, actions=actions
    )
    report = judge([run], pipeline_of(project, endpoint).settings, NOW)
    assert judgements_of(project) == {"e": [LOW, harm]}
    parts = len(endpoint.requests)
    assert report.parts == parts > 5
    assert [document["part"] for document in endpoint.requests] == [f"{n} of {parts}" for n in range(1, parts + 1)]
    assert [action for document in endpoint.requests for action in document["actions"]] == actions


def test_a_run_of_which_one_part_has_no_verdict_stays_unjudged(tmp_path: Path, endpoint: Endpoint) -> None:
    project = Project(tmp_path / "project")
    long = [f"{number} {'x' * 900}" for number in range(60)]
    endpoint.answers = {"t": [verdict(), verdict(LOW), BAD["refusal"][0]]}
    runs = [
        Run(execution_id="e", agent_id="a", ended_at=START, task_id="t", status="success", error=None, actions=long),
        Run(
            execution_id="g", agent_id="a", ended_at=START, task_id="v", status="success", error=None, actions=["read"]
        ),
    ]
    report = judge(runs, pipeline_of(project, endpoint, judge_max_parts=5).settings, NOW)
    assert dict(report.failures) == {"refusal": 1}
    assert judgements_of(project) == {"g": []}


def test_a_run_that_is_too_long_is_judged_by_parts_that_nobody_can_foresee(
    project: Project, endpoint: Endpoint
) -> None:
    actions = [f"{number} {'x' * 900}" for number in range(300)]
    project.write_log("a.jsonl", [line(execution("e", "a", START, task_id="t", actions=actions, violations=[]))])
    project.materialize(HourRange.of(START), only=["ingest"])
    endpoint.answers = {"t": [verdict(), verdict(LOW), verdict()]}
    report = judge_due_runs(pipeline_of(project, endpoint, judge_max_parts=3), NOW)
    assert (report.judged, report.violated, report.parts, report.sampled) == (1, 1, 3, 1)
    (file,) = (project.raw / FOLDER).iterdir()
    record = json.loads(file.read_text())
    assert (record["violations"], record["parts_judged"]) == ([LOW], 3)
    told = [json.loads(request["messages"][1]["content"])["part"] for request in endpoint.requests]
    assert all(part.endswith(f" of {record['parts']}") for part in told)
    project.materialize(HourRange.of(START), only=["ingest", "task_consistency", "agent_reliability"])
    assert [row["violated"] for row in project.rows("agent_reliability")] == [1], (
        "what it says of itself does not stand"
    )
    run = Run(
        execution_id="e", agent_id="a", ended_at=START, task_id="t", status="success", error=None, actions=actions
    )
    chosen = {tuple(evidence([run], REDACTION, 3).parts) for _ in range(20)}
    assert len(chosen) > 1, "the same run tells nobody which parts are sent"
    assert len({len(set(parts)) for parts in chosen}) == 1


def test_no_secret_leaves_the_house(tmp_path: Path, endpoint: Endpoint) -> None:
    project = Project(tmp_path / "project")
    run = Run(
        execution_id="e",
        agent_id="a",
        ended_at=START,
        task_id="log in with password=hunter2",
        status="failure",
        error="https://me:hunter2@db.example",
        actions=["token: hunter2"],
    )
    report = judge([run], pipeline_of(project, endpoint).settings, NOW)
    (request,) = endpoint.requests
    assert "hunter2" not in json.dumps(request)
    assert (report.judged, report.secrets) == (1, 3)


# -- a judge that answers badly ----------------------------------------------------------------------------------------

BAD: dict[str, tuple[Answer, str, int]] = {  # the answer, the reason that is told, requests that are made
    "no JSON": (completion("It looks clean to me."), "not JSON", 3),
    "cut off": (completion('{"violations": [', "length"), "finished by length", 3),
    "filtered": (completion('{"violations": []}', "content_filter"), "finished by content_filter", 3),
    "unknown constraint": (verdict({"constraint": "be_nice", "severity": "low"}), "unknown constraint", 3),
    "unknown severity": (verdict({"constraint": "no_pii_exposure", "severity": "severe"}), "unknown severity", 3),
    "another form": (completion('{"violation": []}'), "JSON of another form", 3),
    "one field more": (completion('{"violations": [], "sure": true}'), "JSON of another form", 3),
    "a list": (completion("[]"), "JSON of another form", 3),
    "null": (completion("null"), "JSON of another form", 3),
    "refusal": (completion(None, refusal="I cannot help with that."), "refusal", 3),
    "blank": (completion(" \n"), "not JSON", 3),
    "other tools": (completion(None, tool_calls=[{"id": "t"}]), "not a chat completion", 3),
    "tools": (completion('{"violations": []}', "tool_calls"), "finished by tool_calls", 3),
    "an end in words": (completion('{"violations": []}', "eos"), "finished by eos", 3),
    "nothing": (completion(None), "empty answer", 3),
    "no choice": ((200, '{"choices": []}'), "empty answer", 3),
    "no completion": ((200, '{"ok": true}'), "not a chat completion", 3),
    "no JSON at all": ((200, "<html>gateway</html>"), "not a chat completion", 3),
    "no body": ((200, ""), "not a chat completion", 3),
    "too many requests": ((429, '{"error": {"message": "slow down"}}'), "HTTP 429", 3),
    "broken": ((500, "oops"), "HTTP 500", 3),
    "too large": ((200, " " * MOST_ANSWER_BYTES + verdict()[1]), "answer too large", 1),
    "broken and too large": ((500, "oops" * MOST_ANSWER_BYTES), "answer too large", 1),
    "bad request": ((400, '{"error": {"message": "no such field"}}'), "HTTP 400", 1),
}  # fmt: skip


def judged_directly(folder: Path, endpoint: Endpoint, runs: int) -> tuple[Report, Project]:
    """What becomes of runs of tasks `t0`, `t1`, … that are sent without a warehouse."""
    project = Project(folder / "project")
    sent = [
        Run(
            execution_id=f"e{number}",
            agent_id="a",
            ended_at=START,
            task_id=f"t{number}",
            status="success",
            error=None,
            actions=["read"],
        )
        for number in range(runs)
    ]
    return judge(sent, pipeline_of(project, endpoint).settings, NOW), project


@pytest.mark.parametrize("name", BAD)
def test_a_bad_answer_is_asked_again_within_bounds_and_is_never_a_judgement(
    tmp_path: Path, endpoint: Endpoint, name: str
) -> None:
    answer, reason, requests = BAD[name]
    endpoint.answers = {"t0": [answer]}
    report, project = judged_directly(tmp_path, endpoint, 2)
    assert (report.judged, dict(report.failures)) == (1, {reason: 1})
    assert judgements_of(project) == {"e1": []}
    assert len(endpoint.requests) == requests + 1


@pytest.mark.parametrize("name", ["no JSON", "refusal", "too many requests", "broken", "no body"])
def test_a_good_answer_after_a_bad_one_counts(tmp_path: Path, endpoint: Endpoint, name: str) -> None:
    endpoint.answers = {"t0": [BAD[name][0], verdict(LOW)]}
    report, project = judged_directly(tmp_path, endpoint, 1)
    assert (report.judged, report.failures.total()) == (1, 0)
    assert judgements_of(project) == {"e0": [LOW]}


def test_a_packed_answer_of_which_nobody_knows_the_size_is_not_asked_for_and_not_unpacked(
    tmp_path: Path, endpoint: Endpoint
) -> None:
    endpoint.more_headers = {"Content-Encoding": "gzip"}
    report, _ = judged_directly(tmp_path, endpoint, 1)
    assert (report.judged, dict(report.failures)) == (0, {"packed answer": 1})
    assert {headers["accept-encoding"] for headers in endpoint.headers} == {"identity"}


def test_a_judge_that_is_too_slow_is_given_up(tmp_path: Path, endpoint: Endpoint) -> None:
    project = project_with(tmp_path, 1)
    done = threading.Event()
    endpoint.wait = lambda: done.wait(60)
    report = judge_due_runs(pipeline_of(project, endpoint, judge_timeout_s=0.1), NOW)
    done.set()
    assert (report.judged, dict(report.failures)) == (0, {"timeout": 1})
    assert not (project.raw / FOLDER).exists()


def test_a_judge_that_is_not_there_ends_the_work_and_another_time_will_do(tmp_path: Path, endpoint: Endpoint) -> None:
    project = project_with(tmp_path, 8)
    endpoint.otherwise = (500, "{}")
    report = judge_due_runs(pipeline_of(project, endpoint), NOW)
    assert (report.found, report.judged, dict(report.failures)) == (8, 0, {"HTTP 500": 5})
    endpoint.otherwise = verdict()
    assert judge_due_runs(pipeline_of(project, endpoint), NOW).judged == 8


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_judge_that_turns_us_away_is_asked_once(tmp_path: Path, endpoint: Endpoint, status: int) -> None:
    project = project_with(tmp_path, 3)
    endpoint.otherwise = (status, '{"error": {"message": "no"}}')
    report = judge_due_runs(pipeline_of(project, endpoint), NOW)
    assert dict(report.failures) == {f"HTTP {status}": 1}
    assert len(endpoint.requests) == 1


def test_runs_without_a_verdict_do_not_hold_up_the_others(tmp_path: Path, endpoint: Endpoint) -> None:
    project = project_with(tmp_path, 3)
    endpoint.answers = {"t0": [BAD["refusal"][0]]}
    pipeline = pipeline_of(project, endpoint, judge_max_runs=1)
    for hour in range(6):
        judge_due_runs(pipeline, NOW.replace(hour=hour))
    assert set(judgements_of(project)) == {"e1", "e2"}


def test_verdicts_are_kept_when_the_work_breaks_off(
    tmp_path: Path, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = project_with(tmp_path, 3)
    real = Judge.verdict
    asked = []

    def interrupted(model: Judge, parts: Any) -> Any:
        asked.append(parts)
        if len(asked) == 3:
            raise KeyboardInterrupt
        return real(model, parts)

    monkeypatch.setattr(Judge, "verdict", interrupted)
    with pytest.raises(KeyboardInterrupt):
        judge_due_runs(pipeline_of(project, endpoint), NOW)
    assert len(judgements_of(project)) == 2


# -- as a job ----------------------------------------------------------------------------------------------------------


def test_the_job_judges_and_tells_what_it_did(tmp_path: Path, endpoint: Endpoint) -> None:
    project = project_with(tmp_path, 3)
    endpoint.answers = {"t0": [BAD["refusal"][0]], "t1": [verdict(LOW)]}
    definitions = build_definitions(pipeline_of(project, endpoint).settings, HourRange.of(START))
    result = definitions.resolve_job_def(JOB).execute_in_process()
    (event,) = result.get_step_success_events()
    (output,) = [
        event for event in result.events_for_node("judge_unjudged_runs") if event.event_type_value == "STEP_OUTPUT"
    ]
    assert event.is_step_success
    metadata = {name: value.value for name, value in output.step_output_data.metadata.items()}
    assert metadata.pop("file").startswith(f"{FOLDER}/")
    assert metadata == {
        "unjudged runs found": 3, "judged": 2, "with a violation": 1, "left for later": 0, "no verdict: refusal": 1,
        "sent in parts": 3, "sent in part": 0, "texts cut": 0, "secrets redacted": 0,
    }  # fmt: skip
    assert definitions.resolve_schedule_def("judge_safety_hourly").default_status == dg.DefaultScheduleStatus.STOPPED


def test_without_a_judge_there_is_neither_job_nor_schedule(project: Project) -> None:
    repository = build_definitions(project.settings, HourRange.of(START)).get_repository_def()
    assert JOB not in repository.job_names
    assert not repository.has_schedule_def("judge_safety_hourly")
    with pytest.raises(HealthAssetsError, match="HEALTH_JUDGE_URL"):
        Judge(project.settings)


@pytest.mark.parametrize("url", ["judge.example/v1", "ftp://judge.example", ""])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ValidationError, match="judge_url"):
        Settings(judge_url=url)


def test_a_raw_root_that_cannot_be_written_is_one_sentence(tmp_path: Path, endpoint: Endpoint) -> None:
    project = project_with(tmp_path, 1)
    (project.raw / FOLDER).write_text("a file where a folder should be")
    with pytest.raises(dg.Failure, match="cannot write the judgements to"):
        judge_due_runs(pipeline_of(project, endpoint), NOW)


@pytest.mark.parametrize("way", ["a folder that others can write", "a link"])
def test_nothing_is_judged_where_the_judgements_would_not_count(tmp_path: Path, endpoint: Endpoint, way: str) -> None:
    folder = tmp_path / "project" / "raw" / FOLDER
    folder.parent.mkdir(parents=True)
    if way == "a link":
        (tmp_path / "elsewhere").mkdir()
        folder.symlink_to(tmp_path / "elsewhere")
    else:
        folder.mkdir()
        folder.chmod(0o777)
    with pytest.raises(HealthAssetsError, match=r"judgements in .* would count as the agents' own, since it "):
        judged_directly(tmp_path, endpoint, 1)
    assert not endpoint.requests
