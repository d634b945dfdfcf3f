"""A target for each parser: its samples, and what must be true of what the product makes of damaged ones.

What belongs here: samples and oracles. What does not: damage (`mutations`) and running it (`running`).

An oracle raises where something is wrong. It shares no code with the parser that it looks at: native lines are judged by
the reference, spans are counted by Python's own JSON parser.
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import yaml
from joserfc import jws
from joserfc.jwk import OKPKey
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from health_assets.apps.alerts.config import load_alerts
from health_assets.apps.collecting.requests import TRACES, Encoding, MalformedRequestError, converted
from health_assets.consumer import signatures
from health_assets.consumer.document import InvalidDocumentError, parse_document
from health_assets.core.errors import HealthAssetsError
from health_assets.core.targets import Targets, load_targets
from health_assets.logs.files import Notes, list_files
from health_assets.logs.reader import log_parser
from health_assets.systems.survey.surveyed_agents import load_registry
from health_assets_tests.support import (
    agent_logs_made,
    coding_agents_made,
    coding_sessions_made,
    exports_made,
    foreign_logs_made,
    harnesses_made,
    langfuse_made,
    reference,
)
from health_assets_tests.support.health_servers import document
from health_assets_tests.support.logs_made import START, line, random_lines, random_targets
from health_assets_tests.support.projects import Project, Row, assert_lines_are_conserved, hours_from
from health_assets_tests.support.traces_made import agent, chat, in_snake_case, otlp_line

SAMPLES = Path(__file__).parent / "samples"
RECORDED = Path(__file__).parents[1] / "recorded_traces"
EVALUATIONS = Path(__file__).parents[1] / "recorded_evaluations"
LONGEST_SENTENCE = 4_000
LARGEST_SPAN_SAMPLE_BYTES = 20_000
LONGEST_NAME_BYTES = 1024
CLOCK_SKEW = timedelta(minutes=5)
OF_ONE_SPAN = re.compile(r", in span \d+\.\d+\.\d+")
"""How the reason ends of a span that is rejected by itself."""


@dataclass(frozen=True)
class Target:
    """A parser under attack.

    Args:
        samples: good inputs.
        check: takes mutated inputs and an empty folder, and raises where what the product makes of them is wrong.
        batch: inputs that are checked at once.
        limit_s: time of a processor that a batch may take, in seconds.
    """

    samples: Callable[[], Sequence[bytes]]
    check: Callable[[Sequence[bytes], Path], None]
    batch: int
    limit_s: int = 120


# -- lines -------------------------------------------------------------------------------------------------------------


def native_samples() -> list[bytes]:
    return [one.encode() for one in random_lines(Random(1), 400, 12)]


def check_native(lines: Sequence[bytes], folder: Path) -> None:
    """Every line that is not blank is one record, or one rejection; which of them, the reference says."""
    first = line({"type": "agent_update", "agent_id": "first", "at": START.isoformat(), "kind": "restart"})
    content = b"\n".join([first.encode(), *lines])  # the first line tells what the file is, so it stays whole
    project = Project(folder / "project")
    project.write_bytes("a.jsonl", content)
    found = rows_by_line(project)
    latest = datetime.now(UTC) + CLOCK_SKEW
    written = 0
    for number, one in enumerate(content.split(b"\n"), 1):
        rows = found.pop((0, number), [])
        if not one.strip(b" \t\r"):
            assert not rows, f"a blank line is {rows}"
            continue
        written += 1
        if is_otlp(one):
            continue  # the other target looks at these
        if is_near_miss(one):
            assert rows, f"nothing came of {one!r}"
            written += len(rows) - 1
            continue  # a target of their own looks at these
        if is_too_deep(one):
            assert len(rows) == 1, f"{one[:300]!r} is {len(rows)} rows"
            continue  # the reference cannot read it
        assert len(rows) == 1, f"{one!r} is {len(rows)} rows"
        parsed = reference.parse_object(one)
        record = None if parsed is None else reference.clean(parsed)
        if record is None:
            assert rows[0]["record_type"] == "rejected" or is_lenient(one), f"{one!r} is no record, but {rows[0]}"
        elif not may_be_rejected(record, latest) and is_text(parsed) and not has_a_key_twice(one):
            assert_is(rows[0], record, one)
    assert not found, f"rows of no line: {found}"
    project.ingest(hours_from(START, 12))
    assert_lines_are_conserved(project)
    [(counted,)] = project.query("SELECT sum(lines) FROM raw_logs WHERE record_type <> 'span'")
    otlp = sum(is_otlp(one) or is_near_miss(one) for one in content.split(b"\n"))
    assert written - otlp <= counted <= written, f"{counted} lines are counted, {written} were written"


def is_near_miss(one: bytes) -> bool:
    """Whether a line may be read as another than itself, or as several."""
    return NEAR_MISS.search(one) is not None


NEAR_MISS = re.compile(
    rb'^\0|^[^{\s]|\}\s*\{|^\s*\{\s*"(resource|scope\w+|schema_?[uU]rl|log|MESSAGE)"\s*:|"MESSAGE"\s*:'
)


@cache
def near_miss_samples() -> list[bytes]:
    """Lines behind prefixes, in wrappers, several on a line, bare resources, behind NULs, and headers between them."""
    run, fired = (one.encode() for one in random_lines(Random(2), 2, 1))
    bare = [
        json.dumps(resource).encode() for one in span_samples()[:5] for resource in json.loads(one)["resourceSpans"]
    ]
    return [
        b"INFO: " + run,
        b"2026-06-07T00:00:00.1Z stdout F " + run,
        json.dumps({"log": run.decode() + "\n", "stream": "stderr"}).encode(),
        json.dumps({"MESSAGE": fired.decode(), "__REALTIME_TIMESTAMP": "1"}).encode(),
        run + fired,
        b"\0" * 40 + fired,
        b"Nov 24, 2026 10:00:02 AM io.opentelemetry.Exporter export",
        *bare,
        *(b"INFO: " + one for one in bare),
    ]


def check_near_misses(lines: Sequence[bytes], folder: Path) -> None:
    """Every line that is not blank comes to a row or a note, and all rows are accounted for."""
    first = line({"type": "agent_update", "agent_id": "first", "at": START.isoformat(), "kind": "restart"})
    content = b"\n".join([first.encode(), *lines])
    project = Project(folder / "project")
    project.write_bytes("a.jsonl", content)
    notes: Notes = {}
    found = rows_by_line(project, notes)
    told = sum(notes.get(0, {}).values())
    without = [one for number, one in enumerate(content.split(b"\n"), 1) if one.strip() and (0, number) not in found]
    assert len(without) <= told + sum(is_otlp(one) or b'"resource' in one for one in lines), (
        f"nothing came of {without}"
    )
    project.ingest(hours_from(START, 12))
    assert_lines_are_conserved(project)


def assert_is(row: Row, record: dict[str, Any], one: bytes) -> None:
    id_field = reference.ID_FIELD.get(record["type"], "record_type")
    expected = (record["type"], record["_hour"], record[id_field] if id_field in record else record["type"])
    assert (row["record_type"], row["hour"], row[id_field]) == expected, f"{one!r} is {row}"


def may_be_rejected(record: dict[str, Any], latest: datetime) -> bool:
    """Whether a record that the contract allows is beyond a limit that guards the product: of time, or of a name's size."""
    names = [value for key, value in record.items() if isinstance(value, str) and not key.startswith("_")]
    moments = [value for key, value in record.items() if key.startswith("_") and isinstance(value, datetime)]
    return any(len(name.encode(errors="replace")) > LONGEST_NAME_BYTES for name in names) or max(moments) > latest


def is_text(parsed: Any) -> bool:
    """Whether all texts of a line are Unicode; half of a surrogate pair is none, and such a line may be rejected."""
    try:
        json.dumps(parsed, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def is_too_deep(one: bytes) -> bool:
    """Whether a line is deeper than Python's parser goes, on which the oracles stand."""
    try:
        json.loads(one)
    except RecursionError:
        return True
    except ValueError:
        pass  # it is no JSON, which the oracles say themselves
    return False


def has_a_key_twice(one: bytes) -> bool:
    """Whether an object within a line has a key twice; which value counts is nothing to guess about."""
    found = False

    def look(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal found
        found = found or len(dict(pairs)) < len(pairs)
        return dict(pairs)

    json.loads(one, object_pairs_hook=look)
    return found


def is_lenient(one: bytes) -> bool:
    """Whether the product may take this line although the reference does not: docs/performance.md."""
    as_written = strict_json(one)
    for lenient, strict in LENIENT_TIMES:
        as_written = re.sub(lenient, strict, as_written)
    parsed = reference.parse_object(as_written)
    return parsed is not None and reference.clean(parsed) is not None


LENIENT_TIMES = (
    (rb"([T ])24:00(:00([.,]0+)?)?(?!\d)", rb"\g<1>23:59:59"),  # the end of a day
    (rb"(T[\d:.,]+[+-]\d\d)(\d\d\")", rb"\1:\2"),  # a zone without its colon
    (rb"(T\d\d:\d\d:)(\d[.,]\d*Z)", rb"\g<1>0\2"),  # a second of one digit
    (rb"(T\d\d:\d\d:\d\d)[.,]Z", rb"\1Z"),
)
"""Ways to write a time that are read besides those of the contract, and how it has them."""


def strict_json(one: bytes) -> bytes:
    """A line without what DuckDB's parser takes although it is no JSON."""
    return re.sub(rb"\b(NaN|-?Infinity|nan|inf)\b", b"0", re.sub(rb",(\s*[\]}])", rb"\1", one))


def is_otlp(one: bytes) -> bool:
    return (
        re.match(
            rb'\s*\{\s*("schema_?[uU]rl"\s*:\s*"[^"\\]*"\s*,\s*)?"resource(Spans|Metrics|Logs|_spans|_metrics|_logs)"\s*:',
            one,
        )
        is not None
    )


@cache
def span_samples() -> list[bytes]:
    files = sorted(RECORDED.glob("*/*.jsonl"))
    lines = [one for file in files for one in file.read_bytes().splitlines()]
    short = [one for one in lines if len(one) <= LARGEST_SPAN_SAMPLE_BYTES]
    return [*short, *(in_snake_case(one.decode()).encode() for one in short[::5])]


def check_spans(lines: Sequence[bytes], folder: Path) -> None:
    """Every span of a line is one row, kept or rejected, unless the line is rejected as a whole."""
    content = b"\n".join([b'{"resourceSpans":[]}', *lines])
    project = Project(folder / "project")
    project.write_bytes("a.jsonl", content)
    found = rows_by_line(project)
    for number, one in enumerate(content.split(b"\n"), 1):
        rows = found.pop((0, number), [])
        if is_near_miss(one) and not is_otlp(one):
            continue
        if not one.strip(b" \t\r") or not is_otlp(one):
            assert len(rows) == bool(one.strip(b" \t\r")), f"{one!r} is {len(rows)} rows"
            continue
        whole = [row for row in rows if row["record_type"] == "rejected" and not OF_ONE_SPAN.search(row["reason"])]
        assert len(whole) <= 1, f"{one!r} is rejected {len(whole)} times"
        if is_too_deep(one):
            continue  # nobody here can count its spans
        spans = spans_in(one)
        if spans is None:
            assert whole or is_nearly_json(one), f"{one!r} is no JSON, but {rows}"
        elif not whole:
            assert len(rows) == spans, f"{one!r} has {spans} spans, and {len(rows)} rows"
    assert not found, f"rows of no line: {found}"
    project.ingest(hours_from(datetime(2026, 6, 7, tzinfo=UTC), 24))
    assert_lines_are_conserved(project)


class Pairs(list):
    """The members of a JSON object, those that stand twice, too."""


def spans_in(one: bytes) -> int | None:
    """Elements of all lists of spans of a line; None where the line is no JSON.

    Raises:
        RecursionError: the line is too deep for Python's parser.
    """
    try:
        whole = json.loads(one.decode(), object_pairs_hook=Pairs)
    except ValueError:
        return None
    owners = [whole]
    for names in (("resourceSpans", "resource_spans"), ("scopeSpans", "scope_spans"), ("spans",)):
        lists = [value for owner in owners if isinstance(owner, Pairs) for key, value in owner if key in names]
        owners = [element for own in lists if type(own) is list for element in own]
    return len(owners)


def is_nearly_json(one: bytes) -> bool:
    """Whether DuckDB's parser may take this line, although it is no JSON."""
    return spans_in(strict_json(one)) is not None


def rows_by_line(project: Project, notes: Notes | None = None) -> dict[tuple[int, int], list[Row]]:
    """What the reader makes of all files, by file and line."""
    found: dict[tuple[int, int], list[Row]] = defaultdict(list)
    common = ["file_id", "line_number", "record_type", "hour", "reason"]
    with log_parser(list_files(project.raw), notes) as parser:
        native = (
            parser.records(Targets()).read_all().select([*common, "execution_id", "trigger_id", "call_id"]).to_pylist()
        )
        with parser.spans(Targets()) as spans:
            rows = native + (spans.read_all().select(common).to_pylist() if spans else [])
    for row in rows:
        found[row["file_id"], row["line_number"]].append(row)
    return dict(found)


# -- documents of other tools ------------------------------------------------------------------------------------------


def as_documents(name: str, is_whole: Callable[[bytes], bool] | None = None) -> Callable[[Sequence[bytes], Path], None]:
    """A check of files of that name: each comes to a record, a rejection or a note, and damage is told.

    Args:
        name: how the files are called.
        is_whole: whether a file is not damaged, as far as that can be seen; whether it is JSON, if not given.
    """
    seems_whole = is_whole or is_json

    def check(contents: Sequence[bytes], folder: Path) -> None:
        project = Project(folder / "project")
        for number, content in enumerate(contents):
            project.write_bytes(f"{number:05d}/{name}", content, modified=START)
        notes: Notes = {}
        of_file: dict[int, list[Row]] = defaultdict(list)
        for (file_id, _), rows in rows_by_line(project, notes).items():
            of_file[file_id] += rows
        for file_id, content in enumerate(contents):
            if not content.strip(b" \t\r\n"):
                continue
            rows = of_file[file_id]
            is_told = any(row["record_type"] == "rejected" for row in rows)
            assert rows or notes.get(file_id) or holds_nothing(content), f"nothing came of {content[:300]!r}"
            if not content.startswith(b"PK"):
                assert is_told or seems_whole(content), f"damage is not told: {content[:300]!r} … {content[-300:]!r}"
        project.ingest(hours_from(START, 24))
        assert_lines_are_conserved(project)

    return check


def holds_nothing(content: bytes) -> bool:
    """Whether a document is whole, and has no element."""
    try:
        whole = json.loads(content)
    except (ValueError, RecursionError):
        return False
    lists = [value for value in whole.values() if isinstance(value, list)] if isinstance(whole, dict) else [whole]
    return not any(lists)


def is_json(content: bytes) -> bool:
    """Whether it is JSON as a whole or line by line, as lenient as parsers are."""
    for pieces in ([content], content.split(b"\n")):
        try:
            for piece in pieces:
                if piece.strip():
                    json.loads(
                        re.sub(rb",(\s*[\]}])", rb"\1", piece).decode("utf-8-sig", errors="strict"), strict=False
                    )
        except (ValueError, RecursionError):
            continue
        return True
    return False


def dumped(*contents: Any) -> list[bytes]:
    return [json.dumps(content).encode() for content in contents]


# -- YAML --------------------------------------------------------------------------------------------------------------

ALERTS_PAGE = Path(__file__).parents[2] / "docs" / "alerts.md"
REGISTRY = [{"name": f"a{n}", "platform": "p", "url": f"https://agents.example/{n}"} for n in range(5)]


def as_yaml(*contents: Any) -> list[bytes]:
    return [yaml.safe_dump(one, default_flow_style=way).encode() for one in contents for way in (True, False)]


def alerts_samples() -> list[bytes]:
    """The examples of the docs."""
    return [
        one.encode() for one in re.findall(r"```yaml\n(.*?)```", ALERTS_PAGE.read_text(encoding="utf-8"), re.DOTALL)
    ]


def as_yaml_files(load: Callable[[Path], Any]) -> Callable[[Sequence[bytes], Path], None]:
    """A check that such a file is read, or refused in one sentence."""

    def check(contents: Sequence[bytes], folder: Path) -> None:
        path = folder / "file.yaml"
        for content in contents:
            path.write_bytes(content)
            try:
                load(path)
            except HealthAssetsError as error:
                assert_is_a_sentence(str(error))

    return check


def assert_is_a_sentence(text: str) -> None:
    assert len(text) <= LONGEST_SENTENCE, f"{len(text):,} characters: {text[:300]}"
    assert "\n" not in text, text
    assert "\x1b" not in text, text


# -- the health document -----------------------------------------------------------------------------------------------


def check_documents_of_agents(contents: Sequence[bytes], _: Path) -> None:
    """A document is valid and says what stands in it, or its faults are sentences."""
    for content in contents:
        try:
            parsed = parse_document(content)
        except InvalidDocumentError as error:
            assert error.problems
            for problem in error.problems:
                assert_is_a_sentence(problem)
            continue
        raw = json.loads(content.decode("utf-8-sig"))
        assert (parsed.agent_id, parsed.health.status) == (raw["agent_id"], raw["health"]["status"])
        assert parsed.health.status in ("healthy", "degraded", "unhealthy", "unknown")
        assert parsed.timestamp.tzinfo is not None


# -- the signature of a health document --

SIGNING_KEY = OKPKey.generate_key("Ed25519")
SIGNED = json.dumps(document()).encode()


def signature_samples() -> list[bytes]:
    """A compact JWS and the set of keys that verifies it, with a line break between."""
    header = {"alg": "Ed25519", "typ": signatures.TYPE}
    token = jws.serialize_compact(header, SIGNED, SIGNING_KEY, algorithms=["Ed25519"]).encode()
    return [token + b"\n" + json.dumps({"keys": [SIGNING_KEY.as_dict(private=False)]}).encode()]


def check_signatures(contents: Sequence[bytes], _: Path) -> None:
    """A signature does not hold, or the key holds that made it."""
    for content in contents:
        token, _, keys = content.partition(b"\n")
        try:
            key_id = signatures.verified(token, keys, parse_document(SIGNED), None)
        except signatures.UnusableError as error:
            assert_is_a_sentence(str(error))
            continue
        assert key_id == SIGNING_KEY.thumbprint()


# -- requests of OTLP --


def request_samples() -> list[bytes]:
    """Requests in JSON and in Protobuf, which their first byte tells apart."""
    spans = [agent(1, 1, START, status={"code": 2, "message": "no"}), chat(1, 2, START, 1, own=["a", 1.5, True])]
    request = ExportTraceServiceRequest()
    span = request.resource_spans.add().scope_spans.add().spans.add(trace_id=b"\1" * 16, span_id=b"\2" * 8, name="run")
    span.attributes.add(key="gen_ai.agent.name").value.string_value = "planner"
    span.events.add(name="exception").attributes.add(key="depth").value.double_value = 0.5
    return [otlp_line(*spans).encode(), request.SerializeToString()]


def check_requests(inputs: Sequence[bytes], _: Path) -> None:
    """A request is refused, or each of its spans is in a line of OTLP-JSON."""
    for body in inputs:
        encoding = Encoding.JSON if body[:1] in (b"{", b"[", b" ") else Encoding.PROTOBUF
        try:
            lines = converted(body, encoding, TRACES)
        except MalformedRequestError as error:
            assert 0 < len(str(error)) < LONGEST_SENTENCE
            continue
        written = [json.loads(line) for line in lines.content.decode().split("\n")[:-1]]
        assert all(list(line) == ["resourceSpans"] for line in written)
        in_lines = [
            span
            for line in written
            for one in line["resourceSpans"]
            for scope in one["scopeSpans"]
            for span in scope.get("spans", ())
        ]
        if encoding is Encoding.JSON:
            assert in_lines == [
                span for one in _either(json.loads(body), "resourceSpans", "resource_spans")
                for scope in _either(one, "scopeSpans", "scope_spans") for span in scope.get("spans", ())
            ]  # fmt: skip
        else:
            resources = ExportTraceServiceRequest.FromString(body).resource_spans
            sent = [span for one in resources for scope in one.scope_spans for span in scope.spans]
            assert [span.get("spanId", "") for span in in_lines] == [span.span_id.hex() for span in sent]
            assert [span.get("name", "") for span in in_lines] == [span.name for span in sent]


def _either(owner: dict[str, Any], *names: str) -> list[dict[str, Any]]:
    return next((owner[name] for name in names if name in owner), [])


TARGETS: dict[str, Target] = {
    "native": Target(native_samples, check_native, 2_000),
    "otlp": Target(span_samples, check_spans, 1_000),
    "otlp_requests": Target(request_samples, check_requests, 1_000),
    "near_misses": Target(near_miss_samples, check_near_misses, 500),
    "tau_bench": Target(
        lambda: dumped(foreign_logs_made.TAU_BENCH), as_documents(foreign_logs_made.TAU_BENCH_NAME), 1_000
    ),
    "tau2_bench": Target(lambda: dumped(foreign_logs_made.TAU2), as_documents("results.json"), 1_000),
    "harbor": Target(
        lambda: dumped(
            harnesses_made.harbor_trial(1, 1.0),
            harnesses_made.harbor_trial(2, 0.0, exception_info=harnesses_made.HARBOR_TIMEOUT), harnesses_made.HARBOR_JOB,
        ),
        as_documents("result.json"), 1_000,
    ),
    "atif": Target(lambda: dumped(harnesses_made.ATIF), as_documents("trajectory.json"), 1_000),
    "terminal_bench": Target(
        lambda: dumped(
            harnesses_made.terminal_bench_run(harnesses_made.terminal_bench_trial(1, True)),
            harnesses_made.old_terminal_bench_trial(2, True), harnesses_made.TERMINAL_BENCH_METADATA,
        ),
        as_documents("results.json"), 1_000,
    ),
    "swe_agent": Target(
        lambda: dumped(harnesses_made.swe_agent_0(), harnesses_made.swe_agent_1()), as_documents("mail__mail-7.traj"), 1_000
    ),
    "mini_swe_agent": Target(
        lambda: dumped(harnesses_made.MINI_SWE_AGENT), as_documents("mail__mail-7.traj.json"), 1_000
    ),
    "openhands": Target(
        lambda: [b"\n".join(2 * dumped(harnesses_made.OPENHANDS))], as_documents("output.jsonl"), 1_000
    ),
    "metr": Target(lambda: [b"\n".join(dumped(*harnesses_made.METR))], as_documents("runs.jsonl"), 1_000),
    "swe_bench": Target(
        lambda: dumped(
            harnesses_made.SWE_BENCH_RUN, {"mail-1": harnesses_made.swe_bench_outcome(True)},
            harnesses_made.swe_bench_outcome(False),
        ),
        as_documents("a/logs/mail-1/report.json"), 1_000,
    ),
    "langfuse": Target(
        lambda: dumped(
            foreign_logs_made.LANGFUSE_TRACE, [foreign_logs_made.LANGFUSE_TRACE], langfuse_made.download(),
            langfuse_made.download_without_trace(),
        ),
        as_documents("traces.json"), 1_000,
    ),
    "langfuse_lines": Target(
        lambda: [b"\n".join(dumped(*map(langfuse_made.row, langfuse_made.OBSERVATIONS)))], as_documents("rows.jsonl"), 1_000
    ),
    "phoenix": Target(
        lambda: [(EVALUATIONS / f"phoenix-{name}").read_bytes() for name in ("span-annotations.json", "client.json")],
        as_documents("annotations.json"), 1_000,
    ),
    "phoenix_lines": Target(
        lambda: [(EVALUATIONS / "phoenix-dataframe.jsonl").read_bytes()], as_documents("annotations.jsonl"), 1_000
    ),
    "claude_code": Target(
        lambda: list(map(coding_sessions_made.as_lines, (coding_sessions_made.CLAUDE_TURN, coding_sessions_made.CLAUDE_SESSION))),
        as_documents("session.jsonl"), 1_000,
    ),
    "codex": Target(
        lambda: [coding_sessions_made.as_lines(lines) for lines in (
            coding_sessions_made.CODEX_SESSION, coding_sessions_made.CODEX_FORK, coding_sessions_made.CODEX_WITHOUT_TURNS)],
        as_documents("rollout.jsonl"), 1_000,
    ),
    "gemini_cli": Target(
        lambda: [coding_sessions_made.as_lines(coding_agents_made.GEMINI_CHAT)], as_documents("session-1.jsonl"), 1_000
    ),
    "gemini_cli_old": Target(lambda: dumped(coding_agents_made.GEMINI_OLD), as_documents("session-1.json"), 1_000),
    "opencode": Target(lambda: dumped(coding_agents_made.OPENCODE), as_documents("session.json"), 1_000),
    "copilot_cli": Target(
        lambda: [coding_sessions_made.as_lines(coding_agents_made.COPILOT)], as_documents("events.jsonl"), 1_000
    ),
    "cline": Target(lambda: dumped(coding_agents_made.CLINE), as_documents("ui_messages.json"), 1_000),
    "agent_logs": Target(
        lambda: list(map(agent_logs_made.dumped, agent_logs_made.SESSIONS.values())), as_documents("logs.jsonl"), 1_000
    ),
    "agent_log_documents": Target(
        lambda: dumped(*(one for lines in agent_logs_made.SESSIONS.values() for one in lines)), as_documents("logs.json"), 1_000
    ),
    "roo_code": Target(lambda: dumped(coding_agents_made.ROO_CODE), as_documents("ui_messages.json"), 1_000),
    "aider": Target(lambda: [b"\n".join(dumped(*coding_agents_made.AIDER))], as_documents("aider.jsonl"), 1_000),
    "langsmith": Target(lambda: dumped(exports_made.LANGSMITH), as_documents("runs.json"), 1_000),
    "langsmith_lines": Target(lambda: [b"\n".join(dumped(*exports_made.LANGSMITH))], as_documents("runs.jsonl"), 1_000),
    "weave": Target(lambda: dumped(exports_made.WEAVE), as_documents("calls.json"), 1_000),
    "weave_lines": Target(lambda: [b"\n".join(dumped(*exports_made.WEAVE))], as_documents("calls.jsonl"), 1_000),
    "mlflow": Target(
        lambda: dumped(exports_made.MLFLOW, exports_made.mlflow_old_trace(1), {"spans": exports_made.MLFLOW[0]["data"]["spans"]}),
        as_documents("traces.json"), 1_000,
    ),
    "mlflow_lines": Target(
        lambda: [b"\n".join(dumped(*map(exports_made.mlflow_row, exports_made.MLFLOW)))], as_documents("traces.jsonl"), 1_000
    ),
    "phoenix_spans": Target(
        lambda: dumped({"data": exports_made.PHOENIX_SPANS, "next_cursor": None}, exports_made.PHOENIX_SPANS),
        as_documents("spans.json"), 1_000,
    ),
    "phoenix_span_lines": Target(
        lambda: [b"\n".join(dumped(*exports_made.phoenix_rows()))], as_documents("spans.jsonl"), 1_000
    ),
    "openai_agents": Target(
        lambda: dumped({"data": exports_made.AGENTS_NEW}, exports_made.AGENTS), as_documents("traces.json"), 1_000
    ),
    "openai_agents_lines": Target(
        lambda: [b"\n".join(dumped(*exports_made.AGENTS_NEW))], as_documents("traces.jsonl"), 1_000
    ),
    "inspect_json": Target(lambda: [(SAMPLES / "inspect.json").read_bytes()], as_documents("log.json"), 100),
    "inspect_eval": Target(lambda: [(SAMPLES / "inspect.eval").read_bytes()], as_documents("log.eval"), 100),
    "targets_yaml": Target(
        lambda: as_yaml(*(random_targets(Random(seed)) for seed in range(5)), {"names": [{"match": "a(.*)", "agent": r"\1"}]}),
        as_yaml_files(load_targets), 500,
    ),
    "registry_yaml": Target(lambda: as_yaml(REGISTRY), as_yaml_files(load_registry), 500),
    "alerts_yaml": Target(alerts_samples, as_yaml_files(load_alerts), 500),
    "health_document": Target(
        lambda: dumped(document(), document("degraded", calibration=...), document(health__last_healthy_at=...)),
        check_documents_of_agents, 2_000,
    ),
    "signature": Target(signature_samples, check_signatures, 2_000),
}  # fmt: skip
