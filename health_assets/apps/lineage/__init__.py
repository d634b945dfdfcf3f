"""What a run tells catalogs of data: its steps as runs of OpenLineage."""
