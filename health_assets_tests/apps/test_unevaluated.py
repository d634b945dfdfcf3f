"""Systems with nothing to evaluate: which they are and what the logs would have to say."""

from pathlib import Path

from health_assets.apps.report.unevaluated import unevaluated
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.projects import Project, hours_from
from health_assets_tests.support.traces_made import agent, otlp_line

HOURS = hours_from(START, 1)
ASSETS = ["ingest", "trace_risks", "session_scores", "task_consistency", "agent_reliability", "model_components",
          "model_health", "tool_components", "tool_health"]  # fmt: skip


def told(project: Project, text: str) -> str | None:
    project.write_log("a.jsonl", [text])
    project.materialize(HOURS, only=ASSETS)
    with project.warehouse.read() as session:
        return unevaluated(session, HOURS)


def test_each_system_that_has_nothing_to_evaluate_is_named_with_what_it_lacks(tmp_path: Path) -> None:
    assert told(Project(tmp_path), line(execution("e", "a", START))) == (
        "nothing to evaluate: sessions: no session_id; reliability: no task_id, and no two with the same input; "
        "models: no model_call lines; tools: no tool_call lines"
    )


def test_of_spans_the_attributes_are_named(tmp_path: Path) -> None:
    assert told(Project(tmp_path), otlp_line(agent(1, 1, START))) == (
        "nothing to evaluate: sessions: no gen_ai.conversation.id or session.id on any span; "
        "reliability: no two runs with the same input, and no item of an evaluation; "
        "models: no span of a model call; tools: no span of a tool call"
    )


def test_a_signals_line_joins_an_agents_span_by_its_trace_and_span_id(tmp_path: Path) -> None:
    project = Project(tmp_path)
    span = agent(1, 1, START)
    project.write_log("s.jsonl", [line({"type": "signals", "execution_id": f"{span['traceId']}:{span['spanId']}",
                                        "at": START.isoformat(), "confidence": 0.5})])  # fmt: skip
    told(project, otlp_line(span))
    assert project.query("SELECT agent_id, count(*) FROM trace_risks GROUP BY ALL") == [("planner", 1)]
