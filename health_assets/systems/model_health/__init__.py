"""Rolling model health (source 4), and the model to fall back to."""
