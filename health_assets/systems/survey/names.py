"""Names of the survey's summary, and words for the outcomes of agents that gave no document.

What belongs here: plain names, so that programs without an engine can import them. What does not: the summary's formula
(`survey_summary`).
"""

ALL_PLATFORMS = "all"
"""The name under which the summary counts the whole registry."""
COUNTS = ("agents", "responsive", "healthy")
WITHOUT_DOCUMENT = {
    "invalid": "no valid document",
    "http_error": "HTTP error",
    "timeout": "too slow",
    "unreachable": "unreachable",
    "refused": "redirected elsewhere",
    "private": "at a private address",
}
"""Outcomes of agents without a document, each in words."""
