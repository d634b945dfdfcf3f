"""`alerts.yaml`, the sensor and the command: what can be set, and that whatever is wrong is said in one sentence."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest
from typer.testing import CliRunner

from health_assets.apps.alerts.config import Alerts, Webhook, load_alerts
from health_assets.apps.alerts.rules import RULES, Floor, HourLate
from health_assets.apps.alerts.tick_runner import tick
from health_assets.cli.alerts_commands import TROUBLE
from health_assets.cli.commands import app
from health_assets.core.errors import HealthAssetsError
from health_assets.core.settings import Settings
from health_assets.core.targets import Targets
from health_assets.defs.alerting import alerts_sensor
from health_assets.pipeline.resource import Pipeline
from health_assets.warehouse.store import Warehouse
from health_assets_tests.support.alerts_made import at, fill_hour, later, look, scored
from health_assets_tests.support.projects import tick as tick_of
from health_assets_tests.support.receivers import receiver

PAGE = (Path(__file__).parents[2] / "docs" / "alerts.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


def write(folder: Path, text: str) -> Path:
    path = folder / "alerts.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_smallest_example_of_the_docs_has_every_rule_with_its_defaults(tmp_path: Path) -> None:
    alerts = load_alerts(write(tmp_path, EXAMPLES[0]))
    assert list(alerts.channels) == ["chat"]
    assert [rule.name for rule in alerts.rules] == list(RULES)
    assert alerts.rules == Alerts().rules
    assert alerts.channels_of("floor") == ("chat",)


def test_the_complete_example_of_the_docs_means_what_it_says(tmp_path: Path) -> None:
    alerts = load_alerts(write(tmp_path, EXAMPLES[1]))
    rules = {rule.name: rule for rule in alerts.rules}
    assert set(RULES) - set(rules) == {"no_data"}
    assert (rules["floor"].below, rules["drop"].points, rules["drop"].within_hours) == (60, 20, 12)
    assert rules["drop"].severity == "critical"
    assert rules["state_worsened"].only == ("payment-*", "crm-sync")
    assert alerts.channels_of("floor") == ("pager", "chat")
    assert alerts.channels_of("drop") == ("chat", "pager", "team", "oncall", "mail")
    assert {name: channel.type for name, channel in alerts.channels.items()} == {
        "chat": "slack", "pager": "webhook", "team": "teams", "oncall": "pagerduty", "mail": "email",
    }  # fmt: skip


def test_the_docs_name_every_rule_with_its_own_keys_and_their_defaults() -> None:
    common = {"severity", "channels", "only", "good_hours"}
    rows = {name: next(line for line in PAGE.splitlines() if line.startswith(f"| `{name}` |")) for name in RULES}
    for name, rule in RULES.items():
        assert rows[name].endswith(f"| {rule().severity} |")
        for key, field in rule.model_fields.items():
            if key not in common:
                shown = field.default if not isinstance(field.default, tuple) else f"[{', '.join(field.default)}]"
                shown = f"{shown:g}" if isinstance(shown, float | int) else shown
                assert f"`{key}` {shown}" in rows[name], (name, key)
    own_good_hours = {name for name, rule in RULES.items() if rule().good_hours == 1} - {HourLate.name}
    assert own_good_hours == {"expectation_failed", "no_data"}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("rules: {flor: {below: 3}}", "rules: unknown rule 'flor'"),
        ("rules: {floor: {belo: 3}}", "rule floor: belo: unknown key"),
        ("rules: {floor: {below: 101}}", "rule floor: below: Input should be less than or equal to 100, got 101"),
        ("rules: {floor: 3}", "rule floor must be a mapping"),
        ("rules: {floor: {channels: chat}}", "rule floor: channels: one is not there; there are none"),
        ("rules: {hour_late: {good_hours: 2}}", "rule hour_late: good_hours"),
        ("rule: {}", "unknown section 'rule'"),
        (
            "channels: {c: {url: 'http://x'}}",
            "channel c: type: must be one of webhook, slack, teams, pagerduty, opsgenie, email, and is not given",
        ),
        ("channels: {c: {type: pagerduty}}", "channel c: key_env: must be given"),
        ("channels: {c: {type: opsgenie, key_env: A, url: 'https://api.example/?key=1'}}", "channel c: url"),
        ("channels: {c: {type: webhook}}", "channel c: name either url or url_env"),
        ("channels: {c: {type: webhook, url: 'ftp://x'}}", "channel c: url"),
        ("channels: {c: {type: slack}}", "channel c: url_env: must be given"),
        ("channels: {c: {type: slack, url_env: 'https://hooks'}}", "channel c: url_env"),
        ("channels: {c: {type: email, host: h, sender: nobody, to: a@b}}", "channel c: sender"),
        ("channels: {c: {type: email, host: h, sender: a@b, to: []}}", "channel c: to"),
        (
            "channels: {c: {type: email, host: h, sender: a@b, to: a@b, username: u}}",
            "username and password_env belong",
        ),
        (
            "channels: {c: {type: email, host: h, sender: a@b, to: a@b, username: u, password_env: P, security: none}}",
            "a password is not sent in the clear",
        ),
        ("digest_above: 0", "digest_above"),
        ("[]", "the file must be a mapping"),
        ("a: b: c", "is not valid YAML"),
    ],
)
def test_whatever_is_wrong_is_said_in_one_sentence_that_names_the_key(
    tmp_path: Path, text: str, complaint: str
) -> None:
    path = write(tmp_path, text)
    with pytest.raises(HealthAssetsError) as caught:
        load_alerts(path)
    message = str(caught.value)
    assert complaint in message
    assert str(path) in message
    assert "\n" not in message


@pytest.mark.parametrize(
    "channels",
    [
        "{c: {type: slack, url_env: A, password: sesame}}",
        "{c: {type: slack, url_env: 'https://hooks.example.org/sesame'}}",
        "{c: {type: webhook, url: 'hooks.example.org/sesame'}}",
        "{c: {type: webhook, url: 'https://x', token_env: sesame-token}}",
        "{c: 'https://hooks.example.org/sesame'}",
        "'https://hooks.example.org/sesame'",
        "{c: {type: sesame}}",
        "{c: {type: [sesame]}}",
        "{c: {type: webhook, url: 'https://x', to: *sesame}}",
        "{c: {type: webhook, url: 'https://x', to: !sesame x}}",
        "{c: {type: webhook, url: !!int sesame}}",
        "{}\nrules: {floor: {channels: 'https://hooks.example.org/sesame'}}",
        "{}\nrules: {floor: {severity: sesame}}",
        "{}\nrules: {floor: sesame}",
        "{}\nrules: sesame",
        "{}\ndigest_above: sesame",
    ],
)
def test_a_secret_that_stands_in_the_file_is_not_repeated_by_the_error(tmp_path: Path, channels: str) -> None:
    with pytest.raises(HealthAssetsError) as caught:
        load_alerts(write(tmp_path, f"channels: {channels}"))
    assert "sesame" not in str(caught.value)


def test_a_file_that_is_a_secret_alone_is_not_repeated_by_the_error(tmp_path: Path) -> None:
    with pytest.raises(HealthAssetsError, match="the file must be a mapping") as caught:
        load_alerts(write(tmp_path, "https://hooks.example.org/sesame"))
    assert "sesame" not in str(caught.value)


# -- the sensor and the command ----------------------------------------------------------------------------------------


def skipped(settings: Settings) -> str:
    told = tick_of(alerts_sensor(settings), Pipeline(settings=settings))
    assert told.skip_message is not None
    return told.skip_message


def test_the_sensor_judges_and_tells_and_says_what_it_did(tmp_path: Path) -> None:
    warehouse = tmp_path / "health.duckdb"
    settings = Settings(warehouse=str(warehouse))
    assert "HEALTH_ALERTS" in skipped(settings)
    with receiver() as hook:
        path = write(tmp_path, f"{{rules: {{hour_late: off}}, channels: {{c: {{type: webhook, url: '{hook.url}'}}}}}}")
        settings = settings.model_copy(update={"alerts": path})
        assert "nothing has been materialized" in skipped(settings)
        fill_hour(warehouse, at(0), [scored("a", 10.0)])
        assert skipped(settings) == "1 hour judged, 1 incident opened, 0 closed; 1 message delivered"
        assert skipped(settings) == "0 hours judged, 0 incidents opened, 0 closed; 0 messages delivered"
    assert [body["subject"]["id"] for body in hook.bodies] == ["a"]
    write(tmp_path, "rules: {flor: {}}")
    with pytest.raises(dg.Failure, match="unknown rule 'flor'"):
        skipped(settings)


def test_the_command_shows_what_is_open_what_is_over_and_what_waits(tmp_path: Path) -> None:
    warehouse = tmp_path / "health.duckdb"
    settings = Settings(warehouse=str(warehouse))
    alerts = load_alerts(
        write(tmp_path, "{rules: {hour_late: off}, channels: {c: {type: slack, url_env: NOBODY_SET}}}")
    )
    events = [{"agent_id": "bad\x1b[2J", "kind": "failure", "rank": 1, "event_id": "e-17"}]
    fill_hour(warehouse, at(0), [scored("bad\x1b[2J", 10.0), scored("so-so", 60.0)], score_evidence=events)
    tick(settings, alerts, Targets(), later())
    for place in (1, 2, 3):
        fill_hour(warehouse, at(place), [scored("bad\x1b[2J", 10.0), scored("so-so", 80.0)])
    tick(settings, alerts, Targets(), later())
    with Warehouse(str(warehouse)).write() as session:  # so that no run seems to catch up
        session.query("UPDATE partition_states SET materialized_at = hour")
    days = str((datetime.now(UTC) - at(0)).days + 2)
    shown = CliRunner().invoke(app, ["alerts", "--warehouse", str(warehouse), "--days", days])
    assert shown.exit_code == TROUBLE, "the newest hour is late"
    assert "1 open" in shown.output
    assert "1 closed" in shown.output
    assert "e-17" in shown.output
    assert "so-so is back at 80.0" in " ".join(shown.output.split())
    assert "\x1b[2J" not in shown.output
    assert "3 messages wait for the channel c: the environment variable NOBODY_SET is not set" in shown.output


def test_the_command_tells_no_more_of_a_personal_agent_than_a_message(tmp_path: Path) -> None:
    warehouse = tmp_path / "health.duckdb"
    events = [{"agent_id": "mine", "kind": "failure", "rank": 1, "event_id": "e-17"}]
    fill_hour(warehouse, at(0), [scored("mine", 10.0)], score_evidence=events)
    look(warehouse, [Floor()])
    targets = tmp_path / "targets.yaml"
    targets.write_text("agents: {mine: {personal: true}}", encoding="utf-8")
    shown = CliRunner().invoke(app, ["alerts", "--warehouse", str(warehouse), "--targets", str(targets)])
    assert "mine, a personal agent" in shown.output
    assert not any(detail in shown.output for detail in ("e-17", "10.0", "floor", "critical"))


def test_rules_that_cannot_be_read_are_an_error_for_who_only_looks_too(tmp_path: Path) -> None:
    path = write(tmp_path, "rules_and_more: {}")
    shown = CliRunner().invoke(app, ["alerts", "--alerts", str(path)])
    assert shown.exit_code == 1
    assert "rules_and_more" in shown.output


def test_the_command_tries_channels_and_fails_where_one_does(tmp_path: Path) -> None:
    assert CliRunner().invoke(app, ["alerts", "--test"]).exit_code == 1
    with receiver() as hook:
        path = write(tmp_path, f"channels: {{good: {{type: webhook, url: '{hook.url}'}}}}")
        good = CliRunner().invoke(app, ["alerts", "--test", "--alerts", str(path)])
    bad = CliRunner().invoke(
        app,
        ["alerts", "--test", "--alerts", str(write(tmp_path, "channels: {bad: {type: slack, url_env: NOBODY_SET}}"))],
    )
    assert (good.exit_code, bad.exit_code) == (0, 1)
    assert "✓ good took the test message" in good.output
    assert "✗ bad did not: the environment variable NOBODY_SET is not set" in bad.output
    assert hook.bodies[0]["event"] == "test"


def test_the_command_judges_and_tells_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warehouse = tmp_path / "health.duckdb"
    fill_hour(warehouse, at(0), [scored("a", 10.0)])
    with Warehouse(str(warehouse)).write() as session:  # so that no run seems to catch up
        session.query("UPDATE partition_states SET materialized_at = hour")
    with receiver() as hook:
        monkeypatch.setenv(
            "HEALTH_ALERTS", str(write(tmp_path, f"channels: {{c: {{type: webhook, url: '{hook.url}'}}}}"))
        )
        told = CliRunner().invoke(app, ["alerts", "--now", "--warehouse", str(warehouse)])
    assert "1 hour judged, 2 incidents opened, 0 closed; 2 messages delivered." in told.output
    assert {body["rule"] for body in hook.bodies} == {"floor", "hour_late"}
    assert json.dumps(hook.bodies)


def test_channels_of_a_rule_that_is_off_are_all(tmp_path: Path) -> None:
    del tmp_path
    alerts = Alerts(rules=(), channels={"c": Webhook(type="webhook", url="http://x")})
    assert alerts.channels_of("floor") == ("c",)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("rules: {floor: {good_hours: yes}}", "rule floor: good_hours: YAML reads yes, on and true as a flag"),
        (
            "channels: {c: {type: slack, url_env: A, timeout_s: on}}",
            "channel c: timeout_s: YAML reads yes, on and true",
        ),
        ("rules: {floor: {good_hours: 1:30}}", "rule floor: good_hours: Input should be a valid integer"),
        ("digest_above: 0777", "YAML reads digits after a 0 as an octal number"),
        ("rules: {floor: {only: [true]}}", "rule floor: only.0: Input should be a valid string"),
        ("rules: {floor: {channels: 1.0}}", "rule floor: channels: "),
    ],
)
def test_a_value_that_yaml_takes_for_something_else_is_refused(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(HealthAssetsError, match=re.escape(told)):
        load_alerts(write(tmp_path, text))
