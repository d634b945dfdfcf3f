"""Tokens of the endpoint: making one, reading those that are kept, recognizing one that is given.

What does not belong here: HTTP, and what a role may do (`auth`).

Only the SHA-256 of a token is kept. Slow hashes such as scrypt and argon2 are for passwords, which people choose from
few; a token is 256 random bits, so nobody can go through the candidates however fast the hash is, and a slow one would
only let strangers keep the server busy.
"""

import hashlib
import hmac
import json
import secrets
from collections.abc import Iterable
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from health_assets.core.errors import HealthAssetsError
from health_assets.core.settings import Settings
from health_assets.core.yaml_files import mapping, read_yaml, validated

Role = Literal["documents", "read", "operate"]
"""Health documents only; lists, scores and sessions, too; all that is shown in full, too."""
ROLES: tuple[Role, ...] = get_args(Role)

FEWEST_TOKEN_CHARACTERS = 16
"""A shorter token that somebody chose can be guessed by who tries long enough."""
PREFIX = "ha_"
"""By which scanners of repositories, and the access log, know a token."""
RANDOM_BYTES = 32
DIGEST_START_BYTES = 8
OPERATORS = "HEALTH_TOKEN"
"""Name of the token of that setting."""


def _teams(value: Any) -> Any:
    if value is None or value == []:  # `teams:` with nothing behind it is a slip, and must not mean all of them
        raise ValueError("name at least one team, or leave the key out for all")
    return tuple(value) if isinstance(value, list) else value


def _moment(value: Any) -> Any:
    """A point in time from YAML or JSON; a day is its begin, and what names no zone is UTC."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise ValueError("must be a day or a time like 2027-01-31T00:00:00Z") from None
    elif isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time.min)
    if isinstance(value, datetime):
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    return value


Name = Annotated[str, Field(min_length=1, max_length=200)]


class Token(BaseModel):
    """A token as it is kept."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    name: Name
    role: Role
    teams: Annotated[tuple[Name, ...] | None, BeforeValidator(_teams)] = None
    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    expires: Annotated[datetime | None, BeforeValidator(_moment)] = None

    def lines(self) -> str:
        """The token as an entry of the file, in YAML."""
        told = [
            f"name: {json.dumps(self.name)}",
            f"role: {self.role}",
            *([] if self.teams is None else [f"teams: {json.dumps(list(self.teams))}"]),
            f"sha256: {self.sha256}",
            *([] if self.expires is None else [f"expires: {self.expires.isoformat()}"]),
        ]
        return "  - " + "\n    ".join(told)


def some_name(role: str) -> str:
    """A name for a token that nobody named."""
    return f"{role}-{secrets.token_hex(3)}"


def new_token(name: str, role: str, teams: Iterable[str] = (), expires: datetime | None = None) -> tuple[str, Token]:
    """A new token, which is shown once, and what is kept of it.

    Raises:
        HealthAssetsError: the name, a team or the time is impossible.
    """
    secret = PREFIX + secrets.token_urlsafe(RANDOM_BYTES)
    values = {"name": name, "role": role, "sha256": _digest(secret.encode()).hex(), "expires": expires}
    named = list(teams)
    return secret, validated(Path("token"), repr(name), Token, values | ({"teams": named} if named else {}))


def are_configured(settings: Settings) -> bool:
    """Whether the settings name a place of tokens, however many it holds."""
    return bool(_secret(settings.token) or _secret(settings.tokens) or settings.tokens_file)


def plain_tokens(settings: Settings) -> tuple[str, ...]:
    """The tokens that the settings hold as they are given, for who must not repeat them."""
    return tuple(filter(None, [_secret(settings.token)]))


def load_tokens(settings: Settings) -> tuple[Token, ...]:
    """The tokens of `HEALTH_TOKENS_FILE`, `HEALTH_TOKENS` and `HEALTH_TOKEN`.

    Raises:
        HealthAssetsError: a file is missing or not such YAML, a key is unknown or its value impossible, or a name or
            token stands twice; no error repeats a value, which may be a secret in the wrong place.
    """
    found: list[Token] = []
    if settings.tokens_file is not None:
        path = settings.tokens_file
        document = mapping(path, "the file", read_yaml(path, "tokens file"), is_secret=True)
        if unknown := sorted(set(document) - {"tokens"}):
            raise HealthAssetsError(f"{path}: unknown section {unknown[0]!r}; use 'tokens'")
        found += _tokens(path, document.get("tokens") or [])
    if text := _secret(settings.tokens):
        found += _tokens(Path("HEALTH_TOKENS"), _json(text))
    if plain := _secret(settings.token):
        found.append(Token(name=OPERATORS, role="operate", sha256=_digest(plain.encode()).hex()))
    for what in ("name", "sha256"):
        values = [getattr(token, what) for token in found]
        if twice := next((value for value in values if values.count(value) > 1), None):
            raise HealthAssetsError(f"the tokens: {what} {twice!r} stands twice")
    return tuple(found)


class Keyring:
    """Recognizes tokens.

    A given token is looked up by the first bytes of its SHA-256 and then compared as a whole in constant time. What the
    look-up's time may tell is about the hash of a guess, from which no token follows.

    Args:
        tokens: the tokens that are kept.
    """

    def __init__(self, tokens: Iterable[Token]) -> None:
        self.tokens = tuple(tokens)
        self._found: dict[bytes, list[tuple[bytes, Token]]] = {}
        for token in self.tokens:
            digest = bytes.fromhex(token.sha256)
            self._found.setdefault(digest[:DIGEST_START_BYTES], []).append((digest, token))

    def find(self, given: bytes, now: datetime) -> Token | None:
        """The token, unless it is none or has expired by now."""
        return self.of_digest(_digest(given), now)

    def of_digest(self, digest: bytes, now: datetime) -> Token | None:
        """The token of this SHA-256, unless it is none or has expired by now."""
        for known, token in self._found.get(digest[:DIGEST_START_BYTES], ()):
            if hmac.compare_digest(known, digest) and (token.expires is None or now < token.expires):
                return token
        return None


def _tokens(path: Path, entries: object) -> list[Token]:
    if not isinstance(entries, list):
        raise HealthAssetsError(f"{path}: tokens must be a list of {{name, role, sha256}}")
    return [
        validated(path, owner, Token, mapping(path, owner, entry, is_secret=True), is_secret=True)
        for owner, entry in ((f"tokens, entry {place}", entry) for place, entry in enumerate(entries, 1))
    ]


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    # outside of the handler: the library's error holds the whole text
    raise HealthAssetsError("HEALTH_TOKENS is not valid JSON; it is a list of {name, role, sha256}")


def _secret(value: Any) -> str:
    return value.get_secret_value() if value is not None else ""


def _digest(given: bytes) -> bytes:
    return hashlib.sha256(given).digest()
