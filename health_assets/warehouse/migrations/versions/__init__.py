"""The revisions, one module each, in the order of their numbers."""
