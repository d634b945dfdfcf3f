"""Targets suggested from history: what was usual of each agent, as a YAML file for people to review.

What belongs here: days read from components, the statistics on them, and the YAML. What does not: what a target means
(`core.targets`), and printing (`apps.report.targets_block`).
"""
