"""Dagster's page on this machine, as `health-assets dev` starts it: for the user's own logs, or else for the demo.

What belongs here: which of the two, the command that shows it, and Dagster's home in a folder that has none of its own.
What does not: where a demo has what (`demo`).

`instance/` has the `dagster.yaml` and the `workspace.yaml` of the project's root, for those who installed a wheel.
"""

import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from dotenv import dotenv_values

from health_assets.cli.dagster_home import CONFIGURATION, HOME, home_here
from health_assets.cli.demo import Demo
from health_assets.core.errors import HealthAssetsError
from health_assets.core.raw_roots import shown
from health_assets.core.settings import Settings
from health_assets.core.systems import SYSTEM_NAMES

PLACES = ("HEALTH_RAW", "HEALTH_TARGETS", "HEALTH_WAREHOUSE")
"""Settings that say where logs and scores are; whoever sets one means logs of their own."""
WORKSPACE = "workspace.yaml"
INSTANCE = Path(__file__).with_name("instance")
GROUPS = ("raw_records", *SYSTEM_NAMES)
WHOLE_LINEAGE = "/asset-groups?expanded=" + ",".join(f"global@global:{group}" for group in GROUPS)
"""The page of the lineage with all groups open; Dagster opens it with all closed, where there is more than one."""
QUIET = "ignore:Function `dev_command` is superseded"
"""Dagster recommends another program for its own scaffolds; nothing that whoever starts us could act on."""


@dataclass(frozen=True)
class Shown:
    """A way to start Dagster.

    Args:
        sentence: the logs that it shows, and why, in a sentence.
        environment: variables to set besides those that there are.
    """

    sentence: str
    environment: Mapping[str, str]


def what_to_show(
    settings: Settings, demo: Demo, environment: Mapping[str, str], *, is_demo_wanted: bool | None = None
) -> Shown:
    """Logs of the user's own wherever there is a sign of them, else the demo.

    A sign is a setting that names a place, in the environment or in the file `.env` (which Dagster reads too), or
    something at the default places.

    Args:
        settings: the settings of the environment.
        demo: the demo, made or not.
        environment: the environment's variables.
        is_demo_wanted: the user's choice; None leaves it to the signs.

    Raises:
        HealthAssetsError: the demo is asked for and was not made, or `.env` would show other logs in it.
    """
    from_file = [name for name in PLACES if dotenv_values(".env").get(name)]
    if is_demo_wanted and not demo.is_there:
        raise HealthAssetsError(f"there is no demo in {demo.folder}; make it with `make demo` or `health-assets demo`")
    if is_demo_wanted and from_file:
        raise HealthAssetsError(f"the file .env sets {from_file[0]}, which Dagster would take instead of the demo's")
    named = [name for name in PLACES if environment.get(name)] + from_file
    is_own = bool(named) or Path(str(settings.raw)).exists() or Path(settings.warehouse).exists()
    if is_demo_wanted or (is_demo_wanted is None and demo.is_there and not is_own):
        return Shown(
            f"Dagster shows the demo in {demo.folder}; for logs of your own set HEALTH_RAW",
            demo.environment() | {name: environment[name] for name in ("HEALTH_SCHEDULES",) if environment.get(name)},
        )
    if not is_own and not demo.is_there:
        return Shown("There are no logs yet; set HEALTH_RAW to where they are, or make a demo with `make demo`", {})
    besides = "; `health-assets dev --demo` shows the demo" if demo.is_there else ""
    root = "those that .env names" if from_file else f"those below {shown(settings.raw)}"
    return Shown(f"Dagster shows your own logs, {root}{besides}", {})


def command(host: str, port: int) -> list[str]:
    """The command that starts Dagster's page and daemon for this folder's workspace, or else the package's own."""
    workspace = WORKSPACE if Path(WORKSPACE).exists() else str(INSTANCE / WORKSPACE)
    target = ["--host", host, "--port", str(port), "--workspace", workspace]
    return [sys.executable, "-W", QUIET, "-m", "dagster", "dev", *target]


def replace_process(arguments: list[str], environment: Mapping[str, str]) -> NoReturn:
    """Become a program that SIGINT ends, also where this process ignores it.

    A shell starts its background jobs so, and Dagster treats SIGTERM as it treats SIGINT.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.execve(arguments[0], arguments, environment)


def with_home(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment with a home for Dagster, which is made where nothing says one.

    The commands that are run in this folder use it, too, from then on (`home_here`).

    Raises:
        HealthAssetsError: the home cannot be written.
    """
    if home := home_here(environment):
        return {**environment, "DAGSTER_HOME": home}
    if Path(CONFIGURATION).exists():
        return dict(environment)
    try:
        HOME.mkdir(parents=True, exist_ok=True)
        (HOME / CONFIGURATION).write_bytes((INSTANCE / CONFIGURATION).read_bytes())
    except OSError as error:
        raise HealthAssetsError(f"cannot write Dagster's configuration in {HOME}: {error.strerror}") from error
    return {**environment, "DAGSTER_HOME": str(HOME.resolve())}
