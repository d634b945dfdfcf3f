"""Digests of all tables for a corpus of logs: a rebuilt pipeline must change no value."""
