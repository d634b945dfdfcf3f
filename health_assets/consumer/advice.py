"""Advice from a health document to somebody who wants to use the agent: the decision flow of source 3, appendix A.

What belongs here: from an answer to a piece of advice, in words and as fields. What does not: getting the answer
(`fetching`) and showing the advice (`display`).

The flow decides by `health.status`, as the draft does, and believes a warning in a document with faults, too. A healthy
agent whose extension says that it is failing now gets caution instead. Everything else in the document adds sentences.
Where the draft leaves a number open (what is recent, what is old), the constants below choose one.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Literal

from health_assets.consumer.document import STATUSES, ReadableDocument, Status
from health_assets.consumer.extensions import alarm_of
from health_assets.consumer.fetching import Answer
from health_assets.core.errors import HealthAssetsError

Kind = Literal["proceed", "caution", "avoid", "unknown"]
KIND_OF_STATUS: dict[Status, Kind] = {
    "healthy": "proceed",
    "degraded": "caution",
    "unhealthy": "avoid",
    "unknown": "unknown",
}

WARNINGS: tuple[Status, ...] = ("degraded", "unhealthy")
"""Statuses that are believed of a document with faults, too."""
POLL_INTERVAL_S = 300
"""How long to wait before asking again (section 7), and before retrying an unhealthy agent (appendix A)."""

FEW_SAMPLES = 10
HEALTHY_RATIO = 0.95
DEGRADED_RATIO = 0.50
RECENT_MODEL_CHANGE_DAYS = 7
STALE_CAPABILITIES = timedelta(days=14)
STALE_DOCUMENT = timedelta(hours=1)
CLOCK_SKEW = timedelta(minutes=5)
LOW_UPTIME_S = 600


@dataclass(frozen=True, kw_only=True)
class Advice:
    """Advice about an agent.

    Args:
        kind: `proceed`, `caution` (proceed with it), `avoid`, or `unknown` (do as you would by default, and monitor).
        status: the agent's word on itself; `unknown` too where nothing valid could be learnt.
        sentences: the advice in words, the most important first.
        retry_after_s: how long to wait before asking or using the agent again; None where nothing speaks against now.
        is_worsening: whether a degraded or unhealthy agent's response ratio declines; None where it does not say.
        is_decaying: whether a recent model change comes with a declining trend, a strong signal of decay.
        needs_reverification: whether the agent was healthy and is not any more, so that what rests on its health
            (credentials, trust scores) should be verified again before more trust is given (appendix A, step 4).
        outage_s: of an agent that is not healthy, time since it last was; None where that is not known.
        document: the document that the advice is made from, or its valid members; None where there is none.
        answer: the answer that the advice is made from.
    """

    kind: Kind
    status: Status
    sentences: tuple[str, ...]
    retry_after_s: int | None
    is_worsening: bool | None
    is_decaying: bool
    needs_reverification: bool
    outage_s: float | None
    document: ReadableDocument | None
    answer: Answer

    @property
    def outcome(self) -> str:
        """The outcome of asking: see `Answer`."""
        return self.answer.outcome


def advise(answer: Answer, *, previous_status: str | None = None, now: datetime | None = None) -> Advice:
    """The advice about the agent that gave this answer.

    Args:
        answer: from `fetch_health`.
        previous_status: the agent's status when it was last asked, where that is known.
        now: the time to reckon outages from, aware; by default when the agent was asked.

    Raises:
        HealthAssetsError: the previous status is none that the draft knows, or `now` has no zone.
    """
    if previous_status is not None and previous_status not in STATUSES:
        raise HealthAssetsError(f"the previous status {previous_status!r} is none of {', '.join(STATUSES)}")
    if now is not None and now.tzinfo is None:
        raise HealthAssetsError("the time to reckon from needs a zone")
    moment = (now or answer.asked_at).astimezone(UTC)
    document = believed_document(answer)
    if document is None:
        return _nothing_learnt(answer)
    status = document.health.status
    needs_reverification = previous_status == "healthy" and status in ("degraded", "unhealthy")
    return Advice(
        kind="caution" if status == "healthy" and _is_failing_now(document) else KIND_OF_STATUS[status],
        status=status,
        sentences=tuple(_sentences(document, answer, moment, needs_reverification)),
        retry_after_s=POLL_INTERVAL_S if status == "unhealthy" else None,
        is_worsening=_is_worsening(document),
        is_decaying=_is_decaying(document),
        needs_reverification=needs_reverification,
        outage_s=_outage_s(document, moment),
        document=document,
        answer=answer,
    )


def believed_document(answer: Answer) -> ReadableDocument | None:
    """The document that counts: a valid one, or one that warns; to be taken for healthy, a document has to be valid."""
    if answer.document is not None:
        return answer.document
    readable = answer.readable
    return readable if readable is not None and readable.health.status in WARNINGS else None


def _nothing_learnt(answer: Answer) -> Advice:
    """Appendix A, step 2: a request that failed says nothing about the agent, and an invalid document no more."""
    retry_after_s = None if answer.retry_after_s is None else max(answer.retry_after_s, POLL_INTERVAL_S)
    sentences = [
        "Its health is unknown, which does not mean unhealthy: do as you would by default, and watch for errors.",
        f"What was asked gave no health document: {_fault(answer)}.",
    ]
    if answer.readable is not None:
        sentences.append(f"It says {answer.readable.health.status}, which is not believed of such an answer.")
    if retry_after_s is not None:
        sentences.append(f"It asks to be left alone; ask again in {in_words(timedelta(seconds=retry_after_s))}.")
    return Advice(
        kind="unknown",
        status="unknown",
        sentences=tuple(sentences),
        retry_after_s=retry_after_s,
        is_worsening=None,
        is_decaying=False,
        needs_reverification=False,
        outage_s=None,
        document=None,
        answer=answer,
    )


def _fault(answer: Answer) -> str:
    """The fault of an answer; the fields of an invalid document have their own list."""
    count = len(answer.problems)
    return f"{count} thing{'s are' if count > 1 else ' is'} wrong with what it answers" if count else f"{answer.error}"


def _is_failing_now(document: ReadableDocument) -> bool:
    alarm = alarm_of(document)
    return alarm is not None and alarm.verdict == "failing"


def _is_worsening(document: ReadableDocument) -> bool | None:
    trend = document.decay.calibration_trend
    if document.health.status not in ("degraded", "unhealthy") or trend is None:
        return None
    return trend == "declining"


def _is_decaying(document: ReadableDocument) -> bool:
    """Section 4.5: a recent model change with a declining trend."""
    days = document.decay.days_since_model_change
    return document.decay.calibration_trend == "declining" and days is not None and days <= RECENT_MODEL_CHANGE_DAYS


def _outage_s(document: ReadableDocument, now: datetime) -> float | None:
    last = document.health.last_healthy_at
    if document.health.status == "healthy" or last is None:
        return None
    return max(0.0, (now - last).total_seconds())


# -- in words ----------------------------------------------------------------------------------------------------------


def _sentences(document: ReadableDocument, answer: Answer, now: datetime, needs_reverification: bool) -> Iterator[str]:
    """Everything that is worth saying about a valid document, the advice itself first."""
    first, *others = _OF_STATUS[document.health.status](document, now)
    yield first
    yield from _of_alarm(document)
    yield from others
    if needs_reverification:
        yield (
            f"It was healthy when last asked and is {document.health.status} now: verify credentials and trust scores "
            "that rest on its health again before you trust it with more."
        )
    yield from _of_decay(document, now)
    if answer.document is None:
        yield f"Its answer is no valid health document, and believed nevertheless: {_fault(answer)}."
    yield from _of_doubt(document, answer, now)


def _of_alarm(document: ReadableDocument) -> Iterator[str]:
    """The last hours, which a window of 24 dilutes: an agent that is wholly down is healthy by it for hours."""
    alarm = alarm_of(document)
    if alarm is None:
        return
    since = "" if alarm.since is None else f", since {at(alarm.since)}"
    if alarm.verdict == "failing":
        yield f"It says of its last hours: FAILING now{since}."
    else:
        yield f"It says of its last hours: suspect now{since}; more of its runs fail than chance explains."


def _healthy(document: ReadableDocument, _: datetime) -> Iterator[str]:
    if _is_failing_now(document):
        yield "Proceed with caution: its status is healthy, by a window that is longer than its trouble."
    else:
        yield "Proceed: the agent says that it is healthy."
    yield from _of_ratio(document)
    yield "Healthy means that it works, not that it can be trusted."


def _degraded(document: ReadableDocument, now: datetime) -> Iterator[str]:
    yield "Proceed with caution: set lower timeouts, keep a fallback agent at hand, or ask for less at a time."
    yield from _of_ratio(document)
    yield {
        "declining": "It is getting worse: its response ratio fell since the window before.",
        "improving": "It is recovering: its response ratio rose since the window before.",
        "stable": "It is not getting worse: its response ratio is about that of the window before.",
        None: "Whether it is getting worse it does not say.",
    }[document.decay.calibration_trend]
    yield from _of_outage(document, now, "degraded")
    uptime_s = document.health.uptime_seconds
    if uptime_s is not None and uptime_s < LOW_UPTIME_S:
        yield f"It started only {in_words(timedelta(seconds=uptime_s))} ago, so it may be crashing again and again."


def _unhealthy(document: ReadableDocument, now: datetime) -> Iterator[str]:
    yield "Avoid it for now: try again in 5 min, or use another agent."
    yield from _of_ratio(document)
    yield from _of_outage(document, now, "out of order")


def _unknown(_: ReadableDocument, __: datetime) -> Iterator[str]:
    yield (
        "It answers, but has no operational information: do as you would by default, and watch for errors. "
        "Unknown does not mean unhealthy."
    )


_OF_STATUS: dict[Status, Callable[[ReadableDocument, datetime], Iterator[str]]] = {
    "healthy": _healthy,
    "degraded": _degraded,
    "unhealthy": _unhealthy,
    "unknown": _unknown,
}


def _of_ratio(document: ReadableDocument) -> Iterator[str]:
    calibration = document.calibration
    if calibration.response_ratio is None:
        return
    count = calibration.sample_count
    window_s = calibration.measurement_window_seconds
    requests = "its requests" if count is None else f"{count:,} request{'s' if count != 1 else ''}"
    span = "" if window_s is None else f" in {_window_in_words(window_s)}"
    yield f"{percent(calibration.response_ratio)} of {requests}{span} got a valid response."


def _window_in_words(window_s: float) -> str:
    """The length of a measurement window, which people give in hours up to a few days."""
    hours, rest_s = divmod(window_s, 3600)
    return f"{hours:g} h" if not rest_s and 1 <= hours <= 72 else in_words(timedelta(seconds=min(window_s, 1e9)))


def _of_outage(document: ReadableDocument, now: datetime, state: str) -> Iterator[str]:
    last = document.health.last_healthy_at
    if last is None:
        yield f"Since when it is {state} it does not say."
    elif last > now:
        yield f"It says that it was last healthy at {at(last)}, which is still to come: a clock is wrong."
    else:
        yield f"It was last healthy {in_words(now - last)} ago, at {at(last)}."


def _of_decay(document: ReadableDocument, now: datetime) -> Iterator[str]:
    """Section 4.5, where the trend declines."""
    decay = document.decay
    if decay.calibration_trend != "declining":
        return
    if document.health.status in ("healthy", "unknown", "unhealthy"):
        yield "Its response ratio fell since the window before."
    if _is_decaying(document):
        days = decay.days_since_model_change or 0
        span = in_words(timedelta(days=days))
        yield f"A strong signal of decay: its model changed {span} ago, and its trend declines."
    declared = decay.last_capability_update
    if declared is not None and now - declared >= STALE_CAPABILITIES:
        yield f"What it says it can do dates from {at(declared)} and may no longer be true."


def _of_doubt(document: ReadableDocument, answer: Answer, now: datetime) -> Iterator[str]:
    """Reasons not to make too much of the document."""
    calibration, status = document.calibration, document.health.status
    if calibration.sample_count is not None and calibration.sample_count < FEW_SAMPLES:
        yield f"Fewer than {FEW_SAMPLES} requests stand behind its figures: they say little."
    elif calibration.response_ratio is not None and not _agrees(status, calibration.response_ratio):
        ratio = percent(calibration.response_ratio)
        yield f"A response ratio of {ratio} does not fit the status {status}: doubt one of the two."
    yield from _of_age(document.timestamp, now)
    if not answer.is_over_tls:
        yield "It was asked over http:// where the draft wants HTTPS: anybody on the way may have changed the answer."


def _of_age(timestamp: datetime | None, now: datetime) -> Iterator[str]:
    age = timedelta() if timestamp is None else now - timestamp
    if timestamp is not None and age < -CLOCK_SKEW:
        yield f"It states its health as of {at(timestamp)}, which is still to come: a clock is wrong."
    elif age > STALE_DOCUMENT:
        yield f"It states its health as of {in_words(age)} ago, so that may be over."


def _agrees(status: Status, ratio: float) -> bool:
    """Whether a status is one that section 4.3 gives for this response ratio; latency may degrade any."""
    if status == "healthy":
        return ratio >= HEALTHY_RATIO
    if status == "degraded":
        return ratio >= DEGRADED_RATIO
    return status == "unknown" or ratio < DEGRADED_RATIO


def percent(share: float) -> str:
    """A share as a percentage that says 100% only of all and 0% only of none."""
    rounded = f"{share:.1%}"
    if rounded == "100.0%" and share < 1:
        return "more than 99.9%"
    return "less than 0.1%" if rounded == "0.0%" and share > 0 else rounded.replace(".0%", "%")


def at(moment: datetime) -> str:
    """A time as people read it."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def in_words(span: timedelta) -> str:
    """A length of time in its two largest units, like `2 h 10 min`."""
    seconds = max(0, int(span.total_seconds()))
    units = [("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)]
    for (unit, length), (smaller, smaller_length) in pairwise(units):
        if seconds >= length:
            rest = seconds % length // smaller_length
            return f"{seconds // length} {unit}" + (f" {rest} {smaller}" if rest else "")
    return f"{seconds} s"
