"""Entry point for Dagster: loads the definitions and decides nothing."""

from health_assets.core import json_logs
from health_assets.defs.build import build_definitions

if json_logs.are_wanted():
    json_logs.log_json()
defs = build_definitions()
