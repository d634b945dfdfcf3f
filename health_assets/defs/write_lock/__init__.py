"""The write lock: a lease in Dagster's own store. Any host can end the lease of a holder that is silent."""
