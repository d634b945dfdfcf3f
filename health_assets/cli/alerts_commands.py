"""The commands about alerts; each does little more than read its flags and call the rest."""

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from health_assets.apps.serving.audit import audited, current_user, warehouse_name
from health_assets.cli.console import TargetsOption, WarehouseOption, console, readable_errors, settings_of
from health_assets.core.errors import HealthAssetsError

if TYPE_CHECKING:
    from health_assets.core.settings import Settings

TROUBLE = 3
"""Exit code of `alerts` where the pipeline itself is in trouble, whatever the health of the agents is."""

alerts_app = typer.Typer()
AlertsOption = Annotated[Path | None, typer.Option("--alerts", help="Rules and channels (HEALTH_ALERTS).")]


@alerts_app.callback(invoke_without_command=True)
def alerts(
    context: typer.Context,
    rules: AlertsOption = None,
    warehouse: WarehouseOption = None,
    targets: TargetsOption = None,
    test: Annotated[bool, typer.Option("--test", help="Send a test message to every channel.")] = False,
    now: Annotated[
        bool, typer.Option("--now", help="Judge new hours and deliver what waits, as the sensor does.")
    ] = False,
    days: Annotated[int, typer.Option(help="How far back closed incidents are shown.", min=0)] = 7,
) -> None:
    """Show whether the newest hour is late, logs not read, incidents, and what is undelivered.

    Exit code: 3 where an hour is late or a log cannot be read. With --test, 1 where a channel did not take its message.
    """
    if context.invoked_subcommand is not None:
        _require_no_options(context)
        return
    from health_assets.apps.alerts.config import load_alerts

    with readable_errors():
        settings = settings_of(None, targets, warehouse)
        path = rules or settings.alerts
        if (test or now) and path is None:
            raise HealthAssetsError("no rules and channels are named; use --alerts or HEALTH_ALERTS")
        if path is not None:
            load_alerts(path)  # so that whoever only looks is told of what is wrong in it, too
        if test:
            _test_channels(path)
            return
        if now:
            with audited(settings, "alerts --now", rules=str(path), warehouse=warehouse_name(settings)):
                _tell_now(settings, path)
        is_trouble = _show_alerts(settings, days, is_configured=path is not None)
    if is_trouble:
        raise typer.Exit(TROUBLE)


def _require_no_options(context: typer.Context) -> None:
    """Refuse options in front of a further command, which would not heed them."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if source is not None and source.name == "COMMANDLINE":
            with readable_errors():
                raise HealthAssetsError(f"write {parameter.opts[0]} behind `alerts {context.invoked_subcommand}`")


@alerts_app.command()
def silence(
    until: Annotated[str, typer.Option(help="Until when, like 2026-11-30T06:00Z, or for how long, like 12h or 3d.")],
    reason: Annotated[str, typer.Option(help="Why nobody is to be told.")],
    agent: Annotated[
        list[str] | None, typer.Option(help="Agent, or a pattern like 'crawler*', again for more; '*' is every one.")
    ] = None,
    rule: Annotated[list[str] | None, typer.Option(help="Rule, again for more; all by default.")] = None,
    start: Annotated[
        str | None, typer.Option("--from", help="From when on, like --until, for a maintenance window; now by default.")
    ] = None,
    by: Annotated[str | None, typer.Option(help="Who wants it; by default the user of this machine.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before every agent is silenced.")] = False,
    warehouse: WarehouseOption = None,
) -> None:
    """Tell nobody of some agents or rules for a while; what is still open when that is over is told then."""
    from health_assets.apps.alerts.silencing import Silences
    from health_assets.apps.report.silences_block import print_preview
    from health_assets.pipeline.publishing import publish_if_configured
    from health_assets.warehouse.store import Warehouse

    with readable_errors():
        settings = settings_of(None, None, warehouse)
        silences = Silences(Warehouse.of(settings))
        wanted = {
            "agents": agent or (), "rules": rule or (), "start": start, "until": until,
            "reason": reason, "by": by or current_user(), "now": datetime.now(UTC),
        }  # fmt: skip
        preview = silences.preview(**wanted)
        print_preview(console, preview)
        if preview.is_of_every_agent and not yes:
            _ask("this tells nobody of any agent")
        details = {name: str(value) for name, value in wanted.items() if value and name != "now"}
        with audited(settings, "alerts silence", **details, warehouse=warehouse_name(settings)):
            added = silences.add(**wanted)
        console.print(f"silence {added.silence_id} is added.", markup=False, highlight=False)
        publish_if_configured(settings)


def _ask(sentence: str) -> None:
    """Ask a person whether to go on; where there is none to ask, nothing is done."""
    if not sys.stdin.isatty():
        raise HealthAssetsError(f"{sentence}; say --yes where that is meant")
    if not typer.confirm(f"{sentence}; go on?"):
        raise HealthAssetsError("nothing is silenced")


@alerts_app.command()
def silences(
    days: Annotated[int, typer.Option(help="How far back silences that are over are shown.", min=0, max=36_500)] = 7,
    warehouse: WarehouseOption = None,
) -> None:
    """List the silences in force, those to come, and those that were over lately."""
    from health_assets.apps.alerts.silencing import Silences
    from health_assets.apps.report.silences_block import print_silences
    from health_assets.warehouse.store import Warehouse

    with readable_errors():
        now = datetime.now(UTC)
        found = Silences(Warehouse.of(settings_of(None, None, warehouse))).listed(now, timedelta(days=days))
        print_silences(console, found, now)


@alerts_app.command()
def unsilence(
    silence_id: Annotated[str, typer.Argument(help="Id of the silence, as `alerts silences` shows it.")],
    warehouse: WarehouseOption = None,
) -> None:
    """End a silence; what it covered and is still open is told with the next tick."""
    from health_assets.apps.alerts.silencing import Silences
    from health_assets.pipeline.publishing import publish_if_configured
    from health_assets.warehouse.store import Warehouse

    with readable_errors():
        settings = settings_of(None, None, warehouse)
        with audited(settings, "alerts unsilence", silence=silence_id, warehouse=warehouse_name(settings)):
            ended = Silences(Warehouse.of(settings)).end(silence_id)
        console.print(f"silence {ended.silence_id} ({ended.scope}) is ended.", markup=False, highlight=False)
        publish_if_configured(settings)


@alerts_app.command()
def digest(
    every: Annotated[
        str | None, typer.Option(help="daily or weekly; by default as the alerts file has it, or else daily.")
    ] = None,
    rules: AlertsOption = None,
    warehouse: WarehouseOption = None,
    targets: TargetsOption = None,
) -> None:
    """Print the digest of the last day or week as of now; nothing is sent or kept."""
    from health_assets.apps.alerts.config import load_alerts
    from health_assets.apps.alerts.digest_facts import facts
    from health_assets.apps.report.silences_block import print_digest
    from health_assets.core.targets import load_targets
    from health_assets.warehouse.store import Warehouse

    with readable_errors():
        settings = settings_of(None, targets, warehouse)
        schedule = load_alerts(rules or settings.alerts).digest
        cadence = every or (schedule.every if schedule else "daily")
        if cadence not in ("daily", "weekly"):
            raise HealthAssetsError("--every: must be daily or weekly")
        known, now = load_targets(settings.targets), datetime.now(UTC)
        lines = schedule.lines if schedule else 5
        with Warehouse.of(settings).read() as session:
            content = facts(session, settings, known, cadence, now, now, lines=lines)
        print_digest(console, content)


def _test_channels(path: Path | None) -> None:
    from health_assets.apps.alerts.config import load_alerts
    from health_assets.apps.alerts.delivering import try_channels
    from health_assets.apps.report.incidents_block import print_trials

    configured = load_alerts(path)
    with console.status("sending"):
        outcome = try_channels(configured, datetime.now(UTC))
    print_trials(console, outcome)
    if any(outcome.values()):
        sys.exit(1)


def _tell_now(settings: "Settings", path: Path | None) -> None:
    with console.status("judging"):
        from health_assets.apps.alerts.config import load_alerts
        from health_assets.apps.alerts.tick_runner import tick
        from health_assets.core.targets import load_targets
        from health_assets.pipeline.publishing import publish_if_configured

        done = tick(settings, load_alerts(path), load_targets(settings.targets), datetime.now(UTC))
    console.print(f"{done}.", markup=False)
    publish_if_configured(settings)


def _show_alerts(settings: "Settings", days: int, *, is_configured: bool) -> bool:
    """Show all that is wrong; gives whether an hour is late or a log cannot be read."""
    with console.status("loading"):
        from health_assets.apps.report.incidents_block import print_alerts, print_troubles
        from health_assets.core.targets import load_targets
        from health_assets.warehouse.store import Warehouse

        targets = load_targets(settings.targets)
    with Warehouse.of(settings).read() as session:
        is_trouble = print_troubles(console, session, settings, datetime.now(UTC))
        since = datetime.now(UTC) - timedelta(days=days)
        print_alerts(console, session, since, targets, is_configured=is_configured)
    return is_trouble
