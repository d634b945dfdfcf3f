"""The blocks that the commands show, one for each scoring system, and which hours they are about."""

from collections.abc import Callable, Iterator
from datetime import datetime

from rich.console import Console
from rich.text import Text

from health_assets.apps.report.differences import print_differences
from health_assets.apps.report.unevaluated import unevaluated
from health_assets.apps.report.without_targets import fleet_without_targets
from health_assets.core.errors import HealthAssetsError, NoWarehouseError
from health_assets.core.hours import HOUR, HourRange, parse_hour
from health_assets.core.settings import Settings
from health_assets.core.systems import parts
from health_assets.core.targets import load_targets
from health_assets.core.terminal import printable
from health_assets.pipeline.span_summary import without_agents
from health_assets.systems.formula_versions import older_results
from health_assets.systems.session_scores.unmapped_evaluators import unmapped_evaluators
from health_assets.warehouse.partition_states import SCORED_ASSET, PartitionStates
from health_assets.warehouse.session import Session

Block = Callable[[Console, Session, HourRange], None]


def _blocks() -> Iterator[tuple[str, Block]]:
    modules = parts("report")
    # what agents do now comes before every score, though it is made from the components of one
    for system, module in ((name, modules[name]) for name in sorted(modules, key=lambda name: name != "agent_now")):
        yield system, module.print_block
        if system == "agent_health_state":  # from here on two systems have said what they think of an agent
            yield "differences", print_differences


BLOCKS: dict[str, Block] = dict(_blocks())
"""The blocks by system, in the order in which they are shown, and among them the one that compares two systems."""


def report_hours(session: Session, settings: Settings, asked: str | None, now: datetime) -> HourRange:
    """The hours that a report shows: the window that ends with an hour, by default the newest with scores.

    Args:
        session: a session.
        settings: how long the window is.
        asked: the hour, as it was named.
        now: the time; no hour is shown that has not begun.

    Raises:
        HealthAssetsError: the name is no hour, or the hour has no scores.
    """
    materialized = PartitionStates(session)
    newest = materialized.newest("agent_health", now + HOUR)
    if newest is None:
        raise NoWarehouseError("the warehouse holds no scores yet; materialize some hours first")
    hour = parse_hour(asked) if asked else newest
    if hour not in PartitionStates(session).of("agent_health", HourRange.of(hour)):
        command = f"health-assets materialize --from {hour:%Y-%m-%dT%H} --to {hour + HOUR:%Y-%m-%dT%H}"
        remedy = f", and {command} makes them" if hour <= now else ""
        raise HealthAssetsError(
            f"the hour {hour:%Y-%m-%dT%H} has no scores; the newest that has is {newest:%Y-%m-%dT%H}{remedy}"
        )
    return HourRange.of(hour).extended_back(settings.window_hours - 1)


def print_older_formulas(console: Console, session: Session, hours: HourRange, settings: Settings) -> None:
    """Print the systems whose results of the last of these hours are of an older formula version."""
    shown = HourRange.of(hours.end - HOUR)
    for results in older_results(session, shown, settings):
        remedy = (
            "it stays so, since it looks back on hours that retention dropped"
            if results.kept
            else f"the late-log sensor brings it up to date, or health-assets materialize --from "
            f"{shown.start:%Y-%m-%dT%H} --to {shown.end:%Y-%m-%dT%H}"
        )
        told = (
            f"{results.system} of this hour is of formula version {' and '.join(results.versions)}, "
            f"now {results.version}; {remedy}"
        )
        console.print(Text(printable(told), style="yellow"), soft_wrap=True)


def print_report(console: Console, session: Session, hours: HourRange, settings: Settings) -> None:
    """All blocks, and before them which are of older formulas, and what a run says where only models are known."""
    print_older_formulas(console, session, hours, settings)
    if hint := without_agents(session, hours):
        console.print(Text(printable(hint), style="yellow"), soft_wrap=True)
    if sentence := unmapped_evaluators(session, hours, load_targets(settings.targets).evaluators):
        console.print(Text(printable(sentence, 600), style="yellow"), soft_wrap=True)
    print_health(console, session, hours)


def print_health(console: Console, session: Session, hours: HourRange) -> None:
    """One block for each scoring system that has rows in these hours, and lines about what nobody evaluated."""
    for running, known in PartitionStates(session).as_of(SCORED_ASSET, HourRange.of(hours.end - HOUR)).items():
        told = f"the hour from {running:%Y-%m-%d %H:%M} UTC was not over; this is what was known at {known:%H:%M:%S}"
        console.print(Text(told, style="yellow"))
    for print_block in BLOCKS.values():
        print_block(console, session, hours)
    if sentence := fleet_without_targets(session, hours):
        console.print()
        console.print(Text(sentence, style="yellow"), soft_wrap=True)
    if sentence := unevaluated(session, hours):
        console.print()
        console.print(Text(sentence, style="dim"), soft_wrap=True)
