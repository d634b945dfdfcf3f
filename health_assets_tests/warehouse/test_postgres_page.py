"""The page on PostgreSQL is a script: its blocks are run, in their order, on real servers of several versions."""

import atexit
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.postgres_server import FAST, installed_programs, readable_programs, start_server
from health_assets_tests.support.projects import REPOSITORY, command_environment

PAGE = (REPOSITORY / "docs" / "postgresql.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(console|sql)\n(.*?)```", PAGE, re.S)
HOST = "db.example"
VERSIONS = (15, 16, 17)
PROGRAMS = installed_programs()  # now, while the environment has what tests may not see
ALL_SYSTEMS = "health-assets materialize --from 2026-06-07T00 --to 2026-06-08T00"
ONE_SYSTEM = "health-assets materialize --from 2026-06-07T00 --to 2026-06-07T01 --system agent_health_model"
BY_DAY = (max(PROGRAMS.keys() & {*VERSIONS}, default=VERSIONS[-1]), ONE_SYSTEM)
"""The newest version here and an hour of one system; by night all versions and, to the letter of the page, a day of all systems."""


@dataclass
class Server:
    """A server on which nothing was done yet, a folder for what the commands make, and what they materialize."""

    address: str
    folder: Path
    materialize: str

    def url(self, role: str) -> str:
        return f"postgresql://{role}@{self.address}/health"

    def query(self, role: str, statement: str) -> list[tuple]:
        with psycopg.connect(self.url(role), autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def run(self, kind: str, block: str) -> str:
        """Run a block of the page; its host is this server, and what it says on stdout is given back."""
        block = block.replace(HOST, self.address).replace(ALL_SYSTEMS, self.materialize)
        if kind == "sql":  # the first line says where
            shell, _, statements = block.removeprefix("-- ").partition("\n")
            return self._done(f"{shell} --set=ON_ERROR_STOP=1", statements)
        return self._done(block)

    def _done(self, script: str, given: str = "") -> str:
        raw = {"HEALTH_RAW": str(self.folder / "raw"), "DAGSTER_HOME": str(self.folder / "dagster")}
        path = os.pathsep.join([str(Path(sys.executable).parent), *map(str, _clients()), os.environ["PATH"]])
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            input=given,
            env=command_environment() | raw | {"PATH": path},
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
        assert "WARNING" not in done.stderr, done.stderr
        return done.stdout


def _clients() -> list[Path]:
    """Folders with a `psql`; any version speaks with any server here."""
    return [folder for folder in PROGRAMS.values() if (folder / "psql").exists()]


@pytest.fixture(
    params=[BY_DAY, *(pytest.param((one, ALL_SYSTEMS), marks=pytest.mark.nightly) for one in VERSIONS)],
    ids=lambda given: f"{given[0]}, {'all systems' if given[1] == ALL_SYSTEMS else 'one system'}",
)
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    version, materialize = request.param
    programs = PROGRAMS.get(version)
    if programs is None:
        pytest.skip(f"no PostgreSQL {version} here; HEALTH_TEST_POSTGRES_PROGRAMS may name its folder of programs")
    folder = Path(tempfile.mkdtemp(prefix="health-assets-postgres-"))  # where nobody may enter it, too
    atexit.register(shutil.rmtree, folder, ignore_errors=True)  # behind the server's end
    url = start_server(folder, FAST, readable_programs(programs, folder), "trust")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE ROLE postgres SUPERUSER LOGIN")
    (tmp_path / "raw").mkdir()
    (tmp_path / "dagster").mkdir()
    yield Server(urlsplit(url).netloc.rpartition("@")[2], tmp_path, materialize)


def test_the_page_makes_a_warehouse_that_its_owner_upgrades_its_writer_fills_and_its_reader_reads(
    server: Server,
) -> None:
    made = [line(execution(f"e{n}", "planner", START)) for n in range(3)]
    (server.folder / "raw" / "a.jsonl").write_text("\n".join(made), encoding="utf-8")
    said = [server.run(kind, block) for kind, block in BLOCKS if not block.startswith("pip install")]
    assert "planner" in said[-1], "the reader's question"
    assert sum(ALL_SYSTEMS in block for _, block in BLOCKS) == 1

    assert server.query("health_reader", "SELECT max(n) FROM agent_health") == [(3,)]
    for role, statement in (
        ("health_reader", "DELETE FROM agent_health"),
        ("health_reader", "CREATE TABLE mine (n int)"),
        ("health_writer", "TRUNCATE agent_health"),
        ("health_writer", "ALTER TABLE agent_health ADD mine int"),
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            server.query(role, statement)

    server.query("health_owner", "CREATE TABLE of_a_later_version (n int)")
    server.query("health_writer", "INSERT INTO of_a_later_version VALUES (7)")
    assert server.query("health_reader", "SELECT n FROM of_a_later_version") == [(7,)]
    server.run(*next((kind, block) for kind, block in BLOCKS if "health-assets migrate" in block))
    assert server.query("health_reader", "SELECT max(n) FROM agent_health") == [(3,)]


def test_the_page_names_every_version_that_it_is_run_on() -> None:
    assert f"on PostgreSQL {VERSIONS[0]}, {VERSIONS[1]} and {VERSIONS[2]}, where it finds them" in " ".join(
        PAGE.split()
    )
