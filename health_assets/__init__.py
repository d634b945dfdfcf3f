"""Health Assets: the health of every AI agent, every hour, from its logs."""

__version__ = "0.1.0"
