"""Tokens as they are made and kept, the command that makes them, and the audit log of what people change."""

import hashlib
import json
import re
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr
from typer.testing import CliRunner

from health_assets.apps.serving.audit import audited
from health_assets.apps.serving.tokens import Keyring, load_tokens, new_token
from health_assets.cli.commands import app
from health_assets.core.errors import HealthAssetsError
from health_assets.core.settings import Settings

NOW = datetime(2026, 6, 7, 13, tzinfo=UTC)


def test_a_token_is_256_random_bits_of_which_the_hash_is_kept() -> None:
    made = {new_token("n", "read")[0] for _ in range(50)}
    assert len(made) == 50
    secret, kept = new_token("n", "read", ["a"])
    assert re.fullmatch(r"ha_[\w-]{43}", secret)
    assert kept.sha256 == hashlib.sha256(secret.encode()).hexdigest()
    assert secret[3:] not in kept.lines()


def test_what_the_command_prints_is_what_the_endpoint_reads(tmp_path: Path) -> None:
    audit = tmp_path / "audit.jsonl"
    arguments = [
        "token",
        "new",
        "--role",
        "read",
        "--team",
        "pay: ments",
        "--team",
        "b",
        "--name",
        'the "first": #1',
        "--days",
        "2",
    ]
    done = CliRunner().invoke(app, arguments, env={"HEALTH_AUDIT_LOG": str(audit)})
    assert done.exit_code == 0, done.output
    [secret] = set(re.findall(r"ha_[\w-]+", done.output))
    path = tmp_path / "tokens.yaml"
    path.write_text(done.stdout.partition("\n\n")[2])
    [kept] = load_tokens(Settings(tokens_file=path))
    assert (kept.name, kept.role, kept.teams) == ('the "first": #1', "read", ("pay: ments", "b"))
    assert kept.expires is not None
    assert timedelta(days=1.9) < kept.expires - datetime.now(UTC) <= timedelta(days=2)
    assert Keyring([kept]).find(secret.encode(), datetime.now(UTC)) == kept
    noted = audit.read_text()
    assert secret not in noted
    asked, done_line = [json.loads(line) for line in noted.splitlines()]
    assert (asked["what"], asked["asked"]["name"], asked["asked"]["sha256"]) == ("token new", kept.name, kept.sha256)
    assert done_line == {
        **{name: done_line[name] for name in ("time", "id", "who")},
        "what": "token new",
        "outcome": "done",
    }
    assert asked["id"] == done_line["id"]
    assert stat.S_IMODE(audit.stat().st_mode) == 0o600


def test_a_role_that_is_none_is_one_sentence() -> None:
    done = CliRunner().invoke(app, ["token", "new", "--role", "admin"])
    assert done.exit_code == 1
    assert "'documents', 'read' or 'operate'" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_tokens_come_from_file_and_environment_and_each_is_known() -> None:
    (first, kept), (second, other) = new_token("first", "read"), new_token("second", "documents", (), NOW)
    text = json.dumps(
        [kept.model_dump(mode="json", exclude_none=True), other.model_dump(mode="json", exclude_none=True)]
    )
    ring = Keyring(load_tokens(Settings(tokens=SecretStr(text), token=SecretStr("plain"))))
    assert ring.find(first.encode(), NOW) == kept
    assert ring.find(second.encode(), NOW - timedelta(seconds=1)) == other
    assert ring.find(second.encode(), NOW) is None  # it has expired
    plain = ring.find(b"plain", NOW)
    assert plain is not None
    assert (plain.role, plain.teams) == ("operate", None)
    for wrong in (b"", first.encode() + b"x", first.encode()[:-1], kept.sha256.encode(), b"\xff"):
        assert ring.find(wrong, NOW) is None


def test_no_setting_is_no_token() -> None:
    assert load_tokens(Settings()) == ()
    assert load_tokens(Settings(token=SecretStr(""), tokens=SecretStr(""))) == ()


HASH = "0" * 64


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("tokens: 3", "must be a list"), ("tokens: [hidden]", "entry 1 must be a mapping"), ("- a", "must be a mapping"),
        ("token: []", "unknown section"), ("tokens: [{name: a, role: read}]", "sha256: must be given"),
        (f"tokens: [{{name: a, role: admin, sha256: '{HASH}'}}]", "role"),
        ("tokens: [{name: a, role: read, sha256: hidden}]", "sha256"),
        (f"tokens: [{{name: a, role: read, teams: , sha256: '{HASH}'}}]", "at least one team"),
        (f"tokens: [{{name: a, role: read, teams: [], sha256: '{HASH}'}}]", "at least one team"),
        (f"tokens: [{{name: a, role: read, teams: hidden, sha256: '{HASH}'}}]", "teams"),
        (f"tokens: [{{name: a, role: read, teams: [1], sha256: '{HASH}'}}]", "teams"),
        (f"tokens: [{{name: a, role: read, token: hidden, sha256: '{HASH}'}}]", "unknown key"),
        (f"tokens: [{{name: a, role: read, expires: hidden, sha256: '{HASH}'}}]", "expires"),
        (f"tokens: [{{name: a, role: read, sha256: '{HASH}'}}, {{name: a, role: read, sha256: '{'1' * 64}'}}]", "name 'a' stands twice"),
        (f"tokens: [{{name: a, role: read, sha256: '{HASH}'}}, {{name: b, role: read, sha256: '{HASH}'}}]", "stands twice"),
    ],
)  # fmt: skip
def test_kept_tokens_that_cannot_be_are_one_sentence_without_a_secret(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "tokens.yaml"
    path.write_text(content)
    with pytest.raises(HealthAssetsError, match=said) as caught:
        load_tokens(Settings(tokens_file=path))
    assert "hidden" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["hidden", "[" * 100_000, '{"a": 1}', '["hidden"]', "NaN"])
def test_tokens_of_the_environment_that_cannot_be_are_one_sentence(text: str) -> None:
    with pytest.raises(HealthAssetsError, match="HEALTH_TOKENS") as caught:
        load_tokens(Settings(tokens=SecretStr(text)))
    assert "hidden" not in str(caught.value)


def test_a_day_is_a_time_of_expiry_too(tmp_path: Path) -> None:
    path = tmp_path / "tokens.yaml"
    for written in ("2026-06-07", "2026-06-07T00:00:00Z", "2026-06-07T02:00:00+02:00", "'2026-06-07T00:00:00'"):
        path.write_text(f"tokens: [{{name: a, role: read, sha256: '{HASH}', expires: {written}}}]")
        [kept] = load_tokens(Settings(tokens_file=path))
        assert kept.expires == datetime(2026, 6, 7, tzinfo=UTC), written


# -- the audit log --


def test_a_change_is_noted_with_its_end_and_one_that_fails_with_why(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    environment = {"HEALTH_AUDIT_LOG": str(log), "HEALTH_WAREHOUSE": str(tmp_path / "health.duckdb")}
    done = CliRunner().invoke(app, ["migrate"], env=environment)
    assert done.exit_code == 0, done.output
    (tmp_path / "health.duckdb").write_bytes(b"no database" * 1000)
    assert CliRunner().invoke(app, ["migrate"], env=environment).exit_code == 1
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line.get("outcome") for line in lines] == [None, "done", None, "failed"]
    assert lines[0]["asked"] == {"warehouse": str(tmp_path / "health.duckdb")}
    assert lines[3]["error"]
    assert {line["what"] for line in lines} == {"migrate"}
    assert all(line["who"] for line in lines)


def test_what_cannot_be_noted_is_not_changed(tmp_path: Path) -> None:
    environment = {"HEALTH_AUDIT_LOG": str(tmp_path), "HEALTH_WAREHOUSE": str(tmp_path / "health.duckdb")}
    done = CliRunner().invoke(app, ["migrate"], env=environment)
    assert done.exit_code == 1
    assert "HEALTH_AUDIT_LOG" in done.stderr
    assert not (tmp_path / "health.duckdb").exists()


def test_a_change_whose_end_cannot_be_noted_ends_as_it_does_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "audit.jsonl"

    def fail_to_note_the_end() -> None:
        log.unlink()
        log.mkdir()

    with audited(Settings(audit_log=log), "prune"):
        fail_to_note_the_end()
    told = capsys.readouterr().err
    assert "prune: done, but its end is not noted" in told
    assert "nothing is changed" not in told
    log.rmdir()
    with pytest.raises(ZeroDivisionError), audited(Settings(audit_log=log), "prune"):
        fail_to_note_the_end()
        raise ZeroDivisionError
    assert "prune: failed, but its end is not noted" in capsys.readouterr().err


def test_what_is_noted_is_one_line_whatever_it_says(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    with pytest.raises(KeyboardInterrupt), audited(Settings(audit_log=log), "x", name='a\nb\x1b"\u2028'):
        raise KeyboardInterrupt
    asked, ended = log.read_bytes().splitlines()
    assert json.loads(asked)["asked"] == {"name": 'a\nb\x1b"\u2028'}
    assert (json.loads(ended)["outcome"], json.loads(ended)["error"]) == ("failed", "KeyboardInterrupt")
    assert asked.isascii()


def test_the_password_of_a_warehouse_is_not_noted(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    url = "postgresql://me:hunter2@127.0.0.1:1/health?connect_timeout=1"
    environment = {"HEALTH_AUDIT_LOG": str(log), "HEALTH_WAREHOUSE": url, "HEALTH_LOCK_TIMEOUT_S": "0.1"}
    assert CliRunner().invoke(app, ["migrate"], env=environment).exit_code == 1
    assert "hunter2" not in log.read_text()
    assert json.loads(log.read_text().splitlines()[0])["asked"]["warehouse"] == "health on 127.0.0.1:1"
