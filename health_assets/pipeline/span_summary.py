"""Span summary: what the spans of some hours became, and why others became nothing, as counts by reason.

What belongs here: the words for these counts, for a run's report and the page of the asset `spans`. What does not: how
spans become records (`logs.traces`), and the counts (`warehouse.spans`).
"""

from collections.abc import Iterator
from dataclasses import dataclass

from health_assets.core.formatting import counted
from health_assets.core.hours import HourRange
from health_assets.logs.conventions import UNKNOWN_MODEL
from health_assets.logs.span_kinds import BOOKKEEPING, OPEN
from health_assets.warehouse.session import Session
from health_assets.warehouse.spans import CallsOfSpans, RepeatedSpans, Spans

DOCS = "docs/opentelemetry.md"

_NOT_USED = {
    ("agent", True): "agent span without a name, around named ones or inside another agent's run",
    ("agent", False): "agent span inside another agent's run",
    ("workflow", None): "workflow span around agents' runs or inside another run",
    ("chat", None): "chat span around another one, which is the call",
    ("tool", None): "tool span around another one of the same tool, which is the call",
}
"""Why a span of a kind, and of agents one that states no name, is no record of its own."""


@dataclass(frozen=True, kw_only=True)
class SpanSummary:
    """The counts of what the spans of some hours became.

    Args:
        spans: all of them.
        executions: spans that became executions.
        model_calls: spans that became model calls.
        tool_calls: spans that became tool calls.
        unused: how many of the others there are, by reason, most first.
        warnings: sentences on what a person should look at.
    """

    spans: int
    executions: int
    model_calls: int
    tool_calls: int
    unused: dict[str, int]
    warnings: list[str]

    def __str__(self) -> str:
        calls = f"{counted(self.model_calls, 'model call')} and {counted(self.tool_calls, 'tool call')}"
        return f"{counted(self.spans, 'span')} became {counted(self.executions, 'execution')}, {calls}"


def summarize_spans(session: Session, hours: HourRange) -> SpanSummary | None:
    """Count what became of the spans of some hours; None where there are none."""
    count, spans = session.count_hours("spans", hours), Spans(session, hours)
    if not count:
        return None
    made = {table: spans.records(table) for table in ("executions", "model_calls", "tool_calls")}
    repeats = spans.repeats()
    unused = {reason: count for reason, count in _unused(spans, repeats) if count}
    most_first = dict(sorted(unused.items(), key=lambda item: (-item[1], item[0])))
    warnings = [*_warnings(spans.model_calls(), made["executions"]), *_warnings_of_ids(repeats), *_remarks(spans)]
    return SpanSummary(spans=count, **made, unused=most_first, warnings=warnings)


def without_agents(session: Session, hours: HourRange) -> str | None:
    """A sentence where these hours hold model calls of spans and no agent's run, with the place to read on."""
    spans = Spans(session, hours)
    calls = spans.records("model_calls")
    return _no_agent(calls) if calls and not spans.records("executions") else None


def _no_agent(calls: int) -> str:
    return (
        f"{counted(calls, 'chat span')} and no agent span: see {DOCS}#spans-of-model-calls-only, "
        "or name their services under services: in the targets file"
    )


def _unused(spans: Spans, repeats: RepeatedSpans) -> Iterator[tuple[str, int]]:
    """Reasons for which spans are no record, and how many there are."""
    for left in spans.unused():
        yield _NOT_USED[left.kind, left.is_unnamed], left.count
    for operation, count in spans.of_other_kinds().items():
        told = f"of the kind {operation}" if operation else "that states no kind"
        yield f"span {told}, which is no agent, model call or tool", count
    yield f"span for {BOOKKEEPING}", spans.remarks().get(BOOKKEEPING, 0)
    yield "span without an end in these hours, which counts once a log has its end", spans.open()
    yield "span that came more than once", repeats.copies


def _remarks(spans: Spans) -> Iterator[str]:
    for remark, count in spans.remarks().items():
        if remark not in (BOOKKEEPING, OPEN):
            yield f"{counted(count, 'span')}: {remark}"


def _warnings_of_ids(repeats: RepeatedSpans) -> Iterator[str]:
    if repeats.of_other_starts:
        yield (
            f"{counted(repeats.of_other_starts, 'span')} with the trace and id of another span of the same service, "
            "which started at another time: only the one that ended last counts"
        )
    if repeats.shared_ids:
        yield (
            f"{counted(repeats.shared_ids, 'span id')} that several services use in one trace: "
            "the span of each service counts"
        )


def _warnings(calls: CallsOfSpans, executions: int) -> Iterator[str]:
    if calls.calls and not executions:
        yield _no_agent(calls.calls)
    elif calls.outside:
        with_failures = f", {calls.failed_outside:,} of them failed" if calls.failed_outside else ""
        yield f"{counted(calls.outside, 'model call')} outside any agent's run{with_failures}"
    if unknown := calls.of_unknown_models:
        yield f"{counted(unknown, 'model call')} of the model {UNKNOWN_MODEL}, since no attribute names it"
