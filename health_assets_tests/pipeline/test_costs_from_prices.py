"""Costs that are computed from the bundled price list (contract, section 9): by hand, and against the library's own sums."""

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
import pytest
from genai_prices import Usage, calc_price
from genai_prices.data_snapshot import get_snapshot
from rich.console import Console

from health_assets.core.hours import HOUR, HourRange
from health_assets.pipeline import price_list
from health_assets.pipeline.price_list import rates_of
from health_assets.scoring.prices import with_costs
from health_assets.systems.agent_usage.report import print_block
from health_assets.systems.session_scores.report import print_block as print_sessions
from health_assets_tests.support.logs_made import START, Record, execution, line
from health_assets_tests.support.projects import ENGINES, Project, Row, assert_same_tables, hours_from
from health_assets_tests.support.traces_made import agent, chat, otlp_line

AT = START + HOUR / 2
FIRST = HourRange.of(START)
STEPS = ["ingest", "usage_components", "agent_usage"]
USED = {
    "input_tokens": 1000, "cache_read_tokens": 600, "cache_creation_tokens": 200, "output_tokens": 300,
    "reasoning_tokens": 100,
}  # fmt: skip
BY_HAND_USD = (200 * 3 + 600 * 0.3 + 200 * 3.75 + 300 * 15) / 1e6
"""Claude Sonnet 4.5 costs 3 dollars a million tokens in, 0.3 from the cache, 3.75 into it, and 15 out."""


@pytest.fixture(autouse=True)
def _with_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEALTH_PRICES")


def call(number: int, model: str = "claude-sonnet-4-5", at: datetime = AT, **fields: Any) -> Record:
    told = {"call_id": f"c{number}", "model": model, "ended_at": at.isoformat(), "status": "success"}
    return {"type": "model_call", "execution_id": "e", "agent_id": "a"} | told | fields


def made(project: Project, records: list[Record], hours: HourRange = FIRST) -> dict[str, list[Row]]:
    project.write_log("a.jsonl", map(line, records), modified=AT)
    project.materialize(hours, only=STEPS)
    return project.tables(names=["model_calls", "executions", "usage_components", "agent_usage"])


def costs(rows: list[Row]) -> list[tuple[float | None, str | None]]:
    return [(row["cost_usd"], row["cost_source"]) for row in rows]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_call_that_states_no_cost_gets_that_of_its_tokens_and_its_execution_and_agent_the_sum(
    tmp_path: Path, engine: str
) -> None:
    project = Project(tmp_path / "project", engine=engine)
    tables = made(project, [execution("e", "a", AT), call(1, **USED), call(2, **USED)])
    once, twice = pytest.approx(BY_HAND_USD, rel=1e-9), pytest.approx(2 * BY_HAND_USD, rel=1e-9)
    assert pytest.approx(0.00603) == BY_HAND_USD
    assert costs(tables["model_calls"]) == [(once, "computed")] * 2
    assert costs(tables["executions"]) == costs(tables["agent_usage"]) == [(twice, "computed")]
    assert [row["executions_with_computed_cost"] for row in tables["usage_components"]] == [1]


def test_spans_that_state_no_cost_are_priced_by_the_model_that_answered(project: Project) -> None:
    used = {"gen_ai__usage__input_tokens": 1000, "gen_ai__usage__output_tokens": 300}
    named = {"gen_ai__request__model": "my-alias", "gen_ai__response__model": "claude-sonnet-4-5-20250929"}
    project.write_log("a.jsonl", [otlp_line(agent(1, 1, AT), chat(1, 2, AT, 1, **used, **named))])
    project.materialize(FIRST, only=STEPS)
    expected = pytest.approx((1000 * 3 + 300 * 15) / 1e6)
    assert costs(project.rows("model_calls")) == costs(project.rows("executions")) == [(expected, "computed")]
    before = project.tables(names=["executions", "model_calls"])
    project.materialize(FIRST, only=STEPS)
    assert project.tables(names=["executions", "model_calls"]) == before


def test_a_stated_cost_counts_alone_and_what_states_one_gets_no_computed_one_added(project: Project) -> None:
    tables = made(project, [execution("e", "a", AT), call(1, **USED), call(2, cost_usd=0.5, **USED)])
    assert costs(tables["executions"]) == costs(tables["agent_usage"]) == [(0.5, "stated")]
    tables = made(project, [execution("e", "a", AT, cost_usd=0.25), call(1, **USED)])
    assert costs(tables["executions"]) == [(0.25, "stated")]


UNPRICED = [
    {"model": "atlas-mini"}, {"input_tokens": None}, {"output_tokens": None}, {"cache_read_tokens": 801},
    {"reasoning_tokens": 301},
]  # fmt: skip


def test_a_call_of_an_unknown_model_or_of_tokens_that_do_not_add_up_has_no_cost(project: Project) -> None:
    records = []
    for number, fields in enumerate(UNPRICED):
        told = {name: value for name, value in {**USED, **fields}.items() if value is not None}
        records += [execution(f"e{number}", "a", AT), call(number, execution_id=f"e{number}", **told)]
    tables = made(project, records)
    assert costs(tables["model_calls"]) == costs(tables["executions"]) == [(None, None)] * len(UNPRICED)


def test_without_the_setting_or_the_package_nothing_is_computed_and_what_was_is_taken_away(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = [execution("e", "a", AT), call(1, **USED)]
    priced = made(project, records)
    monkeypatch.setenv("HEALTH_PRICES", "off")
    assert costs(made(project, records)["agent_usage"]) == [(None, None)]
    assert shown(project).endswith("1 call without a cost, HEALTH_PRICES is off: claude-sonnet-4-5 (1)")
    monkeypatch.delenv("HEALTH_PRICES")
    assert_same_tables(made(project, records), priced)
    monkeypatch.setattr(price_list, "find_spec", lambda _: None)
    assert costs(made(project, records)["executions"]) == [(None, None)]
    assert "pip install 'health-assets[prices]'" in shown(project)


def shown(project: Project) -> str:
    console = Console(width=200)
    with project.warehouse.read() as session, console.capture() as capture:
        print_block(console, session, FIRST)
    return capture.get().strip()


def test_models_without_a_price_are_named_with_their_calls_and_computed_costs_are_told(project: Project) -> None:
    records = [call(n, model, **USED) for n, model in enumerate(["atlas-mini", "nimbus", "atlas-mini", "gpt-4o-mini"])]
    made(project, [execution("e", "a", AT), *records])
    text = shown(project)
    assert "told by 1 execution, of 1 computed from list prices" in text
    assert text.endswith(
        "3 calls without a cost, not in the price list, or of tokens that do not add up: atlas-mini (2), nimbus (1)"
    )


def test_in_any_order_of_arrival_costs_are_those_of_a_rebuild(tmp_path: Path) -> None:
    source = random.Random(3)
    project = Project(tmp_path / "project", {}, 1, 3)
    hours = hours_from(START, 4)
    records = [execution(f"e{n}", "a", START + source.random() * 4 * HOUR) for n in range(12)]
    for n in range(40):
        own = {**USED, **({"cost_usd": 0.125} if source.random() < 0.2 else {})}
        at = START + source.random() * 4 * HOUR
        records.append(call(n, source.choice(["gpt-4o", "atlas-mini"]), at, **own) | {"execution_id": f"e{n % 12}"})
    source.shuffle(records)
    for place in range(4):
        project.write_log(f"{place}.jsonl", map(line, records[place::4]))
        project.materialize(HourRange.of(START + source.randrange(4) * HOUR), only=STEPS)
    project.materialize(hours, only=STEPS)
    names = ["executions", "model_calls", "usage_components", "agent_usage"]
    clean = project.clean_rebuild(hours, only=STEPS)
    assert_same_tables(project.tables(names=names), clean.tables(names=names))
    assert {row["cost_source"] for row in project.rows("executions")} == {"stated", "computed", None}


def test_an_hour_made_alone_has_the_costs_of_its_part_of_a_range(tmp_path: Path) -> None:
    hours = hours_from(START, 3)
    runs = [execution(f"e{n}", "a", AT + n * HOUR) for n in range(3)]
    calls = [call(n, at=AT + n * HOUR, **USED) | {"execution_id": f"e{n}"} for n in range(3)]
    alone, whole = Project(tmp_path / "alone", {}, 3, 3), Project(tmp_path / "whole", {}, 3, 3)
    last = HourRange.of(hours.end - HOUR)
    for project, asked in ((alone, last), (whole, hours)):
        project.write_log("a.jsonl", map(line, [*runs, *calls]), modified=AT)
        project.materialize(asked, only=STEPS)
    [row] = alone.rows("agent_usage")
    assert row["cost_usd"] == pytest.approx(3 * BY_HAND_USD, rel=1e-9)
    assert_same_tables(alone.tables(last, ["agent_usage"]), whole.tables(last, ["agent_usage"]))


def test_reliability_compares_stated_costs_alone(project: Project) -> None:
    runs = [execution(f"e{n}", "a", AT, task_id="k", runtime_s=10) for n in range(2)]
    calls = [call(n, **USED) | {"execution_id": f"e{n}", "output_tokens": 300 * (1 + n)} for n in range(2)]
    project.write_log("a.jsonl", map(line, [*runs, *calls]), modified=AT)
    project.materialize(FIRST, only=["ingest", "task_consistency"])
    assert {row["cost_source"] for row in project.rows("executions")} == {"computed"}
    [task] = project.rows("task_consistency")
    assert (task["cv_cost_usd"], task["c_res"]) == (None, 1.0)


def test_a_session_says_whether_any_of_its_cost_was_computed(project: Project) -> None:
    sessions = ["mixed", "mixed", "told", "free"]
    runs = [execution(f"e{n}", "a", AT, session_id=one, status="failure") for n, one in enumerate(sessions)]
    calls = [call(n, **USED) | {"execution_id": f"e{n}"} for n in range(3)]
    calls[1]["cost_usd"] = calls[2]["cost_usd"] = 0.5
    project.write_log("a.jsonl", map(line, [*runs, *calls]), modified=AT)
    project.materialize(
        FIRST, only=["ingest", "computed_signals", "evaluated_signals", "trace_risks", "session_scores"]
    )
    traces = {row["trace_id"]: row["cost_source"] for row in project.rows("trace_risks")}
    assert traces == {"e0": "computed", "e1": "stated", "e2": "stated", "e3": None}
    costs = {row["session_id"]: (row["cost_usd"], row["cost_source"]) for row in project.rows("session_scores")}
    assert costs == {
        "mixed": (pytest.approx(BY_HAND_USD + 0.5, rel=1e-9), "computed"), "told": (0.5, "stated"), "free": (None, None),
    }  # fmt: skip
    console = Console(record=True, width=200)
    with project.warehouse.read() as session:
        print_sessions(console, session, FIRST)
    printed = console.export_text()
    assert [word for word in printed.split() if "$" in word] == ["~$0.5060", "$0.5000"]
    assert "~ computed from list prices, at least in part" in printed


# -- against the library -----------------------------------------------------------------------------------------------


def some_usage(source: random.Random) -> dict[str, int]:
    total = source.choice([0, 1, 1000, 128_000, 200_000, 200_001, 272_001, 600_000])
    read = source.randrange(total + 1)
    output = source.randrange(20_000)
    return {
        "input_tokens": total, "cache_read_tokens": read, "cache_creation_tokens": source.randrange(total - read + 1),
        "output_tokens": output, "reasoning_tokens": source.randrange(output + 1),
    }  # fmt: skip


def library_usd(model: str, at: datetime, used: dict[str, int]) -> float:
    usage = Usage(
        input_tokens=used["input_tokens"], output_tokens=used["output_tokens"],
        cache_read_tokens=used["cache_read_tokens"], cache_write_tokens=used["cache_creation_tokens"],
        output_reasoning_tokens=used["reasoning_tokens"],
    )  # fmt: skip
    return float(calc_price(usage, model, genai_request_timestamp=at).total_price)


def test_every_model_of_the_list_costs_what_the_library_says_at_any_time_and_size() -> None:
    source = random.Random(7)
    days = HourRange(datetime(2025, 2, 20, tzinfo=UTC), datetime(2025, 9, 1, tzinfo=UTC))
    length_s = (days.end - days.start).total_seconds()
    names = sorted({model.id for provider in get_snapshot().providers for model in provider.models})
    rows, expected = [], []
    for name in names:
        for _ in range(4):
            at, used = days.start + timedelta(seconds=source.randrange(int(length_s))), some_usage(source)
            try:
                expected.append(library_usd(name, at, used))
            except LookupError:
                continue
            rows.append(
                {"model": name, "response_model": None, "ended_at": at, "cost_usd": None, "number": len(rows)} | used
            )
    types = {
        "model": pa.string(), "response_model": pa.string(), "ended_at": pa.timestamp("us", "UTC"),
        "cost_usd": pa.float64(), "cost_source": pa.string(), "number": pa.int64(), **dict.fromkeys(USED, pa.int64()),
    }  # fmt: skip
    calls = ibis.memtable(pa.Table.from_pylist(rows, pa.schema(types)))
    rates = ibis.memtable(rates_of({(row["model"], None) for row in rows}, days))
    found = ibis.duckdb.connect().to_pyarrow(with_costs(calls, rates).order_by("number")).to_pylist()
    assert len(found) == len(rows) > 1000
    for row, cost in zip(found, expected, strict=True):
        assert (row["cost_usd"] or 0.0) == pytest.approx(cost, rel=1e-9, abs=1e-15), row
