"""Targets: how defaults and overrides merge, and that whatever is wrong in the file is said in one sentence."""

from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from health_assets.core.errors import HealthAssetsError
from health_assets.core.evaluators import SEVERITIES, Evaluator
from health_assets.core.targets import AgentTargets, Targets, load_targets
from health_assets.schema.log_fields import SIGNALS
from health_assets_tests.support import reference

TARGET_NAMES = tuple(AgentTargets.model_fields)


def write(folder: Path, content: str | bytes | dict) -> Path:
    path = folder / "targets.yaml"
    if isinstance(content, dict):
        content = yaml.safe_dump(content)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def complaint(folder: Path, content: str | bytes | dict) -> str:
    """The one sentence that says what is wrong."""
    path = write(folder, content)
    with pytest.raises(HealthAssetsError) as caught:
        load_targets(path)
    message = str(caught.value)
    assert "\n" not in message
    assert str(path) in message
    assert "validation error" not in message
    return message


def test_without_a_file_every_agent_has_the_defaults_of_the_contract() -> None:
    assert load_targets(None).of("anybody").model_dump() == reference.DEFAULT_TARGETS


def test_an_agents_overrides_go_over_the_files_defaults_and_those_over_the_built_in_ones(tmp_path: Path) -> None:
    content = {
        "defaults": {"n_full": 5, "sla_s": 30, "expected_runtime_s": 2},
        "agents": {"a": {"n_full": 7, "sla_s": None, "personal": True}, "b": None, "c": {}},
    }
    targets = load_targets(write(tmp_path, content))
    for agent in ("a", "b", "c", "not listed"):
        assert targets.of(agent).model_dump() == reference.targets_for(agent, content), agent
    assert set(targets.agents) == {"a", "b", "c"}


@pytest.mark.parametrize(
    "content", ["", "# nothing\n", "---\n", "{}", "defaults:\nagents:\n", "defaults: {}\nagents: {}\n"]
)
def test_an_empty_file_gives_the_defaults(tmp_path: Path, content: str) -> None:
    assert load_targets(write(tmp_path, content)) == Targets()


def test_agents_may_have_any_name(tmp_path: Path) -> None:
    names = ["Ünï cödé", "O'Brien; DROP TABLE", "a:b", "", "null", "true", "1", "2026-06-07"]
    targets = load_targets(write(tmp_path, {"agents": {name: {"n_full": 3} for name in names}}))
    assert set(targets.agents) == set(names)


def test_a_number_as_an_agents_name_is_meant_as_text(tmp_path: Path) -> None:
    assert set(load_targets(write(tmp_path, "agents:\n  17: {}\n")).agents) == {"17"}


def test_a_name_that_yaml_takes_for_something_else_is_kept_as_written_or_refused(tmp_path: Path) -> None:
    """`no` is a fine name for an agent; silently calling it `False` would give its targets to nobody."""
    for name in ("no", "on", "1e3", "0x10", "2026-06-07", "~", "1_000"):
        path = write(tmp_path, f"agents:\n  {name}: {{n_full: 3}}\n")
        try:
            targets = load_targets(path)
        except HealthAssetsError:
            continue
        assert set(targets.agents) == {name}, f"{name} became {set(targets.agents)}"


def test_yaml_anchors_and_merges_work(tmp_path: Path) -> None:
    content = "agents:\n  a: &strict {n_full: 3, sla_s: 1}\n  b: *strict\n  c:\n    <<: *strict\n    n_full: 4\n"
    targets = load_targets(write(tmp_path, content))
    assert targets.of("b") == targets.of("a")
    assert (targets.of("c").n_full, targets.of("c").sla_s) == (4, 1)


IMPOSSIBLE: list[tuple[str, Any]] = [
    *((name, value) for name in TARGET_NAMES for value in (["x"], {"x": 1})),
    *((name, "12") for name in TARGET_NAMES if name not in ("platform", "team")),
    *((name, float("nan")) for name in TARGET_NAMES if name not in ("platform", "team")),
    *((name, float("inf")) for name in TARGET_NAMES if name not in ("platform", "team")),
    *((name, True) for name in TARGET_NAMES if name not in ("personal", "retired")),
    *((name, -1) for name in TARGET_NAMES),
    *((name, None) for name in TARGET_NAMES if reference.DEFAULT_TARGETS[name] is not None),
    *(
        (name, 0)
        for name in (
            "expected_runtime_s", "deviation_allowed", "n_full", "long_running_factor", "stability_threshold",
            "sla_breach_threshold", "trigger_failure_threshold", "baseline_latency_ms",
        )
    ),
    ("expected_success_rate", 1.01), ("expected_success_rate", 95), ("n_full", 20.5), ("n_full", 10**30),
    ("healthy_at", 101), ("degraded_at", 86), ("degraded_at", 100.5), ("personal", "yes"), ("retired", 1), ("platform", 5), ("team", 5), ("team", ""),
]  # fmt: skip


@pytest.mark.parametrize(("key", "value"), IMPOSSIBLE, ids=[f"{key} {value!r}" for key, value in IMPOSSIBLE])
def test_an_impossible_value_is_refused_with_the_agent_and_the_key(tmp_path: Path, key: str, value: Any) -> None:
    message = complaint(tmp_path, {"agents": {"agent 7": {key: value}}})
    assert "agent 7" in message
    assert key in message
    assert key in complaint(tmp_path, {"defaults": {key: value}})


@pytest.mark.parametrize("key", ["n_ful", "Expected_success_rate", "success_rate", "", " n_full", "expected-runtime-s"])
def test_an_unknown_key_is_refused_with_the_agent_and_the_key(tmp_path: Path, key: str) -> None:
    message = complaint(tmp_path, {"agents": {"a": {}, "agent 7": {"n_full": 3, key: 1}}})
    assert "agent 7" in message
    assert key in message
    assert "unknown" in message
    assert key in complaint(tmp_path, {"defaults": {key: 1}})


def test_states_out_of_order_are_refused(tmp_path: Path) -> None:
    message = complaint(tmp_path, {"defaults": {"healthy_at": 70}, "agents": {"agent 7": {"degraded_at": 80}}})
    assert "agent 7" in message
    assert "degraded_at" in message
    assert "healthy_at" in message


@pytest.mark.parametrize(
    "content",
    [
        "agents:\n  a: {n_full: 3}\n  b: {}\n  a: {n_full: 4}\n",
        "agents:\n  a: {n_full: 3, n_full: 4}\n",
        "agents: {a: {}}\nagents: {b: {}}\n",
        'agents:\n  a: {}\n  "a": {}\n',
        'agents:\n  1: {n_full: 3}\n  "1": {n_full: 4}\n',
    ],
)
def test_an_agent_section_or_key_that_stands_twice_is_refused(tmp_path: Path, content: str) -> None:
    message = complaint(tmp_path, content)
    assert "duplicate" in message or "twice" in message


@pytest.mark.parametrize(
    "content",
    [
        "agents: [a, b]", "agents: a", "agents: 3", "defaults: [n_full]", "- a", "just text", "17", "agents:\n  a: 5\n",
        "agents:\n  a: [n_full]\n", "agent:\n  a: {}\n", "targets: {}\n", "1: {}\n",
    ],
)  # fmt: skip
def test_a_file_of_another_shape_is_refused(tmp_path: Path, content: str) -> None:
    complaint(tmp_path, content)


@pytest.mark.parametrize(
    "content",
    [
        "agents: {a: ", "a: b: c", "\tagents: {}", "agents: @x", b"\xff\xfe\xfa", "agents: {a: \x00}", "%", "agents: *nobody",
        "agents:\n  ? [a, b]\n  : {}\n", "agents:\n  ? {a: b}\n  : {}\n", "agents: !!python/object:os.system {}",
        "--- {}\n--- {}\n", "agents: !unknown {}", "a: &x [*x]\n",
    ],
)  # fmt: skip
def test_a_file_that_is_not_yaml_is_refused(tmp_path: Path, content: str | bytes) -> None:
    complaint(tmp_path, content)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(HealthAssetsError, match=r"nowhere\.yaml.*No such file"):
        load_targets(tmp_path / "nowhere.yaml")


def test_a_folder_in_place_of_the_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(HealthAssetsError, match="directory"):
        load_targets(tmp_path)


def test_targets_cannot_change_behind_anyones_back() -> None:
    with pytest.raises(ValueError, match="frozen"):
        AgentTargets().n_full = 3


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("defaults:\n  sla_s: 3\n  expected_sucess_rate: 1\n", ", line 3: defaults: expected_sucess_rate: unknown key"),
        (
            "agents:\n  a: {n_full: 3}\n  b:\n    n_full: 3\n    healthy_above: 2\n",
            ", line 5: agent 'b': healthy_above: unknown key",
        ),
        (
            "names:\n- {match: x, agent: y}\n- {match: x, agent: y, agents: y}\n",
            ", line 3: names, entry 2: agents: unknown key",
        ),
        ("defaults: {}\nagent: {}\n", ", line 2: unknown section 'agent'"),
        ("agents:\n  a: &one {n_ful: 3}\n", ", line 2: agent 'a': n_ful: unknown key; did you mean 'n_full'?"),
    ],
)
def test_an_unknown_key_is_told_with_its_line_and_the_nearest_that_there_is(
    tmp_path: Path, content: str, told: str
) -> None:
    message = complaint(tmp_path, content)
    assert told in message
    near = {"sucess": "expected_success_rate", ": agents:": "agent", "section 'agent'": "agents", "n_ful:": "n_full"}
    for name, meant in near.items():
        if name in told:
            assert message.endswith(f"; did you mean {meant!r}?")


# -- evaluators --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"signal": "confidence"}, "match: must be given"),
        ({"match": "q"}, "an evaluator states a signal, a violation, an outcome or feedback; give one of them"),
        (
            {"match": "q", "signal": "confidence", "violation": "low"},
            "a signal, a violation, an outcome or feedback",
        ),
        ({"match": "q", "outcome": True, "violation": "low"}, "a signal, a violation, an outcome or feedback"),
        ({"match": "q", "outcome": False}, "outcome: Input should be True"),
        ({"match": "q", "outcome": True, "threshold": 2}, "threshold must be from 0 to 1, not 2"),
        ({"match": "q", "violation": "fatal"}, "violation: Input should be 'low', 'medium' or 'high'"),
        ({"match": "q", "violation": "low", "threshold": 2}, "threshold must be from 0 to 1, not 2"),
        ({"match": "q", "violation": "low", "scale": [1, 5], "threshold": 0}, "threshold must be from 1 to 5, not 0"),
        (
            {"match": "q", "signal": "coherence", "threshold": 0.5},
            "threshold says from where on a result is a violation",
        ),
        ({"match": "q(", "signal": "confidence"}, "'q(' is no pattern: missing ): q("),
        ({"match": "q", "signal": "outcome"}, "signal: Input should be 'confidence', 'loop_detection'"),
        ({"match": "q", "signal": "confidence", "scales": [1, 5]}, "scales: unknown key; did you mean 'scale'?"),
        ({"match": "q", "signal": "confidence", "scale": [5, 1]}, "scale must be [least, greatest], not [5, 1]"),
        ({"match": "q", "signal": "confidence", "scale": [1]}, "scale: List should have at least 2 items"),
        ({"match": "q", "signal": "confidence", "direction": "lower"}, "direction: Input should be"),
        ({"match": "q", "signal": "confidence", "categories": {}}, "categories: Dictionary should have at least 1"),
        (
            {"match": "q", "signal": "confidence", "categories": {"good": 2}},
            "categories.good: Input should be less than",
        ),
        (
            {"match": "q", "signal": "confidence", "categories": {"good": 1}, "scale": [1, 5]},
            "categories say what each label is worth, so scale has no meaning beside them",
        ),
        (
            {"match": "q", "signal": "confidence", "categories": {"a": 1}, "direction": "lower_is_better"},
            "categories say what each label is worth, so direction has no meaning beside them",
        ),
    ],
)
def test_an_evaluator_that_cannot_be_applied_is_refused(tmp_path: Path, entry: dict[str, Any], said: str) -> None:
    message = complaint(tmp_path, {"evaluators": [{"match": "a", "signal": "coherence"}, entry]})
    assert "evaluators, entry 2: " in message
    assert said in message


def test_evaluators_state_the_severities_that_there_are() -> None:
    literal, _ = get_args(Evaluator.model_fields["violation"].annotation)
    assert get_args(literal) == SEVERITIES


def test_evaluators_state_the_signals_that_there_are() -> None:
    literal, _ = get_args(Evaluator.model_fields["signal"].annotation)
    assert get_args(literal) == SIGNALS
