"""Telling the format of a file: in whatever order the formats stand, and never as two of them."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from random import Random
from typing import Any

import pytest

from health_assets.logs import formats
from health_assets.logs.formats import FORMATS, Format, Opening, reader_of, recognized
from health_assets.logs.formats.foreign_lines import Source
from health_assets.logs.limits import BLOCK_BYTES
from health_assets.logs.stores import RawFile
from health_assets_tests.fuzz.running import inputs_of
from health_assets_tests.fuzz.targets import RECORDED, TARGETS
from health_assets_tests.support import foreign_logs_made, langfuse_made
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.projects import REPOSITORY

NATIVE = line(execution("e1", "planner", START)).encode()
OTLP = b'{"resourceSpans":[{"resource":{},"scopeSpans":[]}]}'
NAME_OF_TARGET = {
    "tau_bench": ("tau-bench", foreign_logs_made.TAU_BENCH_NAME), "tau2_bench": ("tau2-bench", "results.json"),
    "langfuse": ("Langfuse", "traces.json"), "langfuse_lines": ("Langfuse", "rows.jsonl"),
    "phoenix": ("Phoenix", "annotations.json"), "phoenix_lines": ("Phoenix", "annotations.jsonl"),
    "claude_code": ("Claude Code", "session.jsonl"), "codex": ("Codex", "rollout.jsonl"),
    "harbor": ("Harbor", "result.json"), "atif": ("ATIF", "trajectory.json"),
    "terminal_bench": ("Terminal-Bench", "results.json"), "swe_agent": ("SWE-agent", "mail__mail-7.traj"),
    "mini_swe_agent": ("mini-swe-agent", "mail__mail-7.traj.json"), "openhands": ("OpenHands", "output.jsonl"),
    "metr": ("METR", "runs.jsonl"), "swe_bench": ("SWE-bench", "logs/mail-1/report.json"),
    "gemini_cli": ("Gemini CLI", "chat.jsonl"), "gemini_cli_old": ("Gemini CLI", "chat.json"),
    "opencode": ("OpenCode", "session.json"),
    "copilot_cli": ("Copilot CLI", "events.jsonl"), "cline": ("Cline", "ui_messages.json"),
    "agent_logs": ("OTLP logs of coding agents", "logs.jsonl"),
    "agent_log_documents": ("OTLP logs of coding agents", "logs.json"),
    "roo_code": ("Roo Code", "ui_messages.json"), "aider": ("aider", "aider.jsonl"),
    "langsmith": ("LangSmith", "runs.json"), "langsmith_lines": ("LangSmith", "runs.jsonl"),
    "weave": ("Weave", "calls.json"), "weave_lines": ("Weave", "calls.jsonl"),
    "mlflow": ("MLflow", "traces.json"), "mlflow_lines": ("MLflow", "traces.jsonl"),
    "phoenix_spans": ("Phoenix", "spans.json"), "phoenix_span_lines": ("Phoenix", "spans.jsonl"),
    "openai_agents": ("OpenAI Agents SDK", "traces.json"), "openai_agents_lines": ("OpenAI Agents SDK", "traces.jsonl"),
    "inspect_json": ("Inspect AI", "log.json"), "inspect_eval": ("Inspect AI", "log.eval"),
}  # fmt: skip
OF_EVERY_TYPE = (None, 5, True, "x", "", [], [5], {}, {"a": 5}, [{"a": 5}])
SAMPLE_LOGS = REPOSITORY / "health_assets_tests" / "support" / "sample_logs"
EVALUATIONS = REPOSITORY / "health_assets_tests" / "recorded_evaluations"
Sample = tuple[str | None, str, bytes]


def samples() -> Iterator[Sample]:
    """(format, file name, content) of every good file that the tests have; no format for lines of other things."""
    for target, (known, name) in NAME_OF_TARGET.items():
        for content in TARGETS[target].samples():
            yield known, name, content
            if content.startswith(b"{") and name.endswith(".json"):
                yield known, name, content.replace(b", ", b",\n ")
    for kind in ("LANGFUSE_TRACE", "TAU_BENCH", "TAU2"):
        known = {"L": "Langfuse", "TAU_": "tau-bench", "TAU2": "tau2-bench"}[kind[: 1 if kind[0] == "L" else 4]]
        yield known, "log.json", foreign_logs_made.dumped(getattr(foreign_logs_made, kind), indent=2).encode()
    for score in langfuse_made.SCORES:
        yield "Langfuse", "scores.jsonl", foreign_logs_made.dumped(score).encode()
    for path in EVALUATIONS.glob("phoenix-*annotations.json"):
        yield "Phoenix", path.name, path.read_bytes()
        yield "Phoenix", path.name, path.read_bytes().replace(b",", b",\n")
    for name, other in (("client.json", "a.json"), ("dataframe.jsonl", "a.json"), ("dataframe.jsonl", "a.jsonl")):
        yield "Phoenix", other, (EVALUATIONS / f"phoenix-{name}").read_bytes()
    for path in (*RECORDED.glob("*/*.jsonl"), *SAMPLE_LOGS.iterdir()):
        known = "the native format" if path.name == "native.jsonl" else "OTLP-JSON"
        yield known, path.name, path.read_bytes()
        yield known, "log.json", path.read_bytes()
    for known, content in (("the native format", NATIVE), ("OTLP-JSON", OTLP)):
        for name in ("a.json", "a.jsonl"):
            yield known, name, content
            yield known, name, content + b"\n" + content
        yield known, "a.json", content.replace(b",", b",\n").replace(b"{", b"{\n", 1)
    yield "the native format", "a.json", b"[" + NATIVE + b"]"
    yield "the native format", "a.json", OTLP[:20] + b"\n" + NATIVE
    yield "OTLP-JSON", "a.json", NATIVE[:20] + b"\n" + OTLP
    yield None, "a.jsonl", b"not json"
    yield None, "a.json", b'{"name": "package", "version": "1.0"}'


def damaged() -> Iterator[Sample]:
    """The same after damage of all kinds; nobody knows what they are."""
    for target, (_, name) in NAME_OF_TARGET.items():
        for content in inputs_of(target, 1, 0, 60):
            yield None, name, content


def file_of(name: str) -> RawFile:
    return RawFile(source_file=name, path=name, size_bytes=0, modified_ns=0)


def reader_in(order: tuple[Format, ...], name: str, content: bytes, monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.setattr(formats, "FORMATS", order)
    reader = reader_of(file_of(name), content[:BLOCK_BYTES])
    return getattr(reader, "keywords", reader)  # of a file that two take for theirs, which ones


def test_every_sample_is_told_as_what_it_is_and_as_nothing_else() -> None:
    counted: dict[str | None, int] = {}
    for known, name, content in samples():
        found = recognized(Opening(name, content[:BLOCK_BYTES]))
        assert [own.name for own in found] == [known] * (known is not None), (name, content[:300])
        counted[known] = counted.get(known, 0) + 1
    assert counted.keys() == {None, *(own.name for own in FORMATS)}


def test_no_damage_makes_two_formats_of_a_file() -> None:
    for _, name, content in damaged():
        found = {own.read for own in recognized(Opening(name, content[:BLOCK_BYTES]))}
        assert len(found) <= 1, (name, content[:300], found)


def test_a_field_of_any_type_is_no_reason_to_stop() -> None:
    """A file of somebody else's may have the fields of a format, and in them whatever it likes."""
    for target, (_, name) in NAME_OF_TARGET.items():
        for content in TARGETS[target].samples()[:3]:
            with suppress(ValueError):  # a sample that is no JSON has no fields
                for changed in of_other_types(json.loads(content.partition(b"\n")[0])):
                    found = recognized(Opening(name, json.dumps(changed).encode()))
                    assert len({own.read for own in found}) <= 1, (target, changed)


def of_other_types(record: Any) -> Iterator[Any]:
    """A record as often as it has fields that can be of another type."""
    if isinstance(record, list):
        yield from ([changed] for changed in of_other_types(record[0]))
    if isinstance(record, dict):
        yield from ({**record, field: value} for field in record for value in OF_EVERY_TYPE)


@pytest.mark.parametrize("seed", range(8))
def test_the_order_of_the_formats_does_not_matter(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    shuffled = tuple(Random(seed).sample(FORMATS, len(FORMATS)))
    assert shuffled != FORMATS
    for _, name, content in (*samples(), *damaged()):
        before = reader_in(FORMATS, name, content, monkeypatch)
        after = reader_in(shuffled, name, content, monkeypatch)
        if getattr(before, "__name__", "") == "_unknown":
            assert getattr(after, "__name__", "") == "_unknown"
        else:
            assert after == before, (name, content[:300])


def never(_: Source) -> Iterator[formats.Line]:
    raise AssertionError("the file is read")


@pytest.mark.parametrize(("name", "content"), [("a.jsonl", NATIVE), ("a.json", b"[" + NATIVE + b"]"), ("a.json", OTLP)])
@pytest.mark.parametrize("place", [0, len(FORMATS)])
def test_a_file_that_two_formats_take_for_theirs_is_rejected_with_a_sentence_that_names_both(
    name: str, content: bytes, place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    takes_all: Callable[[Opening], bool] = lambda opening: bool(opening.head)  # noqa: E731
    greedy = Format("greedy", takes_all, never)
    monkeypatch.setattr(formats, "FORMATS", (*FORMATS[:place], greedy, *FORMATS[place:]))
    reader = reader_of(file_of(name), content)
    assert reader is not None
    [refused] = list(reader(Source(file_of(name), iter([content]))))
    other = "OTLP-JSON" if content == OTLP else "the native format"
    first, second = sorted(["greedy", other])
    assert refused.fault == f"this file begins as one of {first} and as one of {second}; nothing of it is read"
    assert refused.text.encode() == content
