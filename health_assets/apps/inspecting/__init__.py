"""What a file of logs was taken for: its format, its records, what is ignored and what is rejected, and why."""
