"""A Spark of this process, to try a warehouse on a cluster without one.

What belongs here: starting and stopping it. What does not: a warehouse on it (`warehouse.engines.spark`).
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from health_assets.core.errors import HealthAssetsError


@contextmanager
def local_spark() -> Iterator[str]:
    """The URL of a Spark Connect server of this process, LakeSail's, which needs no Java.

    Raises:
        HealthAssetsError: the extra is not installed.
    """
    try:
        from pysail.spark import SparkConnectServer
    except ImportError as error:
        raise HealthAssetsError("a Spark of this machine comes with pip install 'health-assets[spark]'") from error
    os.environ.setdefault("RUST_LOG", "error")  # it says each thing that it does
    server = SparkConnectServer(port=0)
    server.start(background=True)
    host, port = server.listening_address
    try:
        yield f"sc://{host}:{port}"
    finally:
        server.stop()
