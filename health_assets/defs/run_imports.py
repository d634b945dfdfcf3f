"""The imports of a run, for the process that runs are forked from; nobody else imports this.

What belongs here: modules that every run needs, and nothing that depends on settings, the time or the logs, for a run
is forked hours later. No import here may start a thread that a fork would leave behind; a test holds that. What does
not: who forks when (`run_processes`).
"""

import atexit
import gc

import health_assets.defs.build
import health_assets.defs.event_storage
import health_assets.systems.reliability.trajectories
import health_assets.warehouse.engines.duckdb.store  # noqa: F401
from health_assets.quality.evaluation import import_great_expectations

import_great_expectations()
gc.collect()
gc.freeze()  # collections of the runs pass over all of this, and so leave its memory shared
atexit.register(gc.unfreeze)  # else libraries tell at the end of leaks that there are not
