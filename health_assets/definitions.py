"""Entry point for Dagster: loads the definitions and decides nothing."""

import dagster as dg

from health_assets.core import json_logs
from health_assets.defs.build import build_definitions
from health_assets.defs.run_processes import fork_runs

if json_logs.are_wanted():
    json_logs.log_json()
fork_runs()


@dg.definitions
def defs() -> dg.Definitions:
    """The definitions of the environment's settings; Dagster calls this when it loads the code location."""
    return build_definitions()
