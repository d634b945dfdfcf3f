"""Mutated input for every parser: what is read must be accounted for, whatever it is.

`mutations` damages samples, `targets` holds a target for each parser: its samples, and what must be true of what the
product makes of them. `python -m health_assets_tests.fuzz` (or `make fuzz`) runs targets for as long as wanted; a bounded
part of it is a test of the ordinary suite.
"""
