"""The JSON Schemas of the log format and of health documents, against the readers that they describe."""

import json
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from health_assets.consumer import InvalidDocumentError, parse_document
from health_assets.schema.records import LINE_TYPES
from health_assets_tests.logs.test_rejections import BAD, GOOD
from health_assets_tests.support import reference
from health_assets_tests.support.health_servers import document
from health_assets_tests.support.projects import REPOSITORY

DOCS = run_path(str(REPOSITORY / "docs" / "json_schemas.py"))
SAMPLES = REPOSITORY / "health_assets_tests" / "support" / "sample_logs" / "native.jsonl"
BEYOND_A_SCHEMA = (
    "ended before started",
    "twice",
    r"\u00e9",
    "2026-02-30",
    " 3.0",
    "count as a float",
    " nan",
    " inf",
    "1e400",
)
"""Parts of the names of bad lines whose fault no schema can state."""


def validator(name: str) -> Draft202012Validator:
    schema = json.loads((DOCS["FOLDER"] / name).read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


LINES, DOCUMENTS = validator("log-line.schema.json"), validator("health-document.schema.json")


@pytest.mark.parametrize("name", [*DOCS["SCHEMAS"]])
def test_a_schema_is_the_one_that_the_code_makes(name: str) -> None:
    assert (DOCS["FOLDER"] / name).read_text(encoding="utf-8") == DOCS["text_of"](name)


def json_lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("{")]


def samples_of_the_docs() -> list[Any]:
    text = (REPOSITORY / "docs" / "log-format.md").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.split("```json\n")[1].split("```")[0].splitlines() if line]


@pytest.mark.parametrize(
    "lines",
    [samples_of_the_docs(), json_lines(SAMPLES), [*GOOD.values()], [kind.sample for kind in LINE_TYPES.values()]],
    ids=["docs", "sample log", "shortest", "all fields"],
)
def test_good_lines_are_valid(lines: list[Any]) -> None:
    assert lines
    for line in json.loads(json.dumps(lines)):
        assert [error.message for error in LINES.iter_errors(line)] == []


@pytest.mark.parametrize("kind", [*GOOD])
def test_a_field_that_may_be_missing_may_be_null_and_one_that_nobody_knows_holds_anything(kind: str) -> None:
    optional = [
        field.name for field in LINE_TYPES[kind].fields if not field.is_required and field.name not in GOOD[kind]
    ]
    line = GOOD[kind] | dict.fromkeys(optional) | {"unknown": {"any": ["thing"]}}
    assert reference.clean(line) is not None
    assert LINES.is_valid(line)


def parsed(line: str | bytes) -> Any:
    try:
        return json.loads(line) if isinstance(line, str) else None
    except (ValueError, RecursionError):
        return None


BAD_JSON = [(name, value) for name, line, _ in BAD if (value := parsed(line)) is not None]


def test_a_bad_line_is_not_valid_unless_no_schema_can_state_its_fault() -> None:
    passed = {name for name, line in BAD_JSON if LINES.is_valid(line)}
    assert len(BAD_JSON) > 500
    assert {name for name in passed if not any(part in name.lower() for part in BEYOND_A_SCHEMA)} == set()


@pytest.mark.parametrize(
    "changes",
    [
        {}, {"health__uptime_seconds": ...}, {"decay__days_since_model_change": None}, {"calibration": ..., "decay": ...},
        {"extensions": ...}, {"schema_version": "0.1.3-draft.1"}, {"unknown": 1}, {"timestamp": "2026-06-07T15:00:00.5+02:00"},
        {"calibration__sample_count": 12.0},
    ],
    ids=str,
)  # fmt: skip
def test_a_document_that_a_consumer_takes_is_valid(changes: dict[str, Any]) -> None:
    made = document(**changes)
    parse_document(json.dumps(made).encode())
    assert [error.message for error in DOCUMENTS.iter_errors(made)] == []


@pytest.mark.parametrize(
    "changes",
    [
        {"schema_version": ...}, {"schema_version": "0.2.0"}, {"schema_version": "1"}, {"agent_id": ""}, {"agent_id": 1},
        {"timestamp": "2026-06-07T13:00:00"}, {"timestamp": "yesterday"}, {"health": ...}, {"health__status": "fine"},
        {"health__last_healthy_at": None}, {"health__uptime_seconds": -1}, {"calibration__response_ratio": 1.1},
        {"calibration__error_ratio": None}, {"calibration__measurement_window_seconds": 299},
        {"calibration__sample_count": 1.5}, {"calibration__sample_count": 2**63}, {"calibration": None},
        {"decay__calibration_trend": "up"}, {"extensions": {"feature": 1}}, {"decay__days_since_model_change": "3"},
    ],
    ids=str,
)  # fmt: skip
def test_a_document_that_a_consumer_refuses_is_not_valid(changes: dict[str, Any]) -> None:
    made = document(**changes)
    with pytest.raises(InvalidDocumentError):
        parse_document(json.dumps(made).encode())
    assert not DOCUMENTS.is_valid(made)
