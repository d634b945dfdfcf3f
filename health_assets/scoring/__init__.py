"""The formulas: pure ibis expressions from tables to tables, without Dagster, database or clock.

One module per score. A module's functions take and give ibis tables, so that the same expression runs wherever the data
lives, and its docstring names the section of the source document that it implements.
"""
