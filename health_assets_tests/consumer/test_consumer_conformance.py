"""What the draft asks of consumers (source 3), statement by statement; each test names its section.

And two properties that hold it together: whatever bytes an agent sends are a document or a named fault, and whatever a
valid document says, there is advice on it.
"""

import json
from datetime import datetime, timedelta
from functools import partial
from io import StringIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from typer.testing import CliRunner

from health_assets import consumer
from health_assets.cli.commands import app
from health_assets.consumer import Advice, Answer, HealthDocument, InvalidDocumentError, advise, parse_document
from health_assets.consumer.advice import KIND_OF_STATUS
from health_assets.consumer.display import as_json, print_advice
from health_assets.core.settings import Settings
from health_assets_tests.support.examples import tried_with
from health_assets_tests.support.health_servers import NOW, WELL_KNOWN, Host, answers, closed_port, document, hangs

fetch_health = partial(consumer.fetch_health, allow_private=True)
"""The servers of these tests are on this machine."""


def advice_on(content: dict[str, Any], previous_status: str | None = None) -> Advice:
    """Ask a real server that gives this document."""
    with Host(answers(content)) as host:
        return advise(fetch_health(host.url), previous_status=previous_status, now=NOW)


def test_section_4_1_health_is_asked_for_at_the_well_known_address_without_credentials() -> None:
    with Host(answers(document())) as host:
        fetch_health(host.url)
    (request,) = host.requests  # the server takes GET alone
    assert request.path == WELL_KNOWN
    assert "authorization" not in request.headers


def test_section_4_1_an_answer_of_another_content_type_is_not_taken() -> None:
    with Host(answers(document(), content_type="text/plain")) as host:
        assert fetch_health(host.url).outcome == "invalid"


def test_section_4_1_an_agent_that_wants_credentials_for_basic_health_is_unknown() -> None:
    with Host(answers(b"", "401 Unauthorized")) as host:
        assert advise(fetch_health(host.url)).kind == "unknown"


def test_section_4_1_plain_http_is_told() -> None:
    assert any("HTTPS" in sentence for sentence in advice_on(document()).sentences)


@pytest.mark.parametrize(
    ("version", "is_valid"), [("0.1.0", True), ("0.1.4", True), ("0.1", False), ("0.2.0", False), ("1.0.0", False)]
)
def test_section_4_2_the_schema_version_is_a_semantic_version_that_is_understood(version: str, is_valid: bool) -> None:
    assert (advice_on(document(schema_version=version)).outcome == "valid") is is_valid


def test_section_4_2_a_timestamp_without_a_zone_is_not_valid() -> None:
    assert (
        advice_on(document(timestamp="2026-06-07T13:00:00"))
        .answer.problems[0]
        .startswith("timestamp: must have a time zone")
    )


def test_section_4_2_an_extension_without_a_namespace_is_not_valid() -> None:
    assert (
        advice_on(document(extensions={"mood": 1}))
        .answer.problems[0]
        .startswith("extensions.mood: must have a namespace")
    )
    assert advice_on(document(extensions={"com.example.mood": 1})).outcome == "valid"
    assert advice_on(document(extensions=...)).outcome == "valid"


def test_section_4_3_a_status_is_one_of_four() -> None:
    for status in KIND_OF_STATUS:
        assert advice_on(document(status)).status == status
    assert advice_on(document(health__status="busy")).kind == "unknown"


def test_section_4_3_the_last_healthy_time_tells_what_just_happened_from_what_lasts() -> None:
    assert advice_on(document("degraded")).outage_s == timedelta(hours=2, minutes=10).total_seconds()


def test_section_4_3_a_low_uptime_with_a_degraded_status_may_be_a_crash_loop() -> None:
    assert any(
        "crashing" in sentence for sentence in advice_on(document("degraded", health__uptime_seconds=5)).sentences
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [("response_ratio", 1.1), ("response_ratio", -0.1), ("error_ratio", 1.1), ("measurement_window_seconds", 299)],
)
def test_section_4_4_metrics_are_within_their_ranges(field: str, value: float) -> None:
    advice = advice_on(document(**{f"calibration__{field}": value}))
    assert advice.answer.problems[0].startswith(f"calibration.{field}: ")


@pytest.mark.parametrize(("samples", "is_low"), [(9, True), (10, False)])
def test_section_4_4_metrics_of_fewer_than_10_samples_are_of_low_confidence(samples: int, is_low: bool) -> None:
    advice = advice_on(document(calibration__sample_count=samples))
    assert any("they say little" in sentence for sentence in advice.sentences) is is_low


def test_section_4_5_a_recent_model_change_with_a_declining_trend_is_a_strong_signal_of_decay() -> None:
    change = {"decay__days_since_model_change": 1}
    assert advice_on(document(decay__calibration_trend="declining", **change)).is_decaying
    assert not advice_on(document(**change)).is_decaying
    assert not advice_on(
        document(decay__calibration_trend="declining", decay__days_since_model_change=None)
    ).is_decaying


@pytest.mark.parametrize(("status", "proceeds"), [("healthy", True), ("degraded", True), ("unhealthy", False)])
def test_section_5_1_a_consumer_proceeds_with_a_healthy_or_degraded_agent(status: str, proceeds: bool) -> None:
    advice = advice_on(document(status))
    assert (advice.kind in ("proceed", "caution")) is proceeds


def test_section_5_2_a_transition_from_healthy_to_degraded_asks_for_verification() -> None:
    assert advice_on(document("degraded"), "healthy").needs_reverification


def test_section_7_healthy_is_no_proof_of_trustworthiness() -> None:
    advice = advice_on(document())
    assert "Healthy means that it works, not that it can be trusted." in advice.sentences


def test_section_7_nobody_is_polled_more_often_than_every_5_minutes() -> None:
    assert Settings().survey_interval_s >= 300
    with pytest.raises(ValueError, match="greater than or equal to 300"):
        Settings(survey_interval_s=299)


def test_section_7_a_server_that_limits_requests_is_left_alone_for_5_minutes_at_least() -> None:
    with Host(answers(b"", "429 Too Many Requests", headers={"Retry-After": "30"})) as host:
        assert advise(fetch_health(host.url)).retry_after_s == 300


@pytest.mark.parametrize("status", ["healthy", "unhealthy"])
def test_section_8_a_personal_agent_may_give_its_status_alone(status: str) -> None:
    advice = advice_on(document(status, health={"status": status}, calibration=..., decay=...))
    assert advice.kind == KIND_OF_STATUS[status]


def test_appendix_a_step_2_a_failed_request_is_unknown_and_not_unhealthy() -> None:
    with closed_port() as url, Host(hangs()) as slow:
        failed = [
            fetch_health(url),
            fetch_health(slow.url, timeout_s=0.2),
            fetch_health("http://no-such-host.invalid", timeout_s=60),
        ]
    for answer in failed:
        advice = advise(answer, previous_status="healthy")
        assert (advice.kind, advice.status) == ("unknown", "unknown")
        assert not advice.needs_reverification


def test_appendix_a_step_3_an_unhealthy_agent_is_tried_again_after_5_minutes() -> None:
    assert advice_on(document("unhealthy")).retry_after_s == 300


def test_appendix_a_step_3_of_a_degraded_agent_it_is_told_whether_it_gets_worse() -> None:
    assert advice_on(document("degraded", decay__calibration_trend="declining")).is_worsening is True
    assert advice_on(document("degraded", decay__calibration_trend="improving")).is_worsening is False


def test_appendix_a_step_3_with_an_unknown_agent_one_does_as_by_default_and_watches() -> None:
    assert "watch for errors" in advice_on(document("unknown")).sentences[0]


def test_appendix_a_step_4_the_command_takes_the_previous_status() -> None:
    with Host(answers(document("degraded"))) as host:
        output = CliRunner().invoke(app, ["check", host.url, "--allow-private", "--previous-status", "healthy"]).output
    assert "verify credentials and trust scores" in output


# -- whatever an agent sends -------------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["healthy", "0.1.0", "2026-06-07T13:00:00Z"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)  # fmt: skip
FIELDS = [
    "schema_version", "agent_id", "timestamp", "health", "health__status", "health__last_healthy_at", "health__uptime_seconds",
    "calibration", "calibration__response_ratio", "calibration__latency_p50_ms", "calibration__sample_count",
    "calibration__measurement_window_seconds", "decay", "decay__calibration_trend", "decay__days_since_model_change",
    "decay__last_capability_update", "extensions",
]  # fmt: skip


@tried_with(50, 150)
@given(field=st.sampled_from(FIELDS), value=JSON, cut=st.none() | st.integers(0, 400))
def test_whatever_bytes_are_sent_are_a_document_or_a_named_fault(field: str, value: Any, cut: int | None) -> None:
    body = json.dumps(document(**{field: value})).encode()[:cut]
    try:
        found = parse_document(body)
    except InvalidDocumentError as error:
        assert error.problems
        assert all(": " in problem and problem.isprintable() for problem in error.problems)
    else:
        assert cut is None or cut >= len(body)
        assert_advice(found)


def numbers(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high) | st.integers(int(low), int(min(high, 10**300)))


MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)).map(lambda moment: f"{moment.isoformat()}Z")


@tried_with(50, 150)
@given(
    status=st.sampled_from(sorted(KIND_OF_STATUS)),
    given_fields=st.fixed_dictionaries(
        {"timestamp": MOMENTS},
        optional={
            "health__last_healthy_at": MOMENTS,
            "health__uptime_seconds": numbers(0, 1.7e308),
            "calibration__response_ratio": numbers(0, 1),
            "calibration__error_ratio": numbers(0, 1),
            "calibration__latency_p50_ms": numbers(0, 1.7e308),
            "calibration__latency_p99_ms": numbers(0, 1.7e308),
            "calibration__measurement_window_seconds": numbers(300, 1.7e308),
            "calibration__sample_count": st.integers(0, 2**63 - 1),
            "decay__calibration_trend": st.sampled_from(["stable", "declining", "improving"]),
            "decay__days_since_model_change": st.none() | numbers(0, 1.7e308),
            "decay__last_capability_update": MOMENTS,
        },
    ),
)
def test_there_is_advice_on_whatever_a_valid_document_says(status: str, given_fields: dict[str, Any]) -> None:
    assert_advice(parse_document(json.dumps(document(status, **given_fields)).encode()))


def assert_advice(content: HealthDocument) -> None:
    """The kind that its status asks for, in printable sentences, for people and for programs."""
    advice = advise(
        Answer(
            url="https://agent.example",
            asked_at=NOW,
            outcome="valid",
            document=content,
            http_status=200,
            latency_ms=1.0,
        ),
        previous_status="healthy",
    )
    assert advice.kind == KIND_OF_STATUS[content.health.status]
    assert advice.sentences
    assert all(sentence.isprintable() and sentence.endswith(".") for sentence in advice.sentences)
    json.loads(as_json(advice), parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    console = Console(record=True, width=100, file=StringIO())
    print_advice(console, advice)
    assert advice.status in console.export_text()
