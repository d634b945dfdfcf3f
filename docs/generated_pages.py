"""Pages that follow from code which `health_assets.schema` cannot see: the lineage and the attributes of spans.

`python docs/generated_pages.py` writes them beside this file.
"""

from collections.abc import Iterable
from pathlib import Path

from health_assets.logs.conventions import (
    ANSWER_ATTRIBUTES,
    ATTRIBUTES,
    CACHE_ATTRIBUTES,
    INPUT_MESSAGES,
    INPUTS,
    REASONING_ATTRIBUTES,
    TOOL_CONTENTS,
    TOTAL_ATTRIBUTES,
    USER_ATTRIBUTES,
)

FOLDER = Path(__file__).parent
LINEAGE = """# The lineage

Which table is made from which; [tables](tables.md) says what a row of each is and what each column means. Written by
`make docs` from the assets.

```mermaid
flowchart LR
"""
RECORDS_FROM = {"raw_logs", "spans"}
"""What records alone are made from; other assets only wait for the checks of `raw_logs`."""
OUTSIDE = (
    'files[("raw logs")] --> raw_logs',
    'registry[("registry of agents<br/>.yaml")] --> agent_probes',
    "agent_now & agent_health & score_evidence & error_budget & agent_health_state & model_health & agent_probes & "
    "release_comparison & drift & expectation_results -- rules --> alerts -- channels --> "
    'told[["Slack, pagers, webhook, e-mail"]]',
)
"""What is no asset: files, and what rules read."""

SPAN_ATTRIBUTES = """# Attributes of spans

The attributes from which [spans](opentelemetry.md#which-attribute-goes-where) get their columns, in their order: the
first that is there and not empty counts. Written by `make docs` from `health_assets/logs/conventions.py`.

| what | attributes |
|---|---|
"""
PART_OF_INPUT = ("llm.input_messages.*", "gen_ai.prompt.*")
KINDS = (
    "operation", "openinference_kind", "traceloop_kind", "ai_sdk_operation", "span_type", "mcp_method", "request_type",
    "system", "logfire_type",
)  # fmt: skip
COLUMNS: dict[str, tuple[str, ...]] = {
    "kind of a span": KINDS,
    "`agent_id`": ("agent_id", "metadata", "graph_node", "workflow_name", "traceloop_name", "ai_sdk_function"),
    "`agent_version`": ("agent_version",),
    "`session_id`": ("session_id",),
    "`model` of a call": ("request_model", "invocation_parameters", "openinference_model", "answering_model"),
    "`response_model` of a call": ("answering_model", "openinference_model"),
    "`tool`": ("tool_name",),
    "`task_id`": ("dataset_item", "braintrust_origin"),
    "`error`": ("error_type",),
    "`input_tokens`": ("input_tokens",),
    "`output_tokens`": ("output_tokens",),
    "`cost_usd`": ("cost_usd",),
    "result of a tool": ("tool_result",),
}
"""Keys of `ATTRIBUTES`, by what they give."""
IN_JSON = {"metadata": "lc_agent_name", "llm.invocation_parameters": "model` or `model_name", "braintrust.origin": "id"}
"""Attributes that hold JSON, with what is read of it."""


def lineage() -> str:
    """The page with every asset and what it is made from."""
    from health_assets.core.settings import Settings
    from health_assets.defs.build import build_definitions  # slow, and the other page does not need it

    tables_alone = Settings(published="off")  # all of which are published
    graph = build_definitions(tables_alone).resolve_asset_graph()
    made: dict[tuple[str, ...], list[str]] = {}
    for key in graph.toposorted_asset_keys:
        upstream = {parent.to_user_string() for parent in graph.get(key).parent_keys}
        if not upstream <= RECORDS_FROM:
            upstream.discard("raw_logs")
        if upstream:
            made.setdefault(tuple(sorted(upstream)), []).append(key.to_user_string())
    arrows = [f"{' & '.join(upstream)} --> {' & '.join(tables)}" for upstream, tables in made.items()]
    return LINEAGE + "".join(f"    {line}\n" for line in (*OUTSIDE[:1], *arrows, *OUTSIDE[1:])) + "```\n"


def span_attributes() -> str:
    """The page with every attribute that is read."""
    rows: dict[str, Iterable[str]] = {
        **{column: [name for key in keys for name in ATTRIBUTES[key]] for column, keys in COLUMNS.items()},
        **{f"`{column}`": names for column, names in (CACHE_ATTRIBUTES | REASONING_ATTRIBUTES).items()},
        "total of tokens": TOTAL_ATTRIBUTES,
        "`user_id`": USER_ATTRIBUTES["stated_user"],
        "`input_digest`, of an agent": (*INPUT_MESSAGES, *INPUTS["agent"]),
        "`input_digest`, of its first model call": (*INPUT_MESSAGES, *INPUTS["chat"], *PART_OF_INPUT),
        "`arguments_digest` of a tool": TOOL_CONTENTS["tool_arguments"],
        "`result_digest` of a tool": (*ATTRIBUTES["tool_result"], *TOOL_CONTENTS["ai_sdk_result"]),
        "`output_digest` of a model, from all": ANSWER_ATTRIBUTES,
    }
    lines = (f"| {what} | {', '.join(map(_attribute, names))} |\n" for what, names in rows.items())
    return SPAN_ATTRIBUTES + "".join(lines)


def _attribute(name: str) -> str:
    return f"`{IN_JSON[name]}` in the JSON of `{name}`" if name in IN_JSON else f"`{name}`"


PAGES = {"lineage.md": lineage, "span-attributes.md": span_attributes}

if __name__ == "__main__":
    for page, text in PAGES.items():
        (FOLDER / page).write_text(text(), encoding="utf-8")
