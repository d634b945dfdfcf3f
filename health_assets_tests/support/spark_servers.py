"""Spark Connect servers for tests: LakeSail's in this process, and Apache Spark's in one of its own, where Java is.

Sail is a Spark in one wheel and answers in tenths of a second. Apache Spark takes seconds for the same, so what it is
asked is asked at night.
"""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from health_assets.cli.local_spark import local_spark as sail
from health_assets_tests.support.projects import REPOSITORY

__all__ = ["apache_spark", "needs_java", "sail"]

needs_java = pytest.mark.skipif(shutil.which("java") is None, reason="Apache Spark needs Java")
START_S = 120


@contextmanager
def apache_spark(folder: Path) -> Iterator[str]:
    """The URL of a local Apache Spark, which runs our functions in the Python of these tests."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        **os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": str(REPOSITORY),
    }  # fmt: skip
    command = [sys.executable, "-c", _SERVER, str(port)]
    with (folder / "spark.log").open("wb") as log, subprocess.Popen(
        command, env=environment, cwd=folder, stdin=subprocess.PIPE, stdout=log, stderr=log
    ) as process:  # fmt: skip
        try:
            _wait(process, port)
            yield f"sc://127.0.0.1:{port}"
        finally:
            process.communicate()  # the end of its input is the end of its work


_SERVER = """
import sys
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession
conf = SparkConf().setMaster("local[2]").set("spark.plugins", "org.apache.spark.sql.connect.SparkConnectPlugin")
conf.set("spark.connect.grpc.binding.port", sys.argv[1]).set("spark.ui.enabled", "false")
conf.set("spark.sql.shuffle.partitions", "2")
context = SparkContext(conf=conf)
SparkSession(context)
sys.stdin.read()
context.stop()
"""


def _wait(process: subprocess.Popen[bytes], port: int) -> None:
    end = time.monotonic() + START_S
    while time.monotonic() < end and process.poll() is None:
        with socket.socket() as probe:
            if not probe.connect_ex(("127.0.0.1", port)):
                return
        time.sleep(0.2)
    raise AssertionError("Apache Spark did not start; spark.log says why")
