"""The evidence of lost points: which executions cost what, of the Agent Health Model (source 1)."""
