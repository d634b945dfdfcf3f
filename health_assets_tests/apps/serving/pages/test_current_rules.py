"""Rules of ownership hold while the targets file changes, breaks and goes between requests for pages."""

from pathlib import Path

import pytest

from health_assets.apps.serving.pages.current_rules import CurrentRules, NoRulesError
from health_assets.core.settings import Settings
from health_assets_tests.support.incidents_made import make_warehouse
from health_assets_tests.support.serving_made import readers_in_this_process, served

PERSONAL = "agents: {mine: {personal: true}}"


def rules_of(targets: Path | None) -> CurrentRules:
    return CurrentRules(Settings(targets=targets))


@pytest.fixture
def targets(tmp_path: Path) -> Path:
    path = tmp_path / "targets.yaml"
    path.write_text(PERSONAL)
    return path


def test_a_file_that_changed_counts_at_once_and_what_was_remembered_is_forgotten(targets: Path) -> None:
    rules = rules_of(targets)
    before = rules.now()
    assert before.rules.ownership.is_personal("mine")
    assert rules.now() is before, "the same file is not read again"
    targets.write_text("agents: {other: {personal: true}}")
    after = rules.now()
    assert not after.rules.ownership.is_personal("mine")
    assert after.memory is not before.memory


@pytest.mark.parametrize("broken", ["agents: 17", "{", None], ids=["wrong", "no YAML", "gone"])
def test_the_last_good_rules_hold_while_the_file_is_broken_or_gone(targets: Path, broken: str | None) -> None:
    rules = rules_of(targets)
    before = rules.now()
    if broken is None:
        targets.unlink()
    else:
        targets.write_text(broken)
    assert rules.now() is before
    targets.write_text("agents: {mine: {team: ours}, yours: {personal: true}}")
    assert rules.now().rules.ownership.is_personal("yours"), "a file that was mended counts"


def test_a_file_that_was_never_good_opens_nothing(targets: Path) -> None:
    targets.write_text("agents: 17")
    rules = rules_of(targets)
    for _ in range(2):
        with pytest.raises(NoRulesError, match="cannot be used"):
            rules.now()
    targets.write_text(PERSONAL)
    assert rules.now().rules.ownership.is_personal("mine")


def test_without_a_file_nobody_is_personal() -> None:
    assert not rules_of(None).now().rules.ownership.has_personal


def test_pages_are_answered_while_the_file_is_gone(tmp_path: Path) -> None:
    path, targets = make_warehouse(tmp_path)
    with readers_in_this_process(), served(path, pages=True, targets=targets) as server:
        server.wait_for_pages()
        targets.unlink()
        assert server.ask("/").status == 200
