"""The columns that the reader gives: in one order in every process, on which the remembered SQL depends."""

import os
import subprocess
import sys


def columns_in_a_process(hash_seed: int) -> str:
    code = "from health_assets.logs import reader; print(list(reader._shaped_schema()))"
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True
    ).stdout


def test_columns_of_records_have_one_order_in_every_process() -> None:
    assert columns_in_a_process(1) == columns_in_a_process(2)
