"""Meanings of span attributes: OpenTelemetry's GenAI semantic conventions, newer and older, and OpenInference.

What belongs here: which attributes are read, under all of their names, and what kind of span they make. What does not:
how a span is written down (`otlp`) and what becomes of it (`traces`).
"""

ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "operation": ("gen_ai.operation.name",),
    "openinference_kind": ("openinference.span.kind",),
    "traceloop_kind": ("traceloop.span.kind",),
    "ai_sdk_operation": ("ai.operationId",),
    "system": ("gen_ai.system",),  # before version 1.37 of the conventions
    "request_type": ("llm.request.type",),
    "agent_id": ("gen_ai.agent.name", "gen_ai.agent.id", "agent.name"),
    "graph_node": ("graph.node.name", "graph.node.id"),
    "traceloop_name": ("traceloop.entity.name",),
    "ai_sdk_function": ("ai.telemetry.functionId",),
    "agent_version": ("gen_ai.agent.version",),
    "metadata": ("metadata",),  # OpenInference's, as JSON
    "session_id": (
        "gen_ai.conversation.id", "session.id",
        "ai.telemetry.metadata.sessionId", "ai.settings.context.sessionId",
        "traceloop.association.properties.session_id",
    ),
    "model": (
        "gen_ai.response.model", "gen_ai.request.model",
        "llm.response.model_name", "llm.model_name", "llm.request.model_name", "ai.model.id",
    ),
    "invocation_parameters": ("llm.invocation_parameters",),  # OpenInference's, as JSON
    "tool_name": ("gen_ai.tool.name", "tool.name", "ai.toolCall.name"),
    "error_type": ("error.type",),
    "input_tokens": (
        "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt", "ai.usage.inputTokens",
    ),
    "output_tokens": (
        "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion",
        "ai.usage.outputTokens",
    ),
    "cost_usd": ("gen_ai.usage.cost", "llm.cost.total", "operation.cost"),
    "tool_result": ("output.value", "gen_ai.tool.call.result", "traceloop.entity.output"),
}  # fmt: skip
"""What is read of a span, and the attributes that say it: the first that is there and not empty counts."""

ATTRIBUTE_NAMES = tuple(dict.fromkeys(name for names in ATTRIBUTES.values() for name in names))

MODELS_IN_PARAMETERS = ("model", "model_name")
"""Names under which `llm.invocation_parameters` may say the model, where no attribute of its own does."""

AGENTS_IN_METADATA = ("lc_agent_name",)
"""Names under which OpenInference's `metadata` may say the agent, as LangChain's agents have it."""

KIND_OF_OPERATION = {
    "invoke_agent": "agent",
    "invoke_workflow": "agent",
    "chat": "chat",
    "text_completion": "chat",
    "generate_content": "chat",
    "execute_tool": "tool",
}
"""Values of `gen_ai.operation.name`; others, like `embeddings` and `create_agent`, make a span of kind `other`."""

KIND_IN_OPENINFERENCE = {"AGENT": "agent", "LLM": "chat", "TOOL": "tool"}
"""Values of `openinference.span.kind`; others, like CHAIN and RETRIEVER, make a span of kind `other`."""

KIND_IN_TRACELOOP = {"agent": "agent", "tool": "tool"}
"""Values of OpenLLMetry's `traceloop.span.kind`; others, like workflow and task, make a span of kind `other`."""

KIND_IN_AI_SDK = {
    "ai.generateText": "agent",
    "ai.streamText": "agent",
    "ai.generateObject": "agent",
    "ai.streamObject": "agent",
    "ai.toolCall": "tool",
    "ai.generateText.doGenerate": "chat",
    "ai.streamText.doStream": "chat",
    "ai.generateObject.doGenerate": "chat",
    "ai.streamObject.doStream": "chat",
}
"""Values of `ai.operationId`, of Vercel's AI SDK before its version 7; others make a span of kind `other`."""

KINDS = {
    "operation": ("operation", KIND_OF_OPERATION, "gen_ai"),
    "openinference_kind": ("upper(openinference_kind)", KIND_IN_OPENINFERENCE, "openinference"),
    "traceloop_kind": ("traceloop_kind", KIND_IN_TRACELOOP, "openllmetry"),
    "ai_sdk_operation": ("ai_sdk_operation", KIND_IN_AI_SDK, "ai_sdk"),
}
"""Columns of `ATTRIBUTES` that tell the kind of a span: the first whose value is known counts.

Of each its value in SQL, the kinds of the values that are known, and the convention's name.
"""

WHOLE_GRAPH = '"ls_integration": ?"(langchain_create_agent|langgraph)"'
PART_OF_A_GRAPH = '"langgraph_node"'
"""What OpenInference's `metadata` has of a graph of LangGraph, and of a node in one.

A graph without a name is a CHAIN there, as its nodes are.
"""

METHODS = ("run", "kickoff", "_execute_core")
"""Methods of agents that OpenInference's spans are named after, behind the name of the agent."""

NO_CALLS = "%._prepare_chat_with_tools"
"""Names of LlamaIndex's LLM spans in which no model is called."""

NO_ERRORS = ("ParentCommand", "GraphInterrupt", "NodeInterrupt", "GraphBubbleUp")
"""Exceptions by which LangGraph hands over to another agent or waits for a person: classes that are no errors."""

SAYS_ERROR = r'"status"\s*:\s*"error"'
RESULT_OF_LANGCHAIN = ("$.data", "$.output.kwargs", "$.kwargs")
"""LangChain puts a message at one of these places of a tool's result; its `status` says whether the tool failed."""

NO_CHAT = ("embedding", "rerank")
"""Values of `llm.request.type` that tell other requests from chats where there is no operation name."""


def attribute_values(keys: str, texts: str) -> str:
    """SQL columns of `ATTRIBUTES`: the texts that a span's attributes give.

    Args:
        keys: the attributes' keys, a list of texts.
        texts: their values in the same order, a list of texts.
    """
    return ", ".join(
        f"coalesce({', '.join(_looked_up(key, keys, texts) for key in names)}) AS {column}"
        for column, names in ATTRIBUTES.items()
    )


def _looked_up(key: str, keys: str, texts: str) -> str:
    return f"nullif({texts}[list_position({keys}, '{key}')], '')"  # a missing key has no position, nothing stands there


def kind() -> str:
    """SQL for the kind of a span, from the columns of `attribute_values` and the name of the `span`."""
    told = ", ".join(_case(value, kinds) for value, kinds, _ in KINDS.values())
    return f"""
    CASE WHEN {_states_no_kind()} THEN {_of_older_spans()} WHEN {_is_whole_graph()} THEN 'agent'
        WHEN span.name LIKE '{NO_CALLS}' THEN 'other'
        ELSE coalesce({told}, 'other') END
    """


def operation() -> str:
    """SQL for what a span states that it is, in its convention's own words; null where it states nothing."""
    return f"coalesce({', '.join(KINDS)}, request_type)"


def convention() -> str:
    """SQL for the convention that a span follows, null where it follows none."""
    known = " ".join(f"WHEN {_case(value, kinds)} IS NOT NULL THEN '{name}'" for value, kinds, name in KINDS.values())
    stated = " ".join(f"WHEN {column} IS NOT NULL THEN '{name}'" for column, (_, _, name) in reversed(KINDS.items()))
    return f"CASE WHEN {_states_no_kind()} AND {_is_older_chat()} THEN 'gen_ai' {known} {stated} END"


def error_type() -> str:
    """SQL for the type of the error that a span states, null where it states none."""
    return f"CASE WHEN NOT regexp_matches(error_type, '(^|[.])({'|'.join(NO_ERRORS)})$') THEN error_type END"


def is_no_error() -> str:
    """SQL for whether what a span states as its error is none."""
    return f"error_type IS NOT NULL AND {error_type()} IS NULL"


def tool_error() -> str:
    """SQL for what a tool's result says of a failure that its framework caught, null where it says nothing."""
    told = ", ".join(
        f"""CASE WHEN json_extract_string(tool_result, '{path}.status') = 'error'
            THEN coalesce(json_extract_string(tool_result, '{path}.content'), '') END"""
        for path in RESULT_OF_LANGCHAIN
    )
    may_tell = f"regexp_matches(tool_result, '{SAYS_ERROR}') AND json_valid(tool_result)"
    return f"CASE WHEN {may_tell} THEN coalesce({told}) END"


def _is_whole_graph() -> str:
    return f"""
    upper(openinference_kind) = 'CHAIN' AND regexp_matches(metadata, '{WHOLE_GRAPH}')
        AND NOT contains(metadata, '{PART_OF_A_GRAPH}')
    """


def _states_no_kind() -> str:
    return " AND ".join(f"{column} IS NULL" for column in KINDS)


def _of_older_spans() -> str:
    return f"CASE WHEN {_is_older_chat()} THEN 'chat' ELSE 'other' END"


def agent_id() -> str:
    """SQL for the name of the agent that a span states, null where it states none."""
    return f"""
    coalesce(
        agent_id, {_in_json("metadata", AGENTS_IN_METADATA)},
        CASE WHEN upper(openinference_kind) = 'AGENT' THEN graph_node END,
        CASE WHEN traceloop_kind = 'agent' THEN traceloop_name END,
        CASE WHEN {_case("ai_sdk_operation", KIND_IN_AI_SDK)} = 'agent' THEN ai_sdk_function END
    )
    """


def model() -> str:
    """SQL for the model that a span states, null where it states none."""
    return f"coalesce(model, {_in_json('invocation_parameters', MODELS_IN_PARAMETERS)})"


def own_name(span: str) -> str:
    """SQL for what the name of a span says besides the operation that it may begin with; null where nothing is left.

    Args:
        span: the span's row.
    """
    operations = "|".join([*KIND_OF_OPERATION, *KIND_IN_AI_SDK]).replace(".", "[.]")
    return f"nullif(regexp_replace({span}.name, '^({operations})(\\s+|$)', ''), '')"


def agent_name(span: str) -> str:
    """SQL for the agent that the name of a span without another name says; null where it says the model or nothing.

    Args:
        span: the span's row.
    """
    methods = f"regexp_replace({own_name(span)}, '[.]({'|'.join(METHODS)})$', '')"
    without = f"CASE WHEN {span}.convention = 'openinference' THEN {methods} ELSE {own_name(span)} END"
    return f"nullif(nullif({without}, ''), {span}.model)"


def _in_json(column: str, names: tuple[str, ...]) -> str:
    """A text in an attribute that holds a JSON object; most spans have no such attribute, or not that name in it."""
    values = ", ".join(f"""nullif(json_extract_string({column}, '$."{name}"'), '')""" for name in names)
    may_hold = " OR ".join(f"contains({column}, '{name}')" for name in names)
    return f"CASE WHEN ({may_hold}) AND json_valid({column}) THEN coalesce({values}) END"


def _is_older_chat() -> str:
    """Before version 1.27 of the conventions there was no operation name, and requests to a model were chats."""
    others = ", ".join(f"'{name}'" for name in NO_CHAT)
    return f"system IS NOT NULL AND coalesce(request_type, '') NOT IN ({others})"


def _case(value: str, results: dict[str, str]) -> str:
    branches = " ".join(f"WHEN '{key}' THEN '{result}'" for key, result in results.items())
    return f"CASE {value} {branches} END"
