"""The survey (source 3, appendix B): ask every agent of a registry for its health, politely, and keep what it answered.

What belongs here: the registry file, probing, and keeping probes in the warehouse. What does not: what an answer is
worth (`consumer`), the summary's formula (`survey_summary`) and Dagster (`defs.survey`).
"""

FORMULA_VERSION = "1.0"
"""Raise it with every change of a formula after which other values could come out (docs/formula-versions.md)."""
