"""The demo's sample logs: the same bytes every time, every kind of record, and the story that they tell."""

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from health_assets.defs.pipeline import Pipeline
from health_assets.errors import HealthAssetsError
from health_assets.hours import HOUR
from health_assets.logs.native import RECORD_TYPES
from health_assets.running import Outcome, run_hours
from health_assets.samples import BAD_LINES, FLEET, SPAN, Samples, write_samples
from health_assets.settings import Settings
from health_assets.targets import load_targets

# from inside ibis and Great Expectations
pytestmark = [
    pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:module 'sre_:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The 'future.infer_string' option:DeprecationWarning"),
]

PARTS = {"reliability": 40, "performance": 20, "stability": 20, "operational": 20}


@dataclass
class Demo:
    outcome: Outcome
    agents: dict[str, dict]
    rejected_reasons: list[str]

    def points_lost(self, agent_id: str) -> dict[str, float]:
        """By part of the score; parts that lost nothing are left out."""
        row = self.agents[agent_id]
        lost = {part: points * (1 - row[f"{part}_score"]) for part, points in PARTS.items()}
        return {part: points for part, points in lost.items() if points > 1e-9}


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Samples:
    return write_samples(tmp_path_factory.mktemp("demo"))


@pytest.fixture(scope="module")
def demo(samples: Samples) -> Demo:
    warehouse = str(samples.raw.parent / "health.duckdb")
    given = {"raw": samples.raw, "targets": samples.targets, "warehouse": warehouse}
    settings = Settings().model_copy(update=given)
    outcome = run_hours(settings, samples.hours, lambda _: None)
    assert outcome.error is None, outcome.error
    with Pipeline(settings).open().read() as session:
        health = session.table("agent_health")
        agents = session.arrow(health.filter(health.hour == samples.hours.end - HOUR)).to_pylist()
        reasons = session.query("SELECT reason FROM rejected_records")
    return Demo(outcome, {row["agent_id"]: row for row in agents}, [reason for (reason,) in reasons])


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _lines(samples: Samples) -> Iterator[str]:
    for name, content in _contents(samples.raw).items():
        text = (gzip.decompress(content) if name.endswith(".gz") else content).decode()
        yield from text.splitlines()


def _good_records(samples: Samples) -> list[dict]:
    bad = {line for lines in BAD_LINES.values() for line in lines}
    return [json.loads(line) for line in _lines(samples) if line not in bad]


# -- the files ---------------------------------------------------------------------------------------------------------


def test_the_same_bytes_are_written_twice(tmp_path: Path) -> None:
    write_samples(tmp_path / "one")
    write_samples(tmp_path / "two")
    assert _contents(tmp_path / "one") == _contents(tmp_path / "two")


def test_an_earlier_demo_is_written_anew_and_nothing_else_is_touched(tmp_path: Path) -> None:
    first = write_samples(tmp_path)
    before = _contents(tmp_path)
    (first.raw / "office.jsonl").write_text("{}\n")
    first.targets.write_text(first.targets.read_text() + "\n# tried something\n")
    others = {"health.duckdb": b"a warehouse", "raw/late.jsonl": b"a late log"}
    for name, content in others.items():
        (tmp_path / name).write_bytes(content)
    assert write_samples(tmp_path) == first
    assert _contents(tmp_path) == before | others


@pytest.mark.parametrize("name", ["targets.yaml", "raw/agents.jsonl"])
def test_logs_and_targets_that_no_demo_made_are_left_alone(tmp_path: Path, name: str) -> None:
    own = tmp_path / name
    own.parent.mkdir(exist_ok=True)
    own.write_text("agents: {}\n")
    with pytest.raises(HealthAssetsError, match="no demo made"):
        write_samples(tmp_path)
    assert _contents(tmp_path) == {name: b"agents: {}\n"}


def test_a_folder_that_cannot_be_made_is_an_error_of_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(HealthAssetsError, match="cannot write the demo"):
        write_samples(tmp_path / "file" / "demo")


def test_every_record_type_occurs_with_every_field_of_the_contract(samples: Samples) -> None:
    fields: dict[str, set[str]] = {}
    for record in _good_records(samples):
        fields.setdefault(record["type"], set()).update(record)
    assert fields.keys() == RECORD_TYPES.keys()
    for name, kind in RECORD_TYPES.items():
        columns = {"status" if column == "trigger_status" else column for column in kind.columns}
        assert columns <= fields[name], name


def test_every_condition_and_kind_of_update_occurs(samples: Samples) -> None:
    records = _good_records(samples)
    assert {record.get("condition", "baseline") for record in records if record["type"] == "execution"} == {
        "baseline", "fault", "structural", "prompt",
    }  # fmt: skip
    assert {record["kind"] for record in records if record["type"] == "agent_update"} == {
        "restart", "model_change", "capability_update",
    }  # fmt: skip


def test_tasks_have_several_trials_and_sessions_several_executions(samples: Samples) -> None:
    executions = {record["execution_id"]: record for record in _good_records(samples) if record["type"] == "execution"}
    for key in ("task_id", "session_id"):
        values = [record[key] for record in executions.values() if key in record]
        assert len(values) > 4 * len(set(values)) > 0


def test_signals_and_judgements_that_come_later_are_about_executions_that_exist(samples: Samples) -> None:
    records = _good_records(samples)
    executions = {record["execution_id"] for record in records if record["type"] == "execution"}
    later = {record["execution_id"] for record in records if record["type"] in ("signals", "judgement")}
    assert later and later <= executions


def test_timestamps_are_written_in_every_style_of_the_contract(samples: Samples) -> None:
    ends = [record["ended_at"] for record in _good_records(samples) if "ended_at" in record]
    texts = {end[23:] for end in ends if isinstance(end, str)}
    assert texts == {"Z", "+02:00", ""}
    numbers = [end for end in ends if not isinstance(end, str)]
    assert min(numbers) < 1e10 and max(numbers) > 1e12


def test_the_targets_know_every_agent_of_the_story(samples: Samples) -> None:
    listed = load_targets(samples.targets).agents.keys()
    logged = {profile.agent_id for profile in FLEET}
    assert listed - logged == {"fraud-screener"}
    assert logged - listed == {"order-tracker", "log-summarizer"}


# -- what the pipeline makes of them -----------------------------------------------------------------------------------


def test_no_expectation_fails(demo: Demo) -> None:
    assert demo.outcome.failed_checks == []


def test_every_line_is_read_and_exactly_the_bad_ones_are_rejected(demo: Demo, samples: Samples) -> None:
    bad_lines = sum(map(len, BAD_LINES.values()))
    assert demo.outcome.lines_read == len(list(_lines(samples)))
    assert 15_000 < demo.outcome.lines_read < 25_000
    assert demo.outcome.lines_rejected == len(demo.rejected_reasons) == bad_lines
    assert len(set(demo.rejected_reasons)) == bad_lines - 1  # two of them are not JSON


def test_the_logs_fill_the_hours_to_the_last(demo: Demo, samples: Samples) -> None:
    assert samples.hours == SPAN and len(SPAN) == 48
    assert all(row["hours_covered"] == 24 for row in demo.agents.values())


def test_every_agent_ends_in_the_state_that_the_story_says(demo: Demo) -> None:
    states: dict[str, set[str]] = {}
    for agent_id, row in demo.agents.items():
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
    demo: Demo, agent_id: str, part: str, least: float, most: float
) -> None:
    lost = demo.points_lost(agent_id)
    assert lost.keys() == {part}
    assert least - 1e-9 <= lost[part] <= most + 1e-9


def test_the_unhealthy_agent_loses_points_in_several_parts(demo: Demo) -> None:
    assert demo.points_lost("crm-sync").keys() >= {"reliability", "performance", "operational"}


@pytest.mark.parametrize(
    "agent_id", ["invoice-reader", "support-triage", "order-tracker", "meeting-assistant", "log-summarizer"]
)
def test_a_healthy_agent_loses_no_point(demo: Demo, agent_id: str) -> None:
    assert demo.points_lost(agent_id) == {}
    assert demo.agents[agent_id]["confidence_factor"] == 1


def test_an_agent_with_few_executions_is_given_the_benefit_of_the_doubt(demo: Demo) -> None:
    row = demo.agents["nightly-reporter"]
    assert row["asr"] <= 0.5
    assert row["confidence_factor"] <= 0.5
    assert row["reliability_score"] > row["reliability_raw"] + 0.1


def test_one_agent_is_silent_and_one_was_never_seen(demo: Demo, samples: Samples) -> None:
    assert demo.agents["newsletter-writer"]["n"] == demo.agents["fraud-screener"]["n"] == 0
    seen = {record.get("agent_id") for record in _good_records(samples)}
    assert "newsletter-writer" in seen and "fraud-screener" not in seen


def test_the_retired_agent_has_logs_but_no_score(demo: Demo, samples: Samples) -> None:
    assert "faq-bot-v1" in {record.get("agent_id") for record in _good_records(samples)}
    assert "faq-bot-v1" not in demo.agents
