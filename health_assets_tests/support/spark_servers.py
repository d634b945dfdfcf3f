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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from health_assets.cli.local_spark import local_spark as sail
from health_assets_tests.support.projects import REPOSITORY

__all__ = ["apache_spark", "needs_apache_spark", "sail"]

needs_apache_spark = pytest.mark.skipif(
    shutil.which("java") is None or not os.getenv("SPARK_HOME"),
    reason="Apache Spark needs Java, and SPARK_HOME to say where it is",
)
START_S = 120
END_S = 20
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
    port = free_port()
    with _server(sail_command(port), folder, {**os.environ, **SAIL_ENVIRONMENT}, port) as number:
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
    port = free_port()
    environment = {
        **os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": str(REPOSITORY),
    }  # fmt: skip
    configuration = {
        "spark.connect.grpc.binding.port": port, "spark.sql.shuffle.partitions": "2",
        **({"spark.ui.enabled": "false"} if page_port is None else {"spark.ui.port": page_port}), **(own or {}),
    }  # fmt: skip
    command = [Path(os.environ["SPARK_HOME"], "bin", "spark-submit"), "--master", master]
    for name, value in configuration.items():
        command += ["--conf", f"{name}={value}"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    with _server(command, folder, environment, port) as number:
        yield f"sc://127.0.0.1:{port}", number


@contextmanager
def _server(command: Sequence[str | Path], folder: Path, environment: Mapping[str, str], port: int) -> Iterator[int]:
    with (folder / "spark.log").open("wb") as log, subprocess.Popen(
        command, env=environment, cwd=folder, stdout=log, stderr=log
    ) as process:  # fmt: skip
        try:
            _wait(process, port)
            yield process.pid
        finally:
            process.terminate()
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:  # as where tests run in the background of a shell, which ignores signals
                process.kill()


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


def _wait(process: subprocess.Popen[bytes], port: int) -> None:
    end = time.monotonic() + START_S
    while time.monotonic() < end and process.poll() is None:
        if listens(port):
            return
        time.sleep(0.2)
    raise AssertionError("the server did not start; spark.log says why")


def listens(port: int) -> bool:
    """Whether somebody listens on a port of this machine."""
    with socket.socket() as probe:
        return not probe.connect_ex(("127.0.0.1", port))
