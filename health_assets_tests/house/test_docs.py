"""What the documentation promises: its tables, settings, commands and targets are those of the code."""

import re
from pathlib import Path

from health_assets.cli.commands import app
from health_assets.core.settings import Settings
from health_assets.core.targets import AgentTargets
from health_assets.defs.build import build_definitions
from health_assets.logs.conventions import ATTRIBUTES, KIND_IN_OPENINFERENCE, KIND_OF_OPERATION
from health_assets.logs.native import RECORD_TYPES, RULES
from health_assets.logs.stores import NAMES_THAT_COUNT
from health_assets.schema.catalog import ALL_TABLES
from health_assets.schema.documentation import PAGE, tables_page

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_page_of_tables_is_the_one_that_the_classes_make() -> None:
    assert (ROOT / PAGE).read_text(encoding="utf-8") == tables_page()


def test_every_column_has_a_meaning_that_is_a_sentence() -> None:
    from health_assets.schema.catalog import describe

    for table in ALL_TABLES:
        for column, _, _, meaning in describe(table):
            assert meaning.endswith("."), f"{table}.{column}"


def test_every_setting_is_in_the_readme() -> None:
    for name in Settings.model_fields:
        assert f"HEALTH_{name.upper()}" in README, name


def test_every_target_is_in_the_readme_with_its_default() -> None:
    for name, field in AgentTargets.model_fields.items():
        assert name in README, name
        if isinstance(field.default, int | float) and not isinstance(field.default, bool) and f"`{name}` " in README:
            assert re.search(rf"`{name}` {field.default:g}\b", README) or f"({field.default:g})" in README, name


def test_every_field_of_every_record_type_is_in_the_readme() -> None:
    for kind in RECORD_TYPES.values():
        for name in kind.columns:
            assert f"`{RULES[name].field}`" in README, name


def test_every_asset_is_in_the_picture_of_the_lineage() -> None:
    picture = README.split("```mermaid")[1].split("```")[0]
    for key in build_definitions().resolve_asset_graph().get_all_asset_keys():
        assert key.to_user_string() in picture


def test_every_command_is_in_the_readme() -> None:
    for command in app.registered_commands:
        assert command.callback is not None
        assert re.search(rf"(health-assets|make) {command.callback.__name__}\b", README)


def test_every_ending_of_a_log_is_in_the_readme() -> None:
    for ending in re.findall(r"\.\w+", NAMES_THAT_COUNT):
        assert f"`{ending}`" in README, ending


def test_the_page_on_opentelemetry_states_the_error_as_the_tables_have_it() -> None:
    assert "`ValueError: no such city`" in (ROOT / "docs" / "opentelemetry.md").read_text(encoding="utf-8")


def test_nothing_left_to_fill_in() -> None:
    assert "@@" not in README


def test_every_attribute_that_is_read_is_in_the_page_on_opentelemetry() -> None:
    page = (ROOT / "docs" / "opentelemetry.md").read_text(encoding="utf-8")
    told = (*KIND_OF_OPERATION, *KIND_IN_OPENINFERENCE, *(name for names in ATTRIBUTES.values() for name in names))
    for name in told:
        assert re.search(rf"\b{re.escape(name)}\b", page), name


THREATS = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")


def _existing_tests() -> set[str]:
    files = (ROOT / "health_assets_tests").rglob("test_*.py")
    return {name for file in files for name in re.findall(r"^def (test_\w+)", file.read_text(encoding="utf-8"), re.M)}


def test_every_test_that_the_threat_model_names_exists() -> None:
    assert set(re.findall(r"`(test_\w+)`", THREATS)) - _existing_tests() == set()


def test_every_threat_says_where_it_is_stopped_and_names_a_test() -> None:
    rows = [line for line in THREATS.splitlines() if line.startswith("| ") and not re.match(r"\| (wants|does) ", line)]
    assert len(rows) > 30
    for row in rows:
        _, wish, place, shown, _ = row.split("|")
        assert wish.strip() and place.strip() and re.search(r"`test_\w+`", shown), row


def test_every_command_and_file_of_the_security_page_exists() -> None:
    page = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"`?make (\w+)", page):
        assert re.search(rf"^{target}:", makefile, re.M), target
    assert (
        set(re.findall(r"`(test_\w+)\.py`", page)) - {path.stem for path in Path(__file__).parents[1].rglob("*.py")}
        == set()
    )
