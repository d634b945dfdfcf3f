"""Applications over the tables: the endpoint, alerts, the judge, reports, the demo.

What belongs here: programs over the tables. What does not: scores (`systems`), Dagster (`defs`), commands (`cli`).
"""
