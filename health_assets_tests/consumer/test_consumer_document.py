"""Reading a health document: what is valid, what is not, and that every fault is named by its field."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from health_assets.consumer import HealthDocument, InvalidDocumentError, parse_document
from health_assets_tests.support.health_servers import document


def read(content: Any) -> HealthDocument:
    return parse_document(json.dumps(content).encode())


def problems_of(content: Any) -> tuple[str, ...]:
    with pytest.raises(InvalidDocumentError) as caught:
        read(content)
    return caught.value.problems


def test_every_field_is_read() -> None:
    found = read(document("degraded", decay__calibration_trend="declining"))
    assert found.schema_version == "0.1.0"
    assert found.agent_id == "https://agent.example/.well-known/agent.json"
    assert found.timestamp == datetime(2026, 6, 7, 13, tzinfo=UTC)
    assert (found.health.status, found.health.uptime_seconds) == ("degraded", 86400)
    assert found.health.last_healthy_at == datetime(2026, 6, 7, 10, 50, tzinfo=UTC)
    calibration = found.calibration
    assert (calibration.response_ratio, calibration.error_ratio) == (0.9, 0.01)
    assert (calibration.latency_p50_ms, calibration.latency_p99_ms) == (420.5, 1900)
    assert (calibration.measurement_window_seconds, calibration.sample_count) == (86400, 1204)
    assert (found.decay.calibration_trend, found.decay.days_since_model_change) == ("declining", 40)
    assert found.decay.last_capability_update == datetime(2026, 6, 1, 8, tzinfo=UTC)
    assert found.extensions == {"com.example.feature": {"any": "thing"}}


@pytest.mark.parametrize(
    "field",
    [
        "health__last_healthy_at", "health__uptime_seconds", "calibration", "calibration__response_ratio",
        "calibration__sample_count", "calibration__measurement_window_seconds", "decay", "decay__calibration_trend",
        "decay__days_since_model_change", "decay__last_capability_update", "extensions",
    ],
)  # fmt: skip
def test_what_an_agent_does_not_know_it_may_leave_out_but_not_give_as_null(field: str) -> None:
    read(document(**{field: ...}))
    if field != "decay__days_since_model_change":
        assert problems_of(document(**{field: None})) == (f"{field.replace('__', '.')}: must not be null",)


def test_days_since_model_change_may_be_null() -> None:
    assert read(document(decay__days_since_model_change=None)).decay.days_since_model_change is None


@pytest.mark.parametrize("field", ["schema_version", "agent_id", "timestamp", "health", "health__status"])
def test_what_must_be_there_is_missed(field: str) -> None:
    assert problems_of(document(**{field: ...})) == (f"{field.replace('__', '.')}: is missing",)


@pytest.mark.parametrize("version", ["0.1.0", "0.1.7", "0.1.12", "0.1.0-draft.1", "0.1.0+build.5", "0.1.1-a-b+c-d"])
def test_every_version_0_1_is_understood(version: str) -> None:
    assert read(document(schema_version=version)).schema_version == version


@pytest.mark.parametrize(
    ("version", "problem"),
    [
        ("0.2.0", 'must be a version 0.1.x, which is all that this consumer understands, not "0.2.0"'),
        ("1.1.0", 'must be a version 0.1.x, which is all that this consumer understands, not "1.1.0"'),
        ("0.1", 'must be a semantic version like 0.1.0, not "0.1"'),
        ("0.1.0.0", 'must be a semantic version like 0.1.0, not "0.1.0.0"'),
        ("0.1.00", 'must be a semantic version like 0.1.0, not "0.1.00"'),
        ("v0.1.0", 'must be a semantic version like 0.1.0, not "v0.1.0"'),
        ("0.1.0\n", 'must be a semantic version like 0.1.0, not "0.1.0\\n"'),
        ("0.1.٣", 'must be a semantic version like 0.1.0, not "0.1.٣"'),
        (0.1, "must be a string, not 0.1"),
    ],
)
def test_another_version_is_not(version: object, problem: str) -> None:
    assert problems_of(document(schema_version=version)) == (f"schema_version: {problem}",)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-06-07T13:00:00Z", datetime(2026, 6, 7, 13, tzinfo=UTC)),
        ("2026-06-07t13:00:00z", datetime(2026, 6, 7, 13, tzinfo=UTC)),
        ("2026-06-07T13:00Z", datetime(2026, 6, 7, 13, tzinfo=UTC)),
        ("2026-06-07T13:00:00.123456789+05:30", datetime(2026, 6, 7, 7, 30, 0, 123456, tzinfo=UTC)),
        ("2026-06-07T13:00:00-0130", datetime(2026, 6, 7, 14, 30, tzinfo=UTC)),
        ("0001-01-01T00:00:00Z", datetime(1, 1, 1, tzinfo=UTC)),
        ("20260607T130000Z", datetime(2026, 6, 7, 13, tzinfo=UTC)),
        ("2026-W23-7T13:00+00", datetime(2026, 6, 7, 13, tzinfo=UTC)),
    ],
)
def test_a_timestamp_is_iso_8601_with_a_zone(text: str, moment: datetime) -> None:
    assert read(document(timestamp=text)).timestamp == moment


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("2026-06-07T13:00:00", "must have a time zone"),
        ("2026-06-07", "must be an ISO 8601 timestamp like 2026-06-07T13:00:00Z"),
        ("2026-06-07 13:00:00Z", "must be an ISO 8601 timestamp like 2026-06-07T13:00:00Z"),
        ("7 June 2026", "must be an ISO 8601 timestamp like 2026-06-07T13:00:00Z"),
        ("2026-02-30T13:00:00Z", "must be an ISO 8601 timestamp of a time that exists"),
        ("2026-0607T13:00:00Z", "must be an ISO 8601 timestamp of a time that exists"),
        ("2026-06-07T25:00:00Z", "must be an ISO 8601 timestamp of a time that exists"),
        ("0001-01-01T00:00:00+05:00", "must be an ISO 8601 timestamp of a time that exists"),
        (1780837200, "must be an ISO 8601 timestamp like 2026-06-07T13:00:00Z"),
        ("٢٠٢٦-06-07T13:00:00Z", "must be an ISO 8601 timestamp like 2026-06-07T13:00:00Z"),
    ],
)
@pytest.mark.parametrize("field", ["timestamp", "health__last_healthy_at", "decay__last_capability_update"])
def test_another_timestamp_is_named(field: str, text: object, problem: str) -> None:
    (found,) = problems_of(document(**{field: text}))
    assert found == f"{field.replace('__', '.')}: {problem}, not {json.dumps(text, ensure_ascii=False)}"


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("agent_id", "", "must not be empty"),
        ("agent_id", 7, "must be a string, not 7"),
        ("health", [], "must be an object, not a list"),
        ("health__status", "Healthy", 'must be healthy, degraded, unhealthy or unknown, not "Healthy"'),
        ("health__uptime_seconds", -1, "must be at least 0, not -1"),
        ("health__uptime_seconds", "5", 'must be a number, not "5"'),
        ("calibration__response_ratio", 1.01, "must be at most 1, not 1.01"),
        ("calibration__error_ratio", -0.01, "must be at least 0, not -0.01"),
        ("calibration__error_ratio", False, "must be a number, not false"),
        ("calibration__latency_p50_ms", -1, "must be at least 0, not -1"),
        ("calibration__latency_p99_ms", {}, "must be a number, not an object"),
        ("calibration__measurement_window_seconds", 299, "must be at least 300, not 299"),
        ("calibration__sample_count", 1.5, "must be a whole number, not 1.5"),
        ("calibration__sample_count", True, "must be a whole number, not true"),
        ("calibration__sample_count", -1, "must be at least 0, not -1"),
        ("decay__calibration_trend", "up", 'must be stable, declining or improving, not "up"'),
        ("decay__days_since_model_change", -0.5, "must be at least 0, not -0.5"),
        ("decay__days_since_model_change", "null", 'must be a number, not "null"'),
        ("extensions", [], "must be an object, not a list"),
    ],
)
def test_a_value_out_of_range_or_of_another_type_is_named(field: str, value: object, problem: str) -> None:
    assert problems_of(document(**{field: value})) == (f"{field.replace('__', '.')}: {problem}",)


def test_values_at_the_limits_are_valid() -> None:
    found = read(
        document(
            calibration__response_ratio=0, calibration__error_ratio=1, calibration__sample_count=12.0,
            calibration__measurement_window_seconds=300, health__uptime_seconds=0, decay__days_since_model_change=0.25,
        )
    )  # fmt: skip
    assert found.calibration.sample_count == 12


def test_all_faults_of_a_document_are_named_at_once() -> None:
    spoiled = document(health__status="ok", calibration__error_ratio=2, timestamp="now", extensions={"plain": 1})
    assert [problem.split(":")[0] for problem in problems_of(spoiled)] == [
        "timestamp", "health.status", "calibration.error_ratio", "extensions.plain",
    ]  # fmt: skip


def test_of_very_many_faults_some_are_named_and_the_rest_counted() -> None:
    *named, last = problems_of(document(extensions={f"x{n}": 1 for n in range(50)}))
    assert len(named) == 20
    assert last == "and 30 more problems"


@pytest.mark.parametrize("key", ["com.example.feature", "com.example/feature.x", "a.b"])
def test_an_extension_with_a_namespace_is_kept(key: str) -> None:
    assert read(document(extensions={key: None})).extensions == {key: None}


@pytest.mark.parametrize("key", ["feature", "", ".feature", "com.", "com..x", "com. x"])
def test_an_extension_without_a_namespace_is_named(key: str) -> None:
    (problem,) = problems_of(document(extensions={key: 1}))
    assert "must have a namespace prefix, like com.example.feature" in problem


def test_fields_that_are_not_known_are_ignored_wherever_they_stand() -> None:
    found = read(document(next_version={"a": None}, health__mood="good", calibration__x=[], decay__y=None))
    assert found == read(document())


@pytest.mark.parametrize("body", [b'{"agent_id": "a", "agent_id": "b"}', b'{"health": {"agent_id": 1, "agent_id": 1}}'])
def test_a_field_that_is_given_twice_is_named(body: bytes) -> None:
    with pytest.raises(InvalidDocumentError, match="agent_id: is given twice"):
        parse_document(body)


def test_a_document_cannot_be_changed_once_it_is_read() -> None:
    with pytest.raises(ValueError, match="frozen"):
        read(document()).health.status = "unknown"
