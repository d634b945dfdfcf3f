"""Conditions of plain SQL on hours, by which a cluster is told of no more folders than it needs."""

import pytest

pytest.importorskip("pyspark", reason="the extra `spark` is not installed")

from datetime import timedelta

from health_assets.core.hours import HOUR, HourRange
from health_assets.warehouse.engines.spark.sql import parsed
from health_assets.warehouse.engines.spark.sql_hours import hours_asked, narrowed
from health_assets_tests.support.logs_made import START

DAY = HourRange(START, START + 24 * HOUR)
SPAN = {"start": DAY.start, "end": DAY.end}
INSIDE = "hour >= $start AND hour < $end"


def views(sql: str, parameters: dict | list = SPAN) -> str:
    """The query as it is sent, with `<table by hours>` for views of some hours."""
    tree = narrowed(
        parsed(sql), parameters, ["executions", "spans"], lambda name, hours: f"{name}_of_{len(list(hours))}"
    )
    return tree.sql("duckdb")


@pytest.mark.parametrize(
    ("sql", "sent"),
    [
        (f"SELECT 1 FROM executions WHERE {INSIDE}", "executions_of_24 AS executions"),
        (f"SELECT 1 FROM executions WHERE agent_id = 'a' AND {INSIDE}", "executions_of_24 AS executions"),
        ("SELECT 1 FROM executions AS e JOIN spans AS s ON s.id = e.id WHERE e.hour >= $start AND e.hour < $end", "executions_of_24 AS e JOIN spans AS s"),
        (f"SELECT 1 FROM raw_logs WHERE id IN (SELECT id FROM spans WHERE {INSIDE})", "FROM spans_of_24 AS spans"),
        (f"WITH own AS (SELECT * FROM spans WHERE {INSIDE}) SELECT * FROM own", "FROM spans_of_24 AS spans"),
        ("SELECT 1 FROM executions WHERE hour = $start", "executions_of_1 AS executions"),
    ],
)  # fmt: skip
def test_a_table_is_narrowed_to_the_hours_that_its_query_asks_for(sql: str, sent: str) -> None:
    assert sent in views(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 FROM executions",
        "SELECT 1 FROM executions WHERE hour >= $start",
        f"SELECT 1 FROM executions WHERE agent_id = 'a' OR ({INSIDE})",
        f"SELECT 1 FROM executions WHERE NOT ({INSIDE})",
        f"SELECT 1 FROM executions JOIN spans ON spans.id = executions.id WHERE {INSIDE}",
        "SELECT 1 FROM executions WHERE ended_at >= $start AND ended_at < $end",
        f"SELECT 1 FROM executions WHERE id IN (SELECT id FROM raw_logs WHERE {INSIDE})",
        "SELECT count(*) FILTER (hour >= $start AND hour < $end) FROM executions",
    ],
)
def test_a_table_of_which_other_hours_may_count_is_whole(sql: str) -> None:
    assert "_of_" not in views(sql)


def test_what_an_update_or_delete_asks_for_is_found() -> None:
    update = parsed(f"UPDATE executions SET model = NULL WHERE model = 'm' AND {INSIDE}")
    assert hours_asked(update, "executions", SPAN, is_alone=True) == DAY
    delete = parsed(
        "DELETE FROM executions USING (SELECT unnest($hours) AS hour) AS parts "
        "WHERE executions.hour = parts.hour AND executions.hour >= $start AND executions.hour < $end"
    )
    assert hours_asked(delete, "executions", SPAN, is_alone=False) == DAY
    assert hours_asked(parsed("DELETE FROM executions"), "executions", {}, is_alone=True) is None


def test_moments_within_an_hour_ask_for_the_whole_hour() -> None:
    minutes = timedelta(minutes=20)
    sent = views("SELECT 1 FROM executions WHERE hour >= ? AND hour < ?", [START + minutes, START + HOUR + minutes])
    assert "executions_of_2 " in sent
