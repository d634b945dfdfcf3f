"""Usage: tokens and cost by agent."""
