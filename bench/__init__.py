"""The benchmark: how the product's time compares with that of simpler things, in ratios measured in one run.

`data` makes the logs and warehouses, `tasks` holds what is timed, `measure` times it in fresh processes, `comparisons`
puts the rows together and `report` shows them. `pandas_backfill` and `bare_sql` are what the product is compared with.
"""
