"""Every parser under attack for a moment, always with the same inputs; `make fuzz` goes on for as long as wanted."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from health_assets_tests.fuzz import targets
from health_assets_tests.fuzz.running import inputs_of
from health_assets_tests.fuzz.targets import TARGETS
from health_assets_tests.support.examples import example_count

SEED = 1
INPUTS = {
    "native": example_count(130, 400), "otlp": example_count(50, 150), "inspect_json": 3, "inspect_eval": 3,
    "health_document": 1_000,
}  # fmt: skip
SOME_INPUTS = example_count(20, 60)


@pytest.mark.parametrize("name", TARGETS)
def test_mutated_input_is_accounted_for_whatever_it_is(name: str, tmp_path: Path) -> None:
    TARGETS[name].check(inputs_of(name, SEED, 0, INPUTS.get(name, SOME_INPUTS)), tmp_path)


@pytest.mark.parametrize("name", ["targets_yaml", "registry_yaml", "alerts_yaml", "health_document"])
def test_the_samples_are_good(name: str, tmp_path: Path) -> None:
    """Damage to what is refused anyway would find nothing."""
    load: dict[str, Callable[[Path], Any]] = {
        "targets_yaml": targets.load_targets, "registry_yaml": targets.load_registry, "alerts_yaml": targets.load_alerts,
        "health_document": lambda path: targets.parse_document(path.read_bytes()),
    }  # fmt: skip
    for sample in TARGETS[name].samples():
        (tmp_path / "sample").write_bytes(sample)
        load[name](tmp_path / "sample")


@pytest.mark.parametrize("name", ["native", "otlp", "tau_bench", "tau2_bench", "langfuse", "phoenix", "inspect_json"])
def test_a_target_finds_what_is_lost(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing comes of its only input."""
    monkeypatch.setattr(targets, "rows_by_line", lambda *_: {(0, 1): []})
    with pytest.raises(AssertionError):
        TARGETS[name].check([TARGETS[name].samples()[0]], tmp_path)


def test_the_same_seed_gives_the_same_inputs_and_another_one_others() -> None:
    assert inputs_of("native", 1, 0, 50) == inputs_of("native", 1, 0, 50)
    assert inputs_of("native", 1, 0, 50) != inputs_of("native", 2, 0, 50)
    assert len(set(inputs_of("native", 1, 0, 50))) > 40
