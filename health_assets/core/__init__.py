"""The lowest layer, which every other may use: hours, errors, settings, targets, texts, files and processes.

What belongs here: what knows nothing of logs, tables or scores, and imports nothing else of this package.
"""
