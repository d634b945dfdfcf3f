"""Settings of the environment: what is empty is not set."""

import pytest

from health_assets.core.settings import Settings, load_settings


@pytest.mark.parametrize("name", Settings.model_fields)
def test_an_empty_setting_is_not_set(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    without = load_settings()
    monkeypatch.setenv(f"HEALTH_{name.upper()}", "")
    assert load_settings() == without
