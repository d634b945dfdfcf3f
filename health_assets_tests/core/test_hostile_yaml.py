"""YAML files that were made to break their reader: one sentence each, at once, that repeats no value whole."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from health_assets.apps.alerts.config import load_alerts
from health_assets.cli.commands import app
from health_assets.core import yaml_files
from health_assets.core.errors import HealthAssetsError
from health_assets.core.targets import load_targets
from health_assets.core.yaml_files import MOST_DEPTH, read_yaml
from health_assets.systems.survey.surveyed_agents import load_registry

READERS: dict[str, Callable[[Path], object]] = {
    "registry": load_registry,
    "targets": load_targets,
    "alerts": load_alerts,
}


def bomb(levels: int) -> str:
    """Each level repeats the one before nine times."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]" for level in range(1, levels)]
    return "\n".join(lines)


def merging_bomb(levels: int) -> str:
    lines = ["a0: &a0 {k: v}"]
    lines += [
        f"a{level}: &a{level} {{<<: [{', '.join([f'*a{level - 1}'] * 9)}], k{level}: v}}" for level in range(1, levels)
    ]
    return "\n".join(lines)


HOSTILE = {
    "100,000 brackets": ("[" * 100_000, "nested more than 20 levels deep"),
    "100,000 braces": ("{a: " * 100_000, "nested more than 20 levels deep"),
    "100,000 dashes": ("- " * 100_000 + "x", "nested more than 20 levels deep"),
    "brackets that are closed": ("a: " + "[" * 900 + "]" * 900, "nested more than 20 levels deep"),
    "depth by aliases": (
        "a: &a " + "[" * 15 + "]" * 15 + "\nb: " + "[" * 15 + "*a" + "]" * 15, "nested more than 20 levels deep",
    ),
    "nine levels of aliases": (bomb(9), "aliases repeat more than 100,000 values"),
    "nine levels of merges": (merging_bomb(9), "aliases repeat more than 100,000 values"),
    "an alias of itself": ("a: &a [*a]", "an alias repeats what it is a part of"),
    "a number of 100,000 digits": ("a: " + "1" * 100_000, "a number has more than 100 digits"),
    "a hexadecimal number": ("a: 0x" + "f" * 100_000, "a number has more than 100 digits"),
    "a number in sixties": ("a: " + ":".join(["59"] * 20_000), "a number has more than 100 digits"),
    "a text called a number": ("a: !!int '" + "1" * 100_000 + "'", "a number has more than 100 digits"),
    "an octal number": ("a: 0777", "0777 as 511"),
    "a negative octal number": ("a: {b: -017}", "0777 as 511"),
    "a day that is none": ("a: 2026-99-99", "no date or time that there is"),
    "a time that is none": ("a: 2026-06-07 25:61:61", "no date or time that there is"),
    "a tag on what it is not": ("a: !!int sesame", "no whole number that there is"),
    "a float that is none": ("a: !!float sesame", "no number that there is"),
    "yes or no that is neither": ("a: !!bool sesame", "no yes or no that there is"),
    "a tag of Python's": ("a: !!python/object/apply:os.system [sesame]", "a tag is none of"),
    "a tag nobody knows": ("a: !sesame x", "a tag is none of"),
    "a text without an end": ("a: 'sesame", "unexpected end of stream"),
    "a control character": ("a: \x01", "not valid YAML"),
}  # fmt: skip


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", HOSTILE)
def test_a_file_that_would_break_its_reader_is_refused_at_once_in_one_sentence(
    tmp_path: Path, name: str, reader: str
) -> None:
    text, words = HOSTILE[name]
    path = tmp_path / "file.yaml"
    path.write_text(text, encoding="utf-8")
    start = time.process_time()
    with pytest.raises(HealthAssetsError) as caught:
        READERS[reader](path)
    assert time.process_time() - start < 1
    message = str(caught.value)
    assert words in message
    assert len(message) < 400 + len(str(path))
    assert message.isprintable()
    assert "sesame" not in message


def test_a_file_that_is_too_large_is_not_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_files, "MOST_BYTES", 2 * 1024**2)
    with pytest.raises(HealthAssetsError, match="is larger than 2 MiB"):
        read_yaml(Path("/dev/zero"), "registry")
    path = tmp_path / "file.yaml"
    path.write_text("#" * (2 * 1024**2))
    assert read_yaml(path, "registry") is None


def test_what_people_write_is_within_the_limits(tmp_path: Path) -> None:
    path = tmp_path / "file.yaml"
    shared = "base: &base {sla_s: 30, n_full: 5}\n"
    agents = "".join(f"  agent-{number}: {{<<: *base, healthy_at: 90}}\n" for number in range(5000))
    path.write_text(f"{shared}agents:\n{agents}")
    content = read_yaml(path, "file")
    assert content["agents"]["agent-4999"] == {"sla_s": 30, "n_full": 5, "healthy_at": 90}
    path.write_text("a: " + "[" * (MOST_DEPTH - 1) + "]" * (MOST_DEPTH - 1))
    assert read_yaml(path, "file")["a"] is not None
    path.write_text(f"a: '{'1' * 5000}'\nb: {'x' * 5000}\nc: {'1' * 100}\nd: 2026-06-07\ne: 1e9\nf: no")
    assert read_yaml(path, "file")["c"] == int("1" * 100)


SECRET = "sesame-" * 40


@pytest.mark.parametrize(
    ("reader", "text"),
    [
        ("targets", f"agents: {{a: {{platform: [{SECRET}]}}}}"),
        ("targets", f"agents: {{a: {{n_full: {SECRET}}}}}"),
        ("targets", f"agents: {{{SECRET}: {{n_full: no}}}}"),
        ("targets", f"agents: {{{SECRET}: 5}}"),
        ("targets", f"agents: {SECRET}"),
        ("targets", f"{SECRET}: 5"),
        ("targets", f"names: [{{match: '({SECRET}', agent: a}}]"),
        ("targets", f"names: [{{match: a, agent: [{SECRET}]}}]"),
        ("targets", f"agents: {{a: {{{SECRET}: 1}}}}"),
        ("registry", f"- {SECRET}"),
        ("registry", f"- [{SECRET}]"),
        ("registry", f"- {{name: {SECRET}, platform: p}}"),
        ("registry", f"- {{name: [{SECRET}], platform: p, url: https://a.example}}"),
        ("registry", f"- {{name: a, platform: p, url: 'https://{'x' * 3000}{SECRET}'}}"),
        ("registry", f"- {{name: a, platform: p, url: 'https://u:{SECRET}@a.example'}}"),
        ("registry", f"- {{name: a, platform: p, url: 'ftp://u:{SECRET}@a.example'}}"),
        ("registry", f"- {{name: a, platform: p, url: https://a.example, {SECRET}: x}}"),
    ],
)
def test_no_text_is_repeated_whole(tmp_path: Path, reader: str, text: str) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(text)
    with pytest.raises(HealthAssetsError) as caught:
        READERS[reader](path)
    assert SECRET not in str(caught.value)
    assert str(caught.value).count("sesame") <= 2 * 10
    assert len(str(caught.value)) < 500 + len(str(path))


@pytest.mark.parametrize("command", ["materialize", "serve"])
def test_a_targets_file_that_cannot_be_used_ends_a_command_before_it_does_anything(
    tmp_path: Path, command: str
) -> None:
    targets = tmp_path / "targets.yaml"
    targets.write_text("agents: " + "[" * 1000, encoding="utf-8")
    done = CliRunner().invoke(app, [command, "--targets", str(targets), "--warehouse", str(tmp_path / "health.duckdb")])
    assert done.exit_code == 1
    assert done.output.startswith(f"health-assets: the targets file {targets}")
    assert not (tmp_path / "health.duckdb").exists()


@pytest.mark.parametrize(
    ("reader", "text"),
    [
        ("targets", "agents: {a: {n_full: hunter2}}"),
        ("targets", "agents: {a: {personal: hunter2}}"),
        ("targets", "agents: {a: hunter2}"),
        ("targets", "agents: hunter2"),
        ("targets", "hunter2"),
        ("targets", "names: [hunter2]"),
        ("registry", "- hunter2"),
        ("registry", "- {name: a, platform: p, url: 'https://u:hunter2@a.example'}"),
    ],
)
def test_no_text_that_is_a_value_is_repeated_however_short(tmp_path: Path, reader: str, text: str) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(text)
    with pytest.raises(HealthAssetsError) as caught:
        READERS[reader](path)
    assert "hunter2" not in str(caught.value)


def test_names_and_texts_are_as_they_are_written(tmp_path: Path) -> None:
    path = tmp_path / "targets.yaml"
    names = ["1", "1.0", "01", "0777", "1:30", "true", "no", "1e3", "2026-06-07", "null"]
    path.write_text("agents:\n" + "".join(f"  {name}: {{team: '{name}'}}\n" for name in names))
    assert {name: own.team for name, own in load_targets(path).agents.items()} == {name: name for name in names}


@pytest.mark.parametrize("given", ["1:30", "190:20:30.15", "-1:05"])
def test_digits_between_colons_are_a_text_and_no_number_in_sixties(tmp_path: Path, given: str) -> None:
    path = tmp_path / "targets.yaml"
    path.write_text(f"agents: {{a: {{team: {given}}}}}")
    assert load_targets(path).agents["a"].team == given
    path.write_text(f"agents: {{a: {{expected_runtime_s: {given}}}}}")
    with pytest.raises(HealthAssetsError, match=r"agent 'a': expected_runtime_s: Input should be a valid number"):
        load_targets(path)


@pytest.mark.parametrize("given", ["1", "1.0", "true", "no", "2026-06-07"])
def test_a_text_that_yaml_takes_for_something_else_is_refused_and_quoted_back(tmp_path: Path, given: str) -> None:
    path = tmp_path / "targets.yaml"
    path.write_text(f"agents: {{a: {{team: {given}}}}}")
    with pytest.raises(HealthAssetsError, match=r"agent 'a': team: Input should be a valid string, got "):
        load_targets(path)
