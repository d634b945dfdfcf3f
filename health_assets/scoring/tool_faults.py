"""Tool faults: failures of tools that are not the agent's, told by their error.

What belongs here: which errors say that a tool timed out, that it was asked too often (429), or that its server failed
(5xx). What does not: which failures an hour has in common (`failure_causes`), and what faults mean for a score
(`systems.reliability.robustness`).

A number alone says nothing: `500 rows deleted` is no fault, `HTTP 500` is one. An error about an argument called
`timeout` is the agent's: classes of exceptions are told from it by their capital letters.
"""

from ibis import ir

READ_CHARACTERS = 1000
"""How much of an error is read."""
_CODE = "(429|50[0-9]|52[0-9])"
_BEFORE_CODE = "(http|http/[0-9.]+|http ?error|server error|status|status[ _]code|error code|response code)"
_END = "(:|[\\r\\n]|$)"
"""Where a word ends; engines differ in whether `$` is before the line break at the end of a text."""
_CLASS = f"^([A-Za-z0-9_]+[.])*[A-Za-z0-9_]*(Timeout|TimedOut)(Error|Exception|Expired)?{_END}"
"""TimeoutError, httpx.ReadTimeout and the like, as errors begin."""
_PATTERNS = (
    "^timeout[\\r\\n]*$",  # `error.type` of OpenTelemetry
    "timed[ -]?out",
    "timeout (of [0-9]|exceeded|expired|after|reached|waiting|while)",
    "(request|gateway|read|connect|connection|operation) time-?out",
    "(deadline[ _]?exceeded|etimedout)",
    "too many requests",
    "rate[ _-]?limit[ _-]?(exceeded|reached|error)",
    "(internal server error|server error [(]?5|bad gateway|service (temporarily )?unavailable)",
    f"^{_CODE}{_END}",
    f"{_BEFORE_CODE}[^0-9a-z]{{1,3}}{_CODE}([^0-9a-z]|$)",
)
_PATTERN = "|".join(f"({pattern})" for pattern in _PATTERNS)


def is_fault(error: ir.StringValue) -> ir.BooleanValue:
    """Whether the error of a failed tool call tells of a fault that is not the agent's; false where it is null."""
    begun = error.left(READ_CHARACTERS)
    return (begun.re_search(_CLASS) | begun.lower().re_search(_PATTERN)).fill_null(False)
