"""Logs that people already have: one module a format, each turns a file into lines that `native` parses.

What belongs here: telling a file's format by its content, and one reader a format. What does not: typing, rejection and
accounting, which follow from the lines as for any log. How to add a format: docs/add-a-log-format.md.

Every format is asked about every file, so the order of the list does not matter. A file that two formats take for
theirs is rejected as a whole, since a file that is read as what it is not does more harm than one that is not read.

A file named `.jsonl` or `.ndjson` (also rotated or gzipped) is read line by line unless its first line is that of a
foreign format. A file named `.json` or `.eval` is one document, unless its first line is a record by itself, or is
damaged and the second is one. A document may hold native records, too.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import NamedTuple

from health_assets.logs.formats import (
    agent_log_sessions,
    agent_logs,
    aider,
    claude_code,
    cline,
    codex,
    coding_turns,
    copilot_cli,
    declared,
    gemini_cli,
    inspect_eval,
    langfuse,
    mlflow_traces,
    native_document,
    openai_agents,
    opencode,
    otlp_document,
    phoenix,
    phoenix_spans,
    tau2_bench,
    tau_bench,
)
from health_assets.logs.formats.declaration import Declaration
from health_assets.logs.formats.foreign_lines import UTF_16, Line, Source, is_utf_16, rejected
from health_assets.logs.formats.format_settings import settings_of
from health_assets.logs.formats.opening import Opening
from health_assets.logs.stores import RawFile
from health_assets.logs.unknown_formats import hint_of

Reader = Callable[[Source], Iterator[Line]]


@dataclass(frozen=True)
class Format:
    """A way in which logs are written.

    Args:
        name: its name among people.
        recognizes: whether a file that begins so is one of these; no two formats may say so of one file.
        read: makes lines of the file that `native` parses; None where its own lines are parsed as they are.
    """

    name: str
    recognizes: Callable[[Opening], bool]
    read: Reader | None


def _is_otlp_of_lines(opening: Opening) -> bool:
    return opening.is_otlp_line and not agent_logs.recognizes(opening)


def _is_otlp_document(opening: Opening) -> bool:
    is_document = opening.is_foreign_object and otlp_document.is_document(opening.members)
    return is_document and not agent_logs.recognizes_document(opening)


def _is_langfuse_document(opening: Opening) -> bool:
    if opening.is_foreign_object and langfuse.is_page(opening.members):
        return not opening.listed or langfuse.is_record(opening.listed)
    return (opening.is_foreign_object or opening.is_foreign_list) and langfuse.is_record(opening.members)


def _is_phoenix_document(opening: Opening) -> bool:
    if opening.is_foreign_object and opening.members.keys() <= phoenix.PAGE and phoenix.is_annotation(opening.listed):
        return True
    return (opening.is_foreign_object or opening.is_foreign_list) and phoenix.is_annotation(opening.members)


def _is_inspect_log(opening: Opening) -> bool:
    return opening.is_zip or (opening.is_foreign_object and inspect_eval.is_document(opening.members))


def _declared(name: str, file_name: str) -> tuple[Format, Format]:
    """A format of `declarations`, whose file is read once a log is looked at."""
    return _of_declaration(name, partial(declared.packaged, file_name))


def _of_declaration(name: str, declaration: Callable[[], Declaration]) -> tuple[Format, Format]:
    """The two forms of a declared format: with a record a line, and as a document."""

    def read_lines(source: Source) -> Iterator[Line]:
        return declared.read_lines(declaration(), source)

    def read_document(source: Source) -> Iterator[Line]:
        return declared.read_document(declaration(), source)

    return (
        Format(name, lambda of: declared.is_lines(declaration(), of), read_lines),
        Format(name, lambda of: declared.is_document(declaration(), of), read_document),
    )


NATIVE, OTLP, LANGFUSE, PHOENIX = "the native format", "OTLP-JSON", "Langfuse", "Phoenix"
CLAUDE_CODE, CODEX, GEMINI_CLI, OPENCODE = "Claude Code", "Codex", "Gemini CLI", "OpenCode"
COPILOT_CLI, CLINE, ROO_CODE, AIDER = "Copilot CLI", "Cline", "Roo Code", "aider"
AGENT_LOGS = "OTLP logs of coding agents"
PRIVATE = (
    CLAUDE_CODE, CODEX, GEMINI_CLI, OPENCODE, COPILOT_CLI, CLINE, ROO_CODE, AIDER, AGENT_LOGS,
    "Harbor", "ATIF", "Terminal-Bench", "SWE-agent", "mini-swe-agent", "OpenHands", "SWE-bench",
)  # fmt: skip
"""Formats of which no text is stored, also of what cannot be read."""
PRIVATE_DECLARATIONS = (
    "harbor", "atif", "terminal_bench", "swe_agent", "mini_swe_agent", "openhands", "swe_bench_instance",
)  # fmt: skip
"""Those of them that are declared and tell how a file begins, or is called, that is not recognized."""
BESIDE = ((CLAUDE_CODE, claude_code.PRIVATE_FILE), (CLINE, cline.PRIVATE_FILE))
"""Names of files beside sessions, of which nothing is read."""
TEXTS: tuple[tuple[re.Pattern[bytes], Reader], ...] = (
    (claude_code.TEXT, claude_code.read),
    (codex.TEXT, codex.read),
    (gemini_cli.TEXT, gemini_cli.read_lines),
    (opencode.TEXT, opencode.read),
    (copilot_cli.TEXT, copilot_cli.read),
    (cline.TEXT, cline.read),
    (agent_logs.TEXT, agent_log_sessions.read_lines),
    (aider.TEXT, aider.read),
)
"""Texts that sessions have in their first KiB, and the readers of these."""
FORMATS: tuple[Format, ...] = (
    Format(NATIVE, lambda of: native_document.is_record(of.record), None),
    Format(NATIVE, lambda of: of.is_document and native_document.is_record(of.members), native_document.read),
    Format(OTLP, _is_otlp_of_lines, None),
    Format(OTLP, _is_otlp_document, otlp_document.read),
    Format(AGENT_LOGS, agent_logs.recognizes, agent_log_sessions.read_lines),
    Format(AGENT_LOGS, agent_logs.recognizes_document, agent_log_sessions.read_document),
    Format(LANGFUSE, lambda of: langfuse.is_record(of.record), langfuse.read_lines),
    Format(LANGFUSE, _is_langfuse_document, langfuse.read_document),
    Format(PHOENIX, lambda of: phoenix.is_annotation(of.record), phoenix.read_lines),
    Format(PHOENIX, _is_phoenix_document, phoenix.read_document),
    Format(CLAUDE_CODE, lambda of: any(map(claude_code.is_line, of.first_records)), claude_code.read),
    Format(CLAUDE_CODE, lambda of: claude_code.is_beside(of.record or of.members), coding_turns.read_beside),
    Format(CODEX, lambda of: any(map(codex.is_line, of.first_records)), codex.read),
    Format(CODEX, lambda of: codex.is_beside(of.record), coding_turns.read_beside),
    Format(GEMINI_CLI, gemini_cli.recognizes_lines, gemini_cli.read_lines),
    Format(GEMINI_CLI, gemini_cli.recognizes_document, gemini_cli.read_document),
    Format(GEMINI_CLI, gemini_cli.recognizes_beside, coding_turns.read_beside),
    Format(OPENCODE, opencode.recognizes, opencode.read),
    Format(OPENCODE, opencode.recognizes_beside, opencode.read_beside),
    Format(COPILOT_CLI, copilot_cli.recognizes, copilot_cli.read),
    Format(CLINE, cline.recognizes, cline.read),
    Format(ROO_CODE, cline.recognizes_roo_code, cline.read),
    Format(AIDER, aider.recognizes, aider.read),
    *_declared("LangSmith", "langsmith"),
    *_declared("Weave", "weave"),
    Format(openai_agents.TOOL, openai_agents.recognizes_lines, openai_agents.read_lines),
    Format(openai_agents.TOOL, openai_agents.recognizes_document, openai_agents.read_document),
    Format("MLflow", mlflow_traces.recognizes_lines, mlflow_traces.read_lines),
    Format("MLflow", mlflow_traces.recognizes_document, mlflow_traces.read_document),
    Format(PHOENIX, phoenix_spans.recognizes_lines, phoenix_spans.read_lines),
    Format(PHOENIX, phoenix_spans.recognizes_document, phoenix_spans.read_document),
    Format("Inspect AI", _is_inspect_log, inspect_eval.read),
    *_declared("Harbor", "harbor"),
    *_declared("ATIF", "atif"),
    *_declared("Terminal-Bench", "terminal_bench"),
    *_declared("SWE-agent", "swe_agent"),
    *_declared("mini-swe-agent", "mini_swe_agent"),
    *_declared("OpenHands", "openhands"),
    *_declared("METR", "metr"),
    *_declared("SWE-bench", "swe_bench_run"),
    *_declared("SWE-bench", "swe_bench_instance"),
    *_declared("SWE-bench", "swe_bench_report"),
    Format("tau-bench", lambda of: of.is_foreign_list and tau_bench.is_result(of.members), tau_bench.read),
    Format("tau2-bench", lambda of: of.is_foreign_object and tau2_bench.is_document(of.members), tau2_bench.read),
)
"""Every format that is known; the order says nothing."""
DESCRIPTIONS = {
    NATIVE: (".jsonl, .json", "all records"),
    OTLP: (".json, .jsonl", "spans, executions, model calls, tool calls, results of evaluators"),
    AGENT_LOGS: (".json, .jsonl", "executions, model calls, tool calls"),
    LANGFUSE: (".jsonl, .json", "spans, executions, model calls, tool calls, signals, results of evaluators"),
    PHOENIX: (".json, .jsonl", "spans, executions, model calls, tool calls, results of evaluators"),
    "LangSmith": (".json, .jsonl", "spans, executions, model calls, tool calls"),
    "Weave": (".jsonl, .json", "spans, executions, model calls, tool calls"),
    openai_agents.TOOL: (".jsonl, .json", "spans, executions, model calls, tool calls"),
    "MLflow": (".json, .jsonl", "spans, executions, model calls, tool calls, results of evaluators"),
    CLAUDE_CODE: (".jsonl below ~/.claude/projects", "executions, cancellations, model calls, tool calls"),
    CODEX: (".jsonl below ~/.codex/sessions", "executions, cancellations, model calls, tool calls"),
    GEMINI_CLI: (".jsonl, .json below ~/.gemini/tmp", "executions, cancellations, model calls, tool calls"),
    OPENCODE: (".json of opencode export", "executions, cancellations, model calls, tool calls"),
    COPILOT_CLI: ("events.jsonl below ~/.copilot/session-state", "executions, cancellations, model calls, tool calls"),
    CLINE: ("ui_messages.json", "executions, cancellations, model calls"),
    ROO_CODE: ("ui_messages.json", "executions, cancellations, model calls"),
    AIDER: (".jsonl of aider --analytics-log", "executions, model calls"),
    "Inspect AI": (".eval, .json", "executions, model calls, tool calls"),
    "tau-bench": (".json", "executions, tool calls"),
    "tau2-bench": (".json", "executions, model calls, tool calls"),
    "Harbor": (".json", "executions"),
    "ATIF": (".json", "model calls"),
    "Terminal-Bench": (".json", "executions"),
    "SWE-agent": (".traj", "executions"),
    "mini-swe-agent": (".traj.json", "executions, model calls, tool calls"),
    "OpenHands": (".jsonl", "executions, tool calls"),
    "METR": (".jsonl", "executions"),
    "SWE-bench": (".json", "executions"),
}
"""By format, the files that are of it and what they become, for people."""
SHOWN_BYTES = 1 << 10
"""How much of the text of a rejected file is stored."""
NO_LINES = "this looks like a file of a coding agent or harness, but it has not the form of one; nothing of it is read"


def recognized(opening: Opening, own: Sequence[Declaration] = ()) -> list[Format]:
    """The formats that take a file that begins so for theirs: one, or none that is known.

    Args:
        opening: how it begins.
        own: formats that the installation declares.
    """
    known = [*FORMATS, *chain.from_iterable(_of_declaration(one.name, partial(_itself, one)) for one in own)]
    return [one for one in known if one.recognizes(opening)]


def _itself(declaration: Declaration) -> Declaration:
    return declaration


class Taken(NamedTuple):
    """What a file is taken for.

    Args:
        names: the formats that take it for theirs; none where nobody knows, several where it is refused.
        read: its reader; None for a file that is read as it is, line by line.
        is_private: whether no text of it is stored or shown.
    """

    names: list[str]
    read: Reader | None
    is_private: bool


def taken_for(file: RawFile, head: bytes) -> Taken:
    """What this file is taken for.

    Args:
        file: the file.
        head: its first bytes, at least the whole first line that is not blank where that is not very long.
    """
    if beside := next((name for name, names in BESIDE if names.search(file.source_file)), None):
        return Taken([beside], coding_turns.read_beside, is_private=True)
    opening = Opening(file.source_file, head)
    own = settings_of(file).own
    found = recognized(opening, own)
    names, readers = sorted({known.name for known in found}), {known.read for known in found}
    is_private = not {*PRIVATE, *(one.name for one in own if one.private)}.isdisjoint(names)
    if len(readers) > 1:
        return Taken(names, partial(_ambiguous, names=names, is_private=is_private), is_private)
    if found:
        return Taken(names, readers.pop(), is_private)
    if private := _private_reader(opening, own):
        return Taken([], private, is_private=True)
    is_lines = opening.is_named_lines or not opening.first_line
    return Taken([], None if is_lines else partial(_unknown, head=head), is_private=False)


def reader_of(file: RawFile, head: bytes) -> Reader | None:
    """The reader of this file, as of `taken_for`."""
    return taken_for(file, head).read


def _private_reader(opening: Opening, own: Sequence[Declaration]) -> Reader | None:
    """What reads a private file that is not recognized: half-written, of a new version, or formatted by somebody."""
    start = opening.head[:SHOWN_BYTES]
    read = next((read for text, read in TEXTS if text.search(start)), None)
    for one in [*map(declared.packaged, PRIVATE_DECLARATIONS), *own] if read is None else ():
        if one.is_of(opening.source_file, start):
            read = partial(declared.read_lines, one)
            break
    if read is None or opening.is_unfinished:
        return read
    return None if opening.is_named_lines and opening.record else partial(_refused, reason=NO_LINES, is_private=True)


def _unknown(source: Source, head: bytes) -> Iterator[Line]:
    """The whole file is one rejected record, however many lines it has."""
    reason = f"no reader knows what this file holds; it {hint_of(head)} (known formats: health-assets formats)"
    yield from _refused(source, reason)


def _ambiguous(source: Source, names: list[str], *, is_private: bool) -> Iterator[Line]:
    """The whole file is one rejected record, however many lines it has."""
    reason = f"this file begins as one of {' and as one of '.join(names)}; nothing of it is read"
    yield from _refused(source, reason, is_private=is_private)


def _refused(source: Source, reason: str, *, is_private: bool = False) -> Iterator[Line]:
    first = next(source.blocks, b"")
    if isinstance(first, bytes):
        why = UTF_16 if is_utf_16(first[:SHOWN_BYTES]) else reason
        yield rejected(1, "" if is_private else first[:SHOWN_BYTES].decode(errors="replace"), why)
    else:
        yield rejected(1, "", first.reason)
