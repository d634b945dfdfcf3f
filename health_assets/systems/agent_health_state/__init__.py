"""The Agent Health State (source 3): the quantities of an agent's health document."""
