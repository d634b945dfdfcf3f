"""Whose turn it is to write: a lease in Dagster's own store, which any host can end where its holder is silent."""
