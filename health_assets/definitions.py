"""Entry point for Dagster: loads the definitions and decides nothing."""

from health_assets.core import json_logs
from health_assets.defs.build import build_definitions

if json_logs.are_wanted():
    json_logs.log_json()
# no function that Dagster calls later, though it has a decorator for one: a code server calls that as a run does, and
# `build_definitions` could not tell the two apart
defs = build_definitions()
