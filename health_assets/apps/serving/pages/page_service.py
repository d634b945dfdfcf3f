"""Pages from requests: who asks, at which hour, in which of the three ways.

What belongs here: what is the same for every page. What does not: what a page tells.
"""

import gzip
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

from health_assets.apps.serving.access_scope import EVERYBODYS, AccessScope
from health_assets.apps.serving.answers import Answer, answer, is_not_modified, not_modified
from health_assets.apps.serving.auth import Caller
from health_assets.apps.serving.history.reading import History, LostFileError
from health_assets.apps.serving.history.updater import Updater
from health_assets.apps.serving.pages.current_rules import CurrentRules, NoRulesError
from health_assets.apps.serving.pages.page import HTML, Format, Page
from health_assets.apps.serving.pages.rendering import prepare
from health_assets.apps.serving.pages.scoped_history import ScopedHistory
from health_assets.apps.serving.pages.sent_pages import SentPages
from health_assets.apps.serving.pages.signing import MAY_READ_NOTHING, may_submit_forms, own_page, sign_in_page
from health_assets.apps.serving.service import RequestContext
from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import parse_hour
from health_assets.core.settings import Settings

T = TypeVar("T")
Make = Callable[[ScopedHistory], Page]
POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    b"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
PAGE_HEADERS = [
    (b"content-security-policy", POLICY),
    (b"referrer-policy", b"same-origin"),
    (b"vary", b"accept-encoding, cookie"),
]
CACHE = b"private, no-cache"
LEAST_PACKED_BYTES = 1400
MOST_AT_ONCE = 4
"""Pages made at a time; more would only wait for each other, and hold up the health documents."""
OF_HISTORY = frozenset(
    {"fleet", "agent", "sessions", "models", "tools", "usage", "reliability", "survey", "data", "incidents", "incident"}
)
"""Pages that are made of the history alone."""
REFRESHED = OF_HISTORY | {"session"}
"""Pages that a browser refreshes while somebody looks; others are of what is over, or hold a form."""
OF_ONE_HOUR = frozenset({"hour", "format", "page", "task_page"})
"""Parameters of an address that mean nothing at another hour."""
SIGN_IN = "This page needs a token that may read."
NO_TOKENS = (
    "Pages are for who is on the same machine, or has a token. There is none yet: health-assets token new makes one."
)
LOADING = "The server has just started and is loading the newest hour. This page asks again by itself."
NOTHING_YET = "Nothing has been materialized yet: health-assets materialize does it. This page asks again by itself."
RETRY_AFTER_S = 5


class NothingYetError(HealthAssetsError):
    """There is no hour to show yet."""


class Pages:
    """Makes pages in threads of the server.

    Args:
        settings: the targets, and after what time an hour is late.
        updater: holds the history.
        has_tokens: whether anybody can sign in.
        anonymous: what a caller without a token sees.
    """

    def __init__(
        self, settings: Settings, updater: Updater, *, has_tokens: bool = False, anonymous: AccessScope = EVERYBODYS
    ) -> None:
        self._settings = settings
        self._updater = updater
        self._has_tokens = has_tokens
        self._anonymous = anonymous
        self._at_once = threading.BoundedSemaphore(MOST_AT_ONCE)
        self._rules = CurrentRules(settings)
        self._sent = SentPages()

    def answer(self, asked: RequestContext, make: Make, *, hour: str | None, how: Format) -> Answer:
        """The page that `make` makes of what the caller sees.

        Args:
            asked: the request.
            make: makes the page.
            hour: the hour to look at, as text; None for the newest.
            how: in which of the three ways.
        """
        made_of = self._made_of(self._updater.history)
        if (unchanged := self._unchanged(asked, how, made_of)) is not None:
            return unchanged
        with self._at_once:
            look = None
            if asked.caller.refusal("read") is not None:
                page = sign_in_page(self._reason(asked), asked.target, status=401)
            else:
                try:
                    look = self._look(asked, hour)
                    page = make(look)
                except (NoRulesError, LostFileError, NothingYetError) as error:
                    data = {"detail": str(error)}
                    page = Page(name="sorry", title="Not ready", data=data, status=503, retry_after_s=RETRY_AFTER_S)
                except HealthAssetsError as error:
                    page = Page(name="sorry", title="Not found", data={"detail": str(error)}, status=404)
            made = self._written(asked, page, how, look)
        if page.name in OF_HISTORY and page.status == 200:
            self._sent.note(_page_asked(asked, how), made_of, dict(made.headers)[b"etag"])
        return made

    def _unchanged(self, asked: RequestContext, how: Format, made_of: tuple[Any, ...]) -> Answer | None:
        """The answer to who has a page already that would be the same again; None where it has to be made to know."""
        tag, now = self._sent.tag_of(_page_asked(asked, how), made_of), datetime.now(UTC)
        has_tag = any(name == b"if-none-match" for name, _ in asked.headers)
        if tag is None or not has_tag or not is_not_modified(asked.headers, tag, now):
            return None
        made = not_modified(tag, last_modified=now, cache=CACHE)
        return replace(made, headers=[*made.headers, *PAGE_HEADERS])

    def _made_of(self, history: History) -> tuple[Any, ...]:
        """All that a page of the history is made of besides the request; times in it hold for a minute."""
        rules = None
        with suppress(NoRulesError):  # the page says so
            rules = self._rules.now().rules.fingerprint
        return history.version, history.missing, rules, datetime.now(UTC).replace(second=0, microsecond=0)

    def seen(self, asked: RequestContext, find: Callable[[ScopedHistory], T], hour: str | None = None) -> T:
        """Something that is found in what the caller sees; whether it may read is asked before.

        Args:
            asked: the request.
            find: finds it.
            hour: the hour to look at, as text; None for the newest.

        Raises:
            NothingYetError: there is nothing yet.
            HealthAssetsError: there is nothing of that hour.
        """
        with self._at_once:
            return find(self._look(asked, hour))

    def make_ahead(self, history: History, make: Make) -> None:
        """Make a page of the newest hour, so that what is remembered of it is there before somebody asks.

        Args:
            history: what nobody sees yet.
            make: makes the page.

        Raises:
            HealthAssetsError: there is nothing yet.
        """
        prepare()
        for view in (self._anonymous, AccessScope(is_full=True)):
            asked = RequestContext(headers=[], caller=Caller(name=None, standing="read", view=view))
            look = self._look(asked, None, history)
            self._written(asked, make(look), "html", look)

    def forget_older(self) -> None:
        """Forget what was remembered of what the history was before."""
        with suppress(NoRulesError):
            self._rules.now().memory.forget_before(self._updater.history.version)

    def alone(self, asked: RequestContext, page: Page) -> Answer:
        """A page that shows nothing of the history, as HTML."""
        return self._written(asked, page, "html", None)

    def _reason(self, asked: RequestContext) -> str:
        """The reason for which the caller does not see a page."""
        if not self._has_tokens:
            return NO_TOKENS
        return asked.caller.fault or (SIGN_IN if asked.caller.name is None else MAY_READ_NOTHING)

    def _look(self, asked: RequestContext, hour: str | None, history: History | None = None) -> ScopedHistory:
        """The part of the history that the caller sees.

        Args:
            asked: the request.
            hour: the hour to look at, as text; None for the newest.
            history: another one than that of the updater.

        Raises:
            NothingYetError: there is nothing yet.
            HealthAssetsError: there is nothing of that hour.
        """
        history = history or self._updater.history
        newest = history.newest("agents")
        if newest is None:
            raise NothingYetError(NOTHING_YET if self._updater.is_empty else LOADING)
        wanted = parse_hour(hour) if hour else newest
        if wanted != newest and wanted not in set(history.hours("agents")):
            raise HealthAssetsError(f"There is nothing of {wanted:%Y-%m-%d %H:%M} UTC here.")
        known = self._rules.now()
        return ScopedHistory(
            history=history,
            hour=wanted,
            view=asked.caller.view,
            ownership=known.rules.ownership,
            memory=known.memory,
            now=datetime.now(UTC),
            late_after=timedelta(minutes=self._settings.late_after_minutes),
            max_age_s=self._settings.serve_max_data_age_s,
            is_newest=wanted == newest,
            rules=known.rules.fingerprint,
            may_submit_forms=may_submit_forms(asked.caller),
        )

    def _written(self, asked: RequestContext, page: Page, how: Format, look: ScopedHistory | None) -> Answer:
        frame: dict[str, Any] = {
            "signed_in": asked.caller.name,
            "csrf": asked.caller.csrf,
            "has_tokens": self._has_tokens,
            "has_alerts": self._settings.alerts is not None,
            "target": own_page(asked.target),
            "kept": _kept(own_page(asked.target)),
            "is_led_here": _is_led_here(asked),
            "missing": self._updater.history.missing,
            "page_name": page.name,
            "retry_after_s": page.retry_after_s,
            "is_refreshed": look is not None and look.is_newest and page.status == 200 and page.name in REFRESHED,
        }
        frame |= look.frame() if look is not None else {"hour": None, "at": None, "now": datetime.now(UTC)}
        body, content_type = page.written(how, frame)
        headers = asked.headers if page.status == 200 else []  # nobody has a refusal already
        made = answer(headers, body, last_modified=datetime.now(UTC), cache=CACHE, content_type=content_type)
        challenge = [(b"www-authenticate", b"Bearer")] if page.status == 401 else []
        later = [(b"retry-after", b"%d" % page.retry_after_s)] if page.retry_after_s else []
        made = replace(made, headers=[*made.headers, *PAGE_HEADERS, *challenge, *later])
        if made.status == 304:
            return made
        made = replace(made, status=page.status)
        return packed(made) if content_type == HTML and _takes_gzip(asked) else made


def _page_asked(asked: RequestContext, how: Format) -> tuple[Any, ...]:
    """All that a request decides of a page of the history."""
    return asked.target, how, asked.caller, _is_led_here(asked)


def _is_led_here(asked: RequestContext) -> bool:
    """Whether a link on another site led here: then the browser kept its cookie to itself, and should ask again."""
    fetch = {name: value for name, value in asked.headers if name.startswith(b"sec-fetch-")}
    return fetch.get(b"sec-fetch-site") == b"cross-site" and fetch.get(b"sec-fetch-mode") == b"navigate"


def _kept(target: str) -> list[tuple[str, str]]:
    """The choices of an address besides the hour: they hold for other hours, too."""
    return [one for one in parse_qsl(urlsplit(target).query) if one[0] not in OF_ONE_HOUR]


def _takes_gzip(asked: RequestContext) -> bool:
    return any(name == b"accept-encoding" and b"gzip" in value for name, value in asked.headers)


def packed(made: Answer) -> Answer:
    """The answer packed, where that saves a packet."""
    if len(made.body) < LEAST_PACKED_BYTES:
        return made
    body = gzip.compress(made.body, compresslevel=4, mtime=0)
    headers = [(name, value) for name, value in made.headers if name != b"content-length"]
    return replace(
        made, body=body, headers=[*headers, (b"content-length", b"%d" % len(body)), (b"content-encoding", b"gzip")]
    )
