"""The safety judge (source 2): a model is asked what evaluation runs violated."""
