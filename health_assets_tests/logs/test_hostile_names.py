"""Names that command a terminal, in every text of the warehouse: no block shows one as it stands."""

import unicodedata
from collections.abc import Iterator
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from health_assets.apps.report.agent import print_agent
from health_assets.apps.report.blocks import BLOCKS
from health_assets.apps.report.incidents_block import print_alerts, print_trials
from health_assets.cli.commands import app
from health_assets.cli.failed_checks import FailedCheck
from health_assets.cli.outcomes import Outcome
from health_assets.cli.run_summary import print_outcome
from health_assets.core.hours import HourRange
from health_assets.core.targets import Targets
from health_assets.schema.catalog import ALL_TABLES, describe
from health_assets.warehouse.store import Warehouse
from health_assets_tests.support.alerts_made import scored
from health_assets_tests.support.health_servers import Host, answers, current_document, document
from health_assets_tests.support.serving_made import HOUR, Row, fill

EVIL = "evil\x1b[2J\x1b]0;owned\x07\x9b31m\u202egnp.\u2066\u2028\u200b\r\n\x00[red]"
KNOWN: Row = {
    "state": "unhealthy", "status": "unhealthy", "calibration_trend": "declining", "severity": "critical",
    "event": "opened", "record_type": "rejected", "kind": "failure", "condition": "baseline", "subject_kind": "agent",
    "evidence": '{"explanation": [{"sentence": "EVIL", "lost": 1.0, "component": "EVIL", "evidence": ["EVIL"]}]}',
    "violations": "[]", "is_degraded": True, "is_provisional": False, "closed_at": None, "delivered_at": None,
    "healthy_until": None,
}  # fmt: skip
"""What code reads as one of a few words, in tables whose text is otherwise a stranger's."""
NOT_FILLED = {"warehouse_version", "raw_roots", "partition_states"}


def evil_row(table: str) -> Row:
    """A row that says the same evil in every text."""
    row: Row = {}
    for name, kind, *_ in describe(table):
        if name in KNOWN:
            known = KNOWN[name]
            row[name] = known.replace("EVIL", EVIL_IN_JSON) if isinstance(known, str) else known
        elif kind == "string":
            row[name] = EVIL
        elif kind == "array<string>":
            row[name] = [EVIL]
    if table == "agent_probes":
        row |= {"status": None, "outcome": "invalid"}
    if table == "spans":
        row["kind"] = "agent"
    if table == "model_calls":
        row["status"] = "failure"
    return row


EVIL_IN_JSON = "".join(f"\\u{ord(character):04x}" for character in EVIL)


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warehouse]:
    path = tmp_path_factory.mktemp("evil") / "health.duckdb"
    rows: dict[str, list[Row]] = {}
    for table in ALL_TABLES:
        names = {name for name, *_ in describe(table)}
        if table not in NOT_FILLED and "hour" in names:
            rows[table] = [evil_row(table)]
    rows["agent_health"] = [{**scored(EVIL, 40.0), "hour": HOUR, "points_at_stake": 100.0}]
    rows["agent_health_state"][0] |= {  # of which another system says something else
        "status": "degraded", "response_ratio": 0.7, "sample_count": 100, "latency_p99_ms": 10.0,
        "measurement_window_seconds": 86_400,
    }  # fmt: skip
    rows["drift"][0] |= {"measure": "success_rate", "is_drifting": True, "cause_share": 0.8, "evidence": 12.5}
    rows["model_fallback"][0] |= {"failures": 4, "compared_calls": 6, "compared_failures": 3}
    rows["model_fallback"][0] |= {
        f"{name}_failures_{end}": 1.0 for name in ("avoided", "added") for end in ("low", "high")
    }
    rows["survey_summary"].append({"platform": "all"})
    fill(path, **rows)
    yield Warehouse(str(path))


def assert_harmless(shown: str) -> None:
    assert shown.strip()
    bad = {
        character for character in shown
        if character != "\n" and (unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp", "Cs"))
    }  # fmt: skip
    assert not bad, (bad, shown)


def console() -> Console:
    return Console(file=StringIO(), width=200, no_color=True, highlight=False)


def text_of(made: Console) -> str:
    assert isinstance(made.file, StringIO)
    return made.file.getvalue()


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
@pytest.mark.parametrize("width", [80, 200])
def test_no_block_of_the_fleet_shows_a_name_that_commands_the_terminal(
    warehouse: Warehouse, block: Any, width: int
) -> None:
    made = Console(file=StringIO(), width=width, no_color=True)
    with warehouse.read() as session:
        block(made, session, HourRange.of(HOUR))
    assert_harmless(text_of(made))


def test_nor_does_the_report_of_one_agent(warehouse: Warehouse) -> None:
    made = console()
    with warehouse.read() as session:
        print_agent(made, session, HourRange.of(HOUR), EVIL)
    assert_harmless(text_of(made))
    assert "evil" in text_of(made)


def test_nor_does_the_report_of_alerts_and_channels(warehouse: Warehouse) -> None:
    made = console()
    with warehouse.read() as session:
        print_alerts(made, session, datetime(2020, 1, 1, tzinfo=UTC), Targets())
    print_trials(made, {EVIL: None, f"{EVIL}2": EVIL})
    assert_harmless(text_of(made))
    assert "evil" in text_of(made)


def test_nor_does_the_end_of_a_run(warehouse: Warehouse) -> None:
    made = console()
    with warehouse.read() as session:
        outcome = Outcome(
            hours=HourRange.of(HOUR), lines_read=1, lines_rejected=1, files_read=1, files_seen=1,
            spans_read=1, failed_checks=[FailedCheck(asset=EVIL, name=EVIL, severity="ERROR", unexpected=1)], error=None,
        )  # fmt: skip
        print_outcome(made, outcome, session, 1.0)
    assert_harmless(text_of(made))
    assert "evil" in text_of(made)


def test_nor_does_an_error(warehouse: Warehouse) -> None:
    for arguments in (["report", "--agent", f"{EVIL}?"], ["report", "--hour", EVIL]):
        done = CliRunner().invoke(app, [*arguments, "--warehouse", str(warehouse.path)])
        assert done.exit_code == 1
        assert_harmless(done.output)
    done = CliRunner().invoke(app, ["alerts", "--alerts", f"/tmp/{EVIL}".replace("\x00", ""), "--test"])
    assert_harmless(done.output)


def test_nor_do_check_and_survey(tmp_path: Path) -> None:
    with Host(answers(current_document(agent_id=EVIL, extensions={}))) as host:
        done = CliRunner().invoke(app, ["check", host.url, "--allow-private"])
        assert "evil" in done.output
        assert_harmless(done.output)
        (tmp_path / "registry.yaml").write_text(
            f'[{{"name": "{EVIL_IN_JSON}", "platform": "{EVIL_IN_JSON}", "url": "{host.url}"}}]'.replace("\\u0000", "")
        )
        done = CliRunner().invoke(
            app, ["survey", "--registry", str(tmp_path / "registry.yaml"), "--allow-private",
                  "--warehouse", str(tmp_path / "health.duckdb")],
        )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "evil" in done.output
    assert_harmless(done.output)


def test_a_document_that_is_nested_too_deeply_is_no_document(tmp_path: Path) -> None:
    del tmp_path
    nested: Any = 1
    for _ in range(900):
        nested = {"a": nested}
    with Host(answers(document(extensions={"com.example.deep": nested}))) as host:
        for flags in ([], ["--json"]):
            done = CliRunner().invoke(app, ["check", host.url, "--allow-private", *flags])
            assert done.exit_code == 5, done.output
            assert "nested too deeply" in done.output
