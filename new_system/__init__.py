"""Writes the files of a new scoring system, for a developer who then makes them their own."""
