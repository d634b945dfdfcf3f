"""Releases for pipelines: comparisons as JSON, Markdown and JUnit, and whether a release may go on.

What belongs here: forms and the rules of the gate. What does not: the comparisons (`systems.release_comparison`).
"""
