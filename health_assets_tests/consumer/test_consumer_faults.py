"""Documents with faults: what is believed of them, what is said beside it, and how `check --strict` tells them apart."""

import json
from functools import partial
from typing import Any

import pytest
from typer.testing import CliRunner

from health_assets import consumer
from health_assets.cli.commands import app
from health_assets.consumer import Advice, advise
from health_assets.consumer.faulty_documents import read_document
from health_assets_tests.support.health_servers import (
    NOW,
    Host,
    answers,
    closed_port,
    current_document,
    document,
    hangs,
    head,
)

fetch_health = partial(consumer.fetch_health, allow_private=True)
PROBLEM = "application/problem+json"


def advice_on(body: bytes | dict[str, Any], *answer: Any, **more: Any) -> Advice:
    with Host(answers(body, *answer, **more)) as host:
        return advise(fetch_health(host.url), now=NOW)


def check(behaviour: Any, *arguments: str) -> tuple[int, str]:
    with Host(behaviour) as host:
        done = CliRunner().invoke(app, ["check", "--allow-private", host.url, *arguments])
    return done.exit_code, done.output


FAULTS: dict[str, dict[str, Any]] = {
    "health.last_healthy_at: must not be null": {"health__last_healthy_at": None},
    "health.uptime_seconds: must be at least 0": {"health__uptime_seconds": -3},
    "calibration.measurement_window_seconds: must be at least 300": {"calibration__measurement_window_seconds": 60},
    "calibration: must be an object": {"calibration": []},
    "extensions.mood: must have a namespace prefix": {"extensions": {"mood": 1, "com.example.a": 2}},
    "extensions: must be an object": {"extensions": []},
    "schema_version: must be a version 0.1.x": {"schema_version": "0.2.0"},
    "schema_version: is missing": {"schema_version": ...},
    "agent_id: is missing": {"agent_id": ...},
    "timestamp: must have a time zone": {"timestamp": "2026-06-07T13:00:00"},
    "decay.calibration_trend: must be stable": {"decay__calibration_trend": "sideways"},
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(
    ("status", "kind"),
    [("unhealthy", "avoid"), ("degraded", "caution"), ("healthy", "unknown"), ("unknown", "unknown")],
)
def test_a_warning_is_believed_with_its_fault_beside_it_and_a_healthy_one_needs_a_valid_document(
    fault: str, status: str, kind: str
) -> None:
    advice = advice_on(document(status, **FAULTS[fault]))
    assert (advice.kind, advice.outcome, advice.answer.document) == (kind, "invalid", None)
    assert any(problem.startswith(fault) for problem in advice.answer.problems)
    if kind == "unknown":
        assert f"It says {status}, which is not believed of such an answer." in advice.sentences
        return
    assert advice.document is not None and advice.document.health.status == advice.status == status
    assert (
        "Its answer is no valid health document, and believed nevertheless: 1 thing is wrong with what it answers."
        in advice.sentences
    )


def test_what_is_faulty_is_left_out_of_the_figures_and_the_rest_is_told() -> None:
    code, output = check(
        answers(current_document("unhealthy", health__last_healthy_at=None, calibration__error_ratio=7))
    )
    assert code == 4
    assert "  health.last_healthy_at: must not be null\n" in output
    assert "  calibration.error_ratio: must be at most 1, not 7\n" in output
    assert "response ratio  30%" in output
    assert "error ratio" not in output
    assert "Since when it is out of order it does not say." in output


@pytest.mark.parametrize("text", ["Unhealthy", "UNHEALTHY", " unhealthy\n"])
def test_unhealthy_in_other_letters_is_believed(text: str) -> None:
    advice = advice_on(document(health__status=text))
    assert (advice.kind, advice.status) == ("avoid", "unhealthy")
    assert advice.answer.problems[0].startswith("health.status: must be healthy, degraded, unhealthy or unknown")


@pytest.mark.parametrize(
    ("answer", "more"),
    [
        (["503 Service Unavailable"], {}),
        (["200 OK", "text/plain"], {}),
        (["200 OK", None], {}),
        (["500 Internal Server Error", PROBLEM], {}),
    ],
)
def test_unhealthy_is_believed_whatever_the_http_status_and_the_content_type(answer: list[Any], more: Any) -> None:
    advice = advice_on(document("unhealthy"), *answer, **more)
    assert (advice.kind, advice.retry_after_s) == ("avoid", 300)
    assert advice.outcome in ("http_error", "invalid")


def test_numbers_that_json_does_not_know_do_not_hide_a_warning() -> None:
    body = json.dumps(document("unhealthy", calibration__latency_p99_ms=float("nan"))).encode()
    advice = advice_on(body)
    assert (advice.kind, advice.document.calibration.latency_p99_ms) == ("avoid", None)
    assert advice.answer.problems == ("the document: is not valid JSON (NaN is no JSON number)",)


@pytest.mark.parametrize(
    "faulty",
    [
        rb'"extensions": {"\ud800bad": 1}',
        rb'"extensions": {"\ud800": 1, "mood": 2}, "agent_id": "\ud800", "\ud800": 3',
        b'"agent_id": "a", "agent_id": "b"',
        b'"calibration": {"sample_count": 1, "sample_count": 2}',
        b'"calibration": {"sample_count": ' + b"9" * 5000 + b"}",
        b'"calibration": {"sample_count": ' + b"9" * 400 + b', "latency_p50_ms": ' + b"9" * 400 + b"}",
        b'"extensions": {"com.example.a": ' + b"[" * 100 + b"]" * 100 + b"}",
    ],
)
def test_no_content_of_another_member_raises_or_hides_a_warning(faulty: bytes) -> None:
    reading = read_document(b'{"health": {"status": "unhealthy"}, %s}' % faulty)
    assert reading.problems
    assert reading.readable is not None
    assert reading.readable.health.status == "unhealthy"
    assert reading.readable.calibration.sample_count is None
    assert reading.readable.extensions == {}


def test_members_beside_an_extension_key_of_broken_unicode_are_kept() -> None:
    body = rb'{"health": {"status": "degraded"}, "agent_id": "a", "extensions": {"\ud800": 1, "com.example.a": 2}}'
    readable = read_document(body).readable
    assert readable is not None
    assert (readable.agent_id, readable.extensions) == ("a", {"com.example.a": 2})


@pytest.mark.parametrize(
    "body",
    [
        b"{", b"[]", b'"unhealthy"', b'{"status": "unhealthy"}', b'{"health": "unhealthy"}',
        b'{"health": {"status": ["unhealthy"]}}', b'{"health": {"status": "unhealthy", "status": "healthy"}}',
        b'{"health": {"status": "unhealthy"}, "health": {"status": "healthy"}}', b'{"health": {"status": "down"}}', b"\xff", b"[" * 5000,
    ],
)  # fmt: skip
def test_what_states_no_status_that_can_be_read_is_unknown(body: bytes) -> None:
    assert read_document(body).readable is None
    assert advice_on(body).kind == "unknown"


@pytest.mark.parametrize(
    ("member", "said"),
    [
        ("health__lastHealthyAt", "health.lastHealthyAt: is no member of the draft; health.last_healthy_at is"),
        ("calibration__latency_p95_ms", "calibration.latency_p95_ms: is no member of the draft; calibration.latency_p"),
        ("sampleCount", "sampleCount: is no member of the draft; calibration.sample_count is"),
        (
            "calibration__calibration_trend",
            "calibration.calibration_trend: is no member of the draft; decay.calibration_",
        ),
        ("mood", "mood: is no member of the draft; a member of your own belongs in extensions, with a namespace"),
    ],
)
def test_unknown_members_are_named_with_what_they_may_stand_for(member: str, said: str) -> None:
    content = document(**{member: "x"})
    (named,) = read_document(json.dumps(content).encode()).unknown_members
    assert named.startswith(said)
    assert advice_on(content).outcome == "valid", "a consumer ignores them"
    code, output = check(answers(content), "--strict")
    assert (code, named in output.replace("\n", " ").replace("  ", " ")) == (6, True)
    assert check(answers(content))[0] == 0


@pytest.mark.parametrize(
    ("behaviour", "plain", "strict"),
    [
        (answers(document()), 0, 0),
        (answers(document("degraded")), 3, 3),
        (answers(document("unhealthy")), 4, 4),
        (answers(document("unknown")), 5, 5),
        (answers(document("unknown", schema_version="0.2.0")), 5, 6),
        (answers(document("unhealthy", schema_version="0.2.0")), 4, 6),
        (answers(b"<html>", content_type="text/html"), 5, 6),
        (answers(b"", "404 Not Found"), 5, 7),
        (hangs(), 5, 8),
    ],
)
def test_strict_tells_unknown_from_invalid_from_an_error_from_no_answer(
    behaviour: Any, plain: int, strict: int
) -> None:
    assert check(behaviour, "--timeout-s", "0.3")[0] == plain
    assert check(behaviour, "--timeout-s", "0.3", "--strict")[0] == strict


def test_strict_of_what_cannot_be_reached_is_no_answer() -> None:
    with closed_port() as url:
        assert CliRunner().invoke(app, ["check", "--allow-private", "--strict", url]).exit_code == 8


@pytest.mark.parametrize(
    ("body", "content_type", "reason"),
    [
        (
            b'{"title": "Not Found", "detail": "no agent of this name is known"}',
            PROBLEM,
            ": no agent of this name is known.",
        ),
        (b'{"detail": "Not Found"}', "application/json", ": Not Found."),
        (b'{"error": {"code": 1}, "message": "gone.\\u001b[31m"}', "application/json", ": gone.\\x1b[31m."),
        (b'{"detail": ""}', "application/json", "404 Not Found."),
        (b"<html>nothing here</html>", "text/html", "404 Not Found."),
        (b"[1", "application/json", "404 Not Found."),
    ],
)
def test_check_passes_on_the_reason_in_the_body_of_an_error(body: bytes, content_type: str, reason: str) -> None:
    code, output = check(answers(body, "404 Not Found", content_type))
    assert code == 5
    assert reason in output.replace("\n", " ")


def test_the_body_of_an_error_that_does_not_come_is_not_waited_for() -> None:
    with Host(hangs(head("404 Not Found", "application/json", {"Content-Length": "10"}))) as host:
        answer = fetch_health(host.url, timeout_s=2.0)
    assert (answer.outcome, answer.http_status) == ("http_error", 404)
    assert answer.latency_ms is not None and answer.latency_ms < 1500
