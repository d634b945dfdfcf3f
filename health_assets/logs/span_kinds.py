"""The kind of a span: its name, its operation, its framework's own kind and its attributes, weighed together.

What belongs here: which of them counts where they disagree, and what is said of those that do not count. What does not:
the attributes and what they are called (`conventions`).

The attribute that states the kind counts, the first of `KINDS` that is known. Two that agree outweigh it: a request to
a model is the most general thing that instrumentors call a span, so the name of an agent's run or a tool together with
the attribute that names the agent or the tool is more exact, unless the framework's own kind says model as well.
"""

from health_assets.logs.conventions import (
    KIND_IN_AI_SDK,
    KIND_IN_CLAUDE_CODE,
    KIND_IN_OPENINFERENCE,
    KIND_IN_TRACELOOP,
    KIND_OF_MCP_METHOD,
    KIND_OF_OPERATION,
    STEP_IN_OPENINFERENCE,
    STEP_OF_OPERATION,
    STEP_OF_REQUEST,
    case,
)

KINDS = {
    "operation": (KIND_OF_OPERATION, "gen_ai", "gen_ai.operation.name"),
    "openinference_kind": (KIND_IN_OPENINFERENCE, "openinference", "openinference.span.kind"),
    "traceloop_kind": (KIND_IN_TRACELOOP, "openllmetry", "traceloop.span.kind"),
    "ai_sdk_operation": (KIND_IN_AI_SDK, "ai_sdk", "ai.operationId"),
    "span_type": (KIND_IN_CLAUDE_CODE, "claude_code", "span.type"),
    "mcp_method": (KIND_OF_MCP_METHOD, "mcp", "mcp.method.name"),
}
"""Columns of `ATTRIBUTES` that state the kind of a span: the first whose value is known counts.

Of each the kinds of the values that are known, the convention's name and the attribute.
"""

STEPS = {
    "operation": STEP_OF_OPERATION, "openinference_kind": STEP_IN_OPENINFERENCE, "request_type": STEP_OF_REQUEST,
}  # fmt: skip
"""Columns of `ATTRIBUTES` that name a step of a run, such as a retrieval: of each the steps of the known values."""

KINDS_OF_RECORDS = ("agent", "workflow", "chat", "tool")
"""Kinds of spans that may become a record; all others are alike to the trees of spans."""


def is_of_record(kind: str) -> str:
    """SQL: whether a kind is one of `KINDS_OF_RECORDS`."""
    return f"{kind} IN {KINDS_OF_RECORDS}"


STEP_KINDS = tuple(dict.fromkeys(step for steps in STEPS.values() for step in steps.values()))

KIND_OF_NAME = {operation: KIND_OF_OPERATION[operation] for operation in (
    "invoke_agent", "invoke_workflow", "handle_conversation_turn", "execute_tool", "chat",
)}  # fmt: skip
"""Operations that the name of a span may begin with, as the conventions have it."""

WHOLE_GRAPH = '"ls_integration": ?"(langchain_create_agent|langgraph)"'
PART_OF_A_GRAPH = '"langgraph_node"'
"""What OpenInference's `metadata` has of a graph of LangGraph, and of a node in one.

A graph without a name is a CHAIN there, as its nodes are.
"""

NO_CALLS = "%._prepare_chat_with_tools"
"""Names of LlamaIndex's LLM spans in which no model is called."""

MERGED_TOOLS = "(merged tools)"
"""The tool of the span that Google's ADK writes besides those of tools that were called at once."""

NO_CHAT = ("embedding", "rerank")
"""Values of `llm.request.type` that tell other requests from chats where there is no operation name."""

PENDING = "pending_span"
"""The `logfire.span_type` of the span that Logfire writes below each one when it starts, with its attributes."""

BOOKKEEPING = "bookkeeping of its framework"
"""What is said of a span that stands for no work."""

OPEN = "no end"
"""What is said of a span that has not ended: it holds its place in the tree until a log has it with its end."""


def operation_of_name() -> str:
    """SQL for the operation that the name of a span begins with, an empty text where it begins with none."""
    return f"regexp_extract(span.name, '^({'|'.join(KIND_OF_NAME)})(\\s|$)', 1)"


def stated_kinds() -> str:
    """SQL columns of the kinds that each of `KINDS` states, and whether a span stands for no work.

    They are columns, so that an engine plans each of them once, however often it is looked at.
    """
    stated = [f"{case(column, kinds)} AS {_stated(column)}" for column, (kinds, *_) in KINDS.items()]
    return ", ".join([*stated, f"{_is_bookkeeping()} AS is_bookkeeping"])


def name_kind() -> str:
    """SQL for the kind that the name of a span says, together with the attribute that names the agent or the tool."""
    branches = " ".join(
        f"WHEN name_operation = '{operation}' AND {_NAMED_BY[kind]} IS NOT NULL THEN '{kind}'"
        for operation, kind in KIND_OF_NAME.items()
    )
    return f"CASE {branches} END"


_NAMED_BY = {
    "agent": "coalesce(agent_id, workflow_name)",
    "workflow": "coalesce(agent_id, workflow_name)",
    "tool": "tool_name",
    "chat": "request_model",
}


def kind() -> str:
    """SQL for the kind of a span, from the columns of `stated_kinds`, `name_kind` and those of `attribute_values`."""
    return f"""
    CASE WHEN is_open OR is_bookkeeping THEN 'other'
        WHEN {_states_no_kind()} THEN {_of_older_spans()}
        WHEN {_is_whole_graph()} THEN 'agent'
        WHEN {_stated("operation")} = 'chat' AND name_kind <> 'chat'
            AND {_stated("openinference_kind")} IS DISTINCT FROM 'chat' THEN name_kind
        WHEN {_stated("operation")} = 'chat' AND {_stated("openinference_kind")} = 'agent' AND agent_id IS NOT NULL
            AND name_kind IS DISTINCT FROM 'chat' THEN 'agent'
        ELSE coalesce({", ".join(map(_stated, KINDS))}, name_kind, {_step()}) END
    """


def operation() -> str:
    """SQL for what a span states that it is, in its convention's own words; null where it states nothing."""
    return f"coalesce({', '.join(KINDS)}, request_type)"


def convention() -> str:
    """SQL for the convention that a span follows, null where it follows none."""
    conventions = {column: name for column, (_, name, _) in KINDS.items()}
    known = " ".join(f"WHEN {_stated(column)} IS NOT NULL THEN '{name}'" for column, name in conventions.items())
    stated = " ".join(f"WHEN {column} IS NOT NULL THEN '{name}'" for column, name in [*conventions.items()][::-1])
    return f"CASE WHEN {_states_no_kind()} AND kind <> 'other' THEN 'gen_ai' {known} {stated} END"


def overruled() -> str:
    """SQL for what says otherwise than the `kind` that a span was taken for, null where nothing does."""
    others = [
        f"CASE WHEN {_stated(column)} <> kind THEN '{attribute} ' || {column} END"
        for column, (*_, attribute) in KINDS.items()
    ]
    others.append("CASE WHEN name_kind <> kind THEN 'the name ' || name_operation END")
    told = (
        f"'taken for ' || kind || ', not for what ' || nullif(concat_ws(' and ', {', '.join(others)}), '') || ' says'"
    )
    return f"CASE WHEN is_bookkeeping THEN '{BOOKKEEPING}' ELSE {told} END"


def _stated(column: str) -> str:
    return f"{column}_stated"


def _is_bookkeeping() -> str:
    return f"""
    (tool_name IS NOT DISTINCT FROM '{MERGED_TOOLS}' OR logfire_type IS NOT DISTINCT FROM '{PENDING}'
        OR coalesce(span.name LIKE '{NO_CALLS}', false))
    """


def _is_whole_graph() -> str:
    return f"""
    openinference_kind = 'CHAIN' AND regexp_matches(metadata, '{WHOLE_GRAPH}')
        AND NOT contains(metadata, '{PART_OF_A_GRAPH}')
    """


def _states_no_kind() -> str:
    return f"coalesce({', '.join(KINDS)}) IS NULL"


def _of_older_spans() -> str:
    """Before version 1.27 of the conventions there was no operation name, and requests to a model were chats."""
    others = ", ".join(f"'{name}'" for name in NO_CHAT)
    is_older_chat = f"system IS NOT NULL AND tool_name IS NULL AND coalesce(request_type, '') NOT IN ({others})"
    return f"CASE WHEN name_kind IS NOT NULL THEN name_kind WHEN {is_older_chat} THEN 'chat' ELSE {_step()} END"


def _step() -> str:
    return f"coalesce({', '.join(case(column, steps) for column, steps in STEPS.items())}, 'other')"
