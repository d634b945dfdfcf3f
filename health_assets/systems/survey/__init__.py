"""The survey (source 3, appendix B): ask every agent of a registry for its health, politely, and keep what it answered.

What belongs here: the registry file, probing, and keeping probes in the warehouse. What does not: what an answer is
worth (`consumer`), the summary's formula (`survey_summary`) and Dagster (`defs.survey`).
"""
