"""What the logs hold hour by hour, as the ledger knows it."""

from health_assets.core.hours import HOUR, HourRange
from health_assets.pipeline.retention import prune
from health_assets.warehouse.log_coverage import LogCoverage, RejectedElsewhere
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.projects import Project


def rejected_elsewhere(project: Project) -> RejectedElsewhere | None:
    with project.warehouse.read() as session:
        return LogCoverage(session).rejected_elsewhere()


def test_rejected_lines_that_retention_dropped_are_not_told_as_lines_of_hours_that_nobody_materialized(
    project: Project,
) -> None:
    project.write_log("early.jsonl", [line(execution("a", "planner", START)), "no JSON"])
    project.write_log("late.jsonl", [line(execution("b", "planner", START + 5 * HOUR)), "no JSON either"])
    project.ingest(HourRange.of(START))
    of_late = RejectedElsewhere(lines=1, files=1, first=START + 5 * HOUR, example_file="late.jsonl")
    assert rejected_elsewhere(project) == of_late
    prune(project.warehouse, (), START + HOUR, trace_hours=1)
    assert [row["hour"] for row in project.rows("rejected_records")] == [START + 5 * HOUR]
    assert rejected_elsewhere(project) == of_late
