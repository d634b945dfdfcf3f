"""The commands: what a person types, and a run in this process.

What belongs here: options, runs, what is said of them. What does not: anything that a program would want (`apps`).
"""
