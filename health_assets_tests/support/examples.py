"""How many examples a property is tried with: few by default, and as many as it deserves at night.

What belongs here: the choice between the two numbers. What does not: profiles, which `conftest` registers.
"""

from hypothesis import settings

AT_NIGHT = ("nightly", "explore")
"""Profiles that take their time; the environment variable HYPOTHESIS_PROFILE names one."""


def example_count(usual: int, nightly: int) -> int:
    """Give the number of examples of the profile that the tests run with."""
    return nightly if settings.get_current_profile_name() in AT_NIGHT else usual


def tried_with(usual: int, nightly: int) -> settings:
    """Give the settings of a property that is tried with so many examples."""
    return settings(max_examples=example_count(usual, nightly))
