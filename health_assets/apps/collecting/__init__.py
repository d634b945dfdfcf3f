"""The collector: OTLP over HTTP in, lines of OTLP-JSON in files below the raw root out.

What belongs here: the requests of OTLP/HTTP, and files that hold what was acknowledged. What does not: what a span
means (`logs`), and reading the files again (`pipeline`).
"""
