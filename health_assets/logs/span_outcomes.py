"""The outcome and the tokens of a span, where several attributes tell of them.

What belongs here: errors that are none, failures that no status tells, tokens that cannot all be true. What does not:
the kind of a span (`span_kinds`) and the names of attributes (`conventions`).
"""

CONTROL_FLOW = (
    "ParentCommand", "GraphInterrupt", "NodeInterrupt", "GraphBubbleUp",  # LangGraph
    "CallDeferred", "ApprovalRequired",  # Pydantic AI
    "HumanFeedbackPending",  # CrewAI
    "WaitingForEvent",  # LlamaIndex
    "UserInputRequiredException",  # Agent Framework
    "HITLBreakpointException",  # Haystack
    "WorkflowSuspension",  # Vercel's Workflow
    "ContinueAsNewError",  # Temporal
    "GeneratorExit", "StopIteration", "StopAsyncIteration",  # Python: nobody reads on, or all was read
)  # fmt: skip
"""Classes by which a framework hands over, waits for a person or ends a stream, which is no failure."""

CONTROL_FLOW_OF_ITS_FRAMEWORK = (
    "google[.]adk[.][A-Za-z0-9_.]*NodeInterruptedError",
    "strands[.][A-Za-z0-9_.]*InterruptException",
    "haystack[.][A-Za-z0-9_.]*BreakpointException",
)
"""Such classes whose name is that of a failure elsewhere: they count with the name of their module alone."""

_CLASS = f"(([A-Za-z0-9_]+[.])*({'|'.join(CONTROL_FLOW)})|{'|'.join(CONTROL_FLOW_OF_ITS_FRAMEWORK)})"
IS_CONTROL_FLOW = f"^{_CLASS}$"
BEGINS_WITH_CONTROL_FLOW = f"^{_CLASS}([(:]|$)"
"""How a status's message tells such a class: as Python writes an exception, or an error and its text."""

SAYS_ERROR = r'"status"\s*:\s*"error"'
RESULT_OF_LANGCHAIN = ("$.data", "$.output.kwargs", "$.kwargs")
"""LangChain puts a message at one of these places of a tool's result; its `status` says whether the tool failed."""

CONTROL_FLOW_TOLD = "an error by which its framework waits, hands over or ends a stream, which is no failure"
ADDED_BY_TOTAL = "input_tokens without the cached ones, which were added, as its total of tokens counts"
ADDED = "input_tokens without the cached ones, which were added, as its provider counts"
IMPOSSIBLE = "more cached tokens than input_tokens, left as they are"
REASONING_ADDED_BY_TOTAL = "output_tokens without the reasoning ones, which were added, as its total of tokens counts"
REASONING_ADDED = "output_tokens without the reasoning ones, which were added, as its provider counts"
IMPOSSIBLE_REASONING = "more reasoning tokens than output_tokens, left as they are"

COUNTS_WITHOUT_CACHE = "(?i)anthropic|bedrock|claude"
"""Providers, and where none is named models, whose own counts of input tokens leave out the cached ones."""

COUNTS_WITHOUT_REASONING = "(?i)google|gemini|vertex|gcp"
"""Likewise, whose own counts of output tokens leave out the reasoning ones, `thoughts` by their name."""

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


def token_remark() -> str:
    """SQL for what is said of a span whose tokens cannot all be true or leave out the cached ones, null for others.

    Claude Code's own spans always leave them out. Others do where their total says so, or where more are cached than
    there are and their provider counts so.
    """
    by_provider = f"regexp_matches(coalesce(provider, model, ''), '{COUNTS_WITHOUT_CACHE}')"
    return f"""
    CASE WHEN cached > 0 THEN
        CASE WHEN is_of_claude_code OR cached > input_tokens AND {by_provider} THEN '{ADDED}'
            WHEN total_tokens = cached + input_tokens + coalesce(output_tokens, 0) THEN '{ADDED_BY_TOTAL}'
            WHEN cached > input_tokens THEN '{IMPOSSIBLE}' END
        END
    """


def input_tokens() -> str:
    """SQL for all tokens that went into a model, from the columns `input_tokens`, `cached` and `token_remark`."""
    added = f"token_remark IN ('{ADDED}', '{ADDED_BY_TOTAL}')"
    return f"CASE WHEN {added} THEN {_as_count('cached + input_tokens')} ELSE input_tokens END"


def reasoning_remark() -> str:
    """SQL for what is said of a span whose output tokens leave out the reasoning ones, null for others.

    They do where its total says so, or where there are more of them and its provider counts so.
    """
    by_provider = f"regexp_matches(coalesce(provider, model, ''), '{COUNTS_WITHOUT_REASONING}')"
    return f"""
    CASE WHEN reasoning_tokens > 0 THEN
        CASE WHEN reasoning_tokens > output_tokens AND {by_provider} THEN '{REASONING_ADDED}'
            WHEN total_tokens = reasoning_tokens::HUGEINT + input_tokens + output_tokens
                AND token_remark IS DISTINCT FROM '{ADDED_BY_TOTAL}' THEN '{REASONING_ADDED_BY_TOTAL}'
            WHEN reasoning_tokens > output_tokens THEN '{IMPOSSIBLE_REASONING}' END
        END
    """


def output_tokens() -> str:
    """SQL for all tokens that came out of a model, from `output_tokens`, `reasoning_tokens` and `reasoning_remark`."""
    added = f"reasoning_remark IN ('{REASONING_ADDED}', '{REASONING_ADDED_BY_TOTAL}')"
    return f"CASE WHEN {added} THEN {_as_count('reasoning_tokens::HUGEINT + output_tokens')} ELSE output_tokens END"


def _as_count(total: str) -> str:
    """A sum that a nonsensical span may make too great for a column, which would stop the run."""
    return f"least({total}, {2**63 - 1})::BIGINT"
