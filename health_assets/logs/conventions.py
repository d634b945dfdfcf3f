"""What the attributes of a span mean: OpenTelemetry's GenAI semantic conventions, newer and older, and OpenInference.

What belongs here: which attributes are read, under all of their names, and what kind of span they make. What does not:
how a span is written down (`otlp`) and what becomes of it (`traces`).
"""

ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "operation": ("gen_ai.operation.name",),
    "openinference_kind": ("openinference.span.kind",),
    "system": ("gen_ai.system",),  # before version 1.37 of the conventions
    "request_type": ("llm.request.type",),
    "agent_id": ("gen_ai.agent.name", "gen_ai.agent.id", "agent.name"),
    "agent_version": ("gen_ai.agent.version",),
    "metadata": ("metadata",),  # OpenInference's, as JSON
    "session_id": ("gen_ai.conversation.id", "session.id"),
    "model": (
        "gen_ai.response.model", "gen_ai.request.model",
        "llm.response.model_name", "llm.model_name", "llm.request.model_name",
    ),
    "invocation_parameters": ("llm.invocation_parameters",),  # OpenInference's, as JSON
    "tool_name": ("gen_ai.tool.name", "tool.name"),
    "error_type": ("error.type",),
    "input_tokens": ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt"),
    "output_tokens": ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion"),
    "cost_usd": ("gen_ai.usage.cost", "llm.cost.total"),
}  # fmt: skip
"""What is read of a span, and the attributes that say it: the first that is there and not empty counts."""

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

NO_CHAT = ("embedding", "rerank")
"""Values of `llm.request.type` that tell other requests from chats where there is no operation name."""


def attribute_values(keys: str, values: str) -> str:
    """SQL columns of `ATTRIBUTES`: the texts that a span's attributes give.

    Args:
        keys: the attributes' keys, a list of texts.
        values: their values in the same order, a list of structs with a text for each type of value.
    """
    return ", ".join(
        f"coalesce({', '.join(_looked_up(key, keys, values) for key in names)}) AS {column}"
        for column, names in ATTRIBUTES.items()
    )


def _looked_up(key: str, keys: str, values: str) -> str:
    # a missing key has no position, and a list has nothing there; text is what nearly all of these are
    value = f"{values}[list_position({keys}, '{key}')]"
    return f"nullif(coalesce({value}.stringValue, {value}.intValue, {value}.doubleValue, {value}.boolValue), '')"


def kind() -> str:
    """SQL for the kind of a span, from the columns of `attribute_values`."""
    return f"""
    CASE
        WHEN operation IS NULL AND openinference_kind IS NULL
            THEN CASE WHEN {_is_older_chat()} THEN 'chat' ELSE 'other' END
        ELSE coalesce(
            {_case("operation", KIND_OF_OPERATION)},
            {_case("upper(openinference_kind)", KIND_IN_OPENINFERENCE)},
            'other'
        )
    END
    """


def operation() -> str:
    """SQL for what a span states that it is, in its convention's own words; null where it states nothing."""
    return "coalesce(operation, openinference_kind, request_type)"


def convention() -> str:
    """SQL for the convention that a span follows, null where it follows none."""
    return f"""
    CASE
        WHEN {_case("operation", KIND_OF_OPERATION)} IS NOT NULL OR openinference_kind IS NULL AND operation IS NOT NULL
            THEN 'gen_ai'
        WHEN openinference_kind IS NOT NULL THEN 'openinference'
        WHEN {_is_older_chat()} THEN 'gen_ai'
    END
    """


def agent_id() -> str:
    """SQL for the name of the agent that a span states, null where it states none."""
    return f"coalesce(agent_id, {_in_json('metadata', AGENTS_IN_METADATA)})"


def model() -> str:
    """SQL for the model that a span states, null where it states none."""
    return f"coalesce(model, {_in_json('invocation_parameters', MODELS_IN_PARAMETERS)})"


def without_operation(name: str) -> str:
    """SQL for the name of a span without the operation that it may begin with; null where nothing is left."""
    operations = "|".join(KIND_OF_OPERATION)
    return f"nullif(regexp_replace({name}, '^({operations})(\\s+|$)', ''), '')"


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
