"""A piece of advice as a person and as a program reads it."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from health_assets.consumer.advice import Advice, Kind, at, in_words, percent
from health_assets.consumer.document import ReadableDocument
from health_assets.consumer.signatures import Signature
from health_assets.core.terminal import printable

COLOURS: dict[Kind, str] = {"proceed": "green", "caution": "yellow", "avoid": "red", "unknown": "cyan"}
MOST_S = 1e11
MOST_READ = 1e12


def print_advice(console: Console, advice: Advice, *, is_strict: bool = False) -> None:
    """The advice in words, and below it the figures of the document.

    Args:
        console: where to print.
        advice: the advice.
        is_strict: whether members that the draft does not know are named, too.
    """
    title = Text(advice.status, style=f"bold {COLOURS[advice.kind]}")
    title.append(f"  {advice.answer.url}", style="bold")
    console.print(title, soft_wrap=True)
    if advice.document is not None and advice.document.agent_id is not None:
        console.print(Text(f"agent {printable(advice.document.agent_id)}", style="dim"), soft_wrap=True)
    console.print()
    first, *others = advice.sentences
    console.print(Text(first, style=COLOURS[advice.kind]))
    for sentence in others:
        console.print(Text(sentence))
    for problem in (*advice.answer.problems, *(advice.answer.unknown_members if is_strict else ())):
        console.print(Text(f"  {problem}", style="yellow"))
    figures = list(_figures(advice))
    if figures:
        console.print()
        table = Table.grid(padding=(0, 2, 0, 0))
        for name, value in figures:
            table.add_row(Text(name, style="dim"), Text(value))
        console.print(table)


def _figures(advice: Advice) -> Iterator[tuple[str, str]]:
    document = advice.document
    if document is not None:
        yield from _figures_of(document)
    if advice.answer.latency_ms is not None:
        yield "answered in", f"{advice.answer.latency_ms:,.0f} ms"


def _figures_of(document: ReadableDocument) -> Iterator[tuple[str, str]]:
    health, calibration, decay = document.health, document.calibration, document.decay
    if document.timestamp is not None:
        yield "as of", at(document.timestamp)
    if calibration.response_ratio is not None:
        yield "response ratio", percent(calibration.response_ratio)
    if calibration.error_ratio is not None:
        yield "error ratio", percent(calibration.error_ratio)
    latencies = {"median": calibration.latency_p50_ms, "p99": calibration.latency_p99_ms}
    if any(latency_ms is not None for latency_ms in latencies.values()):
        known = (f"{name} {_plain(latency_ms)} ms" for name, latency_ms in latencies.items() if latency_ms is not None)
        yield "latency", ", ".join(known)
    if calibration.sample_count is not None:
        yield "requests", f"{calibration.sample_count:,}"
    if health.uptime_seconds is not None:
        yield "up for", in_words(timedelta(seconds=min(health.uptime_seconds, MOST_S)))
    if health.last_healthy_at is not None:
        yield "last healthy", at(health.last_healthy_at)
    if decay.calibration_trend is not None:
        yield "trend", decay.calibration_trend
    if decay.days_since_model_change is not None:
        yield "model changed", f"{_plain(decay.days_since_model_change)} days ago"
    if decay.last_capability_update is not None:
        yield "capabilities", f"declared {at(decay.last_capability_update)}"


def _plain(number: float) -> str:
    """A number without fraction; of one that nobody would read out, the order of magnitude."""
    return f"{number:,.0f}" if number < MOST_READ else f"{number:.0e}"


def as_json(advice: Advice, signature: Signature | None = None) -> str:
    """The advice as one JSON object, for programs; ASCII, so that nothing in it can harm a terminal."""
    answer = advice.answer
    fields: dict[str, Any] = {
        "url": answer.url,
        "advice": advice.kind,
        "status": advice.status,
        "retry_after_s": advice.retry_after_s,
        "sentences": advice.sentences,
        "is_worsening": advice.is_worsening,
        "is_decaying": advice.is_decaying,
        "needs_reverification": advice.needs_reverification,
        "outage_s": advice.outage_s,
        "outcome": answer.outcome,
        "http_status": answer.http_status,
        "latency_ms": answer.latency_ms,
        "error": answer.error,
        "problems": answer.problems,
        "unknown_members": answer.unknown_members,
        "asked_at": answer.asked_at.isoformat(),
        "document": None if advice.document is None else advice.document.model_dump(mode="json", exclude_unset=True),
    }
    if signature is not None:
        fields["signature"] = {"key_id": signature.key_id, "error": signature.fault}
    return json.dumps(fields, indent=2)


def signature_text(signature: Signature) -> Text:
    """A sentence on the signature of a document."""
    if signature.fault is None:
        return Text(f"Signed by the key {signature.key_id}.", style="green")
    return Text(f"Not signed: {signature.fault}.", style="red")
