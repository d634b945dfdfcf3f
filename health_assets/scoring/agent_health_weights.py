"""Weights of the Agent Health Model's dimensions and their parts (source 1).

Plain numbers in a module of their own, so that who only explains a score need not import the compiler of the formulas.
"""

RELIABILITY_POINTS = 40
PERFORMANCE_POINTS = 20
STABILITY_POINTS = 20
OPERATIONAL_POINTS = 20

SUCCESS_SHARE = 0.7
FAILURE_SHARE = 0.3
SLA_SHARE = 0.6
TRIGGER_SHARE = 0.4
