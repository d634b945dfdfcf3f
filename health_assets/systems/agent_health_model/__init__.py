"""The Agent Health Model (source 1): scores and states of agents, and the fleet's."""
