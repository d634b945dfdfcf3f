"""An outage, hour by hour: logs of agents of several sizes, through the pipeline and the rules, and what was told."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from health_assets.apps.alerts.config import Alerts
from health_assets.apps.alerts.evaluator import watch
from health_assets.apps.alerts.incidents import Incident
from health_assets.apps.alerts.rules import RULES
from health_assets.core.hours import HOUR, HourRange
from health_assets.core.targets import load_targets
from health_assets.warehouse.partition_states import PartitionStates
from health_assets_tests.support.alerts_made import at, incidents, later
from health_assets_tests.support.logs_made import execution, line
from health_assets_tests.support.projects import Project, hours_from

STEPS = (
    "ingest", "health_components", "now_components", "agent_now", "agent_health", "system_health", "evidence_components",
    "score_evidence", "error_budget", "state_components", "agent_health_state",
)  # fmt: skip
RATES = (1, 6, 12, 1000)
"""Executions an hour, each of an agent that is named after it."""
ERROR = "ConnectionError: postgresql://app:hunter2@db.example/crm refused"
OTHER_ERROR = "TimeoutError: no answer in 30 s"


@dataclass(frozen=True)
class Outage:
    """When everything fails: `well` hours of success, `down` of failure, then success until `until`.

    Args:
        well: hours before it.
        down: hours that it lasts.
        until: hours of all.
        silent_from: hour from which on nothing runs at all; None for never.
    """

    well: int = 24
    down: int = 11
    until: int = 62
    silent_from: int | None = None

    def is_down(self, hour: int) -> bool:
        return self.well <= hour < self.well + self.down


def agent_of(rate: int) -> str:
    return f"runs-{rate}"


def lines(outage: Outage, rates: tuple[int, ...]) -> Iterator[str]:
    for rate in rates:
        for hour in range(min(outage.until, outage.silent_from or outage.until)):
            for number in range(rate):
                ended_at = at(hour) + (number + 0.5) * HOUR / rate
                error = ERROR if number % 4 else OTHER_ERROR
                failed = {"status": "failure", "error": error} if outage.is_down(hour) else {}
                yield line(execution(f"{rate}-{hour}-{number}", agent_of(rate), ended_at, 0.5, **failed))


def walked(project: Project, outage: Outage, rates: tuple[int, ...] = RATES, alerts: Alerts | None = None) -> None:
    """Materialize all hours, and judge those from the outage on, one after another."""
    project.write_log("runs.jsonl", lines(outage, rates))
    project.materialize(hours_from(at(0), outage.until), only=STEPS)
    with project.warehouse.write() as session:  # so that the first look does not begin with the newest hour
        PartitionStates(session).note("alerts", HourRange.of(at(outage.well - 1)), [])
    configured = alerts or Alerts(rules=tuple(rule() for rule in RULES.values()))
    settings = project.settings
    while watch(project.warehouse, configured, settings, load_targets(settings.targets), later()).hours:
        pass


def of_agents(project: Project) -> list[Incident]:
    return [one for one in incidents(project.warehouse_path) if one.subject_kind == "agent"]


def delays(found: list[Incident], outage: Outage) -> dict[str, dict[int, int | None]]:
    """Hours from the outage's start to the end of the hour that opened an incident, by rule and executions an hour."""
    start = at(outage.well)
    told: dict[str, dict[int, int | None]] = {}
    for name, rule in RULES.items():
        if any(seen.kind in ("now", "agent", "budget", "status") for seen in rule.looks_at):
            told[name] = dict.fromkeys(RATES)
            for rate in RATES:
                own = [one.opened_at for one in found if (one.rule, one.subject_id) == (name, agent_of(rate))]
                if own:
                    told[name][rate] = round((min(own) - start) / HOUR)
    return told


def table_of_delays(told: Mapping[str, Mapping[int, int | None]]) -> str:
    """The delays as the Markdown table of the docs."""
    head = ["rule", "severity", *(f"{rate:,} an hour" for rate in RATES)]
    rows = [
        [f"`{name}`", RULES[name]().severity, *("–" if hours is None else f"{hours} h" for hours in own.values())]
        for name, own in told.items()
        if any(hours is not None for hours in own.values())
    ]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [head, ["---"] * len(head), *rows])


def walk_of(found: list[Incident], outage: Outage, rate: int) -> list[str]:
    """What opened and closed in which hour after the outage began, of one agent."""
    told: list[tuple[datetime, str]] = []
    for one in (one for one in found if one.subject_id == agent_of(rate)):
        told.append((one.opened_at, f"opens {one.rule} ({one.severity}): {one.reason}"))
        if one.closed_at:
            told.append((one.closed_at, f"closes {one.rule}: {one.recovery}"))
    return [f"{(moment - at(outage.well)) / timedelta(hours=1):+.0f} h {text}" for moment, text in sorted(told)]
