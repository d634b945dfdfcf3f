"""Data quality: Great Expectations suites for every table, how they are evaluated, and their history."""
