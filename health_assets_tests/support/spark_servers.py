"""Spark Connect servers for tests: LakeSail's in this process, and Apache Spark's in one of its own, where one is.

Sail is a Spark in one wheel and answers in tenths of a second. Apache Spark takes seconds for the same, so what it is
asked is asked at night.
"""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from health_assets.cli.local_spark import local_spark as sail
from health_assets_tests.support.ports import free_port
from health_assets_tests.support.projects import REPOSITORY

__all__ = ["apache_spark", "needs_apache_spark", "sail"]

needs_apache_spark = pytest.mark.skipif(
    shutil.which("java") is None or not os.getenv("SPARK_HOME"),
    reason="Apache Spark needs Java, and SPARK_HOME to say where it is",
)
START_S = 120
END_S = 20
ATTEMPTS = 4
"""So often a server is started: another process may have taken its port meanwhile."""
LOG_CHARACTERS = 4_000
SAIL_ENVIRONMENT = {"RUST_LOG": "error", "PYTHONPATH": str(REPOSITORY)}
"""It says each thing that it does, and calls our functions in this Python."""


@contextmanager
def apache_spark(folder: Path) -> Iterator[str]:
    """The URL of a local Apache Spark, the one at SPARK_HOME, which runs our functions in the Python of these tests."""
    with apache_spark_process(folder) as (url, _):
        yield url


@contextmanager
def sail_process(folder: Path) -> Iterator[tuple[str, int]]:
    """The URL of a Sail in a process of its own, and the number of that."""
    with _server(sail_command, folder, {**os.environ, **SAIL_ENVIRONMENT}) as (port, number):
        yield f"sc://127.0.0.1:{port}", number


def sail_command(port: int) -> list[str]:
    """The command line of a Sail."""
    return [str(Path(sys.executable).with_name("sail")), "spark", "server", "--port", str(port)]


@contextmanager
def apache_spark_process(
    folder: Path, master: str = "local[2]", page_port: int | None = None, own: Mapping[str, str] | None = None
) -> Iterator[tuple[str, int]]:
    """The same of an Apache Spark, with the number of its process.

    Args:
        folder: for its log.
        master: `local[cores]`, or `local-cluster[workers,cores,megabytes]`.
        page_port: port of its web page; none without one.
        own: settings of its own.
    """
    environment = {
        **os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": str(REPOSITORY),
    }  # fmt: skip

    def command(port: int) -> list[str]:
        configuration = {
            "spark.connect.grpc.binding.port": port, "spark.sql.shuffle.partitions": "2",
            **({"spark.ui.enabled": "false"} if page_port is None else {"spark.ui.port": page_port}), **(own or {}),
        }  # fmt: skip
        words = [str(Path(os.environ["SPARK_HOME"], "bin", "spark-submit")), "--master", master]
        for name, value in configuration.items():
            words += ["--conf", f"{name}={value}"]
        return [*words, "--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]

    with _server(command, folder, environment) as (port, number):
        yield f"sc://127.0.0.1:{port}", number


@contextmanager
def _server(
    command: Callable[[int], list[str]], folder: Path, environment: Mapping[str, str]
) -> Iterator[tuple[int, int]]:
    """The port of a server that listens, and the number of its process."""
    path = folder / "spark.log"
    for _ in range(ATTEMPTS):
        port = free_port()
        with path.open("ab") as log, subprocess.Popen(
            command(port), env=environment, cwd=folder, stdout=log, stderr=log
        ) as process:  # fmt: skip
            try:
                if _listens_in_time(process, port):
                    yield port, process.pid
                    return
            finally:
                process.terminate()
                try:
                    process.wait(END_S)
                except subprocess.TimeoutExpired:  # as in the background of a shell, which ignores signals
                    process.kill()
    raise AssertionError(f"the server did not start:\n{path.read_text(errors='replace')[-LOG_CHARACTERS:]}")


def _listens_in_time(process: subprocess.Popen[bytes], port: int) -> bool:
    end = time.monotonic() + START_S
    while time.monotonic() < end and process.poll() is None:
        if listens(port):
            return True
        time.sleep(0.2)
    return False


def listens(port: int) -> bool:
    """Whether somebody listens on a port of this machine."""
    with socket.socket() as probe:
        return not probe.connect_ex(("127.0.0.1", port))
