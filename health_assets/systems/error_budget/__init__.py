"""Error budgets: how much of its allowed failures each agent has spent, and how fast."""
