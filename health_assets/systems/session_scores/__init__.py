"""Session scores (source 5): risks of traces, and what they add up to in a session."""
