"""The first lines of an agent's report: what it does now, and why where it is failing or suspect.

What belongs here: reading what the last hour's failures have in common, and printing it. What does not: the rule of who
is to blame (`scoring.failure_causes`), and the score (`agent`).
"""

from collections.abc import Mapping
from typing import Any

import ibis
from rich.console import Console
from rich.text import Text

from health_assets.core.hours import HOUR, HourRange
from health_assets.core.terminal import printable
from health_assets.scoring.failure_causes import causes, error_sentence
from health_assets.scoring.relations import first_line
from health_assets.scoring.verdict import FAILING, RECOVERING, SUSPECT, now_sentence
from health_assets.systems.agent_now.last_hour import executions_of_last_hour
from health_assets.systems.explanations.common_values import common_values
from health_assets.warehouse.session import Session

STYLES = {FAILING: "bold white on red", SUSPECT: "bold yellow", RECOVERING: "cyan"}


def print_now(console: Console, session: Session, hour: HourRange, row: Mapping[str, Any]) -> None:
    """Print what an agent does now; where it is failing or suspect, with which error, and where its failures lie.

    Args:
        console: where to print.
        session: a session.
        hour: the hour of the report.
        row: the agent's row of `agent_health` with what `with_now` adds.
    """
    sentence = now_sentence(row)
    if not sentence:
        return
    since = f"{row['now_since']:%H:%M}" if row["now_since"] >= hour.start else f"{row['now_since']:%Y-%m-%d %H:%M}"
    console.print(Text(printable(f"{sentence}, since {since} UTC"), style=STYLES.get(row["now"], "")))
    if row["now"] not in (FAILING, SUSPECT) or not row["now_failures"]:
        return
    for line in why_lines(session, hour, row):
        console.print(Text(f"  {printable(line, 400)}"))


def why_lines(session: Session, hour: HourRange, row: Mapping[str, Any]) -> list[str]:
    """The most frequent error of the last hour, and each version, model and tool that explains most of its failures."""
    agent_id = row["agent_id"]
    executions = executions_of_last_hour(session, hour)
    failed = executions.filter(executions.agent_id == agent_id, executions.status == "failure")
    by_line = failed.group_by(line=first_line(failed.error)).aggregate(runs=failed.count())
    errors = session.dicts(by_line.order_by(ibis.desc("runs"), "line").limit(1))
    lines = [error_sentence(row["now_failures"], one["line"], one["runs"]) for one in errors]
    before = hour.extended_back(1)
    tools, models = (session.hours_of(name, before) for name in ("tool_calls", "model_calls"))
    now = session.hours_of("agent_now", hour)
    values = common_values(executions, tools, models, now.filter(now.agent_id == agent_id))
    found = causes(row, session.dicts(values), _good_before(session, row))
    return lines + [f"{cause.failures:,} of {row['now_failures']:,} failures {cause.words}" for cause in found]


def _good_before(session: Session, row: Mapping[str, Any]) -> set[tuple[str, str | None]]:
    """Versions and models of runs that succeeded in the day before the trouble began."""
    runs = session.hours_of("executions", HourRange(row["now_since"] - 24 * HOUR, row["now_since"]))
    good = runs.filter(runs.agent_id == row["agent_id"], runs.status == "success")
    found = session.dicts(good.select(version="agent_version", model="model").distinct())
    return {(dimension, one[dimension]) for one in found for dimension in ("version", "model")}
