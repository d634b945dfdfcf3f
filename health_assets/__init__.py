"""Health Assets: the health of every AI agent, every hour, from its logs."""

import time

BEGAN = time.monotonic()
"""When the process began to import this package, before all else that takes long."""

__version__ = "0.1.0"
