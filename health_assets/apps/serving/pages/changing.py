"""Changes that people make on pages: who may, that it is noted, and a process that makes it.

What belongs here: what is the same for every change. What does not: HTTP around forms (`apps.serving.forms`), and how a
page looks.

The server itself never opens the warehouse: a process does, while this thread waits and the event loop goes on. It
waits for a held warehouse for a few seconds; then nothing is changed, and the page says so and offers to try again.
"""

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from health_assets.apps.alerts.silences import Silence
from health_assets.apps.serving.answers import Answer
from health_assets.apps.serving.audit import UnwritableLogError, audited
from health_assets.apps.serving.client import WRITER, Reader, ReaderError
from health_assets.apps.serving.forms import END_SILENCE, SILENCES, Form
from health_assets.apps.serving.history.reading import History
from health_assets.apps.serving.history.updater import Updater
from health_assets.apps.serving.pages.page import Page
from health_assets.apps.serving.pages.page_service import Pages
from health_assets.apps.serving.pages.signing import (
    OLD_FORM,
    SIGN_IN_AGAIN,
    has_valid_csrf,
    is_unrestricted_operator,
    led_to,
    may_submit_forms,
    sign_in_page,
)
from health_assets.apps.serving.pages.silences_page import (
    Draft,
    Refused,
    is_everything,
    known_silences,
    silences_page,
)
from health_assets.apps.serving.service import RequestContext
from health_assets.core.errors import HealthAssetsError
from health_assets.core.settings import Settings

PATIENCE_S = 5.0
"""How long a person waits while somebody else holds the warehouse; then the page says so, and offers to try again."""
WRITE_TIMEOUT_S = 60.0
TURN_TIMEOUT_S = 15.0
"""How long a change waits for the one before it."""
SHOWN_WITHIN_S = 6.0
"""How long a browser waits for the history to show what it changed."""
BUSY = "The warehouse is busy: somebody else writes to it. Nothing has been changed."
NOT_WRITTEN = (
    "The warehouse cannot be written; the server's operator is told why. Look at the list before you try again."
)
NOT_NOTED = "Changes cannot be noted in the audit log, so nothing has been changed; the server's operator is told why."
MAY_NOT = "Changing anything needs a token of the role operate that sees the agents of all teams."
EVERYTHING = "This silences every rule of every agent. Tick the box below where that is meant."
NOT_EVERYTHING = (
    "This silences every rule of every agent, which only the page of silences and the command line do; name agents or "
    "rules."
)
OF_FILE = "It stands in the alerts file; take it out there."
NO_SILENCE = "There is no silence of this id in force or to come."


class Changes:
    """Makes changes in threads of the server.

    Args:
        settings: the warehouse, and where changes are noted.
        updater: brings what was changed into the history.
        pages: makes the pages that answer.
        on_fault: told in a sentence, for the operator, why a change could not be made.
    """

    def __init__(self, settings: Settings, updater: Updater, pages: Pages, on_fault: Callable[[str], None]) -> None:
        self._settings = settings
        self._updater = updater
        self._pages = pages
        self._on_fault = on_fault
        self._turn = threading.Lock()

    def add_silence(self, asked: RequestContext, form: Form) -> Answer:
        """Add the silence that a form asks for."""
        if (refusal := self._refusal(asked, form)) is not None:
            return refusal
        draft = Draft(
            agents=form.one("agents"), rules=tuple(form.all("rules")), start=form.one("start"),
            until=form.one("until"), reason=form.one("reason"),
        )  # fmt: skip
        try:
            silence = draft.silence(asked.caller.name or "")
            is_of_all = self._pages.seen(asked, lambda look: is_everything(look, draft))
        except HealthAssetsError as error:
            return self._shown(asked, draft, Refused(sentence=f"{error}.", status=422))
        if is_of_all and not form.one("everything"):
            return self._shown(asked, draft, Refused(sentence=EVERYTHING, status=422))
        fields = [(name, value) for name, values in form.fields.items() if name != "csrf" for value in values]
        made = self._silenced(asked, draft, silence, (SILENCES, fields))
        if isinstance(made, Refused):
            return self._shown(asked, draft, made)
        return led_to(f"{SILENCES}?done={made}")

    def silence(self, asked: RequestContext, draft: Draft) -> Silence:
        """Add a silence for a caller who sends no form.

        Raises:
            HealthAssetsError: the caller may not, the silence cannot be, it is of every agent, or it cannot be written.
        """
        if not is_unrestricted_operator(asked.caller):
            raise HealthAssetsError(MAY_NOT)
        silence = draft.silence(asked.caller.name or "")
        if self._pages.seen(asked, lambda look: is_everything(look, draft)):
            raise HealthAssetsError(NOT_EVERYTHING)
        made = self._silenced(asked, draft, silence, None)
        if isinstance(made, Refused):
            raise HealthAssetsError(made.sentence)
        return replace(silence, silence_id=made)

    def _silenced(
        self, asked: RequestContext, draft: Draft, silence: Silence, again: tuple[str, list[tuple[str, str]]] | None
    ) -> str | Refused:
        """Write a silence and wait until the history shows it; gives its id, or why it was not made."""
        wanted = {
            "agents": silence.agents,
            "rules": silence.rules,
            "start": silence.starts_at.isoformat() if draft.start.strip() else None,
            "until": silence.ends_at.isoformat(),
            "reason": silence.reason,
            "by": silence.added_by,
        }
        made = self._made(asked, "alerts silence", {"silence": wanted}, wanted, again)
        if not isinstance(made, Refused):
            self._updater.catch_up(lambda history: _has(history, made, is_ended=False), SHOWN_WITHIN_S)
        return made

    def end_silence(self, asked: RequestContext, form: Form) -> Answer:
        """End the silence that a form names."""
        if (refusal := self._refusal(asked, form)) is not None:
            return refusal
        silence_id = form.one("silence_id")
        known = {one.silence_id: one for one in known_silences(self._updater.history)}
        found = known.get(silence_id)
        if found is None or found.is_over(datetime.now(UTC)):
            return self._shown(asked, Draft(), Refused(sentence=NO_SILENCE, status=409))
        if found.is_of_file:
            return self._shown(asked, Draft(), Refused(sentence=OF_FILE, status=409))
        again = (END_SILENCE, [("silence_id", silence_id)])
        made = self._made(asked, "alerts unsilence", {"end": silence_id}, {"silence": silence_id}, again)
        if isinstance(made, Refused):
            return self._shown(asked, Draft(), made)
        self._updater.catch_up(lambda history: _has(history, made, is_ended=True), SHOWN_WITHIN_S)
        return led_to(f"{SILENCES}?done={made}")

    def _refusal(self, asked: RequestContext, form: Form) -> Answer | None:
        """The reason for which the caller may not change anything by this form; None where it may."""
        caller = asked.caller
        if caller.csrf is None:
            return self._pages.alone(asked, sign_in_page(SIGN_IN_AGAIN, SILENCES, status=401, is_wrong=True))
        if not has_valid_csrf(caller, form):
            return self._pages.alone(asked, _sorry(OLD_FORM))
        return None if may_submit_forms(caller) else self._pages.alone(asked, _sorry(MAY_NOT))

    def _made(
        self,
        asked: RequestContext,
        what: str,
        request: dict[str, Any],
        details: dict[str, Any],
        again: tuple[str, list[tuple[str, str]]] | None,
    ) -> str | Refused:
        """Make a change and note it; gives the silence's id, or why it was not made."""
        if not self._turn.acquire(timeout=TURN_TIMEOUT_S):
            return Refused(sentence=BUSY, status=503, again=again)
        data = {name: value for name, value in details.items() if name != "by"}
        place = "mcp" if again is None else "page"
        try:
            with (
                audited(self._settings, f"{place}: {what}", by=asked.caller.name, **data),
                Reader(self._settings, WRITER) as writer,
            ):
                return writer.ask({**request, "patience_s": PATIENCE_S}, WRITE_TIMEOUT_S)
        except ReaderError as error:
            if error.kind == "busy":
                return Refused(sentence=BUSY, status=503, again=again)
            if error.kind == "refused":
                return Refused(sentence=f"{str(error)[:1].upper()}{str(error)[1:]}.", status=409)
            self._on_fault(f"{place}: {what}: {error}")
            return Refused(sentence=NOT_WRITTEN, status=503, again=again)
        except UnwritableLogError as error:
            self._on_fault(f"{place}: {what}: {error}")
            return Refused(sentence=NOT_NOTED, status=503, again=again)
        finally:
            self._turn.release()

    def _shown(self, asked: RequestContext, draft: Draft, refused: Refused) -> Answer:
        return self._pages.answer(asked, lambda look: silences_page(look, draft, refused), hour=None, how="html")


def _sorry(sentence: str) -> Page:
    return Page(name="sorry", title="Not done", data={"detail": sentence}, status=403)


def _has(history: History, silence_id: str, *, is_ended: bool) -> bool:
    return any(
        one.silence_id == silence_id and (one.ended_at is not None or not is_ended) for one in known_silences(history)
    )
