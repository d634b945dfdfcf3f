"""The dashboards for Grafana: every panel's SQL runs on PostgreSQL and says what the tables say."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.alerting import Rule
from grafana_foundation_sdk.models.dashboard import Dashboard

from health_assets.apps.demo.sample_fleet import SPAN_H, TARGETS_YAML
from health_assets.apps.demo.samples import sample_files, span_until
from health_assets.core.hours import HOUR, HourRange
from health_assets_tests.support.logs_made import START
from health_assets_tests.support.projects import REPOSITORY, Project, Row
from health_assets_tests.support.serving_made import fill

DASHBOARDS = {
    path.stem: json.loads(path.read_text(encoding="utf-8")) for path in (REPOSITORY / "docs/grafana").glob("*.json")
}
[ALERTS] = yaml.safe_load((REPOSITORY / "docs/grafana/alert-rules.yaml").read_text(encoding="utf-8"))["groups"]
PANELS = {(name, panel["title"]): panel for name, board in DASHBOARDS.items() for panel in board["panels"]}
AGENT = "invoice-reader"
END = START + SPAN_H * HOUR
HOURS = HourRange(END - 26 * HOUR, END)
LEFT_OUT = END - 3 * HOUR
NEWEST = END - HOUR
AGENT_VARIABLE = "${agent:sqlstring}"

STEPS = [
    "ingest", "health_components", "agent_health", "system_health", "state_components", "agent_changes",
    "agent_health_state", "usage_components", "agent_usage", "usage_breakdown", "model_components", "model_health",
    "tool_components", "tool_health", "error_budget", "now_components", "agent_now",
]  # fmt: skip
"""What makes the tables that panels show."""

Tables = dict[str, list[Row]]
Values = list[tuple[Any, ...]]


def expanded(sql: str, agent_id: str) -> str:
    """SQL as Grafana sends it: the time range and the variable stand in it as texts."""
    start, end = (f"'{moment:%Y-%m-%dT%H:%M:%SZ}'" for moment in (HOURS.start, HOURS.end))
    sql = re.sub(r"\$__timeFilter\((\w+)\)", rf"\1 BETWEEN {start} AND {end}", sql)
    sql = sql.replace("$__timeFrom()", start).replace("$__timeTo()", end)
    quoted = agent_id.replace("'", "''")
    sql = sql.replace(AGENT_VARIABLE, f"'{quoted}'")
    assert "$" not in sql, sql
    return sql


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    made = Project(tmp_path_factory.mktemp("grafana"), engine="postgres")
    made.write_files(sample_files(span_until(END)))
    (made.folder / "targets.yaml").write_text(TARGETS_YAML, encoding="utf-8")
    made.targets = {}
    made.materialize(HOURS, only=STEPS)
    url: Any = made.url
    incident = {"severity": "critical", "subject_kind": "agent", "rule": "score_below", "reason": "it fell"}
    fill(
        url,
        NEWEST,
        alerts=[
            {**incident, "incident_id": "a", "subject_id": AGENT, "opened_at": END},
            {**incident, "incident_id": "b", "subject_id": AGENT, "opened_at": END, "closed_at": END},
        ],
        expectation_results=[
            {"asset": "executions", "expectation": name, "success": name == "good", "severity": severity}
            for name, severity in (("good", "error"), ("bad", "error"), ("odd", "warn"))
        ],
        rejected_records=[
            {"source_file": name, "line_number": 1, "reason": reason, "raw": "x", "lines": lines}
            for name, reason, lines in (
                ("b.jsonl", "not valid JSON, not {", 4),
                ("a.jsonl", "not valid JSON, not [", 1),
                ("c.jsonl", "unknown type", 3),
            )
        ],
    )
    made.change("DELETE FROM system_health WHERE hour = ?", [LEFT_OUT])
    return made


@pytest.fixture(scope="module")
def tables(project: Project) -> Tables:
    names = (
        "system_health", "agent_health", "alerts", "usage_components", "model_health", "error_budget", "agent_usage",
        "health_components", "agent_health_state", "tool_health", "executions", "rejected_records",
        "raw_logs", "expectation_results", "partition_states", "agent_now",
    )  # fmt: skip
    found = project.tables(None, names)
    return {name: [row for row in rows if HOURS.start <= row["hour"] <= HOURS.end] for name, rows in found.items()}


def picked(rows: list[Row], *columns: str) -> Values:
    return [tuple(row[name] for name in columns) for row in rows]


def newest(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["hour"] == NEWEST]


def mine(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["agent_id"] == AGENT]


def sums(rows: list[Row], keys: tuple[str, ...], *columns: str) -> Values:
    """Sums of columns by keys; None where all are None."""
    groups = defaultdict(list)
    for row in rows:
        groups[tuple(row[key] for key in keys)].append(row)

    def total(own: list[Row], column: str) -> Any:
        values = [row[column] for row in own if row[column] is not None]
        return sum(values) if values else None

    return [(*key, *(total(own, column) for column in columns)) for key, own in groups.items()]


def lost_in_a_day(tables: Tables) -> Values:
    before = {
        row["agent_id"]: row["health_score"] for row in tables["agent_health"] if row["hour"] == NEWEST - 24 * HOUR
    }
    pairs = [
        (row["agent_id"], before.get(row["agent_id"]), row["health_score"]) for row in newest(tables["agent_health"])
    ]
    return [(name, old, now, now - old) for name, old, now in pairs if old is not None and now is not None]


def points_lost(tables: Tables) -> Values:
    dimensions = {"reliability_score": 40, "performance_score": 20, "stability_score": 20, "operational_score": 20}
    rows = [row for row in mine(tables["agent_health"]) if row["health_score"] is not None]
    return [
        (row["hour"], *(None if row[name] is None else points * (1 - row[name]) for name, points in dimensions.items()))
        for row in rows
    ]


def failing(tables: Tables) -> Values:
    failed = [row for row in tables["expectation_results"] if not row["success"]]
    counts = Counter((row["asset"], row["expectation"], row["severity"]) for row in failed)
    return [(*key, count, 7 * count, NEWEST) for key, count in counts.items()]


def made(tables: Tables) -> Values:
    by_asset = defaultdict(list)
    for row in tables["partition_states"]:
        by_asset[row["asset"]].append(row)
    return [
        (
            asset, len(rows), sum(row["rows"] for row in rows), max(row["hour"] for row in rows),
            max(row["materialized_at"] for row in rows),
        )
        for asset, rows in by_asset.items()
    ]  # fmt: skip


def reasons(tables: Tables) -> Values:
    by_reason = defaultdict(list)
    for row in tables["rejected_records"]:
        by_reason[re.sub(", (not|in span) .*", "", row["reason"])].append(row)
    return [
        (reason, sum(row["lines"] for row in rows), min(row["source_file"] for row in rows))
        for reason, rows in by_reason.items()
    ]


def now_counted(tables: Tables) -> Values:
    counts = Counter(row["verdict"] for row in newest(tables["agent_now"]))
    return [tuple(counts[verdict] for verdict in ("failing", "suspect", "recovering", "ok", "quiet"))]


def need_a_look(tables: Tables) -> Values:
    now = {row["agent_id"]: row for row in newest(tables["agent_now"])}
    rows = [
        {**row, **{name: now[row["agent_id"]][name] for name in ("verdict", "failures_1h", "executions_1h")}}
        for row in newest(tables["agent_health"])
        if row["health_score"] is not None
    ]
    return picked(
        rows, "agent_id", "verdict", "failures_1h", "executions_1h", "state", "health_score", "points_at_stake",
        "is_provisional", "n", "asr", "reliability_score", "performance_score", "stability_score", "operational_score",
    )  # fmt: skip


EXPECTED: dict[tuple[str, str], Callable[[Tables], Values]] = {
    ("fleet", "Fleet score"): lambda t: picked(newest(t["system_health"]), "health_score"),
    ("fleet", "Agents now"): now_counted,
    ("fleet", "Open incidents"): lambda t: [(sum(row["closed_at"] is None for row in t["alerts"]),)],
    ("fleet", "Cost in the time range"): lambda t: sums(t["usage_components"], (), "cost_usd"),
    ("fleet", "Fleet score over time"): lambda t: picked(t["system_health"], "hour", "health_score"),
    ("fleet", "Agents by state"): lambda t: picked(
        t["system_health"], "hour", "unhealthy", "degraded", "healthy", "inactive"
    ),
    ("fleet", "Agents that need a look"): need_a_look,
    ("fleet", "Lost most points in a day"): lost_in_a_day,
    ("fleet", "Models"): lambda t: picked(t["model_health"], "hour", "model", "health_score"),
    ("fleet", "Tokens by hour"): lambda t: sums(t["usage_components"], ("hour",), "input_tokens", "output_tokens"),
    ("fleet", "Incidents"): lambda t: picked(
        t["alerts"], "opened_at", "severity", "rule", "subject_id", "reason", "closed_at"
    ),
    ("agent", "Now"): lambda t: picked(newest(mine(t["agent_now"])), "verdict"),
    ("agent", "Score"): lambda t: picked(newest(mine(t["agent_health"])), "health_score"),
    ("agent", "Executions in the window"): lambda t: picked(newest(mine(t["agent_health"])), "n"),
    ("agent", "Success rate"): lambda t: picked(newest(mine(t["agent_health"])), "asr", "expected_success_rate"),
    ("agent", "Error budget spent"): lambda t: picked(newest(mine(t["error_budget"])), "budget_spent"),
    ("agent", "Cost of a success"): lambda t: picked(newest(mine(t["agent_usage"])), "cost_per_success_usd"),
    ("agent", "Score over time"): lambda t: picked(mine(t["agent_health"]), "hour", "health_score"),
    ("agent", "Points lost by dimension"): points_lost,
    ("agent", "Executions by hour"): lambda t: picked(mine(t["health_components"]), "hour", "successes", "failures"),
    ("agent", "Latency"): lambda t: picked(mine(t["agent_health_state"]), "hour", "latency_p50_ms", "latency_p99_ms"),
    ("agent", "Burn rate"): lambda t: picked(mine(t["error_budget"]), "hour", "burn_rate_1h", "burn_rate_6h"),
    ("agent", "Tokens by hour"): lambda t: sums(
        mine(t["usage_components"]), ("hour",), "input_tokens", "output_tokens"
    ),
    ("agent", "Tools"): lambda t: picked(
        newest(mine(t["tool_health"])),
        "tool", "calls", "failures", "failure_share", "p50_latency_ms", "p95_latency_ms", "last_error",
    ),
    ("agent", "Latest failures"): lambda t: picked(
        sorted(
            (row for row in mine(t["executions"]) if not row["succeeded"]), key=lambda row: row["ended_at"], reverse=True
        )[:50],
        "ended_at", "execution_id", "runtime_s", "error",
    ),
    ("data-quality", "Hours without results"): lambda _: [(1,)],
    ("data-quality", "Rejected lines"): lambda t: sums(t["rejected_records"], (), "lines"),
    ("data-quality", "Lines by hour"): lambda t: sums(t["raw_logs"], ("hour", "record_type"), "lines"),
    ("data-quality", "Failed checks by hour"): lambda _: [(NEWEST, 1, 1)],
    ("data-quality", "Reasons of rejection"): reasons,
    ("data-quality", "Checks that fail"): failing,
    ("data-quality", "Tables"): made,
}  # fmt: skip


def plain(rows: Values) -> list[str]:
    """Rows as they are compared: numbers to 9 digits, in an order of their own."""

    def one(value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
            return value
        return round(float(value), 9)

    return sorted(repr(tuple(map(one, row))) for row in rows)


def asked(project: Project, sql: str, agent_id: str = AGENT) -> tuple[list[str], Values]:
    with psycopg.connect(project.url) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        cursor = connection.execute(expanded(sql, agent_id).encode())
        assert cursor.description is not None
        return [column.name for column in cursor.description], cursor.fetchall()


def in_utc(rows: Values) -> Values:
    return [tuple(value.astimezone(UTC) if isinstance(value, datetime) else value for value in row) for row in rows]


@pytest.mark.parametrize(("board", "title"), [*EXPECTED], ids=[" ".join(place) for place in EXPECTED])
def test_a_panel_shows_what_the_tables_hold(project: Project, tables: Tables, board: str, title: str) -> None:
    [target] = PANELS[board, title]["targets"]
    columns, rows = asked(project, target["rawSql"])
    expected = EXPECTED[board, title](tables)
    assert rows and expected
    assert any(value is not None for row in rows for value in row)
    assert plain(in_utc(rows)) == plain(in_utc(expected))
    if target["format"] == "time_series":  # which Grafana draws only in the order of time
        assert columns[0] == "time"
        assert [row[0] for row in rows] == sorted(row[0] for row in rows)
        assert columns[1:] == ["metric", "value"] or "metric" not in columns


def test_every_panel_is_compared_or_depends_on_the_clock(project: Project) -> None:
    by_clock = {("data-quality", "Age of the newest hour")}
    assert set(PANELS) == {*EXPECTED, *by_clock}
    _, [(age_s,)] = asked(project, PANELS[*by_clock.pop()]["targets"][0]["rawSql"])
    assert float(age_s) == pytest.approx((datetime.now(UTC) - END).total_seconds(), abs=60)


def test_the_list_of_agents_is_that_of_the_table_and_a_name_with_a_quote_is_no_sql(
    project: Project, tables: Tables
) -> None:
    [variable] = [each for each in DASHBOARDS["agent"]["templating"]["list"] if each["type"] == "query"]
    _, rows = asked(project, variable["query"])
    assert {name for (name,) in rows} == {row["agent_id"] for row in tables["agent_health"]}
    for panel in DASHBOARDS["agent"]["panels"]:
        sql = panel["targets"][0]["rawSql"]
        assert sql.count("$agent") == 0
        assert sql.count(AGENT_VARIABLE) == 1
        assert asked(project, sql, "x' OR '1'='1")[1] == []


def every_panel() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for board in DASHBOARDS.values():
        yield from ((board, panel) for panel in board["panels"])


def test_grafana_can_import_the_dashboards() -> None:
    assert set(DASHBOARDS) == {"fleet", "agent", "data-quality"}
    assert len({board["uid"] for board in DASHBOARDS.values()}) == 3
    for board in DASHBOARDS.values():
        [source] = [each for each in board["templating"]["list"] if each["type"] == "datasource"]
        assert (source["name"], source["query"]) == ("warehouse", "grafana-postgresql-datasource")
        assert "id" not in board, "Grafana gives the id"
        ids = [panel["id"] for panel in board["panels"]]
        assert len(set(ids)) == len(ids)
    for board, panel in every_panel():
        assert panel["type"] in ("stat", "timeseries", "table")
        assert panel["title"] and panel["description"].endswith("."), panel["title"]
        defaults = panel["fieldConfig"]["defaults"]
        assert defaults["unit"] and defaults["thresholds"]["steps"][0]["value"] is None
        for holder in (panel, *panel["targets"]):
            assert holder["datasource"] == {"type": "grafana-postgresql-datasource", "uid": "${warehouse}"}
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24, (board["uid"], panel["title"])


def unknown_fields(written: Any, read: Any, place: str = "") -> Iterator[str]:
    """Places that reading with Grafana's schema has dropped or changed."""
    if isinstance(written, dict) and isinstance(read, dict):
        for name, value in written.items():
            yield from unknown_fields(value, read.get(name, ...), f"{place}.{name}")
    elif isinstance(written, list) and isinstance(read, list) and len(written) == len(read):
        for one, other in zip(written, read, strict=True):
            yield from unknown_fields(one, other, f"{place}[]")
    elif written != read:
        yield place


def read_by(model: Any, content: dict[str, Any]) -> Any:
    register_default_plugins()
    return json.loads(JSONEncoder().encode(model.from_json(content)))


def test_the_schema_of_grafana_knows_every_field_of_the_dashboards_and_alert_rules() -> None:
    of_exports = {".__requires", ".templating.list[].definition"}  # which the schema does not hold
    for board in DASHBOARDS.values():
        assert {*unknown_fields(board, read_by(Dashboard, board))} <= of_exports
    for rule in ALERTS["rules"]:
        assert {*unknown_fields(rule, read_by(Rule, rule))} == set()
    misspelt = DASHBOARDS["fleet"] | {"timezon": "utc"}
    assert ".timezon" in unknown_fields(misspelt, read_by(Dashboard, misspelt))


ALERTING: dict[str, Callable[[Tables], Values]] = {
    "health-assets-failing-agent": lambda t: [
        (row["agent_id"], row["failures_6h"]) for row in newest(t["agent_now"]) if row["verdict"] == "failing"
    ],
    "health-assets-burning-budget": lambda t: [
        (row["agent_id"], min(row["burn_rate_6h"], row["burn_rate_30m"]))
        for row in newest(t["error_budget"])
        if row["burn_rate_6h"] is not None and row["burn_rate_30m"] is not None
    ],
    "health-assets-failed-check": lambda _: [("executions", "bad", 1)],
}


@pytest.mark.parametrize("rule", ALERTS["rules"], ids=lambda rule: rule["uid"])
def test_an_alert_rule_asks_for_one_number_of_each_agent_or_check_and_compares_it(
    project: Project, tables: Tables, rule: dict[str, Any]
) -> None:
    rows_of, threshold = (each["model"] for each in rule["data"])
    assert [each["refId"] for each in rule["data"]] == [rows_of["refId"], threshold["refId"]]
    assert (threshold["expression"], rule["condition"]) == (rows_of["refId"], threshold["refId"])
    columns, rows = asked(project, rows_of["rawSql"])
    if rule["uid"] in ALERTING:
        assert rows and plain(rows) == plain(ALERTING[rule["uid"]](tables))
    [row] = rows[:1]
    assert [type(value) is str for value in row] == [*[True] * (len(row) - 1), False]
    assert {*re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"])} <= {*columns[:-1]}


def test_no_two_panels_lie_on_each_other() -> None:
    for board in DASHBOARDS.values():
        cells = Counter(
            (x, y)
            for place in (panel["gridPos"] for panel in board["panels"])
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        )
        assert max(cells.values()) == 1


def test_links_between_dashboards_lead_to_one_that_is_there() -> None:
    text = "".join(Path(REPOSITORY / "docs/grafana" / f"{name}.json").read_text() for name in DASHBOARDS)
    assert set(re.findall(r"/d/([\w-]+)\?", text)) <= {board["uid"] for board in DASHBOARDS.values()}
