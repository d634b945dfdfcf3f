"""JSON Schemas of log lines and health documents; `python docs/json_schemas.py` writes them to `schemas`."""

import json
from pathlib import Path

from health_assets.consumer.document_schema import document_schema
from health_assets.schema.line_schema import line_schema

FOLDER = Path(__file__).parent / "schemas"
SCHEMAS = {"log-line.schema.json": line_schema, "health-document.schema.json": document_schema}


def text_of(name: str) -> str:
    """The text of a schema's file."""
    return json.dumps(SCHEMAS[name](), indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Write the schemas."""
    FOLDER.mkdir(exist_ok=True)
    for name in SCHEMAS:
        (FOLDER / name).write_text(text_of(name), encoding="utf-8")


if __name__ == "__main__":
    main()
