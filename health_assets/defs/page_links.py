"""Links from an asset on Dagster's page: to its page of `serve`, and to what the documentation says of it.

What belongs here: which page is whose. What does not: links to the source (`source_links`), and the pages themselves.
"""

from collections.abc import Iterable

import dagster as dg

from health_assets.core.settings import Settings
from health_assets.defs.naming import table_of

PAGE, DATA_PAGE = "page", "data quality page"
"""Names of the links in an asset's metadata."""
DATA = "/data"
PAGES = {
    "agent_health": "/",
    "agent_now": "/",
    "system_health": "/",
    "agent_probes": "/survey",
    "survey_summary": "/survey",
    "session_scores": "/sessions",
    "trace_risks": "/sessions",
    "model_health": "/models",
    "model_fallback": "/models",
    "tool_health": "/tools",
    "agent_usage": "/usage",
    "usage_breakdown": "/usage",
    "error_budget": "/budgets",
    "agent_reliability": "/reliability",
    "task_consistency": "/reliability",
}
"""The page of `serve` that shows an asset; that of the checks shows all of them."""
DOCS = {
    "raw_records": "log-format.md",
    "agent_health_model": "scores.md",
    "agent_now": "agent-now.md",
    "agent_health_state": "agent-health-state.md",
    "explanations": "scores.md",
    "model_health": "model-health.md",
    "session_scores": "session-scores.md",
    "reliability": "reliability.md",
    "error_budget": "error-budget.md",
    "tool_health": "tools-and-usage.md",
    "agent_usage": "tools-and-usage.md",
    "release_comparison": "releases.md",
    "agent_drift": "drift.md",
    "survey": "consumer-and-survey.md",
}
"""The page of the documentation on a system; one without a page has its tables alone."""
TABLES_PAGE = "tables.md"


def linked(assets: Iterable[dg.AssetsDefinition], settings: Settings) -> list[dg.AssetsDefinition]:
    """The assets with links: to pages of `serve` where a setting says where it is, and to the documentation."""
    return [asset.map_asset_specs(lambda spec: _linked(spec, settings)) for asset in assets]


def _linked(spec: dg.AssetSpec, settings: Settings) -> dg.AssetSpec:
    told = spec.replace_attributes(description=f"{spec.description}\n\n{_docs(spec, settings.docs_url)}")
    if settings.pages_url is None:
        return told
    base, path = settings.pages_url.rstrip("/"), PAGES.get(table_of(spec.key))
    pages = {DATA_PAGE: dg.MetadataValue.url(base + DATA)}
    return told.merge_attributes(metadata=pages | ({PAGE: dg.MetadataValue.url(base + path)} if path else {}))


def _docs(spec: dg.AssetSpec, docs_url: str | None) -> str:
    """The pages of the documentation, as links where it has an address."""
    columns = f"{TABLES_PAGE}#{table_of(spec.key)}"
    system = DOCS.get(spec.tags["system"])
    pages = [*([("Meaning", system)] if system else []), ("Columns", columns)]
    base = docs_url and docs_url.rstrip("/")
    return "; ".join(f"[{what}]({base}/{page})" if base else f"{what}: `docs/{page}`" for what, page in pages) + "."
