"""What the documentation promises: its tables, settings, commands and targets are those of the code."""

import re
from pathlib import Path

from health_assets.cli import app
from health_assets.defs.build import build_definitions
from health_assets.logs.conventions import ATTRIBUTES, KIND_IN_OPENINFERENCE, KIND_OF_OPERATION
from health_assets.logs.native import RECORD_TYPES, RULES
from health_assets.logs.stores import NAMES_THAT_COUNT
from health_assets.settings import Settings
from health_assets.targets import AgentTargets
from health_assets.warehouse.documentation import PAGE, tables_page
from health_assets.warehouse.tables import ALL_TABLES

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_page_of_tables_is_the_one_that_the_classes_make() -> None:
    assert (ROOT / PAGE).read_text(encoding="utf-8") == tables_page()


def test_every_column_has_a_meaning_that_is_a_sentence() -> None:
    from health_assets.warehouse.tables import describe

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
COMING: frozenset[str] = frozenset(
    {
        "test_a_digest_that_is_too_large_is_halved_until_it_fits",
        "test_a_document_that_is_nested_too_deeply_is_no_document",
        "test_a_file_that_is_a_secret_alone_is_not_repeated_by_the_error",
        "test_a_file_that_unpacks_to_more_than_its_most_is_read_up_to_there",
        "test_a_file_that_would_break_its_reader_is_refused_at_once_in_one_sentence",
        "test_a_free_text_is_cut_at_64_kib_between_two_characters_and_says_so",
        "test_a_later_claim_of_any_log_does_not_override_the_model_and_a_person_does",
        "test_a_line_of_the_future_makes_no_hour_and_hides_none",
        "test_a_live_log_that_is_gzipped_before_one_of_its_lines_was_loaded_stops_no_run_of_its_hour",
        "test_a_log_that_is_gone_blocks_nothing_and_what_is_lost_of_it_is_told",
        "test_a_mail_says_any_name_literally_and_has_no_other_header_nor_body",
        "test_a_model_of_a_personal_agent_is_shown_only_among_enough_others",
        "test_a_name_is_looked_up_once_and_a_redirect_goes_to_the_address_that_was_found",
        "test_a_name_of_megabytes_costs_no_more_than_its_line",
        "test_a_name_that_is_not_utf_8_is_escaped_and_told_once",
        "test_a_name_that_leads_inside_is_not_asked",
        "test_a_notice_of_which_no_message_can_be_made_holds_up_no_other",
        "test_a_request_for_another_host_is_refused",
        "test_a_token_is_256_random_bits_of_which_the_hash_is_kept",
        "test_a_token_of_some_teams_is_told_what_it_would_be_told_if_there_were_no_others",
        "test_an_event_later_than_the_clock_and_its_skew_is_rejected_with_that_reason",
        "test_another_spelling_of_a_path_opens_no_door",
        "test_at_home_without_tokens_scores_are_open_and_elsewhere_they_are_not",
        "test_beyond_a_number_of_bad_lines_the_others_of_a_file_are_one_record_with_their_count",
        "test_clients_that_loop_over_sessions_starve_nobody_else",
        "test_documents_are_for_all_and_scores_for_those_who_may_read",
        "test_links_that_lead_out_of_the_raw_root_are_not_followed_and_told_once",
        "test_many_slow_connections_of_one_address_keep_nobody_else_out",
        "test_no_block_of_the_fleet_shows_a_name_that_commands_the_terminal",
        "test_no_secret_leaves_the_house",
        "test_no_value_is_repeated_whole",
        "test_of_a_long_run_every_action_is_seen_and_the_worst_of_all_parts_is_the_verdict",
        "test_the_access_log_says_who_asked_for_what_and_never_the_token",
        "test_what_an_agent_says_of_itself_keeps_nobody_from_judging_it",
    }
)
FILES_COMING = {
    "test_hostile_alerts",
    "test_hostile_names",
    "test_redaction",
    "test_serving_doors",
    "test_serving_teams",
}
"""Tests of the threat model and files of the page on security that other branches bring; empty once they met."""


def _existing_tests() -> set[str]:
    files = (ROOT / "health_assets_tests").glob("test_*.py")
    return {name for file in files for name in re.findall(r"^def (test_\w+)", file.read_text(encoding="utf-8"), re.M)}


def test_every_test_that_the_threat_model_names_exists() -> None:
    assert set(re.findall(r"`(test_\w+)`", THREATS)) - _existing_tests() == COMING


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
        set(re.findall(r"`(test_\w+)\.py`", page)) - {path.stem for path in Path(__file__).parent.glob("*.py")}
        == FILES_COMING
    )
