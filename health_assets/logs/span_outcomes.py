"""The outcome and the tokens of a span, where several attributes tell of them.

What belongs here: errors that are none, failures that no status tells, tokens that cannot all be true. What does not:
the kind of a span (`span_kinds`) and the names of attributes (`conventions`).
"""

from health_assets.logs.conventions import is_of_claude_code

CONTROL_FLOW = (
    "ParentCommand", "GraphInterrupt", "NodeInterrupt", "GraphBubbleUp",  # LangGraph
    "CallDeferred", "ApprovalRequired",  # Pydantic AI
    "HumanFeedbackPending",  # CrewAI
    "WaitingForEvent",  # LlamaIndex
    "UserInputRequiredException",  # Agent Framework
)  # fmt: skip
"""Classes by which a framework hands over to another agent or waits for a person, which is no failure."""

CONTROL_FLOW_OF_ITS_FRAMEWORK = (
    "google[.]adk[.][A-Za-z0-9_.]*NodeInterruptedError",
    "strands[.][A-Za-z0-9_.]*InterruptException",
)
"""Such classes whose name is that of a failure elsewhere: they count with the name of their module alone."""

_CLASS = f"(([A-Za-z0-9_]+[.])*({'|'.join(CONTROL_FLOW)})|{'|'.join(CONTROL_FLOW_OF_ITS_FRAMEWORK)})"
IS_CONTROL_FLOW = f"^{_CLASS}$"
BEGINS_WITH_CONTROL_FLOW = f"^{_CLASS}([(:]|$)"
"""How a status's message tells such a class: as Python writes an exception, or an error and its text."""

SAYS_ERROR = r'"status"\s*:\s*"error"'
RESULT_OF_LANGCHAIN = ("$.data", "$.output.kwargs", "$.kwargs")
"""LangChain puts a message at one of these places of a tool's result; its `status` says whether the tool failed."""

CONTROL_FLOW_TOLD = "an error by which its framework waits or hands over, which is no failure"
ADDED = "input_tokens without the cached ones, which were added, as its provider counts"
IMPOSSIBLE = "more cached tokens than input_tokens, left as they are"

COUNTS_WITHOUT_CACHE = "(?i)anthropic|bedrock|claude"
"""Providers, and where none is named models, whose own counts of input tokens leave out the cached ones."""

_EVENTS = """[{"name": "VARCHAR", "attributes": [{"key": "VARCHAR", "value": {"stringValue": "VARCHAR"}}]}]"""


def exception_type() -> str:
    """SQL for the type of the last exception that the events of a failed `span` tell, null where they tell none."""
    types = f"""
    list_filter(flatten(list_transform(json_transform(span.events, '{_EVENTS}'), lambda event: event.attributes)),
        lambda one: one.key = 'exception.type')
    """
    return f"CASE WHEN contains(span.events, 'exception.type') THEN ({types})[-1].value.stringValue END"


def is_control_flow() -> str:
    """SQL for whether the error that a span tells is none, wherever it tells of it."""
    return f"""
    coalesce(regexp_matches(error_type, '{IS_CONTROL_FLOW}'), false)
        OR coalesce(regexp_matches(message, '{BEGINS_WITH_CONTROL_FLOW}'), false)
        OR coalesce(regexp_matches(exception_type, '{IS_CONTROL_FLOW}'), false)
    """


def says_failure() -> str:
    """SQL for whether a span without the status of an error says in an attribute that it failed."""
    return "coalesce(success = 'false', false)"


def tool_error() -> str:
    """SQL for what a tool's result says of a failure that its framework caught, null where it says nothing."""
    told = ", ".join(
        f"""CASE WHEN json_extract_string(tool_result, '{path}.status') = 'error'
            THEN coalesce(json_extract_string(tool_result, '{path}.content'), '') END"""
        for path in RESULT_OF_LANGCHAIN
    )
    may_tell = f"regexp_matches(tool_result, '{SAYS_ERROR}') AND json_valid(tool_result)"
    return f"CASE WHEN {may_tell} THEN coalesce({told}) END"


def leaves_out_cached() -> str:
    """SQL for whether the input tokens of a span leave out the cached ones: of Claude Code's they always do."""
    whose = f"regexp_matches(coalesce(provider, model, ''), '{COUNTS_WITHOUT_CACHE}')"
    return f"cached > 0 AND ({is_of_claude_code()} OR cached > input_tokens AND {whose})"


def input_tokens() -> str:
    """SQL for all tokens that went into a model, from the columns `input_tokens` and `cached`."""
    return f"CASE WHEN {leaves_out_cached()} THEN input_tokens + cached ELSE input_tokens END"


def token_remark() -> str:
    """SQL for what is said of a span whose tokens cannot all be true, null for others."""
    return f"""
    CASE WHEN {leaves_out_cached()} THEN '{ADDED}' WHEN cached > input_tokens THEN '{IMPOSSIBLE}' END
    """
