"""The OpenAPI document as a page that needs nothing from elsewhere: no script, no other server."""

from html import escape
from typing import Any

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem; color: #1c2733 }
h2 { margin: 2.5rem 0 0; font: 600 1.05rem ui-monospace, monospace; overflow-wrap: anywhere }
h2 span { color: #0a7d4f }
table { border-collapse: collapse; margin: .5rem 0; width: 100% }
td { padding: .25rem .75rem .25rem 0; vertical-align: top; border-top: 1px solid #dde3ea }
td:first-child { font-family: ui-monospace, monospace; white-space: nowrap; width: 9rem }
"""


def docs_page(document: dict[str, Any]) -> str:
    """Every path with its parameters and answers, as HTML.

    Args:
        document: an OpenAPI document whose paths have a GET.
    """
    info = document["info"]
    operations = "".join(_operation(path, methods["get"]) for path, methods in document["paths"].items())
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(info["title"])}</title>'
        f"<style>{STYLE}</style><h1>{escape(info['title'])}</h1><p>{escape(info['description'])}</p>"
        f'<p>The same for programs: <a href="openapi.json">openapi.json</a>.</p>{operations}</html>'
    )


def _operation(path: str, operation: dict[str, Any]) -> str:
    parameters = [(item["name"], _parameter(item)) for item in operation.get("parameters", [])]
    answers = [(status, answer["description"]) for status, answer in sorted(operation["responses"].items())]
    return (
        f"<h2><span>GET</span> {escape(path)}</h2><p><b>{escape(operation['summary'])}.</b> "
        f"{escape(operation.get('description', ''))}</p>{_table(parameters)}{_table(answers)}"
    )


def _parameter(item: dict[str, Any]) -> str:
    schema = item["schema"]
    choices: list[str] = next((part["enum"] for part in [schema, *schema.get("anyOf", [])] if "enum" in part), [])
    facts = [
        item.get("description", ""),
        f"One of {', '.join(choices)}." if choices else "",
        f"{schema['minimum']} to {schema['maximum']}." if "minimum" in schema else "",
        f"Default {schema['default']}." if "default" in schema else "",
    ]
    return " ".join(fact for fact in facts if fact)


def _table(rows: list[tuple[str, str]]) -> str:
    cells = "".join(f"<tr><td>{escape(name)}</td><td>{escape(text)}</td></tr>" for name, text in rows)
    return f"<table>{cells}</table>" if rows else ""
