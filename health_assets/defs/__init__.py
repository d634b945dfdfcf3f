"""The Dagster layer: assets, checks, schedules and sensors that call the rest and compute nothing themselves."""
