"""The registry file: what is read, and that every fault is one sentence that names the entry and the key."""

from pathlib import Path

import pytest

from health_assets.core.errors import HealthAssetsError
from health_assets.systems.survey.surveyed_agents import load_registry


def write(folder: Path, text: str) -> Path:
    path = folder / "registry.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_agents_are_read_in_their_order(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """
        - name: invoice-reader
          platform: Meyo
          url: https://meyo.example/agents/invoice-reader
        - {name: "  Überblick  ", platform: GPTs, url: "http://127.0.0.1:8000/.well-known/agent-health"}
        """,
    )
    first, second = load_registry(path)
    assert (first.name, first.platform, first.url) == (
        "invoice-reader",
        "Meyo",
        "https://meyo.example/agents/invoice-reader",
    )
    assert first.health_url == "https://meyo.example/agents/invoice-reader/.well-known/agent-health"
    assert second.name == "Überblick"
    assert second.health_url == second.url


def test_an_empty_list_is_a_registry_without_agents(tmp_path: Path) -> None:
    assert load_registry(write(tmp_path, "[]")) == []


A = "- {name: a, platform: p, url: https://a.example}\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "a registry must be a list of agents, each with name, platform and url"),
        ("agents: []", "a registry must be a list of agents"),
        ("- a\n", "entry 1: must have name, platform and url, not be a text of 1 character"),
        (A + "- {name: b, url: https://b.example}", "entry 2 ('b'): platform: is missing"),
        (A + "- {platform: p, url: https://b.example}", "entry 2: name: is missing"),
        (A + "- {name: b, platform: p}", "entry 2 ('b'): url: is missing"),
        (A + "- {name: b, platform: p, url: https://b.example, uri: x}", "entry 2 ('b'): uri: unknown key; use name, platform and url"),
        ("- {name: 7, platform: p, url: https://b.example}", "entry 1 (7): name: must be text, got 7"),
        ("- {name: b, platform: no, url: https://b.example}", "entry 1 ('b'): platform: must be text, got False"),
        ("- {name: ' ', platform: p, url: https://b.example}", "entry 1 (' '): name: must be text"),
        ("- {name: b, platform: p, url: }", "entry 1 ('b'): url: must be text, got None"),
        ("- {name: b, platform: p, url: b.example}", "entry 1 ('b'): url: 'b.example' is not a web address"),
        ("- {name: b, platform: p, url: 'https://u:p@b.example'}", "url: the address at 'b.example' names a user"),
        ("- {name: b, platform: all, url: https://b.example}", "platform: 'all' stands for the whole registry"),
        (A + A, "entry 2 ('a'): url: https://a.example is asked already, by entry 1 ('a')"),
        (A + "- {name: b, platform: q, url: 'HTTPS://A.example:443/.well-known/agent-health'}", "is asked already, by entry 1 ('a')"),
        ("- {name: a, name: b, platform: p, url: https://a.example}", "duplicate key 'name'"),
        ("- {name: a", "not valid YAML"),
        ("- !!python/object/apply:os.system ['true']", "not valid YAML"),
    ],
)  # fmt: skip
def test_a_fault_names_the_entry_and_the_key(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(HealthAssetsError) as caught:
        load_registry(write(tmp_path, text))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_registry_that_is_not_there_or_not_text_is_named(tmp_path: Path) -> None:
    with pytest.raises(HealthAssetsError, match=r"cannot read the registry .*No such file"):
        load_registry(tmp_path / "none.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(HealthAssetsError, match="not valid YAML"):
        load_registry(tmp_path / "binary.yaml")
