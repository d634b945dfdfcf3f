"""The decision flow of appendix A, worked through by hand, and the command `check` that prints it."""

import json
import sys
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from typer.testing import CliRunner

from health_assets.apps.serving import vocabulary
from health_assets.cli.commands import EXIT_CODES, app
from health_assets.consumer import Advice, Answer, advise, parse_document
from health_assets.consumer.advice import in_words, percent
from health_assets.consumer.extensions import ALARMING, EXTENSION_NOW
from health_assets.core.errors import HealthAssetsError
from health_assets.systems.agent_now.names import VERDICTS
from health_assets_tests.support.health_servers import (
    NOW,
    Host,
    answers,
    closed_port,
    current_document,
    document,
    hangs,
)
from health_assets_tests.support.projects import command


def answer_of(status: str = "healthy", **changes: Any) -> Answer:
    content = parse_document(json.dumps(document(status, **changes)).encode())
    return Answer(
        url="https://agent.example/.well-known/agent-health",
        asked_at=NOW,
        outcome="valid",
        document=content,
        http_status=200,
        latency_ms=12.0,
    )


def advice_on(status: str = "healthy", previous_status: str | None = None, **changes: Any) -> Advice:
    return advise(answer_of(status, **changes), previous_status=previous_status)


def says(advice: Advice, words: str) -> bool:
    return words in " ".join(advice.sentences)


@pytest.mark.parametrize(
    ("status", "kind", "retry_after_s"),
    [
        ("healthy", "proceed", None),
        ("degraded", "caution", None),
        ("unhealthy", "avoid", 300),
        ("unknown", "unknown", None),
    ],
)
def test_the_status_decides_what_to_do(status: str, kind: str, retry_after_s: int | None) -> None:
    advice = advice_on(status)
    assert (advice.status, advice.kind, advice.retry_after_s) == (status, kind, retry_after_s)
    assert advice.document.health.status == status
    assert advice.outcome == "valid"


def now_says(verdict: Any, since: Any = "2026-06-07T12:00:00Z") -> dict[str, Any]:
    return {"extensions": {EXTENSION_NOW: {"verdict": verdict, "since": since}}}


def test_the_extension_has_one_name_at_the_endpoint_and_here() -> None:
    assert EXTENSION_NOW == vocabulary.EXTENSION_NOW and set(ALARMING) <= set(VERDICTS)


def test_a_healthy_agent_that_is_failing_now_gets_caution() -> None:
    advice = advice_on("healthy", **now_says("failing"))
    assert (advice.kind, advice.status) == ("caution", "healthy")
    first, second, *_ = advice.sentences
    assert first.startswith("Proceed with caution: its status is healthy")
    assert second == "It says of its last hours: FAILING now, since 2026-06-07 12:00 UTC."


@pytest.mark.parametrize("status", ["degraded", "unhealthy", "unknown"])
def test_an_alarm_is_told_beside_any_status(status: str) -> None:
    plain, alarmed = advice_on(status), advice_on(status, **now_says("failing"))
    assert alarmed.kind == plain.kind and alarmed.sentences[0] == plain.sentences[0]
    assert says(alarmed, "FAILING now") and not says(plain, "FAILING now")


def test_a_suspect_agent_is_told_and_still_healthy() -> None:
    advice = advice_on("healthy", **now_says("suspect", since="yesterday"))
    assert advice.kind == "proceed" and says(advice, "It says of its last hours: suspect now; more of its runs fail")


@pytest.mark.parametrize("told", [now_says("ok"), now_says("quiet"), now_says("FAILING"), now_says(None), now_says(7),
                                  {"extensions": {EXTENSION_NOW: "failing"}}])  # fmt: skip
def test_other_verdicts_change_nothing(told: dict[str, Any]) -> None:
    assert advice_on("healthy", **told) == replace(advice_on("healthy"), document=advice_on("healthy", **told).document,
                                                   answer=answer_of("healthy", **told))  # fmt: skip


@pytest.mark.parametrize("outcome", ["invalid", "http_error", "timeout", "unreachable", "refused"])
def test_an_agent_that_gives_no_document_is_unknown_and_not_unhealthy(outcome: str) -> None:
    advice = advise(
        Answer(url="https://a", asked_at=NOW, outcome=outcome, error="it hung up"), previous_status="healthy"
    )
    assert (advice.kind, advice.status, advice.outcome, advice.retry_after_s) == ("unknown", "unknown", outcome, None)
    assert advice.document is None
    assert says(advice, "does not mean unhealthy")
    assert says(advice, "do as you would by default, and watch for errors")
    assert says(advice, "it hung up.")
    assert not advice.needs_reverification


@pytest.mark.parametrize(("asked_s", "wait_s"), [(60, 300), (900, 900), (0, 300)])
def test_a_server_that_asks_to_be_left_alone_is_and_never_for_less_than_5_minutes(asked_s: int, wait_s: int) -> None:
    advice = advise(
        Answer(
            url="https://a",
            asked_at=NOW,
            outcome="http_error",
            document=None,
            http_status=429,
            error="HTTP 429",
            retry_after_s=asked_s,
        )
    )
    assert advice.retry_after_s == wait_s
    assert says(advice, f"ask again in {wait_s // 60} min")


def test_a_healthy_agent_shows_its_response_ratio() -> None:
    assert says(advice_on(), "99% of 1,204 requests in 24 h got a valid response")
    assert not says(advice_on(calibration=...), "valid response")


@pytest.mark.parametrize(
    ("trend", "is_worsening", "words"),
    [
        ("declining", True, "getting worse"), ("stable", False, "not getting worse"), ("improving", False, "recovering"),
        (..., None, "Whether it is getting worse it does not say"),
    ],
)  # fmt: skip
def test_the_trend_says_whether_a_degradation_gets_worse(trend: Any, is_worsening: bool | None, words: str) -> None:
    advice = advice_on("degraded", decay__calibration_trend=trend)
    assert advice.is_worsening is is_worsening
    assert says(advice, words)
    assert says(advice, "set lower timeouts, keep a fallback agent at hand, or ask for less")


def test_the_last_healthy_time_tells_how_long_an_outage_lasts() -> None:
    advice = advice_on("unhealthy")
    assert advice.outage_s == 2 * 3600 + 10 * 60
    assert says(advice, "It was last healthy 2 h 10 min ago, at 2026-06-07 10:50 UTC.")
    later = advise(advice.answer, now=NOW + timedelta(days=3))
    assert later.outage_s == 3 * 86400 + 7800
    unknown = advice_on("unhealthy", health__last_healthy_at=...)
    assert unknown.outage_s is None
    assert says(unknown, "it does not say")
    future = advice_on("unhealthy", health__last_healthy_at="2026-06-07T14:00:00Z")
    assert future.outage_s == 0
    assert says(future, "a clock is wrong")


def test_an_unhealthy_agent_is_tried_again_in_5_minutes_or_replaced() -> None:
    assert says(advice_on("unhealthy"), "try again in 5 min, or use another agent")


@pytest.mark.parametrize(
    ("days", "trend", "is_decaying"),
    [
        (0, "declining", True),
        (7, "declining", True),
        (7.5, "declining", False),
        (0, "stable", False),
        (None, "declining", False),
    ],
)
@pytest.mark.parametrize("status", ["healthy", "degraded", "unhealthy", "unknown"])
def test_a_recent_model_change_with_a_declining_trend_is_a_strong_signal_of_decay(
    status: str, days: float | None, trend: str, is_decaying: bool
) -> None:
    advice = advice_on(status, decay__days_since_model_change=days, decay__calibration_trend=trend)
    assert advice.is_decaying is is_decaying
    assert says(advice, "strong signal of decay") is is_decaying


def test_capabilities_declared_weeks_ago_may_be_stale_when_the_trend_declines() -> None:
    old = {"decay__last_capability_update": "2026-05-01T00:00:00Z"}
    assert says(advice_on(decay__calibration_trend="declining", **old), "may no longer be true")
    assert not says(advice_on(**old), "may no longer be true")
    assert not says(advice_on(decay__calibration_trend="declining"), "may no longer be true")


@pytest.mark.parametrize(
    ("before", "now", "needed"),
    [
        ("healthy", "degraded", True), ("healthy", "unhealthy", True), ("healthy", "healthy", False),
        ("healthy", "unknown", False), ("degraded", "degraded", False), ("unknown", "degraded", False), (None, "degraded", False),
    ],
)  # fmt: skip
def test_an_agent_that_is_healthy_no_more_is_to_be_verified_again(before: str | None, now: str, needed: bool) -> None:
    advice = advice_on(now, before)
    assert advice.needs_reverification is needed
    assert says(advice, "verify credentials and trust scores") is needed


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"calibration__sample_count": 9}, "Fewer than 10 requests"),
        ({"calibration__response_ratio": 0.9}, "A response ratio of 90% does not fit the status healthy"),
        ({"timestamp": "2026-06-07T09:00:00Z"}, "as of 4 h ago"),
        ({"timestamp": "2026-06-07T13:06:00Z"}, "a clock is wrong"),
    ],
)
def test_reasons_to_doubt_a_document_are_told_and_do_not_change_the_advice(changes: dict, words: str) -> None:
    advice = advice_on(**changes)
    assert says(advice, words)
    assert advice.kind == "proceed"
    assert not says(advice_on(), words)


def test_a_low_uptime_of_a_degraded_agent_may_be_a_crash_loop() -> None:
    assert says(advice_on("degraded", health__uptime_seconds=90), "started only 1 min 30 s ago")
    assert not says(advice_on("degraded"), "started only")
    assert not says(advice_on("healthy", health__uptime_seconds=90), "started only")


def test_an_answer_over_plain_http_is_taken_and_doubted() -> None:
    plain = advise(replace(answer_of(), url="http://agent.example/.well-known/agent-health"))
    assert plain.kind == "proceed"
    assert says(plain, "the draft wants HTTPS")
    assert not says(advice_on(), "HTTPS")


@pytest.mark.parametrize("changes", [{"previous_status": "fine"}, {"now": NOW.replace(tzinfo=None)}])
def test_an_impossible_question_is_an_error_of_one_sentence(changes: dict) -> None:
    with pytest.raises(HealthAssetsError):
        advise(answer_of(), **changes)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (59.9, "59 s"), (60, "1 min"), (61, "1 min 1 s"), (3600, "1 h"), (3660, "1 h 1 min"), (86400, "1 d"),
     (90061, "1 d 1 h"), (1e9, "11574 d 1 h"), (-5, "0 s")],
)  # fmt: skip
def test_lengths_of_time_are_told_in_their_two_largest_units(seconds: float, words: str) -> None:
    assert in_words(timedelta(seconds=seconds)) == words


@pytest.mark.parametrize(
    ("share", "text"),
    [(0, "0%"), (0.0001, "less than 0.1%"), (0.012, "1.2%"), (0.5, "50%"), (0.99999, "more than 99.9%"), (1, "100%")],
)
def test_only_all_is_100_percent_and_only_none_is_0(share: float, text: str) -> None:
    assert percent(share) == text


# -- the command -------------------------------------------------------------------------------------------------------


def check(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["check", "--allow-private", *arguments])
    return result.exit_code, result.output


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        ("healthy", 0, "Proceed: the agent says that it is healthy."),
        ("degraded", 3, "Proceed with caution"),
        ("unhealthy", 4, "Avoid it for now"),
        ("unknown", 5, "no operational information"),
    ],
)
def test_check_prints_the_advice_and_ends_with_its_code(status: str, code: int, words: str) -> None:
    with Host(answers(current_document(status))) as host:
        found, output = check(host.url)
    assert found == code
    assert output.startswith(f"{status}  {host.url}")
    assert words in output
    assert "p99 1,900 ms" in output


def test_check_of_what_cannot_be_reached_is_unknown() -> None:
    with closed_port() as url:
        code, output = check(url)
    assert code == EXIT_CODES["unknown"] == 5
    assert "no connection" in output


def test_check_names_what_is_wrong_with_a_document_field_by_field() -> None:
    with Host(answers(document(health__status="ok", calibration__error_ratio=2))) as host:
        code, output = check(host.url)
    assert code == 5
    assert '  health.status: must be healthy, degraded, unhealthy or unknown, not "ok"\n' in output
    assert "  calibration.error_ratio: must be at most 1, not 2\n" in output


def test_check_keeps_to_its_time_limit() -> None:
    with Host(hangs()) as host:
        code, output = check(host.url, "--timeout-s", "0.2")
    assert code == 5
    assert "did not answer within 0.2 s" in output


def test_check_prints_json_for_programs() -> None:
    evil = "\x1b[31m\u202e"
    with Host(answers(current_document("degraded", agent_id=evil, decay__calibration_trend="declining"))) as host:
        code, output = check(host.url, "--json", "--previous-status", "healthy")
    assert code == 3
    assert output.isascii() and "\x1b" not in output
    found = json.loads(output)
    assert (found["advice"], found["status"], found["outcome"]) == ("caution", "degraded", "valid")
    assert (found["needs_reverification"], found["is_worsening"], found["is_decaying"]) == (True, True, False)
    assert found["document"]["agent_id"] == evil
    assert found["document"]["calibration"]["sample_count"] == 1204
    assert found["sentences"]


def test_check_does_not_let_an_agent_write_to_the_terminal() -> None:
    with Host(answers(current_document(agent_id="\x1b]0;owned\x07\n[bold]x"))) as host:
        code, output = check(host.url)
    assert code == 0
    assert "\x1b" not in output
    assert "[bold]x" in output


@pytest.mark.parametrize(
    "arguments",
    [["nonsense"], ["http://127.0.0.1:1", "--timeout-s", "0"], ["http://127.0.0.1:1", "--previous-status", "x"]],
)
def test_check_of_nonsense_is_an_error_and_no_advice(arguments: list[str]) -> None:
    code, output = check(*arguments)
    assert code == 1
    assert output.startswith("health-assets: ")


def test_check_without_a_url_is_an_error_of_usage_which_is_no_advice() -> None:
    code, _ = check()
    assert code == 2
    assert not {1, 2} & set(EXIT_CODES.values())


def test_check_starts_without_loading_the_pipeline() -> None:
    """It is used in shell loops, where seconds of imports would be felt."""
    program = "import sys; from health_assets.consumer import display; print([n for n in ('dagster', 'duckdb', 'ibis') if n in sys.modules])"
    assert _python(program) == "[]"


def _python(program: str) -> str:
    import subprocess

    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()


def test_check_works_as_a_command_of_its_own() -> None:
    with Host(answers(current_document())) as host:
        done = command("check", host.url, "--allow-private")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Healthy means that it works, not that it can be trusted." in done.stdout
