"""Meanings of span attributes: OpenTelemetry's GenAI semantic conventions, newer and older, and those of others.

What belongs here: which attributes are read, under all of their names, and whose agent, model and tool they name. What
does not: the kind of a span (`span_kinds`), its outcome and tokens (`span_outcomes`), how it is written (`otlp`).
"""

from collections.abc import Iterable

from health_assets.logs.digests import MOST_CHARACTERS

ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "operation": ("gen_ai.operation.name",),
    "openinference_kind": ("openinference.span.kind",),
    "traceloop_kind": ("traceloop.span.kind",),
    "ai_sdk_operation": ("ai.operationId",),
    "system": ("gen_ai.system",),  # before version 1.37 of the conventions
    "span_type": ("span.type",),
    "mcp_method": ("mcp.method.name",),
    "logfire_type": ("logfire.span_type",),
    "request_type": ("llm.request.type",),
    "agent_id": ("gen_ai.agent.name", "gen_ai.agent.id", "agent.name"),
    "workflow_name": ("gen_ai.workflow.name",),
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
    "request_model": ("gen_ai.request.model", "llm.request.model_name", "ai.model.id"),
    "answering_model": ("gen_ai.response.model", "llm.response.model_name", "ai.response.model"),
    "openinference_model": ("llm.model_name",),  # the one that answered, where the client told it
    "invocation_parameters": ("llm.invocation_parameters",),  # OpenInference's, as JSON
    "tool_name": ("gen_ai.tool.name", "tool.name", "ai.toolCall.name"),
    "error_type": ("error.type",),
    "input_tokens": (
        "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt", "ai.usage.inputTokens",
        "gen_ai.response.prompt_tokens",  # Semantic Kernel's
    ),
    "output_tokens": (
        "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion",
        "ai.usage.outputTokens", "gen_ai.response.completion_tokens",
    ),
    "cost_usd": ("gen_ai.usage.cost", "llm.cost.total", "operation.cost"),
    "dataset_item": ("langfuse.experiment.item.id", "langsmith.reference_example_id"),
    "braintrust_origin": ("braintrust.origin",),  # as JSON
    "tool_result": ("output.value", "gen_ai.tool.call.result", "traceloop.entity.output"),
}  # fmt: skip
"""What is read of a span, and the attributes that say it: the first that is there and not empty counts."""

CACHE_ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "cache_read_tokens": (
        "gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens",
        "gen_ai.usage.details.cache_read_tokens", "llm.token_count.prompt_details.cache_read",
        "ai.usage.inputTokenDetails.cacheReadTokens", "ai.usage.cachedInputTokens",
    ),
    "cache_creation_tokens": (
        "gen_ai.usage.cache_write.input_tokens", "gen_ai.usage.cache_creation.input_tokens",
        "gen_ai.usage.cache_write_input_tokens", "gen_ai.usage.cache_creation_input_tokens",
        "gen_ai.usage.details.cache_write_tokens", "llm.token_count.prompt_details.cache_write",
        "ai.usage.inputTokenDetails.cacheWriteTokens",
    ),
}  # fmt: skip
"""Tokens read from a provider's cache and written to it: a part of the input tokens by every convention listed here."""

REASONING_ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "reasoning_tokens": (
        "gen_ai.usage.reasoning.output_tokens", "gen_ai.usage.reasoning_tokens",
        "gen_ai.usage.details.reasoning_tokens", "llm.token_count.completion_details.reasoning",
        "ai.usage.outputTokenDetails.reasoningTokens", "ai.usage.reasoningTokens",
    ),
}  # fmt: skip
"""Tokens that a model reasoned with: a part of the output tokens by every convention listed here."""

USER_ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "stated_user": (
        "user.id", "enduser.id", "langfuse.user.id", "traceloop.association.properties.user_id",
        "ai.telemetry.metadata.userId",
    )
}  # fmt: skip
"""The user for whom something ran. One that stands twice is no reason to reject a span: the first counts."""

TOOL_CONTENTS: dict[str, tuple[str, ...]] = {
    "tool_arguments": ("gen_ai.tool.call.arguments", "input.value", "traceloop.entity.input", "ai.toolCall.args"),
    "ai_sdk_result": ("ai.toolCall.result",),
}
"""What a tool was given and gave. One that stands twice is no reason to reject a span: the first counts."""

INPUT_MESSAGES = ("gen_ai.input.messages", "ai.prompt.messages")
"""What an agent or a model was asked, as a list of messages in JSON."""

INPUTS = {
    "agent": (
        "input.value", "traceloop.entity.input", "langfuse.observation.input", "langfuse.trace.input", "ai.prompt",
    ),
    "chat": ("langfuse.observation.input",),
}  # fmt: skip
"""Likewise in any form, by kind; an agent's are also a workflow's. Of other chats it holds the settings of the call."""

INPUT_PARTS = (
    r"llm[.]input_messages[.]\d+[.]message[.]content(s[.]\d+[.]message_content[.]text)?|gen_ai[.]prompt[.]\d+[.]content"
)
"""Attributes with a text of a message each; the one that ends in `role` says whose it is."""

ANSWERED = ("assistant", "tool")
"""Roles of messages after which a model call goes on with a conversation, and begins no task."""

NOT_ASKED = ("system", "developer")
"""Roles of messages that say how to work, and not what is asked."""

ANSWER_ATTRIBUTES = (
    "gen_ai.output.messages", "ai.response.text", "ai.response.toolCalls", "ai.response.object",
    "llm.output_messages.0.message.content", "llm.output_messages.0.message.contents.0.message_content.text",
    "llm.output_messages.0.message.tool_calls.0.tool_call.function.name",
    "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments",
    "gen_ai.completion.0.content", "gen_ai.completion.0.tool_calls.0.name",
    "gen_ai.completion.0.tool_calls.0.arguments",
)  # fmt: skip
"""What a model answered, in all of these that are there."""

ATTRIBUTE_NAMES = tuple(
    dict.fromkeys(
        name
        for read in (ATTRIBUTES, CACHE_ATTRIBUTES, REASONING_ATTRIBUTES)
        for names in read.values()
        for name in names
    )
)

IN_CACHE_ATTRIBUTES = "cache"
IN_REASONING_ATTRIBUTES = "reasoning"
IN_USER_ATTRIBUTES = r"user(\.id|_id|Id)"
"""What all their names have in them, and few lines without them."""

TOTAL_ATTRIBUTES = (
    "gen_ai.usage.total_tokens", "llm.token_count.total", "llm.usage.total_tokens", "ai.usage.totalTokens",
)  # fmt: skip
"""All tokens of a call, which say whether the cached ones are among the input tokens."""

PROVIDER_ATTRIBUTES = ("gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system", "ai.model.provider")

CLAUDE_CODE = "claude_code."
"""How the names of Claude Code's own spans begin."""

CLAUDE_CODE_ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "request_model": ("model",),
    "tool_name": ("tool_name",),
    "input_tokens": ("input_tokens",),
    "output_tokens": ("output_tokens",),
    "cache_read_tokens": ("cache_read_tokens",),
    "cache_creation_tokens": ("cache_creation_tokens",),
    "success": ("success",),
    "own_error": ("error",),
}
"""What Claude Code's own spans say under names without a namespace, which mean something else on other spans."""

MODELS_IN_PARAMETERS = ("model", "model_name")
"""Names under which `llm.invocation_parameters` may say the model that was asked for."""

NO_MODELS = ("None", "null", "undefined", "unknown")
"""Texts that instrumentors write where no model was asked for by name."""

AGENTS_IN_METADATA = ("lc_agent_name",)
"""Names under which OpenInference's `metadata` may say the agent, as LangChain's agents have it."""

KIND_OF_OPERATION = {
    "invoke_agent": "agent",
    "invoke_workflow": "workflow",
    "handle_conversation_turn": "workflow",
    "chat": "chat",
    "text_completion": "chat",
    "generate_content": "chat",
    "chat.completions": "chat",  # Semantic Kernel's
    "text.completions": "chat",
    "execute_tool": "tool",
}
"""Values of `gen_ai.operation.name`; others, like `embeddings` and `create_agent`, make a span of kind `other`."""

KIND_IN_OPENINFERENCE = {"AGENT": "agent", "LLM": "chat", "TOOL": "tool"}
"""Values of `openinference.span.kind`; others, like CHAIN, make a span of kind `other` or a step."""

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

KIND_IN_CLAUDE_CODE = {"interaction": "agent", "llm_request": "chat", "tool": "tool"}
"""Values of `span.type` of Claude Code's own spans; others, like `tool.execution`, make a span of kind `other`."""

KIND_OF_MCP_METHOD = {"tools/call": "tool"}
"""Values of `mcp.method.name`, of clients and servers of the Model Context Protocol; others are of kind `other`."""

STEP_OF_OPERATION = {"retrieval": "retrieval"}
STEP_IN_OPENINFERENCE = {"RETRIEVER": "retrieval", "RERANKER": "rerank", "GUARDRAIL": "guardrail"}
STEP_OF_REQUEST = {"rerank": "rerank"}
"""Values of `gen_ai.operation.name`, `openinference.span.kind` and `llm.request.type` that name a step of a run.

A step becomes no record. A span is one only where nothing states another kind.
"""

UNKNOWN_MODEL = "unknown"
"""The model of a call that names none."""

METHODS = ("run", "kickoff", "_execute_core")
"""Methods of agents that OpenInference's spans are named after, behind the name of the agent."""


SHAPES = {"openinference_kind": "upper({})", "span_type": "CASE WHEN is_of_claude_code THEN {} END"}
"""What becomes of a value that is not taken as it is."""


def attribute_values(keys: str, texts: str, may_have_cached: str, may_have_reasoning: str, may_have_user: str) -> str:
    """SQL columns of `ATTRIBUTES` and the others: the texts that a span's attributes give.

    The span has a column `is_of_claude_code`.

    Args:
        keys: the attributes' keys, a list of texts.
        texts: their values in the same order, a list of texts; null where a value is empty.
        may_have_cached: whether the span may have any of `CACHE_ATTRIBUTES`, to look for them there alone.
        may_have_reasoning: likewise of `REASONING_ATTRIBUTES`.
        may_have_user: likewise of `USER_ATTRIBUTES`.
    """

    def found(names: Iterable[str]) -> str:
        return _coalesced(_looked_up(key, keys, texts) for key in names)

    columns = {column: [_looked_up(key, keys, texts) for key in names] for column, names in ATTRIBUTES.items()}
    may_have_either = f"{may_have_cached} OR {may_have_reasoning}"
    of_either = {"total_tokens": TOTAL_ATTRIBUTES, "provider": PROVIDER_ATTRIBUTES}
    others = [
        (may_have_cached, CACHE_ATTRIBUTES),
        (may_have_reasoning, REASONING_ATTRIBUTES),
        (may_have_either, of_either),
        (may_have_user, USER_ATTRIBUTES),
    ]
    columns |= {
        column: [f"CASE WHEN {may_have} THEN {found(names)} END"]
        for may_have, read in others
        for column, names in read.items()
    }
    for column, names in CLAUDE_CODE_ATTRIBUTES.items():
        own = f"CASE WHEN is_of_claude_code THEN {found(names)} END"
        columns[column] = [*columns.get(column, []), own]
    values = {column: SHAPES.get(column, "{}").format(_coalesced(values)) for column, values in columns.items()}
    return ", ".join(f"{value} AS {column}" for column, value in values.items())


def contents(keys: str, texts: str) -> str:
    """SQL columns of `TOOL_CONTENTS`, and `answer`, of spans whose kind is known: no other is searched for them.

    Args:
        keys: as of `attribute_values`.
        texts: likewise.
    """

    def found(names: Iterable[str]) -> list[str]:
        return [_looked_up(key, keys, texts) for key in names]

    columns = {
        column: f"CASE WHEN kind = 'tool' THEN {_coalesced(found(names))} END"
        for column, names in TOOL_CONTENTS.items()
    }
    answer = f"nullif(concat_ws(chr(31), {', '.join(found(ANSWER_ATTRIBUTES))}), '')"
    columns["answer"] = f"CASE WHEN kind = 'chat' THEN {answer} END"
    columns["input_messages"] = (
        f"CASE WHEN kind IN ('agent', 'workflow', 'chat') THEN {_coalesced(found(INPUT_MESSAGES))} END"
    )
    columns["own_input"] = f"""
        CASE WHEN kind IN ('agent', 'workflow') THEN {_coalesced(found(INPUTS["agent"]))}
            WHEN kind = 'chat' THEN {_coalesced(found(INPUTS["chat"]))} END
    """
    return ", ".join(f"{value} AS {column}" for column, value in columns.items())


def unanswered_inputs() -> str:
    """SQL columns of `contents` that tell inputs, null where a model call goes on with a conversation."""

    def unanswered(column: str) -> str:
        are_answered = " OR ".join(f"""contains({column}, '"{role}"')""" for role in ANSWERED)
        return f"CASE WHEN kind <> 'chat' OR NOT ({are_answered}) THEN {column} END AS {column}"

    return ", ".join(map(unanswered, _INPUT_COLUMNS))


_INPUT_COLUMNS = ("input_messages", "own_input")
_NOT_ASKED = ", ".join(f"'{role}'" for role in NOT_ASKED)


def _input_parts(keys: str, texts: str) -> str:
    """SQL for the texts of a chat's messages that have an attribute each; null where it goes on with a conversation."""
    are_answered = " OR ".join(f"list_contains({texts}, '{role}')" for role in ANSWERED)
    role = f"""{texts}[list_position({keys}, regexp_replace(one, 'content.*$', 'role'))]"""
    parts = f"""
        list_filter({keys}, lambda one: regexp_full_match(one, '{INPUT_PARTS}')
            AND coalesce({role}, '') NOT IN ({_NOT_ASKED}))
    """
    found = f"list_transform({parts}, lambda one: {texts}[list_position({keys}, one)])"
    told = f"nullif(array_to_string({found}, chr(31)), '')"
    return f"CASE WHEN kind = 'chat' AND NOT ({are_answered}) THEN {told} END"


def _asked_in(column: str) -> str:
    """SQL for the messages of a list in JSON, or of the one in an object, that say what is asked."""
    messages = f"""
        json_transform(
            CASE {column}[1] WHEN '[' THEN {column}::JSON ELSE json_extract({column}, '$.messages') END,
            '["JSON"]'
        )
    """
    asked = f"""list_filter({messages}, lambda one: coalesce(one->>'$.role', '') NOT IN ({_NOT_ASKED}))::VARCHAR"""
    is_json = f"{column}[1] IN ('[', '{{') AND strlen({column}) <= {MOST_CHARACTERS} AND json_valid({column})"
    return f"CASE WHEN {is_json} THEN coalesce({asked}, {column}->>'$.prompt') END"


def _coalesced(values: Iterable[str]) -> str:
    return f"coalesce({', '.join(values)})"


def _looked_up(key: str, keys: str, texts: str) -> str:
    return f"{texts}[list_position({keys}, '{key}')]"  # a missing key has no position, nothing stands there


def input_text(keys: str, texts: str) -> str:
    """SQL for the arguments of a tool, or what an agent or a model was asked, from `contents`; null where none is told.

    Of LangChain's tools OpenLLMetry tells the arguments beside the step that they are of. All messages count but those
    of `NOT_ASKED`, so that a turn of a conversation is another task than its beginning.

    Args:
        keys: as of `attribute_values`.
        texts: likewise.
    """
    in_langchain = r"""nullif(regexp_extract(tool_arguments, '^[{]"input_str": *"((\\.|[^"\\])*)"', 1), '')"""
    return f"""
    CASE WHEN kind = 'tool' THEN coalesce({in_langchain}, tool_arguments)
        ELSE coalesce({", ".join(map(_asked_in, _INPUT_COLUMNS))}, own_input, {_input_parts(keys, texts)}) END
    """


def output_text() -> str:
    """SQL for the result of a tool or the answer of a model, null where a span tells none or is of another kind."""
    return "CASE kind WHEN 'tool' THEN coalesce(tool_result, ai_sdk_result) ELSE answer END"


def task_id() -> str:
    """SQL for the item of an evaluation's dataset that a span states, null where it states none."""
    return f"""
    coalesce(
        dataset_item,
        CASE WHEN contains(braintrust_origin, '"dataset"') THEN {in_json("braintrust_origin", ("id",))} END
    )
    """


def is_of_claude_code() -> str:
    """SQL for whether a span, given as `span`, is one of Claude Code's own."""
    return f"coalesce(starts_with(span.name, '{CLAUDE_CODE}'), false)"


def agent_id() -> str:
    """SQL for the name of the agent that a span states, null where it states none."""
    return f"""
    coalesce(
        agent_id, {in_json("metadata", AGENTS_IN_METADATA)},
        CASE WHEN kind = 'workflow' THEN workflow_name END,
        CASE WHEN openinference_kind = 'AGENT' THEN graph_node END,
        CASE WHEN traceloop_kind = 'agent' THEN traceloop_name END,
        CASE WHEN ai_sdk_operation_stated = 'agent' THEN ai_sdk_function END
    )
    """


def model() -> str:
    """SQL for the model that was asked for, else the one that answered; null where a span states neither."""
    no_models = ", ".join(f"'{text}'" for text in NO_MODELS)
    asked_for = f"CASE WHEN request_model NOT IN ({no_models}) THEN request_model END"
    in_parameters = in_json("invocation_parameters", MODELS_IN_PARAMETERS)
    return f"coalesce({asked_for}, {in_parameters}, openinference_model, answering_model)"


def response_model() -> str:
    """SQL for the model that answered, null where a span states none."""
    return "coalesce(answering_model, openinference_model)"


def own_name(span: str) -> str:
    """SQL for what the name of a span says besides the operation that it may begin with; null where nothing is left.

    Args:
        span: the span's row.
    """
    of_claude_code = [f"{CLAUDE_CODE}{span_type}" for span_type in KIND_IN_CLAUDE_CODE]
    operations = "|".join([*KIND_OF_OPERATION, *KIND_IN_AI_SDK, *of_claude_code, *KIND_OF_MCP_METHOD]).replace(
        ".", "[.]"
    )
    return f"nullif(regexp_replace({span}.name, '^({operations})(\\s+|$)', ''), '')"


def agent_name(span: str) -> str:
    """SQL for the agent that the name of a span without another name says; null where it says the model or nothing.

    Args:
        span: the span's row.
    """
    methods = f"regexp_replace({own_name(span)}, '[.]({'|'.join(METHODS)})$', '')"
    without = f"CASE WHEN {span}.convention = 'openinference' THEN {methods} ELSE {own_name(span)} END"
    return f"nullif(nullif(nullif({without}, ''), {span}.model), {span}.response_model)"


def in_json(column: str, names: tuple[str, ...]) -> str:
    """A text in an attribute that holds a JSON object; most spans have no such attribute, or not that name in it."""
    values = ", ".join(f"""nullif(json_extract_string({column}, '$."{name}"'), '')""" for name in names)
    may_hold = " OR ".join(f"contains({column}, '{name}')" for name in names)
    return f"CASE WHEN ({may_hold}) AND json_valid({column}) THEN coalesce({values}) END"


def case(value: str, results: dict[str, str]) -> str:
    """SQL that maps the values of an expression; null for any other."""
    branches = " ".join(f"WHEN '{key}' THEN '{result}'" for key, result in results.items())
    return f"CASE {value} {branches} END"
