"""The outbox: what is due is read, sent with the warehouse closed, and marked afterwards.

A process that dies between sending and marking sends again: at least once, with the same key. Each channel has a thread
of its own and a limit of time, so that one that hangs holds up neither the others nor the tick.
"""

import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from health_assets.apps.alerts.channels import RETRY_PAUSE_S, NotDelivered, Refused, TakenInPart, TooLarge, send
from health_assets.apps.alerts.config import Alerts, Channel
from health_assets.apps.alerts.digest_store import due_digests
from health_assets.apps.alerts.digest_texts import message_of_digest
from health_assets.apps.alerts.incidents import personal_by_now
from health_assets.apps.alerts.messages import (
    LISTED_OF_DIGEST,
    Audience,
    Message,
    gathered,
    message_about,
    trial_end,
    trial_message,
)
from health_assets.apps.alerts.outbox import LONGEST_WAIT, Notice, due_notices, mark_delivered, mark_failed
from health_assets.apps.alerts.periodic import DigestNotice
from health_assets.core.formatting import counted
from health_assets.core.targets import Targets
from health_assets.core.terminal import printable
from health_assets.warehouse.store import Warehouse

BUDGET_S = 30.0
"""Most time that a tick spends on sending."""
GRACE_S = 3.0
"""For so long after that what is under way is waited for; by then its own deadline has ended it."""
MOST_A_TICK = 50_000
"""Notices of one channel."""
Told = Notice | DigestNotice
"""A notice to a channel: something of an incident, or a periodic digest."""
FIRST_WAIT = timedelta(minutes=1)
Kind = TypeVar("Kind", Notice, Told)


@dataclass
class Delivery:
    """The outcome of the deliveries of one tick.

    Args:
        delivered: notices that a channel took.
        failed: notices that it did not take, why, and when to try again.
    """

    delivered: list[Told] = field(default_factory=list)
    failed: list[tuple[Told, str, datetime]] = field(default_factory=list)

    def __add__(self, other: "Delivery") -> "Delivery":
        return Delivery(self.delivered + other.delivered, self.failed + other.failed)

    @property
    def errors(self) -> list[str]:
        """Why channels did not take notices, each reason once."""
        return sorted({f"{notice.channel}: {error}" for notice, error, _ in self.failed})

    def __str__(self) -> str:
        told = f"{counted(len(self.delivered), 'message')} delivered"
        return f"{told}, {len(self.failed):,} not ({'; '.join(self.errors)})" if self.failed else told


def deliver(
    reading: Warehouse,
    writing: Warehouse,
    alerts: Alerts,
    now: datetime,
    *,
    targets: Targets | None = None,
    pages_url: str | None = None,
    budget_s: float = BUDGET_S,
    pause_s: float = RETRY_PAUSE_S,
) -> Delivery:
    """Send what is due.

    Args:
        reading: the warehouse, to look at what is due.
        writing: the same, to mark what was sent; it may wait longer, since what is not marked is sent again.
        alerts: the channels.
        now: the time.
        targets: the personal agents of now, whatever was so when the incident opened.
        pages_url: public address of the pages, to which messages link.
        budget_s: most time to spend on sending.
        pause_s: about how long to wait before a channel is tried again.

    Raises:
        HealthAssetsError: the warehouse cannot be opened.
    """
    with reading.read() as session:
        due = {name: due_notices(session, name, now, MOST_A_TICK) for name in alerts.channels}
        digests = {name: due_digests(session, name, now) for name in alerts.channels}
    known = targets or Targets()
    waiting: dict[str, list[Told]] = {
        name: [
            *digests[name],
            *(replace(notice, incident=personal_by_now(notice.incident, known)) for notice in notices),
        ]
        for name, notices in due.items()
    }
    sent = _send_side_by_side(
        {name: notices for name, notices in waiting.items() if notices}, alerts, now, budget_s, pause_s, pages_url
    )
    if sent.delivered or sent.failed:
        with writing.write() as session:
            mark_delivered(session, sent.delivered, datetime.now(UTC))
            mark_failed(session, sent.failed)
    return sent


def _send_side_by_side(
    waiting: Mapping[str, Sequence[Told]],
    alerts: Alerts,
    now: datetime,
    budget_s: float,
    pause_s: float,
    pages_url: str | None,
) -> Delivery:
    until = time.monotonic() + budget_s
    posts = {
        name: _Post(alerts.channels[name], notices, alerts.digest_above, until, pause_s, pages_url)
        for name, notices in waiting.items()
    }
    for post in posts.values():
        post.start()
    together = Delivery()
    for post in posts.values():
        post.join(max(0.0, until + GRACE_S - time.monotonic()))
        delivered, failed = post.outcome()
        together.delivered += delivered
        together.failed += [
            (notice, error, next_attempt(now, notice.attempts, post.rest_s)) for notice, error in failed
        ]
    return together


def next_attempt(now: datetime, attempts: int, rest_s: int = 0) -> datetime:
    """The time of the next attempt: a minute after the first one, then twice as long each time, an hour at most.

    Args:
        now: the time.
        attempts: how many.
        rest_s: for how long the channel asks to be left alone, which is also an hour at most.
    """
    wait = max(FIRST_WAIT * 2 ** min(attempts, 10), timedelta(seconds=rest_s))
    return now + min(wait, LONGEST_WAIT)


class _Post(threading.Thread):
    """Sends the notices of one channel, one after another; it dies with the process.

    `rest_s` is for how long the channel asked to be left alone.
    """

    def __init__(
        self,
        channel: Channel,
        notices: Sequence[Told],
        digest_above: int,
        until: float,
        pause_s: float,
        pages_url: str | None,
    ) -> None:
        super().__init__(daemon=True)
        self.rest_s = 0
        self._channel = channel
        self._audience = Audience(pages_url=pages_url, has_error_texts=channel.error_texts)
        self._until = until
        self._pause_s = pause_s
        self._lock = threading.Lock()
        self._delivered: list[Told] = []
        self._failed: list[tuple[Told, str]] = []
        self._current: Sequence[Told] = ()
        self._notices = notices
        self._digest_above = digest_above

    def run(self) -> None:
        """Send until all is sent, the channel does not work, or the time is over.

        What several rules say of a subject at one time is one message, but to a pager each incident has its own. A
        message about several notices that is too large for the channel is halved until it fits; one about a single
        notice, or about more than a digest lists, is cut. Where one about several is refused for another reason, they
        are sent one by one, so that one that the channel will not take is set aside and holds up the others no longer;
        of a digest these are the oldest, and the others come with the next tick.
        """
        lost: set[str] = set()
        """Incidents of which the channel has not heard, and so does not hear their end."""
        writable = [notice for notice in self._notices if self._is_writable(notice, lost)]
        notices = [notice for notice in writable if isinstance(notice, Notice)]
        groups = _singly(notices) if self._channel.is_pager else gathered(notices)
        is_digest = len(groups) > self._digest_above and not self._channel.is_pager
        parts: deque[Sequence[Told]] = deque([notice] for notice in writable if isinstance(notice, DigestNotice))
        parts.extend([notices] if is_digest else groups)
        while parts and time.monotonic() < self._until:
            part = [notice for notice in parts.popleft() if notice.about_id not in lost]
            if not part:
                continue
            error = self._error_of(part)
            if isinstance(error, TooLarge) and 1 < len(part) <= LISTED_OF_DIGEST:
                parts.extendleft((part[len(part) // 2 :], part[: len(part) // 2]))
            elif isinstance(error, Refused | TakenInPart) and len(part) == 1:
                lost.add(part[0].about_id)
            elif isinstance(error, Refused):
                singles = _singly(part[: self._digest_above])
                if is_digest:
                    parts.clear()
                parts.extendleft(reversed(singles))
            elif error:
                return

    def _is_writable(self, notice: Told, lost: set[str]) -> bool:
        """Whether a message can be made of it; one of which none can is its own failure and no other's."""
        try:
            _message([notice], self._audience)
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            with self._lock:
                self._failed.append((notice, printable(f"it cannot be written: {type(error).__name__}: {error}")))
            lost.add(notice.about_id)
            return False
        return True

    def _error_of(self, notices: Sequence[Told]) -> NotDelivered | None:
        """Send one message about these; why it was not taken, or None. A digest that is refused is no outcome yet."""
        with self._lock:
            self._current = notices
        error: NotDelivered | None = None
        try:
            self._send(notices)
        except NotDelivered as caught:
            error, self.rest_s = caught, caught.rest_s
        with self._lock:
            self._current = ()
            if error is None:
                self._delivered += notices
            elif len(notices) == 1 or not isinstance(error, Refused):
                self._failed += [(notice, str(error)) for notice in notices]
        return error

    def _send(self, notices: Sequence[Told]) -> None:
        message = _message(notices, self._audience)
        try:
            send(self._channel, message, pause_s=self._pause_s, until=self._until)
        except TooLarge:
            if 1 < len(notices) <= LISTED_OF_DIGEST:
                raise
            send(self._channel, message.cut(), pause_s=self._pause_s, until=self._until)

    def outcome(self) -> tuple[list[Told], list[tuple[Told, str]]]:
        """The deliveries up to now, good and failed; one that is still under way counts as failed."""
        with self._lock:
            hanging = [(notice, "it did not answer in time") for notice in self._current]
            return list(self._delivered), [*self._failed, *hanging]


def _message(notices: Sequence[Told], audience: Audience) -> Message:
    """The message about one digest, or about these notices."""
    if isinstance(notices[0], DigestNotice):
        return message_of_digest(notices[0].digest)
    return message_about([notice for notice in notices if isinstance(notice, Notice)], audience)


def _singly(notices: Iterable[Kind]) -> list[list[Kind]]:
    return [[notice] for notice in notices]


def try_channels(alerts: Alerts, now: datetime) -> dict[str, str | None]:
    """Send a test message to every channel; by channel, why it was not taken, or None."""
    outcome: dict[str, str | None] = {}
    for name, channel in alerts.channels.items():
        try:
            send(channel, trial_message(name, now))
            if channel.is_pager:
                send(channel, trial_end(name, now))
            outcome[name] = None
        except NotDelivered as error:
            outcome[name] = str(error)
    return outcome
