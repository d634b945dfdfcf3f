"""Entry point for Dagster: loads the definitions and decides nothing."""

import dagster as dg

from health_assets.core import json_logs
from health_assets.defs.build import build_definitions

if json_logs.are_wanted():
    json_logs.log_json()


@dg.definitions
def defs() -> dg.Definitions:
    """The definitions of the environment's settings; Dagster calls this when it loads the code location."""
    return build_definitions()
