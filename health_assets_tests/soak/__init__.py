"""A soak test: a whole installation under a live writer and every disturbance that operators know, for as long as wanted.

`writer` writes logs as agents and logrotate do; `installation` runs PostgreSQL, Dagster's code server and its daemon,
and starts again what ended; `disturbances` kills, restarts and fills; `verdict` says whether the tables are what a clean
rebuild gives, and whether anything is stuck or grew.
"""
