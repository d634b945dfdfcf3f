"""The SQL warehouse: its tables, how they are opened, read and replaced by the hour."""
