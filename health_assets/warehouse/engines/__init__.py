"""Databases: a folder each, and nowhere else a word of their dialects."""
