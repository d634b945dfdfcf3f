"""One small program per framework, each run by `record.py` in an environment of its own.

`python -m ….programs.<framework> <flavour> <scenario> <file> <url>` plays one scenario against the fake model server at that
address, instrumented as the instrumentor's documentation says, and writes the spans to the file as lines of OTLP-JSON.

A scenario knows how it ends: it checks the answer, or that the run failed. So a recording is never of something else than
its `told.yaml` says.
"""
