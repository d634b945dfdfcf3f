"""What happens to an installation: processes are killed, servers restart, a disk is full for a while.

What belongs here: doing one of these, and saying in a sentence what was done. What does not: when (`__main__`), and what
must be true afterwards (`verdict`).
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime
from random import Random

from health_assets.core.hours import HOUR, KEY_FORMAT, floor_hour
from health_assets_tests.soak.installation import Installation
from health_assets_tests.soak.writer import HISTORY_HOURS

RUN_WAIT_S = 75.0
"""The sensor looks for late logs once a minute."""
BALLAST_BLOCK = b"\0" * (1 << 20)

Disturbance = Callable[[Installation, Random, float], str]


def kill_run(installation: Installation, random: Random, _: float) -> str:
    """Kill a run, at a random moment after it has begun."""
    end = time.monotonic() + RUN_WAIT_S
    while time.monotonic() < end:
        for process in installation.run_processes():
            time.sleep(random.uniform(0, 8))
            if process.is_running():
                for one in [*process.children(recursive=True), process]:
                    one.kill()
                return f"killed the run of process {process.pid}"
        time.sleep(0.2)
    return "no run to kill"


def kill_daemon(installation: Installation, random: Random, _: float) -> str:
    """Kill Dagster's daemon."""
    time.sleep(random.uniform(0, 5))
    installation.services["daemon"].send(signal.SIGKILL)
    return "killed the daemon"


def kill_code_server(installation: Installation, random: Random, _: float) -> str:
    """Kill the code server, with the runs below it, as the end of its container does."""
    time.sleep(random.uniform(0, 5))
    service = installation.services["code-server"]
    below = service.below()
    service.send(signal.SIGKILL)
    for process in below:
        if process.is_running():
            process.kill()
    return f"killed the code server and {len(below)} processes below it"


def kill_command_of_second_host(installation: Installation, random: Random, _: float) -> str:
    """Kill a command of another host while it waits or writes."""
    hour = floor_hour(datetime.now(UTC)) - random.randrange(1, HISTORY_HOURS) * HOUR
    hours = ["--from", f"{hour:{KEY_FORMAT}}", "--to", f"{hour + HOUR:{KEY_FORMAT}}"]
    command = installation.start_on_another_host("materialize", *hours)
    time.sleep(random.uniform(5, 25))
    is_over = command.poll() is not None
    if not is_over:
        os.killpg(command.pid, signal.SIGKILL)
    command.wait()
    return f"a second host's command {'ended by itself' if is_over else 'was killed'}"


def restart_postgres(installation: Installation, random: Random, _: float) -> str:
    """Restart PostgreSQL, in order or at once."""
    if "postgres" not in installation.services:
        return "no PostgreSQL to restart"
    how = random.choice([signal.SIGINT, signal.SIGQUIT])
    installation.services["postgres"].send(how)
    return f"restarted PostgreSQL by {how.name}"


def fill_disk(installation: Installation, _: Random, full_s: float) -> str:
    """Leave no byte of the disk for so many seconds."""
    if not installation.is_limited:
        return "this user may not mount a disk to fill"
    ballast = installation.disk / "ballast"
    try:
        end = time.monotonic() + full_s
        with ballast.open("wb", buffering=0) as file:
            while time.monotonic() < end:
                try:
                    file.write(BALLAST_BLOCK)
                except OSError:  # it is full; what others free is taken, too
                    time.sleep(0.2)
    finally:
        ballast.unlink()
    return f"the disk was full for {full_s:.0f} s"


DISTURBANCES: dict[str, Disturbance] = {
    "run": kill_run,
    "daemon": kill_daemon,
    "second host": kill_command_of_second_host,
    "postgres": restart_postgres,
    "code server": kill_code_server,
    "disk": fill_disk,
}


def has_unshare() -> bool:
    """Whether this user may give a process another host name."""
    return subprocess.run(["unshare", "--uts", "true"], capture_output=True, check=False).returncode == 0
