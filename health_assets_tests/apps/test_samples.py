"""The demo's sample logs: the same bytes every time, every kind of record, and the same story whenever it ends."""

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from health_assets.apps.demo.sample_fleet import FLEET
from health_assets.apps.demo.samples import BAD_LINES, bad_lines_by_file, sample_files, span_until
from health_assets.cli.dagster_home import configuration
from health_assets.cli.demo import Demo
from health_assets.cli.outcomes import Outcome
from health_assets.cli.running import run_hours
from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HOUR
from health_assets.core.settings import Settings
from health_assets.core.targets import load_targets
from health_assets.pipeline.resource import Pipeline
from health_assets.schema.records import LINE_TYPES
from health_assets_tests.support.projects import REPOSITORY

# from inside ibis and Great Expectations
pytestmark = [
    pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:module 'sre_:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The 'future.infer_string' option:DeprecationWarning"),
]

END = datetime(2026, 6, 8, tzinfo=UTC)
SPAN = span_until(END)
PARTS = {"reliability": 40, "performance": 20, "stability": 20, "operational": 20}


@dataclass
class Scored:
    outcome: Outcome
    agents: dict[str, dict]
    rejected_reasons: list[str]

    def points_lost(self, agent_id: str) -> dict[str, float]:
        """By part of the score; parts that lost nothing are left out."""
        row = self.agents[agent_id]
        lost = {part: points * (1 - row[f"{part}_score"]) for part, points in PARTS.items()}
        return {part: points for part, points in lost.items() if points > 1e-9}


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    made = Demo(tmp_path_factory.mktemp("demo"))
    assert made.make_samples(END) == SPAN
    return made


@pytest.fixture(scope="module")
def scored(samples: Demo) -> Scored:
    given = {"raw": samples.raw, "targets": samples.targets, "warehouse": str(samples.warehouse)}
    settings = Settings().model_copy(update=given)
    outcome = run_hours(settings, SPAN, lambda _: None)
    assert outcome.error is None, outcome.error
    with Pipeline(settings=settings).open().read() as session:
        health = session.table("agent_health")
        agents = session.arrow(health.filter(health.hour == END - HOUR)).to_pylist()
        reasons = session.query("SELECT reason FROM rejected_records")
    return Scored(outcome, {row["agent_id"]: row for row in agents}, [reason for (reason,) in reasons])


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _lines(samples: Demo) -> Iterator[str]:
    for name, content in _contents(samples.raw).items():
        text = (gzip.decompress(content) if name.endswith(".gz") else content).decode()
        yield from text.splitlines()


def _good_records(samples: Demo) -> list[dict]:
    bad = {line for lines in bad_lines_by_file(SPAN).values() for line in lines}
    return [json.loads(line) for line in _lines(samples) if line not in bad]


# -- the files ---------------------------------------------------------------------------------------------------------


def test_the_same_bytes_are_written_twice(tmp_path: Path) -> None:
    for name in ("one", "two"):
        Demo(tmp_path / name).make_samples(END)
    contents = [_contents(tmp_path / name) for name in ("one", "two")]
    for content in contents:
        del content["dagster/dagster.yaml"]  # which says where it is
    assert contents[0] == contents[1]


@pytest.mark.parametrize("hours", [-1, 17, 24 * 23 + 7])
def test_the_story_is_the_same_whenever_it_ends(hours: int) -> None:
    """Only the moments are others, by as much as the end is."""
    by = hours * HOUR
    told = [_told(sample_files(span), back) for span, back in ((SPAN, 0 * by), (span_until(END + by), by))]
    assert len(told[0]) > 15_000
    assert told[0] == told[1]


def _told(files: dict[str, bytes], back: timedelta) -> list[str]:
    """Every good record that is not delivered twice, with its moments moved back, in an order of their own."""
    records = []
    for name, content in files.items():
        if name.startswith("redelivered/"):
            continue
        for line in (gzip.decompress(content) if name.endswith(".gz") else content).splitlines():
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if (
                str(record.get("execution_id", record.get("call_id", ""))).startswith("bad-")
                or record["type"] == "heartbeat"
            ):
                continue
            if "-02-30T" in str(record.get("at")):
                continue
            moments = {
                key: _moment(record[key]) - back
                for key in ("started_at", "ended_at", "fired_at", "at")
                if key in record
            }
            records.append(json.dumps(record | moments, default=str, sort_keys=True))
    return sorted(records)


def _moment(written: str | float) -> datetime:
    if isinstance(written, str):
        moment = datetime.fromisoformat(written)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    return datetime.fromtimestamp(round(written / 1000 if written > 1e11 else written, 3), UTC)


@pytest.mark.parametrize("end", [END, END + 5 * HOUR, END - 23 * HOUR])
def test_no_event_lies_outside_the_hours_of_the_story(end: datetime) -> None:
    span = span_until(end)
    assert len(span) == 48 and span.end == end
    records = [json.loads(line) for line in _told(sample_files(span), timedelta(0))]
    ends = [record.get("ended_at", record.get("fired_at", record.get("at"))) for record in records]
    assert str(span.start) <= min(ends) < str(span.start + HOUR)
    assert str(span.end - HOUR) <= max(ends) < str(span.end)


def test_a_demo_that_ends_later_leaves_nothing_of_the_earlier_one_and_touches_no_other_file(tmp_path: Path) -> None:
    demo, fresh = Demo(tmp_path / "demo"), Demo(tmp_path / "fresh")
    demo.make_samples(END)
    (demo.raw / "office.jsonl").write_text("{}\n")
    demo.targets.write_text(demo.targets.read_text() + "\n# tried something\n")
    demo.warehouse.write_bytes(b"a warehouse of these logs")
    others = {
        "raw/late.jsonl": b"a late log",
        "raw/support/2026-06-06/notes.jsonl": b"{}",
        "dagster/history/runs.db": b"runs",
    }
    for name, content in others.items():
        (demo.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (demo.folder / name).write_bytes(content)
    demo.make_samples(END + 30 * HOUR)
    fresh.make_samples(END + 30 * HOUR)
    expected = _contents(fresh.folder) | others
    expected["dagster/dagster.yaml"] = (demo.dagster_home / "dagster.yaml").read_bytes()
    assert _contents(demo.folder) == expected


@pytest.mark.parametrize("name", ["targets.yaml", "raw/agents.jsonl", "health.duckdb"])
def test_logs_targets_and_a_warehouse_that_no_demo_made_are_left_alone(tmp_path: Path, name: str) -> None:
    own = tmp_path / name
    own.parent.mkdir(exist_ok=True)
    own.write_text("agents: {}\n")
    with pytest.raises(HealthAssetsError, match="no demo made"):
        Demo(tmp_path).make_samples(END)
    assert _contents(tmp_path) == {name: b"agents: {}\n"}


def test_a_folder_that_cannot_be_made_is_an_error_of_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(HealthAssetsError, match="cannot write the demo"):
        Demo(tmp_path / "file" / "demo").make_samples(END)


def test_dagster_keeps_its_records_of_the_demo_as_it_does_in_the_projects_folder(tmp_path: Path) -> None:
    own = yaml.safe_load((REPOSITORY / "dagster.yaml").read_text(encoding="utf-8"))
    found = configuration(tmp_path)
    assert found["event_log_storage"].pop("config") == {"base_dir": str(tmp_path / "history" / "runs")}
    del (
        own["event_log_storage"]["config"],
        own["run_storage"],
        own["schedule_storage"],
    )  # by default, in that folder too
    assert found == own


def test_every_record_type_occurs_with_every_field_of_the_contract(samples: Demo) -> None:
    fields: dict[str, set[str]] = {}
    for record in _good_records(samples):
        fields.setdefault(record["type"], set()).update(record)
    assert fields.keys() >= {"execution", "trigger", "model_call", "tool_call", "signals", "judgement", "agent_update"}
    for name, found in fields.items():
        assert {field.name for field in LINE_TYPES[name].fields} <= found, name


def test_every_condition_and_kind_of_update_occurs(samples: Demo) -> None:
    records = _good_records(samples)
    assert {record.get("condition", "baseline") for record in records if record["type"] == "execution"} == {
        "baseline", "fault", "structural", "prompt",
    }  # fmt: skip
    assert {record["kind"] for record in records if record["type"] == "agent_update"} == {
        "restart", "model_change", "capability_update",
    }  # fmt: skip


def test_tasks_have_several_trials_and_sessions_several_executions(samples: Demo) -> None:
    executions = {record["execution_id"]: record for record in _good_records(samples) if record["type"] == "execution"}
    for key in ("task_id", "session_id"):
        values = [record[key] for record in executions.values() if key in record]
        assert len(values) > 4 * len(set(values)) > 0


def test_signals_and_judgements_that_come_later_are_about_executions_that_exist(samples: Demo) -> None:
    records = _good_records(samples)
    executions = {record["execution_id"] for record in records if record["type"] == "execution"}
    later = {record["execution_id"] for record in records if record["type"] in ("signals", "judgement")}
    assert later and later <= executions


def test_timestamps_are_written_in_every_style_of_the_contract(samples: Demo) -> None:
    ends = [record["ended_at"] for record in _good_records(samples) if "ended_at" in record]
    texts = {end[23:] for end in ends if isinstance(end, str)}
    assert texts == {"Z", "+02:00", ""}
    numbers = [end for end in ends if not isinstance(end, str)]
    assert min(numbers) < 1e10 and max(numbers) > 1e12


def test_the_targets_know_every_agent_of_the_story(samples: Demo) -> None:
    listed = load_targets(samples.targets).agents.keys()
    logged = {profile.agent_id for profile in FLEET}
    assert listed - logged == {"fraud-screener"}
    assert logged - listed == {"order-tracker", "log-summarizer"}


# -- what the pipeline makes of them -----------------------------------------------------------------------------------


def test_the_only_failed_checks_warn_of_the_file_with_two_bad_lines_of_few(scored: Scored) -> None:
    failed = {(check.asset, check.name, check.severity) for check in scored.outcome.failed_checks}
    names = ("few_lines_of_a_file_are_rejected", "few_read_lines_are_rejected")
    assert failed == {("raw_logs", name, "WARN") for name in names}


def test_every_line_is_read_and_exactly_the_bad_ones_are_rejected(scored: Scored, samples: Demo) -> None:
    bad_lines = sum(map(len, BAD_LINES.values()))
    redelivered = list(samples.raw.glob("redelivered/*"))
    assert len(redelivered) == 1, "what is delivered twice counts once"
    twice = len(gzip.decompress(redelivered[0].read_bytes()).splitlines())
    assert scored.outcome.lines_read == len(list(_lines(samples))) - twice
    assert 20_000 < scored.outcome.lines_read < 35_000
    assert scored.outcome.lines_rejected == len(scored.rejected_reasons) == bad_lines
    assert len(set(scored.rejected_reasons)) == bad_lines - 1  # two of them are not JSON


def test_the_logs_fill_the_hours_to_the_last(scored: Scored) -> None:
    assert all(row["hours_covered"] == 24 for row in scored.agents.values())


def test_every_agent_ends_in_the_state_that_the_story_says(scored: Scored) -> None:
    states: dict[str, set[str]] = {}
    for agent_id, row in scored.agents.items():
        states.setdefault(row["state"], set()).add(agent_id)
    assert states == {
        "healthy": {
            "invoice-reader", "support-triage", "order-tracker", "meeting-assistant", "log-summarizer",
            "nightly-reporter", "inbox-watcher",
        },
        "degraded": {"code-reviewer", "contract-summarizer", "web-researcher", "payment-reconciler"},
        "unhealthy": {"crm-sync"},
        "inactive": {"newsletter-writer", "fraud-screener"},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("agent_id", "part", "least", "most"),
    [
        ("code-reviewer", "reliability", 15, 25),
        ("nightly-reporter", "reliability", 1, 6),
        ("contract-summarizer", "performance", 20, 20),
        ("web-researcher", "stability", 15, 20),
        ("payment-reconciler", "operational", 12, 12),
        ("inbox-watcher", "operational", 8, 8),
    ],
)
def test_a_storied_agent_loses_its_points_in_one_part(
    scored: Scored, agent_id: str, part: str, least: float, most: float
) -> None:
    lost = scored.points_lost(agent_id)
    assert lost.keys() == {part}
    assert least - 1e-9 <= lost[part] <= most + 1e-9


def test_the_unhealthy_agent_loses_points_in_several_parts(scored: Scored) -> None:
    assert scored.points_lost("crm-sync").keys() >= {"reliability", "performance", "operational"}


@pytest.mark.parametrize(
    "agent_id", ["invoice-reader", "support-triage", "order-tracker", "meeting-assistant", "log-summarizer"]
)
def test_a_healthy_agent_loses_no_point(scored: Scored, agent_id: str) -> None:
    assert scored.points_lost(agent_id) == {}
    assert scored.agents[agent_id]["confidence_factor"] == 1


def test_an_agent_with_few_executions_is_given_the_benefit_of_the_doubt(scored: Scored) -> None:
    row = scored.agents["nightly-reporter"]
    assert row["asr"] <= 0.5
    assert row["confidence_factor"] <= 0.5
    assert row["reliability_score"] > row["reliability_raw"] + 0.1


def test_one_agent_is_silent_and_one_was_never_seen(scored: Scored, samples: Demo) -> None:
    assert scored.agents["newsletter-writer"]["n"] == scored.agents["fraud-screener"]["n"] == 0
    seen = {record.get("agent_id") for record in _good_records(samples)}
    assert "newsletter-writer" in seen and "fraud-screener" not in seen


def test_the_retired_agent_has_logs_but_no_score(scored: Scored, samples: Demo) -> None:
    assert "faq-bot-v1" in {record.get("agent_id") for record in _good_records(samples)}
    assert "faq-bot-v1" not in scored.agents
