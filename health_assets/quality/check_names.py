"""Names and limits of checks that commands put into words of their own; declaring them is `record_suites`'s."""

FEW_LINES_ARE_REJECTED = "few_lines_are_rejected"
MOST_REJECTED_SHARE = 0.05
