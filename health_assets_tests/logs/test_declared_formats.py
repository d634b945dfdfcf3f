"""Declared formats: what a record becomes, what is said of one that cannot be used, and mistakes in a declaration."""

import json
from collections import Counter
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from health_assets.core.errors import HealthAssetsError
from health_assets.logs.formats import FORMATS, PRIVATE, declared
from health_assets.logs.formats.declaration import FIELDS, Declaration, load_declaration
from health_assets.logs.formats.foreign_lines import Line, Source
from health_assets.logs.stores import RawFile
from health_assets.schema import log_fields

MODIFIED = datetime(2026, 6, 7, 12, 30, tzinfo=UTC)
JOB: dict[str, Any] = {
    "job": "j1", "worker": "archiver", "begun": "2026-06-07T12:00:00Z", "ended": "2026-06-07T12:00:04Z", "state": "done"
}  # fmt: skip
FIELDS_OF_JOB: dict[str, Any] = {
    "execution_id": "job", "agent_id": "worker", "started_at": "begun", "ended_at": "ended",
    "status": {"path": "state", "values": {"done": "success", "broken": "failure"}},
}  # fmt: skip
Record = dict[str, Any]


def declaration(tmp_path: Path, **changes: Any) -> Declaration:
    """The format of jobs, with other parts."""
    path = tmp_path / "jobs.yaml"
    document = {
        "name": "job runner",
        "recognize": [{"fields": ["job", "worker"]}],
        "make": [{"type": "execution", "fields": FIELDS_OF_JOB}],
    }
    path.write_text(yaml.safe_dump(document | changes, sort_keys=False), "utf-8")
    return load_declaration(path)


def execution(**fields: Any) -> list[Record]:
    """The `make` of jobs, with other fields of the execution; None leaves one out."""
    chosen = {name: value for name, value in (FIELDS_OF_JOB | fields).items() if value is not None}
    return [{"type": "execution", "fields": chosen}]


def read(of: Declaration, content: Any, *, name: str = "night/jobs.json") -> tuple[list[Line], Counter[str]]:
    """What a document with this content becomes, and what was counted."""
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    file = RawFile(source_file=name, path=name, size_bytes=0, modified_ns=int(MODIFIED.timestamp()) * 10**9)
    source = Source(file, iter([text]))
    return list(declared.read_document(of, source)), source.notes


def records(of: Declaration, content: Any, **options: Any) -> list[Record]:
    """What a document becomes where all of it can be used."""
    lines, _ = read(of, content, **options)
    assert [line.fault for line in lines] == [None] * len(lines)
    return [json.loads(line.text) for line in lines]


def made_of(tmp_path: Path, record: Record, **fields: Any) -> Record:
    """The execution that a job with these fields becomes."""
    [found] = records(declaration(tmp_path, make=execution(**fields)), record)
    return found


def test_a_record_becomes_an_execution_with_the_fields_that_are_declared(tmp_path: Path) -> None:
    assert made_of(tmp_path, JOB) == {
        "type": "execution", "execution_id": "j1", "agent_id": "archiver", "started_at": "2026-06-07T12:00:00Z",
        "ended_at": "2026-06-07T12:00:04Z", "status": "success",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("field", "value", "stated", "becomes"),
    [
        ("cost_usd", "x", "0.25", 0.25),
        ("cost_usd", "x", "free", None),
        ("input_tokens", "x", 12.0, 12),
        ("input_tokens", "x", -1, None),
        ("agent_version", "x", 3, "3"),
        ("session_id", "x", "", None),
        ("actions", "x", ["a", 1, None, "b"], ["a", "1", "b"]),
        ("error", "x", {"code": 5}, '{"code": 5}'),
        ("input", "x", {"b": 1, "a": 2}, '{"a": 2, "b": 1}'),
        ("call_latency_s", {"path": "x", "factor": 0.001}, 250, 0.25),
        ("call_latency_s", {"path": "x", "factor": 0.001}, "soon", None),
        ("task_source", {"constant": "evaluation"}, None, "evaluation"),
        ("api_calls", "length(x)", [1, 2, 3], 3),
        ("ended_at", {"path": "begun", "plus": "x"}, 4.5, "2026-06-07T12:00:04.500000+00:00"),
        ("ended_at", {"path": "begun", "plus": "x", "factor": 0.001}, 4500, "2026-06-07T12:00:04.500000+00:00"),
        ("status", {"path": "x", "at_least": 1}, 1, "success"),
        ("status", {"path": "x", "at_least": 1}, 0.99, "failure"),
        ("status", {"path": "x", "at_least": 1}, True, "success"),
        ("status", {"path": "x", "at_least": 0, "unless": "state"}, 1, "failure"),
        ("status", {"path": "x", "values": {"true": "success", "null": "failure"}}, True, "success"),
        ("status", {"path": "x", "values": {"true": "success", "null": "failure"}}, None, "failure"),
    ],
)
def test_a_value_gets_the_type_of_its_field(
    tmp_path: Path, field: str, value: Any, stated: Any, becomes: object
) -> None:
    assert made_of(tmp_path, JOB | {"x": stated}, **{field: value}).get(field) == becomes


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ({"path": "state", "values": {"done": "success", "aborted": "cancelled"}}, "aborted"),
        ([{"path": "nowhere"}, {"constant": "cancelled"}], "done"),
        ("state", "cancelled"),
    ],
)
@pytest.mark.parametrize("private", [False, True])
def test_an_execution_that_was_cancelled_is_a_cancellation_with_the_fields_that_one_has(
    tmp_path: Path, status: Any, state: str, private: bool
) -> None:
    fields = {"status": status, "error": "state", "actions": "steps", "model": "model", "cost_usd": "cost"}
    call = {"type": "tool_call", "each": "steps", "fields": {"tool": "_item", "status": {"constant": "success"}}}
    of = declaration(tmp_path, private=private, make=[*execution(**fields), call])
    cancellation, step = records(of, JOB | {"state": state, "steps": ["list"], "model": "small-1", "cost": 0.5})
    begun = "2026-06-07T12:00:00+00:00" if private else JOB["begun"]
    ended = "2026-06-07T12:00:04+00:00" if private else JOB["ended"]
    assert cancellation == {
        "type": "cancellation", "execution_id": "j1", "agent_id": "archiver", "started_at": begun, "ended_at": ended,
        "model": "small-1", "cost_usd": 0.5,
    }  # fmt: skip
    assert (step["execution_id"], step["ended_at"]) == ("j1", ended)


def test_a_format_is_said_to_become_cancellations_where_its_statuses_have_them(tmp_path: Path) -> None:
    assert declaration(tmp_path).becomes == "executions"
    status = {"path": "state", "values": {"done": "success", "aborted": "cancelled"}}
    assert declaration(tmp_path, make=execution(status=status)).becomes == "executions, cancellations"


@pytest.mark.parametrize(
    ("value", "stated", "reason"),
    [
        ({"path": "x", "values": {"done": "success"}}, "half", 'x must be one of done, not "half"'),
        ({"path": "x", "values": {"done": "success"}}, None, "status of the execution is missing"),
        ({"path": "x", "at_least": 1}, "good", "x must be a number, so that status is known"),
        ({"path": "x", "at_least": 1}, None, "status of the execution is missing"),
        ("join(',', x)", 5, "join(',', x) cannot be evaluated"),
    ],
)
def test_what_does_not_tell_whether_it_succeeded_is_rejected_and_no_success(
    tmp_path: Path, value: Any, stated: Any, reason: str
) -> None:
    record = JOB | {"x": stated}
    [line], _ = read(declaration(tmp_path, make=execution(status=value)), record)
    assert (line.fault, json.loads(line.text)) == (reason, record)


def test_an_execution_without_a_start_has_no_duration(tmp_path: Path) -> None:
    found = made_of(tmp_path, JOB, started_at=None)
    assert (found["started_at"], found["is_timed"]) == (found["ended_at"], False)


def test_an_execution_without_an_end_has_the_time_of_its_file_only_where_that_is_declared(tmp_path: Path) -> None:
    [line], _ = read(declaration(tmp_path, make=execution(ended_at="gone")), JOB)
    assert line.fault == "ended_at of the execution is missing"
    lines, notes = read(declaration(tmp_path, make=execution(ended_at="gone"), file_time=True), JOB)
    found = json.loads(lines[0].text)
    assert (found["started_at"], found["ended_at"], found["is_timed"]) == (MODIFIED.isoformat(),) * 2 + (False,)
    assert [*notes.values()] == [1]


def test_an_execution_without_an_id_has_the_same_one_wherever_its_record_lies(tmp_path: Path) -> None:
    of = declaration(tmp_path, make=execution(execution_id=None))
    turned = dict(reversed(JOB.items()))
    first, second = records(of, [JOB, turned], name="a.json")
    [third] = records(of, JOB, name="b/c.json")
    other = records(of, JOB | {"begun": "2026-06-07T12:00:01Z"})[0]
    assert first["execution_id"] == second["execution_id"] == third["execution_id"] != other["execution_id"]


CALLS = [
    *execution(),
    {"type": "tool_call", "each": "calls", "when": "name != 'think'",
     "fields": {"tool": "name", "status": {"path": "ok", "values": {"true": "success", "false": "failure"}}}},
]  # fmt: skip


def test_calls_have_the_execution_and_the_end_of_the_one_before_them(tmp_path: Path) -> None:
    calls = [{"name": "list", "ok": True}, {"name": "think"}, {"name": "move", "ok": False}]
    _, first, second = records(declaration(tmp_path, make=CALLS), JOB | {"calls": calls})
    of_run = {"type": "tool_call", "agent_id": "archiver", "execution_id": "j1", "ended_at": JOB["ended"]}
    assert first == {**of_run, "call_id": "j1:tool_call:0", "tool": "list", "status": "success"}
    assert second == {**of_run, "call_id": "j1:tool_call:2", "tool": "move", "status": "failure"}


def test_a_call_that_cannot_be_used_is_rejected_alone_and_a_run_with_its_calls(tmp_path: Path) -> None:
    of = declaration(tmp_path, make=CALLS)
    bad = {"name": "list", "ok": "maybe"}
    lines, _ = read(of, JOB | {"calls": [bad, {"name": "move", "ok": True}]})
    assert [line.fault for line in lines] == [None, 'ok must be one of true, false, not "maybe"', None]
    assert json.loads(lines[1].text) == bad
    [line], _ = read(of, JOB | {"state": "?", "calls": [{"name": "move", "ok": True}]})
    assert line.fault == 'state must be one of done, broken, not "?"'


@pytest.mark.parametrize("is_about_behind", [False, True])
@pytest.mark.parametrize("jobs", [[JOB, JOB | {"job": "j2"}], {"a": JOB, "b": JOB | {"job": "j2"}}])
def test_records_of_a_documents_member_see_what_stands_before_and_behind_them(
    tmp_path: Path, jobs: Any, is_about_behind: bool
) -> None:
    parts = {"build": "7", "jobs": jobs}
    document = dict(reversed(parts.items())) if is_about_behind else parts
    make = execution(agent_version="_document.build", session_id="_key", platform="_file.folder")
    found = records(declaration(tmp_path, records="jobs", make=make), document)
    assert [(one["execution_id"], one["agent_version"], one["platform"]) for one in found] == [
        ("j1", "7", "night"), ("j2", "7", "night")
    ]  # fmt: skip
    assert [one.get("session_id") for one in found] == (["a", "b"] if isinstance(jobs, dict) else [None, None])


def test_each_member_of_a_document_may_be_a_record(tmp_path: Path) -> None:
    found = records(declaration(tmp_path, records="*", make=execution(execution_id="_key")), {"j8": JOB, "j9": JOB})
    assert [one["execution_id"] for one in found] == ["j8", "j9"]


def test_what_is_skipped_or_becomes_nothing_is_counted(tmp_path: Path) -> None:
    of = declaration(
        tmp_path,
        skip=[{"when": "state == 'running'", "note": "job that runs still"}],
        make=[{**execution()[0], "when": "state"}],
    )
    lines, notes = read(of, [JOB | {"state": "running"}, JOB | {"state": None}, JOB])
    assert (len(lines), notes) == (
        1, {"job runner job that runs still": 1, "job runner record that no table has a place for": 1}
    )  # fmt: skip


def test_a_value_of_another_type_is_left_out_and_counted_and_an_empty_one_is_none(tmp_path: Path) -> None:
    make = execution(cost_usd="dollars", input_tokens="tokens", model="engine", actions="steps")
    wrong = {"dollars": "free", "tokens": [1], "engine": {"name": "m"}, "steps": "list, move"}
    lines, notes = read(
        declaration(tmp_path, make=make),
        [JOB | wrong, JOB | dict.fromkeys(wrong, ""), JOB | {"dollars": "0.5", "tokens": 0, "engine": 4, "steps": []}],
    )
    told = "job runner {} of a type that the field does not have, left out"
    assert notes == {told.format(name): 1 for name in ("cost_usd", "input_tokens", "model", "actions")}
    of_wrong, of_empty, of_right = (json.loads(line.text) for line in lines)
    assert not of_wrong.keys() & {"cost_usd", "input_tokens", "model", "actions"} and of_empty == of_wrong
    assert (of_right["cost_usd"], of_right["input_tokens"], of_right["model"], of_right["actions"]) == (0.5, 0, "4", [])


def test_a_damaged_document_keeps_what_is_whole_and_tells_the_rest(tmp_path: Path) -> None:
    content = json.dumps([JOB, JOB | {"job": "j2"}]).encode()[:-20]
    lines, _ = read(declaration(tmp_path), content)
    assert [line.fault is None for line in lines] == [True, False]
    assert lines[1].text.startswith('{"job": "j2"')


def test_a_span_becomes_a_line_of_otlp(tmp_path: Path) -> None:
    make = [{
        "type": "span", "each": "steps",
        "fields": {
            "trace_id": "_record.job", "span_id": "id", "parent_span_id": "above", "name": "what", "started_at": "from",
            "ended_at": "to", "error": "trouble",
        },
        "attributes": {"gen_ai.operation.name": "kind", "gen_ai.usage.input_tokens": "tokens", "cached": "is_cached"},
    }]  # fmt: skip
    steps = [
        {"id": "s1", "what": "ask", "from": 1780833600, "to": "2026-06-07T12:00:02Z", "kind": "chat", "tokens": 7,
         "is_cached": True},
        {"id": "0123456789abcdef", "above": "s1", "what": "look", "from": 1780833600500, "trouble": "lost"},
    ]  # fmt: skip
    found = records(declaration(tmp_path, make=make), JOB | {"steps": steps})
    first, second = (one["resourceSpans"][0]["scopeSpans"][0]["spans"][0] for one in found)
    assert len(first["traceId"]) == 32 and first["traceId"] == second["traceId"]
    assert second["spanId"] == "0123456789abcdef" and second["parentSpanId"] == first["spanId"]
    assert (first["startTimeUnixNano"], first["endTimeUnixNano"]) == ("1780833600000000000", "1780833602000000000")
    assert first["attributes"] == [
        {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
        {"key": "gen_ai.usage.input_tokens", "value": {"intValue": "7"}},
        {"key": "cached", "value": {"boolValue": True}},
    ]
    assert "status" not in first and second["status"] == {"code": 2, "message": "lost"}
    assert second["startTimeUnixNano"] == "1780833600500000000" and "endTimeUnixNano" not in second


def test_nothing_of_the_text_of_a_private_format_is_handed_on(tmp_path: Path) -> None:
    secret = "Grandmother's recipe 17"
    make = [
        *execution(input="asked", error="trouble"),
        {"type": "tool_call", "each": "calls", "fields": {"tool": "name", "status": {"constant": "success"}, "arguments": "args"}},
    ]  # fmt: skip
    of = declaration(tmp_path, private=True, make=make)
    asked = JOB | {
        "asked": secret,
        "trouble": secret,
        "calls": [{"name": "list", "args": {"of": secret}}, {"no": secret}],
    }
    texts = [
        *read(of, asked)[0],
        *read(of, JOB | {"state": secret})[0],
        *read(of, JOB | {"ended": secret})[0],
        *read(of, json.dumps(asked).encode()[:-9])[0],
    ]
    assert len(texts) == 6 and not any(secret in line.text for line in texts)
    assert "recipe" not in str([line.fault for line in texts])
    first, again = (records(of, {**asked, "job": job, "calls": []})[0] for job in "ab")
    assert first["input"] == again["input"] and first["error"] == "not told"


@pytest.mark.parametrize(
    "private", ["Grandmother's recipe 17", {"a": "Grandmother's recipe 17"}, ["Grandmother's recipe 17"]]
)
def test_no_field_of_a_private_format_hands_on_a_text_that_it_cannot_have(tmp_path: Path, private: Any) -> None:
    names = (log_fields.Name, log_fields.ShortText, log_fields.Names)  # of agents, models, tools: these are kept
    for kind, fields in FIELDS.items():
        others = [name for name, field in fields.items() if not isinstance(field, names)]
        for name in others if kind != "span" else ():
            make = [{"type": kind, "fields": {**{own: "id" for own in fields if own != name}, name: "text"}}]
            lines, _ = read(declaration(tmp_path, private=True, make=make), {"id": "x", "text": private})
            assert not any("recipe" in f"{line.text} {line.fault}" for line in lines), (kind, name)


def test_a_private_format_makes_no_spans(tmp_path: Path) -> None:
    make = [{"type": "span", "fields": {"trace_id": "a", "span_id": "b", "started_at": "c"}}]
    with pytest.raises(HealthAssetsError, match="a private format makes no spans"):
        declaration(tmp_path, private=True, make=make)


def test_elements_without_an_id_are_executions_of_their_own(tmp_path: Path) -> None:
    runs = [JOB | {"state": "done"}, JOB | {"state": "broken"}, JOB | {"state": "broken"}]
    make = [{**execution(execution_id=None)[0], "each": "runs"}]
    found = records(declaration(tmp_path, make=make), {"job": "a", "worker": "b", "runs": runs})
    assert [one["status"] for one in found] == ["success", "failure", "failure"]
    assert len({one["execution_id"] for one in found}) == 3
    calls = {
        "type": "tool_call",
        "each": "runs[].calls[]",
        "fields": {"tool": "name", "status": {"constant": "success"}},
    }
    with pytest.raises(HealthAssetsError, match="its calls need an execution_id"):
        declaration(tmp_path, make=[*make, calls])


def test_records_are_skipped_by_what_is_around_them(tmp_path: Path) -> None:
    skip = [{"when": "_file.folder == 'night' && _document.kind == 'trial'", "note": "trial"}]
    of = declaration(tmp_path, records="jobs", skip=skip)
    assert read(of, {"jobs": [JOB], "kind": "trial"})[1] == {"job runner trial": 1}
    assert len(records(of, {"jobs": [JOB], "kind": "run"})) == len(records(of, {"jobs": [JOB]}, name="day/a.json")) == 1


def test_an_id_may_be_the_digest_of_the_record(tmp_path: Path) -> None:
    of = declaration(tmp_path, make=execution(execution_id="_digest"))
    first, other, again = records(of, [JOB, JOB | {"state": "broken"}, dict(reversed(JOB.items()))])
    assert first["execution_id"] == again["execution_id"] != other["execution_id"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(["job", "worker", "begun", "ended", "state", "x", "calls"]), JSON))
def test_whatever_values_a_record_has_it_becomes_lines_that_parse_or_is_rejected(record: Record) -> None:
    make = [
        *execution(
            status={"path": "state", "at_least": 0.5, "unless": "x.a"}, ended_at={"path": "begun", "plus": "ended"},
            input="x", actions="calls[].a", error="x.b", cost_usd={"path": "x", "factor": 2.0},
        ),
        {"type": "tool_call", "each": "calls", "fields": {"tool": "a", "status": {"path": "b", "values": {"true": "success"}}}},
        {"type": "span", "each": "calls", "fields": {"trace_id": "_record.job", "span_id": "a", "started_at": "b"}},
    ]  # fmt: skip
    of = Declaration.model_validate({"name": "job runner", "recognize": [{"fields": ["job"]}], "make": make})
    for line in declared.DeclaredRecords(of, Counter()).lines(
        record, declared.Place(number=1, key=None, file=RAW, document={})
    ):
        assert line.number == 1 and (line.fault or json.loads(line.text))


RAW = RawFile(source_file="a.json", path="a.json", size_bytes=0, modified_ns=0)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"make": [{"type": "run", "fields": {"a": "b"}}]},
            "make, entry 1: type: must be one of execution, cancellation, trigger",
        ),
        ({"make": execution(agent="worker")}, "make, entry 1: execution has no field agent; did you mean 'agent_id'?"),
        ({"make": execution(error={"path": "a", "constant": 1})}, "give either a path or a constant"),
        ({"make": execution(error="a..b")}, "'a..b' is no JMESPath expression: "),
        (
            {"make": execution(error={"path": "a", "value": {}})},
            ", line 20: make, entry 1: fields.error.value: unknown key",
        ),
        ({"make": []}, "the format: make: "),
        ({"make": execution(ended_at={"constant": date(2026, 6, 7)})}, "put a date into quotes"),
        ({"make": execution(cost_usd={"path": "x", "values": {"free": float("nan")}})}, "a finite number"),
        ({"recognize": "job"}, "recognize must be a list"),
        ({"recognise": []}, "the format: recognise: unknown key; did you mean 'recognize'?"),
        ({"skip": [{"when": "state =="}]}, "skip, entry 1: "),
    ],
)
def test_a_mistake_in_a_declaration_is_one_sentence_with_its_place(tmp_path: Path, changes: Any, told: str) -> None:
    with pytest.raises(HealthAssetsError) as error:
        declaration(tmp_path, **changes)
    assert told in str(error.value) and "\n" not in str(error.value)


def test_every_declaration_of_the_program_is_named_as_it_says_and_is_private_where_it_says() -> None:
    found = {path.stem: declared.packaged(path.stem) for path in declared.FOLDER.glob("*.yaml")}
    assert {one.name for one in found.values()} <= {known.name for known in FORMATS}
    assert all(one.private == (one.name in PRIVATE) for one in found.values())
    assert all(field in FIELDS[made.type] for one in found.values() for made in one.make for field in made.fields)
