"""The way from logs to tables: which hours need what, and doing it. It knows no scheduler.

What belongs here: loading logs, assembling traces, what is late or stale, which hours to build, what is dropped, and
the form in which a system declares its assets. What does not: formulas (`systems`, `scoring`) and Dagster (`defs`).
"""
