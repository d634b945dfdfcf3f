"""The house: what the layers' check in pyproject.toml knows is what there is."""

import tomllib

from health_assets.core.systems import SYSTEM_NAMES, parts
from health_assets_tests.support.projects import REPOSITORY

CONTRACTS = {
    contract["name"]: contract
    for contract in tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
}
SYSTEMS = REPOSITORY / "health_assets" / "systems"


def test_every_system_is_kept_apart_from_the_others() -> None:
    apart = CONTRACTS["A scoring system imports no other"]["modules"]
    assert apart == [f"health_assets.systems.{name}" for name in sorted(SYSTEM_NAMES)]


def test_every_folder_of_a_system_is_named_in_the_list_of_systems() -> None:
    assert {path.parent.name for path in SYSTEMS.glob("*/__init__.py")} == set(SYSTEM_NAMES)


def test_every_system_has_tables_expectations_and_a_block_or_explains_another() -> None:
    assert set(parts("tables")) == set(parts("expectations")) == set(SYSTEM_NAMES)
    assert set(SYSTEM_NAMES) - set(parts("report")) == {"explanations"}, "which one agent's report shows"
    assert set(SYSTEM_NAMES) - set(parts("assets")) == {"survey"}, "which is no function of logs"
