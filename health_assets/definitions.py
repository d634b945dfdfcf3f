"""Entry point for Dagster: loads the definitions and decides nothing."""

from health_assets.defs.build import build_definitions

defs = build_definitions()
