"""Callers and their rights: roles, teams, tokens, and the hosts that are answered.

What belongs here: recognizing a caller, and the one rule of who may do what. What does not: how tokens are kept
(`tokens`), how much a caller may ask (`quotas`), and what part of the data a view is (`access_scope`).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal

from health_assets.apps.serving import tokens
from health_assets.apps.serving.access_scope import AccessScope
from health_assets.apps.serving.answers import Answer, Headers, problem
from health_assets.apps.serving.audit import UnwritableLogError, note_change
from health_assets.apps.serving.hosts import AllowedHosts, named
from health_assets.apps.serving.sign_ins import SignIns
from health_assets.apps.serving.tokens import Keyring, Role, Token
from health_assets.core.errors import HealthAssetsError
from health_assets.core.settings import Settings

AccessLevel = Literal["none", "documents", "read", "operate"]
"""What a caller may do: nothing, or what a role may; each may do what those before it may."""
RANKS: dict[str, int] = {"none": 0, **{role: rank for rank, role in enumerate(tokens.ROLES, 1)}}

FORWARDED = frozenset({b"forwarded", b"x-forwarded-for", b"x-real-ip", b"via"})
"""Headers by which a proxy says that it passes on what somebody else asks."""
NEEDS_TOKEN = "this needs a token that may do it, as Authorization: Bearer"
NOT_KNOWN = "the token that was given is not known or has expired"
NO_BEARER = "a token is given as one header, Authorization: Bearer …"
NOT_ENOUGH = "the token may not do this"
NO_METRICS = "metrics are counted over the agents of all teams, so a token that is limited to some does not see them"
NO_AGGREGATES = "models are measured over the agents of all teams, so a token that is limited to some does not see them"


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The sender of a request.

    Args:
        name: the token's name; None for those without one.
        standing: the caller's rights.
        view: the part of the data that the caller may see.
        fault: the fault of the credentials that were given; None where there were none or they are good.
        csrf: secret that the forms of a signed-in browser must repeat; None for every other caller.
    """

    name: str | None
    standing: AccessLevel
    view: AccessScope
    fault: str | None = None
    csrf: str | None = None

    def refusal(self, role: Role) -> Answer | None:
        """The reason why the caller may not do what needs a role; None if it may."""
        if RANKS[self.standing] >= RANKS[role]:
            return None
        if self.name is not None:
            return problem(403, NOT_ENOUGH, [(b"www-authenticate", b'Bearer error="insufficient_scope"')])
        challenge = b'Bearer error="invalid_token"' if self.fault else b"Bearer"
        return problem(401, self.fault or NEEDS_TOKEN, [(b"www-authenticate", challenge)])


class Auth:
    """Recognizes callers.

    Args:
        settings: the tokens, what those without one may do, which hosts are answered.
        host: the name or address that is listened on.
        is_local: whether this machine alone can reach it.
        on_fault: told in a sentence when the file of tokens cannot be used any more.

    Raises:
        HealthAssetsError: the tokens cannot be used.
    """

    def __init__(self, settings: Settings, host: str, on_fault: Callable[[str], None], *, is_local: bool) -> None:
        self._settings = settings
        self._on_fault = on_fault
        self._fault: str | None = None
        self._keyring = Keyring(tokens.load_tokens(settings))
        self.has_tokens = tokens.are_configured(settings)
        self._sign_ins = SignIns()
        self.hosts = AllowedHosts(host, settings.allowed_hosts)
        # reached from this machine alone, and nobody has a token: an anonymous caller is the local user
        is_local_only = is_local and not self.has_tokens and not named(settings.allowed_hosts)
        self.anonymous: AccessLevel = settings.anonymous_role or ("read" if is_local_only else "documents")
        self._anonymous, self._unknown, self._unreadable = (
            Caller(name=None, standing=self.anonymous, view=AccessScope(), fault=fault)
            for fault in (None, NOT_KNOWN, NO_BEARER)
        )
        # the local user can read the logs anyway
        self.anonymous_view = AccessScope(is_local_user=is_local_only and RANKS[self.anonymous] >= RANKS["read"])
        self._local_user = replace(self._anonymous, view=self.anonymous_view)
        self.is_open_to_the_world = self.anonymous == "read" and not is_local

    def authenticate(self, headers: Headers) -> Caller:
        """The sender of a request, by its token; without a known token, an anonymous one or the local user."""
        given = [value for name, value in headers if name == b"authorization"]
        if not given:
            is_forwarded = any(name in FORWARDED for name, _ in headers)
            return self._anonymous if is_forwarded else self._local_user
        scheme, _, secret = given[0].partition(b" ")
        secret = secret.strip(b" ")
        if len(given) > 1 or scheme.lower() != b"bearer" or not secret:
            return self._unreadable
        token = self._keyring.find(secret, datetime.now(UTC))
        return self._unknown if token is None else _caller(token)

    def authenticate_browser(self, headers: Headers) -> Caller:
        """The sender of a request for a page, by its token or else by the cookie of a session."""
        caller = self.authenticate(headers)
        if caller is not self._anonymous and caller is not self._local_user:
            return caller
        now = datetime.now(UTC)
        sign_in = self._sign_ins.find(headers, now)
        token = None if sign_in is None else self._keyring.of_digest(sign_in.digest, now)
        return caller if sign_in is None or token is None else replace(_caller(token), csrf=sign_in.csrf)

    def sign_in(self, secret: str, headers: Headers) -> tuple[Caller, str | None]:
        """Begin a session of a token that may read, in place of that which these headers name.

        Returns:
            Who it is, and the cookie's value; None for it where the token is not known, has expired, or may not read.
        """
        now = datetime.now(UTC)
        token = self._keyring.find(secret.encode(), now)
        if token is None:
            return self._unknown, None
        caller = _caller(token)
        if caller.refusal("read") is not None:
            return caller, None
        self._sign_ins.end(headers)
        return caller, self._sign_ins.begin(bytes.fromhex(token.sha256), now)

    def sign_out(self, headers: Headers) -> None:
        """End the session that these headers name."""
        self._sign_ins.end(headers)

    def refresh(self) -> None:
        """Read the tokens again; while they cannot be read the old ones stay, and the operator is told once."""
        try:
            found = tokens.load_tokens(self._settings)
        except HealthAssetsError as error:
            if str(error) != self._fault:
                self._fault = str(error)
                self._on_fault(f"the tokens stay what they were: {error}")
            return
        self._fault = None
        if found == self._keyring.tokens:
            return
        before, after = set(self._keyring.tokens), set(found)
        self._keyring = Keyring(found)
        changes = {
            "tokens_taken_in": sorted(token.name for token in after - before),
            "tokens_left_out": sorted(token.name for token in before - after),
        }
        try:
            note_change(self._settings, "serve", changes)
        except UnwritableLogError as error:  # a token that is withdrawn must not go on because a disk is full
            self._on_fault(f"the tokens have changed, but that is not noted: {error.reason}")


def _caller(token: Token) -> Caller:
    teams = None if token.teams is None else frozenset(token.teams)
    return Caller(name=token.name, standing=token.role, view=AccessScope(is_full=token.role == "operate", teams=teams))
