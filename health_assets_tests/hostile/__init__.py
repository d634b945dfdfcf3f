"""Hostile runs that take longer than a test may: kills in the middle of a write, and requests that no client should send.

`python -m health_assets_tests.hostile` (or `make hostile`) runs them, as many as wanted; a few of each are tests.
"""
