"""Targets that change from some hour on: what is said of the hours before."""

from pathlib import Path

from health_assets.core.hours import HOUR
from health_assets.core.targets import AgentTargets, Targets
from health_assets.systems.agent_health_model.older_targets import older_targets
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.projects import Project, hours_from


def test_hours_before_a_run_with_new_targets_are_told_to_keep_the_old_ones(tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    runs = [execution(f"{agent}-{hour}", agent, START + hour * HOUR) for agent in "ab" for hour in (0, 1)]
    project.write_log("a.jsonl", map(line, runs))
    project.materialize(hours_from(START, 2), only=["ingest", "health_components", "agent_health"])
    new = Targets(agents={"b": AgentTargets(expected_success_rate=0.5, expected_runtime_s=3.0)})
    with project.warehouse.read() as session:
        assert older_targets(session, START + 2 * HOUR, Targets()) is None
        assert older_targets(session, START, new) is None
        told = str(older_targets(session, START + HOUR, new))
        every = str(older_targets(session, START + HOUR, Targets(defaults=AgentTargets(expected_runtime_s=3.0))))
    assert told == (
        "hours before 2026-06-07T01 keep the targets that they were made with (b: expected_success_rate 0.95, now 0.5); "
        "--from 2026-06-07T00 applies the new ones to them, too"
    )
    assert "(a: expected_runtime_s none, now 3, and 1 more agent)" in every
