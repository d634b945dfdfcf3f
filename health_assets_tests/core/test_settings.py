"""Settings of the environment: what is empty is not set."""

import pytest

from health_assets.cli.console import settings_of
from health_assets.core.errors import HealthAssetsError
from health_assets.core.settings import Settings, load_settings


@pytest.mark.parametrize("name", Settings.model_fields)
def test_an_empty_setting_is_not_set(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name_of_the_tests in ("HEALTH_DIGEST_SALT", "HEALTH_PRICES", "HEALTH_PUBLISHED"):
        monkeypatch.delenv(name_of_the_tests)
    without = load_settings()
    monkeypatch.setenv(f"HEALTH_{name.upper()}", "")
    assert load_settings() == without


@pytest.mark.parametrize(
    ("raw", "lake"),
    [("logs", "logs"), ("logs", "logs/a/lake"), ("logs", "./other/../logs"), ("s3://b/logs", "s3://b/logs/lake")],
)
def test_a_lake_among_the_raw_logs_is_refused(raw: str, lake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "HEALTH_LAKE lies in the raw root .*logs; name a folder or bucket of its own"
    monkeypatch.setenv("HEALTH_LAKE", lake)
    with pytest.raises(HealthAssetsError, match=said):
        settings_of(raw, None, None)
    monkeypatch.setenv("HEALTH_RAW", raw)
    with pytest.raises(HealthAssetsError, match=said):
        load_settings()


@pytest.mark.parametrize(
    ("raw", "lake"), [("logs", "lake"), ("logs", "logs-lake"), ("s3://b/logs", "s3://b/logs2"), ("s3://b/logs", "logs")]
)
def test_a_lake_beside_the_raw_logs_is_taken(raw: str, lake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEALTH_LAKE", lake)
    assert settings_of(raw, None, None).lake == lake


@pytest.mark.parametrize(
    ("text", "hours"), [("1,6", (1, 6)), (" 6, 1 ,6", (1, 6)), ("OFF", ()), ("24", (24,)), ("", (1, 6))]
)
def test_short_windows_are_hours_with_commas_between(
    text: str, hours: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEALTH_SHORT_WINDOW_HOURS", text)
    assert load_settings().short_window_hours == hours


@pytest.mark.parametrize("text", ["0", "1.5", "one", "-1", "1,2,3,4,5,6", "99999"])
def test_what_is_no_short_window_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEALTH_SHORT_WINDOW_HOURS", text)
    with pytest.raises(HealthAssetsError, match="HEALTH_SHORT_WINDOW_HOURS"):
        load_settings()
