"""The demo: a fleet of agents and the logs that it would have written."""
