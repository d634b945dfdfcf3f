"""Published tables: the warehouse's tables as Parquet files in a folder, for readers that never open the warehouse."""
