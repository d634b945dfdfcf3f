"""Batches: what checks look at. Either rows of a table, as an ibis expression, or facts by hour, as a small frame.

What belongs here: building them, one module a system. What must be true of them is in `suites`.
"""
