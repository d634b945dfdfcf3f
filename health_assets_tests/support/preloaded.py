"""The imports of a run, for the process that others are forked from: no test imports this."""

import gc

import health_assets.cli.run_summary
import health_assets.cli.running  # noqa: F401
from health_assets.quality.validation import import_great_expectations

import_great_expectations()
gc.freeze()
