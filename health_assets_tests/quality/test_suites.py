"""The suites: every check passes on sound tables, and goes red, alone and in the right hour, when its rule is broken."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

import ibis
import pandas as pd
import pytest

from health_assets.core.hours import HOUR, HourGroups, HourRange
from health_assets.core.targets import load_targets
from health_assets.quality import evaluation
from health_assets.quality.batches import Source
from health_assets.quality.evaluation import CheckResult, HourResult, evaluate, write_history
from health_assets.quality.expectations import Check, Suite, at_least, between, equal, greater, not_null, one_of, unique
from health_assets.schema.catalog import ALL_TABLES, columns_of, describe
from health_assets.systems.agent_health_model.claims import OVERDUE_HOURS
from health_assets.systems.declared_assets import DERIVED
from health_assets.systems.suites import SUITES
from health_assets.systems.survey.surveying import keep_probes, summarise
from health_assets.warehouse.session import Session
from health_assets_tests.support.alerts_made import drift, insert
from health_assets_tests.support.constraints import drop_constraints
from health_assets_tests.support.logs_made import AGENTS, START, cancellation, execution, line, random_lines, trigger
from health_assets_tests.support.projects import RECORD_TABLES, SURVEY_TABLES, Project, hours_from, rolled_back
from health_assets_tests.support.surveys_made import made_probe
from health_assets_tests.support.traces_made import otlp_line, tool

HOURS = hours_from(START, 4)
HIT = START + 2 * HOUR
"""The hour in which the tests break something."""

PARTS_OF_USAGE = ("usage_components",)
WINDOWS_OF_USAGE = ("agent_usage", "usage_breakdown")
CHECKS = [(asset, check.name) for asset, suite in SUITES.items() for check in suite.checks]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with several rows of every kind in every hour, and nothing wrong with it."""
    targets = {"defaults": {"expected_runtime_s": 1e6}, "agents": {"listed": {}, "gone": {"retired": True}}}
    targets["evaluators"] = [{"match": "q", "signal": "confidence"}]
    project = Project(tmp_path_factory.mktemp("sound") / "project", targets, 3, 6)
    random = Random(21)
    for place, hour in enumerate(HOURS):
        at = hour + HOUR / 2
        records = [
            record
            for agent in ("a", "b", "gone")
            for record in (
                execution(f"e {place} {agent}", agent, at, session_id=f"s {agent}", signals={"coherence": 0.5, "confidence": 0.7},
                          actions=["x"], api_calls=1, task_id="t", input_tokens=10, output_tokens=5, cost_usd=0.25),
                cancellation(f"x {place} {agent}", agent, at, session_id=f"s {agent}", input_tokens=10, cost_usd=0.25),
                trigger(f"t {place} {agent}", agent, at, random.choice(["fired", "failed"])),
                {"type": "model_call", "call_id": f"c {place} {agent}", "model": "m", "ended_at": at.isoformat(),
                 "status": "success", "latency_ms": 3, "agent_id": agent},
                *(
                    {"type": "model_call", "call_id": f"b {place} {agent} {status}", "model": "bad",
                     "ended_at": at.isoformat(), "status": status, "agent_id": agent}
                    for status in ("success", "failure")
                ),
                *(
                    {"type": "tool_call", "call_id": f"k {place} {agent} {status}", "tool": "x", "ended_at": at.isoformat(),
                     "status": status, "latency_ms": 3, "agent_id": agent, "error": "no answer",
                     "execution_id": f"e {place} {agent}", "arguments": status}
                    for status in ("success", "failure")
                ),
                {"type": "signals", "execution_id": f"e {place} {agent}", "at": at.isoformat(), "coherence": 0.5},
                {"type": "evaluation", "execution_id": f"e {place} {agent}", "at": at.isoformat(), "name": "q", "value": 0.9},
                {"type": "judgement", "execution_id": f"e {place} {agent}", "at": at.isoformat(), "violations": []},
                {"type": "agent_update", "agent_id": agent, "at": at.isoformat(), "kind": "restart"},
            )
        ]  # fmt: skip
        records.append(
            execution(f"f {place}", "failing", at, status="failure", input_tokens=10, output_tokens=5, cost_usd=0.25)
        )
        version = "1" if place == 0 else "2"
        records.insert(0, execution(f"r {place}", "aa", at, agent_version=version, input_tokens=10, cost_usd=0.25))
        lines = [*(line(record) for record in records), otlp_line(tool(place + 1, 1, at), tool(place + 1, 2, at, 1))]
        project.write_log(f"{place}.jsonl", [*lines, "one bad line", lines[0], line(execution(f"x{place}", "a", at))])
        project.write_log(f"{place} more.jsonl", [line(execution(f"m {place} {n}", "a", at)) for n in range(20)])
    project.materialize(HOURS)
    with project.warehouse.write() as session:
        for statement in drop_constraints():  # what checks notice may stand in tables of before
            session.query(statement)
    with project.warehouse.write() as session:
        for hour in HOURS:
            probes = [
                made_probe("a", "p", hour, status="healthy"),
                made_probe("b", "q", hour, status="unknown"),
                made_probe("c", "p", hour, "http_error", http_status=404, latency_ms=3.5),
            ]
            keep_probes(session, probes)
        summarise(session, HOURS)
        for hour in HOURS:  # drift takes a week of logs to be found
            rows = [drift("a", is_drifting=False, measure="volume_drop"), drift("b", measure="volume_drop"), drift("a")]
            times = {"since": hour - 4 * HOUR, "as_of": hour + HOUR, "is_final": True}
            insert(session, "drift", hour, [{**row, **times} for row in rows])
    return project


def source_of(project: Project, session: Session, asset: str, hours: HourRange = HOURS) -> Source:
    targets = load_targets(project.settings.targets)
    return Source(asset=asset, session=session, hours=hours, targets=targets, settings=project.settings)


def results_of(project: Project, session: Session, asset: str, hours: HourRange = HOURS) -> dict[str, CheckResult]:
    return {result.check.name: result for result in evaluate(SUITES[asset], source_of(project, session, asset, hours))}


def red(results: dict[str, CheckResult]) -> set[str]:
    return {name for name, result in results.items() if not result.success}


@pytest.mark.parametrize("asset", SUITES)
def test_every_check_passes_on_sound_tables_and_looks_at_something(sound: Project, asset: str) -> None:
    with rolled_back(sound) as session:
        results = results_of(sound, session, asset)
    assert red(results) == set()
    assert list(results) == [check.name for check in SUITES[asset].checks]
    for name, result in results.items():
        assert [hour.hour for hour in result.hours] == list(HOURS)
        assert result.samples.empty
        assert result.element_count > 0, name


@pytest.mark.parametrize("asset", SUITES)
def test_checks_of_hours_without_any_row_pass(sound: Project, asset: str) -> None:
    empty = hours_from(START + 100 * HOUR, 2)
    with rolled_back(sound) as session:
        results = results_of(sound, session, asset, empty)
    assert red(results) <= {"there_is_one_row_per_hour"}


# -- every rule broken -------------------------------------------------------------------------------------------------

ROW = "hour = TIMESTAMPTZ '{hit}' AND rowid = (SELECT max(rowid) FROM {asset} WHERE hour = TIMESTAMPTZ '{hit}')"
ROWS = {
    "agent_now": "hour = TIMESTAMPTZ '{hit}' AND agent_id = 'a'",
    "model_health": "hour = TIMESTAMPTZ '{hit}' AND model = 'm'",
    "release_comparison": "hour = TIMESTAMPTZ '{hit}' AND agent_id = 'aa' AND measure = 'success_rate'",
    "tool_health": "hour = TIMESTAMPTZ '{hit}' AND agent_id = 'b'",
}
"""Rows of assets of which the last one need not tell of executions or of an error, has no interval, or is degraded."""


@dataclass(frozen=True)
class Break:
    """A statement that breaks the rule of a check in `HIT`.

    Args:
        asset: the asset.
        check: the check that must go red.
        statements: SQL with `{asset}`, `{row}` (the condition of one row) and `{hit}`.
        count: rows of that hour that break the rule then.
        also: checks that must go red with it, because they are about the same.
        shows: columns that the samples must have.
    """

    asset: str
    check: str
    statements: tuple[str, ...]
    count: int = 1
    also: frozenset[str] = frozenset()
    shows: tuple[str, ...] = ()

    def sql(self) -> list[str]:
        hit = HIT.isoformat()
        row = ROWS.get(self.asset, ROW).format(hit=hit, asset=self.asset)
        return [text.format(asset=self.asset, row=row, hit=hit) for text in self.statements]


def _set(asset: str, check: str, assignment: str, column: str, *also: str) -> Break:
    return Break(asset, check, (f"UPDATE {{asset}} SET {assignment} WHERE {{row}}",), 1, frozenset(also), (column,))


def _breaks_of_rows(asset: str, check: Check) -> Iterator[Break]:
    """A break of every expectation of a check that is about the values of columns."""
    for expectation in check.expectations:
        arguments = expectation.arguments
        column = expectation.columns[0]
        related = _related(asset, check, expectation.columns)
        if expectation.is_uniqueness:
            double = "INSERT INTO {asset} SELECT * FROM {asset} WHERE {row}"
            yield Break(asset, check.name, (double,), 2, related | _counting(asset), tuple(expectation.columns))
        elif expectation.type == "ExpectColumnValuesToBeBetween":
            if arguments["min_value"] is not None:
                yield _set(asset, check.name, f"{column} = {arguments['min_value'] - 1}", column, *related)
            if arguments["max_value"] is not None:
                yield _set(asset, check.name, f"{column} = {arguments['max_value'] + 1}", column, *related)
        elif expectation.type == "ExpectColumnValuesToBeInSet":
            yield _set(asset, check.name, f"{column} = 'nonsense'", column, *related)
        elif expectation.type == "ExpectColumnPairValuesAToBeGreaterThanB":
            greater_one, lesser = expectation.columns
            if lesser == "window_hours":
                yield _set(asset, check.name, f"{greater_one} = {greater_one} - 1", greater_one)
            elif greater_one == "next_hour":
                yield _set(asset, check.name, f"{lesser} = hour + INTERVAL 1 HOUR", lesser, *related)
            elif lesser == "hour":
                yield _set(asset, check.name, f"{greater_one} = hour - INTERVAL 1 MICROSECOND", greater_one, *related)
            elif lesser == "points_kept":
                yield _set(asset, check.name, "health_score = 40, points_at_stake = 50", "health_score", *related)
            elif greater_one == "window_end":
                yield _set(asset, check.name, f"{lesser} = window_end + INTERVAL 1 HOUR", lesser, *related)
            elif lesser == "latency_p50_ms":
                yield _set(asset, check.name, "latency_p50_ms = 2, latency_p99_ms = 1", lesser, *related)
            elif lesser in (
                "since",
                "started_at",
                "oldest_event_at",
                "window_start",
                "released_at",
                "baseline_starts_at",
            ):
                yield _set(asset, check.name, f"{lesser} = {greater_one} + INTERVAL 1 SECOND", lesser)
            else:
                yield _set(asset, check.name, f"{lesser} = {greater_one} + 1", lesser, *related)


def _related(asset: str, check: Check, columns: list[str]) -> frozenset[str]:
    """Other checks of the asset that look at one of these columns, or at sums of them."""
    measures = {"measures_are_there_where_samples_are"}
    sums = {
        ("health_components", "executions"): {"sums_agree_with_the_events"},
        ("health_components", "triggers"): {"sums_agree_with_the_events"},
        ("raw_logs", "lines"): {"every_line_is_accounted_for"},
        ("evidence_components", "kind"): {"every_failure_has_its_place"},
        ("state_components", "first_model_at"): {"models_come_with_their_time"},
        ("state_components", "last_model_switch_at"): {"models_come_with_their_time"},
        ("agent_health_state", "status"): {
            "few_samples_are_unknown", "statuses_agree_with_the_ratios", "who_is_healthy_was_so_last_now",
        },
        ("agent_health_state", "response_ratio"): {
            "ratios_add_up_to_1", "statuses_agree_with_the_ratios", *measures,
        },
        ("agent_health_state", "error_ratio"): {"ratios_add_up_to_1", *measures},
        ("agent_health_state", "latency_p50_ms"): measures,
        ("agent_health_state", "latency_sample_count"): measures,
        ("agent_health_state", "window_end"): {"who_is_healthy_was_so_last_now"},
        ("task_consistency", "pairs"): {"pairs_of_trajectories_have_distances"},
        ("agent_reliability", "reliability"): {"reliability_stands_on_three_dimensions"},
        ("agent_now", "executions_1h"): {"windows_agree_with_the_components"},
        ("error_budget", "n"): {"windows_agree_with_the_components"},
        **{
            (asset, "points_at_stake"): {"points_not_at_stake_are_in_the_score"}
            for asset in ("agent_health", "agent_health_short")
        },
        ("agent_health_short", "n"): {
            "windows_agree_with_the_components", "scores_of_few_executions_are_provisional",
        },
        ("tool_health", "calls"): {"windows_agree_with_the_components", "failure_shares_agree_with_the_counts"},
        ("tool_health", "failures"): {"failure_shares_agree_with_the_counts"},
        ("tool_health", "failure_share"): {"failure_shares_agree_with_the_counts"},
        ("tool_components", "calls"): {"calls_agree_with_the_records"},
        ("tool_components", "failures"): {"calls_agree_with_the_records"},
        **{
            ("release_components", name): {"executions_agree_with_the_records"} for name in ("executions", "successes")
        },
        **{
            ("release_comparison", name): {"differences_agree_with_the_values"}
            for name in ("estimate_from", "estimate_to")
        },
        ("drift", "limit_value"): {"what_drifts_is_beyond_its_limit"},
        ("drift", "cause_dimension"): {"causes_are_told_in_full"},
        ("drift", "hint"): {"causes_are_told_in_full"},
        ("release_comparison", "verdict"): {"more_runs_come_without_a_verdict"},
        **{
            (asset, "last_error_at"): {"errors_come_with_their_time_and_a_failure"}
            for asset in ("tool_components", "tool_health")
        },
        **{
            (asset, name): {"every_row_has_a_run"}
            for asset in (*PARTS_OF_USAGE, *WINDOWS_OF_USAGE) for name in ("executions", "cancelled_runs")
        },
        **{
            (asset, "executions"): {"windows_agree_with_the_components", "every_row_has_a_run"}
            for asset in WINDOWS_OF_USAGE
        },
        **{
            ("session_scores", name): {"every_session_has_a_trace_or_a_cancelled_run"}
            for name in ("total_traces", "cancelled_runs")
        },
        **{
            (asset, "successes"): {"costs_per_success_are_there_where_cost_and_successes_are"}
            for asset in WINDOWS_OF_USAGE
        },
        **{
            (asset, f"executions_with_{name}"): {"amounts_are_there_where_executions_tell_them"}
            for asset in (*PARTS_OF_USAGE, *WINDOWS_OF_USAGE) for name in ("tokens", "cost")
        },
        **{
            ("error_budget", name): {"rates_are_there_where_failures_may_be"}
            for name in ("allowed_failures", "budget_spent", "burn_rate_1h", "burn_rate_6h", "n_1h")
        },
        ("agent_reliability", "runs"): {"windows_agree_with_the_executions"},
        ("agent_reliability", "tasks"): {"tasks_agree_with_their_table"},
        ("agent_probes", "status"): {"only_valid_answers_and_warnings_have_a_status"},
        ("survey_summary", "responsive"): {"every_probe_is_counted_once"},
        **{("fallback_components", name): {"calls_agree_with_the_records"} for name in ("calls", "failures")},
        ("model_fallback", "failures"): {"windows_agree_with_the_components"},
        ("model_health", "success_count"): {"windows_hold_calls"},
        ("model_health", "health_score"): {"degraded_models_are_below_the_threshold"},
        ("session_scores", "traces_evaluated"): {"only_sessions_without_signals_have_no_risk"},
        ("session_scores", "consistency_traces_evaluated"): {"only_sessions_without_signals_have_no_risk"},
    }  # fmt: skip
    direct = {
        other.name
        for other in SUITES[asset].checks
        if other is not check and set(columns) & {name for one in other.expectations for name in one.columns} - {"hour"}
    }
    return frozenset(direct.union(*(sums.get((asset, name), set()) for name in columns)))


def _counting(asset: str) -> frozenset[str]:
    counted = {
        "health_components": {"sums_agree_with_the_events"},
        "agent_health": {"windows_agree_with_the_components"},
        "agent_health_short": {"windows_agree_with_the_components"},
        "evidence_components": {"every_failure_has_its_place"},
        "score_evidence": set(),
        "state_components": {"latencies_agree_with_the_executions"},
        "agent_changes": set(),
        "agent_health_state": {"windows_agree_with_the_components"},
        "error_budget": {"windows_agree_with_the_components"},
        "now_components": set(),
        "agent_now": {"windows_agree_with_the_components"},
        "tool_components": {"calls_agree_with_the_records"},
        "tool_health": {"windows_agree_with_the_components"},
        **{asset: {"sums_agree_with_the_executions"} for asset in PARTS_OF_USAGE},
        **{asset: {"windows_agree_with_the_components"} for asset in WINDOWS_OF_USAGE},
        "release_components": {"executions_agree_with_the_records"},
        "release_comparison": set(),
        "task_consistency": {"tasks_hold_no_more_runs_than_there_are"},
        "agent_reliability": {"windows_agree_with_the_executions", "tasks_agree_with_their_table"},
        "agent_probes": set(),
        "survey_summary": {"every_probe_is_counted_once"},
        "model_components": {"the_last_calls_are_there"},
        "fallback_components": {"calls_agree_with_the_records"},
        "model_fallback": {"windows_agree_with_the_components"},
        "session_scores": {"every_session_of_the_hour_is_scored"},
    }
    return frozenset(counted.get(asset, {"every_line_is_a_row"} if asset in RECORD_TABLES else ()))


def _superseding(condition: str) -> str:
    """SQL that sets aside a failed line of an execution beside the one that is there."""
    return f"INSERT INTO superseded_executions SELECT * REPLACE ('failure' AS status) FROM executions WHERE {condition}"


def _breaks_by_hand() -> Iterator[Break]:
    for asset, suite in SUITES.items():
        required = next(
            name
            for name, _, is_nullable, _ in describe(asset)
            if not is_nullable and name.endswith(("id", "digest", "reason", "version", "url", "name", "alternative"))
        )
        yield Break(asset, "required_values_are_present", (f"UPDATE {{asset}} SET {required} = NULL WHERE {{row}}",), 1,
                    frozenset(), ("missing_columns",))  # fmt: skip
        if any(check.name == "every_line_is_a_row" for check in suite.checks):
            yield Break(
                asset,
                "every_line_is_a_row",
                ("DELETE FROM {asset} WHERE {row}",),
                1,
                frozenset(),
                ("rows_kept", "lines_kept"),
            )
    for table, key in [
        ("executions", "execution_id"), ("cancellations", "execution_id"), ("trigger_events", "trigger_id"),
        ("model_calls", "call_id"), ("tool_calls", "call_id"),
    ]:  # fmt: skip

        def greatest(agent_id: str, hour: datetime, key: str = key, table: str = table) -> str:
            at = f"hour = TIMESTAMPTZ '{hour.isoformat()}'"
            return f"(SELECT max({key}) FROM {table} WHERE {at} AND agent_id = '{agent_id}')"

        row = f"hour = TIMESTAMPTZ '{{hit}}' AND {key} = {greatest('a', HIT)}"
        yield Break(table, f"{key}_is_in_one_hour_only",
                    (f"UPDATE {{asset}} SET {key} = {greatest('a', HIT - HOUR)} WHERE {row}",), 1,
                    frozenset(), (key, "hours_with_id"))  # fmt: skip
        yield Break(table, "no_id_belongs_to_two_agents",
                    (f"UPDATE {{asset}} SET {key} = {greatest('b', HIT)} WHERE {row}",), 2,
                    frozenset(), (key, "agent_id", "agents_with_id"))  # fmt: skip
    succeeded = "hour = TIMESTAMPTZ '{hit}' AND execution_id = 'e 2 a'"
    yield Break("executions", "no_failure_is_replaced", (_superseding(succeeded),), 1,
                frozenset({"every_line_is_a_row"}), ("replaced_failures",))  # fmt: skip
    yield Break(
        "raw_logs",
        "every_line_is_accounted_for",
        ("UPDATE {asset} SET lines = lines + 1 WHERE source_file = '2.jsonl' AND record_type = 'signals'",),
    )
    yield Break(
        "raw_logs",
        "every_line_is_accounted_for",
        ("DELETE FROM {asset} WHERE source_file = '2.jsonl' AND record_type = 'signals'",),
    )
    yield Break("raw_logs", "few_lines_of_a_file_are_rejected",
                ("UPDATE raw_files SET rejected = 10 WHERE source_file = '2.jsonl'",), 1, frozenset(), ("rejected_share",))  # fmt: skip
    yield Break(
        "judgements",
        "judges_may_speak_for_whom_they_say",
        ("UPDATE {asset} SET judged_by_reported = 'person' WHERE {row}",),
    )
    yield Break("rejected_records", "few_lines_are_rejected",
                ("UPDATE raw_logs SET lines = 100 WHERE record_type = 'rejected' AND hour = TIMESTAMPTZ '{hit}'",), 1,
                frozenset({"every_line_is_a_row"}), ("rejected_share",))  # fmt: skip
    yield Break(
        "health_components",
        "sums_agree_with_the_events",
        ("UPDATE {asset} SET executions = executions + 1 WHERE {row}",),
    )
    yield Break(
        "health_components", "sums_agree_with_the_events", ("DELETE FROM executions WHERE hour = TIMESTAMPTZ '{hit}'",)
    )
    yield Break(
        "health_components",
        "sums_agree_with_the_events",
        ("DELETE FROM trigger_events WHERE hour = TIMESTAMPTZ '{hit}'",),
    )
    active = "UPDATE {asset} SET health_score = NULL WHERE {row}"
    yield Break("agent_health", "only_inactive_agents_have_no_score",
                ("DELETE FROM {asset} WHERE hour = TIMESTAMPTZ '{hit}' AND n = 0", active), 1, frozenset(), ("has_score", "is_active"))  # fmt: skip
    yield Break("agent_health", "windows_agree_with_the_components", ("UPDATE {asset} SET n = n + 1 WHERE {row} AND n > 0",
                "UPDATE {asset} SET n = n + 1 WHERE hour = TIMESTAMPTZ '{hit}' AND agent_id = 'a'"), 1,
                frozenset({"scores_of_few_executions_are_provisional"}))  # fmt: skip
    yield Break("agent_health", "scores_of_few_executions_are_provisional",
                ("UPDATE {asset} SET is_provisional = NOT is_provisional WHERE {row}",), 1, frozenset(),
                ("is_called_provisional", "rests_on_few"))  # fmt: skip
    yield Break("agent_health_short", "windows_agree_with_the_components", ("DELETE FROM {asset} WHERE {row}",))
    yield Break("agent_health_short", "scores_of_few_executions_are_provisional",
                ("UPDATE {asset} SET is_provisional = NOT is_provisional WHERE {row}",), 1, frozenset(),
                ("is_called_provisional", "rests_on_few"))  # fmt: skip
    run = "hour = TIMESTAMPTZ '{hit}' AND execution_id = 'e 2 a'"
    failed_call = "hour = TIMESTAMPTZ '{hit}' AND call_id = 'k 2 a failure'"
    calls = "hour = TIMESTAMPTZ '{hit}' AND agent_id = 'a'"
    before = (HIT - OVERDUE_HOURS * HOUR).isoformat()
    for claim, statement in [
        ("successes_with_an_error", f"UPDATE executions SET error = 'Timeout' WHERE {run}"),
        ("successes_with_many_errors", f"UPDATE executions SET error_count = 12 WHERE {run}"),
        ("successes_without_a_good_call", f"UPDATE tool_calls SET execution_id = 'e 2 a', status = 'failure' WHERE {calls}"),
        ("replaced_failures", _superseding(run)),
        ("unflagged_breaches", f"UPDATE executions SET sla_s = 1, sla_breached_reported = false WHERE {run}"),
        ("untimed_long_runs", f"UPDATE executions SET sla_s = 1, untimed_s = 60 WHERE {run}"),
        ("failing_runs_without_end",
         f"UPDATE tool_calls SET hour = TIMESTAMPTZ '{before}', execution_id = 'lost' WHERE {failed_call}"),
    ]:  # fmt: skip
        yield Break("agent_health", "claims_agree_with_evidence", (statement,), 1, frozenset(), (claim,))
    yield Break("system_health", "there_is_one_row_per_hour", ("INSERT INTO {asset} SELECT * FROM {asset} WHERE {row}",), 1,
                frozenset({"every_agent_is_counted_once"}))  # fmt: skip
    yield Break("system_health", "there_is_one_row_per_hour", ("DELETE FROM {asset} WHERE {row}",), 1,
                frozenset({"every_agent_is_counted_once"}))  # fmt: skip
    yield Break("system_health", "every_agent_is_counted_once", ("UPDATE {asset} SET agents = agents + 1 WHERE {row}",))
    for column in ("inactive", "provisional"):
        yield Break(
            "system_health",
            "every_agent_is_counted_once",
            (f"UPDATE {{asset}} SET {column} = {column} + 1 WHERE {{row}}",),
        )
    yield Break("system_health", "every_agent_is_counted_once",
                ("DELETE FROM agent_health WHERE hour = TIMESTAMPTZ '{hit}' AND agent_id = 'a'",))  # fmt: skip
    yield Break("evidence_components", "every_failure_has_its_place", ("DELETE FROM {asset} WHERE {row}",), 1, frozenset(),
                ("kept_failures", "failures_due"))  # fmt: skip
    yield Break("score_evidence", "only_agents_that_lost_points_have_evidence",
                ("UPDATE {asset} SET agent_id = 'listed' WHERE {row}",), 1, frozenset(), ("has_lost",))  # fmt: skip
    yield from _breaks_of_states()
    yield from _breaks_of_reliability()
    yield from _breaks_of_agents_now()
    yield from _breaks_of_budgets()
    yield from _breaks_of_tools()
    yield from _breaks_of_usage()
    yield from _breaks_of_releases()
    yield from _breaks_of_drift()
    yield from _breaks_of_the_survey()
    yield from _breaks_of_models_and_sessions()


def _breaks_of_states() -> Iterator[Break]:
    part = "UPDATE {asset} SET %s WHERE hour = TIMESTAMPTZ '{hit}' AND agent_id = 'b'"
    for check, assignment, *also in [
        ("buckets_are_possible", "latency_buckets = [-1]"),
        ("buckets_are_possible", "latency_buckets = [2048]"),
        ("buckets_are_in_order", "latency_buckets = [2, 1]", "latencies_agree_with_the_executions"),
        ("models_come_with_their_time", "first_model = 'm', last_model = 'm'"),
        ("models_come_with_their_time", "last_model_switch_at = hour"),
        ("latencies_agree_with_the_executions", "latency_buckets = NULL"),
    ]:
        yield Break("state_components", check, (part % assignment,), 1, frozenset(also))
    no_facts = (
        "last_restart_at = NULL, last_model_update_at = NULL, last_capability_update_at = NULL, first_model_at = NULL"
    )
    yield Break("agent_changes", "rows_tell_a_change", (f"UPDATE {{asset}} SET {no_facts} WHERE {{row}}",))
    sampled = "UPDATE {asset} SET %s WHERE hour = TIMESTAMPTZ '{hit}' AND agent_id = 'a'"
    ratios, samples = "statuses_agree_with_the_ratios", "few_samples_are_unknown"
    for check, assignment, *also in [
        ("ratios_add_up_to_1", "error_ratio = 0.5"),
        ("measures_are_there_where_samples_are", "latency_p99_ms = NULL"),
        (
            "measures_are_there_where_samples_are",
            "sample_count = 0",
            samples,
            "windows_agree_with_the_components",
            "latencies_are_of_samples",
        ),
        ("measures_are_there_where_samples_are", "latency_sample_count = 0"),
        (samples, "status = 'unknown'", "who_is_healthy_was_so_last_now"),
        (ratios, "response_ratio = 0.94, error_ratio = 0.06"),
        (ratios, "status = 'unhealthy'", "who_is_healthy_was_so_last_now"),
        ("who_is_healthy_was_so_last_now", "last_healthy_at = hour"),
        ("who_is_healthy_was_so_last_now", "last_healthy_at = NULL"),
        ("windows_agree_with_the_components", "sample_count = sample_count + 1"),
    ]:
        yield Break("agent_health_state", check, (sampled % assignment,), 1, frozenset(also))
    for table in ("state_components", "health_components"):
        lost = f"DELETE FROM {table} WHERE hour = TIMESTAMPTZ '{{hit}}' AND agent_id = 'gone'"
        yield Break("agent_health_state", "parts_know_the_same_agents", (lost,))


def _breaks_of_reliability() -> Iterator[Break]:
    yield Break("task_consistency", "pairs_of_trajectories_have_distances",
                ("UPDATE {asset} SET c_traj_d = NULL WHERE {row}",), 1, frozenset(), ("has_pairs", "has_c_traj_d"))  # fmt: skip
    yield Break(
        "task_consistency", "pairs_of_trajectories_have_distances", ("UPDATE {asset} SET pairs = 0 WHERE {row}",)
    )
    yield Break(
        "task_consistency", "tasks_hold_no_more_runs_than_there_are", ("UPDATE {asset} SET runs = 100 WHERE {row}",)
    )
    yield Break("agent_reliability", "reliability_stands_on_three_dimensions",
                ("UPDATE {asset} SET reliability = 0.5, r_pred = NULL WHERE {row}",), 1, frozenset(),
                ("has_reliability", "has_dimensions"))  # fmt: skip
    yield Break("agent_reliability", "observed_tasks_tell_their_share",
                ("UPDATE {asset} SET repeated_share = 0.5 WHERE {row}",), 1, frozenset(),
                ("is_observed", "has_repeated_share"))  # fmt: skip
    yield Break("agent_reliability", "safety_stands_on_judgements", ("UPDATE {asset} SET r_saf = NULL WHERE {row}",))
    yield Break("agent_reliability", "windows_agree_with_the_executions",
                ("UPDATE {asset} SET runs = runs + 1 WHERE {row}",), 1, frozenset(), ("runs_in_windows", "runs_of_hours"))  # fmt: skip
    yield Break("agent_reliability", "tasks_agree_with_their_table",
                ("DELETE FROM task_consistency WHERE hour = TIMESTAMPTZ '{hit}' AND agent_id = 'a'",))  # fmt: skip


def _breaks_of_agents_now() -> Iterator[Break]:
    yield Break("now_components", "every_hour_that_ends_badly_has_a_streak", ("DELETE FROM {asset} WHERE {row}",))
    ran = "UPDATE {asset} SET %s WHERE hour = TIMESTAMPTZ '{hit}' AND agent_id = 'a'"
    for check, assignment in [
        ("values_are_known_where_something_ran", "p_chance = NULL"),
        ("values_are_known_where_something_ran", "success_share_6h = NULL"),
        ("only_recovering_agents_have_good_hours", "good_hours = 1"),
        ("only_recovering_agents_have_good_hours", "verdict = 'recovering'"),
        ("windows_agree_with_the_components", "executions_1h = executions_1h + 1"),
    ]:
        yield Break("agent_now", check, (ran % assignment,))


def _breaks_of_budgets() -> Iterator[Break]:
    ran = "UPDATE {asset} SET %s WHERE hour = TIMESTAMPTZ '{hit}' AND agent_id = 'a'"
    rates = "rates_are_there_where_failures_may_be"
    yield Break("error_budget", rates, (ran % "budget_spent = NULL",), 1, frozenset(), ("rates", "rates_due"))
    yield Break("error_budget", rates, (ran % "allowed_failures = 0",))
    yield Break("error_budget", "windows_agree_with_the_components", (ran % "n = n + 1",))


def _breaks_of_tools() -> Iterator[Break]:
    row = "UPDATE {asset} SET %s WHERE hour = TIMESTAMPTZ '{hit}' AND agent_id = 'b'"
    of_parts, told = "calls_agree_with_the_records", "errors_come_with_their_time_and_a_failure"
    for check, assignment, *also in [
        ("parts_are_within_the_whole", "failures = calls + 1", of_parts),
        ("parts_are_within_the_whole", "latency_buckets = [1, 2, 3]"),
        ("buckets_are_possible", "latency_buckets = [-1]"),
        ("buckets_are_possible", "latency_buckets = [2048]"),
        ("buckets_are_in_order", "latency_buckets = [2, 1]"),
        (told, "last_error = NULL"),
        (told, "last_error_at = NULL"),
        (told, "failures = 0", of_parts),
        (of_parts, "calls = calls + 1"),
        (of_parts, "failures = failures + 1"),
    ]:
        yield Break("tool_components", check, (row % assignment,), 1, frozenset(also))
    recorded = "DELETE FROM tool_calls WHERE hour = TIMESTAMPTZ '{hit}' AND agent_id = 'a' AND status = 'failure'"
    yield Break("tool_components", of_parts, (recorded,), 1, frozenset(), ("calls_in_parts", "failures_recorded"))
    shares = "failure_shares_agree_with_the_counts"
    for check, assignment, *also in [
        (shares, "failure_share = failure_share + 0.25"),
        (shares, "failures = failures + 1"),
        ("latencies_come_together", "p95_latency_ms = NULL"),
        (told, "last_error = NULL"),
        (told, "last_error_at = NULL"),
        (told, "failures = 0", shares),
        ("windows_agree_with_the_components", "calls = calls + 1", shares),
    ]:
        yield Break("tool_health", check, (row % assignment,), 1, frozenset(also))


def _breaks_of_usage() -> Iterator[Break]:
    told, priced = (
        "amounts_are_there_where_executions_tell_them",
        "costs_per_success_are_there_where_cost_and_successes_are",
    )
    row = "UPDATE {asset} SET %s WHERE hour = TIMESTAMPTZ '{hit}' AND agent_id = 'b'"
    of_parts = ((asset, "sums_agree_with_the_executions") for asset in PARTS_OF_USAGE)
    for asset, also in (*of_parts, *((asset, priced) for asset in WINDOWS_OF_USAGE)):
        yield Break(asset, told, (row % "input_tokens = NULL, output_tokens = NULL",), 1, frozenset(), ("has_tokens",))
        yield Break(asset, told, (row % "cost_usd = NULL",), 1, frozenset({also}))
        yield Break(asset, told, (row % "executions_with_cost = 0",), 1, frozenset({also}))
    without_runs = row % "cancelled_runs = -executions"
    for asset in (*PARTS_OF_USAGE, *WINDOWS_OF_USAGE):
        also = {"parts_are_within_the_whole", *(["sums_agree_with_the_executions"] if asset in PARTS_OF_USAGE else [])}
        yield Break(asset, "every_row_has_a_run", (without_runs,), 1, frozenset(also), ("runs",))
    for column in (
        "executions", "successes", "executions_with_tokens", "executions_with_cost", "executions_with_computed_cost",
        "positive_feedback", "negative_feedback", "cancelled_runs",
    ):  # fmt: skip
        also = {"parts_are_within_the_whole"}
        for asset in PARTS_OF_USAGE:
            assignment = row % f"{column} = {column} + 1"
            yield Break(asset, "sums_agree_with_the_executions", (assignment,), 1, frozenset(also))
    lost = "DELETE FROM executions WHERE hour = TIMESTAMPTZ '{hit}' AND agent_id = 'b'"
    for asset in PARTS_OF_USAGE:
        yield Break(asset, "sums_agree_with_the_executions", (lost,), 1, frozenset(), ("executions_recorded",))
    for asset in WINDOWS_OF_USAGE:
        cleared = row % "cost_per_success_usd = NULL"
        yield Break(asset, priced, (cleared,), 1, frozenset(), ("has_price", "price_due"))
        yield Break(asset, priced, (row % "successes = 0",))
        yield Break(asset, "windows_agree_with_the_components", (row % "executions = executions + 1",))


def _breaks_of_releases() -> Iterator[Break]:
    for assignment, check in [
        ("low = NULL", "intervals_have_two_ends"),
        ("low = NULL, high = NULL", "intervals_have_two_ends"),
        ("verdict = 'worse'", "more_runs_come_without_a_verdict"),
        ("difference = difference + 0.25", "differences_agree_with_the_values"),
        ("mix_shift = 0.5, is_mix_changed = NULL", "mixes_are_told_with_their_difference"),
        ("mix_shift = 1.5, is_mix_changed = TRUE", "mixes_are_told_with_their_difference"),
    ]:
        yield Break("release_comparison", check, (f"UPDATE {{asset}} SET {assignment} WHERE {{row}}",))
    of_parts = "UPDATE {asset} SET %s WHERE hour = TIMESTAMPTZ '{hit}' AND agent_id = 'b'"
    counts = "buckets_are_those_of_runs"
    yield Break("release_components", counts, (of_parts % "latency_buckets = [1, 2, 3, 4, 5, 6, 7]",))
    dearer = (of_parts % "cost_of_successes_usd = cost_usd + 1",)
    yield Break("release_components", "parts_are_within_the_whole", dearer)
    for name in ("latency_buckets", "token_buckets", "cost_buckets"):
        unordered = (of_parts % f"{name} = [2, 1]",)
        yield Break("release_components", "buckets_are_in_order", unordered, 1, frozenset({counts}))
    recorded, agree = "DELETE FROM executions WHERE hour = TIMESTAMPTZ '{hit}' AND agent_id = 'b'", "executions_agree"
    yield Break(
        "release_components", f"{agree}_with_the_records", (recorded,), 1, frozenset(), ("executions_recorded",)
    )


def _breaks_of_drift() -> Iterator[Break]:
    for assignment, check in [
        ("cause_share = 1.5", "shares_are_at_most_1"),
        ("baseline = 1.5", "shares_are_at_most_1"),
        ("value = limit_value + 0.05", "what_drifts_is_beyond_its_limit"),
        ("cause = NULL", "causes_are_told_in_full"),
        ("cause_share = NULL", "causes_are_told_in_full"),
        ("hint = NULL", "causes_are_told_in_full"),
        ("threshold = 30.0", "amounts_have_a_threshold"),
    ]:
        yield Break("drift", check, (f"UPDATE {{asset}} SET {assignment} WHERE {{row}}",))


def _breaks_of_the_survey() -> Iterator[Break]:
    for assignment, check in [
        ("status = 'healthy'", "only_valid_answers_and_warnings_have_a_status"),
        ("error = NULL", "only_other_answers_have_an_error"),
    ]:
        yield Break("agent_probes", check, (f"UPDATE {{asset}} SET {assignment} WHERE {{row}}",))
    for condition in ("platform = 'all'", "platform = 'q'"):
        for column in ("agents", "responsive"):
            yield Break("survey_summary", "every_probe_is_counted_once", (
                f"UPDATE {{asset}} SET {column} = {column} + 1 WHERE {condition} AND hour = TIMESTAMPTZ '{{hit}}'",), 1,
                frozenset({"parts_are_within_the_whole"}))  # fmt: skip
    yield Break(
        "survey_summary",
        "every_probe_is_counted_once",
        ("DELETE FROM agent_probes WHERE url LIKE '%/b' AND hour = TIMESTAMPTZ '{hit}'",),
    )


def _breaks_of_models_and_sessions() -> Iterator[Break]:
    yield Break("model_components", "the_last_calls_are_there", ("DELETE FROM {asset} WHERE {row}",))
    yield Break(
        "model_components", "the_last_calls_are_there", ("DELETE FROM model_calls WHERE hour = TIMESTAMPTZ '{hit}'",)
    )
    below = "UPDATE {asset} SET is_degraded = true WHERE {row}"
    yield Break(
        "model_health", "degraded_models_are_below_the_threshold", (below,), 1, frozenset(), ("called_degraded",)
    )
    yield Break("model_health", "every_called_model_has_a_row", ("UPDATE {asset} SET model = 'other' WHERE {row}",))
    for statement in (
        "success_count = 0",
        "success_count = window_calls + 1",
        "success_count = -1",
        "failure_count = -1",
    ):
        yield _set("model_health", "windows_hold_calls", statement, statement.split()[0])
    agree, estimates = "calls_agree_with_the_records", "estimates_are_there_where_calls_are_compared"
    recorded = "DELETE FROM model_calls WHERE hour = TIMESTAMPTZ '{hit}' AND call_id = 'b 2 a failure'"
    yield Break("fallback_components", agree, (recorded,), 1, frozenset(), ("failures_in_parts", "failures_recorded"))
    yield _set("fallback_components", "alternatives_have_a_score", "alternative = ''", "has_alternative")
    yield _set("fallback_components", "alternatives_have_a_score", "alternative_health_score = NULL", "has_alternative")
    yield _set("model_fallback", estimates, "added_failures_low = NULL", "estimates")
    yield _set("model_fallback", estimates, "compared_calls = 0, compared_failures = 0", "estimates_due",
               "estimates_are_within_their_intervals")  # fmt: skip
    for assignment in (
        "avoided_failures_low = -1", "added_failures_low = added_failures + 0.1",
        "avoided_failures_high = avoided_failures - 0.1", "avoided_failures_high = compared_failures + 0.1",
        "added_failures_high = compared_calls - compared_failures + 0.1",
    ):  # fmt: skip
        yield _set("model_fallback", "estimates_are_within_their_intervals", assignment, assignment.split()[0])
    yield _set("model_fallback", "windows_agree_with_the_components", "failures = failures - 1", "failures_in_windows",
               "parts_are_within_the_whole")  # fmt: skip
    yield Break("computed_signals", "no_more_executions_than_there_are",
                ("DELETE FROM executions WHERE hour = TIMESTAMPTZ '{hit}'",))  # fmt: skip
    yield Break("trace_risks", "every_execution_in_a_session_is_a_trace",
                ("DELETE FROM {asset} WHERE hour = TIMESTAMPTZ '{hit}' AND trace_id LIKE 'e%'",))  # fmt: skip
    for column in ("raw_risk", "raw_instability"):
        yield Break("session_scores", "only_sessions_without_signals_have_no_risk",
                    (f"UPDATE {{asset}} SET {column} = NULL WHERE {{row}}",))  # fmt: skip
    yield Break("session_scores", "every_session_of_the_hour_is_scored", ("DELETE FROM {asset} WHERE {row}",))
    yield Break("session_scores", "every_session_has_a_trace_or_a_cancelled_run",
                ("UPDATE {asset} SET cancelled_runs = -total_traces WHERE {row}",), 1,
                frozenset({"parts_are_within_the_whole"}), ("traces_and_cancelled_runs",))  # fmt: skip


def all_breaks() -> list[Break]:
    breaks = list(_breaks_by_hand())
    for asset, suite in SUITES.items():
        for check in suite.checks:
            known = set(columns_of(asset)) | {"next_hour", "window_hours", "points_kept"}
            if check.batch == "rows" and all(set(one.columns) <= known for one in check.expectations):
                breaks += _breaks_of_rows(asset, check)
    return breaks


BREAKS = all_breaks()


def test_a_broken_rule_is_tried_for_every_check() -> None:
    tried = {(one.asset, one.check) for one in BREAKS}
    untried = [place for place in CHECKS if place not in tried and place[1] != "columns_have_declared_types"]
    assert untried == []


def by_day_or_night() -> Iterator[Any]:
    """The first break of every check, and by night all others: of each further expectation and limit of the check."""
    tried: set[tuple[str, str]] = set()
    for one in BREAKS:
        is_first = (one.asset, one.check) not in tried
        tried.add((one.asset, one.check))
        yield one if is_first else pytest.param(one, marks=pytest.mark.nightly)


@pytest.mark.parametrize(
    "one", [*by_day_or_night()], ids=lambda one: f"{one.asset} {one.check} {one.statements[-1][:60]}"
)
def test_a_broken_rule_turns_its_check_red_in_its_hour_and_no_other_check(sound: Project, one: Break) -> None:
    with rolled_back(sound, *one.sql()) as session:
        results = results_of(sound, session, one.asset)
    assert one.check in red(results)
    assert red(results) <= {one.check} | one.also
    result = results[one.check]
    broken = {hour.hour: hour.unexpected_count for hour in result.hours if hour.unexpected_count}
    if one.check.endswith("_in_one_hour_only"):
        assert set(broken) == {HIT - HOUR, HIT}  # both hours have the id
    elif one.check == "every_line_is_accounted_for":
        assert list(broken.values()) == [1]  # a file
    elif one.check == "windows_agree_with_the_components" and HIT in broken:
        assert broken[HIT] == one.count
    else:
        assert broken == {HIT: one.count}
    assert 1 <= len(result.samples) <= 10
    assert set(one.shows) <= set(result.samples.columns)
    if result.check.batch in ("rows", "hours") and not one.check.startswith("windows_agree"):
        assert set(result.samples["hour"]) == {HIT}


@pytest.mark.parametrize("table", sorted(SUITES))
def test_every_required_column_is_watched(sound: Project, table: str) -> None:
    required = [name for name, _, is_nullable, _ in describe(table) if not is_nullable and name != "hour"]
    row = ROW.format(hit=HIT.isoformat(), asset=table)
    with rolled_back(sound, *(f"UPDATE {table} SET {name} = NULL WHERE {row}" for name in required)) as session:
        result = results_of(sound, session, table)["required_values_are_present"]
    assert result.unexpected_count == 1
    assert set(result.samples["missing_columns"].iloc[0].split()) == set(required)


@pytest.mark.parametrize("table", sorted(SUITES))
def test_a_column_of_another_type_is_noticed(sound: Project, table: str) -> None:
    texts = ("agent_id", "alternative")
    column = next(name for name, kind, _, _ in describe(table) if kind == "int64" or name in texts)
    with rolled_back(
        sound, f"ALTER TABLE {table} ALTER {column} TYPE {'BLOB' if column in texts else 'VARCHAR'}"
    ) as session:
        names = ["columns_have_declared_types"]
        (result,) = evaluate(SUITES[table], source_of(sound, session, table), names)
    assert not result.success
    assert column in result.samples["changed_columns"].iloc[0]


# -- things that really happen -----------------------------------------------------------------------------------------


def evaluated(project: Project, asset: str, hours: HourRange) -> dict[str, CheckResult]:
    with rolled_back(project) as session:
        return results_of(project, session, asset, hours)


@pytest.mark.parametrize("apart", [1, 5])
def test_an_id_in_two_hours_is_a_warning_in_the_later_hour(project: Project, apart: int) -> None:
    project.write_log(
        "a.jsonl",
        [
            line(execution("same", "a", START)),
            line(execution("same", "a", START + apart * HOUR)),
            line(execution("other", "a", START + apart * HOUR)),
        ],
    )
    project.ingest(hours_from(START, 6))
    result = evaluated(project, "executions", HourRange.of(START + apart * HOUR))["execution_id_is_in_one_hour_only"]
    assert result.check.severity == "warn"
    assert (result.unexpected_count, result.element_count) == (1, 2)
    assert result.samples["execution_id"].tolist() == ["same"]


def test_an_id_in_two_hours_far_apart_is_noticed_when_both_are_checked(project: Project) -> None:
    project.write_log("a.jsonl", [line(execution("same", "a", START)), line(execution("same", "a", START + 5 * HOUR))])
    hours = hours_from(START, 6)
    project.ingest(hours)
    assert evaluated(project, "executions", hours)["execution_id_is_in_one_hour_only"].unexpected_count == 2


def test_a_burn_rate_of_an_agent_that_is_quiet_for_a_short_window_breaks_no_check(tmp_path: Path) -> None:
    """The 6 hours of the burn rate reach further back than a window of 2."""
    project = Project(
        tmp_path,
        {"defaults": {"expected_success_rate": 0.9}, "agents": {"strict": {"expected_success_rate": 1}}},
        2,
        12,
    )
    project.write_log("a.jsonl", [line(execution(agent, agent, START)) for agent in ("quiet", "strict")])
    hours = hours_from(START, 4)
    project.materialize(hours, only=["ingest", "health_components", "error_budget"])
    last = [row for row in project.rows("error_budget") if row["hour"] == hours.end - HOUR]
    assert {row["agent_id"]: (row["n"], row["n_6h"], row["burn_rate_6h"]) for row in last} == {
        "quiet": (0, 1, 0.0),
        "strict": (0, 1, None),
    }
    assert red(evaluated(project, "error_budget", hours)) == set()


def test_few_rejected_lines_pass_and_many_are_a_warning(project: Project) -> None:
    for place, bad in enumerate([0, 5, 6, 100]):
        lines = [line(execution(f"{place} {n}", "a", START + place * HOUR)) for n in range(100 - bad)]
        project.write_log(f"{place}.jsonl", lines + ["bad"] * bad, modified=START + place * HOUR)
    hours = hours_from(START, 4)
    project.ingest(hours)
    result = evaluated(project, "rejected_records", hours)["few_lines_are_rejected"]
    assert result.check.severity == "warn"
    assert [hour.unexpected_count for hour in result.hours] == [0, 0, 1, 1]
    assert result.samples["rejected_share"].tolist() == [0.06, 1.0]


def test_random_logs_break_no_check_that_blocks(tmp_path_factory: pytest.TempPathFactory) -> None:
    project = Project(tmp_path_factory.mktemp("random") / "project", {"agents": {name: {} for name in AGENTS}}, 5, 9)
    project.write_log("a.jsonl", random_lines(Random(8), 2500, 8))
    hours = hours_from(START, 8)
    project.materialize(hours)
    for asset in SUITES:
        failed = {
            name: result.samples for name, result in evaluated(project, asset, hours).items() if not result.success
        }
        blocking = {
            name for name in failed if next(c for c in SUITES[asset].checks if c.name == name).severity == "error"
        }
        assert not blocking, failed


def test_a_window_whose_hours_are_not_all_there_is_a_warning(tmp_path_factory: pytest.TempPathFactory) -> None:
    project = Project(tmp_path_factory.mktemp("holes") / "project", None, 3, 6)
    project.write_log("a.jsonl", [line(execution(f"e{n}", "a", START + n * HOUR)) for n in range(9)])
    project.materialize(hours_from(START, 9), only=["ingest", "health_components", "agent_health"])
    project.change("DELETE FROM partition_states WHERE hour = ?", [START + 4 * HOUR])
    hours = HourRange.of(START + 5 * HOUR)
    project.materialize(hours, only=["agent_health"])
    result = evaluated(project, "agent_health", hours)["windows_are_covered"]
    assert result.check.severity == "warn"
    assert result.unexpected_count == 1


# -- two judges, one verdict -------------------------------------------------------------------------------------------


def random_frame(random: Random, rows: int) -> pd.DataFrame:
    """A frame with many nulls, limits exactly hit, and a few values that break a rule."""
    hours = [random.choice(list(HOURS)) for _ in range(rows)]
    fault = random.choice([0, 0, 0.002, 0.02, 0.3])

    def column(good: list, bad: list) -> list:
        return [random.choice(bad) if random.random() < fault else random.choice(good) for _ in range(rows)]

    numbers = column([0, 1, 2, None], [-1, 5])
    return pd.DataFrame(
        {
            "hour": pd.Series(hours, dtype="datetime64[us, UTC]"),
            "key": [f"k{n}" for n in range(rows)] if random.random() < 0.5 else column([f"k{n}" for n in range(rows * 50)], ["twice"]),
            "required": column(["x", "y"], [None]),
            "share": pd.Series(column([0.0, 1.0, 0.5, None], [1.0000001, -1e-12, 2.0]), dtype="float64"),
            "count": pd.Series(numbers, dtype="float64"),
            "word": column(["a", "b", None], ["c", "A", ""]),
            "start": pd.Series([hour + HOUR / 4 for hour in hours], dtype="datetime64[us, UTC]"),
            "end": pd.Series([hour + random.choice([HOUR / 4, HOUR / 2] if random.random() >= fault else [HOUR / 8]) for hour in hours],
                             dtype="datetime64[us, UTC]"),
            "left": pd.Series(column([3, None], [4]), dtype="float64"),
            "right": pd.Series(column([3, None], [2]), dtype="float64"),
        }
    )  # fmt: skip


JUDGED = [
    Check(name="required", expectations=not_null("required")),
    Check(name="share", expectations=between(0, 1, "share")),
    Check(name="count", expectations=between(0, None, "count")),
    Check(name="top", expectations=between(None, 2, "count")),
    Check(name="word", expectations=one_of("word", "a", "b")),
    Check(name="order", expectations=at_least("end", "start")),
    Check(name="strict", expectations=greater("end", "hour")),
    Check(name="same", expectations=equal("left", "right")),
    Check(name="several", expectations=[*between(0, 1, "share"), *one_of("word", "a", "b"), *not_null("required")]),
    Check(name="unique", expectations=unique("hour", "key")),
]


def judge(
    sound: Project, frame: pd.DataFrame, small_rows: int, monkeypatch: pytest.MonkeyPatch
) -> dict[str, CheckResult]:
    monkeypatch.setattr(evaluation, "SMALL_BATCH_ROWS", small_rows)
    with rolled_back(sound) as session:
        session._connection.register("frame_rows", frame)
        session._connection.execute("CREATE TEMP TABLE judged_rows AS SELECT * FROM frame_rows")
        rows = ibis.table({name: str(kind) for name, kind in ibis.memtable(frame).schema().items()}, name="judged_rows")
        suite = Suite(asset="executions", checks=JUDGED, rows={"rows": lambda _: rows}, hours=lambda _: pd.DataFrame())
        source = source_of(sound, session, "executions")
        return {result.check.name: result for result in evaluate(suite, source)}


@pytest.mark.parametrize(
    "seed", [seed if seed < 4 else pytest.param(seed, marks=pytest.mark.nightly) for seed in range(12)]
)
def test_the_warehouse_and_great_expectations_judge_the_same_rows(
    sound: Project, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """A batch judged whole by Great Expectations, and the same one counted by the warehouse as a large one is."""
    frame = random_frame(Random(seed), 300)
    small = judge(sound, frame, 10**6, monkeypatch)
    # `evaluate` looks at the size of the asset's own table; a limit below it makes every batch large
    large = judge(sound, frame, 20, monkeypatch)
    for name, result in small.items():
        assert large[name].hours == result.hours, name
        assert bool(len(large[name].samples)) == bool(len(result.samples))
    by_hand = {
        "required": frame["required"].isna(),
        "share": (frame["share"] < 0) | (frame["share"] > 1),
        "word": frame["word"].notna() & ~frame["word"].isin(["a", "b"]),
        "order": frame["end"] < frame["start"],
        "same": frame["left"].notna() & frame["right"].notna() & (frame["left"] != frame["right"]),
        "unique": frame.duplicated(["hour", "key"], keep=False),
    }
    for name, broken in by_hand.items():
        counts = frame[broken].groupby("hour").size()
        sizes = frame.groupby("hour").size()
        expected = [HourResult(hour, int(sizes.get(hour, 0)), int(counts.get(hour, 0))) for hour in HOURS]
        assert list(small[name].hours) == expected, name


def test_a_check_that_breaks_does_not_disturb_the_others_of_a_large_batch(
    sound: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluation, "SMALL_BATCH_ROWS", 5)
    statement = (
        f"UPDATE executions SET status = 'nonsense', confidence = 7 WHERE hour = TIMESTAMPTZ '{HIT.isoformat()}'"
    )
    with rolled_back(sound, statement) as session:
        results = results_of(sound, session, "executions")
    assert red(results) == {"values_are_known", "shares_are_between_0_and_1"}
    assert len(results["values_are_known"].samples) <= 10


@pytest.mark.parametrize("small_rows", [5, 10**6], ids=["large", "small"])
def test_rows_of_an_hour_that_lies_in_a_hole_break_no_check(
    sound: Project, monkeypatch: pytest.MonkeyPatch, small_rows: int
) -> None:
    monkeypatch.setattr(evaluation, "SMALL_BATCH_ROWS", small_rows)
    asked = HourGroups.of(hour for hour in HOURS if hour != HIT)
    broken = "UPDATE executions SET confidence = 2 WHERE hour >= ?"
    with rolled_back(sound) as session:
        session.query(broken, [HIT])
        source = replace(source_of(sound, session, "executions"), some=asked)
        [result] = evaluate(SUITES["executions"], source, ["shares_are_between_0_and_1"])
        assert [(hour.hour, hour.unexpected_count > 0) for hour in result.hours] == [
            (hour, hour > HIT) for hour in asked
        ]
        assert set(result.samples["hour"]) == {hour for hour in asked if hour > HIT}
        session.query("UPDATE executions SET confidence = 1 WHERE hour > ?", [HIT])
        [result] = evaluate(SUITES["executions"], source, ["shares_are_between_0_and_1"])
        assert result.success
        session.query("DELETE FROM executions WHERE hour <> ?", [HIT])
        [result] = evaluate(SUITES["executions"], replace(source), ["shares_are_between_0_and_1"])
        assert result.success


# -- history -----------------------------------------------------------------------------------------------------------


def history(session: Session, asset: str) -> list[tuple]:
    return session.query(
        "SELECT hour, expectation, success, element_count, unexpected_count, severity FROM expectation_results "
        "WHERE asset = ? ORDER BY ALL", [asset]
    )  # fmt: skip


@pytest.mark.parametrize("asset", ["executions", "system_health"])
def test_every_check_of_every_hour_is_kept_once(sound: Project, asset: str) -> None:
    with rolled_back(sound) as session:
        for hours in (HOURS, HourRange.of(HIT), HOURS):
            source = source_of(sound, session, asset, hours)
            write_history(session, source.hours, {asset: evaluate(SUITES[asset], source)})
        kept = history(session, asset)
    assert {(row[0], row[1]) for row in kept} == {
        (hour, check.name) for hour in HOURS for check in SUITES[asset].checks
    }
    assert len(kept) == len(HOURS) * len(SUITES[asset].checks)
    assert all(row[2] and row[4] == 0 for row in kept)


def test_the_history_says_which_hour_failed_and_a_rerun_of_other_hours_keeps_it(sound: Project) -> None:
    broken = f"UPDATE executions SET confidence = 2 WHERE hour = TIMESTAMPTZ '{HIT.isoformat()}'"
    with rolled_back(sound, broken) as session:
        source = source_of(sound, session, "executions")
        write_history(session, source.hours, {"executions": evaluate(SUITES["executions"], source)})
        source = source_of(sound, session, "executions", HourRange.of(HIT + HOUR))
        write_history(session, source.hours, {"executions": evaluate(SUITES["executions"], source)})
        failed = [row for row in history(session, "executions") if not row[2]]
        (rows,) = session.query("SELECT count(*) FROM executions WHERE hour = ?", [HIT])
    assert failed == [(HIT, "shares_are_between_0_and_1", False, rows[0], rows[0], "error")]


def test_only_the_checks_that_are_asked_for_are_evaluated(sound: Project) -> None:
    names = ["values_are_known", "every_line_is_a_row"]
    with rolled_back(sound) as session:
        source = source_of(sound, session, "executions")
        results = evaluate(SUITES["executions"], source, names)
        write_history(session, source.hours, {"executions": results})
        assert {row[1] for row in history(session, "executions")} == set(names)
    assert {result.check.name for result in results} == set(names)


# -- declarations ------------------------------------------------------------------------------------------------------


def test_every_asset_of_the_lineage_has_a_suite() -> None:
    assert list(SUITES) == ["raw_logs", *RECORD_TABLES, *DERIVED, *SURVEY_TABLES]


def test_the_names_of_a_suites_checks_are_sentences_and_differ() -> None:
    for asset, suite in SUITES.items():
        names = [check.name for check in suite.checks]
        assert len(names) == len(set(names)), asset
        for check in suite.checks:
            assert len(check.name.split("_")) >= 3, check.name
            assert check.severity in ("error", "warn")
            assert check.expectations
            assert not check.is_uniqueness or len(check.expectations) == 1


@pytest.mark.parametrize("asset", SUITES)
def test_the_keys_that_a_table_declares_are_watched(asset: str) -> None:
    """Identity is not enforced by an index, so a check has to."""
    watched = [set(check.expectations[0].columns) for check in SUITES[asset].checks if check.is_uniqueness]
    columns = ALL_TABLES[asset].__table__.columns
    key = {column.name for column in columns if column.primary_key}
    may_be_null = {column.name for column in columns if column.nullable}  # what may be null cannot be declared a key
    counted = {"there_is_one_row_per_hour", "every_line_is_a_row", "every_line_is_accounted_for"}
    assert any(key <= each <= key | may_be_null for each in watched) or counted & {
        check.name for check in SUITES[asset].checks
    }
