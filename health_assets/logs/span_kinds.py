"""The kind of a span: its name, its operation, its framework's own kind and its attributes, weighed together.

What belongs here: which of them counts where they disagree, and what is said of those that do not count. What does not:
the attributes and what they are called (`conventions`).

The attribute that states the kind counts, the first of `KINDS` that is known. Two that agree outweigh it: a request to
a model is the most general thing that instrumentors call a span, so the name of an agent's run or a tool together with
the attribute that names the agent or the tool is more exact, unless the framework's own kind says model as well.
"""

from health_assets.logs.conventions import (
    CLAUDE_CODE,
    KIND_IN_AI_SDK,
    KIND_IN_CLAUDE_CODE,
    KIND_IN_OPENINFERENCE,
    KIND_IN_TRACELOOP,
    KIND_OF_OPERATION,
    case,
)

KINDS = {
    "operation": ("operation", KIND_OF_OPERATION, "gen_ai", "gen_ai.operation.name"),
    "openinference_kind": (
        "upper(openinference_kind)", KIND_IN_OPENINFERENCE, "openinference", "openinference.span.kind",
    ),
    "traceloop_kind": ("traceloop_kind", KIND_IN_TRACELOOP, "openllmetry", "traceloop.span.kind"),
    "ai_sdk_operation": ("ai_sdk_operation", KIND_IN_AI_SDK, "ai_sdk", "ai.operationId"),
    "span_type": (
        f"CASE WHEN starts_with(span.name, '{CLAUDE_CODE}') THEN span_type END", KIND_IN_CLAUDE_CODE, "claude_code",
        "span.type",
    ),
}  # fmt: skip
"""Columns of `ATTRIBUTES` that state the kind of a span: the first whose value is known counts.

Of each its value in SQL, the kinds of the values that are known, the convention's name and the attribute.
"""

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

BOOKKEEPING = "bookkeeping of its framework"
"""What is said of a span that stands for no work."""

OPEN = "no end"
"""What is said of a span that has not ended: it holds its place in the tree until a log has it with its end."""


def name_kind() -> str:
    """SQL for the kind that the name of a span says, together with the attribute that names the agent or the tool."""
    return f"""
    CASE WHEN {case(_OPERATION_OF_NAME, KIND_OF_NAME)} IN ('agent', 'workflow')
            AND coalesce(agent_id, workflow_name) IS NOT NULL THEN {case(_OPERATION_OF_NAME, KIND_OF_NAME)}
        WHEN {case(_OPERATION_OF_NAME, KIND_OF_NAME)} = 'tool' AND tool_name IS NOT NULL THEN 'tool'
        WHEN {case(_OPERATION_OF_NAME, KIND_OF_NAME)} = 'chat' AND request_model IS NOT NULL THEN 'chat' END
    """


_OPERATION_OF_NAME = f"regexp_extract(span.name, '^({'|'.join(KIND_OF_NAME)})(\\s|$)', 1)"


def kind() -> str:
    """SQL for the kind of a span, from the columns of `attribute_values`, `name_kind` and the name of the `span`."""
    return f"""
    CASE WHEN is_open OR {_is_bookkeeping()} THEN 'other'
        WHEN {_states_no_kind()} THEN {_of_older_spans()}
        WHEN {_is_whole_graph()} THEN 'agent'
        WHEN {_stated("operation")} = 'chat' AND name_kind <> 'chat'
            AND {_stated("openinference_kind")} IS DISTINCT FROM 'chat' THEN name_kind
        WHEN {_stated("operation")} = 'chat' AND {_stated("openinference_kind")} = 'agent' AND agent_id IS NOT NULL
            THEN 'agent'
        ELSE coalesce({", ".join(map(_stated, KINDS))}, name_kind, 'other') END
    """


def operation() -> str:
    """SQL for what a span states that it is, in its convention's own words; null where it states nothing."""
    return f"coalesce({', '.join(value for value, *_ in KINDS.values())}, request_type)"


def convention() -> str:
    """SQL for the convention that a span follows, null where it follows none."""
    conventions = {column: name for column, (_, _, name, _) in KINDS.items()}
    known = " ".join(f"WHEN {_stated(column)} IS NOT NULL THEN '{name}'" for column, name in conventions.items())
    stated = " ".join(
        f"WHEN {KINDS[column][0]} IS NOT NULL THEN '{name}'" for column, name in [*conventions.items()][::-1]
    )
    return f"CASE WHEN {_states_no_kind()} AND kind <> 'other' THEN 'gen_ai' {known} {stated} END"


def overruled() -> str:
    """SQL for what says otherwise than the `kind` that a span was taken for, null where nothing does."""
    others = [
        f"CASE WHEN {_stated(column)} <> kind THEN '{attribute} ' || {value} END"
        for column, (value, _, _, attribute) in KINDS.items()
    ]
    others.append(f"CASE WHEN name_kind <> kind THEN 'the name ' || {_OPERATION_OF_NAME} END")
    told = (
        f"'taken for ' || kind || ', not for what ' || nullif(concat_ws(' and ', {', '.join(others)}), '') || ' says'"
    )
    return f"CASE WHEN {_is_bookkeeping()} THEN '{BOOKKEEPING}' ELSE {told} END"


def _stated(column: str) -> str:
    value, kinds, *_ = KINDS[column]
    return case(value, kinds)


def _is_bookkeeping() -> str:
    return f"(tool_name IS NOT DISTINCT FROM '{MERGED_TOOLS}' OR coalesce(span.name LIKE '{NO_CALLS}', false))"


def _is_whole_graph() -> str:
    return f"""
    upper(openinference_kind) = 'CHAIN' AND regexp_matches(metadata, '{WHOLE_GRAPH}')
        AND NOT contains(metadata, '{PART_OF_A_GRAPH}')
    """


def _states_no_kind() -> str:
    return " AND ".join(f"({value}) IS NULL" for value, *_ in KINDS.values())


def _of_older_spans() -> str:
    """Before version 1.27 of the conventions there was no operation name, and requests to a model were chats."""
    others = ", ".join(f"'{name}'" for name in NO_CHAT)
    is_older_chat = f"system IS NOT NULL AND tool_name IS NULL AND coalesce(request_type, '') NOT IN ({others})"
    return f"CASE WHEN name_kind IS NOT NULL THEN name_kind WHEN {is_older_chat} THEN 'chat' ELSE 'other' END"
