"""The reports that commands print: the blocks of all systems, one agent's report, alerts, progress.

What belongs here: printing what the tables hold. What does not: the block of one system (its own `report`).
"""
