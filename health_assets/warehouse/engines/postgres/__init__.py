"""PostgreSQL: one schema of a database, for teams."""
