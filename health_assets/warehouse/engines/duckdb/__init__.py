"""DuckDB: one file, for one machine."""
