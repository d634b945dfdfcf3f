"""Values of declared formats: what a pattern finds, what counts where nothing is found, and what is a record."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from health_assets.core.errors import HealthAssetsError
from health_assets.logs.formats.declaration import Declaration, load_declaration
from health_assets.logs.formats.declared import read_document
from health_assets.logs.formats.foreign_lines import Source
from health_assets.logs.stores import RawFile

HEAD = """
name: shifts
private: {private}
{records}
recognize: [{{fields: [shift]}}]
make:
  - type: execution
    fields:
      execution_id: shift
      agent_id: {agent}
      started_at: begun
      ended_at: ended
      status: {{constant: success, unless: trouble}}
      error: trouble
      actions: {{path: "steps[].said", matching: '^(\\w+)'}}
"""
SHIFT = {"shift": "s-1", "begun": 1780833600, "ended": 1780833660}


def declared(folder: Path, agent: str, records: str = "", *, private: bool = False) -> Declaration:
    path = folder / "shifts.yaml"
    text = HEAD.format(agent=agent, records=records, private=str(private).lower())
    path.write_text(text, encoding="utf-8")
    return load_declaration(path)


def made(declaration: Declaration, document: Any) -> list[dict[str, Any] | str]:
    file = RawFile(source_file="night/crew-7.json", path="crew-7.json", size_bytes=0, modified_ns=0)
    lines = read_document(declaration, Source(file, iter([json.dumps(document).encode()]), Counter()))
    return [line.fault or json.loads(line.text) for line in lines]


def agents(declaration: Declaration, document: Any) -> list[str]:
    return [line if isinstance(line, str) else line["agent_id"] for line in made(declaration, document)]


def test_the_group_of_a_pattern_is_the_value(tmp_path: Path) -> None:
    declaration = declared(tmp_path, "{path: _file.name, matching: '^(.+)\\.json$'}")
    assert agents(declaration, SHIFT) == ["crew-7"]


def test_a_prefix_stands_before_a_text_that_is_found_and_nowhere_else(tmp_path: Path) -> None:
    declaration = declared(tmp_path, "[{path: worker, prefix: 'crew:'}, _file.folder]")
    assert agents(declaration, SHIFT | {"worker": "ann"}) == ["crew:ann"]
    assert agents(declaration, SHIFT) == ["night"]


def test_a_file_whose_values_no_expression_can_be_evaluated_on_is_none_of_the_format(tmp_path: Path) -> None:
    declaration = declared(tmp_path, "shift")
    [sign] = declaration.recognize
    choosy = sign.model_copy(update={"values": {"starts_with(shift, 's-')": ["true"]}})
    assert [choosy.fits({"shift": one}, lambda _: {}) for one in ("s-1", "t-1", None, 7)] == [True, False, False, False]


def test_a_document_is_told_by_the_first_element_of_any_of_its_lists(tmp_path: Path) -> None:
    [sign] = declared(tmp_path, "shift", "records: shifts").recognize
    by_steps = sign.model_copy(update={"record_fields": ["said"], "member": "steps"})
    by_shifts = sign.model_copy(update={"record_fields": ["said"]})
    lists = {"steps": {"said": None}, None: {"begun": 1}}
    assert by_steps.fits({"shift": None}, lists.__getitem__)
    assert not by_shifts.fits({"shift": None}, lists.__getitem__)


def test_a_pattern_is_matched_in_each_text_of_a_list_and_what_has_none_is_left_out(tmp_path: Path) -> None:
    steps = [{"said": "open door"}, {"said": "./run"}, {"said": "close"}, {}]
    [run] = made(declared(tmp_path, "shift"), SHIFT | {"steps": steps})
    assert isinstance(run, dict)
    assert run["actions"] == ["open", "close"]


@pytest.mark.parametrize(("worker", "agent"), [("day.ann", "ann"), ("ann", "night"), (None, "night"), (7, "night")])
def test_of_several_values_the_first_that_is_found_counts(tmp_path: Path, worker: Any, agent: str) -> None:
    declaration = declared(tmp_path, "[{path: worker, matching: '\\.(.+)'}, _file.folder]")
    assert agents(declaration, SHIFT | {"worker": worker}) == [agent]


def test_where_none_of_several_is_found_the_field_is_missing(tmp_path: Path) -> None:
    assert made(declared(tmp_path, "[worker, boss]"), SHIFT) == ["agent_id of the execution is missing"]


def test_a_document_that_holds_no_records_is_one(tmp_path: Path) -> None:
    declaration = declared(tmp_path, "shift", "records: shifts")
    other = SHIFT | {"shift": "s-2"}
    assert agents(declaration, {"shifts": [SHIFT, other]}) == ["s-1", "s-2"]
    assert agents(declaration, {"shifts": {"a": SHIFT}}) == ["s-1"]
    assert agents(declaration, {"shifts": []}) == []
    assert agents(declaration, SHIFT) == ["s-1"]
    assert made(declaration, {"shifts": None}) == ["agent_id of the execution is missing"]


@pytest.mark.parametrize(
    ("error", "kept"),
    [("RuntimeError", "RuntimeError"), ("LimitsExceeded", "LimitsExceeded"), ("usage_limits", "usage_limits"),
     ("Password", "not told"), ("RuntimeError: no such file", "not told")],
)  # fmt: skip
def test_of_a_private_format_an_error_is_its_kind_alone(tmp_path: Path, error: str, kept: str) -> None:
    [run] = made(declared(tmp_path, "shift", private=True), SHIFT | {"trouble": error})
    assert isinstance(run, dict)
    assert (run["status"], run["error"]) == ("failure", kept)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [("no group", "must have one group"), ("(a)(b)", "must have one group"), ("(", "is no regular expression")],
)
def test_a_pattern_that_cannot_find_one_value_is_refused(tmp_path: Path, pattern: str, reason: str) -> None:
    with pytest.raises(HealthAssetsError, match=reason):
        declared(tmp_path, f"{{path: shift, matching: '{pattern}'}}")
