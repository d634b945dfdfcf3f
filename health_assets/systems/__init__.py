"""The scoring systems, a folder each: tables, formulas, assets, expectations, and the block of the report.

What belongs in a folder: `tables` (one class a table), formulas (pure ibis expressions, each module with its source),
`assets` (what each table is made from), `expectations` and `batches` (what must be true, and what the checks look at)
and `report` (what the commands show); `names` where programs without an engine need some of its names. What does not:
another system's modules. A system names another's table, and reads it; what two systems compute alike is in `scoring`.
`core.systems` names the folders.
"""
