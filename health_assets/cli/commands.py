"""The commands; each does little more than read its flags and call the rest."""

import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from health_assets import BEGAN, __version__
from health_assets.apps.serving.audit import audited, warehouse_name
from health_assets.cli.alerts_commands import alerts_app
from health_assets.cli.console import (
    RawOption,
    TargetsOption,
    WarehouseOption,
    complain,
    console,
    readable_errors,
    say,
    settings_of,
)
from health_assets.cli.format_commands import formats, inspect
from health_assets.cli.materializing import hours_asked_for, materialize_hours
from health_assets.cli.publishing_commands import publish
from health_assets.cli.release_commands import compare, gate
from health_assets.cli.targets_commands import targets_app
from health_assets.core import json_logs
from health_assets.core.errors import HealthAssetsError, is_want_of_memory
from health_assets.core.formatting import seconds_of
from health_assets.core.hours import HOUR, HourRange, floor_hour
from health_assets.core.importing import without_collections

if TYPE_CHECKING:
    from health_assets.consumer import Answer
    from health_assets.core.settings import Settings
    from health_assets.systems.survey.surveyed_agents import RegisteredAgent


class _Commands(TyperGroup):
    """The commands; where memory is short, in whatever words a library says so, each ends with one sentence."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            if not is_want_of_memory(error):
                raise
        # outside of the handler: what the error's frames hold is free by now
        return complain("there is not enough memory for this; allow the process more, or ask for fewer hours at a time")


app = typer.Typer(cls=_Commands, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
tokens_app = typer.Typer(no_args_is_help=True, help="Tokens of the health endpoint.")
app.add_typer(tokens_app, name="token")
app.add_typer(alerts_app, name="alerts")
app.add_typer(targets_app, name="targets")
app.command()(inspect)
app.command()(formats)
app.command()(compare)
app.command()(gate)
app.command()(publish)
McpRole = Literal["read", "operate"]
DEMO_FOLDER = Path("data/demo")
JSON_WIDTH = 200
"""Characters of a line of a table that is the message of a JSON object."""


@app.callback(invoke_without_command=True)
def _main(version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False) -> None:
    """Health Assets: the health of every AI agent, every hour, from its logs."""
    if json_logs.are_wanted():
        console.file, console.width = json_logs.write_json(), JSON_WIDTH
    if version:
        console.print(f"health-assets {__version__}")
        raise typer.Exit


@app.command()
def materialize(
    start: Annotated[
        str | None, typer.Option("--from", help="First hour, like 2026-06-07T00, in UTC; by default the logs' first.")
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", help="Hour to stop before; by default after the last that is over.")
    ] = None,
    raw: RawOption = None,
    targets: TargetsOption = None,
    warehouse: WarehouseOption = None,
    system: Annotated[
        list[str] | None, typer.Option(help="Scoring system to materialize, again for more; all by default.")
    ] = None,
    full_refresh: Annotated[
        bool, typer.Option("--full-refresh", help="Make a run also where nothing has changed, and read every raw log.")
    ] = False,
) -> None:
    """Materialize all assets for a range of hours, or those of some scoring systems, as one Dagster run."""
    with readable_errors():
        settings = settings_of(raw, targets, warehouse)
        _require_targets(settings)  # before anything that takes long
        asked = {"from": start, "to": end, "systems": system or None, "warehouse": warehouse_name(settings)}
        with audited(settings, "materialize", **asked):
            wanted = hours_asked_for(settings, start, end, full_refresh=full_refresh)
            materialize_hours(
                settings, wanted.hours, BEGAN, system or (), full_refresh=full_refresh, loaded=wanted.loaded
            )


@app.command()
def run(
    every: Annotated[str, typer.Option(help="How often to look for what is new: like 30s, 5m or 1h.")] = "1m",
    raw: RawOption = None,
    targets: TargetsOption = None,
    warehouse: WarehouseOption = None,
) -> None:
    """Keep everything up to date in one process: the running hour, hours that are over, late logs and alerts."""
    with readable_errors():
        settings, every_s = settings_of(raw, targets, warehouse), seconds_of(every)
        _require_targets(settings)
        with console.status("loading"):
            from health_assets.cli.worker import run_worker

        with audited(settings, "run", every=every, warehouse=warehouse_name(settings)):
            run_worker(settings, every_s)


@app.command()
def report(
    agent: Annotated[str | None, typer.Option(help="Show this agent: score, evidence, document, sessions.")] = None,
    hour: Annotated[
        str | None, typer.Option(help="Hour to show, like 2026-06-07T23, in UTC; by default the newest with scores.")
    ] = None,
    warehouse: WarehouseOption = None,
) -> None:
    """Show the health of the fleet, or all that is known of one agent, as of the end of an hour."""
    with without_collections():
        from health_assets.apps.report.agent import print_agent
        from health_assets.apps.report.blocks import print_older_formulas, print_report, report_hours
        from health_assets.core.sql_memory import keep_compiled_sql
        from health_assets.warehouse.store import Warehouse

    with readable_errors():
        settings = settings_of(None, None, warehouse)
        with Warehouse.of(settings).read() as session:
            hours = report_hours(session, settings, hour, datetime.now(UTC))
            if agent is None:
                print_report(console, session, hours, settings)
            else:
                print_older_formulas(console, session, hours, settings)
                print_agent(console, session, hours, agent)
        keep_compiled_sql()


@app.command()
def prune(
    older_than_days: Annotated[int | None, typer.Option(help="Days of rows to keep (HEALTH_KEEP_DAYS).", min=1)] = None,
    warehouse: WarehouseOption = None,
) -> None:
    """Drop record and component rows of old hours; scores stay, and any hour can be made again from the raw logs."""
    with readable_errors():
        settings = settings_of(None, None, warehouse)
        with console.status("loading"), without_collections():
            from health_assets.apps.report.pruned_block import print_pruned
            from health_assets.cli.running import write_lock_of_command
            from health_assets.pipeline.publishing import publish_if_configured
            from health_assets.pipeline.resource import Pipeline
            from health_assets.systems.pruning import prune_old_hours
        asked = {"older_than_days": older_than_days or settings.keep_days, "warehouse": warehouse_name(settings)}
        with (
            console.status("dropping"),
            audited(settings, "prune", **asked),
            write_lock_of_command(settings, say) as write_lock,
        ):
            pruned = prune_old_hours(Pipeline(settings=settings, write_lock=write_lock), older_than_days)
        print_pruned(console, pruned)
        publish_if_configured(settings)


@app.command()
def demo(
    folder: Annotated[
        Path, typer.Option(help="Folder for the sample logs and their warehouse; with --mine data/mine by default.")
    ] = DEMO_FOLDER,
    spark: Annotated[
        bool, typer.Option("--spark", help="Let a Spark make the tables, which this command starts on this machine.")
    ] = False,
    mine: Annotated[
        bool, typer.Option("--mine", help="Show the sessions of the coding agents of this computer instead.")
    ] = False,
) -> None:
    """Make sample logs of a small fleet that end now, materialize them, and show the fleet's health."""
    from health_assets.cli.demo import Demo
    from health_assets.cli.local_spark import local_spark
    from health_assets.cli.own_sessions import OwnSessions, show_sessions
    from health_assets.core.settings import load_settings

    if mine:
        with readable_errors():
            show_sessions(OwnSessions(Path("data/mine") if folder == DEMO_FOLDER else folder))
        return
    with readable_errors(), local_spark() if spark else nullcontext() as cluster:
        made = Demo(folder)
        hours = made.make_samples(floor_hour(datetime.now(UTC)))
        console.print(f"sample logs of a fleet are in {made.raw}, its targets in {made.targets}", soft_wrap=True)
        os.environ.update(made.environment(cluster))  # for Dagster, too: `dev` shows the run
        materialize_hours(load_settings(), hours, time.monotonic())


@app.command()
def dev(
    demo: Annotated[
        bool | None, typer.Option("--demo/--own", help="Show the demo, or logs of your own; by default these, if any.")
    ] = None,
    folder: Annotated[Path, typer.Option(help="Folder of the demo.")] = Path("data/demo"),
    host: Annotated[str, typer.Option(help="Name or address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.", min=1, max=65535)] = 3000,
) -> None:
    """Start Dagster's page with its schedules and sensors, for logs of your own or else for the demo."""
    from health_assets.cli.demo import Demo
    from health_assets.cli.dev import WHOLE_LINEAGE, command, replace_process, what_to_show, with_home
    from health_assets.core.settings import load_settings

    with readable_errors():
        shown_here = what_to_show(load_settings(), Demo(folder), os.environ, is_demo_wanted=demo)
        environment = with_home({**os.environ, **shown_here.environment})
        console.print(f"{shown_here.sentence}: http://{host}:{port} (Ctrl-C stops)", soft_wrap=True)
        console.print(f"the whole lineage: http://{host}:{port}{WHOLE_LINEAGE}", soft_wrap=True)
        if not shown_here.environment and (told := _report_unseen(environment)):
            console.print(told, soft_wrap=True, markup=False, highlight=False)
        sys.stdout.flush()
        replace_process(command(host, port), environment)


def _report_unseen(environment: Mapping[str, str]) -> str | None:
    """Tell the Dagster of an environment of what was materialized without it; a sentence, if that is anything."""
    with console.status("looking for what Dagster does not know"), without_collections():
        from health_assets.cli.dagster_history import report_unseen_here
        from health_assets.core.settings import load_settings

        os.environ.update(environment)
        return report_unseen_here(load_settings(), datetime.now(UTC))


@app.command()
def migrate(warehouse: WarehouseOption = None) -> None:
    """Make the tables of a warehouse, or bring those of an older one up to this program's version."""
    from health_assets.warehouse.location import is_postgres, ledger_of

    with readable_errors():
        settings = settings_of(None, None, warehouse)
        with audited(settings, "migrate", warehouse=warehouse_name(settings)):
            if is_postgres(account := ledger_of(settings)):
                from health_assets.warehouse.migrations import migrate as migrate_schema

                migrate_schema(account, settings.lock_timeout_s)
            else:
                from health_assets.warehouse.store import Warehouse

                with Warehouse.of(settings).write():  # which does it by itself
                    pass
        from health_assets.schema.catalog import SCHEMA_VERSION

        console.print(f"the warehouse has version {SCHEMA_VERSION}, that of this program")


EXIT_CODES = {"proceed": 0, "caution": 3, "avoid": 4, "unknown": 5}
"""Exit codes of `check`; 1 is an error and 2 a wrong command line, as for every command."""
STRICT_CODES = {"invalid": 6, "http_error": 7}
NO_ANSWER = 8
"""Exit codes of `check --strict` by the outcome of asking."""
NOT_SIGNED = 9
"""Exit code of `check --signed` where no signature of the document holds."""


PrivateOption = Annotated[
    bool, typer.Option("--allow-private", help="Ask private addresses too (HEALTH_ALLOW_PRIVATE_ADDRESSES).")
]


@app.command()
def check(
    url: Annotated[str, typer.Argument(help="The agent's address, or that of its health document.")],
    timeout_s: Annotated[float, typer.Option(help="Most seconds that the whole answer may take.")] = 10.0,
    previous_status: Annotated[str | None, typer.Option(help="The agent's status when it was last asked.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the advice as JSON.")] = False,
    allow_private: PrivateOption = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Validate: exit with 6, 7 or 8 where there is no flawless document.")
    ] = False,
    signed: Annotated[
        bool, typer.Option("--signed", help="Verify the document's signature: exit with 9 where none holds.")
    ] = False,
    key_id: Annotated[
        str | None, typer.Option("--key-id", help="With --signed: thumbprint of the key that must have signed it.")
    ] = None,
) -> None:
    """Ask an agent for its health, and print what that means for whoever wants to use it.

    Exit code: 0 proceed, 3 proceed with caution, 4 avoid, 5 unknown; 1 for an error, 2 for a wrong command line. With
    --strict also 6 for a document with faults or members that the draft does not know, 7 for an HTTP error, 8 for no
    answer; with --signed 9 where no signature of the document holds.
    """
    from health_assets.consumer import advise, display, fetch_health, signatures
    from health_assets.core.settings import load_settings

    with readable_errors():
        is_allowed = allow_private or load_settings().allow_private_addresses
        answer, signature = (
            signatures.fetch_signed(url, key_id=key_id, timeout_s=timeout_s, allow_private=is_allowed)
            if signed or key_id
            else (fetch_health(url, timeout_s=timeout_s, allow_private=is_allowed), None)
        )
        advice = advise(answer, previous_status=previous_status)
        if as_json:
            typer.echo(display.as_json(advice, signature))
        else:
            display.print_advice(console, advice, is_strict=strict)
            if signature is not None:
                console.print(display.signature_text(signature), soft_wrap=True)
    is_unsigned = signature is not None and signature.fault is not None
    raise typer.Exit(
        (_strict_code(answer) if strict else None) or (NOT_SIGNED if is_unsigned else EXIT_CODES[advice.kind])
    )


def _strict_code(answer: "Answer") -> int | None:
    """The exit code of `check --strict` where an answer is no flawless document; None where it is one."""
    if answer.outcome == "valid":
        return STRICT_CODES["invalid"] if answer.unknown_members else None
    return STRICT_CODES.get(answer.outcome, NO_ANSWER)


@app.command()
def survey(
    registry: Annotated[Path | None, typer.Option(help="YAML list of agents to ask (HEALTH_REGISTRY).")] = None,
    warehouse: WarehouseOption = None,
    allow_private: PrivateOption = False,
) -> None:
    """Ask every agent of a registry for its health now, keep the answers, and print them by platform."""
    from health_assets.systems.survey.surveyed_agents import load_registry

    with readable_errors():
        settings = settings_of(None, None, warehouse)
        if allow_private:
            settings = settings.model_copy(update={"allow_private_addresses": True})
        path = registry or settings.registry
        if path is None:
            raise HealthAssetsError("no registry is named; use --registry or HEALTH_REGISTRY")
        agents = load_registry(path)
        with audited(settings, "survey", registry=str(path), warehouse=warehouse_name(settings)):
            _survey(settings, agents)
        from health_assets.pipeline.publishing import publish_if_configured

        publish_if_configured(settings)


@app.command()
def serve(
    host: Annotated[
        str | None, typer.Option(help="Name or address to listen on (HEALTH_SERVE_HOST); by default 127.0.0.1.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(help="Port to listen on (HEALTH_SERVE_PORT), by default 8080; 0 takes any.", min=0, max=65535),
    ] = None,
    warehouse: WarehouseOption = None,
    targets: TargetsOption = None,
    host_agent: Annotated[
        str | None, typer.Option(help="Agent whose document is the host's own (HEALTH_HOST_AGENT).")
    ] = None,
    tls_cert: Annotated[
        Path | None, typer.Option(help="Certificate chain in PEM, to speak HTTPS (HEALTH_SERVE_TLS_CERT).")
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option(help="Its private key, unless it is in the same file (HEALTH_SERVE_TLS_KEY).")
    ] = None,
) -> None:
    """Serve every agent's health document and score over HTTP, from memory."""
    from health_assets.apps.serving.server import serve as serve_until_stopped

    def tell(address: str) -> None:
        console.print(f"serving health documents on {address}, what there is on {address}/docs (Ctrl-C stops)")

    with readable_errors():
        settings = settings_of(None, targets, warehouse)
        flags = {
            "host_agent": host_agent, "serve_host": host, "serve_port": port,
            "serve_tls_cert": tls_cert, "serve_tls_key": tls_key,
        }  # fmt: skip
        settings = settings.model_copy(update={name: value for name, value in flags.items() if value is not None})
        if settings.serve_tls_key is not None and settings.serve_tls_cert is None:
            raise HealthAssetsError("--tls-key needs --tls-cert, the certificate that it belongs to")
        _require_targets(settings)
        serve_until_stopped(
            settings, settings.serve_host, settings.serve_port, tell, settings.serve_tls_cert, settings.serve_tls_key
        )


@app.command()
def mcp(
    role: Annotated[
        McpRole, typer.Option(help="What the client may do: read, or operate, which silences and sees personal agents.")
    ] = "read",
    warehouse: WarehouseOption = None,
    targets: TargetsOption = None,
) -> None:
    """Answer a coding agent or another MCP client on standard input and output, from the warehouse."""
    from health_assets.apps.serving.mcp_server.backend import NO_SDK
    from health_assets.cli.alerts_commands import current_user

    with readable_errors():
        settings = settings_of(None, targets, warehouse)
        _require_targets(settings)
        try:
            from health_assets.apps.serving.mcp_server.over_stdio import serve_stdio
        except ModuleNotFoundError as error:
            raise HealthAssetsError(NO_SDK) from error
        serve_stdio(settings, role, current_user(), say)


@app.command()
def collect(
    host: Annotated[
        str | None, typer.Option(help="Name or address to listen on (HEALTH_COLLECT_HOST); by default 127.0.0.1.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(help="Port to listen on (HEALTH_COLLECT_PORT), by default 4318; 0 takes any.", min=0, max=65535),
    ] = None,
    raw: RawOption = None,
    tls_cert: Annotated[
        Path | None, typer.Option(help="Certificate chain in PEM, to speak HTTPS (HEALTH_COLLECT_TLS_CERT).")
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option(help="Its private key, unless it is in the same file (HEALTH_COLLECT_TLS_KEY).")
    ] = None,
) -> None:
    """Take OpenTelemetry's traces and logs over HTTP, and write them to files below the raw root."""
    with readable_errors():
        from health_assets.apps.collecting.server import collect as collect_until_stopped

        settings = settings_of(raw, None, None)
        flags = {"collect_host": host, "collect_port": port, "collect_tls_cert": tls_cert, "collect_tls_key": tls_key}
        settings = settings.model_copy(update={name: value for name, value in flags.items() if value is not None})
        if settings.collect_tls_key is not None and settings.collect_tls_cert is None:
            raise HealthAssetsError("--tls-key needs --tls-cert, the certificate that it belongs to")
        collect_until_stopped(settings, lambda address: console.print(f"collecting on {address} (Ctrl-C stops)"), say)


@tokens_app.command("new")
def new_token(
    role: Annotated[str, typer.Option(help="What it may do: documents, read or operate.")],
    name: Annotated[
        str | None, typer.Option(help="Name by which logs call its holder; by default the role and a number.")
    ] = None,
    team: Annotated[
        list[str] | None, typer.Option(help="Team whose agents it sees, again for more; all agents by default.")
    ] = None,
    days: Annotated[int | None, typer.Option(help="Days until it expires; never by default.", min=1, max=3660)] = None,
) -> None:
    """Make a token of the endpoint: print it, this once, and the lines to keep, from which it does not follow."""
    from health_assets.apps.serving import tokens
    from health_assets.core.settings import load_settings

    with readable_errors():
        expires = datetime.now(UTC).replace(microsecond=0) + timedelta(days=days) if days else None
        secret, kept = tokens.new_token(name or tokens.some_name(role), role, team or (), expires)
        with audited(load_settings(), "token new", **kept.model_dump(mode="json")):
            typer.echo(f"the token, which is shown this once: {secret}")
            typer.echo(f"to keep in the file of HEALTH_TOKENS_FILE:\n\ntokens:\n{kept.lines()}")


def _require_targets(settings: "Settings") -> None:
    """Refuse a targets file that cannot be used.

    Raises:
        HealthAssetsError: it cannot.
    """
    from health_assets.core.targets import load_targets

    load_targets(settings.targets)


def _survey(settings: "Settings", agents: Sequence["RegisteredAgent"]) -> None:
    with console.status("loading"):
        from health_assets.systems.survey import surveying
        from health_assets.systems.survey.report import print_block, probing_bar
        from health_assets.warehouse.store import Warehouse

    with probing_bar(console, len(agents)) as on_probe:
        done = surveying.survey(settings, agents, on_probe=on_probe)
    console.print(f"{done}.")
    this_hour = floor_hour(datetime.now(UTC))
    with Warehouse.of(settings).write() as session:
        surveying.summarise(session, done.hours)
        # where nobody was due, the last survey is of this hour or the one before
        for hours in map(HourRange.of, done.hours) if done.hours else [HourRange(this_hour - HOUR, this_hour + HOUR)]:
            print_block(console, session, hours)


if __name__ == "__main__":
    app()
